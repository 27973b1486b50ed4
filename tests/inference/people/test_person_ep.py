"""The compiled per-person EP against the dense referee, exact probabilities, finite differences and its symmetries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from predilect.errors import DataError
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import Expectation, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People
from referees.dense_population import crowd_ep, design, moments, person_ep
from simulate import answers, crowd, laid_out, random_covariance, random_pairs
from tolerances import CONVERGED, EXACT, ITERATIVE

SETTLED = {"n_sweeps": 3000, "tolerance": 1e-14}


def converged(people: People, Sigma, m, delta=0.0, **options) -> tuple[Expectation, Sites]:
    sites = Sites.flat(people.n_rows)
    return expectation(people, sites, Law(Sigma, m), delta, **(SETTLED | options)), sites


def mixed(seed: int, per_person: list[int], n_items: int, *, weighted: bool):
    """Strict answers and ties, contradictions among them; some people have more answers than items."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(len(per_person)), per_person)
    left, right = random_pairs(rng, len(user), n_items)
    outcome = rng.choice([1, 0, -1], size=len(user), p=[0.5, 0.2, 0.3])
    weight = rng.choice([1.0, 2.0, 3.0, 7.5], size=len(user)) if weighted else None
    rows = answers(user, left, right, outcome, weight, n_items=n_items)
    return rows, random_covariance(rng, n_items, 2.0), rng.standard_normal(n_items)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("per_person", "n_items"), [([3, 5, 1, 4], 9), ([9, 14, 6], 4), ([2, 12, 5], 5)])
def test_every_statistic_equals_the_dense_referee(per_person, n_items, weighted):
    # (9 answers on 4 items and the like are worked on in item space, the first set in pair space)
    rows, Sigma, m = mixed(3 * n_items + weighted, per_person, n_items, weighted=weighted)
    found, sites = converged(laid_out(rows), Sigma, m, 0.4)
    people = crowd_ep(Sigma, m, rows, 0.4)
    lam, eta = (np.concatenate([getattr(person, name) for person in people]) for name in ("lam", "eta"))
    np.testing.assert_allclose(sites.precision, lam, atol=CONVERGED)
    np.testing.assert_allclose(sites.linear, eta, atol=CONVERGED)
    for person in people:  # the two forms of the referee's evidence
        assert abs(person.evidence - person.evidence_by_integral) < EXACT * 100
    H = sum(person.H for person in people)
    np.testing.assert_allclose(found.evidence, sum(person.evidence_by_integral for person in people), atol=CONVERGED)
    np.testing.assert_allclose(found.H, H, atol=CONVERGED)
    np.testing.assert_allclose(found.D, sum(person.N for person in people) - H, atol=CONVERGED)
    np.testing.assert_allclose(found.r, sum(person.r for person in people), atol=CONVERGED)
    np.testing.assert_allclose(found.slope_delta, sum(person.slope_delta for person in people), atol=CONVERGED)


def orthant(Sigma, m, rows, delta) -> float:
    """Exact log probability of strict answers: a Gaussian orthant."""
    y = rows.outcome.astype(float)
    X = y[:, None] * design(rows.left, rows.right, rows.n_items)
    K = X @ Sigma @ X.T + np.eye(len(y))
    return float(multivariate_normal.logcdf(X @ m - delta, cov=K, abseps=1e-7, maxpts=2_000_000, rng=1))


