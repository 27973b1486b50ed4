"""The sections of a report, in their order: what each says of a fitted model, as data for every form of a report.

A section is a function of :class:`Contents` that gives its parts, marked ``section``; without parts it is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from predilect._base.text import amount, first_few, grouped, number, one_line, percent, shortened
from predilect.data import Comparisons, Finding, Intake, check
from predilect.data.orders import weights_of_rows
from predilect.decisions.groups import Groups
from predilect.decisions.ranking import TIER_RULE, separation_sentence
from predilect.decisions.scales import Scale
from predilect.decisions.versus import chances_of_no_side
from predilect.evaluation.verdict import Verdict, drift_in_short
from predilect.show.charts.chart import isolated, name_of
from predilect.show.charts.facts import (
    MOST_ITEMS,
    further_table,
    has_attributes,
    pairs_of,
    part_worths_of,
    people_map,
    rank_shares,
)
from predilect.show.charts.pictures import (
    MOST_ROWS,
    board_chart,
    calibration_chart,
    effects_chart,
    importances_chart,
    pairs_chart,
    part_worths_chart,
    people_chart,
    ranks_chart,
    segments_chart,
)
from predilect.show.report.changes import ASSUMPTION, Changes
from predilect.show.report.leaderboard import shared_segments
from predilect.show.report.parts import Column, Figure, Heading, List, Part, Section, Table
from predilect.show.report.tables import least_consistent, misfitting, sentence_of_pair

MOST_WITH_DRAWS = 5000  # people
MOST_LISTED = 1000  # items of the board
_JUDGES = 20  # in the table of those who fit the rest least
_QUESTIONS, _NEEDY, _MOST_CHANGES, _MOST_NAMED = 5, 3, 100, 20
Maker = Callable[["Contents"], Iterable[Part]]
_SECTIONS: list[tuple[str, str, Maker]] = []


@dataclass(frozen=True)
class Contents:
    """What all sections of a report are made of.

    ``returned``: why this model is the one; ``changes``: against an older model; ``made``: how it was made, by the name
    of each fact; ``name_people``: whether ids of people may stand in the report; ``intake``: what was read.
    """

    title: str
    model: Any
    board: pl.DataFrame
    scale: Scale
    verdict: Verdict | None
    returned: str
    findings: Sequence[Finding] | None
    warnings: Sequence[str]
    changes: Changes | None
    made: Mapping[str, str] = field(default_factory=dict)
    name_people: bool = False
    intake: Intake | None = None
    find_groups: Callable[[], Groups | None] = lambda: None

    @cached_property
    def groups(self) -> Groups | None:
        """Groups of opinion, where they were looked for; some seconds."""
        return self.find_groups()

    @cached_property
    def people(self) -> pl.DataFrame | None:
        """A row for each person who answered; None where the model has no such table."""
        return further_table(self.model, "people")

    @property
    def answered(self) -> str:
        """Amount of answers, and of whom."""
        people = f" of {self.made['People'].partition(',')[0]} people" if "People" in self.made else ""
        return f"{self.made['Answers']} answers{people}"

    @property
    def in_short(self) -> str:
        """Amounts and the date, for below the title."""
        return f"{grouped(len(self.board))} items, from {self.answered}. {self.made['Date']}"

    def parts_of(self, key: str) -> list[Part]:
        """One of the sections."""
        return [part for name, _, make in _SECTIONS if name == key for part in make(self)]

    @cached_property
    def sections(self) -> list[Section]:
        """The sections that have anything to say; some seconds for a thousand items, for ranks and questions."""
        made = [Section(key, head, list(make(self))) for key, head, make in _SECTIONS]
        return [one for one in made if one.parts]


def contents_of(
    model: Any,
    *,
    scale: Scale | None = None,
    title: str = "",
    findings: Sequence[Finding] | None = None,
    warnings: Sequence[str] = (),
    returned: str = "",
    changes: Changes | None = None,
    made: Mapping[str, str] | None = None,
    name_people: bool = False,
    intake: Intake | None = None,
    answers: Comparisons | None = None,
    groups: Callable[[], Groups | None] | None = None,
) -> Contents:
    """Contents of the report of a fitted model; ``answers``: its own, where it was loaded and holds none.

    With them, ``findings`` of ``check`` are made, what was read is told, and answers about sets are counted.
    ``groups`` finds groups of opinion, by default those of the model.
    """
    from predilect._version import __version__

    scale = scale or model._own_scale
    board = pl.DataFrame(model.rank(scale=scale))
    answers = model.comparisons_ if answers is None else answers
    n_answers, n_people = model.n_answers_, model._n_people
    if answers is not None:
        intake = answers.intake if intake is None else intake
        if findings is None:
            findings = check(answers, None if model.features_ is None else model.features_.ids)
        if answers.joint:  # an answer about several items is one
            n_answers = float(weights_of_rows(answers).sum())
    facts = {
        "Model": model._called, "Seed": str(model.seed_), "Answers": grouped(n_answers),
        "Predilect": __version__, "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }  # fmt: skip
    if n_people is not None:
        facts["People"] = grouped(n_people) + ", not named here" * (not name_people)
    return Contents(
        title or f"{grouped(len(board))} items, ranked", model, board, scale, getattr(model, "verdict_", None),
        returned, findings, warnings, changes, facts | dict(made or {}), name_people, intake,
        model._find_groups if groups is None else groups,
    )  # fmt: skip


def section(key: str, head: str) -> Callable[[Maker], Maker]:
    """Make a function a section, after those above it; ``key`` is its name in links."""

    def add(make: Maker) -> Maker:
        _SECTIONS.append((key, head, make))
        return make

    return add


@section("says", "What it says")
def _says(contents: Contents) -> Iterator[Part]:
    yield List(sentences(contents), ordered=True)


def sentences(contents: Contents) -> list[str]:
    """What the report says, in five sentences."""
    board, verdict = contents.board, contents.verdict
    first, second = (board.row(k, named=True) for k in (0, 1))
    leader, n = isolated(first["item"]), grouped(len(board))
    if first["p_best"] >= 0.95:
        lines = [f"{leader} is the best of {n} items, with probability {percent(first['p_best'])}."]
    else:
        lines = [
            f"{leader} leads {n} items, and is the best with probability {percent(first['p_best'])}; next is "
            f"{isolated(second['item'])} with {percent(second['p_best'])}."
        ]
    in_first, n_tiers = int((board["tier"] == 1).sum()), int(board["tier"].max())  # type: ignore[arg-type]
    tiers = "there is 1 tier" if n_tiers == 1 else f"there are {n_tiers} tiers"
    if in_first == 1:
        first_tier = f"{leader} is in the first tier alone: it is better than the next with more than 95 % probability"
    else:
        first_tier = (
            f"{in_first} items share the first tier: the leader is better than each of the others there with no more "
            "than 95 % probability"
        )
    lines.append(f"{first_tier}; {tiers} in all.")
    # There are two items at least, those of an answer.
    place = max((len(board) - 1) // 2, 1)
    other = isolated(board["item"][place])
    p = chances_of_no_side(contents.model, board["item"].head(1), board["item"].slice(place, 1))[0]
    ties = f", and calls it a tie in {100 * p[1]:.0f} %" if p[1] >= 0.005 else ""
    lines.append(
        f"Asked to choose between {leader} and {other}, in the middle of the board, a new person prefers {leader} in "
        f"{100 * p[0]:.0f} % of answers and {other} in {100 * p[2]:.0f} %{ties}."
    )
    not_judged = "Whether people differ so much that each needs an own ranking was not judged on held-out answers."
    lines.append(not_judged if verdict is None else verdict.in_short)
    vague = _vague(board).row(0, named=True)
    least = (
        f"least is known of {isolated(vague['item'])} ({amount(vague['n'])} answers), whose rank may be anything from "
        f"{vague['rank_low']} to {vague['rank_high']}"
    )
    is_known = vague["rank_low"] == vague["rank_high"]
    lines.append(f"All this rests on {contents.answered}; {'they tell the rank of every item' if is_known else least}.")
    return lines


def _vague(board: pl.DataFrame) -> pl.DataFrame:
    """A board by how little is known of the ranks, the least first."""
    return board.sort(pl.col("rank_high") - pl.col("rank_low"), descending=True, maintain_order=True)


@section("board", "The board")
def _board(contents: Contents) -> Iterator[Part]:
    n = len(contents.board)
    shown = "all items" if n <= MOST_ROWS else f"the best {MOST_ROWS} items"
    chart = board_chart(contents.board, contents.scale.unit, contents.scale.digits, origin=contents.scale.origin)
    yield Figure(chart, f"Scores of {shown} with 95 % intervals. Bands are tiers.")
    table = board_table(contents.board, contents.scale, MOST_LISTED)
    yield replace(table, columns=[*table.columns, _WON])
    if n > MOST_LISTED:
        yield f"The first {grouped(MOST_LISTED)} are listed, {grouped(n - MOST_LISTED)} are left out here."


_WON = Column("Won", lambda row: "" if row["win_share"] is None else percent(row["win_share"]), by="down")


def board_table(board: pl.DataFrame, scale: Scale, rows: int) -> Table:
    """The first rows of a board."""

    def score(value: float) -> str:
        return number(value, scale.digits)

    columns = [
        Column("Rank", lambda row: row["rank"], by="up"),
        Column("95 %", lambda row: f"{row['rank_low']}–{row['rank_high']}", "text", folded="rank {}"),
        Column("Item", lambda row: row["item"], "name", by="text"),
        Column("Score", lambda row: score(row["mean"]), by="down"),
        Column("95 % interval", lambda row: f"{score(row['lower'])} … {score(row['upper'])}", folded="score {}"),
        Column("P(best)", lambda row: percent(row["p_best"]), by="down"),
        Column("Tier", lambda row: row["tier"], by="up", folded="tier {}"),
        Column("Answers", lambda row: amount(row["n"]), by="down", folded="answers: {}"),
    ]
    caption = f"{grouped(len(board))} items, best first; a thick line opens a new tier"
    return Table(caption, columns, list(board.head(rows).iter_rows(named=True)), lambda row: row["tier"])


def board_in_short(
    board: pl.DataFrame, scale: Scale, rows: int, verdict: Verdict | None = None, versus: pl.DataFrame | None = None
) -> list[Part]:
    """The first rows of a board, what a score means, what is said of named pairs, and the verdict."""
    parts: list[Part] = [replace(board_table(board, scale, rows), caption="")]
    if rows < len(board):
        parts.append(f"... and {len(board) - rows} more items.")
    parts.append(scale.meaning)
    if versus is not None:
        parts += [sentence_of_pair(one, scale.of_differences) for one in versus.iter_rows(named=True)]
    return parts + ([] if verdict is None else list(verdict.sentences))


@section("trust", "Can you trust this?")
def _trust(contents: Contents) -> Iterator[Part]:
    model, verdict, fit = (
        contents.model,
        contents.verdict,
        contents.model.report_.get("fit"),
    )  # not of small models of before
    lines = [f"The fit converged after {fit['iterations']} iterations."] if fit else []
    if fit and not fit["converged"]:
        lines = [f"Warning: the fit did not converge in {fit['iterations']} iterations. Do not rely on these numbers."]
    lines += [f"Warning: {line}" for line in contents.warnings]
    if (drift := model.report_.get("drift")) is not None:
        lines.append(f"Over time: {drift_in_short(drift)}")
    lines.append(separation_sentence(model.separation_reliability()))
    if contents.findings is None:
        lines.append("Not checked: the model was loaded without its answers, so they could not be looked at again.")
    elif not contents.findings:
        lines.append("Checked for what makes a ranking untrustworthy: nothing was found.")
    for one in contents.findings or ():
        lines.append(f"{one.severity.capitalize()}: {one.with_names if contents.name_people else one.message}")
    yield List(lines)
    yield Heading("Held-out answers")
    if verdict is None:
        yield "No verdict: nothing was held out to see how well the ranking predicts."
    else:
        yield List([*verdict.sentences, *([contents.returned] if contents.returned else [])])
        if verdict.reliability:
            yield Figure(
                calibration_chart(verdict.reliability),
                "Probabilities given to held-out answers, and how often these came, with 95 % intervals. On the dashed "
                "line a probability means what it says.",
            )
    read, learned = model.report_.get("intake", []), model.describe()
    if contents.intake is not None:
        read = contents.intake.describe(name_people=contents.name_people)
    if contents.name_people:
        learned = learned + least_consistent(contents.people)
    yield Heading("What was read, and what was left out")
    yield List(read)
    yield Heading("What was learned")
    yield List(learned)


@section("reading", "How to read it, and how not to")
def _reading(contents: Contents) -> Iterator[Part]:
    ties = contents.scale.ties(contents.model.tie_threshold_, contents.model.posterior_.calibration.tie_spread)
    zero = "0 is the mean of the items. " if contents.scale.is_plain else ""
    relation = contents.model._relation()
    whose = [f"Whose ranking: {relation[0].lower()}{relation[1:]}."] if relation else []
    yield List(
        [
            *whose,
            f"Score: {contents.scale.meaning} {zero}{ties}".strip(),
            "95 % interval: where the score lies with probability 95 %, going by these answers. That of the rank says "
            "which ranks are possible.",
            "P(best): the probability that the item is the best of the list.",
            f"Tier: {TIER_RULE}.",
        ]
    )
    yield Heading("How not to read it")
    yield List(
        [
            "Do not read much into the order within a tier.",
            "Do not compare scores with those of another board: only differences within one board mean anything.",
            "Two intervals that overlap do not say that two items are equal: scores of items that were compared with "
            "each other vary together. The pairs below say how sure an order is.",
            "P(best) is no share of votes: 80 % does not mean that 80 % of people like the item best.",
            "The ranking is about the items that were shown and the people who answered. It does not say what others "
            "would answer, nor that an item is good.",
        ]
    )


@section("pairs", "Item against item")
def _pairs(contents: Contents) -> Iterator[Part]:
    pairs = pairs_of(contents.model, contents.board["item"].head(MOST_ITEMS))
    n = len(pairs.items)
    which = f"the best {n} of {grouped(len(contents.board))} items" if n < len(contents.board) else f"all {n} items"
    yield Figure(
        pairs_chart(pairs),
        f"How often a new person would prefer the row to the column, in per cent: {which}. Columns have the numbers of "
        "the rows.",
    )
    if pairs.n.any():
        yield Figure(pairs_chart(pairs, observed=True), "The same in the answers. Few answers to a pair say little.")

    def seen(i: int, j: int) -> str:
        return f"{100 * pairs.observed[i, j]:.0f} %" if pairs.n[i, j] else ""

    columns = [
        Column("One", lambda at: at[0] + 1, "text"),
        Column("Other", lambda at: at[1] + 1),
        Column("One expected", lambda at: f"{100 * pairs.expected[at]:.0f} %"),
        Column("Other expected", lambda at: f"{100 * pairs.expected[at[::-1]]:.0f} %"),
        Column("One observed", lambda at: seen(*at)),
        Column("Other observed", lambda at: seen(*at[::-1])),
        Column("Answers", lambda at: amount(pairs.n[at])),
    ]
    records = [(int(i), int(j)) for i, j in zip(*np.triu_indices(n, 1), strict=True)]
    caption = f"All pairs of {which}, by their places on the board; ties are for neither"
    yield Table(caption, columns, records, summary=f"All {len(records)} pairs in a table")


@section("ranks", "How sure the ranks are")
def _ranks(contents: Contents) -> Iterator[Part]:
    caption = "Probability of each rank, in per cent. A row that is spread out is a rank that is not known."
    items = contents.board["item"].head(MOST_ITEMS)
    yield Figure(ranks_chart(items, rank_shares(contents.model, items)), caption)


@section("people", "How people differ")
def _people(contents: Contents) -> Iterator[Part]:
    found = people_map(contents.model)
    if found is not None:
        chart = people_chart(found)
        yield Figure(
            chart, f"{chart.notes} In units of the noise of one answer. Who answered little stands near the middle."
        )
    people = contents.people
    if people is None or people.is_empty():
        return
    low, middle, high = (amount(round(q)) for q in np.quantile(people["n"].to_numpy(), [0.25, 0.5, 0.75]).tolist())
    lines = [f"The middle person gave {middle} answers, the middle half {low} to {high}."]
    agreement = people["agreement"].drop_nulls().to_numpy()
    if len(agreement):
        share = 100 * np.quantile(agreement, [0.1, 0.5, 0.9])
        lines.append(
            f"Where the middle person preferred one item, it was the crowd's in {share[1]:.0f} % of answers; four "
            f"people in five lie between {share[0]:.0f} and {share[2]:.0f} %."
        )
    lines += misfitting(people, names=contents.name_people)
    yield List(lines)
    if "infit" in people.columns and (judges := people.filter(pl.col("infit").is_not_null())).height:
        yield _judges(judges, contents.name_people)


def _judges(people: pl.DataFrame, names: bool) -> Table:
    """Those who fit the rest least."""
    n, worst = len(people), people.sort("infit_z", descending=True, maintain_order=True, nulls_last=True)
    rows = [{"place": place} | row for place, row in enumerate(worst.head(_JUDGES).iter_rows(named=True), 1)]

    def fit(name: str) -> Column:
        return Column(
            name.capitalize(),
            lambda row: f"{row[name]:.2f} ({row[f'{name}_z']:+.1f})" if row[f"{name}_z"] is not None else "",
        )

    return Table(
        f"The {len(rows)} of {grouped(n)} people who fit the rest least. Infit and outfit are 1 by chance; in "
        "brackets, by how many standard deviations they are more. A misfit is more than chance explains",
        [
            Column("Person", lambda row: row["user"] if names else row["place"], "name"),
            Column("Answers", lambda row: amount(row["n"])),
            Column(
                "Agrees with the rest",
                lambda row: "" if row["agreement"] is None else f"{100 * row['agreement']:.0f} %",
            ),
            fit("infit"),
            fit("outfit"),
            Column("Misfit", lambda row: "yes" if row["misfit"] else "no"),
        ],
        rows,
    )


@section("groups", "What divides us, what unites us")
def _groups(contents: Contents) -> Iterator[Part]:
    found = contents.groups
    if found is None or found.outcome == "few":
        return
    yield List(found.sentences)
    if not found.groups:
        return
    own = {group.name: {one.item: one for one in group.opinions} for group in found.groups}

    def column(name: str) -> Column:
        def cell(one: Any) -> str:
            each = own[name][one.item]
            star = "*" if each.difference_lower > 0.0 or each.difference_upper < 0.0 else " "
            return f"{each.mean:+.2f} ({each.lower:+.2f} … {each.upper:+.2f}){star}"

        return Column(f"Group {name}", cell)

    caption = (
        "What each group thinks of the items, with 95 % intervals, in units of the noise of one answer; 0 is the mean "
        "of the items. A star: likely other than what the other groups think"
    )
    yield Table(caption, [
        Column("Item", lambda one: one.item, "name"), *[column(one.name) for one in found.groups],
        Column("All like it", lambda one: percent(one.liked)), Column("Divides", lambda one: percent(one.divides)),
    ], list(found.items[:MOST_LISTED]))  # fmt: skip


@section("segments", "Segments of people")
def _segments(contents: Contents) -> Iterator[Part]:
    if not contents.model._has_segments:
        return
    boards = [one.board for one in shared_segments(contents.model, contents.scale).values()]
    unit = contents.scale.of_differences
    for column in dict.fromkeys(board["column"][0] for board in boards):
        own = [board for board in boards if board["column"][0] == column]
        title = f'Segments by "{one_line(column)}"'
        caption = f"{title}: score less the crowd's, with the number of people. A star: more than chance."
        yield Figure(segments_chart(own, contents.board, unit.unit, unit.digits), caption)
        yield _by_segment(own, contents.scale, title)


SURE = "Sure"  # head of the column that counts differences beyond chance
_ACROSS, _ITEM_ROWS, _LINES, _AROUND, _HEADS = 7, 30, 60, 9, 48


def overviews(boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, scale: Scale) -> list[tuple[Table, str]]:
    """For each column of segments a table, of at most 60 lines of a terminal in all, and what it leaves out.

    Up to seven segments stand beside each other, items below each other; of more each has a row with the items that
    differ most. A star says that a difference is more than chance.
    """
    columns = list(dict.fromkeys(board["column"][0] for board in boards))
    rows = max(_LINES // len(columns) - _AROUND, 3)
    found = []
    for column in columns:
        own = [board for board in boards if board["column"][0] == column]
        title = f'Segments by "{one_line(column)}": differences of their scores from the crowd\'s'
        if len(own) <= _ACROSS:
            n = min(rows, _ITEM_ROWS)
            found.append((_by_item(own, crowd.head(n), scale, title), n, len(crowd), "more items"))
        else:
            found.append((_by_segment(own[:rows], scale, title), rows, len(own), "smaller segments"))
    return [(table, f"{n - shown} {what}" if n > shown else "") for table, shown, n, what in found]


def _by_item(boards: Sequence[pl.DataFrame], crowd: pl.DataFrame, scale: Scale, title: str) -> Table:
    columns = [
        Column("Item", lambda row: row["item"] if row else "(people)", "name"),
        Column("Crowd", lambda row: number(row["mean"], scale.digits) if row else ""),
    ]
    for board in boards:
        of, n = {row["item"]: _difference(row, scale) for row in board.iter_rows(named=True)}, board["people"][0]
        head = shortened(name_of(board["segment"][0]), _HEADS // len(boards) - 1)
        columns.append(Column(head, lambda row, of=of, n=n: of[row["item"]] if row else n))  # type: ignore[misc]
    return Table(title, columns, [None, *crowd.iter_rows(named=True)])


def _by_segment(boards: Sequence[pl.DataFrame], scale: Scale, title: str) -> Table:
    def furthest(board: pl.DataFrame, end: int) -> str:
        row = board.sort("difference", descending=True).row(end, named=True)
        return f"{_difference(row, scale)} {isolated(row['item'])}"

    return Table(title, [
        Column("Segment", lambda board: board["segment"][0], "name"),
        Column("People", lambda board: board["people"][0]),
        Column("Answers", lambda board: amount(float(board["n"].sum()) / 2.0)),
        Column(SURE, lambda board: board["more_than_chance"].sum()),
        Column("Furthest above the crowd", lambda board: furthest(board, 0), "text"),
        Column("Furthest below", lambda board: furthest(board, -1), "text"),
    ], boards)  # fmt: skip


def _difference(row: dict[str, Any], scale: Scale) -> str:
    digits = scale.of_differences.digits
    return f"{round(row['difference'], digits) + 0.0:+.{digits}f}{'*' if row['more_than_chance'] else ' '}"


@section("effects", "Effects of the side and of other covariates")
def _effects(contents: Contents) -> Iterator[Part]:
    found = further_table(contents.model, "covariates")
    if found is None or found.is_empty():
        return
    yield Figure(effects_chart(found), "Effects of a usual difference, with 95 % intervals.")
    caption = (
        "What is added to the utility of the left item, in units of the noise of one answer. The board is at equal "
        "covariates"
    )
    yield Table(caption, [
        Column("Covariate", lambda one: one["covariate"], "name"),
        Column("Effect of one unit", lambda one: f"{one['effect']:+.3g}"),
        Column("95 % interval", lambda one: f"{one['lower']:+.3g} … {one['upper']:+.3g}"),
        Column("Usual difference", lambda one: f"{one['rms']:.3g}"),
        Column("Its effect", lambda one: f"{one['effect_of_rms']:+.3f}"),
        Column("Sd over people", lambda one: "not tried" if one["spread"] is None else f"{one['spread']:.3g}"),
    ], list(found.iter_rows(named=True)))  # fmt: skip


@section("attributes", "What attributes are worth")
def _attributes(contents: Contents) -> Iterator[Part]:
    model = contents.model
    if not has_attributes(model):
        return
    if model.users_ is not None and len(model.users_) > MOST_WITH_DRAWS:
        yield f"Left out here for more than {grouped(MOST_WITH_DRAWS)} people: model.worth.parts() has them."
        return
    importances, worths = part_worths_of(model)
    yield Figure(
        importances_chart(importances),
        "How much each attribute matters over the range of the items; intervals are of the population of which those "
        "who answered are a sample.",
    )
    yield Figure(part_worths_chart(worths), "What attributes are worth; the levels of a category sum to 0.")
    yield Table(f"Part-worths, in {model._likelihood.unit}", [
        Column("Attribute", lambda one: one["attribute"], "name"),
        Column("Level", lambda one: one["label"], "name"),
        Column("Worth, mean", lambda one: f"{one['mean']:+.3g}"),
        Column("95 % interval", lambda one: f"{one['lower']:+.3g} … {one['upper']:+.3g}"),
        Column("Spread between people", lambda one: f"{one['spread']:.3g}"),
    ], list(worths.iter_rows(named=True)))  # fmt: skip


@section("further", "What else the model knows")
def _further(contents: Contents) -> Iterator[Part]:
    for make in contents.model._further_charts().values():
        chart = make()
        yield Figure(chart, chart.notes)


@section("changes", "What changed")
def _changes(contents: Contents) -> Iterator[Part]:
    changes = contents.changes
    if changes is None:
        return
    digits = contents.scale.of_differences.digits

    def interval(one: dict[str, float], start: str = "") -> str:
        return f"{number(one[f'{start}lower'], digits)} … {number(one[f'{start}upper'], digits)}"

    lines = [changes.sentence]
    for what, ids in (("New items", changes.came), ("Items that are gone", changes.went)):
        if ids:
            more = ", ..." if len(ids) > _MOST_NAMED else ""
            lines.append(f"{what}: {', '.join(map(isolated, ids[:_MOST_NAMED]))}{more}.")
    yield List(lines)
    records = list(changes.table.head(_MOST_CHANGES).iter_rows(named=True))
    if not records:
        return
    caption = "Scores before and now, of which 0 is the mean of the items in both, the surest change first"
    if len(changes.table) > len(records):
        caption += f"; {len(changes.table) - len(records)} more items are left out"
    yield Table(caption, [
        Column("Item", lambda one: one["item"], "name"),
        Column("Before (95 %)", lambda one: f"{number(one['old'], digits)} ({interval(one, 'old_')})"),
        Column("Now (95 %)", lambda one: f"{number(one['new'], digits)} ({interval(one, 'new_')})"),
        Column("Difference", lambda one: f"{one['difference']:+.{digits}f}"),
        Column("95 % interval", interval),
        Column("Rank", lambda one: f"{one['old_rank']} → {one['new_rank']}"),
        Column("More than chance", lambda one: "yes" if one["more_than_chance"] else "no"),
    ], records)  # fmt: skip
    yield ASSUMPTION


@section("next", "What to ask next")
def _next(contents: Contents) -> Iterator[Part]:
    whom = "somebody who has not answered yet" if contents.model.personal_ else "anybody"
    yield Table(f"Pairs to ask {whom}, the most useful first, with the answers that are expected", [
        Column("One item", lambda one: one["left"], "name"),
        Column("Other item", lambda one: one["right"], "name"),
        Column("Bits", lambda one: f"{one['score']:.2f}"),
        Column("One", lambda one: f"{100 * one['p_left']:.0f} %"),
        Column("Tie", lambda one: f"{100 * one['p_tie']:.0f} %"),
        Column("Other", lambda one: f"{100 * one['p_right']:.0f} %"),
    ], pl.DataFrame(contents.model.suggest(None, n=_QUESTIONS)).to_dicts())  # fmt: skip
    yield (
        f"Least is known of the ranks of {'; '.join(needy(contents.board))}. Show these items more often, to anybody."
    )
    people = contents.people
    if people is None or people.is_empty() or not contents.model.personal_:
        return
    fewest = people.filter(pl.col("n") == pl.col("n").min())["user"]
    n, gave = len(fewest), amount(float(people["n"].min()))  # type: ignore[arg-type]
    who = "1 person gave" if n == 1 else f"{grouped(n)} people gave"
    named = f": {first_few(fewest.to_list())}" if contents.name_people else ""
    yield (
        f"Of the {grouped(len(people))} people who answered, {who} the fewest answers ({gave} each){named}. Ask them "
        'next if everybody\'s own ranking counts: "predilect ask", or model.suggest(user), chooses the pairs.'
    )


def needy(board: pl.DataFrame) -> list[str]:
    """Items of whose rank least is known, in words."""
    return [
        f"{isolated(row['item'])} (rank {row['rank_low']} to {row['rank_high']}, {amount(row['n'])} answers)"
        for row in _vague(board).head(_NEEDY).iter_rows(named=True)
    ]


@section("made", "How this was made")
def _made(contents: Contents) -> Iterator[Part]:
    yield List([f"{name}: {value}" for name, value in contents.made.items()])
