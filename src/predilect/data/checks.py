"""Checks of answers for what makes a ranking untrustworthy, in plain words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from predilect._base.arguments import check_list
from predilect._base.text import amount, either, first_few, shown
from predilect._base.types import FloatArray, IntArray
from predilect.data.canonical import repeats
from predilect.data.comparisons import Comparisons
from predilect.data.intake import BASELINE, FIRST, LAST, NEARLY_ALL, SORTED, counted
from predilect.data.keyed_rows import MOST_ITEMS, MOST_VARIANTS
from predilect.data.orders import weights_of_rows
from predilect.data.read.covariates import baselines
from predilect.data.read.names import marks_rows
from predilect.data.read.options import option
from predilect.errors import DataError

FEW_ANSWERS = 5
# CPU seconds of `rank` for each item cubed (dense algebra of all items) and for each row, and how many go unsaid.
_SECONDS_OF_ITEMS, _SECONDS_OF_ROW, _SECONDS_UNSAID = 4e-9, 4e-5, 60.0
FEW_IN_ALL = 30
HEAVY_SHARE = 0.3
FEWEST_CONTEXTS = 2
_ONE_ANSWER, _HEAVY = _OF_PEOPLE = ("users-with-one-answer", "heavy-users")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know before trusting a ranking.

    Attributes
    ----------
    code : str
        Stable name, such as "unconnected-items".
    severity : {"warning", "note"}
    message : str
        In plain words; it names items, and no people.
    count : int
        How many items, people or answers it is about.
    examples : tuple
        A few of the ids.
    """

    code: str
    severity: Literal["warning", "note"]
    message: str
    count: int = 0
    examples: tuple[Any, ...] = ()

    @property
    def with_names(self) -> str:
        """The message with a few of the people whom it is about, for who may know them."""
        if self.code not in _OF_PEOPLE:
            return self.message
        more = ("...",) * (self.count > len(self.examples))
        return f"{self.message.removesuffix('.')} ({first_few((*self.examples, *more))})."


