"""Arguments of an unseen topic (UKPConvArg1): each of the 32 topics is held out in turn, so the seed is its number.

The protocol of crowdGPPL's arguments experiment (protocols.md P2a), as far as its text and its code tell:

- **training**: the strict labels of the other 31 topics in UKPConvArgCrowdSample, one worker's label a pair (about
  12 800 of 16 400; ``ukp-topics-all``: all workers' strict labels, about 63 000). Labels "equal" are left out: a tie
  says that two utilities are close, which the published likelihood cannot say, and half an answer each way, which is
  what the original code makes of it, only makes margins smaller.
- **test**: the sampled labels of the held-out topic, predicted for the worker who gave them; ties are skipped, as the
  original code skips them. ``over_50`` holds those of the workers with more than 50 labels in the sample (45 people,
  half of the labels), ``all_labels`` all workers' strict labels of the topic.
- **consensus**: the gold label of each pair in UKPConvArgStrict (decided by all its five workers and the authors'
  estimate of their competence), predicted for nobody in particular.
- **tau** of the consensus is with the gold rank of the topic's arguments (PageRank of the gold labels; lower is more
  convincing, so it is turned round). Personal tau is as the original code has it: with the PageRank of the worker's own
  sampled labels in the topic, ties included (edges from the winner to the loser, both ways for a tie), over the
  arguments that the worker labelled, and the mean over workers who have training labels too.

Features are label-free numbers of the texts (:mod:`benchmarks.datasets.texts`), over all 1 052 texts. Votes, gold
ranks and the authors' estimates of competence are used nowhere.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.datasets import texts
from benchmarks.task import HeldOut, Loader, Task, expect, read_answers, read_csv, split_rows, winner_outcome
from predilect.data import Comparisons, Vocabulary

__all__ = ["MOST_LABELS", "N_TOPICS", "TASKS", "argument_features", "load_topic", "page_rank", "strict_labels"]

N_TOPICS = 32
MOST_LABELS = 50  # workers with more of them in the sample are a group of their own
RANK_DIGITS = 5  # of a personal rank, as the original code writes them: beyond are no differences
# Singular vectors of pieces of words and of common words. Chosen by the even-numbered topics; see README.md.
N_CHARACTERS, N_COMMON = 100, 50


@cache
def argument_features() -> pl.DataFrame:
    """Features of the 1 052 arguments, column ``item`` first; see :mod:`benchmarks.datasets.texts`."""
    items = read_csv("ukpconvarg", "items.csv.gz")
    expect("ukpconvarg", arguments=(len(items), 1_052), topics=(items["topic_id"].n_unique(), N_TOPICS))
    written = items["text"].to_list()
    topic = items["topic_id"].to_numpy()
    # Topics 2k and 2k + 1 are the two sides of one debate.
    groups = {"topic": topic, "debate": topic // 2}
    parts = [
        texts.surface(written),
        texts.rarity(written),
        texts.situation(written, groups),
        texts.semantic(written, N_CHARACTERS, "characters"),
        texts.semantic(written, N_COMMON, "common"),
    ]
    return pl.concat([items.select("item"), *parts], how="horizontal")


def strict_labels(*, crowd_sample: bool) -> pl.DataFrame:
    """Workers' labels without ties: columns user, left, right, winner, topic_id; of all labels, or of the sample."""
    frame = read_csv("ukpconvarg", "comparisons.csv.gz")
    expect(
        "ukpconvarg",
        labels=(len(frame), 84_445),
        ties=(int((frame["winner"] == "tie").sum()), 19_105),
        sampled=(int(frame["in_crowdsample"].sum()), 16_927),
    )
    if crowd_sample:
        frame = frame.filter(pl.col("in_crowdsample") == 1)
    return frame.filter(pl.col("winner") != "tie").select("user", "left", "right", "winner", "topic_id")


