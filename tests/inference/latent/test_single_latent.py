"""What Laplace, EP and variational inference of one latent function have in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from predilect.errors import DataError
from predilect.inference.gaussian.condition import LatentPrior
from predilect.inference.gaussian.dense import NotPositiveDefiniteError
from predilect.inference.gaussian.design import MarginMatrix, Sites, preference
from predilect.inference.latent.evidence import evidence_gradient
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.probit import outcome_probabilities
from predilect.inference.likelihoods.views import Probit
from referees.gaussian_likelihood import Gaussian
from single_problems import METHODS, small
from tolerances import CONVERGED, EXACT

every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
STRICT = {"tolerance": 1e-12}


def same(one, other, tolerance=CONVERGED):
    assert one.report.converged
    assert other.report.converged
    assert abs(one.evidence - other.evidence) < tolerance
    np.testing.assert_allclose(one.mean, other.mean, atol=tolerance)
    np.testing.assert_allclose(one.covariance(), other.covariance(), atol=tolerance)


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("singular", [True, False])
def test_conditioning_in_either_space_equals_dense_algebra(pairs, singular):
    rng = np.random.default_rng(3)
    n, n_answers = 8, 13
    x = rng.standard_normal((n, 3 if singular else 20))
    K, mean = x @ x.T, rng.standard_normal(n)
    left = rng.integers(0, n, n_answers)
    design = MarginMatrix(left, rng.integers(0, n, n_answers) if pairs else None, n)
    precision = rng.uniform(0.1, 3.0, n_answers) * (rng.random(n_answers) > 0.3)  # some say nothing
    linear = rng.standard_normal(n_answers)
    A = design.sparse().toarray()
    P = A.T @ np.diag(precision) @ A
    S = np.linalg.solve(np.eye(n) + K @ P, K)
    expected = mean + S @ A.T @ (linear - precision * (A @ mean))
    new = rng.standard_normal((2, x.shape[1]))
    for space in ("items", "answers"):
        state = LatentPrior(K, design, mean, space).condition(Sites(precision, linear))
        np.testing.assert_allclose(state.mean(), expected, atol=EXACT)
        np.testing.assert_allclose(state.covariance(), S, atol=EXACT)
        np.testing.assert_allclose(state.margin_mean, A @ expected, atol=EXACT)
        np.testing.assert_allclose(state.margin_var, np.diag(A @ S @ A.T), atol=EXACT)
        np.testing.assert_allclose(state.reduction(), P - P @ S @ P, atol=EXACT)
        assert abs(state.log_det - np.linalg.slogdet(np.eye(n) + K @ P)[1]) < EXACT
        assert abs(state.quadratic - state.alpha @ K @ state.alpha) < EXACT
        # old points as if they were new, and new ones by the joint prior
        again = state.extend(K, K, mean)
        np.testing.assert_allclose(again[0], expected, atol=EXACT)
        np.testing.assert_allclose(again[1], S, atol=EXACT * 10)
        joint = np.vstack([x, new])
        prior = LatentPrior(joint @ joint.T, MarginMatrix(left, design.right, n + 2), np.append(mean, [0, 0]))
        wide = prior.condition(Sites(precision, linear))
        beyond = state.extend(new @ x.T, new @ new.T)
        np.testing.assert_allclose(beyond[0], wide.mean()[n:], atol=EXACT * 10)
        np.testing.assert_allclose(beyond[1], wide.covariance()[n:, n:], atol=EXACT * 10)


@every_method
@pytest.mark.parametrize("pairs", [True, False])
def test_a_gaussian_likelihood_gives_the_exact_gaussian_process(method, pairs):
    s = small(1, n_items=7, n_answers=12, pairs=pairs, repeated=True)
    y = np.random.default_rng(5).standard_normal(12)
    for space in ("items", "answers"):
        fit = s.fit(method, outcome=y, likelihood=Gaussian(0.4), space=space, **STRICT)
        A, times = np.repeat(s.A, s.weight.astype(int), axis=0), np.repeat(y, s.weight.astype(int))
        C = A @ s.K @ A.T + 0.4 * np.eye(len(A))
        gain = np.linalg.solve(C, A @ s.K).T
        np.testing.assert_allclose(fit.mean, s.mean + gain @ (times - A @ s.mean), atol=EXACT)
        np.testing.assert_allclose(fit.covariance(), s.K - gain @ A @ s.K, atol=EXACT)
        assert abs(fit.evidence - multivariate_normal.logpdf(times, A @ s.mean, C)) < EXACT
        assert fit.report.iterations <= 2 if np.all(s.weight == 1) else fit.report.converged


@every_method
@pytest.mark.parametrize("pairs", [True, False])
def test_both_spaces_agree(method, pairs):
    s = small(2, n_items=6, n_answers=11, delta=0.3, scale=3.0, pairs=pairs, repeated=True)
    one, other = (s.fit(method, space=space, **STRICT) for space in ("items", "answers"))
    same(one, other, EXACT * 10)
    np.testing.assert_allclose(evidence_gradient(one), evidence_gradient(other), atol=CONVERGED)


@every_method
def test_utilities_and_pairs_are_two_views_of_one_model(method):
    # A latent function of pairs with the preference kernel, and one of items.
    s = small(4, n_items=5, n_answers=14, delta=0.2, scale=2.0)
    items = s.fit(method, **STRICT)
    G = preference(s.K, s.left, s.right)
    pairs = method(Problem.of(G, np.arange(14), None, s.outcome, None, s.likelihood, mean=s.A @ s.mean), **STRICT)
    assert abs(items.evidence - pairs.evidence) < CONVERGED
    np.testing.assert_allclose(s.A @ items.mean, pairs.mean, atol=CONVERGED)
    np.testing.assert_allclose(s.A @ items.covariance() @ s.A.T, pairs.covariance(), atol=CONVERGED)


@every_method
def test_invariances(method):
    s = small(6, n_items=6, n_answers=9, delta=0.3, repeated=True)
    fit = s.fit(method, **STRICT)
    # Every pair swapped and every answer flipped
    same(fit, s.fit(method, left=s.right, right=s.left, outcome=-s.outcome, **STRICT))
    # Items in another order
    order = np.random.default_rng(0).permutation(6)
    place = np.argsort(order)
    moved = s.fit(
        method, K=s.K[np.ix_(order, order)], left=place[s.left], right=place[s.right], mean=s.mean[order], **STRICT
    )
    assert abs(moved.evidence - fit.evidence) < CONVERGED
    np.testing.assert_allclose(moved.mean, fit.mean[order], atol=CONVERGED)
    # A row of weight w is w rows
    copies = s.weight.astype(int)
    each = {name: np.repeat(getattr(s, name), copies) for name in ("left", "right", "outcome")}
    same(fit, s.fit(method, **each, weight=None, **STRICT))
    G = preference(fit.covariance(), s.left, s.right).diagonal()
    z = s.A @ fit.mean
    forth, back = outcome_probabilities(z, G, 0.3), outcome_probabilities(-z, G, 0.3)
    np.testing.assert_allclose(forth, back[:, ::-1], atol=1e-12)


@every_method
def test_a_constant_added_to_the_kernel_changes_no_comparison(method):
    # A level that nobody knows is no mean at all.
    s = small(7, n_items=6, n_answers=15, scale=2.0)
    fit, level = s.fit(method, **STRICT), s.fit(method, K=s.K + 50.0, mean=s.mean + 7.0, **STRICT)
    assert abs(fit.evidence - level.evidence) < CONVERGED
    np.testing.assert_allclose(s.A @ fit.mean, s.A @ level.mean, atol=CONVERGED)


def rows(left, right, outcome, weight, delta=0.0):
    return {
        "left": np.array(left), "right": np.array(right), "outcome": np.array(outcome),
        "weight": np.full(len(left), weight), "likelihood": Probit(delta),
    }  # fmt: skip


BAD = {
    "one answer": rows([0], [1], [1], 1.0),
    "one tie": rows([0], [1], [0], 1.0, 0.5),
    "separable": rows([1, 2, 3, 4, 5], [0, 1, 2, 3, 4], [1] * 5, 1.0),
    "separable, heavy": rows([1, 2, 3, 4, 5], [0, 1, 2, 3, 4], [1] * 5, 1e5),
    "contradictory, heavy": rows([0, 0, 1, 1, 2], [1, 1, 2, 2, 0], [1, -1, 1, 1, 1], 1e5),
    "ties, heavy": rows([0, 1, 2, 3], [1, 2, 3, 4], [0, 0, 0, 0], 1e5, 0.01),
    "an item against itself": rows([0, 1, 2], [0, 1, 3], [1, -1, 1], 3.0),
    "less than one answer": rows([0, 1, 0], [1, 2, 1], [1, -1, -1], 0.3),
}


@every_method
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("space", ["items", "answers"])
def test_extreme_input_stays_finite_and_converges(method, name, space):
    fit = small(10, n_items=6, scale=2.0).fit(method, space=space, max_iter=3000, **BAD[name])
    assert fit.report.converged, fit.report
    assert np.isfinite(fit.evidence)
    assert np.isfinite(fit.mean).all()
    assert np.linalg.eigvalsh(fit.covariance()).min() > -1e-8
    assert np.isfinite(evidence_gradient(fit)).all()
    assert np.all(fit.sites.precision >= 0)


@every_method
def test_identical_items_constant_items_and_items_never_compared(method):
    s = small(11, n_items=6, n_answers=12, scale=2.0)
    K = s.K.copy()
    K[1], K[:, 1] = K[0], K[:, 0]
    K[1, 1] = K[0, 0]  # item 1 is item 0
    K[2], K[:, 2] = 0.0, 0.0  # item 2 is known
    left, right = s.left.copy(), s.right.copy()
    left[left == 5], right[right == 5] = 3, 4  # nobody compares item 5
    for space in ("items", "answers"):
        fit = s.fit(method, K=K, left=left, right=right, space=space, mean=None, **STRICT)
        assert fit.report.converged
        assert abs(fit.mean[0] - fit.mean[1]) < EXACT
        assert fit.mean[2] == pytest.approx(0.0, abs=EXACT)
        assert abs(fit.covariance()[2, 2]) < EXACT
        # an item never compared is the prior's guess from the others
        rest = np.array([3, 4])
        others = K[np.ix_([0, 2, 3, 4], [0, 2, 3, 4])] + 1e-12 * np.eye(4)
        guess = K[5, [0, 2, 3, 4]] @ np.linalg.solve(others, fit.mean[[0, 2, 3, 4]])
        assert abs(fit.mean[5] - guess) < 1e-6
        assert np.all(np.diag(fit.covariance())[rest] < np.diag(K)[rest])
        assert 0 < fit.covariance()[5, 5] <= K[5, 5]


@every_method
def test_no_answers_leave_the_prior(method):
    nothing = np.zeros(0, dtype=np.int64)
    s = small(12)
    fit = method(Problem.of(s.K, nothing, nothing, nothing, mean=s.mean))
    assert fit.evidence == 0.0
    np.testing.assert_allclose(fit.mean, s.mean, atol=EXACT)
    np.testing.assert_allclose(fit.covariance(), s.K, atol=EXACT)


@every_method
def test_a_start_saves_work_and_changes_nothing(method):
    s = small(13, n_items=8, n_answers=30, scale=4.0)
    cold = s.fit(method)
    warm = s.fit(method, K=1.001 * s.K, start=cold.sites)
    assert warm.report.iterations < cold.report.iterations
    same(warm, s.fit(method, K=1.001 * s.K), 1e-6)
    with pytest.raises(DataError, match="start holds 1 sites for 30 answers"):
        s.fit(method, start=Sites.flat(1))


@every_method
def test_an_unfinished_iteration_says_so(method):
    s = small(14, n_items=8, n_answers=40, scale=100.0)
    report = s.fit(method, max_iter=1).report
    assert not report.converged
    assert report.iterations == 1
    assert report.residual > report.tolerance


def test_what_does_not_fit_together_is_refused():
    s = small(15)
    refusals = [
        ({"K": s.K[:3]}, r"square matrix of finite numbers; its shape is \(3, 6\)"),
        ({"K": s.K * np.nan}, "square matrix of finite numbers"),
        ({"left": s.left + 6}, "left holds codes outside 0 .. 5"),
        ({"left": s.left * 1.0}, "left must be a column of integer codes"),
        ({"outcome": s.outcome[:2]}, "columns of one length"),
        ({"weight": 0.0 * s.weight}, r"weights must be positive finite numbers \(first that is not: row 0, 0.0\)"),
        ({"outcome": 0 * s.outcome}, "are ties"),
        ({"mean": np.zeros(2)}, "mean must be 6 finite numbers"),
    ]
    for changes, message in refusals:
        with pytest.raises(DataError, match=message):
            s.fit(METHODS[0], **changes)
    with pytest.raises(NotPositiveDefiniteError, match="not positive semi-definite"):
        s.fit(METHODS[0], K=-s.K, space="items")
