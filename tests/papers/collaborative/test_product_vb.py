"""Variational Bayes for products, against plain NumPy, finite differences and what it recovers."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.papers.collaborative.sites import Factors, product_moments, product_passes
from tolerances import CONVERGED, EXACT, ITERATIVE


class Problem:
    def __init__(self, seed=0, n_users=5, n_pairs=6, D=3, n=25, fixed=False):
        rng = np.random.default_rng(seed)
        self.user, self.pair = rng.integers(n_users, size=n), rng.integers(n_pairs, size=n)
        self.precision, self.linear = rng.uniform(0.1, 2.0, size=n), rng.normal(size=n)
        self.w_prior = rng.normal(size=(n_users, D)), rng.uniform(0.5, 1.5, size=(n_users, D))
        self.h_prior = rng.normal(size=(n_pairs, D)), rng.uniform(0.5, 1.5, size=(n_pairs, D))
        if fixed:
            self.w_prior[1][:, 0] = 0.0
        self.w = [self.w_prior[0].copy(), self.w_prior[1].copy()]
        self.h = [rng.normal(size=(n_pairs, D)), self.h_prior[1].copy()]

    def run(self, most, tolerance=-np.inf):
        bounds = np.empty(most)
        margin = np.empty(len(self.user))
        done = product_passes(
            self.user, self.pair, self.precision, self.linear, Factors(*self.w_prior, *self.h_prior),
            Factors(*self.w, *self.h), margin, tolerance, most, bounds,
        )  # fmt: skip
        self.margin = margin
        return bounds[:done]

    def moments(self):
        (w, v), (h, s) = self.w, self.h
        mean = (w[self.user] * h[self.pair]).sum(axis=1)
        w2, h2 = w**2 + v, h**2 + s
        return mean, (w2[self.user] * h2[self.pair] - (w[self.user] * h[self.pair]) ** 2).sum(axis=1)

    def bound(self):
        mean, var = self.moments()
        total = float(self.linear @ mean - 0.5 * self.precision @ (mean**2 + var))
        for (m, v), (m0, v0) in ((self.w, self.w_prior), (self.h, self.h_prior)):
            free = v0 > 0.0
            ratio = v[free] / v0[free]
            total -= 0.5 * float(np.sum(ratio - 1.0 - np.log(ratio) + (m - m0)[free] ** 2 / v0[free]))
        return total

    def one_pass(self):
        """The updates of collaborative.md 3, one after the other, without compilation."""
        (w, v), (h, s) = self.w, self.h
        r = self.linear / self.precision
        for d in range(w.shape[1]):
            for mean, var, prior, mine, other, other_mean, other_var in (
                (w, v, self.w_prior, self.user, self.pair, h, s), (h, s, self.h_prior, self.pair, self.user, w, v),
            ):  # fmt: skip
                e = r - (w[self.user] * h[self.pair]).sum(axis=1) + w[self.user, d] * h[self.pair, d]
                for i in range(len(mean)):
                    rows = mine == i
                    if prior[1][i, d] == 0.0:
                        continue
                    m = other_mean[other[rows], d]
                    second = m**2 + other_var[other[rows], d]
                    var[i, d] = 1.0 / (1.0 / prior[1][i, d] + self.precision[rows] @ second)
                    pull = prior[0][i, d] / prior[1][i, d] + (self.precision[rows] * m) @ e[rows]
                    mean[i, d] = var[i, d] * pull


@pytest.mark.parametrize("fixed", [False, True])
def test_a_pass_is_that_of_the_formulas(fixed):
    ours, theirs = Problem(fixed=fixed), Problem(fixed=fixed)
    for _ in range(3):
        bounds = ours.run(1)
        theirs.one_pass()
        for a, b in zip((*ours.w, *ours.h), (*theirs.w, *theirs.h), strict=True):
            np.testing.assert_allclose(a, b, atol=EXACT)
        np.testing.assert_allclose(bounds[-1], theirs.bound(), atol=EXACT)
        np.testing.assert_allclose(ours.margin, theirs.moments()[0], atol=EXACT)
    mean, var = np.empty((2, len(ours.user)))
    product_moments(ours.user, ours.pair, *ours.w, *ours.h, mean, var)
    np.testing.assert_allclose([mean, var], ours.moments(), atol=EXACT)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_never_falls_and_ends_where_its_gradient_vanishes(seed):
    problem = Problem(seed)
    bounds = problem.run(5000, 1e-13)
    assert len(bounds) < 5000
    assert np.all(np.diff(bounds) > -CONVERGED)
    h = 1e-5
    for array in (*problem.w, *problem.h):
        for place in np.ndindex(array.shape):
            at = array[place]
            array[place] = at + h
            up = problem.bound()
            array[place] = at - h
            down = problem.bound()
            array[place] = at
            assert abs(up - down) / (2.0 * h) < 20.0 * ITERATIVE


def test_a_product_that_is_known_is_recovered():
    rng = np.random.default_rng(1)
    w, h = rng.normal(size=6), rng.normal(size=7)
    problem = Problem(D=1, n_users=6, n_pairs=7)
    problem.user, problem.pair = (grid.ravel() for grid in np.meshgrid(np.arange(6), np.arange(7), indexing="ij"))
    problem.precision = np.full(42, 1e8)
    problem.linear = 1e8 * np.outer(w, h).ravel()
    problem.run(300)
    np.testing.assert_allclose(problem.margin, np.outer(w, h).ravel(), atol=1e-4)


def test_what_has_no_prior_variance_stays():
    problem = Problem(fixed=True)
    before = problem.w[0][:, 0].copy()
    problem.run(10)
    np.testing.assert_array_equal(problem.w[0][:, 0], before)
    np.testing.assert_array_equal(problem.w[1][:, 0], 0.0)
