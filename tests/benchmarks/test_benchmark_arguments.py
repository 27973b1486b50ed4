"""Held-out topics: nothing of the test topic but the texts is known in training."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.datasets import MOST_SEEDS, TASKS, default_seeds
from benchmarks.datasets.arguments import N_TOPICS, argument_features, page_rank, strict_labels
from benchmarks.task import Task, read_csv

from tolerances import EXACT

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def topic_of() -> dict[str, int]:
    items = read_csv("ukpconvarg", "items.csv.gz")
    return dict(zip(items["item"].to_list(), items["topic_id"].to_list(), strict=True))


def topics(task: Task, side: str, topic_of: dict[str, int]) -> set[int]:
    rows = getattr(task, side)
    both = np.concatenate([rows.left, rows.right])
    return {topic_of[item] for item in rows.items.labels(np.unique(both)).tolist()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ukp-topics", "ukp-topics-all"])
def test_no_label_of_the_test_topic_is_trained_on(name: str, topic_of: dict[str, int]) -> None:
    task = TASKS[name](5)
    assert topics(task, "train", topic_of) == set(range(N_TOPICS)) - {5}
    assert topics(task, "test", topic_of) == {5}
    assert not task.train.has_ties
    assert not task.test.has_ties
    for held in task.further.values():
        pairs = set(held.test.left.tolist()) | set(held.test.right.tolist())
        assert {topic_of[item] for item in held.test.items.labels(np.array(sorted(pairs))).tolist()} == {5}
    assert task.train.n_items == 1_052


@pytest.mark.slow
def test_every_label_of_the_sample_is_tested_once() -> None:
    total = sum(TASKS["ukp-topics"](k).test.n_answers for k in (0, 9, 31))
    wanted = strict_labels(crowd_sample=True).filter(pl.col("topic_id").is_in([0, 9, 31]))
    assert total == len(wanted)
    assert default_seeds("ukp-topics") == list(range(N_TOPICS))
    assert MOST_SEEDS["ukp-topics"] == N_TOPICS
    with pytest.raises(IndexError, match="no 32"):
        TASKS["ukp-topics"](32)


@pytest.mark.slow  # all texts are read
def test_groups_of_answers() -> None:
    task = TASKS["ukp-topics"](3)
    consensus, busy, everything = (task.further[key] for key in ("consensus", "over_50", "all_labels"))
    assert not consensus.test.has_users
    gold = read_csv("ukpconvarg", "gold.csv").filter((pl.col("in_strict") == 1) & (pl.col("topic_id") == 3))
    assert consensus.test.n_answers == len(gold.filter(pl.col("winner") != "tie"))
    assert 0 < busy.test.n_answers < task.test.n_answers < everything.test.n_answers
    assert set(busy.test.users.ids) < set(task.test.users.ids)
    # A higher gold score is more convincing: it wins most gold labels.
    assert consensus.gold is not None
    score = dict(consensus.gold.iter_rows())
    left, right = (consensus.test.items.labels(side).tolist() for side in (consensus.test.left, consensus.test.right))
    agree = [(score[a] - score[b]) * y > 0 for a, b, y in zip(left, right, consensus.test.outcome, strict=True)]
    assert np.mean(agree) > 0.85


@pytest.mark.slow
def test_personal_ranks_agree_with_the_labels_they_come_from() -> None:
    task = TASKS["ukp-topics"](3)
    assert task.gold is not None
    assert set(task.test.users.ids) <= set(task.gold["user"].to_list())
    score = {(user, item): value for user, item, value in task.gold.iter_rows()}
    test = task.test
    who, left, right = test.users.labels(test.user), test.items.labels(test.left), test.items.labels(test.right)
    agree = [(score[u, a] - score[u, b]) * y > 0 for u, a, b, y in zip(who, left, right, test.outcome, strict=True)]
    assert np.mean(agree) > 0.85
    labelled = {(u, a) for u, a in zip(who, left, strict=True)} | {(u, b) for u, b in zip(who, right, strict=True)}
    assert labelled <= set(score)


def test_page_rank() -> None:
    """A walk that ends at c jumps anywhere: by hand, a = j, b = j + .85 a, c = j + .85 b with j = (.15 + .85 c) / 3."""
    edges = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    a, b, c = 1.0, 1.85, 1.0 + 0.85 * 1.85
    np.testing.assert_allclose(page_rank(edges), np.array([a, b, c]) / (a + b + c), atol=EXACT)


@pytest.mark.slow
def test_features_are_of_texts_alone() -> None:
    features = argument_features()
    assert features.shape[0] == 1_052
    values = features.drop("item").to_numpy()
    assert np.isfinite(values).all()
    assert (values.std(axis=0) > 0).all()
    known = {"rank_score", "votes_up", "votes_down", "winner", "mace_competence"}
    assert not known & set(features.columns)
    # Nothing that was computed from labels is among them in disguise: the strongest correlation with the gold rank,
    # within topics, is that of length (about .6).
    items = read_csv("ukpconvarg", "items.csv.gz")
    rank = items.select(r=pl.col("rank_score").rank().over("topic_id") / pl.len().over("topic_id"))["r"].to_numpy()
    r = np.abs(np.corrcoef(values.T, rank)[-1, :-1])
    assert features.columns[1 + int(r.argmax())] in ("log_words", "log_characters", "log_types", "sqrt_words")
    assert r.max() < 0.8
