"""The benchmark of decisions: what it counts, and what it writes."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from benchmarks.decide import Choices, Judged, acted, answers, chance, judged, measured, page, split, surest
from benchmarks.decide_figure import figure

from benchmarks import decide
from predilect import Population
from tolerances import EXACT

P = {
    2: [[place / 20, 1.0 - place / 20] for place in range(10, 20)],
    4: [[0.9, 0.1, 0.0, 0.0], [0.5, 0.4, 0.05, 0.05], [0.3, 0.3, 0.2, 0.2], [0.95, 0.05, 0.0, 0.0]],
}


def exact(k=2):
    """Twenty decisions of each kind, of which so many end as the probabilities say; the plain ones are too sure."""
    p = np.repeat(np.array(P[k]), 20, axis=0)
    ends = np.tile(np.arange(20) + 0.5, len(P[k]))[:, None] / 20
    is_choice = np.arange(k) == (ends > np.cumsum(p, axis=1)).sum(axis=1)[:, None]
    return Judged(np.arange(len(p)) % 7, p, is_choice, np.sqrt(p[:, 0]), is_choice[:, 0], p[:, 0])


def test_the_surest_are_taken_and_those_that_tie_share_the_last_places():
    score = np.array([0.9, 0.5, 0.7, 0.7, 0.7, 0.2])
    np.testing.assert_allclose(surest(score, 2), [1, 0, 1 / 3, 1 / 3, 1 / 3, 0], atol=EXACT)
    np.testing.assert_allclose(surest(score, 6), np.ones(6), atol=EXACT)
    np.testing.assert_allclose(surest(score, 0), np.zeros(6), atol=EXACT)


def test_acts_wrong_ends_and_costs_by_hand():
    p = np.array([[0.95, 0.05, 0.0, 0.0], [0.5, 0.45, 0.03, 0.02], [0.3, 0.25, 0.25, 0.2]])
    is_choice = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=bool)
    found = Judged(np.arange(3), p, is_choice, p[:, 0], is_choice[:, 0], p[:, 0])
    act, wrong, spent = acted(found, 0.1)
    assert act.tolist() == [True, False, False]
    assert wrong.tolist() == [True, True, False]  # the second was asked about two others than it chose
    np.testing.assert_allclose(spent, [1.0, 1.1, 0.2], atol=EXACT)


def test_for_two_options_the_rule_is_a_threshold_on_its_own_probability():
    found = exact()
    for cost in (0.05, 0.2, 0.4):
        np.testing.assert_array_equal(acted(found, cost)[0], found.p[:, 0] >= 1.0 - cost)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
def test_right_probabilities_pay(k):
    record = measured(exact(k))
    for point in record["curve"]:  # acting where it is likeliest to be right
        assert point["risk"] <= point["plain"] + EXACT
    assert record["chance"] == 1.0  # no difference
    for name in ("curve", "narrowed")[: k - 1]:
        assert max(point["risk"] for point in record[name]) <= record["always"] + EXACT
    for told in record["spent"].values():
        others = ("whole", "plain", "fixed", "always act", "always ask")
        assert told["decide"] <= min(told[way] for way in others) + EXACT
        assert told["whole"] <= told["plain"] + EXACT
        assert k == 4 or told["whole"] == pytest.approx(told["decide"], abs=EXACT)
    assert record["spent"]["0.2"]["decide"] < record["spent"]["0.2"]["plain"]
    assert record["sure"]["right"] == pytest.approx(record["sure"]["stated"], abs=EXACT)


@pytest.mark.slow
def test_the_largest_of_many_excesses_is_as_rare_by_chance_as_it_is_said_to_be():
    rng = np.random.default_rng(0)
    # Five points of a curve that share their people, and no excess: what is found is uniform.
    found = [chance(rng.normal(size=(1, 60)) + rng.normal(size=(5, 60))) for _ in range(400)]
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(np.array(found) <= level) - level) < 4.0 * np.sqrt(level * (1.0 - level) / 400)
    assert chance(np.full((5, 60), 0.5) + rng.normal(size=(5, 60))) < 0.01
    assert chance(np.zeros((3, 60))) == chance(np.zeros((0, 60))) == 1.0
    assert chance(np.array([[1.0, 1.0, 0.0]])) == pytest.approx(0.25, abs=0.03)  # two signs of two, by hand


def test_served_people_keep_some_answers_and_every_choice_stays_whole():
    rows = pl.DataFrame(
        {"user": np.repeat(np.arange(30), 60).tolist(), "task": (np.arange(1800) // 2).tolist(),
         "item": ["a", "b"] * 900, "chosen": [1, 0] * 900}
    )  # fmt: skip
    tested = []
    for fold in range(5):
        known, asked = split(rows, fold)
        assert len(known) + len(asked) == len(rows)
        assert set(known["task"]).isdisjoint(asked["task"])
        of_served = known.filter(pl.col("user").is_in(asked["user"].unique().implode())).group_by("user").len()
        assert of_served["len"].to_list() == [20] * 6  # ten answers, two rows each
        tested += asked["user"].unique().to_list()
    assert sorted(tested) == list(range(30))


@pytest.mark.slow
def test_a_fit_is_judged_and_a_page_is_written(tmp_path):
    rng = np.random.default_rng(0)
    item = rng.permuted(np.tile(np.arange(5), (300, 1)), axis=1)[:, :2]
    best = (item[:, 0] + rng.standard_normal(300) > item[:, 1]).astype(int)
    rows = pl.DataFrame({
        "user": np.repeat(np.arange(300) % 15, 2), "task": np.repeat(np.arange(300), 2), "item": item.ravel(),
        "chosen": np.column_stack([best, 1 - best]).ravel(),
    })  # fmt: skip
    choices = Choices(rows, None, is_pairs=True)
    known, asked = split(choices.rows, 0)
    told = answers(known, choices.is_pairs)
    assert told.n_answers == len(known) / 2
    found = judged(Population(personal=False, consensus_variance=1.0).fit(told), asked)
    assert len(found.p) == len(asked) / 2
    assert found.is_choice.sum() == len(found.p)
    assert found.is_choice[:, 0].mean() > 0.7
    records = [{"data": "amt-cars", "model": "Population", **measured(found), "fit_cpu_s": 1.0}]
    records.append({"data": "electricity", "model": "Population", **measured(exact(4)), "fit_cpu_s": 1.0})
    written = page(json.loads(json.dumps(records)))
    assert written.count("| amt-cars | Population |") == 5  # a curve, three costs, calibration
    assert written.count("| electricity | Population |") == 6
    figure(records, tmp_path / "decide.svg")
    assert (tmp_path / "decide.svg").stat().st_size > 1000


@pytest.mark.slow
def test_what_is_there_is_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(decide, "run", lambda data, model: {
        "data": data, "model": model, **measured(exact()), "fit_cpu_s": 1.0
    })  # fmt: skip
    arguments = ["--data", "facebook-social", "--models", "GaSPK,MixedLogit", "--out", str(tmp_path)]
    assert decide.main(arguments) == 0
    monkeypatch.setattr(decide, "run", None)
    assert decide.main(arguments) == 0
    assert len((tmp_path / "decide.jsonl").read_text().splitlines()) == 1  # no attributes for the other
    assert (tmp_path / "decide.md").exists()
