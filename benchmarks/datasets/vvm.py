"""Preferences of the valuable vector machine's experiments: 60 % of each person's answers to learn, 40 % to test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.splits import split_answers
from benchmarks.task import expect, read_answers, read_csv, winner_outcome
from predilect.data import Comparisons

__all__ = ["TASKS", "Preferences"]

TEST_SHARE = 0.4
FACEBOOK_PAIRS, LLMFAO_PEOPLE = 40, 60  # a joint process is dense


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """One repetition.

    Attributes
    ----------
    train, test : Comparisons
    items, users : data frame or None
        Features.
    best : bool array, shape (n_users, n_items)
        Each person's best items, by the codes of ``train`` and ``test``.
    """

    train: Comparisons
    test: Comparisons
    items: pl.DataFrame | None
    users: pl.DataFrame | None
    best: npt.NDArray[np.bool_]


def load_synthetic(seed: int, *, n_users: int = 50, n_items: int = 10, n_answers: int | None = None) -> Preferences:
    """Half of the items are liked (utility 10), half are not (5), by each person others; ties are left out.

    The paper draws preferences without noise: every liked item is preferred to every other one, 25 answers a person.
    [AMB] Which are liked is drawn for each person alone; what people have in common is not said.
    """
    rng = np.random.default_rng([seed, 77])
    utility = np.full((n_users, n_items), 5.0)
    for row in utility:
        row[rng.permutation(n_items)[: n_items // 2]] = 10.0
    user, a, b = (side.ravel() for side in np.indices((n_users, n_items, n_items)))
    prefers = utility[user, a] > utility[user, b]
    user, a, b = user[prefers], a[prefers], b[prefers]
    if n_answers is not None:
        some = np.sort(rng.permutation(len(user))[: int(n_answers / (1.0 - TEST_SHARE))])
        user, a, b = user[some], a[some], b[some]
    frame = pl.DataFrame({"user": user, "left": a, "right": b})
    best = utility >= utility.max(axis=1, keepdims=True)
    return _split(frame, np.ones(len(frame), dtype=np.int8), seed, None, None, best)


def load_cars(seed: int) -> Preferences:
    """The second experiment: 60 people, 20 cars, 38 answers each without the control questions."""
    frame = read_csv("amt_cars", "exp2/comparisons.csv").filter(pl.col("is_control") == 0)
    users = read_csv("amt_cars", "exp2/users.csv").drop("n_correct_controls")
    items = read_csv("amt_cars", "exp2/items.csv")
    expect("amt_cars", users=(len(users), 60), items=(len(items), 20))
    words = [pl.exclude("user", "item", "engine_capacity").cast(pl.String)]
    return _split(
        frame, winner_outcome(frame), seed, items.with_columns(words), users.with_columns(words), None
    )  # fmt: skip


def load_facebook(seed: int) -> Preferences:
    """Pubs and restaurants: 40 pairs of each of 97 raters, ties included; the best items are those rated highest."""
    frame = read_csv("facebook_social", "comparisons.csv.gz")
    rng = np.random.default_rng([seed, 78])
    order = pl.Series(rng.permutation(len(frame)))
    frame = frame.with_columns(order=order).filter(pl.col("order").rank("ordinal").over("user") <= FACEBOOK_PAIRS)
    frame = frame.drop("order")
    return _split(frame, winner_outcome(frame, "tie"), seed, None, None, None)


def load_llmfao(seed: int) -> Preferences:
    """59 models, judged by the 60 people with the most answers, ties included."""
    frame = read_csv("llmfao", "comparisons.csv.gz")
    outcome = winner_outcome(frame, "tie")
    names = read_csv("llmfao", "items.csv.gz").select("item", "model")
    for side in ("left", "right"):
        frame = frame.join(names.rename({"item": side, "model": f"{side}_model"}), on=side, maintain_order="left")
    frame = frame.select("user", left="left_model", right="right_model").with_columns(outcome=pl.Series(outcome))
    counts = frame.group_by("user").len().sort("len", "user", descending=[True, False])
    some = counts["user"].head(LLMFAO_PEOPLE)
    frame = frame.filter(pl.col("user").is_in(some.to_list()), pl.col("left") != pl.col("right"))
    return _split(frame.drop("outcome"), frame["outcome"].to_numpy(), seed, None, None, None)


TASKS: dict[str, Callable[..., Preferences]] = {
    "synthetic": load_synthetic, "cars": load_cars, "facebook": load_facebook, "llmfao": load_llmfao,
}  # fmt: skip


def _split(
    frame: pl.DataFrame,
    outcome: npt.NDArray[np.integer],
    seed: int,
    items: pl.DataFrame | None,
    users: pl.DataFrame | None,
    best: npt.NDArray[np.bool_] | None,
) -> Preferences:
    everything = read_answers(frame, outcome)
    train, test = (everything.take(rows) for rows in split_answers(everything, TEST_SHARE, random_state=seed))
    best = _never_dispreferred(everything) if best is None else best[np.ix_(everything.users.ids, everything.items.ids)]
    return Preferences(train, test, items, users, best)


def _never_dispreferred(answers: Comparisons) -> npt.NDArray[np.bool_]:
    """Items that a person was asked about and never refused; where there are none, those refused least often.

    [AMB] The paper's T, "the best items induced by the preferences", on real data.
    """
    shape = (answers.n_users, answers.n_items)
    lost, asked = np.zeros(shape), np.zeros(shape)
    for side, sign in ((answers.left, -1), (answers.right, 1)):
        np.add.at(asked, (answers.user, side), answers.weight)
        np.add.at(lost, (answers.user, side), answers.weight * (answers.outcome == sign))
    share = np.where(asked > 0, lost / np.maximum(asked, 1.0), np.inf)
    return np.asarray(share <= share.min(axis=1, keepdims=True))
