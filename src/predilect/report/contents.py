"""What a report says: everything that its page and its Markdown show, gathered once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl

from predilect._text import amount, grouped, percent
from predilect._types import FloatArray
from predilect.charts.facts import (
    MOST_ITEMS,
    Pairs,
    PeopleMap,
    has_attributes,
    pairs_of,
    part_worths_of,
    people_map,
    rank_shares,
)
from predilect.charts.svg import name_of
from predilect.data import Finding, check
from predilect.decisions.scales import SCALES, Scale
from predilect.decisions.versus import chances_of_no_side
from predilect.evaluation.verdict import Verdict
from predilect.report.changes import Changes
from predilect.report.leaderboard import shared_segments

MOST_WITH_DRAWS = 5000  # people
_QUESTIONS, _NEEDY = 5, 3
_NOT_JUDGED = "Whether people differ so much that each needs an own ranking was not judged on held-out answers."


@dataclass(frozen=True)
class Contents:
    """Contents of a report; what does not apply to a model is None or empty.

    ``pairs`` and ``ranks`` are the best items'; ``middle``: a place in the middle of the board, and the chances of a
    new person's answer to the leader against the item there; ``changes``: against an older model; ``made``: how it was
    made, by the name of each fact; ``name_people``: whether ids of people may stand in sentences.
    """

    title: str
    model: Any
    board: pl.DataFrame
    scale: Scale
    verdict: Verdict | None
    returned: str
    findings: Sequence[Finding] | None
    warnings: Sequence[str]
    pairs: Pairs
    ranks: FloatArray
    people: PeopleMap | None
    answerers: pl.DataFrame | None
    segments: list[pl.DataFrame]
    covariates: pl.DataFrame | None
    attributes: tuple[pl.DataFrame, pl.DataFrame] | None
    questions: pl.DataFrame
    middle: tuple[int, FloatArray]
    changes: Changes | None
    made: Mapping[str, str] = field(default_factory=dict)
    name_people: bool = False

    @property
    def n_people(self) -> int | None:
        """Number of people; None where nobody is told apart."""
        return None if self.model.users_ is None else len(self.model.users_)

    @property
    def answered(self) -> str:
        """Amount of answers, and of whom."""
        people = "" if self.n_people is None else f" of {grouped(self.n_people)} people"
        return f"{grouped(self.model.n_answers_)} answers{people}"


def contents_of(
    model: Any,
    *,
    scale: Scale = SCALES["probit"],
    title: str = "",
    findings: Sequence[Finding] | None = None,
    warnings: Sequence[str] = (),
    returned: str = "",
    changes: Changes | None = None,
    made: Mapping[str, str] | None = None,
    name_people: bool = False,
) -> Contents:
    """Contents of the report of a fitted model.

    ``findings``: of ``check``, by default made from the answers, if the model holds them; ``returned``: why this model
    is the one. Some seconds for a thousand items, most of it for rank probabilities and questions.
    """
    board = pl.DataFrame(model.rank(scale=scale))
    if findings is None and model.comparisons_ is not None:
        findings = check(model.comparisons_, None if model.features_ is None else model.features_.ids)
    tables = model.further_tables()
    best = board["item"].head(MOST_ITEMS)
    place = max((len(board) - 1) // 2, 1)  # there are two items at least, those of an answer
    leader, other = board["item"].head(1), board["item"].slice(place, 1)
    return Contents(
        title=title or f"{grouped(len(board))} items, ranked",
        model=model,
        board=board,
        scale=scale,
        verdict=getattr(model, "verdict_", None),
        returned=returned,
        findings=findings,
        warnings=warnings,
        pairs=pairs_of(model, best),
        ranks=rank_shares(model, best),
        people=people_map(model),
        answerers=pl.DataFrame(tables["people"]()) if "people" in tables else None,
        segments=[one.board for one in shared_segments(model, scale).values()] if model.has_segments else [],
        covariates=pl.DataFrame(tables["covariates"]()) if "covariates" in tables else None,
        attributes=part_worths_of(model) if has_attributes(model) and not many_people(model) else None,
        questions=pl.DataFrame(model.suggest(None, n=_QUESTIONS)),
        middle=(place, chances_of_no_side(model, leader, other)[0]),
        changes=changes,
        made=made_by(model, name_people) | dict(made or {}),
        name_people=name_people,
    )


def many_people(model: Any) -> bool:
    """Whether what takes draws of everybody is left out."""
    return model.users_ is not None and len(model.users_) > MOST_WITH_DRAWS


def made_by(model: Any, name_people: bool) -> dict[str, str]:
    """How a model was made, by the name of each fact."""
    from predilect import __version__

    facts = {
        "Model": str(model.report_["model"]), "Seed": str(model.seed_), "Answers": grouped(model.n_answers_),
        "Predilect": __version__, "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }  # fmt: skip
    if model.users_ is not None:
        facts["People"] = grouped(len(model.users_)) + ", not named here" * (not name_people)
    return facts


def sentences(told: Contents) -> list[str]:
    """What the report says, in five sentences."""
    board, verdict = told.board, told.verdict
    first = board.row(0, named=True)
    leader, n = name_of(first["item"]), grouped(len(board))
    second = board.row(1, named=True)
    if first["p_best"] >= 0.95:
        lines = [f"{leader} is the best of {n} items, with probability {percent(first['p_best'])}."]
    else:
        lines = [
            f"{leader} leads {n} items, and is the best with probability {percent(first['p_best'])}; next is "
            f"{name_of(second['item'])} with {percent(second['p_best'])}."
        ]
    in_first, n_tiers = int((board["tier"] == 1).sum()), int(board["tier"].max())  # type: ignore[arg-type]
    tiers = "there is 1 tier" if n_tiers == 1 else f"there are {n_tiers} tiers"
    if in_first == 1:
        told_tier = f"{leader} is in the first tier alone: it is better than the next with more than 95 % probability"
    else:
        told_tier = (
            f"{in_first} items share the first tier: the leader is better than each of the others there with no more "
            "than 95 % probability"
        )
    lines.append(f"{told_tier}; {tiers} in all.")
    lines.append(_against_the_middle(told))
    lines.append(_NOT_JUDGED if verdict is None else verdict.in_short)
    vague = _vague(board).row(0, named=True)
    lines.append(
        f"All this rests on {told.answered}; least is known of {name_of(vague['item'])} ({amount(vague['n'])} "
        f"answers), whose rank may be anything from {vague['rank_low']} to {vague['rank_high']}."
    )
    return lines


def _against_the_middle(told: Contents) -> str:
    place, p = told.middle
    leader, other = (name_of(told.board["item"][k]) for k in (0, place))
    ties = f", and calls it a tie in {100 * p[1]:.0f} %" if p[1] >= 0.005 else ""
    return (
        f"Asked to choose between {leader} and {other}, in the middle of the board, a new person prefers {leader} in "
        f"{100 * p[0]:.0f} % of answers and {other} in {100 * p[2]:.0f} %{ties}."
    )


def reading_it(told: Contents) -> tuple[list[str], list[str]]:
    """How to read a board, and how not to."""
    ties = told.scale.ties(told.model.tie_threshold_, told.model.posterior_.calibration.tie_spread)
    zero = "0 is the mean of the items. " if told.scale.is_plain else ""
    read = [
        f"Score: {told.scale.meaning} {zero}{ties}".strip(),
        "95 % interval: where the score lies with probability 95 %, going by these answers. That of the rank says "
        "which ranks are possible.",
        "P(best): the probability that the item is the best of the list.",
        "Tier: a new one opens at the first item that the tier's leader beats with more than 95 % probability.",
    ]
    relation = told.model.relation()
    if relation:
        read.insert(0, f"Whose ranking: {relation[0].lower()}{relation[1:]}.")
    return read, [
        "Do not read much into the order within a tier.",
        "Do not compare scores with those of another board: only differences within one board mean anything.",
        "Two intervals that overlap do not say that two items are equal: scores of items that were compared with each "
        "other vary together. The pairs below say how sure an order is.",
        "P(best) is no share of votes: 80 % does not mean that 80 % of people like the item best.",
        "The ranking is about the items that were shown and the people who answered. It does not say what others "
        "would answer, nor that an item is good.",
    ]


def _vague(board: pl.DataFrame) -> pl.DataFrame:
    """A board by how little is known of the ranks, the least first."""
    return board.sort(pl.col("rank_high") - pl.col("rank_low"), descending=True, maintain_order=True)


def needy(board: pl.DataFrame) -> list[str]:
    """Items of whose rank least is known, in words."""
    return [
        f"{name_of(row['item'])} (rank {row['rank_low']} to {row['rank_high']}, {amount(row['n'])} answers)"
        for row in _vague(board).head(_NEEDY).iter_rows(named=True)
    ]
