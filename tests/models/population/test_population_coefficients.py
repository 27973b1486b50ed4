"""The population of coefficients: draws against quadrature, what stands for a person's answers, and its limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from benchmarks import coverage
from predilect import Comparisons, Population
from predilect.inference.people.layout import lay_out
from predilect.models.population import coefficients as module
from predilect.models.population.coefficients import Coefficients, LinearFunctions
from predilect.models.population.fit import fit_population
from predilect.models.population.prior import PopulationPrior
from simulate import random_pairs
from tolerances import EXACT, ITERATIVE, STATISTICAL

N_ITEMS = 10


def scalar(H, h, engaged=None, precision=0.3):
    """One coefficient."""
    U = len(H)
    return Coefficients(
        np.zeros(1), np.eye(1), np.eye(1), precision, np.asarray(H)[:, None, None], np.asarray(h)[:, None],
        np.ones(U) if engaged is None else engaged,
    )  # fmt: skip


def moments_by_quadrature(linear: Coefficients):
    """Mean and variance of m, and mean of σ, given b_u ~ N(m, σ²) and σ half-t with two degrees of freedom, width 5."""
    m, log_sigma = np.meshgrid(np.linspace(-6, 6, 601), np.linspace(-7, 3, 801), indexing="ij")
    sigma = np.exp(log_sigma)
    log_p = norm.logpdf(m, 0.0, linear.prior_precision**-0.5) + log_sigma
    log_p += -1.5 * np.log1p((sigma / 5.0) ** 2 / 2.0)
    for H, h in zip(linear.information[:, 0, 0], linear.linear[:, 0], strict=True):
        # E exp(h b - H b² / 2) over b ~ N(m, σ²)
        precision = 1.0 / sigma**2
        log_p += 0.5 * (np.log(precision) - np.log(precision + H) + (h + m * precision) ** 2 / (precision + H))
        log_p -= 0.5 * m * m * precision
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = (p * m).sum()
    return mean, (p * (m - mean) ** 2).sum(), (p * sigma).sum()


@pytest.mark.parametrize("n", [4, 12])
def test_draws_have_the_moments_of_quadrature(n, monkeypatch):
    monkeypatch.setattr(module, "_N_DRAWS", 20_000)
    monkeypatch.setattr(module, "_MOST_VISITS", 10**9)
    rng = np.random.default_rng(n)
    H = rng.uniform(0.5, 3.0, n)
    linear = scalar(H, H * rng.normal(0.8, 1.2, n))
    means, (spread, lower, upper) = linear.drawn(np.eye(1), np.random.default_rng(0))
    mean, var, sigma = moments_by_quadrature(linear)
    assert abs(means.mean() - mean) < STATISTICAL * np.sqrt(var / 5_000)  # draws are not independent
    assert abs(means.var() / var - 1.0) < 0.1
    assert abs(spread[0] / sigma - 1.0) < 0.05
    assert lower < spread < upper


def test_somebody_who_clicks_at_random_says_nothing():
    rng = np.random.default_rng(3)
    H = rng.uniform(1.0, 3.0, 9)
    h = H * rng.normal(0.5, 1.0, 9)
    engaged = np.r_[np.ones(8), 0.0]
    found, without = (
        scalar(H, np.r_[h[:8], last], engaged).drawn(np.eye(1), np.random.default_rng(1)) for last in (h[8], 1e3)
    )
    np.testing.assert_array_equal(found[0], without[0])


def test_of_many_people_the_estimate_says_the_same(monkeypatch):
    rng = np.random.default_rng(4)
    U, M = 1500, 2
    root = np.array([[1.0, 0.0], [0.5, 0.7]])
    b = np.array([0.5, -1.0]) + rng.standard_normal((U, M)) @ root.T
    H = np.tile(4.0 * np.eye(M), (U, 1, 1))
    y = b + 0.5 * rng.standard_normal((U, M))
    S = np.cov(y.T) - 0.25 * np.eye(M)
    C = np.cov(y.T) / U
    linear = Coefficients(y.mean(axis=0), C, S, 1e-6, H, 4.0 * y, np.ones(U))
    report = np.array([[1.0, 0.0], [1.0, -1.0]])
    drawn = linear.drawn(report, np.random.default_rng(0))
    monkeypatch.setattr(module, "_MOST_PEOPLE", 10)
    at_estimate = linear.drawn(report, np.random.default_rng(0))
    sd = at_estimate[0].std(axis=0)
    np.testing.assert_allclose(drawn[0].mean(axis=0), at_estimate[0].mean(axis=0), atol=0.3 * sd.min())
    np.testing.assert_allclose(drawn[0].std(axis=0), sd, rtol=0.15)
    np.testing.assert_allclose(drawn[1][0], at_estimate[1][0], rtol=0.01)
    np.testing.assert_allclose(drawn[1][2] - drawn[1][1], at_estimate[1][2] - at_estimate[1][1], rtol=0.25)


def answers(seed=0, n_people=12, n_each=15):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N_ITEMS, 2))
    b = np.array([1.0, -0.5]) + 0.6 * rng.standard_normal((n_people, 2))
    rows: dict[str, list] = {name: [] for name in ("user", "left", "right", "winner")}
    for u in range(n_people):
        left, right = random_pairs(rng, n_each, N_ITEMS)
        z = (x[left] - x[right]) @ b[u] + rng.standard_normal(n_each)
        for i, j, first in zip(left.tolist(), right.tolist(), (z > 0).tolist(), strict=True):
            for name, value in zip(rows, (f"u{u:02d}", f"i{i}", f"i{j}", "left" if first else "right"), strict=True):
                rows[name].append(value)
    return Comparisons.from_frame(rows), {"item": [f"i{k}" for k in range(N_ITEMS)], "a": x[:, 0], "b": x[:, 1]}


def test_what_stands_for_answers_gives_each_person_the_posterior_of_the_fit():
    told, items = answers()
    order = [items["item"].index(item) for item in told.items.ids]
    columns = np.column_stack([items["a"], items["b"]])[order]
    functions = LinearFunctions.of(columns - columns.mean(axis=0), np.ones(N_ITEMS, dtype=bool))
    assert (functions.Phi**2).sum(axis=1).mean() == pytest.approx(1.0)
    prior = PopulationPrior(np.eye(2), 5.0, 1.0, 4.0, Phi=functions.Phi)
    people = lay_out(told, n_basis=2)
    state = fit_population(people, prior)
    linear = Coefficients._at(state, people, prior)
    posterior = state.posterior(people, prior)
    for user in range(3):
        precision = np.linalg.inv(state.Sigma) + linear.information[user]
        mean = np.linalg.solve(precision, np.linalg.solve(state.Sigma, state.m) + linear.linear[user])
        left, right = np.arange(N_ITEMS - 1), np.full(N_ITEMS - 1, N_ITEMS - 1)
        known = replace(posterior, C_m=1e-12 * np.eye(2))  # with the consensus held
        z, var = known.margins(np.full(N_ITEMS - 1, user), left, right)
        A = functions.Phi[left] - functions.Phi[right]
        np.testing.assert_allclose(A @ mean, z, atol=ITERATIVE)
        np.testing.assert_allclose(np.einsum("pi,ij,pj->p", A, np.linalg.inv(precision), A), var, atol=ITERATIVE)


def test_items_without_attributes_have_a_function_each():
    columns = np.array([[1.0], [-1.0], [0.0], [0.0]])
    functions = LinearFunctions.of(columns, np.array([True, True, False, False]))
    np.testing.assert_allclose(functions.Phi, [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, 0, 1]], atol=EXACT)
    np.testing.assert_allclose(functions.coefficients(np.array([[2.0]])), [[2.0, 0.0, 0.0]], atol=EXACT)


@pytest.mark.slow
def test_the_table_is_of_the_population_and_the_same_each_time():
    told, items = answers(n_people=40)
    model = Population(basis="items", variance=0.5, strength=20.0, n_jobs=1).fit(told, items=items)
    table = pl.DataFrame(model.worth.coefficients())
    assert table.equals(pl.DataFrame(model.worth.coefficients()))
    assert ((table["spread_lower"] < table["spread"]) & (table["spread"] < table["spread_upper"])).all()
    for attribute, mean in (("a", 1.0), ("b", -0.5)):
        row = table.filter(pl.col("attribute") == attribute).row(0, named=True)
        assert row["lower"] < mean < row["upper"]
        assert row["spread_lower"] < 0.6 < row["spread_upper"]
    pooled = Population(personal=False, n_jobs=1).fit(told, items=items)
    assert (pl.DataFrame(pooled.worth.coefficients())["spread"] == 0.0).all()


def test_contexts_widen_means():
    told, items = answers(n_people=40)
    rng = np.random.default_rng(0)
    frame = told.to_frame().with_columns(pl.Series("context", rng.integers(3, size=told.n_rows)))
    given = {"basis": "attributes", "variance": 0.5, "strength": 20.0, "consistency": 0.0, "clickers": 0.0}
    model = Population(**given, n_jobs=1).fit(
        Comparisons.from_frame(frame, columns={"context": "context"}), items=items
    )
    posterior = model.posterior_
    assert posterior.C_answers is not None
    draws = model._person_draws()
    more = draws._widening(4000, np.random.default_rng(0))
    on_basis = draws.coding.report @ draws.fit @ posterior.basis.Phi
    expected = on_basis @ (posterior.C_m - posterior.C_answers) @ on_basis.T
    np.testing.assert_allclose(more.var(axis=0), np.diagonal(expected), rtol=0.1, atol=EXACT)


def test_what_answers_hardly_tell_is_not_drawn_in_by_what_the_consensus_is_like():
    told, items = answers()
    model = Population(basis="items", variance=0.5, strength=20.0, consensus_variance=0.01, n_jobs=1)
    draws = model.fit(told, items=items)._person_draws()
    Phi = LinearFunctions.of(draws.columns, draws.known).Phi
    small, large = (Coefficients.of(draws.posterior, Phi, 0.0, variance) for variance in (0.01, 25.0))
    np.testing.assert_array_equal(small.mean, large.mean)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_intervals_hold_coefficients_of_attributes_that_nearly_say_the_same():
    records = [one for seed in range(1000, 1008) for one in coverage.collinear(80, seed)]
    holds, error, _ = coverage.coverage(records, "near-collinear")
    assert holds > 0.92 - 2 * max(error, 0.05), (holds, error)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_intervals_hold_the_population_that_people_are_drawn_from():
    records = [one for seed in range(1000, 1016) for one in coverage.coefficients(
        "Population of attributes alone", 80, seed)]  # fmt: skip
    for name, bar in (("mean", 0.92), ("spread", 0.88)):
        holds, error, _ = coverage.coverage(records, name)
        assert holds > bar - 2 * max(error, 0.02), (name, holds, error)
