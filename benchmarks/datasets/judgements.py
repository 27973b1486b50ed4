"""Crowds that judge texts, ties included: answers of language models, and arguments."""

from __future__ import annotations

import numpy.typing as npt
import polars as pl

from benchmarks.splits import split_answers
from benchmarks.task import Loader, Task, expect, read_answers, read_csv, split_comparisons, winner_outcome

__all__ = ["TASKS"]

TEST_SHARE = 0.2


def load_llmfao(seed: int, *, by_model: bool) -> Task:
    """80 / 20 of each worker's labels; the items are the 750 responses, or the 59 models that wrote them."""
    frame = read_csv("llmfao", "comparisons.csv.gz")
    responses = read_csv("llmfao", "items.csv.gz").drop("response")
    expect(
        "llmfao",
        labels=(len(frame), 8_931),
        workers=(frame["user"].n_unique(), 124),
        ties=(int((frame["winner"] == "tie").sum()), 3_471),
        items=(len(responses), 750),
        models=(responses["model"].n_unique(), 59),
    )
    outcome = winner_outcome(frame, "tie")
    if not by_model:
        features = responses.select("item", pl.col("model").cast(pl.String), "n_words", "n_chars")
        return _by_person("llmfao-responses", seed, frame, outcome, features)
    names = responses.select("item", "model")
    for side in ("left", "right"):
        frame = frame.join(names.rename({"item": side, "model": f"{side}_model"}), on=side, maintain_order="left")
    models = frame.select("user", left="left_model", right="right_model")
    return _by_person("llmfao-models", seed, models, outcome, None)


def load_arguments(seed: int, *, crowd_sample: bool) -> Task:
    """80 / 20 of each worker's labels: all 84 445, or crowdGPPL's sample of one label a pair."""
    frame = read_csv("ukpconvarg", "comparisons.csv.gz")
    items = read_csv("ukpconvarg", "items.csv.gz")
    expect(
        "ukpconvarg",
        labels=(len(frame), 84_445),
        workers=(frame["user"].n_unique(), 3_815),
        ties=(int((frame["winner"] == "tie").sum()), 19_105),
        sampled=(int(frame["in_crowdsample"].sum()), 16_927),
        arguments=(len(items), 1_052),
    )
    name = "ukpconvarg"
    if crowd_sample:
        frame, name = frame.filter(pl.col("in_crowdsample") == 1), "ukpconvarg-crowdsample"
    # Not the gold rank, nor anything else that was computed from labels.
    features = items.select("item", log_words=(pl.col("n_words") + 1).log())
    return _by_person(name, seed, frame, winner_outcome(frame, "tie"), features)


def _by_person(
    name: str, seed: int, frame: pl.DataFrame, outcome: npt.ArrayLike, features: pl.DataFrame | None
) -> Task:
    everything = read_answers(frame, outcome)
    _, test = split_answers(everything, TEST_SHARE, random_state=seed)
    return split_comparisons(name, seed, everything, test, items=features)


TASKS: dict[str, Loader] = {
    "llmfao-models": lambda seed: load_llmfao(seed, by_model=True),
    "llmfao-responses": lambda seed: load_llmfao(seed, by_model=False),
    "ukpconvarg": lambda seed: load_arguments(seed, crowd_sample=False),
    "ukpconvarg-crowdsample": lambda seed: load_arguments(seed, crowd_sample=True),
}
