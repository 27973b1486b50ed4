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
  convincing, so it is turned round); personal tau is with the same rank, for every worker with a test label in the
  topic. The text does not say what the published personal tau was taken with; a worker has too few labels for a
  ranking.

Features are label-free numbers of the texts (:mod:`benchmarks.datasets.texts`), over all 1 052 texts. Votes, gold
ranks and the authors' estimates of competence are used nowhere.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

from benchmarks.datasets import texts
from benchmarks.task import HeldOut, Loader, Task, expect, read_answers, read_csv, split_rows, winner_outcome
from predilect.data import Comparisons, Vocabulary

__all__ = ["MOST_LABELS", "N_TOPICS", "TASKS", "argument_features", "load_topic", "strict_labels"]

N_TOPICS = 32
MOST_LABELS = 50  # workers with more of them in the sample are a group of their own
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
    gold = _gold_rank(topic)
    workers = pl.DataFrame({"user": test["user"].unique(maintain_order=True)})
    both = pl.concat([train, test])
    return split_rows(
        name, topic, both, winner_outcome(both), np.arange(len(both)) >= len(train), vocabulary=vocabulary,
        items=features, gold=workers.join(gold, how="cross"),
        further={
            "consensus": HeldOut(_consensus(topic, vocabulary), gold),
            "over_50": HeldOut(_answers(test.filter(pl.col("user").is_in(_busy_workers())), vocabulary)),
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