def rectangle(Sigma, m, rows, delta) -> float:
    """Exact log probability of strict answers and ties: a Gaussian box."""
    X = design(rows.left, rows.right, rows.n_items)
    y = rows.outcome
    low = np.select([y == 1, y == 0], [delta, -delta], -np.inf)
    high = np.select([y == -1, y == 0], [-delta, delta], np.inf)
    box = multivariate_normal.cdf(
        high, mean=X @ m, cov=X @ Sigma @ X.T + np.eye(len(y)), lower_limit=low, abseps=1e-8, maxpts=2_000_000, rng=1
    )
    return float(np.log(box))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_evidence_equals_the_exact_probability_of_the_answers(seed):
    # EP's own error is below .02 at s0 = 1. Odd seeds have ties.
    rng = np.random.default_rng(seed)
    n = 4 + seed % 4
    left, right = random_pairs(rng, n, 5)
    outcome = rng.choice([1, 0, -1] if seed % 2 else [1, -1], size=n)
    rows = answers(np.zeros(n), left, right, outcome, n_items=5)
    delta = 0.5 if seed % 2 else 0.0
    Sigma, m = random_covariance(rng, 5, 1.0), 0.5 * rng.standard_normal(5)
    exact = rectangle(Sigma, m, rows, delta) if seed % 2 else orthant(Sigma, m, rows, delta)
    found, _ = converged(laid_out(rows), Sigma, m, delta)
    assert abs(found.evidence - exact) < 0.02
    # and without people's differences the answers are independent and EP is exact
    nothing = np.zeros((5, 5))
    found, _ = converged(laid_out(rows), nothing, m, delta)
    assert abs(found.evidence - rectangle(nothing, m, rows, delta)) < CONVERGED


def test_one_answer_is_exact():
    rng = np.random.default_rng(5)
    Sigma, m = random_covariance(rng, 3, 4.0), rng.standard_normal(3)
    for outcome, delta in ((1, 0.0), (-1, 0.3), (0, 0.3)):
        rows = answers([0], [2], [0], [outcome], n_items=3)
        found, _ = converged(laid_out(rows), Sigma, m, delta)
        assert abs(found.evidence - rectangle(Sigma, m, rows, delta)) < CONVERGED


@pytest.mark.parametrize("n_items", [4, 9])
def test_gradients_equal_finite_differences_of_the_converged_evidence(n_items):
    # At an EP fixed point the statistics are the gradient, since the sites are stationary.
    rows, Sigma, m = mixed(11, [8, 7, 2], n_items, weighted=True)
    people, delta, step = laid_out(rows), 0.6, 1e-4
    found, _ = converged(people, Sigma, m, delta)
    rng = np.random.default_rng(0)

    def difference(Sigma_up, Sigma_down, m_up, m_down, delta_up, delta_down):
        up, down = converged(people, Sigma_up, m_up, delta_up)[0], converged(people, Sigma_down, m_down, delta_down)[0]
        return (up.evidence - down.evidence) / (2 * step)

    def close(estimate, exact):
        return abs(estimate - exact) < ITERATIVE * max(1.0, abs(exact))

    for _ in range(4):
        d = rng.standard_normal(n_items)
        E = rng.standard_normal((n_items, n_items))
        E = 0.3 * (E + E.T)
        assert close(difference(Sigma, Sigma, m + step * d, m - step * d, delta, delta), found.r @ d)
        by_Sigma = difference(Sigma + step * E, Sigma - step * E, m, m, delta, delta)
        assert close(by_Sigma, 0.5 * np.vdot(found.D, E))
    assert close(difference(Sigma, Sigma, m, m, delta + step, delta - step), found.slope_delta)


def test_pair_space_equals_item_space():
    # A person is worked on in pair space when n <= k. The same person is met twice: with 10 answers on 4 items
    # (item space), and with each answer about its own copies of the items, perfectly correlated with them (pair space).
    rng = np.random.default_rng(8)
    n, n_items = 10, 4
    left, right = random_pairs(rng, n, n_items)
    outcome = rng.choice([1, 0, -1], size=n)
    Sigma, m = random_covariance(rng, n_items, 2.0), rng.standard_normal(n_items)
    few = laid_out(answers(np.zeros(n), left, right, outcome, n_items=n_items))
    copy = np.arange(n)  # answer p is about its own copies of its items
    copies = n * n_items
    of = np.tile(np.arange(n_items), n)
    many = laid_out(answers(np.zeros(n), copy * n_items + left, copy * n_items + right, outcome, n_items=copies))
    assert few.n_rows > few.item_ptr[-1]
    assert many.n_rows <= many.item_ptr[-1]
    one, sites_one = converged(few, Sigma, m, 0.4)
    other, sites_other = converged(many, Sigma[np.ix_(of, of)], m[of], 0.4)
    A = np.zeros((n_items, copies))
    A[of, np.arange(copies)] = 1.0
    np.testing.assert_allclose(sites_one.precision, sites_other.precision, atol=CONVERGED)
    np.testing.assert_allclose(one.evidence, other.evidence, atol=CONVERGED)
    np.testing.assert_allclose(one.r, A @ other.r, atol=CONVERGED)
    np.testing.assert_allclose(one.H, A @ other.H @ A.T, atol=CONVERGED)
    np.testing.assert_allclose(one.D, A @ other.D @ A.T, atol=CONVERGED)


