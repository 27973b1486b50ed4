"""The E step with a basis against the same sums over items, computed densely; and bases that are the items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.data.features import FeatureSpace
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import expectation
from predilect.inference.people.law import Law
from predilect.models.population.fit import PopulationPrior, fit_population
from predilect.models.population.prior import Functions, Hyperparameters
from simulate import crowd, laid_out, random_covariance, random_pairs
from simulate_basis import PARTS, law_of, people_of, truth_of
from tolerances import CONVERGED, EXACT, ITERATIVE

N_ITEMS = 7
# Answers a person: pair space (4, 1), its edge (7), item space (20, 12), and nobody's (person 3).
ROWS = crowd(1, 6, N_ITEMS, [4, 20, 1, 0, 7, 12], delta=0.4)
WEIGHTED = crowd(1, 6, N_ITEMS, [4, 20, 1, 0, 7, 12], delta=0.4)
WEIGHTED.weight = np.random.default_rng(3).choice([1.0, 2.0, 3.5], size=WEIGHTED.n_rows)
CROWDS = {"plain": ROWS, "weighted": WEIGHTED}
SETTLED = {"n_sweeps": 3000, "tolerance": 1e-13}


def settled(people, law, delta):
    return expectation(people, Sites.flat(people.n_rows), law, delta, **SETTLED)


@pytest.fixture(scope="module", params=PARTS)
def parts(request):
    own, traits = PARTS[request.param]
    return {"own": own, "traits": traits}


@pytest.fixture(scope="module", params=CROWDS)
def setting(request, parts):
    """Rows, the truth, and every person of the referee."""
    rows = CROWDS[request.param]
    truth = truth_of(rows, **parts)
    return rows, truth, truth.people(rows)


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [False, True])
def test_every_sum_is_that_over_items_projected(setting, heavy):
    # The sums of section 3 know of the basis through S and the mean alone; on the functions they are Φᵀ . Φ.
    rows, truth, people = setting
    found = settled(people_of(rows, truth, heavy=heavy), law_of(truth), truth.delta)
    H, D = sum(p.H for p in people), sum(p.N - p.H for p in people)
    r, Phi = np.array([p.r for p in people]), truth.Phi
    expected = {
        "evidence": sum(p.evidence for p in people), "slope_delta": sum(p.slope_delta for p in people),
        "H": Phi.T @ H @ Phi, "D": Phi.T @ D @ Phi, "r": Phi.T @ r.sum(axis=0), "r_items": r.sum(axis=0),
        "r_traits": Phi.T @ r.T @ truth.traits,
        "own_H": np.diagonal(H)[: len(truth.share)], "own_D": np.diagonal(D)[: len(truth.share)],
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, atol=CONVERGED, rtol=CONVERGED, err_msg=name)
    assert abs(found.evidence - sum(p.evidence_by_integral for p in people)) < CONVERGED * 10
    np.testing.assert_array_equal(found.H, found.H.T)
    np.testing.assert_allclose(found.D, found.D.T, atol=EXACT)


def test_heavy_and_light_people_side_by_side(parts):
    # 20 and 12 answers on 7 items are heavy at a limit of 48 (an eighth of it is 6), the others are not.
    truth = truth_of(ROWS, **parts)
    light = people_of(ROWS, truth)
    mixed = replace(light, largest_state=48)
    assert 0 < len(mixed.heavy) < 5
    one, other = (settled(people, law_of(truth), truth.delta) for people in (light, mixed))
    for name in ("evidence", "H", "D", "r", "r_items", "r_traits", "own_H", "own_D", "slope_delta", "curvature_delta"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=CONVERGED, err_msg=name)


@pytest.mark.parametrize("heavy", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_sums_are_the_gradient_of_the_evidence(parts, heavy):
    # In Σ, m, c, log own_scale, B and δ, along a random direction of each, at sites that stand still.
    truth = truth_of(WEIGHTED, **parts)
    people = people_of(WEIGHTED, truth, heavy=heavy)
    now = settled(people, law_of(truth), truth.delta)
    rng = np.random.default_rng(7)
    direction = random_covariance(rng, 3) - random_covariance(rng, 3)
    dm, dc, dB = (rng.standard_normal(a.shape) for a in (truth.m, truth.offset, truth.B))
    moves = {
        "Sigma": (lambda h: {"Sigma": truth.Sigma + h * direction}, 0.5 * np.vdot(now.D, direction)),
        "m": (lambda h: {"m": truth.m + h * dm}, now.r @ dm),
        "delta": (lambda h: {"delta": truth.delta + h}, now.slope_delta),
    }
    if len(truth.share):
        moves["c"] = (lambda h: {"offset": truth.offset + h * dc}, now.r_items @ dc)
        slope = 0.5 * truth.own_scale * (truth.share @ now.own_D)
        moves["own"] = (lambda h: {"own_scale": truth.own_scale * np.exp(h)}, slope)
    if truth.B.size:
        moves["B"] = (lambda h: {"B": truth.B + h * dB}, np.vdot(now.r_traits, dB))
    step = 1e-3
    for name, (change, slope) in moves.items():
        ahead = []
        for k in (-2, -1, 1, 2):  # fourth-order differences
            moved = replace(truth, **change(k * step))
            ahead.append(settled(people, law_of(moved), moved.delta).evidence)
        by_differences = (ahead[0] - 8 * ahead[1] + 8 * ahead[2] - ahead[3]) / (12 * step)
        assert abs(by_differences - slope) < ITERATIVE * max(1.0, abs(slope)), name


def test_traits_where_the_items_are_the_basis():
    # No Φ: traits shift the items' own prior mean, and r_traits is Σ r_u x_uᵀ over items.
    truth = truth_of(ROWS, own=False, traits=True, n_functions=N_ITEMS)
    truth = replace(truth, Phi=np.eye(N_ITEMS))
    people = truth.people(ROWS)
    law = Law(truth.Sigma, truth.m, shift=truth.B)
    assert not law.has_basis
    for heavy in (False, True):
        found = settled(people_of(ROWS, truth, heavy=heavy), law, truth.delta)
        np.testing.assert_allclose(found.H, sum(p.H for p in people), atol=CONVERGED)
        np.testing.assert_allclose(found.D, sum(p.N - p.H for p in people), atol=CONVERGED)
        expected = np.array([p.r for p in people]).T @ truth.traits
        np.testing.assert_allclose(found.r_traits, expected, atol=CONVERGED)


# Bases that are the items by another name

FIT = crowd(5, 30, 6, 10, delta=0.3)
TIGHT = {"tolerance": 1e-12, "max_iter": 3000, "site_tolerance": 1e-12}


def spaced(n_items: int, seed: int = 0) -> FeatureSpace:
    """Items on a plane, none close to another."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(n_items) / n_items
    return FeatureSpace(np.c_[np.cos(angle), np.sin(angle)] + 0.1 * rng.standard_normal((n_items, 2)),
                        np.ones(n_items, dtype=bool))  # fmt: skip