def load_topic(name: str, topic: int, *, train_on_all: bool) -> Task:
    """Hold out one topic.

    Raises
    ------
    IndexError
        If there is no such topic.
    """
    if not 0 <= topic < N_TOPICS:
        raise IndexError(f"{name} has topics 0 to {N_TOPICS - 1}; there is no {topic}.")
    sample, everything = strict_labels(crowd_sample=True), strict_labels(crowd_sample=False)
    train = (everything if train_on_all else sample).filter(pl.col("topic_id") != topic)
    test = sample.filter(pl.col("topic_id") == topic)
    features = argument_features()
    vocabulary = Vocabulary(features["item"])
    gold, personal, busy = _gold_rank(topic), _personal_ranks(topic), pl.col("user").is_in(_busy_workers())
    both = pl.concat([train, test])
    return split_rows(
        name, topic, both, winner_outcome(both), np.arange(len(both)) >= len(train), vocabulary=vocabulary,
        items=features, gold=personal,
        further={
            "consensus": HeldOut(_consensus(topic, vocabulary), gold),
            "over_50": HeldOut(_answers(test.filter(busy), vocabulary), personal.filter(busy)),
            "all_labels": HeldOut(_answers(everything.filter(pl.col("topic_id") == topic), vocabulary)),
        },
    )  # fmt: skip


def _busy_workers() -> list[int]:
    """Workers with more than 50 labels in the sample, ties included."""
    frame = read_csv("ukpconvarg", "comparisons.csv.gz").filter(pl.col("in_crowdsample") == 1)
    counts = frame.group_by("user").len().filter(pl.col("len") > MOST_LABELS)
    expect("ukpconvarg", workers_with_many_labels=(len(counts), 45))
    return sorted(counts["user"].to_list())


def _gold_rank(topic: int) -> pl.DataFrame:
    items = read_csv("ukpconvarg", "items.csv.gz").filter(pl.col("topic_id") == topic)
    return items.select("item", score=-pl.col("rank_score"))


def _personal_ranks(topic: int) -> pl.DataFrame:
    """Rank of every argument that a worker labelled, by their own sampled labels: columns user, item, score."""
    frame = read_csv("ukpconvarg", "comparisons.csv.gz")
    labels = frame.filter((pl.col("in_crowdsample") == 1) & (pl.col("topic_id") == topic))
    ranks = []
    for (user,), own in labels.group_by("user", maintain_order=True):
        items, codes = np.unique(own.select("left", "right").to_numpy(), return_inverse=True)
        left, right = codes.reshape(-1, 2).T
        tie, right_won = (own["winner"] == "tie").to_numpy(), (own["winner"] == own["right"]).to_numpy()
        beats = np.zeros((len(items), len(items)))
        beats[np.where(right_won, right, left), np.where(right_won, left, right)] = 1.0
        beats[right[tie], left[tie]] = 1.0
        score = -page_rank(beats).round(RANK_DIGITS)
        ranks.append(pl.DataFrame({"user": [user] * len(items), "item": items, "score": score}))
    return pl.concat(ranks)


def page_rank(edges: npt.NDArray[np.float64], damping: float = 0.85) -> npt.NDArray[np.float64]:
    """Stationary shares of a walk along the edges (from row to column) that jumps anywhere now and then, (n,)."""
    n, out = len(edges), edges.sum(axis=1, keepdims=True)
    step = np.divide(edges, out, out=np.full((n, n), 1.0 / n), where=out > 0.0)
    found: npt.NDArray[np.float64] = np.linalg.solve(np.eye(n) - damping * step.T, np.full(n, (1.0 - damping) / n))
    return found


def _consensus(topic: int, vocabulary: Vocabulary) -> Comparisons:
    """Gold labels of UKPConvArgStrict without the two that the XML calls equal, of nobody in particular."""
    gold = read_csv("ukpconvarg", "gold.csv")
    expect("ukpconvarg", strict_pairs=(int(gold["in_strict"].sum()), 11_650))
    kept = gold.filter((pl.col("in_strict") == 1) & (pl.col("topic_id") == topic) & (pl.col("winner") != "tie"))
    return _answers(kept.with_columns(user=pl.lit("gold")), vocabulary).pooled()


def _answers(frame: pl.DataFrame, vocabulary: Vocabulary) -> Comparisons:
    return read_answers(frame, winner_outcome(frame), vocabulary)


def _loader(name: str, *, train_on_all: bool) -> Loader:
    return lambda seed: load_topic(name, seed, train_on_all=train_on_all)


TASKS: dict[str, Loader] = {
    "ukp-topics": _loader("ukp-topics", train_on_all=False),
    "ukp-topics-all": _loader("ukp-topics-all", train_on_all=True),
}
