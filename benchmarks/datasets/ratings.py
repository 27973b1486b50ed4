"""Pairs that are derived from ratings, votes or measurements: the answers of a person never contradict each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.splits import split_answers
from benchmarks.task import Loader, Task, expect, read_answers, read_csv, split_comparisons, split_rows, winner_outcome

__all__ = ["PARTIES", "TASKS", "most_rated", "strict_pairs"]

PARTIES = ("Con", "Lab", "LD", "UKIP", "Green", "BNP", "SNP", "PC")
POLIS_CONVERSATION = "vtaiwan.uberx"
# Pairs a person, training and test: ratings hold thousands of pairs that follow from each other.
FACEBOOK_PAIRS = (40, 40)
MOVIE_PAIRS = (30, 10)
POLIS_PAIRS = (20, 5)


def load_jura(seed: int) -> Task:
    """Houlsby et al.'s protocol A: 100 places, 15 of the 21 pairs of metals for training, the rest for the test."""
    frame, items = read_csv("jura", "comparisons.csv"), read_csv("jura", "items.csv").drop("name")
    measured, users = read_csv("jura", "measurements.csv"), read_csv("jura", "users.csv").drop("split")
    expect(
        "jura",
        users=(len(users), 359),
        comparisons=(len(frame), 7_539),
        items=(len(items), 7),
    )
    chosen = np.random.default_rng(seed).permutation(359)[:100].tolist()
    frame = frame.filter(pl.col("user").is_in(chosen))
    everything = read_answers(frame, winner_outcome(frame))
    _, test = split_answers(everything, n_test_per_person=6, random_state=seed)
    z = pl.exclude("user").log()
    gold = measured.with_columns((z - z.mean()) / z.std()).filter(pl.col("user").is_in(chosen))
    return split_comparisons("jura", seed, everything, test, items=items, users=users, gold=_long(gold))


def load_election(seed: int, test_share: float = 0.25) -> Task:
    """75 / 25 of the pairs of parties that stood in each of the 632 constituencies."""
    frame, votes = read_csv("uk_election_2010", "comparisons.csv"), read_csv("uk_election_2010", "votes.csv")
    items = read_csv("uk_election_2010", "items.csv").drop("party_id", "family", "expert")
    users = read_csv("uk_election_2010", "users.csv").drop("constituency", "name")
    expect(
        "uk_election_2010",
        constituencies=(frame["user"].n_unique(), 632),
        comparisons=(len(frame), 6_761),
        parties=(len(items), 8),
    )
    everything = read_answers(frame, winner_outcome(frame))
    _, test = split_answers(everything, test_share, random_state=seed)
    # Shares, so that places of different size are on one scale.
    gold = _long(votes.select("user", *PARTIES)).drop_nulls()
    gold = gold.with_columns(pl.col("score") / pl.col("score").sum().over("user"))
    return split_comparisons("uk-election-2010", seed, everything, test, items=items, users=users, gold=gold)


def load_facebook(seed: int) -> Task:
    """Pubs and restaurants, ties included: 40 pairs of each rater for training, 40 for the test."""
    frame = read_csv("facebook_social", "comparisons.csv.gz")
    ratings = pl.concat([_long(read_csv("facebook_social", f"ratings_{d}.csv")) for d in ("pubs", "restaurants")])
    missing = ratings.filter(pl.col("score") == 0).with_columns(pl.lit(True).alias("missing"))
    expect(
        "facebook_social",
        raters=(frame["user"].n_unique(), 97),
        pairs=(len(frame), 34_929),
        ties=(int((frame["winner"] == "tie").sum()), 9_444),
        items=(ratings["item"].n_unique(), 39),
        ratings_of_zero=(len(missing), 1),
    )
    for side in ("left", "right"):
        frame = frame.join(missing.rename({"item": side}), on=["user", side], how="anti", maintain_order="left")
    outcome = winner_outcome(frame, "tie")
    role = _sampled(frame["user"].to_numpy(), *FACEBOOK_PAIRS, np.random.default_rng(seed))
    kept = role >= 0
    gold = ratings.filter(pl.col("score") > 0)
    return split_rows("facebook-social", seed, frame.filter(pl.Series(kept)), outcome[kept], role[kept] == 1, gold=gold)