@pytest.mark.parametrize("n_items", [3, 12])
def test_a_weight_is_so_many_duplicates(n_items):
    # By duplicated rows that no canonical order has added up.
    rng = np.random.default_rng(21)
    left, right = random_pairs(rng, 5, n_items)
    outcome, weight = np.array([1, 0, -1, 1, -1]), np.array([3, 2, 1, 5, 2])
    Sigma, m = random_covariance(rng, n_items, 3.0), rng.standard_normal(n_items)
    summed = laid_out(answers(np.zeros(5), left, right, outcome, weight, n_items=n_items))
    apart = np.repeat(np.arange(5), weight)
    repeated = laid_out(answers(np.zeros(13), left[apart], right[apart], outcome[apart], n_items=n_items))
    one, sites_one = converged(summed, Sigma, m, 0.4)
    other, sites_other = converged(repeated, Sigma, m, 0.4)
    np.testing.assert_allclose(sites_one.precision[apart], sites_other.precision, atol=EXACT)
    np.testing.assert_allclose(sites_one.linear[apart], sites_other.linear, atol=EXACT)
    for name in ("evidence", "H", "D", "r", "slope_delta", "curvature_delta"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=EXACT, err_msg=name)


@pytest.mark.parametrize("outcome", [1, 0])
@pytest.mark.parametrize("weight", [10.0, 1e3, 1e5])
def test_many_repeats_come_to_rest_at_a_consistent_fixed_point(weight, outcome):
    rng = np.random.default_rng(2)
    Sigma, m = random_covariance(rng, 4, 4.0), np.array([0.3, -0.2, 0.5, 0.0])
    rows = answers([0, 0, 0], [0, 1, 2], [1, 2, 0], [outcome, 1, -1], [weight, 1.0, 4.0], n_items=4)
    people = laid_out(rows)
    found, sites = converged(people, Sigma, m, 0.4, n_sweeps=100)
    assert found.largest_change < ITERATIVE
    assert np.isfinite(found.evidence)
    assert np.all(sites.precision > 0)
    # Self-consistency: the tilted moments of each cavity, which lacks one copy, are the moments of the posterior.
    X, W = design(rows.left, rows.right, 4), rows.weight
    S = np.linalg.inv(np.linalg.inv(Sigma) + X.T @ np.diag(W * sites.precision) @ X)
    mean = X @ S @ (np.linalg.solve(Sigma, m) + X.T @ (W * sites.linear))
    variance = np.diagonal(X @ S @ X.T)
    for p in range(3):
        keep = 1 - sites.precision[p] * variance[p]
        v_c, m_c = variance[p] / keep, (mean[p] - variance[p] * sites.linear[p]) / keep
        _, d1, h, _ = moments(int(rows.outcome[p]), m_c, v_c, 0.4)
        assert abs(m_c + v_c * d1 - mean[p]) < ITERATIVE * np.sqrt(variance[p])
        assert abs(v_c - v_c**2 * h - variance[p]) < ITERATIVE * variance[p]
    # A different starting point leads to the same one.
    again = Sites(np.full(3, 0.1), np.array([-0.2, 0.1, 0.3]))
    other = expectation(people, again, Law(Sigma, m), 0.4, **SETTLED)
    np.testing.assert_allclose(again.precision, sites.precision, rtol=ITERATIVE)
    assert abs(other.evidence - found.evidence) < ITERATIVE * max(1.0, abs(found.evidence))


def test_contradictory_answers_and_a_pair_asked_in_both_orders():
    # G is singular: three answers about one pair. The referee has no inverse of G either.
    rng = np.random.default_rng(4)
    Sigma, m = random_covariance(rng, 3, 5.0), np.array([1.0, 0.0, -1.0])
    rows = answers([0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 2], [1, 1, 0, -1], n_items=3)
    found, _ = converged(laid_out(rows), Sigma, m, 0.3)
    person = person_ep(Sigma, m, rows.left, rows.right, rows.outcome, delta=0.3)
    np.testing.assert_allclose(found.evidence, person.evidence_by_integral, atol=CONVERGED)
    np.testing.assert_allclose(found.H, person.H, atol=CONVERGED)
    np.testing.assert_allclose(found.r, person.r, atol=CONVERGED)


