"""The Gibbs sampler against what its posterior is known to be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, norm, t, uniform
from simulate_choices import MEAN, choices

from predilect import MixedLogit
from predilect.choice.mixed_logit import loops
from predilect.choice.mixed_logit.diagnosis import effective_size, r_hat
from predilect.choice.mixed_logit.gibbs import Kept, sweeps
from predilect.choice.mixed_logit.trajectories import (
    ClassState,
    Hyperprior,
    LogitQuadratics,
    PeopleState,
    Trajectories,
    packed,
    slopes_near,
)
from predilect.inference.gaussian.dense import moments
from tolerances import EXACT, ITERATIVE

_APART = 40  # of the draws, which are kept in every tenth sweep


def run(kind, price, diagonal, n, n_classes=1, n_sweeps=80_000, seed=0, width=1.5):
    """Sweeps without any choices: the draws must follow the prior, whatever moves there are."""
    U, d, G = 4, len(kind), 2
    rng = np.random.default_rng(seed)
    nothing = np.zeros(U + 1, dtype=np.int64)
    z = rng.normal(size=(U, d))
    B, Omega = np.zeros((n_classes, G, d)), np.repeat(np.eye(n)[None], n_classes, axis=0)
    z[:, n:] = 0.0
    thin, S = 10, n_sweeps // 2 // 10
    kept = Kept(
        n_sweeps // 2, thin, thin, np.empty((S, n_classes, G, d)), np.empty((S, n_classes, n, n)),
        np.empty((S, n_classes)), np.empty((U, S, d), dtype=np.float32),
    )  # fmt: skip
    traits = np.column_stack([np.ones(U), rng.normal(size=U)])
    rows = loops.ChoiceRows(
        np.zeros((d, 0)), np.zeros(0), np.zeros(1, dtype=np.int64), nothing, np.array(kind, dtype=np.int8), price
    )
    D = n_classes * (G * n + n + (0 if diagonal else n * (n - 1) // 2)) + d - n
    H = rng.normal(size=(U, d, d))  # quadratics that say something else: what draws follow does not depend on them
    quadratics = LogitQuadratics(rng.normal(size=(U, d)), 0.1 * H @ np.swapaxes(H, 1, 2))
    how = Trajectories(np.full(n, 0.7), 0.5 * np.eye(D), np.array([-1.5, -1.0]), np.empty((10, D)))
    sweeps(
        0, n_sweeps, rows, Hyperprior(traits, np.zeros((G, d)), np.eye(n), 1.0, width, diagonal),
        PeopleState(z, z.copy(), np.zeros(U), np.zeros(U, dtype=np.int64)),
        ClassState(B, Omega, np.full(n_classes, 1.0 / n_classes)), quadratics, np.tile(0.5 * np.eye(n), (U, 1, 1)), how,
        rng, kept,
    )  # fmt: skip
    return kept.B, kept.Omega, kept.share


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "price", "diagonal", "n", "n_classes"),
    [
        ([0, 0, 0], -1, False, 3, 1), ([0, 1, 0], -1, True, 2, 1), ([0, -1, 0], 1, False, 2, 1),
        ([0, 0], -1, False, 2, 2),
    ],
)  # fmt: skip
def test_without_answers_the_draws_are_those_of_the_prior(kind, price, diagonal, n, n_classes):
    B, Omega, _ = run(kind, price, diagonal, n, n_classes)
    for k in range(n):
        sd = np.sqrt(Omega[::_APART, 0, k, k])  # half-t with two degrees of freedom
        assert kstest(sd / 1.5, lambda x: 2.0 * t.cdf(x, 2) - 1.0).pvalue > 1e-3
        for row in range(2):
            assert kstest(B[::_APART, 0, row, k], norm.cdf).pvalue > 1e-3
    if not diagonal and n > 1:
        correlation = Omega[::_APART, 0, 0, 1] / np.sqrt(Omega[::_APART, 0, 0, 0] * Omega[::_APART, 0, 1, 1])
        assert kstest(correlation, uniform(-1.0, 2.0).cdf).pvalue > 1e-3
    for k in range(n, len(kind)):
        assert kstest(B[::_APART, 0, 0, k], norm.cdf).pvalue > 1e-3


def test_likelihoods_and_modes_are_those_of_numpy():
    rng = np.random.default_rng(0)
    D = rng.normal(size=(14, 3))
    row_ptr, choice_ptr = np.array([0, 1, 4, 8, 9, 14]), np.array([0, 3, 3, 5])
    weight = np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    kind, price = np.array([0, 1, -1], dtype=np.int8), 2
    Omega = np.array([[1.0, 0.3, 0.1], [0.3, 0.8, 0.0], [0.1, 0.0, 0.5]])
    precision, mean = np.linalg.inv(Omega), 0.3 * rng.normal(size=(3, 3))

    def log_likelihood(z, u):
        size = np.exp(z[2])
        c = np.array([z[0] * size, np.exp(z[1]) * size, -size])
        rows = [D[row_ptr[t] : row_ptr[t + 1]] @ c for t in range(choice_ptr[u], choice_ptr[u + 1])]
        used = weight[choice_ptr[u] : choice_ptr[u + 1]]
        return -sum(w * np.log1p(np.exp(row).sum()) for w, row in zip(used, rows, strict=True))

    z, slope, curvature = np.zeros((3, 3)), np.empty((3, 3)), np.empty((3, 3, 3))
    rows = loops.ChoiceRows(np.ascontiguousarray(D.T), weight, row_ptr, choice_ptr, kind, price)
    found = loops.modes(z, 3, mean, precision, rows, 200, slope, curvature)
    c = np.empty(3)
    for u in range(3):
        assert abs(found[u] - log_likelihood(z[u], u)) < EXACT
        loops.coefficients(z[u], kind, price, c)
        differences = [(log_likelihood(z[u] + e, u) - log_likelihood(z[u] - e, u)) / 2e-6 for e in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(slope[u], differences, atol=ITERATIVE)
        np.testing.assert_allclose(slope[u], precision @ (z[u] - mean[u]), atol=1e-4)  # the mode
        assert np.linalg.eigvalsh(curvature[u]).min() > -EXACT


def test_exponentials_are_those_of_numpy():
    x = np.concatenate([np.linspace(-700.0, 700.0, 1001), np.linspace(-1.0, 1.0, 1001)])
    found = [loops._exp.py_func(one) for one in x]
    np.testing.assert_allclose(found, np.exp(x), rtol=2.0**-51)


@pytest.mark.parametrize("size", [1.0, 100.0, 590.0, 5000.0])
def test_log_likelihoods_are_those_of_numpy_whatever_the_size_of_utilities(size):
    rng = np.random.default_rng(1)
    for d, n_rows in ((1, 7), (2, 8), (5, 37)):
        D = rng.uniform(-1.0, 1.0, (n_rows, d))
        row_ptr = np.array([0, 1, 2, n_rows - 3, n_rows - 1, n_rows])
        choice_ptr, weight = np.array([0, 0, 3, 4, 5]), np.array([1.0, 1.0, 2.5, 1.0, 1.0])
        c = size / d * rng.choice([-1.0, 1.0], (4, d))
        rows = loops.ChoiceRows(
            np.ascontiguousarray(D.T), weight, row_ptr, choice_ptr, np.zeros(d, dtype=np.int8), -1
        )  # fmt: skip
        owner = np.repeat(np.repeat(np.arange(4), np.diff(choice_ptr)), np.diff(row_ptr))
        v = np.einsum("rd,rd->r", D, c[owner])
        each = [logsumexp(np.append(v[low:high], 0.0)) for low, high in pairwise(row_ptr)]
        expected = [-weight[low:high] @ each[low:high] for low, high in pairwise(choice_ptr)]
        np.testing.assert_allclose(loops.log_likelihoods(c, rows), expected, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize(("kind", "price", "diagonal", "n"), [([0, 0, 1, 0], -1, False, 3), ([0, 0, -1], 2, True, 3)])
def test_slopes_in_the_population_are_differences(kind, price, diagonal, n):
    rng = np.random.default_rng(3)
    U, d, G, K = 6, len(kind), 2, 2
    choice_ptr, D = 2 * np.arange(U + 1), rng.normal(size=(4 * U, d))
    rows = loops.ChoiceRows(
        np.ascontiguousarray(D.T),
        np.ones(2 * U),
        2 * np.arange(2 * U + 1),
        choice_ptr,
        np.array(kind, dtype=np.int8),
        price,
    )
    traits, H = np.column_stack([np.ones(U), rng.normal(size=U)]), rng.normal(size=(U, d, d))
    people = PeopleState(rng.normal(size=(U, d)), np.zeros((U, d)), np.zeros(U), np.arange(U) % K)
    root = np.eye(n) if diagonal else np.tril(rng.normal(size=(n, n)) + np.eye(n))
    B = rng.normal(size=(K, G, d))
    B[:, 1:, n:], B[1:, 0, n:] = 0.0, B[0, 0, n:]
    classes = ClassState(B, np.repeat((root @ root.T)[None], K, axis=0), np.full(K, 0.5))
    people.z[:, n:] = B[0, 0, n:]
    prior = Hyperprior(traits, np.zeros((G, d)), 0.3 * np.eye(n), 0.2, 1.5, diagonal)
    scale, size = np.linspace(0.3, 1.0, n), K * (G * n + n + (0 if diagonal else n * (n - 1) // 2)) + d - n
    theta, found, step = np.empty(size), np.empty((1, size)), 1e-5
    packed(classes.B, classes.Omega, diagonal, scale, theta)
    theta += 0.2 * rng.normal(size=size)
    rest = (rows, people, classes, LogitQuadratics(rng.normal(size=(U, d)), H @ np.swapaxes(H, 1, 2)), prior, scale)
    slopes_near(theta[None], *rest, found)
    high, low = (slopes_near(theta + side * step * np.eye(size), *rest, np.empty((size, size))) for side in (1.0, -1.0))
    np.testing.assert_allclose(found[0], (high - low) / (2.0 * step), atol=1e-5, rtol=1e-5)


def test_r_hat_and_effective_size_of_known_chains():
    rng = np.random.default_rng(1)
    good = rng.normal(size=(4, 2000, 2))
    assert np.abs(r_hat(good) - 1.0).max() < 0.01
    np.testing.assert_allclose(effective_size(good), 8000, rtol=0.15)
    assert r_hat(good + np.array([0.0, 0.0, 0.0, 2.0])[:, None, None]).min() > 1.2
    slow = np.zeros((4, 20_000, 1))
    for place in range(1, slow.shape[1]):  # an autoregression with coefficient .9: 1 / 19 of the draws
        slow[:, place] = 0.9 * slow[:, place - 1] + rng.normal(size=(4, 1))
    np.testing.assert_allclose(effective_size(slow), 80_000 / 19.0, rtol=0.15)
    assert r_hat(np.ones((2, 10, 1))).tolist() == [1.0]


def test_one_person_alone_has_the_posterior_of_an_integral():
    # A conditional logit with a prior: the sampler has joint shifts alone.
    answers = {
        "left": ["a", "a", "b"] * 4,
        "right": ["b", "c", "c"] * 4,
        "winner": ["a", "a", "c"] * 3 + ["b", "c", "b"],
    }
    items = {"item": ["a", "b", "c"], "x": [1.0, 0.0, -0.5]}
    model = MixedLogit(n_draws=8000, n_jobs=1).fit(answers, items=items)
    assert not model.personal_
    unit = model.columns_.report[0, 0]
    grid = np.linspace(-15.0, 15.0, 4001)
    x = dict(zip("abc", items["x"], strict=True))
    log_p = -0.5 * 0.01 * (grid / unit) ** 2
    for left, right, winner in zip(*(answers[name] for name in ("left", "right", "winner")), strict=True):
        margin = (x[left] - x[right]) * (1.0 if winner == left else -1.0)
        log_p = log_p - np.log1p(np.exp(-grid * margin))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = grid @ p
    sd = np.sqrt((grid - mean) ** 2 @ p)
    row = model.summary().table  # of all draws; coefficients are of 400 of them
    error = sd / np.sqrt(min(model.report_["prior"]["effective_size_means"]))
    assert abs(row["estimate"][0] - mean) < 4.0 * error
    assert abs(row["sd"][0] - sd) < 4.0 * error
    assert model.worth.coefficients()["spread"][0] == 0.0


@pytest.mark.slow
def test_the_population_and_the_people_are_found_again():
    data = choices(0, n_users=150)
    model = MixedLogit(n_draws=3000, tol=1.2, n_jobs=1).fit(data.answers, items=data.items)
    table = model.worth.coefficients()
    assert (np.abs(np.array(table["mean"]) - MEAN) < 4.0 * np.array(table["sd"])).all()
    error = (np.array(table["spread_upper"]) - np.array(table["spread_lower"])) / (2.0 * 1.96)
    assert (np.abs(np.array(table["spread"]) - data.coefficients.std(axis=0)) < 4.0 * error).all()
    posterior, back = model.posterior_, model.columns_.report
    mean, covariance = moments(posterior.people)
    inside = np.abs(mean @ back.T - data.coefficients) < 1.96 * np.sqrt(
        np.einsum("ld,ude,le->ul", back, covariance, back)
    )
    assert 0.87 < inside.mean() < 0.99  # of one population, which is known with an error; test_recovery has many
    # Somebody without answers: N(b, Ω) and the uncertainty of both.
    spread = np.sqrt(np.diagonal(back @ moments(posterior.unseen)[1] @ back.T))
    law = posterior.law
    total = law.Omega[:, 0].mean(axis=0) + np.cov(law.B[:, 0, 0].T)
    np.testing.assert_allclose(spread, np.sqrt(np.diagonal(back @ total @ back.T)), rtol=0.15)


@pytest.mark.slow
def test_classes_are_found_again():
    one = choices(1, n_users=90, mean=np.array([2.0, -2.0]), Omega=0.1 * np.eye(2))
    other = choices(1, n_users=45, mean=np.array([-2.0, 2.0]), Omega=0.1 * np.eye(2))
    more = other.answers.to_frame().with_columns(user="z" + pl.col("user"))
    frame = pl.concat([one.answers.to_frame(), more])
    model = MixedLogit(n_classes=2, n_draws=600, tol=1.5, n_jobs=1).fit(frame, items=one.items)
    table = model.classes()
    np.testing.assert_allclose(sorted(set(table["share"])), [1 / 3, 2 / 3], atol=0.1)
    np.testing.assert_allclose(table["mean"], [2.0, -2.0, -2.0, 2.0], atol=0.6)