def load_movies(seed: int, *, n_movies: int) -> Task:
    """Pairs of the most-rated movies that a person rated differently.

    Ten movies: 80 / 20 of the pairs of everyone with at least five of them. More: 30 + 10 random pairs a person.
    """
    items, table = most_rated(n_movies)
    frame = strict_pairs(table)
    rng = np.random.default_rng(seed)
    name = f"movielens-{n_movies}"
    users = read_csv("movielens_100k", "users.csv")
    if n_movies == 10:
        frame = frame.filter(pl.len().over("user") >= 5)
        everything = read_answers(frame, np.ones(len(frame)))
        _, test = split_answers(everything, 0.2, random_state=rng)
        return split_comparisons(name, seed, everything, test, items=items, users=users, gold=table)
    role = _sampled(frame["user"].to_numpy(), *MOVIE_PAIRS, rng)
    kept = role >= 0
    return split_rows(
        name, seed, frame.filter(pl.Series(kept)), np.ones(kept.sum()), role[kept] == 1, items=items, users=users,
        gold=table,
    )  # fmt: skip


def most_rated(n_movies: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Features of the most-rated movies, and people's scores of them (user, item, score)."""
    ratings, movies = read_csv("movielens_100k", "ratings.csv.gz"), read_csv("movielens_100k", "items.csv")
    expect(
        "movielens_100k",
        users=(ratings["user"].n_unique(), 943),
        movies=(len(movies), 1_682),
        ratings=(len(ratings), 100_000),
    )
    # Equally often rated movies: the smaller id first.
    most = ratings.group_by("item").len().sort(["len", "item"], descending=[True, False])["item"][:n_movies]
    scores = ratings.filter(pl.col("item").is_in(most.to_list())).select("user", "item", score="rating")
    return movies.filter(pl.col("item").is_in(most.to_list())).drop("title"), scores


def load_polis(seed: int) -> Task:
    """Statements that a person agreed with before those that they disagreed with, one conversation (vTaiwan, Uber).

    A quarter of the statements that a person voted on is held out, since a pair whose statements both took part in
    training pairs gives the votes away: 20 training pairs among the others, 5 test pairs among the held-out ones.
    """
    votes = read_csv("polis_votes", "votes.csv.gz").with_columns(score=pl.col("vote"))
    expect("polis_votes", votes=(len(votes), 702_475), agreed=(int((votes["vote"] == 1).sum()), 382_345))
    votes = votes.filter(pl.col("conversation") == POLIS_CONVERSATION)
    expect(
        POLIS_CONVERSATION,
        users=(votes["user"].n_unique(), 1_921),
        statements=(votes["item"].n_unique(), 197),
        votes=(len(votes), 49_443),
    )
    rng = np.random.default_rng(seed)
    votes = votes.sort("user", "item").with_columns(held_out=pl.Series(rng.random(len(votes)) < 0.25))
    votes = votes.filter(pl.col("vote") != 0)
    parts, masks = [], []
    for part, n_pairs in enumerate(POLIS_PAIRS):
        pairs = strict_pairs(votes.filter(pl.col("held_out") == bool(part)))
        parts.append(pairs.filter(pl.Series(_sampled(pairs["user"].to_numpy(), n_pairs, 0, rng) == 0)))
        masks.append(np.full(len(parts[-1]), bool(part)))
    frame = pl.concat(parts)
    return split_rows("polis", seed, frame, np.ones(len(frame)), np.concatenate(masks))


def strict_pairs(scores: pl.DataFrame) -> pl.DataFrame:
    """All pairs of a person's items with different scores, the better one on the left; columns user, left, right."""
    table = scores.select("user", "item", "score")
    both = table.rename({"item": "left"}).join(table.rename({"item": "right"}), on="user", suffix="_right")
    return both.filter(pl.col("score") > pl.col("score_right")).select("user", "left", "right").sort(pl.all())


def _sampled(
    person: npt.NDArray[np.int64], n_train: int, n_test: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """0 for a training row, 1 for a test row, -1 for a row left out; at random within each person.

    People with fewer rows than wanted keep the proportion, rounded, and at least one row for training.
    """
    _, code, count = np.unique(person, return_inverse=True, return_counts=True)
    order = np.lexsort((rng.random(len(code)), code))
    place = np.empty(len(code), dtype=np.int64)
    place[order] = np.arange(len(code)) - np.repeat(np.cumsum(count) - count, count)
    total = np.minimum(count, n_train + n_test)
    train = np.maximum(1, np.round(total * n_train / (n_train + n_test)))[code]
    return np.where(place < train, 0, np.where(place < total[code], 1, -1))


def _long(wide: pl.DataFrame) -> pl.DataFrame:
    """One row a (user, item), with its score."""
    return wide.unpivot(index="user", variable_name="item", value_name="score").with_columns(
        pl.col("score").cast(float)
    )


TASKS: dict[str, Loader] = {
    "jura": load_jura,
    "uk-election-2010": load_election,
    "facebook-social": load_facebook,
    "movielens-10": lambda seed: load_movies(seed, n_movies=10),
    "movielens-200": lambda seed: load_movies(seed, n_movies=200),
    "polis": load_polis,
}
