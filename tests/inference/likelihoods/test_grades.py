"""Graded answers: intervals against quadrature and finite differences, and how cuts are learned."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from predilect.inference.likelihoods.grades import GradeRows, Intervals, Thresholds
from predilect.inference.likelihoods.probit import tilted
from tolerances import EXACT, ITERATIVE, STATISTICAL

WITH_TIES, WITHOUT = Thresholds(np.array([0.3, 0.9, 1.7])), Thresholds(np.array([0.0, 0.5, 1.2]))
CODES = np.array([-4, -3, -2, -1, 0, 1, 2, 3, 4], dtype=np.int8)
NOWHERE = np.zeros(len(CODES), dtype=np.int64)


@pytest.mark.parametrize("thresholds", [WITH_TIES, WITHOUT])
@pytest.mark.parametrize(("mean", "var"), [(0.4, 0.7), (-2.5, 3.0), (0.0, 0.0)])
def test_an_answer_has_the_probability_of_its_interval(thresholds, mean, var):
    ends = thresholds.ends(CODES, NOWHERE, NOWHERE)
    found = Intervals.all_tilted(ends, mean, var, thresholds.scale)[0]
    s = np.sqrt(1.0 + var)
    for (low, high), value, code in zip(ends * thresholds.scale, found, CODES, strict=True):
        if low == high == 0.0:
            continue  # no tie is offered
        exact = quad(norm(mean, s).pdf, low, high, epsabs=1e-14, epsrel=1e-13)[0]
        assert np.exp(value) == pytest.approx(exact, rel=1e-9), code


def test_grades_of_a_side_add_up_to_the_side_and_all_answers_to_one():
    for thresholds in (WITH_TIES, WITHOUT):
        offered = CODES[(CODES != 0) | (thresholds.tie_threshold > 0.0)]
        nowhere = np.zeros(len(offered), dtype=np.int64)
        p = np.exp(Intervals.all_tilted(thresholds.ends(offered, nowhere, nowhere), 0.3, 0.5, thresholds.scale)[0])
        assert p[offered > 1].sum() == pytest.approx(p[offered == 1][0], rel=EXACT)
        assert p[np.abs(offered) != 1].sum() == pytest.approx(1.0, rel=EXACT)


def test_signs_and_ties_are_those_of_the_probit():
    m, v = np.linspace(-8.0, 8.0, 33), np.linspace(0.0, 4.0, 33)
    for code in (-1, 0, 1):
        codes = np.full(33, code, dtype=np.int8)
        ends = WITH_TIES.ends(codes, np.zeros(33, dtype=int), np.zeros(33, dtype=int))
        for one, other in zip(Intervals.all_tilted(ends, m, v, 0.3), tilted(codes, m, v, 0.3), strict=True):
            np.testing.assert_allclose(one, other, rtol=EXACT, atol=EXACT)


def test_derivatives_are_those_of_finite_differences_near_and_far():
    step, v = 1e-5, 0.8
    ends = WITH_TIES.ends(CODES, NOWHERE, NOWHERE)
    for mean in (-30.0, -2.0, 0.0, 0.7, 9.0):
        _, slope, curvature, of_scale, curvature_scale = Intervals.all_tilted(ends, mean, v, 0.3)
        up, down = (Intervals.all_tilted(ends, mean + d, v, 0.3) for d in (step, -step))
        np.testing.assert_allclose((up[0] - down[0]) / (2 * step), slope, rtol=ITERATIVE, atol=ITERATIVE)
        np.testing.assert_allclose(-(up[1] - down[1]) / (2 * step), curvature, rtol=ITERATIVE, atol=ITERATIVE)
        up, down = (Intervals.all_tilted(ends, mean, v, 0.3 + d) for d in (step, -step))
        np.testing.assert_allclose((up[0] - down[0]) / (2 * step), of_scale, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose((up[3] - down[3]) / (2 * step), curvature_scale, rtol=1e-4, atol=1e-4)
        assert np.all(curvature >= 0.0)
        assert np.isfinite(slope).all()


def test_a_swap_of_left_and_right_turns_the_answer_about():
    ends = WITH_TIES.ends(CODES, NOWHERE, NOWHERE)
    here = Intervals.all_tilted(ends, 1.3, 0.6, 0.3)
    there = Intervals.all_tilted(ends[::-1], -1.3, 0.6, 0.3)
    np.testing.assert_allclose(here[0], there[0], rtol=EXACT)
    np.testing.assert_allclose(here[1], -there[1], rtol=EXACT)


def simulated(thresholds: Thresholds, n: int, seed: int, n_items: int = 6) -> GradeRows:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(n_items, size=(2, n))
    mean, var = rng.normal(0.0, 1.0, n), np.full(n, 0.2)
    factor = np.exp(0.3 * rng.standard_normal(n))
    seen = (mean + np.sqrt(1.0 + var) * rng.standard_normal(n)) / factor / thresholds.of_pairs(left, right)
    grade = np.searchsorted(thresholds.cuts, np.abs(seen)) if thresholds.cuts[0] else 1 + np.searchsorted(
        thresholds.cuts[1:], np.abs(seen)
    )  # fmt: skip
    code = np.where(grade == 0, 0, np.sign(seen) * (1 + grade)).astype(np.int8)
    code[:50] = np.sign(code[:50])  # of some only the side is known
    return GradeRows(code, np.ones(n), mean, var, factor, left, right)


@pytest.mark.parametrize("thresholds", [WITH_TIES, WITHOUT])
def test_cuts_are_found_again(thresholds):
    rows = simulated(thresholds, 20_000, 1)
    first = Thresholds.first(rows.code, rows.weight, 3, thresholds.tie_threshold)
    found = first.learned(rows, learn_scale=True)
    np.testing.assert_allclose(found.cuts, thresholds.cuts, atol=STATISTICAL * 0.015)
    held = first.scaled(thresholds.scale).learned(rows)
    assert held.scale == pytest.approx(thresholds.scale, rel=EXACT)


@pytest.mark.parametrize("thresholds", [WITH_TIES, WITHOUT])
def test_the_search_for_cuts_has_the_gradient_of_its_objective(thresholds):
    from predilect.inference.likelihoods.grades import _CutObjective

    rows = simulated(thresholds, 300, 2)
    now = Thresholds(thresholds.cuts, np.linspace(-0.4, 0.3, 6))
    search = _CutObjective(now, rows, 0.5, True)
    x = search.start + 0.1
    _, gradient = search(x)
    for k in range(len(x)):
        step = np.zeros(len(x))
        step[k] = 1e-5
        assert (search(x + step)[0] - search(x - step)[0]) / 2e-5 == pytest.approx(gradient[k], rel=1e-5, abs=1e-5)


def test_answers_that_were_certain_have_a_gradient():
    from predilect.inference.likelihoods.grades import _CutObjective

    rows = simulated(WITH_TIES, 300, 2)
    certain = np.sign(rows.mean) * 1e3  # beyond which slopes are 0, and the last cut is infinite
    rows = rows._replace(mean=certain, code=(np.sign(certain) * rows.code.max()).astype(np.int8))
    search = _CutObjective(WITH_TIES, rows, 0.5, True)
    _, gradient = search(search.start)
    assert np.isfinite(gradient).all()


def test_factors_of_items_are_found_again():
    truth = Thresholds(np.array([0.5]), 0.4 * np.random.default_rng(0).standard_normal(6))
    rows = simulated(truth, 40_000, 3)
    code = np.sign(rows.code).astype(np.int8)
    seen = rows._replace(code=code)
    found = Thresholds(np.array([0.5]), np.zeros(6)).learned(seen, 0.5, learn_scale=True)
    np.testing.assert_allclose(found.of_items - found.of_items.mean(), truth.of_items - truth.of_items.mean(), atol=0.1)
