"""Segments of people: exact against dense algebra, shrunk where small, right for strangers, and kept."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from predilect import Comparisons, Population
from predilect.data import PersonFeatures
from predilect.errors import DataError, DataWarning
from predilect.models.population.segments import Segments, _CellInformation, _Joint, _with_variance
from simulate import probit_answers
from tolerances import CONVERGED

N_ITEMS = 5
GIVEN = {
    "strength": 20.0,
    "variance": 0.4,
    "consensus_variance": 2.0,
    "calibration": None,
    "consistency": 0.0,
    "n_jobs": 1,
}


def crowd(seed: int, sizes: list[int], per_person: int = 12, effect_sd: float = 0.7):
    """Answers of people in segments, a table of people, and the truth of the segments."""
    rng = np.random.default_rng(seed)
    boards = 0.8 * rng.standard_normal(N_ITEMS) + effect_sd * rng.standard_normal((len(sizes), N_ITEMS))
    segment = np.repeat(np.arange(len(sizes)), sizes)
    utilities = boards[segment] + 0.5 * rng.standard_normal((len(segment), N_ITEMS))
    user = np.repeat(np.arange(len(segment)), per_person)
    left, right, outcome = probit_answers(rng, utilities, user)
    answers = {"user": [f"u{u:03d}" for u in user], "left": left, "right": right}
    people = {"user": [f"u{u:03d}" for u in range(len(segment))], "language": [f"s{g}" for g in segment]}
    return answers, outcome, people, boards


def fitted(answers, outcome, people, *names, **changes):
    users = PersonFeatures.from_frame(people, segments=names or "language")
    return Population(**(GIVEN | changes)).fit(answers, outcome, people=users)


@pytest.fixture(scope="module")
def small():
    """A crowd of three segments, one of them a single person, and one person without a segment."""
    answers, outcome, people, boards = crowd(4, [20, 20, 1, 1])
    people["language"][-1] = None
    return answers, outcome, people, boards


@pytest.fixture(scope="module")
def model(small):
    return fitted(*small[:3])


def dense_joint(cells, segments, inverse, consensus_variance, variances):
    """Covariance of consensus and effects, and the log evidence up to a constant, without elimination."""
    M, n = len(inverse), len(variances)
    precision = np.kron(np.diag(1.0 / np.append(consensus_variance, variances)), inverse)
    linear = np.zeros(len(precision))
    for levels, H, eta in zip(cells.levels, cells.H, cells.eta, strict=True):
        design = np.zeros(1 + n)
        design[[0, *(1 + levels)]] = 1.0
        precision += np.kron(np.outer(design, design), H)
        linear += np.kron(design, eta)
    covariance = np.linalg.inv(precision)
    evidence = 0.5 * (linear @ covariance @ linear - np.linalg.slogdet(precision)[1] - M * np.log(variances).sum())
    return covariance, evidence, covariance @ linear


@pytest.mark.parametrize("n_levels", [(3,), (2, 3), (3, 2)])
def test_covariances_and_evidence_are_those_of_dense_algebra(n_levels):
    rng, M, n = np.random.default_rng(2), 3, sum(n_levels)
    starts = np.cumsum([0, *n_levels])[:-1]
    code = np.column_stack([start + rng.integers(-1, size, 30) for start, size in zip(starts, n_levels, strict=True)])
    code = np.where(code < starts, -1, code)
    segments = Segments(code, n_levels)
    rows = np.unique(code, axis=0)
    root = rng.standard_normal((len(rows), M, 2))
    cells = _CellInformation(
        [row[row >= 0] for row in rows], root @ root.transpose(0, 2, 1), rng.standard_normal((len(rows), M))
    )
    shape = rng.standard_normal((M, M))
    inverse, variances = np.linalg.inv(np.eye(M) + 0.1 * shape @ shape.T), rng.uniform(0.1, 1.0, n)
    found = _Joint(cells, inverse, 4.0, segments, variances)
    covariance, evidence, mean = dense_joint(cells, segments, inverse, 4.0, variances)
    other = 2.0 * variances
    difference = _Joint(cells, inverse, 4.0, segments, other).log_evidence - found.log_evidence
    np.testing.assert_allclose(
        difference, dense_joint(cells, segments, inverse, 4.0, other)[1] - evidence, rtol=CONVERGED
    )
    own = np.array([(code == g).sum() for g in range(n)], dtype=float)
    mean_of = np.zeros((n, n))
    for g in range(n):
        same = segments.column_of == segments.column_of[g]
        mean_of[g, same] = own[same] / own[same].sum()
    average = np.append(1.0, mean_of[starts].sum(axis=0))
    m, C_m, differences, spread = found.summary(segments)
    A = np.kron(average[None], np.eye(M))
    np.testing.assert_allclose(m, A @ mean, atol=CONVERGED)
    np.testing.assert_allclose(C_m, A @ covariance @ A.T, atol=CONVERGED)
    for g in range(n):
        D = np.kron(np.append(0.0, np.eye(n)[g] - mean_of[g])[None], np.eye(M))
        np.testing.assert_allclose(differences[g], D @ mean, atol=CONVERGED)
        np.testing.assert_allclose(spread[g], D @ covariance @ D.T, atol=CONVERGED)
    cell_means, cell_covariances = found.of_cells(cells.levels)
    for levels, one, C in zip(cells.levels, cell_means, cell_covariances, strict=True):
        a = np.zeros(1 + n)
        a[[0, *(1 + levels)]] = 1.0
        F = np.kron(a[None], np.eye(M))
        np.testing.assert_allclose(one, F @ mean, atol=CONVERGED)
        np.testing.assert_allclose(C, F @ covariance @ F.T, atol=CONVERGED)


@pytest.mark.parametrize("truth", [0.003, 0.2, 30.0])
def test_the_variance_is_the_posterior_mean_whatever_its_size(truth):
    # Forty effects seen without noise: the posterior of their variance is inverse gamma, flat in the deviation.
    n = 40
    joint = type("Joint", (), {})

    def evidence(variances):
        joint.log_evidence = -0.5 * n * (np.log(variances[0]) + truth / variances[0])
        return joint

    found = _with_variance(evidence, np.ones(2), np.array([True, False]))
    assert found[0] == pytest.approx(n * truth / (n - 3.0), rel=0.02)
    assert found[1] == 1.0


def test_the_smallest_segments_stay_near_the_crowd(model):
    table = pl.DataFrame(model.segments())
    assert table["segment"].unique(maintain_order=True).to_list() == ["s0", "s1", "s2"]  # the largest first
    assert table["people"].to_list() == [20] * 10 + [1] * 5
    size = table.group_by("segment").agg(pl.col("difference").abs().max(), pl.col("difference_sd").mean())
    size = {row["segment"]: row for row in size.iter_rows(named=True)}
    assert size["s2"]["difference_sd"] > 1.5 * size["s0"]["difference_sd"]
    answers = table.filter(pl.col("segment") == "s2")["n"].sum()
    assert answers == 24  # twelve answers on two items each


def test_a_board_is_the_crowds_and_the_difference(model):
    crowd_mean = dict(zip(*pl.DataFrame(model.rank())["item", "mean"], strict=True))
    table = pl.DataFrame(model.segments())
    expected = [crowd_mean[item] for item in table["item"]] + table["difference"].to_numpy()
    np.testing.assert_allclose(table["mean"], expected, atol=CONVERGED)
    # The average person is the average of the people, so that differences weighted by people are none.
    total = table.group_by("item").agg((pl.col("difference") * pl.col("people")).sum())["difference"]
    np.testing.assert_allclose(total, 0.0, atol=CONVERGED)


def test_a_stranger_is_told_from_the_segment(model):
    asked = {"user": ["x", "y", "z"], "left": [0, 0, 0], "right": [3, 3, 3]}
    users = {"user": ["x", "y"], "language": ["s0", "never seen"]}
    with pytest.warns(DataWarning):
        margin = model.predict_margin(asked, people=users)[0]
    said = r"expected a table of the new persons, got PersonFeatures\. Give the table"
    with pytest.raises(DataError, match=said), pytest.warns(DataWarning):
        model.predict_margin(asked, people=PersonFeatures.from_frame(users, segments="language"))
    table = pl.DataFrame(model.segments()).filter(pl.col("segment") == "s0")
    mean = dict(zip(*table["item", "mean"], strict=True))
    board = dict(zip(*pl.DataFrame(model.rank())["item", "mean"], strict=True))
    assert margin[0] == pytest.approx(mean[0] - mean[3], abs=CONVERGED)
    np.testing.assert_allclose(margin[1:], board[0] - board[3], atol=CONVERGED)  # unknown: the average person


def test_saving_keeps_the_segments_and_an_update_joins_them(model, tmp_path):
    model.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    assert again.segments().equals(model.segments())
    assert again.describe() == model.describe()
    assert any(line.startswith('Segments by "language": 3, ') for line in again.describe())
    again.update({"user": ["new"], "left": [0], "right": [1]}, [1], people={"user": ["new"], "language": ["s2"]})
    table = pl.DataFrame(again.segments())
    assert table.filter(pl.col("segment") == "s2")["people"].unique().to_list() == [2]


def test_a_model_whose_segments_do_not_go_together_is_refused(model, tmp_path):
    broken = copy.copy(model)
    broken.hyperparameters_ = replace(model.hyperparameters_, segment_variances=(0.5, 0.5))
    broken.save(tmp_path / "model")
    with pytest.raises(DataError, match="3 covariances of 3 effects, for 3 segments"):
        Population.load(tmp_path / "model")


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"basis": "attributes"}, {"user_features": True}])
def test_a_basis_and_further_features_of_people_go_together_with_segments(small, changes, tmp_path):
    answers, outcome, people, _ = small
    rng = np.random.default_rng(1)
    people = people | {
        "age": rng.standard_normal(len(people["user"])),
        "born": rng.standard_normal(len(people["user"])),
    }
    items = {"item": np.arange(N_ITEMS), "price": [1.0, 2.0, 5.0, 3.0, 0.0], "size": [0.0, 1.0, 1.0, 4.0, 2.0]}
    users = PersonFeatures.from_frame(people, segments="language", columns=["age", "born"])
    both = Population(**(GIVEN | changes)).fit(answers, outcome, items=items, people=users)
    assert both._choices["user_features"] is ("user_features" in changes)
    assert len(both.posterior_.effects.stack) == 3 + ("user_features" in changes)
    both.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    assert again.segments().equals(both.segments())
    # Everybody's margins are the same by themselves and one after the other, and a new item has effects too.
    people_of = answers["user"][::12]
    asked = {"user": people_of, "left": [0] * len(people_of), "right": [1] * len(people_of)}
    mean, var = both.predict_margin(asked)
    for place in (0, 25, 40, 41):
        found = both.posterior_.person(place).margins(np.array([0]), np.array([1]))
        np.testing.assert_allclose(np.ravel(found), [mean[place], var[place]], atol=CONVERGED)
    new = {"user": people_of[:1], "left": [0], "right": [77]}
    features = {"item": [77], "price": [2.0], "size": [1.0]}
    assert both.predict_margin(new, items=features)[1] > 0.0


def test_segments_in_two_columns_are_told_apart(small):
    answers, outcome, people, _ = small
    # A panel that says nothing, and the language that says much.
    people = people | {"panel": np.resize(["p", "q"], len(people["user"]))}
    both = fitted(answers, outcome, people, "language", "panel")
    table = pl.DataFrame(both.segments())
    assert table["column"].unique(maintain_order=True).to_list() == ["language", "panel"]
    sd = table.group_by("column").agg(pl.col("difference").pow(2).mean().sqrt())
    sd = dict(zip(*sd["column", "difference"], strict=True))
    assert sd["language"] > 2.0 * sd["panel"]
    assert len(both.hyperparameters_.segment_variances) == 5


def test_columns_of_too_many_segments_are_refused_together(small, monkeypatch):
    monkeypatch.setattr("predilect.models.population.segments._LARGEST_REST", 3 * N_ITEMS)
    answers, outcome, people, _ = small
    people = people | {"panel": np.resize(["p", "q", "r", "s"], len(people["user"]))}
    with pytest.raises(DataError, match=r"7 segments in 2 columns are too many .* Ask for one column"):
        fitted(answers, outcome, people, "language", "panel")


def test_people_who_are_not_told_apart_have_no_segments(small):
    answers, outcome, people, _ = small
    with pytest.raises(DataError, match=r"the pooled model tells nobody apart.*personal=True"):
        fitted(answers, outcome, people, personal=False)
    nameless = {name: answers[name] for name in ("left", "right")}
    with pytest.raises(DataError, match="the answers do not tell people apart"):
        fitted(nameless, outcome, people)
    strangers = people | {"user": [f"other {name}" for name in people["user"]]}
    with pytest.raises(DataError, match="nobody who answered has a segment"):
        fitted(answers, outcome, strangers)


def test_without_segments_there_are_no_boards_of_them(small):
    answers, outcome, _, _ = small
    with pytest.raises(DataError, match="knows no segments"):
        Population(**GIVEN).fit(answers, outcome).segments()


@pytest.mark.slow
def test_intervals_hold_where_a_segment_has_few_answers_an_item():
    # Ten answers an item and segment, the prior of people given as it is. The effects, of .4, come out at .43, and
    # errors are .95 standard deviations; with the effects taken for known where sites are made it was .37, and 1.07.
    spread, deviation = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        effects = 0.4 * rng.standard_normal((25, 40))
        segment = np.repeat(np.arange(25), 20)
        utilities = 0.8 * rng.standard_normal(40) + effects[segment] + 0.6 * rng.standard_normal((500, 40))
        user = np.repeat(np.arange(500), 10)
        left, right, outcome = probit_answers(rng, utilities, user)
        people = {"user": np.arange(500), "language": [f"s{g:02d}" for g in segment]}
        given = {"variance": 0.36, "strength": 1e4, "consensus_variance": 0.6}
        model = fitted({"user": user, "left": left, "right": right}, outcome, people, **given)
        truth = effects - effects.mean(axis=0)
        truth -= truth.mean(axis=1, keepdims=True)
        table = pl.DataFrame(model.segments()).sort("segment", "item")
        spread.append(((table["difference"] - truth.ravel()) / table["difference_sd"]).std())
        deviation.append(model.hyperparameters_.segment_variances[0] ** 0.5)
    assert 0.85 < np.mean(spread) < 1.05
    assert 0.38 < np.mean(deviation) < 0.47


@pytest.mark.slow
def test_borrowing_beats_no_segments_and_separate_fits_and_covers_the_truth():
    # python -m benchmarks.segments measures this on more and larger crowds.
    gains, inside = [], []
    for seed in range(3):
        answers, outcome, people, boards = crowd(seed, [20] * 10, effect_sd=0.5)
        model = fitted(answers, outcome, people)
        plain = Population(**GIVEN).fit(answers, outcome)
        table = pl.DataFrame(model.segments()).sort("segment", "item")
        truth = boards - boards.mean(axis=1, keepdims=True)
        inside.append(np.abs(table["mean"].to_numpy() - truth.ravel()) < 1.96 * table["sd"].to_numpy())
        board = pl.DataFrame(plain.rank()).sort("item")["mean"].to_numpy()
        apart = []
        for name in sorted(set(people["language"])):
            own = np.array([people["language"][int(user[1:])] == name for user in answers["user"]])
            rows = Comparisons.from_frame({k: np.array(v)[own] for k, v in answers.items()}, outcome=outcome[own])
            apart.append(pl.DataFrame(Population(**GIVEN).fit(rows).rank()).sort("item")["mean"].to_numpy())
        errors = [
            np.mean((found - truth) ** 2) for found in (table["mean"].to_numpy().reshape(truth.shape), board, apart)
        ]
        gains.append([errors[1] - errors[0], errors[2] - errors[0]])
    assert (np.array(gains) > 0.0).all()
    assert 0.90 < np.mean(inside) < 0.99
