"""Functions of item features: Nyström and attributes, what they leave to each item, and features that say little."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from predilect.data.features import FeatureSpace, Traits
from predilect.errors import DataError
from predilect.models.population.prior import BASES, Functions, Hyperparameters, PopulationPrior, inducing_points
from predilect.models.population.search.plan import Plan
from predilect.models.population.train import _bases
from tolerances import CONVERGED, EXACT, ITERATIVE

KINDS = BASES[1:]


def space_of(matrix, unknown=()) -> FeatureSpace:
    matrix = np.array(matrix, dtype=float)
    known = np.ones(len(matrix), dtype=bool)
    known[list(unknown)] = False
    matrix[~known] = 0.0
    return FeatureSpace(matrix, known)


PLANE = space_of(np.random.default_rng(0).standard_normal((12, 2)), unknown=[3])
POINTS = inducing_points(PLANE, 4, 0)


# Φ and shares


def test_the_kernels_columns_are_the_nystroem_approximation():
    functions = Functions.of("inducing", PLANE, POINTS, 1.3)
    assert functions.n_functions == 4
    Phi = functions.rows(PLANE)

    def kernel(x, y):
        return np.exp(-0.5 * ((x[:, None] - y) ** 2).sum(axis=-1) / 1.3**2)

    K_xz, K_zz = kernel(PLANE.matrix, POINTS), kernel(POINTS, POINTS)
    expected = K_xz @ np.linalg.inv(K_zz) @ K_xz.T
    expected[3] = expected[:, 3] = 0.0
    np.testing.assert_allclose(Phi @ Phi.T, expected, atol=CONVERGED)


def test_attributes_are_scaled_to_mean_square_one():
    space = space_of(5.0 * PLANE.matrix, unknown=[3])
    Phi = Functions.of("attributes", space, POINTS, 1.3).rows(space)
    assert Phi.shape == (12, 2)  # no points, though some were given
    assert abs(np.sum(Phi**2) / 11 - 1.0) < EXACT
    np.testing.assert_allclose(Phi / Phi[0, 0], space.matrix / space.matrix[0, 0], atol=EXACT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_shares_add_up_to_the_prior_variance(kind, weight):
    # Kernel alone: |φ|² w + own = 1 for every item. Both: attributes 1 - w, and the kernel with what its points lose w.
    # Attributes alone leave nothing. A millionth stays where there would be nothing at all.
    functions = Functions.of(kind, PLANE, POINTS, 1.3)
    Phi, k = functions.rows(PLANE), functions.n_attributes
    K = functions.prior_covariance(weight)
    share = functions.own_share(Phi, PLANE.known, weight)
    assert np.all(np.diagonal(K) > 0)
    assert np.all(share > 0)
    assert share[3] == 1.0
    assert not Phi[3].any()
    kernel = np.einsum("ij,jk,ik->i", Phi[:, k:], K[k:, k:], Phi[:, k:])
    known = PLANE.known
    if kind == "inducing":
        np.testing.assert_allclose((kernel + share)[known], 1.0, atol=2e-6)
    elif kind == "attributes":
        np.testing.assert_array_equal(K, np.eye(2))
        np.testing.assert_allclose(share[known], 1e-6)
        assert not len(functions.own_share(Phi, np.ones(12, dtype=bool), weight))
    else:
        np.testing.assert_allclose((kernel + share)[known], weight, atol=2e-6)
        np.testing.assert_allclose(np.diagonal(K)[:2], max(1.0 - weight, 1e-6))
    prior = PopulationPrior.of(Hyperparameters(10.0, 2.0, 4.0, weight, 1.3), PLANE, functions)
    np.testing.assert_array_equal(prior.own_share, share)
    assert prior.n_functions == functions.n_functions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_shares_where_items_have_something_to_themselves(kind, weight):
    # Features explain w, attributes and kernel half each; 1 - w and what the points lose of the kernel is the item's.
    functions = Functions.of(kind, PLANE, POINTS, 1.3, own=True)
    Phi, k = functions.rows(PLANE), functions.n_attributes
    shares = np.diagonal(functions.prior_covariance(weight))
    part = 0.5 * weight if kind == "attributes+inducing" else weight
    np.testing.assert_allclose(shares, max(part, 1e-6))
    share = functions.own_share(Phi, PLANE.known, weight)
    assert share[3] == 1.0
    lost = part * (1.0 - np.sum(Phi[:, k:] ** 2, axis=1)) if kind != "attributes" else np.zeros(12)
    np.testing.assert_allclose(share[PLANE.known], np.maximum(1.0 - weight + lost, 1e-6)[PLANE.known], atol=EXACT)
    assert len(functions.own_share(Phi, np.ones(12, dtype=bool), 0.3)) == 12
    if kind == "inducing":  # a kernel alone always leaves that to the items
        same = Functions.of(kind, PLANE, POINTS, 1.3)
        np.testing.assert_array_equal(same.own_share(Phi, PLANE.known, weight), share)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_slope_of_the_shares(kind, own):
    functions = Functions.of(kind, PLANE, POINTS, 1.3, own=own)
    Phi = functions.rows(PLANE)

    def difference(share):
        return (share(0.6 + 1e-6) - share(0.6 - 1e-6)) / 2e-6

    of_functions, of_items = functions.slopes(Phi, PLANE.known)
    np.testing.assert_allclose(
        difference(lambda w: np.diagonal(functions.prior_covariance(w))), of_functions, atol=ITERATIVE
    )
    moving = functions.own_share(Phi, PLANE.known, 0.6) > 1e-5  # the millionth that is kept does not move
    found = difference(lambda w: functions.own_share(Phi, PLANE.known, w))
    np.testing.assert_allclose(found[moving], of_items[moving], atol=ITERATIVE)
    assert of_items[3] == 0.0  # without features everything is the item's, whatever w
    assert functions.has_weight == bool(of_functions.any()) == (own or kind != "attributes")
    assert moving.sum() > 6 or not functions.has_weight


# Inducing points

ODD = {
    "coincident": space_of(np.repeat([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], 5, axis=0)),
    "all the same": space_of(np.ones((6, 2))),
    "a constant column": space_of(np.c_[np.arange(20.0), np.ones(20)]),
    "collinear columns": space_of(np.c_[np.arange(20.0), -2.0 * np.arange(20.0)]),
    "apart by rounding": space_of(1.0 + 1e-16 * np.arange(20.0)[:, None] * [1.0, 2.0]),
    "nearly coincident": space_of(np.repeat(np.arange(3.0), 7)[:, None] + 1e-13 * np.arange(21.0)[:, None]),
    "one has features": space_of(np.ones((5, 2)), unknown=[1, 2, 3, 4]),
    "nobody has features": space_of(np.ones((5, 2)), unknown=range(5)),
    # k-means takes the mean off first, after which all but four are one item, and warns
    "apart by less than rounding": space_of(np.r_[1e-20 * np.arange(20.0), 1.0, 2.0, 4.0][:, None]),
    "far apart": space_of(1e6 * np.arange(30.0)[:, None]),
    "more points than items": PLANE,
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("kind", KINDS)
def test_features_that_say_little_give_a_proper_prior(what, kind):
    space = ODD[what]
    points = inducing_points(space, 15 if what == "more points than items" else 8, 0)
    distinct = np.unique(space.matrix[space.known], axis=0)
    assert len(points) <= min(len(distinct), 15)
    assert len(np.unique(points, axis=0)) == len(points)
    functions = Functions.of(kind, space, points, 1.0)
    if functions.n_functions == 0:  # inducing points of nothing: _bases refuses such features before
        assert what == "nobody has features"
        return
    prior = PopulationPrior.of(Hyperparameters(10.0, 2.0, 4.0, 0.5, 1.0), space, functions)
    assert np.isfinite(prior.Phi).all()
    assert np.isfinite(prior.own_share).all()
    assert np.linalg.eigvalsh(prior.K).min() > 0
    # Jitter of coincident points can only take from the kernel: no item has more than its prior variance.
    rows = prior.Phi[:, functions.n_attributes :]
    assert np.all(np.sum(rows**2, axis=1) < 1.0 + CONVERGED)


def test_points_of_many_items_do_not_depend_on_threads_or_on_the_run():
    # k-means adds up the centres of each of its threads: with two, the last bits are others than with one.
    space = space_of(np.random.default_rng(1).standard_normal((3000, 5)))
    one = inducing_points(space, 50, 7)
    assert one.shape == (50, 5)
    for n_threads in (1, 2, 2):
        with threadpool_limits(limits=n_threads, user_api="openmp"):
            np.testing.assert_array_equal(inducing_points(space, 50, 7), one)
    assert not np.array_equal(inducing_points(space, 50, 8), one)


# Which bases are tried


def bases(basis, n_items, n_columns, n_rows=10_000, n_inducing=None, n_answers=None):
    space = space_of(np.random.default_rng(0).standard_normal((n_items, n_columns)))
    answers = SimpleNamespace(n_rows=n_rows, n_answers=float(n_answers or n_rows), n_items=n_items)
    return _bases(Plan(answers, space, basis=basis, n_inducing=n_inducing), 1.0)


def kinds(*arguments, **options):
    found = bases(*arguments, **options)
    return [("items" if f is None else f.kind, 0 if f is None else len(f.points)) for f in found]


def test_the_automatic_choice_is_among_what_the_rule_says():
    assert kinds("auto", 20, 3) == [("attributes", 0), ("items", 0)]
    assert kinds("auto", 20, 19) == [("attributes", 0), ("items", 0)]
    for n_columns in (20, 30):  # attributes as many as items say nothing new
        assert kinds("auto", 20, n_columns) == [("items", 0)]
    assert kinds("auto", 300, 3) == [("attributes", 0), ("inducing", 100), ("items", 0)]
    assert kinds("auto", 301, 3) == [("attributes", 0), ("attributes+inducing", 100)]
    assert kinds("auto", 100, 3) == [("attributes", 0), ("items", 0)]  # no more items than inducing points
    assert kinds("auto", 250, 200) == [("attributes", 0), ("inducing", 100), ("items", 0)]
    assert kinds("auto", 250, 201) == [("inducing", 100), ("items", 0)]
    assert kinds("auto", 200, 3) == [("attributes", 0), ("inducing", 100), ("items", 0)]
    assert kinds("auto", 400, 3) == [("attributes", 0), ("attributes+inducing", 100)]
    assert kinds("auto", 400, 250) == [("inducing", 100)]
    assert kinds("auto", 400, 3, n_rows=100) == [("attributes", 0), ("attributes+inducing", 50)]
    assert kinds("auto", 400, 3, n_rows=10**6) == [("attributes", 0), ("attributes+inducing", 150)]
    assert kinds("auto", 400, 3, n_inducing=9) == [("attributes", 0), ("attributes+inducing", 9)]
    # More inducing points than items are no saving; with too many columns for attributes the items are left.
    assert kinds("auto", 400, 250, n_inducing=500) == [("items", 0)]
    assert kinds("inducing", 20, 3, n_inducing=50) == [("inducing", 20)]
    for basis in BASES:
        assert [kind for kind, _ in kinds(basis, 20, 3)] == [basis]


@pytest.mark.parametrize("basis", KINDS)
def test_items_have_something_to_themselves_where_they_have_ten_answers_each(basis):
    # Each answer is on two items; equal answers count each, however few rows they take.
    for n_answers, own in ((99, False), (100, True)):
        (functions,) = bases(basis, 20, 3, n_rows=50, n_answers=n_answers)
        assert functions.own == own
        assert functions.to_dict()["own"] == own


@pytest.mark.parametrize("basis", KINDS)
def test_a_basis_of_features_needs_features(basis):
    answers = SimpleNamespace(n_rows=100, n_answers=100.0, n_items=5)
    for space in (FeatureSpace.empty(5), ODD["one has features"], ODD["nobody has features"]):
        with pytest.raises(DataError, match="needs features of the items"):
            _bases(Plan(answers, space, basis=basis), 1.0)
        assert _bases(Plan(answers, space), 1.0) == [None]


# Traits of people


def test_traits_have_mean_zero_variance_one_and_no_correlation():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 3)) + 2.0
    matrix = np.c_[matrix, matrix[:, 0] - matrix[:, 1]]  # collinear
    known = rng.random(60) < 0.7
    traits = Traits.of(matrix, known)
    x = traits.transform(matrix, known)
    assert x.shape == (60, 3)
    np.testing.assert_array_equal(x[~known], 0.0)
    np.testing.assert_allclose(x[known].mean(axis=0), 0.0, atol=CONVERGED)
    np.testing.assert_allclose(x[known].T @ x[known] / known.sum(), np.eye(3), atol=CONVERGED)
    # nothing is lost: the features of the known are linear in the traits
    centred = (matrix - traits.mean)[known]
    _, residual, *_ = np.linalg.lstsq(x[known], centred, rcond=None)
    np.testing.assert_allclose(residual, 0.0, atol=CONVERGED)


NO_TRAITS = {
    "no columns": (np.zeros((5, 0)), np.ones(5, dtype=bool)),
    "one person": (np.arange(10.0).reshape(5, 2), np.arange(5) == 2),
    "nobody": (np.zeros((5, 2)), np.zeros(5, dtype=bool)),
    "one group": (np.full((5, 2), 0.1), np.ones(5, dtype=bool)),
    "the same by rounding": (np.full((7, 2), 0.1) + 1e-17 * np.arange(7)[:, None], np.ones(7, dtype=bool)),
    # 0.7 is no binary number: its mean over people is not it, and the difference, the same for all, is no trait
    "a mean that rounds": (np.full((13, 1), 0.7), np.ones(13, dtype=bool)),
}


@pytest.mark.parametrize("what", NO_TRAITS)
def test_people_who_do_not_differ_have_no_traits(what):
    matrix, known = NO_TRAITS[what]
    traits = Traits.of(matrix, known)  # a warning is an error in these tests: nothing is divided by 0
    assert traits.transform(matrix, known).shape == (len(matrix), 0)
