"""L-BFGS on functions whose top is known, against SciPy's."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der
from scipy.special import expit

from predilect.models.population.lbfgs import ascent
from tolerances import CONVERGED, ITERATIVE

FAR = np.full(6, 1e3)


def parabola(n=6, seed=0):
    rng = np.random.default_rng(seed)
    top, root = rng.standard_normal(n), rng.standard_normal((n, n))
    H = root @ root.T + np.eye(n)
    return top, lambda x: (-0.5 * float((x - top) @ H @ (x - top)), -H @ (x - top))


def last(objective, reach, n_pairs=10, most=400):
    n, steps = len(reach), list(islice(ascent(objective, objective(np.zeros(len(reach))), reach, n_pairs), most))
    values = [objective(np.zeros(n))[0], *(value for _, value, _ in steps)]
    assert (np.diff(values) >= 0.0).all()
    return steps[-1]


def test_it_finds_the_top_of_a_parabola_and_ends_there():
    top, objective = parabola()
    x, value, gradient = last(objective, FAR)
    np.testing.assert_allclose(x, top, atol=CONVERGED)
    assert abs(value) < CONVERGED
    np.testing.assert_allclose(gradient, objective(x)[1])


@pytest.mark.parametrize("n_pairs", [4, 20])
def test_a_curved_ridge_is_climbed_in_as_few_trials_as_by_scipy(n_pairs):
    n_trials = 0

    def objective(x):
        nonlocal n_trials
        n_trials += 1
        return -rosen(x), -rosen_der(x)

    x, _, _ = last(objective, FAR, n_pairs)
    np.testing.assert_allclose(x, 1.0, atol=ITERATIVE)
    options = {"maxcor": n_pairs, "ftol": 0.0, "gtol": 1e-8}
    theirs = minimize(rosen, np.zeros(6), jac=rosen_der, method="L-BFGS-B", options=options)
    n_trials = 0
    for _, _, gradient in ascent(objective, objective(np.zeros(6)), FAR, n_pairs):
        if np.abs(gradient).max() <= 1e-8:
            break
    assert n_trials <= 1.3 * theirs.nfev


def test_no_coordinate_leaves_its_reach():
    top, objective = parabola()
    reach = np.where(np.arange(6) == 2, 0.25 * abs(top[2]), 1e3)
    for x, _, _ in ascent(objective, objective(np.zeros(6)), reach, 10):
        assert (np.abs(x) <= reach * (1.0 + CONVERGED)).all()
        if abs(x[2]) >= 0.999 * reach[2]:
            return
    pytest.fail("it should have come to the end of its reach")


@pytest.mark.parametrize("beyond", [-math.inf, math.nan])
def test_places_where_the_objective_is_not_finite_are_refused(beyond):
    def objective(x):
        size = float(x @ x)
        if size >= 1.0:
            return beyond, np.full(2, math.nan)
        # Rises steeply towards a wall of which log has no value.
        return float(50.0 * x.sum() + math.log(1.0 - size)), 50.0 - 2.0 * x / (1.0 - size)

    x, _, gradient = last(objective, np.full(2, 1e3))
    assert 0.9 < x @ x < 1.0
    assert np.abs(gradient).max() < 1e-4


def test_it_gets_out_of_a_corner_where_slopes_say_little():
    rng = np.random.default_rng(29)  # of a logistic regression whose coordinates differ by five powers of ten
    n, m = int(rng.integers(1, 30)), int(rng.integers(1, 200))
    X, y = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-3.0, 2.0, n), rng.integers(0, 2, m)
    penalty = 10.0 ** rng.uniform(-6.0, 1.0)

    def objective(x):
        z = X @ x
        value = float((y * z - np.logaddexp(0.0, z)).sum() - 0.5 * penalty * x @ x)
        return value, X.T @ (y - expit(z)) - penalty * x

    _, value, _ = last(objective, np.full(n, 1e6))
    best = minimize(
        lambda x: -objective(x)[0], np.zeros(n), jac=lambda x: -objective(x)[1], method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 10_000, "ftol": 0.0},
    )  # fmt: skip
    assert value >= -best.fun - 1e-6


def test_a_value_without_end_is_no_rise():
    def objective(x):
        return (math.inf, np.zeros(1)) if x[0] > 1.0 else (float(5.0 * x[0]), np.full(1, 5.0))

    for x, value, _ in islice(ascent(objective, objective(np.zeros(1)), np.full(1, 1e3), 10), 5):
        assert math.isfinite(value)
        assert x[0] <= 1.0


def test_where_no_step_goes_up_it_ends():
    _, objective = parabola()
    value, gradient = objective(np.zeros(6))
    assert not list(ascent(lambda x: (value - 1.0, gradient), (value, gradient), FAR, 10))
    assert not list(ascent(objective, (value, np.zeros(6)), FAR, 10))