def flipped(rows):
    return answers(rows.user, rows.right, rows.left, -rows.outcome, rows.weight, n_items=5)


def reordered(rows):
    order = np.random.default_rng(1).permutation(rows.n_rows)
    columns = (getattr(rows, name)[order] for name in ("user", "left", "right", "outcome", "weight"))
    return answers(*columns, n_items=5)


def with_silent_people(rows):
    return answers(rows.user * 2, rows.left, rows.right, rows.outcome, rows.weight, n_items=5, n_users=5)


@pytest.mark.parametrize(
    ("other", "rounding"), [(flipped, EXACT), (reordered, CONVERGED), (with_silent_people, EXACT)]
)  # rows in another order converge by another way
def test_what_makes_no_difference(other, rounding):
    rows, Sigma, m = mixed(17, [6, 9, 3], 5, weighted=True)
    (one, _), (two, _) = (converged(laid_out(told), Sigma, m, 0.4) for told in (rows, other(rows)))
    for name in ("evidence", "H", "D", "r", "slope_delta"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=rounding, err_msg=name)


def test_extreme_answers_stay_finite():
    # An answer 40 noise units against the consensus of people who hardly differ, and a wildly wide prior.
    m = np.array([40.0, 0.0, -40.0])
    rows = answers([0, 0, 0], [0, 1, 0], [1, 2, 2], [-1, 0, 0], n_items=3)
    for scale in (1e-8, 1.0, 1e6):
        found, sites = converged(laid_out(rows), scale * np.eye(3), m, 0.5)
        assert np.isfinite(found.evidence)
        assert np.all(np.isfinite(found.D))
        assert np.all(sites.precision > 0)


def test_the_same_bits_for_any_number_of_threads():
    # Shards are cut by the data alone and added up in order.
    rows = crowd(6, 1500, 25, 12, delta=0.3)
    people = laid_out(rows)
    assert len(people.shards) >= 4
    rng = np.random.default_rng(0)
    Sigma, m = random_covariance(rng, 25, 2.0), rng.standard_normal(25)

    def run(n_threads):
        sites = Sites.flat(people.n_rows)
        if n_threads is None:
            found = expectation(people, sites, Law(Sigma, m), 0.3, n_sweeps=3)
        else:
            with ThreadPoolExecutor(n_threads) as executor:
                found = expectation(people, sites, Law(Sigma, m), 0.3, n_sweeps=3, executor=executor)
        scalars = [found.evidence, found.slope_delta, found.curvature_delta, found.largest_change]
        return [sites.precision, sites.linear, found.H, found.D, found.r, np.array(scalars)]

    alone = run(None)
    for n_threads in (1, 2, 4):
        for one, other in zip(alone, run(n_threads), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_a_part_of_an_answer_is_counted_or_refused(weight, outcome):
    # "The cavity removes one copy" has no meaning below one copy: 1/v - λ may be negative. Whatever is done about it,
    # it must not be NaN that calls itself converged.
    try:
        people = laid_out(answers([0], [0], [1], [outcome], [weight], n_items=2))
    except DataError:
        return
    Sigma, m = 16.0 * np.eye(2), np.array([0.5, 0.0])
    found, sites = converged(people, Sigma, m, 0.5)
    assert np.all(sites.precision > 0)
    assert np.isfinite(found.evidence)
    whole, _ = converged(laid_out(answers([0], [0], [1], [outcome], n_items=2)), Sigma, m, 0.5)
    assert whole.evidence < found.evidence < 0


def test_what_is_not_a_number_is_not_called_converged():
    people = laid_out(answers([0, 0], [0, 1], [1, 2], [1, 0], n_items=3))
    found = expectation(people, Sites.flat(2), Law(np.eye(3), np.array([np.nan, 0.0, 0.0])), 0.5, **SETTLED)
    assert not found.largest_change < ITERATIVE
