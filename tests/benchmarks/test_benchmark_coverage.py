"""Coverage of intervals: the truth that is simulated from, and small seeded runs of the benchmark."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.coverage import (
    ITEMS,
    PROFILES,
    SCENARIOS,
    X,
    averages,
    contexts,
    importances,
    main,
    noise,
    people,
    shares,
)

from benchmarks import coverage
from predilect.decisions.conjoint import OF
from tolerances import EXACT, STATISTICAL


def test_weights_of_people_have_the_means_of_the_population_and_levels_sum_to_0() -> None:
    weights = people(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(weights[:, 2:5].sum(axis=1), 0.0, atol=EXACT)
    np.testing.assert_allclose(weights[:, 5:].sum(axis=1), 0.0, atol=EXACT)
    assert (np.abs(weights.mean(axis=0) - coverage.MEANS @ coverage.LEVELS) < STATISTICAL * 0.01).all()
    place = PROFILES.index((3.0, 1.0, "b", "yes"))
    assert [ITEMS[name][place] for name in ("price", "size", "brand", "milk")] == [3.0, 1.0, "b", "yes"]
    np.testing.assert_array_equal(X[place], [3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    assert importances(np.array([[-1.0, 0.5, 1.0, 0.0, -1.0, -0.5, 0.5]])) == pytest.approx(
        {"price": 3 / 7, "size": 1 / 7, "brand": 2 / 7, "milk": 1 / 7}
    )


@pytest.mark.parametrize("is_logit", [False, True])
def test_shares_are_those_of_people_who_choose(is_logit: bool) -> None:
    rng = np.random.default_rng(1)
    weights, items = people(300, rng), SCENARIOS["four"]
    V = (weights @ X[items].T)[:, None] + noise((300, 400, 4), is_logit, rng)
    drawn = np.bincount(V.argmax(axis=2).ravel(), minlength=4) / 120_000
    found = shares(weights, items, is_logit, False)
    assert (np.abs(found - drawn) < STATISTICAL * np.sqrt(found * (1 - found) / 120_000)).all()
    sure = shares(weights, items, is_logit, True)
    np.testing.assert_allclose(sure, np.bincount((weights @ X[items].T).argmax(axis=1), minlength=4) / 300)


# Few studies: a coverage is held to the bar less two standard errors over studies of a coverage of .93.


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("n_people", "of_importances", "of_shares"), [(80, 0.89, 0.91), (20, 0.93, 0.92)])
def test_averages_hold_the_population_they_are_of(n_people, of_importances, of_shares, monkeypatch) -> None:
    monkeypatch.setattr(coverage, "N_OF_POPULATION", 20_000)
    coverage.truth_of_population.cache_clear()
    records = [one for seed in range(1000, 1016) for one in averages("Population of attributes alone", n_people, seed)]
    coverage.truth_of_population.cache_clear()
    population, respondents = ([one for one in records if one["of"] == of] for of in OF)
    for name, bar in (("importance", of_importances), ("share", of_shares), ("first_choice", of_shares)):
        holds, error, width = coverage.coverage(population, name)
        assert holds > bar - 2 * max(error, 0.02), (name, holds, error)
        assert width > 1.2 * coverage.coverage(respondents, name)[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("n_contexts", [2, 6, 8])
def test_scores_hold_the_truth_where_contexts_are_few(n_contexts) -> None:
    records = [one for seed in range(1000, 1024) for one in contexts(True, n_contexts, seed)]
    holds, error, _ = coverage.coverage(records, "difference")
    assert holds > 0.94 - 2 * max(error, 0.015), (holds, error)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_tells_every_cell_and_runs_go_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(coverage, "N_OF_POPULATION", 1000)
    monkeypatch.setattr(
        coverage, "MODELS", {"Population of attributes alone": coverage.MODELS["Population of attributes alone"]}
    )
    monkeypatch.setattr(coverage, "PEOPLE", (20,))
    monkeypatch.setattr(coverage, "CONTEXTS", (4,))
    coverage.truth_of_population.cache_clear()
    for n_studies in ("1", "2"):
        assert main(["averages", "contexts", "--studies", n_studies, "--out", str(tmp_path)]) == 0
    coverage.truth_of_population.cache_clear()
    records = [json.loads(line) for line in (tmp_path / "coverage.jsonl").read_text().splitlines()]
    assert [(one["part"], one["seed"]) for one in records] == [
        (part, seed) for seed in (0, 1) for part in ("averages", "averages", "contexts", "contexts")
    ]
    page = (tmp_path / "coverage.md").read_text()
    assert page.count("| Population of attributes alone | 20 | population | 2 |") == 2
    assert "| personal | 4 | 2 |" in page