def check(
    answers: Any,
    item_ids_with_no_answers: Iterable[Any] | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """Look for what makes a ranking of these answers untrustworthy.

    Parameters
    ----------
    answers : Comparisons, data frame, or str or Path of a file
    item_ids_with_no_answers : iterable, optional
        Items that should be ranked but that nobody compared, besides those in the vocabulary.
    columns, reading : dict, optional
        How a frame or a file is read, as of :func:`~predilect.read`.

    Returns
    -------
    list of Finding
        Warnings first; empty if nothing was found.

    Raises
    ------
    DataError
        If a frame or a file cannot be read.

    Notes
    -----
    O(n_rows); under a second for a million rows.
    """
    from predilect.data.read.readers import read

    check_list("item_ids_with_no_answers", item_ids_with_no_answers, None)
    comparisons = answers if isinstance(answers, Comparisons) else read(answers, columns=columns, reading=reading)
    findings = [
        *_items(comparisons, item_ids_with_no_answers),
        *_marked(comparisons),
        *_groups(comparisons),
        *_sides(comparisons),
        *_people(comparisons),
        *_answers(comparisons),
        *_choices(comparisons),
        *_time(comparisons),
    ]
    return sorted(findings, key=lambda finding: finding.severity != "warning")


def _marked(comparisons: Comparisons) -> list[Finding]:
    """Columns that may tell which rows are to be used, and were not."""
    names = [name for name in comparisons.intake.ignored_columns if marks_rows(name)]
    if not names:
        return []
    words = first_few([f'"{shown(name)}"' for name in names])
    message = (
        f"All rows are used, whatever {words} says. If it marks answers that are to be left out, say which are kept: "
        f"{option('keep', f'{shown(names[0])}:VALUE')}."
    )
    return [Finding("marked-rows", "warning", message, len(names), tuple(names[:5]))]


def check_answers(answers: Comparisons) -> None:
    """DataError for answers that no population is fitted to: a column tells nothing, or there are too many to key."""
    if answers.n_items > MOST_ITEMS:
        raise DataError(f"there are {answers.n_items} items, and at most {MOST_ITEMS} can be told apart")
    if answers.contexts is not None and len(answers.contexts) < FEWEST_CONTEXTS:
        column = shown(answers.intake.columns.get("context", "context"))
        raise DataError(
            f'all answers that have a context have the same one ("{shown(answers.contexts.ids[0])}", in column '
            f'"{column}"), and one says nothing of how far contexts differ. Name a column that tells two contexts '
            f"or more apart, or leave {either('-c context=...', 'context=...')} out: intervals then hold for "
            "this context"
        )
    if answers.covariates is None:
        return
    for name, column in zip(answers.covariate_names, answers.covariates.T, strict=True):
        if not column.any():
            raise DataError(
                f'the covariate "{name}" says nothing: left and right are equal in all {answers.n_rows} rows. Leave '
                "it out"
            )
    if answers.n_rows > MOST_VARIANTS:
        raise DataError(
            f"{answers.n_rows} rows have covariates, and at most {MOST_VARIANTS} can be told apart. Round the "
            "covariates, so that more answers are alike, or fit a part of them"
        )


def _per_item(comparisons: Comparisons, keep: NDArray[np.bool_], left: bool = True, right: bool = True) -> Any:
    total = np.zeros(comparisons.n_items)
    for wanted, side in ((left, comparisons.left), (right, comparisons.right)):
        if wanted:
            total += np.bincount(side[keep], comparisons.weight[keep], minlength=comparisons.n_items)
    return total


def _about(code: str, severity: Literal["warning", "note"], message: str, ids: list[Any]) -> Finding:
    """What was found about items or people, of whom the message names none."""
    named = "" if code in _OF_PEOPLE else f" ({first_few(ids)})"
    return Finding(code, severity, f"{message}{named}.", len(ids), tuple(ids[:5]))


def _items(comparisons: Comparisons, extra: Iterable[Any] | None) -> list[Finding]:
    outcome, ids = comparisons.outcome, comparisons.items.array()
    wins = _per_item(comparisons, outcome == 1, right=False) + _per_item(comparisons, outcome == -1, left=False)
    losses = _per_item(comparisons, outcome == 1, left=False) + _per_item(comparisons, outcome == -1, right=False)
    ties = _per_item(comparisons, outcome == 0)
    answers = wins + losses + ties
    found = []
    none = list(ids[answers == 0]) + [value for value in extra or () if value not in comparisons.items]
    if none:
        text = f"{counted(len(none), 'item')} without any answer: the score rests on the prior, or on features, alone"
        found.append(_about("items-without-answers", "warning", text, none))
    unused = [value for value in comparisons.intake.unused_items if value not in comparisons.items]
    if unused:
        text = f"{counted(len(unused), 'item')} met only in rows that were left out, and so not ranked"
        found.append(_about("items-left-out", "warning", text, unused))
    if not comparisons.items.is_integer:
        found += _look_alikes(comparisons.items.ids)
    if comparisons.item_table is not None:  # of profiles of attributes most are met once, and answers to others tell
        return found
    for code, mask, text in (
        ("items-never-lose", (losses == 0) & (wins > 0), "without a loss: how far ahead, the answers cannot tell"),
        ("items-never-win", (wins == 0) & (losses > 0), "without a win: how far behind, the answers cannot tell"),
        ("items-only-ties", (wins + losses == 0) & (ties > 0), "with nothing but ties"),
    ):
        if mask.any():
            found.append(_about(code, "note", f"{counted(int(mask.sum()), 'item')} {text}", list(ids[mask])))
    few = (answers > 0) & (answers < FEW_ANSWERS)
    if few.any():
        share = few.sum() / max((answers > 0).sum(), 1)
        text = f"{counted(int(few.sum()), 'item')} with fewer than {FEW_ANSWERS} answers: expect wide intervals"
        found.append(_about("few-answers-per-item", "warning" if share > 0.5 else "note", text, list(ids[few])))
    return found


def _look_alikes(ids: list[str]) -> list[Finding]:
    seen: dict[str, list[str]] = {}
    for value in ids:
        seen.setdefault(re.sub(r"^(-?\d+)\.0$", r"\1", " ".join(value.split()).lower()), []).append(value)
    alike = [value for group in seen.values() if len(group) > 1 for value in group]
    if not alike:
        return []
    quoted = [f'"{value}"' for value in alike]
    text = f"{len(alike)} item ids differ from another only in spaces, upper and lower case or .0; are they the same?"
    return [_about("look-alike-items", "warning", text, quoted)]


def connected_items(comparisons: Comparisons) -> IntArray:
    """Number of each item's group, (n_items,): no answer connects one group with another, not even through others."""
    from scipy.sparse.csgraph import connected_components

    n = comparisons.n_items
    links = coo_array((np.ones(comparisons.n_rows), (comparisons.left, comparisons.right)), shape=(n, n))
    label: IntArray = connected_components(links.tocsr(), directed=False)[1]
    return label


def _groups(comparisons: Comparisons) -> list[Finding]:
    label = connected_items(comparisons)
    seen = np.zeros(comparisons.n_items, dtype=bool)
    seen[comparisons.left] = seen[comparisons.right] = True
    groups, first, sizes = np.unique(label[seen], return_index=True, return_counts=True)
    if len(groups) < 2:
        return []
    order = np.argsort(-sizes, kind="stable")
    examples = tuple(comparisons.items.array()[seen][first[order]][:5])
    message = (
        f"The items fall into {len(groups)} groups that were never compared with each other (sizes "
        f"{first_few(sizes[order].tolist(), 5)}; one item of each: {first_few(examples)}). Scores across groups rest "
    )
    if comparisons.item_table is not None:
        return [Finding("unconnected-items", "note", message + "on the attributes.", len(groups), examples)]
    message += "on the prior only; ask questions that join them, or rank each group by itself."
    return [Finding("unconnected-items", "warning", message, len(groups), examples)]


def _sides(comparisons: Comparisons) -> list[Finding]:
    intake = comparisons.intake
    decided = intake.left_wins + intake.right_wins
    if decided < 10:
        return []
    shown = _as_shown(comparisons)
    won = f"The left item won {intake.left_wins / decided:.1%} of {amount(decided)} decided answers"
    always = baselines(*shown[:2], decided)
    if intake.no_sides == BASELINE:
        always = np.argmax(_per_item(comparisons, np.full(comparisons.n_rows, True)), keepdims=True)
    if len(always):
        ids = comparisons.items.labels(always).tolist()
        message = (
            f"{won}. Always on the same side: {first_few(ids)}; so a left/right bias cannot be told from how good "
            f"{'it is' if len(ids) == 1 else 'they are'}."
        )
        return [Finding("left-right-bias", "note", message, round(decided), tuple(ids[:5]))]
    if intake.no_sides in (FIRST, LAST) or min(intake.left_wins, intake.right_wins) == 0:
        first = "winner" if intake.left_wins > intake.right_wins else "loser"
        if max(intake.left_wins, intake.right_wins) < NEARLY_ALL * decided:
            message = (
                f"{won}: either the file lists the {first} first, mostly, or people favour one side. If left and right "
                f"are where the items were shown, say {option('side', True)}, which takes it out of the answers."
            )
            return [Finding("left-right-bias", "warning", message, round(decided))]
        message = (
            f"{won}: the file seems to list the {first} first, so left/right bias cannot be checked; randomise the "
            "sides when asking, and write them down as shown."
        )
        return [Finding("winner-always-one-side", "note", message, round(decided))]
    if comparisons.sides is None:
        return []
    share = intake.left_wins / decided
    p = math.erfc(abs(intake.left_wins - intake.right_wins) / math.sqrt(2 * decided))
    if p >= 0.05:
        verdict = "no sign of a left/right bias"
    elif p >= 0.001 or abs(share - 0.5) < 0.02:
        verdict = "a slight lean to one side"
    elif _on_both_sides(*shown, comparisons.n_items):
        verdict = (
            "people favour one side. Each item was shown on both about equally often, so that no item gains by it; "
            f"{option('side', True)} takes it out of the answers"
        )
    else:
        verdict = "people favour one side; randomise the sides when asking"
    message = f"{won} (p = {p:.2g}): {verdict}."
    return [Finding("left-right-bias", "warning" if "favour" in verdict else "note", message, round(decided))]


def _as_shown(comparisons: Comparisons) -> tuple[IntArray, IntArray, FloatArray]:
    """Items that were shown on the left and on the right, and how often; nothing where sides are not known."""
    left, right, sides = comparisons.left, comparisons.right, comparisons.sides
    if comparisons.intake.no_sides == SORTED:
        return left, right, comparisons.weight
    if sides is None:
        return left[:0], right[:0], comparisons.weight[:0]
    kept = np.concatenate(sides.T) > 0.0
    return np.concatenate([left, right])[kept], np.concatenate([right, left])[kept], np.concatenate(sides.T)[kept]


def _on_both_sides(left: IntArray, right: IntArray, weight: FloatArray, n_items: int) -> bool:
    """Whether items are on both sides as often as a coin would have them there, or more evenly."""
    more, all_ = (
        np.bincount(left, weight, n_items) + sign * np.bincount(right, weight, n_items) for sign in (-1.0, 1.0)
    )
    uneven = np.divide(more**2, all_, out=np.zeros(n_items), where=all_ > 0.0).sum()
    return bool(uneven <= n_items + 3.0 * math.sqrt(2.0 * n_items))


def _people(comparisons: Comparisons) -> list[Finding]:
    if not comparisons.has_users:
        return []
    # A choice from several is one answer, whose rows have a share each.
    given = np.bincount(comparisons.user, weights_of_rows(comparisons), minlength=comparisons.n_users)
    found = []
    once = np.flatnonzero((given > 0) & (np.round(given, 6) <= 1))
    if len(once):
        text = f"{len(once)} of {counted(comparisons.n_users, 'user')} gave one answer: little can be said about each"
        found.append(_about(_ONE_ANSWER, "note", text, list(comparisons.users.labels(once))))
    if comparisons.n_users > 1 and comparisons.n_rows:
        top = max(1, math.ceil(comparisons.n_users / 100))
        order = np.argsort(-given, kind="stable")[:top]
        share = given[order].sum() / given.sum()
        # With very few people somebody always has a large share.
        if share > max(HEAVY_SHARE, 1.5 * top / comparisons.n_users):
            text = (
                f"{counted(top, 'user')} of {comparisons.n_users} gave {share:.0%} of all answers "
                "and can dominate a pooled ranking"
            )
            found.append(_about(_HEAVY, "warning", text, list(comparisons.users.labels(order))))
    return found


def _answers(comparisons: Comparisons) -> list[Finding]:
    found = []
    total = comparisons.n_answers
    tied = float(comparisons.weight[comparisons.outcome == 0].sum())
    if tied:
        message = f"{tied / total:.1%} of {counted(total, 'answer')} are ties."
        if tied > total / 2:
            message += " More than half: the items may be hard to tell apart, or ties may mean something else."
        found.append(Finding("ties", "warning" if tied > total / 2 else "note", message, round(tied)))
    if comparisons.has_users and comparisons.n_rows > 1:
        same = repeats(comparisons.user, *comparisons.alternatives())
        # Two tasks may hold the same answer.
        differs = same[1:] & (comparisons.outcome[1:] != comparisons.outcome[:-1])
        n_pairs = len(np.unique(np.cumsum(~same)[1:][differs]))
        if n_pairs:
            message = (
                f"{counted(n_pairs, 'time')} a user answered the same question in different ways; all answers are kept."
            )
            found.append(Finding("contradictions", "note", message, n_pairs))
    if comparisons.grades and len(used := comparisons.with_used_grades(1).grades) < 2:
        message = "All answers that prefer an item have one grade, or none: only their sides say something."
        found.append(Finding("one-grade", "note", message, len(used)))
    if total < FEW_IN_ALL or (total < comparisons.n_items and comparisons.item_table is None):
        message = (
            f"Only {counted(total, 'answer')} for {counted(comparisons.n_items, 'item')}: "
            "the ranking rests largely on the prior."
        )
        found.append(Finding("few-answers", "warning", message, round(total)))
    return found


def _time(comparisons: Comparisons) -> list[Finding]:
    """How long rankings of people will take, where it is minutes."""
    seconds = _SECONDS_OF_ITEMS * comparisons.n_items**3 + _SECONDS_OF_ROW * comparisons.n_rows
    if comparisons.n_users < 2 or seconds <= _SECONDS_UNSAID:
        return []
    minutes = math.ceil(seconds / 60.0)
    message = (
        f"Ranking {counted(comparisons.n_items, 'item')} by {counted(comparisons.n_rows, 'row')}, for each person too, "
        f"takes about {counted(minutes, 'minute')} of one processor."
    )
    return [Finding("takes-minutes", "note", message, minutes)]


def _choices(comparisons: Comparisons) -> list[Finding]:
    """Choices from m + 1 items, written as m pairs, show in wins: a person's count of each item is a multiple of m."""
    if not comparisons.has_users or comparisons.task is not None:
        return []
    n_users, n_items = comparisons.n_users, comparisons.n_items
    tied = comparisons.outcome == 0
    winner = np.where(comparisons.outcome > 0, comparisons.left, comparisons.right)[~tied]
    pairs, place = np.unique(comparisons.user[~tied].astype(np.int64) * n_items + winner, return_inverse=True)
    person, wins = pairs // n_items, np.bincount(place, comparisons.weight[~tied])
    odd = np.zeros(n_users, dtype=bool)
    odd[comparisons.user[tied]] = True
    odd[person[wins != np.round(wins)]] = True
    start = np.flatnonzero(np.diff(person, prepend=-1))
    if not len(start):
        return []
    able = np.diff(start, append=len(person)) >= 3  # two items may have an even number of wins by chance
    common = np.gcd.reduceat(wins.astype(np.int64), start)
    # Without m other items the wins are the same answer repeated.
    beaten = np.minimum.reduceat(np.bincount(place), start)
    hit = able & (common > 1) & (beaten >= common) & ~odd[person[start]]
    if 2 * hit.sum() <= able.sum():
        return []
    size = int(np.median(common[hit])) + 1
    text = (
        f"The answers of {hit.sum()} of {counted(n_users, 'user')} look like choices of one item out of {size}, each "
        f"written as {size - 1} pairs, and no column says which pairs make up a choice: one of them gives away the "
        f"others, so held-out tests flatter the model. Name that column with {option('task', 'NAME')}, or give the "
        "rows in the order in which they were written, the pairs of a choice one after the other."
    )
    examples = tuple(comparisons.users.labels(person[start][hit][:5]))
    return [Finding("choices-without-tasks", "warning", text, int(hit.sum()), examples)]
