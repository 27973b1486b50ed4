"""Graded answers in the pooled model: cuts by evidence, and what it shares with signs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from predilect import Comparisons
from predilect.inference.latent.pooled import fit_pooled
from tolerances import EXACT, ITERATIVE


def graded(n: int, cuts: tuple[float, ...], seed: int = 0, n_items: int = 5) -> Comparisons:
    """Answers of n rows; the first cut is the tie threshold, 0 for no ties."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(n_items)
    left = rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    seen = f[left] - f[right] + rng.standard_normal(n)
    grade = np.searchsorted(cuts, np.abs(seen))
    outcome = (np.sign(seen) * grade).astype(int)
    names = np.array(list("abcdefgh"))
    frame = {"left": names[left], "right": names[right], "user": rng.integers(10, size=n)}
    return Comparisons.from_frame(
        frame, outcome=outcome, reading={"side": False, "grades": [str(g) for g in range(1, len(cuts) + 1)]}
    )


@pytest.mark.parametrize("cuts", [(0.3, 0.8, 1.6), (0.0, 0.6, 1.4)])
def test_cuts_of_many_answers_are_those_of_an_ordered_probit(cuts):
    answers = graded(4000, cuts)
    state = fit_pooled(answers, np.eye(5), 100.0)
    assert state.report.converged
    rows, code = answers.pooled(), answers.pooled().code
    n_free = 3 if cuts[0] else 2

    def loss(x):
        c = np.append(np.append([] if cuts[0] else [0.0], np.cumsum(np.exp(x[4:]))), np.inf)
        z = np.append(0.0, x[:4])
        d = z[rows.left] - z[rows.right]
        g = np.maximum(np.abs(code) - 1, 0)
        low = np.where(code == 0, -c[0], c[np.maximum(g - 1, 0)])
        high = np.where(code == 0, c[0], c[g])
        turned = np.where(code < 0, -d, d)
        chance = norm.cdf(high - turned) - norm.cdf(low - turned)
        return -rows.weight @ np.log(np.maximum(chance, 1e-300))

    found = minimize(loss, np.append(np.zeros(4), np.log(np.full(n_free, 0.5))), method="BFGS")
    c = np.cumsum(np.exp(found.x[4:]))
    # The evidence integrates the utilities out, which the maximum of the likelihood does not.
    np.testing.assert_allclose(state.rows.thresholds.cuts[3 - n_free :], c, rtol=0.01)
    z = state.m - state.m[0]
    np.testing.assert_allclose(z[1:], found.x[:4], rtol=0.02, atol=0.01)


def test_a_swap_and_names_make_no_difference():
    answers = graded(300, (0.3, 0.8, 1.6))
    frame = answers.to_frame("pandas")
    turned = frame.assign(left=frame["right"], right=frame["left"])
    options = {"columns": {"weights": "weight"}, "reading": {"grades": ["1", "2", "3"], "side": False}}
    here = fit_pooled(
        Comparisons.from_frame(frame.drop(columns=["winner"]), outcome=frame["outcome"], **options), np.eye(5), 1.0
    )
    there = fit_pooled(
        Comparisons.from_frame(turned.drop(columns=["winner"]), outcome=-frame["outcome"], **options), np.eye(5), 1.0
    )
    np.testing.assert_array_equal(here.m, there.m)
    order = {"a": "e", "b": "d", "c": "c", "d": "b", "e": "a"}
    renamed = frame.assign(left=frame["left"].map(order), right=frame["right"].map(order)).drop(columns=["winner"])
    other = fit_pooled(Comparisons.from_frame(renamed, outcome=frame["outcome"], **options), np.eye(5), 1.0)
    np.testing.assert_allclose(other.m[::-1], here.m, atol=ITERATIVE)
    np.testing.assert_allclose(other.rows.thresholds.cuts, here.rows.thresholds.cuts, rtol=1e-4)


def test_twice_the_answers_is_weight_2():
    answers = graded(200, (0.0, 0.6, 1.4))
    double = answers.append(answers)
    once = fit_pooled(answers.with_weight(2.0 * answers.weight), np.eye(5), 1.0)
    twice = fit_pooled(double, np.eye(5), 1.0)
    np.testing.assert_allclose(once.m, twice.m, atol=EXACT)


def test_signs_of_graded_answers_are_the_answers_without_grades():
    answers = graded(400, (0.4, 1.0))
    signs = answers.without_grades()
    only_sides = replace(answers, grade=np.zeros(answers.n_rows, dtype=np.int8))
    plain = fit_pooled(signs, np.eye(5), 1.0)
    as_graded = fit_pooled(only_sides, np.eye(5), 1.0)
    np.testing.assert_allclose(as_graded.m, plain.m, atol=ITERATIVE)
    assert as_graded.tie_threshold == pytest.approx(plain.tie_threshold, rel=1e-4)
