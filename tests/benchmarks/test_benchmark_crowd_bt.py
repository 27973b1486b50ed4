"""CrowdBT taken in online, against quadrature and finite differences; its Gaussian process, on a toy crowd."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.peers.crowd_bt import CrowdBTProcess, online_scores
from benchmarks.task import Task, split_rows
from numpy.polynomial.legendre import leggauss
from scipy.stats import beta as beta_law
from scipy.stats import kendalltau

from tolerances import CONVERGED


def test_one_answer_matches_the_moments() -> None:
    """Scores: Newton's terms of the log probability at the means. Worker: exact moments of η times the answer."""
    alpha, beta = 9.0, 1.0
    first = online_scores([0], [1], [0], 2, 1)

    def log_p(a: float, b: float) -> float:
        return float(np.log(alpha * np.exp(a) + beta * np.exp(b)) - np.logaddexp(a, b))

    h = 1e-4
    slope = (log_p(h, 0.0) - log_p(-h, 0.0)) / (2 * h)
    curvature = (log_p(h, 0.0) - 2 * log_p(0.0, 0.0) + log_p(-h, 0.0)) / h**2
    np.testing.assert_allclose(first[0], [slope, -slope], atol=1e-7)  # of the finite difference
    np.testing.assert_allclose(first[1], 1.0 + curvature, atol=1e-6)
    # Equal means: the chance that the better one wins is one half, and the answer says nothing of the worker.
    np.testing.assert_allclose(first[2][0], [alpha, beta], atol=CONVERGED)
    mean, var, worker = online_scores([0, 0], [1, 1], [0, 1], 2, 2)
    x, w = leggauss(60)
    eta, w = 0.5 * (x + 1.0), 0.5 * w
    p = 1.0 / (1.0 + np.exp(first[0][1] - first[0][0]))
    right = p + 0.5 * first[1].sum() * p * (1.0 - p) * (1.0 - 2.0 * p)
    weight = w * beta_law.pdf(eta, alpha, beta) * (right * eta + (1.0 - right) * (1.0 - eta))
    moments = [np.sum(weight * eta**k) / np.sum(weight) for k in (1, 2)]
    a, b = worker[1]
    np.testing.assert_allclose([a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))], moments, atol=CONVERGED)
    assert mean[0] > first[0][0]
    assert var[0] < first[1][0]


def test_the_order_is_found_and_who_guesses_is_found_out() -> None:
    rng = np.random.default_rng(0)
    n, n_items = 4000, 8
    true = np.linspace(2.0, -2.0, n_items)
    worker, a = rng.integers(5, size=n), rng.integers(n_items, size=n)
    b = (a + rng.integers(1, n_items, size=n)) % n_items
    a_wins = rng.random(n) < 1.0 / (1.0 + np.exp(true[b] - true[a]))
    a_wins = np.where(worker == 4, rng.random(n) < 0.5, a_wins)  # the last one tosses a coin
    mean, _, law = online_scores(np.where(a_wins, a, b), np.where(a_wins, b, a), worker, n_items, 5)
    assert (np.diff(mean) < 0).all()
    reliability = law[:, 0] / law.sum(axis=1)
    assert abs(reliability[4] - 0.5) < 0.1
    assert reliability[:4].min() > 0.85


def toy(ties: bool = False) -> Task:
    rng = np.random.default_rng(1)
    n, n_items = 600, 20
    x = rng.standard_normal(n_items)
    left = rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    outcome = np.where(x[left] - x[right] + rng.logistic(size=n) > 0, 1, -1)
    test = (left < 3) | (right < 3)  # items that nobody compared
    outcome = np.where(rng.random(n) < 0.1, 0, outcome) if ties else outcome
    frame = pl.DataFrame({"user": rng.integers(6, size=n), "left": left, "right": right})
    return split_rows("toy", 0, frame, outcome, test, items=pl.DataFrame({"item": np.arange(n_items), "x": x}))


def test_features_speak_for_items_without_answers() -> None:
    task = toy()
    fitted = CrowdBTProcess(task, median="root")
    log_p = fitted.log_proba(task.test)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0, atol=CONVERGED)
    known = pl.DataFrame({"user": [0] * 20, "item": np.arange(20)})
    assert task.items is not None
    assert kendalltau(fitted.scores(known), task.items["x"].to_numpy()).statistic > 0.8
    assert fitted.report()["reliability"]["smallest"] > 0.5
    with pytest.raises(ValueError, match="no ties"):
        CrowdBTProcess(toy(ties=True))