def compare(one, other, priors, rows, tolerance):
    """Predictions of two fits: known people, strangers, the consensus."""
    people = laid_out(rows)
    rng = np.random.default_rng(0)
    left, right = random_pairs(rng, 200, rows.n_items)
    users = rng.integers(-1, rows.n_users, size=200)
    first, second = (state.posterior(people, prior) for state, prior in zip((one, other), priors, strict=True))
    for a, b in zip(first.margins(users, left, right), second.margins(users, left, right), strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance)
    for a, b in zip(first.crowd().dense(), second.crowd().dense(), strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance)
    for a, b in zip(first.utilities(3), second.utilities(3), strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance)


def test_one_hot_identity_as_attributes_is_the_items():
    # The same numbers by other loops, so that only rounding can differ, even along the whole search.
    K = spaced(6).covariance(0.5, 1.0)
    items = PopulationPrior(K, 20.0, 2.0, 4.0)
    basis = PopulationPrior(K, 20.0, 2.0, 4.0, Phi=np.eye(6))
    one, other = (fit_population(laid_out(FIT), prior, **TIGHT) for prior in (items, basis))
    assert abs(one.objective - other.objective) < CONVERGED
    compare(one, other, (items, basis), FIT, CONVERGED)
    np.testing.assert_allclose(one.Sigma, other.Sigma, atol=CONVERGED)


def test_inducing_points_at_all_items_are_the_kernel():
    # With w = 1 and Z = the items, ΦΦᵀ = K_θ: J is the same function of ΦΣΦᵀ up to a constant, so that two searches in
    # different coordinates meet at one maximum. J is flat there: √tolerance is what parameters are known to.
    space, h = spaced(6), Hyperparameters(20.0, 2.0, 4.0, 1.0, 0.7)
    functions = Functions.of("inducing", space, space.matrix, h.length_scale)
    Phi = functions.rows(space)
    np.testing.assert_allclose(Phi @ Phi.T, space.covariance(1.0, 0.7), atol=EXACT)
    share = functions.own_share(Phi, space.known, 1.0)
    assert np.all((share > 0) & (share < 1e-5))  # next to nothing is left to each item
    items = PopulationPrior.of(h, space)
    basis = replace(PopulationPrior.of(h, space, functions), own_share=np.zeros(0))
    one, other = (fit_population(laid_out(FIT), prior, **TIGHT) for prior in (items, basis))
    compare(one, other, (items, basis), FIT, 1e-5)
    # With the share that keeps own parts proper, a millionth of s₀, predictions move by about as much.
    proper = PopulationPrior.of(h, space, functions)
    third = fit_population(laid_out(FIT), proper, **TIGHT)
    compare(one, third, (items, proper), FIT, 1e-4)


# People with very many answers


def test_someone_heavy_is_exact_where_functions_are_fewer_than_items():
    # S = ΦΣΦᵀ of rank 3 on 12 items has no Cholesky factor without jitter, and answers that count a hundredfold tell
    # a jitter of 1e-10 from nothing: evidence was 6e-4 nats away, at weights of 1e5 hundreds.
    rows = crowd(1, 3, 12, [80, 200, 60], delta=0.4)
    rows.weight = np.random.default_rng(3).choice([1.0, 2.0, 100.0], size=rows.n_rows)
    truth = truth_of(rows, own=False, traits=False)
    light, heavy = (settled(people_of(rows, truth, heavy=heavy), law_of(truth), 0.4) for heavy in (False, True))
    for name in ("evidence", "H", "D", "r", "slope_delta"):
        one, other = getattr(light, name), getattr(heavy, name)
        np.testing.assert_allclose(one, other, atol=CONVERGED, rtol=EXACT, err_msg=name)
