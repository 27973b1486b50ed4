"""What is kept of a posterior, against dense conditioning, the full posterior, and what the law does not say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.inference.gaussian.dense import pack_triangle, unpack_triangle
from predilect.inference.gaussian.posterior import Utilities
from predilect.inference.people.queries import NEWCOMER
from predilect.papers.compression.posterior import SubsetPosterior
from predilect.papers.compression.sparsify import select, sparsify
from simulate_joint import N_ITEMS, N_USERS, everything, joint_model, other_models
from tolerances import EXACT

NAMES = (
    "population", "population-basis", "crowd-gppl", "collaborative", "gppl-separate", "gppl-joint", "gppl", "pooled",
)  # fmt: skip


@pytest.fixture(scope="module")
def joint():
    return joint_model()


@pytest.fixture(scope="module")
def models(joint):
    return other_models() | {"joint": joint}


def law(n=6, seed=0, basis=False):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    if not basis:
        return Utilities.of(rng.normal(size=n), root @ root.T + 0.2 * np.eye(n))
    Phi = rng.normal(size=(n, 3))
    own = rng.uniform(0.1, 0.5, n)
    inner = rng.normal(size=(4, 4))
    own[2] = 0.0
    return Utilities(rng.normal(size=n), inner @ inner.T + 0.1 * np.eye(4), Phi, np.array([2]), own)


def subset(law, kept, seed=1):
    rng = np.random.default_rng(seed)
    n_kept = [len(items) for items in kept]
    means, triangles = [], []
    for items in kept:
        root = rng.normal(size=(len(items), len(items)))
        means.append(rng.normal(size=len(items)))
        triangles.append(pack_triangle(0.1 * root @ root.T + 0.05 * np.eye(len(items))))
    items = np.concatenate([np.array(items, dtype=np.int64) for items in kept])
    return SubsetPosterior(
        np.concatenate([[0], np.cumsum(n_kept)]), items, np.concatenate(means), np.concatenate(triangles), law, law,
        np.ones(len(items)), np.ones(len(kept)),
    )  # fmt: skip


@pytest.mark.parametrize("basis", [False, True])
def test_the_rest_follows_by_the_conditional_of_the_law(basis):
    kept = [[0, 3], [1, 2, 5], [4], list(range(6))]
    found = subset(law(basis=basis), kept)
    m, C = found.law.dense()
    for user, S in enumerate(kept):
        mu, Sigma = found.moments(user)
        A = np.linalg.solve(C[np.ix_(S, S)], C[S]).T
        mean = m + A @ (mu - m[S])
        covariance = C - A @ C[S] + A @ Sigma @ A.T
        f, K = found.utilities(user)
        assert np.abs(f - mean).max() < EXACT
        assert np.abs(K - covariance).max() < EXACT
        a, b = np.triu_indices(6, 1)
        for left, right in ((a, b), (b, a)):
            z, v = found.margins(np.full(len(a), user), left, right)
            assert np.abs(z - (mean[left] - mean[right])).max() < EXACT
            d = np.diag(covariance)
            assert np.abs(v - (d[left] + d[right] - 2.0 * covariance[left, right])).max() < EXACT
    both = found.centred_utilities(np.arange(4))
    np.testing.assert_allclose(both[0][1], (f := found.utilities(1)[0]) - f.mean(), atol=EXACT)
    assert both[1].shape == (4, 6)
    z, v = found.margins(np.array([-1]), np.array([0]), np.array([4]))
    assert abs(z[0] - (m[0] - m[4])) < EXACT
    assert abs(v[0] - (C[0, 0] + C[4, 4] - 2.0 * C[0, 4])) < EXACT


@pytest.mark.parametrize("basis", [False, True])
def test_an_unknown_item_is_any_item(basis):
    found = subset(law(basis=basis), [[0, 3], [1, 2]])
    more = found.with_items(2)
    m, C = found.law.dense()
    known = everything(n=40)
    users, a, b = (np.minimum(known[0], 1), known[1] % 6, (known[1] + 1 + known[2] % 5) % 6)
    for one, other in zip(found.margins(users, a, b), more.margins(users, a, b), strict=True):
        assert np.abs(one - other).max() < EXACT
    z, v = more.margins(np.array([0, 1]), np.array([3, 6]), np.array([7, 7]))
    own = np.diag(C).mean() + m.var()
    mu, Sigma = found.moments(0)
    np.testing.assert_allclose(z, [mu[1] - m.mean(), 0.0], atol=EXACT)
    np.testing.assert_allclose(v, [Sigma[1, 1] + own, 2.0 * own], atol=EXACT)


def test_triangles_and_layouts():
    matrix = law().covariance
    np.testing.assert_array_equal(unpack_triangle(pack_triangle(matrix)), np.tril(matrix) + np.tril(matrix, -1).T)
    found = subset(law(), [[0, 3], [1]])
    np.testing.assert_array_equal(found.places(np.array([0, 0, 1, -1]), np.array([3, 1, 1, 0])), [1, -1, 2, -1])
    np.testing.assert_array_equal(
        found.pair_kinds(np.array([0, 0, -1]), np.array([0, 0, 0]), np.array([3, 1, 1])), [0, 1, 2 + NEWCOMER]
    )
    np.testing.assert_array_equal(found.without_answers(np.array([0, -1])), [False, True])
    with pytest.raises(ValueError, match="ascend"):
        replace(found, items=np.array([3, 0, 1]))
    with pytest.raises(ValueError, match="moments"):
        replace(found, triangles=found.triangles[:-1])


@pytest.mark.parametrize("name", [*NAMES, "joint"])
def test_keeping_everything_is_the_full_posterior(models, name):
    model = models[name]
    found, users, a, b = sparsify(model, 1.0), *everything()
    asked = users if model.personal_ else np.zeros_like(users)
    for full, kept in zip(model.posterior_.margins(asked, a, b), found.margins(users, a, b), strict=True):
        assert np.abs(full - kept).max() < EXACT
    for user in (-1, 0, 5) if model.personal_ else (0,):
        for full, kept in zip(model.posterior_.utilities(user), found.utilities(user), strict=True):
            assert np.abs(full - kept).max() < EXACT
    for full, kept in zip(model.posterior_.crowd().dense(), found.crowd().dense(), strict=True):
        assert np.abs(full - kept).max() < EXACT


@pytest.mark.parametrize("name", [*NAMES, "joint"])
def test_pairs_of_kept_items_are_the_full_posteriors(models, name):
    model = models[name]
    found, users, a, b = sparsify(model, "50%", "ucb"), *everything()
    codes = users if model.personal_ else np.zeros_like(users)
    both = (found.places(codes, a) >= 0) & (found.places(codes, b) >= 0)
    assert both.any()
    for full, kept in zip(model.posterior_.margins(codes, a, b), found.margins(codes, a, b), strict=True):
        assert np.abs(full - kept)[both].max() < EXACT
        others = np.abs(full - kept)[~both & (codes >= 0)].max()
        assert others > 1e-4 if model.personal_ else others < EXACT  # the crowd is kept, and a pooled model is no more


def test_everybody_at_once_is_one_after_the_other():
    process = joint_model().posterior_
    users = np.array([5, 0, 11])
    for user, utilities in zip(users, process.persons(users), strict=True):
        for full, found in zip(process.utilities(user), utilities.dense(), strict=True):
            assert np.abs(full - found).max() < EXACT


def cells(S):
    return np.divmod(np.array(S), N_ITEMS)


def test_the_whole_covariance_of_everything_is_the_joint_process():
    """New people and new items too: whatever answers say, they say it through the utilities."""
    process = joint_model().posterior_
    found, (users, a, b) = process.restricted(*cells(range(N_USERS * N_ITEMS))), everything()
    more = process.with_users(np.array([[0.3, -1.0]])).with_items(np.array([[1.0, 0.2]]), np.ones(1, dtype=bool))
    kept = found.with_users(np.array([[0.3, -1.0]])).with_items(np.array([[1.0, 0.2]]), np.ones(1, dtype=bool))
    users = np.append(users, [N_USERS] * 3 + [2, N_USERS])
    a, b = np.append(a, [0, 3, 5, N_ITEMS, N_ITEMS]), np.append(b, [1, 4, 7, 2, 3])
    for one, other in zip(more.margins(users, a, b), kept.margins(users, a, b), strict=True):
        assert np.abs(one - other).max() < 1e-9  # the prior covariance of all cells has condition number 1e3
    for one, other in zip(process.crowd().dense(), found.crowd().dense(), strict=True):
        assert np.abs(one - other).max() < 1e-9


def test_the_whole_covariance_of_some_against_dense_conditioning(joint):
    """vvm.md 3: mean A μ_S, covariance K_** - A K_SS Aᵀ + A Σ_SS Aᵀ."""
    process = joint.posterior_
    everyone = np.column_stack(cells(range(N_USERS * N_ITEMS))).astype(float)
    K = process.kernel(everyone)
    cross = process.kernel(everyone, process.rows.codes)
    mu, Sigma = cross @ process.alpha, K - cross @ process.reduction @ cross.T
    selection = select(joint, 3, "ucb")
    S = selection.users * N_ITEMS + selection.items
    A = np.linalg.solve(K[np.ix_(S, S)], K[S]).T
    mean, covariance = A @ mu[S], K - A @ K[S] + A @ Sigma[np.ix_(S, S)] @ A.T
    found = process.restricted(selection.users, selection.items)
    for user in range(N_USERS):
        own = slice(user * N_ITEMS, (user + 1) * N_ITEMS)
        f, C = found.utilities(user)
        assert np.abs(f - mean[own]).max() < EXACT
        assert np.abs(C - covariance[own, own]).max() < EXACT
    assert np.abs(mean[S] - mu[S]).max() < EXACT
    assert (np.diag(covariance) <= np.diag(K) + EXACT).all()


def test_more_kept_may_mean_more_variance():
    """With s = f + d and d known, s alone says something of f; s and f say nothing of it.

    q(f | s) is the prior's, which does not know that what is known of s is known of d.
    """
    K = np.array([[1.0, 1.0], [1.0, 2.0]])  # of f and s, with d of variance 1
    Sigma = np.array([[1.0, 1.0], [1.0, 1.0]])  # once d is known
    A = K[0, 1] / K[1, 1]
    alone = K[0, 0] - A * K[1, 1] * A + A * Sigma[1, 1] * A
    assert alone == 0.75
    assert alone < Sigma[0, 0] <= K[0, 0]


def test_pairs_that_answers_imply_are_marked_in_bits():
    kept = [[0, 3, 4], [1], [0, 1, 2, 3, 5]]
    found = subset(law(), kept)
    rng = np.random.default_rng(3)
    marks = rng.random(len(found.triangles)) < 0.5
    implied = replace(found, implied=np.packbits(marks))
    start = 0
    for user, S in enumerate(kept):
        cells = unpack_triangle(marks[start : start + len(S) * (len(S) + 1) // 2].astype(float))
        start += len(S) * (len(S) + 1) // 2
        for i, left in enumerate(S):
            for j, right in enumerate(S):
                one = (np.array([user]), np.array([left]), np.array([right]))
                if i != j:
                    assert found.pair_kinds(*one)[0] == 0
                    assert implied.pair_kinds(*one)[0] == (3 if cells[i, j] else 0)
    np.testing.assert_array_equal(
        implied.pair_kinds(np.array([1, -1]), np.array([1, 0]), np.array([2, 3])), [1, 2 + NEWCOMER]
    )


def test_nobody_keeps_an_item_that_is_new():
    found = subset(law(), [[0, 3], [0, 1]])
    users, new = np.array([0, 0, -1]), np.array([6, 7, 6])
    np.testing.assert_array_equal(found.places(users, new), [-1, -1, -1])
    np.testing.assert_array_equal(found.pair_kinds(users, np.array([0, 3, 1]), new), [1, 1, 2 + NEWCOMER])
