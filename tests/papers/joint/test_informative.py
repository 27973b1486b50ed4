"""The informative vector machine against dense recomputation after every step."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import JointGP, load
from predilect.data import Comparisons
from predilect.errors import DataError
from predilect.inference.likelihoods.views import Probit
from predilect.papers.compression import InformativeAnswers
from predilect.papers.joint.informative import filter_answers, items_of_answers, order_of_answers, vector_machine
from referees.gaussian_likelihood import Gaussian
from simulate_joint import N_ITEMS, N_USERS, joint_model, other_models
from tolerances import EXACT


def problem(n=25, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 8))
    G = root @ root.T + 0.1 * np.eye(n)
    return G, np.where(rng.normal(size=n) > 0, 1, -1).astype(np.int8)


def dense(G, active, tau, nu):
    """Posterior of all margins given the sites of the active answers."""
    S = G[np.ix_(active, active)] + np.diag(1.0 / tau)
    gain = np.linalg.solve(S, G[active]).T
    return gain @ (nu / tau), G - gain @ G[active]


@pytest.mark.parametrize("likelihood", [Probit(), Probit(0.4)])
def test_rank_one_updates_are_dense_conditioning_and_the_gain_its_entropy(likelihood):
    G, outcome = problem()
    if likelihood.delta:
        outcome[::4] = 0
    active, tau, nu = [], [], []
    mean, C = np.zeros(len(G)), G
    for k, gain, precision, linear, m, v in filter_answers(lambda k: G[:, k], np.diag(G), outcome, likelihood):
        # The best of all that are left, by the dense posterior before this step.
        _, _slope, curvature = likelihood.tilted(outcome, mean, np.diag(C))
        of_all = -0.5 * np.log1p(-curvature * np.diag(C))
        of_all[active] = -np.inf
        assert k == np.argmax(of_all)
        assert abs(gain - of_all[k]) < EXACT
        before = np.linalg.slogdet(C)[1]
        active, tau, nu = [*active, k], [*tau, precision], [*nu, linear]
        mean, C = dense(G, active, np.array(tau), np.array(nu))
        assert np.abs(m - mean).max() < EXACT
        assert np.abs(v - np.diag(C)).max() < EXACT
        if len(active) <= 5:
            assert abs(gain - 0.5 * (before - np.linalg.slogdet(C)[1])) < 1e-8
    assert sorted(active) == list(range(len(G)))


def test_moments_of_the_answer_taken_are_matched():
    G, outcome = problem(seed=1)
    k, *_, mean, var = next(filter_answers(lambda k: G[:, k], np.diag(G), outcome, Probit()))
    f = np.linspace(-12, 12, 20_001) * np.sqrt(G[k, k])
    from scipy.stats import norm

    p = norm.pdf(f, 0, np.sqrt(G[k, k])) * norm.cdf(outcome[k] * f)
    p /= p.sum()
    assert abs(mean[k] - p @ f) < 1e-8
    assert abs(var[k] - (p @ f**2 - (p @ f) ** 2)) < 1e-8


def test_with_gaussian_answers_all_taken_is_the_exact_posterior():
    G, _ = problem(seed=2)
    y = np.random.default_rng(3).normal(size=len(G))
    *_, (*_, mean, var) = filter_answers(lambda k: G[:, k], np.diag(G), y, Gaussian(0.5))
    gain = np.linalg.solve(G + 0.5 * np.eye(len(G)), G).T
    assert np.abs(mean - gain @ y).max() < EXACT
    assert np.abs(var - np.diag(G - gain @ G)).max() < EXACT


def test_ties_go_to_the_first_answer():
    found = filter_answers(lambda k: np.eye(4)[k], np.ones(4), np.ones(4, dtype=np.int8), Probit())
    assert [step[0] for step in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("r", [1, 2, 3, 5])
def test_the_vector_machine_is_dense_filtering_of_its_active_answers(r):
    rng = np.random.default_rng(4)
    users = np.repeat(["a", "b", "c"], 14)
    left = rng.integers(0, 5, len(users))
    right = (left + rng.integers(1, 5, len(users))) % 5
    columns = {"user": users, "left": left, "right": right, "weight": None}
    outcome, columns["weight"] = rng.choice([-1, 1], len(users)), rng.integers(1, 3, len(users))
    data = Comparisons.from_frame(columns, outcome=outcome, reading={"tie": "0"})
    model = JointGP(n_tuning=0, variance=3.0).fit(data)
    rows, kernel = model.comparisons_, model.posterior_.kernel
    found, kept = vector_machine(model, r)
    assert [len(items) for items in kept] == [r, r, r]
    # Everybody's utilities by one answer after the other, with dense matrices.
    K = np.kron(kernel.users.covariance(), kernel.items.covariance())
    mean, C, n = np.zeros(len(K)), K.copy(), 5
    copies = np.repeat(np.arange(rows.n_rows), rows.weight.astype(int))
    open_, mine = list(range(len(copies))), {user: [] for user in range(3)}
    cells = [(int(rows.user[k]) * n, int(rows.left[k]), int(rows.right[k])) for k in copies]
    while open_:
        best, site = -np.inf, None
        for k in open_:
            start, a, b = cells[k]
            h = np.zeros(len(K))
            h[start + a], h[start + b] = 1.0, -1.0
            m, v = h @ mean, h @ C @ h
            _, slope, curvature = Probit().tilted(rows.outcome[copies[k : k + 1]], np.array([m]), np.array([v]))
            if (gain := -0.5 * np.log1p(-curvature[0] * v)) > best + 1e-12:
                best, site = gain, (k, h, slope[0], curvature[0])
        k, h, slope, curvature = site
        mean, C = mean + C @ h * slope, C - np.outer(C @ h, C @ h) * curvature
        start, *both = cells[k]
        held = mine[start // n]
        for item in both:
            if len(held) < r and item not in held:
                held.append(item)
        open_ = [
            other for other in open_
            if other != k and (len(mine[u := cells[other][0] // n]) < r or set(cells[other][1:]) <= set(mine[u]))
        ]  # fmt: skip
    for user in range(3):
        assert set(mine[user]) <= set(kept[user].tolist())
        utilities = found.person(user)
        assert np.abs(utilities.mean - mean[user * n : user * n + n]).max() < EXACT
        assert np.abs(utilities.covariance - C[user * n : user * n + n, user * n : user * n + n]).max() < EXACT


def test_an_answer_that_is_closed_is_not_taken():
    free = np.array([True, True, False, True])
    taken = []
    for k, *_ in filter_answers(lambda k: np.eye(4)[k], np.ones(4), np.ones(4, dtype=np.int8), Probit(), free):
        taken.append(k)
        free[1] = False
    assert taken == [0, 3]


def test_the_items_of_the_first_answers_are_kept():
    model = joint_model()
    answers, order = model.comparisons_, order_of_answers(model)
    asked = [set() for _ in range(N_USERS)]
    for u, a, b in zip(answers.user, answers.left, answers.right, strict=True):
        asked[u] |= {int(a), int(b)}
    for r, seen in ((2, asked), (N_ITEMS, [set(range(N_ITEMS))] * N_USERS)):
        found = items_of_answers(model, r, order)
        assert [len(items) for items in found] == [r] * N_USERS
        assert all(set(items.tolist()) <= mine for items, mine in zip(found, seen, strict=True))


def test_what_is_kept_by_active_answers_is_saved_and_says_the_same(tmp_path):
    model = joint_model()
    process, kept = vector_machine(model, 4)
    small = model.compress(4, criterion=InformativeAnswers(), local=False)
    assert [list(small.posterior_.kept(user)) for user in range(N_USERS)] == [list(items) for items in kept]
    users, items = np.arange(N_USERS), np.array(kept)
    for one, other in zip(small.posterior_.margins(users, items[:, 0], items[:, 1]),
                          process.margins(users, items[:, 0], items[:, 1]), strict=True):  # fmt: skip
        assert one == pytest.approx(other, abs=EXACT)
    assert "InformativeAnswers(active_only=True)" in small.describe()[0]
    assert model.compress(4, criterion="answers").report_["compressed"]["criterion"] == "answers"
    small.save(tmp_path / "small")
    again = load(tmp_path / "small")
    assert again.describe() == small.describe()
    with pytest.raises(DataError, match="give keep, not budget"):
        model.compress(budget=20, criterion="answers")
    with pytest.raises(DataError, match="of a joint process one by one, and this is a Population"):
        other_models()["population"].compress(4, criterion="answers")
    model.save(tmp_path / "full")
    with pytest.raises(DataError, match="compress before saving"):
        load(tmp_path / "full").compress(4, criterion="answers")
