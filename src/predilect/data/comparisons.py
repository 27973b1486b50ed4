"""Pairwise answers as frozen columns of codes in one canonical order, and what is made of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from predilect._base.arguments import check_count, numbers_in
from predilect._base.forks import refuse_without_threads
from predilect._base.text import is_whole, quoted, shown
from predilect.data.canonical import ALONE, AnswerColumns, canonical_answers, joined_tasks, row_offsets
from predilect.data.frames import build_frame, open_frame
from predilect.data.intake import Intake, TableReading
from predilect.data.read.options import ReadOptions, option, read_options
from predilect.data.read.times import shown_times, times_of
from predilect.data.vocabulary import EVERYONE, Vocabulary
from predilect.errors import DataError, DataWarning

_COLUMNS = {
    "user": np.int32, "left": np.int32, "right": np.int32, "outcome": np.int8, "weight": np.float64, "task": np.int32,
    "sides": np.float64, "covariates": np.float64, "context": np.int32, "grade": np.int8, "copies": np.int16,
    "time": np.float64,
}  # fmt: skip
_TOGETHER = (
    ("covariates", "covariate_names", "one name a column"), ("context", "contexts", "codes, and what they stand for"),
    ("grade", "grades", "a number for each row, and what the numbers stand for"),
    ("time", "clock", "a number for each row, and whether they are dates or numbers"),
)  # fmt: skip

SIDE = "side"  # the covariate that Comparisons.with_side makes
_DUST = 1e-9  # relative: sums of weights carry rounding errors
_FEW = 0.05  # of the tasks
_SHOWN = 10  # rows, in a notebook


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Pairwise answers, coded, checked and sorted.

    Rows are sorted by user, left, right and outcome code, with the item of the smaller code on the left; equal
    rows (of one task, where tasks are known, and with the same covariates) are one row with their weights added,
    contradicting ones stay apart. Since ids are sorted too, the order of the rows that came in and a swap of left and
    right change nothing but ``intake`` and ``sides``, unless ``runs`` says that rows which follow each other are one
    choice.

    Parameters
    ----------
    users, items : Vocabulary
    user, left, right : int32 arrays, shape (n_rows,)
        Codes; ``left < right`` in every row, but for copies of one item.
    outcome : int8 array, shape (n_rows,)
        +1 the left item is better, 0 a tie, -1 the right item is better.
    weight : float64 array, shape (n_rows,)
        How many answers a row stands for; positive.
    has_users : bool
        False if users are not identified; then the one user is called "everyone".
    intake : Intake
        What was read and left out.
    backend : str
        The caller's kind of data frame.
    task : int32 array, shape (n_rows,), or None
        Rows of one user with the same code were answered in one go, as the pairs "chosen over not chosen" of one
        choice; -1 is an answer without a task. None where no answer has one. Only which rows share a code matters.
    sides : float array, shape (n_rows, 2), or None
        Weight of a row's answers in which its left item was shown on the left, and on the right; of the rest of
        ``weight`` it is not known. None where it is known of no answer.
    covariates : float array, shape (n_rows, n_covariates), or None
        What else differed between the two shown, left minus right; None without any.
    covariate_names : tuple of str
        A name for each column of ``covariates``.
    context : int32 array, shape (n_rows,), or None
        Codes in ``contexts``: answers of whomever on one prompt, scenario or the like; -1 for none. None without any.
    contexts : Vocabulary or None
    joint : bool
        Whether the rows of a task are one answer about several alternatives, a partial order such as "the best of
        four", so that they share the noise of an alternative; otherwise they were only asked together.
    item_table : polars data frame or None
        What describes the items, one row each, ids in the column "item", where the answers themselves say it:
        ``model.fit(answers, items=answers.item_table)``.
    grade : int8 array, shape (n_rows,), or None
        By how much the better item is: a number from 1, that of a name in ``grades``; 0 for ties, and where only the
        side is known. None without any.
    grades : tuple of str
        Names of the grades, from slight to strong.
    time : float array, shape (n_rows,), or None
        When each answer was given: numbers as they were, or days since 1970 where ``clock`` is "dates". None without.
    clock : {"", "numbers", "dates"}
        What ``time`` is.
    copies : int16 array, shape (n_rows, 2), or None
        Where alternatives of a task are one item, as those of equal attributes: which of them the left one is, and the
        right one, from 0. None where every item stands once in its tasks.

    Notes
    -----
    The arrays are read-only. Use ``predilect.read`` or ``Comparisons.from_frame``; the constructor expects
    canonical rows and does not sort. ``==`` compares ids, answers, grades, covariates, contexts and which answers
    share a task, not the intake, the table of items, nor sides, which are all that a swap of left and right changes.
    """

    users: Vocabulary
    items: Vocabulary
    user: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    weight: NDArray[np.float64]
    has_users: bool = True
    intake: Intake = field(default_factory=Intake)
    backend: str = "polars"
    task: NDArray[np.int32] | None = None
    sides: NDArray[np.float64] | None = None
    covariates: NDArray[np.float64] | None = None
    covariate_names: tuple[str, ...] = ()
    context: NDArray[np.int32] | None = None
    contexts: Vocabulary | None = None
    joint: bool = False
    item_table: pl.DataFrame | None = None
    grade: NDArray[np.int8] | None = None
    grades: tuple[str, ...] = ()
    copies: NDArray[np.int16] | None = None
    time: NDArray[np.float64] | None = None
    clock: str = ""

    def __post_init__(self) -> None:
        for one, other, names in _TOGETHER:
            if (getattr(self, one) is None) != (getattr(self, other) in (None, (), "")):
                raise DataError(f"{one} and {other} go together: {names}.")
        n_columns = {"sides": 2, "covariates": len(self.covariate_names), "copies": 2}
        for name, dtype in _COLUMNS.items():
            if (value := getattr(self, name)) is None:
                continue
            array = np.asarray(value, dtype=dtype).view()
            wanted = (len(self.user), n_columns[name]) if name in n_columns else (len(self.user),)
            if array.shape != wanted:
                raise DataError(f"{name} has shape {array.shape}, expected {wanted}: one code a row.")
            if name == "task":
                array = np.maximum(array, ALONE)
            array.flags.writeable = False
            nothing = (name == "task" and not (array > ALONE).any()) or (
                name in ("sides", "copies") and not array.any()
            )
            object.__setattr__(self, name, None if nothing else array)
        grade = self.grade
        if grade is not None and not (
            0 <= grade.min(initial=0) <= grade.max(initial=0) <= len(self.grades) and not grade[self.outcome == 0].any()
        ):
            raise DataError(f"grades are 0 for ties and at most {len(self.grades)}, the number of names.")

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        columns: Mapping[str, Any] | None = None,
        reading: Mapping[str, Any] | None = None,
        outcome: Any = None,
        item_map: Mapping[Any, Any] | None = None,
        design: Any = None,
    ) -> Comparisons:
        """Read a data frame of answers: pairs, choices from several, orders, ratings.

        Parameters
        ----------
        frame : data frame, dict of columns or list of tuples
            pandas, polars, Arrow or whatever else narwhals reads, eager or lazy. A list is of pairs (winner, loser), or
            with ``outcome`` of pairs (left, right).
        columns : dict of role to column, optional
            Columns that are not found, or not to be found, by their names: who, left, right, answer, won, lost, task,
            alternatives, profile, weights, context, time, covariates. None or "" says that there is no such column.
        reading : dict, optional
            What values mean, where the table leaves it open: kind, answer_is, tie, left_word, right_word, positive,
            best, grades, both_bad, side, task, constants, none, drop. docs/reference/reading.md explains every one.
        outcome : array-like, shape (n_rows,), optional
            1 (left better), 0 (tie) or -1 (right better), or booleans (True: left better), instead of a column of
            answers. Only 1 and 0 is an error, as 0 may mean right: ``reading={"tie": "0"}`` says that it is a tie.
            Whole numbers from -6 to 6 are grades, where some go beyond 1 and some beyond -1.
        item_map : mapping, optional
            Replaces every item id, as a dict of id to id or a dict of two columns.
        design : data frame, optional
            The table of what was shown, where answers name its questions.

        Raises
        ------
        DataError
            With what was expected, what came, in which rows, and what to do.

        Notes
        -----
        O(n log n) time; about 1 s and 100 bytes a row for a million rows.
        """
        options = read_options(columns, reading)
        options |= {"outcome": outcome, "item_map": item_map, "design": design}
        return cls.read_with(frame, options)

    @classmethod
    def from_rows(cls, rows: pl.DataFrame, covariates: Sequence[str] = (), *, joint: bool = False) -> Comparisons:
        """Answers from the table that :meth:`to_frame` makes of them, without their sides; nothing is guessed."""
        people = Vocabulary(rows["user"] if "user" in rows.columns else [EVERYONE])
        items = Vocabulary(pl.concat([rows["left"], rows["right"]]))
        who = people.codes(rows["user"]) if "user" in rows.columns else np.zeros(len(rows), dtype=np.int32)
        outcome = rows["outcome"].to_numpy()
        more: dict[str, Any] = {}
        if "task" in rows.columns:
            more["task"] = rows["task"].fill_null(ALONE).cast(pl.Int32).to_numpy()
        if covariates:
            more["covariates"] = rows.select(covariates).to_numpy().astype(np.float64)
        contexts, names = None, dict[int, str]()
        if "context" in rows.columns:
            contexts = Vocabulary(rows["context"].drop_nulls())
            more["context"] = contexts.codes(rows["context"], unknown="minus_one")
        if "grade" in rows.columns:
            number = np.abs(outcome) * rows["grade"].is_not_null().to_numpy()
            names = dict(sorted(zip(number[number > 0].tolist(), rows["grade"].drop_nulls().to_list(), strict=True)))
            more["grade"] = np.searchsorted([0, *names], number).astype(np.int8)
        clock = ""
        if "when" in rows.columns:
            more["time"], clock = times_of(rows["when"], "when", np.ones(len(rows), dtype=bool))
        if "copy_left" in rows.columns:
            more["copies"] = rows.select("copy_left", "copy_right").to_numpy().astype(np.int16)
        answers = canonical_answers(AnswerColumns(
            who, items.codes(rows["left"]), items.codes(rows["right"]), np.sign(outcome).astype(np.int8),
            rows["weight"].to_numpy(), **more,
        ))  # fmt: skip
        return cls(
            people, items, has_users="user" in rows.columns, covariate_names=tuple(covariates), contexts=contexts,
            joint=joint, grades=tuple(names.values()), clock=clock, **answers._asdict(),
        )  # fmt: skip

    @classmethod
    def nothing(cls, items: Vocabulary, backend: str = "polars") -> Comparisons:
        """No answers, and nobody who gave one, about some items."""
        none = np.zeros(0, dtype=np.int32)
        return cls(Vocabulary([]), items, none, none, none, none.astype(np.int8), np.zeros(0), backend=backend)

    @classmethod
    def read_with(cls, frame: Any, options: ReadOptions) -> Comparisons:
        """:meth:`from_frame` by the options of the readers."""
        from predilect.data.read.recognise import assembled

        refuse_without_threads()
        if isinstance(frame, list):
            frame = _columns_of_pairs(frame, given=options.get("outcome") is not None)
        table, backend = open_frame(frame)
        read = assembled(table, options)
        found = cls(backend=backend, **{name: one for name, one in read._asdict().items() if name != "answers"},
                    **read.answers._asdict())  # fmt: skip
        found = found.with_side() if options.get("side") else found
        if read.intake.tasks_read:
            return replace(found, joint=True)
        choices = None if options.get("kind") == "pairs" else choices_in(found)
        return (
            found if choices is None else replace(choices, intake=replace(read.intake, joint_answers=n_joint(choices)))
        )

    @property
    def reading(self) -> TableReading:
        """What was read: the role of each column, the first answer as a sentence, what was left out."""
        return self.intake.reading

    @property
    def n_rows(self) -> int:
        """Distinct (user, pair, outcome) rows; also by task, covariates and context, where there are any."""
        return len(self.user)

    @property
    def n_users(self) -> int:
        """People in the vocabulary."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Items in the vocabulary, with or without answers."""
        return len(self.items)

    @property
    def n_answers(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @property
    def has_ties(self) -> bool:
        """Whether any answer is a tie."""
        return bool((self.outcome == 0).any())

    @property
    def code(self) -> NDArray[np.int8]:
        """Outcome and grade g in one, (n_rows,): 0 a tie, 1 or -1 where only the side is known, and ±(1 + g)."""
        return self.outcome if self.grade is None else (self.outcome * (1 + self.grade)).astype(np.int8)

    @property
    def user_offsets(self) -> NDArray[np.int64]:
        """Rows of user ``u`` are ``user_offsets[u]:user_offsets[u + 1]``; shape (n_users + 1,)."""
        return row_offsets(self.user, self.n_users)

    @property
    def context_groups(self) -> NDArray[np.int64]:
        """A code for the context of each row, (n_rows,); an answer without one is by itself."""
        alone = np.arange(self.n_rows, dtype=np.int64)
        if self.context is None:
            return alone
        return np.where(self.context < 0, alone + int(self.context.max(initial=ALONE)) + 1, self.context)

    def append(self, other: Comparisons) -> Comparisons:
        """Answers of both, over the ids of both; no task of one is a task of the other.

        Raises
        ------
        DataError
            If ids differ in kind, only one of the two identifies users, or they have other covariates.
        """
        return joined(self, other)

    def with_grades(self, grades: tuple[str, ...]) -> Comparisons:
        """The same with other names of grades; of answers whose grade is none of them only the side counts."""
        if self.grade is None or grades == self.grades:
            return self
        grade = grade_in(self, grades) if grades else None
        return replace(self, grades=grades, **canonical_answers(self._answers()._replace(grade=grade))._asdict())

    def with_used_grades(self, least: int = 2) -> Comparisons:
        """The same with the names of those grades only that occur; without grades where fewer than ``least`` do."""
        if self.grade is None:
            return self
        used = np.unique(self.grade[self.grade > 0]).tolist()
        return self.with_grades(tuple(self.grades[number - 1] for number in used) if len(used) >= least else ())

    def without_grades(self) -> Comparisons:
        """The same answers of which only the side counts; rows that are equal then are one."""
        return self.with_grades(())

    def with_side(self) -> Comparisons:
        """Answers of which the side is one more covariate, the last, called "side"; ``sides`` is None.

        It is 1 where the left item was shown on the left, -1 on the right and 0 where that is not known; rows are split
        by it. DataError if there is a covariate of this name already.
        """
        return split_by_side(self)

    def by_pairs(self) -> Comparisons:
        """The same rows, each an answer by itself, though they are of one task; without those of copies of an item."""
        kept = self if self.copies is None else self.take(~self.copies.any(axis=1))
        return replace(kept, joint=False, copies=None)

    def alternatives(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Codes of the left and right alternatives, (n_rows,) each, other ones for the copies of an item.

        The code of an item is the remainder of a division by the number of items.
        """
        left, right = self.left.astype(np.int64), self.right.astype(np.int64)
        if self.copies is None:
            return left, right
        return left + self.n_items * self.copies[:, 0], right + self.n_items * self.copies[:, 1]

    def without_covariates(self) -> Comparisons:
        """The same answers without covariates and sides; rows that are equal then are one."""
        if not self.covariate_names:
            return self if self.sides is None else replace(self, sides=None)
        answers = self._answers()._replace(sides=None, covariates=None)
        return replace(self, covariate_names=(), **canonical_answers(answers)._asdict())

    def with_weight(self, weight: ArrayLike) -> Comparisons:
        """The same rows with other, positive weights, shape (n_rows,); sides change in proportion."""
        weight = numbers_in("weight", weight)
        if len(weight) != self.n_rows:
            raise DataError(f"there are {len(weight)} weights for {self.n_rows} rows. Give one for each.")
        sides = None if self.sides is None else self.sides * (weight / self.weight)[:, None]
        return replace(self, weight=weight, sides=sides)

    def _answers(self) -> AnswerColumns:
        return AnswerColumns._make(getattr(self, name) for name in AnswerColumns._fields)

    def with_items(self, ids: Any) -> Comparisons:
        """The same answers with more items in the vocabulary; known ids may be among ``ids``."""
        items = self.items.extend(ids)
        if items == self.items:
            return self
        # Inserting into a sorted vocabulary keeps the relative order, so the rows stay canonical.
        code = items.codes(self.items.series())
        return replace(self, items=items, left=code[self.left], right=code[self.right])

    def take(self, rows: ArrayLike) -> Comparisons:
        """Some of the rows, by mask of shape (n_rows,) or by index, over the same vocabularies.

        The canonical order stays; a repeated index counts once. The intake is that of all rows.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            if chosen.shape != (self.n_rows,):
                raise DataError(f"the mask has shape {chosen.shape}, expected ({self.n_rows},).")
            index = np.flatnonzero(chosen)
        else:
            if chosen.size and chosen.dtype.kind not in "iu":
                raise DataError(f"expected a mask or row indices, got an array of {chosen.dtype}.")
            index = np.unique(chosen.astype(np.int64))
            if len(index) and (index[0] < 0 or index[-1] >= self.n_rows):
                raise DataError(f"row indices must lie in [0, {self.n_rows}), got {index[0]} to {index[-1]}.")
        return replace(self, **self._answers().at(index)._asdict())

    def without_times(self) -> Comparisons:
        """The same answers, not said when they were given; rows that are equal then are one."""
        if self.time is None:
            return self
        return replace(self, clock="", **canonical_answers(self._answers()._replace(time=None))._asdict())

    def pooled(self) -> Comparisons:
        """The same answers without people; equal answers of different people add up, but for those of several rows."""
        task = joint_rows(self) if self.joint else None
        answers = canonical_answers(self._answers()._replace(user=np.zeros_like(self.user), task=task))
        return replace(self, users=Vocabulary([EVERYONE]), has_users=False, **answers._asdict())

    def to_frame(self, backend: str | None = None) -> Any:
        """Data frame with the ids, one canonical row each.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars", "pyarrow" ...; by default the kind that came in.

        Returns
        -------
        data frame
            Columns user (only if users are identified), left, right, winner ("left", "right" or "tie"),
            outcome (1, 0, -1), weight and, if known, task (missing for an answer without one), a column of
            differences, left minus right, for each covariate, and shown_left, the weight of answers in which the left
            item was shown on the left, context, when (the time), and grade, a name, missing where only the side is
            known; then outcome holds its number (1 without one); copy_left and copy_right, where a task holds an item
            several times. ``from_frame(..., side=False)``, with ``task="task"``, ``covariates=[...]``,
            ``context="context"`` and ``time="when"`` where there are any, reads it back to the same comparisons without
            their sides and grades; a task that holds an item several times it refuses, and the pairs of an order, of
            ratings or of a best-worst answer it takes for answers of their own.
        """
        return build_frame(frame_columns(self), backend or self.backend)

    def __len__(self) -> int:
        return self.n_rows

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparisons):
            return NotImplemented
        same_ids = self.users == other.users and self.items == other.items and self.has_users == other.has_users
        if not same_ids or self.covariate_names != other.covariate_names or (self.task is None) != (other.task is None):
            return False
        if (self.contexts, self.grades, self.clock) != (other.contexts, other.grades, other.clock):
            return False
        mine, theirs = (one._answers()._replace(sides=None) for one in (self, other))
        if self.task is not None:
            # Codes that share no order may still put the same rows together.
            mine, theirs = canonical_answers(mine), canonical_answers(theirs)
        pairs = zip(mine, theirs, strict=True)
        return all(one is two or np.array_equal(one, two) for one, two in pairs)  # type: ignore[arg-type]

    # Not hashable, as whatever is compared by its contents; mypy takes it for a method of object that was lost.
    __hash__ = None  # type: ignore[assignment]

    def head(self, n: int = 5) -> Any:
        """The first ``n`` rows of :meth:`to_frame`."""
        check_count("n", n, 0)
        return self.take(np.arange(min(n, self.n_rows))).to_frame()

    def _repr_html_(self) -> str:
        """What a notebook shows: how much there is, and the first rows."""
        first = self.take(np.arange(min(_SHOWN, self.n_rows))).to_frame("polars")
        return f"<p>{escape(repr(self))}</p>{first._repr_html_()}"

    def __repr__(self) -> str:
        people = f"{self.n_users} users, " if self.has_users else ""
        return f"Comparisons({people}{self.n_items} items, {self.n_rows} rows, {self.n_answers:.10g} answers)"


def _columns_of_pairs(rows: list[Any], *, given: bool) -> dict[str, list[Any]]:
    """Columns of a list of pairs, (winner, loser), or (left, right) whose outcomes are given; DataError for others."""
    sides = ("left", "right") if given else ("winner", "loser")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, tuple | list) or len(row) != 2:
            raise DataError(
                f"a list of answers holds pairs ({', '.join(sides)}); got {quoted(row)} at place {number}. Where there "
                "is more to an answer give columns with names, such as "
                '{"user": [...], "left": [...], "right": [...], "winner": [...]}.'
            )
    return {side: [row[k] for row in rows] for k, side in enumerate(sides)}


def joint_rows(answers: Comparisons) -> NDArray[np.int32]:
    """Number of the task that a row shares noise with, (n_rows,); -1 for a row that is an answer by itself."""
    if answers.task is None or not answers.joint:
        return np.full(len(answers.left), ALONE, dtype=np.int32)
    size = np.bincount(answers.task + 1)
    several = size[answers.task + 1] > 1
    if answers.copies is not None:
        several |= answers.copies.any(axis=1)
    return np.where((answers.task >= 0) & several, answers.task, np.int32(ALONE))


def n_joint(answers: Comparisons) -> int:
    """Number of tasks of several rows that are one answer each."""
    task = joint_rows(answers)
    return len(np.unique(task[task >= 0]))


def choices_in(answers: Comparisons) -> Comparisons | None:
    """The answers with tasks of several rows as choices, if in each of them one item wins over others; else None.

    An item that stands twice among the others of a task counts once, with a warning, where that is so in few tasks.
    """
    task = joint_rows(replace(answers, joint=True))
    rows = np.flatnonzero(task >= 0)
    if not len(rows) or (answers.outcome[rows] == 0).any() or answers.grade is not None:
        return None
    up = answers.outcome[rows] > 0
    winner, loser = (np.where(side, answers.left[rows], answers.right[rows]) for side in (up, ~up))
    n_tasks = len(np.unique(task[rows]))
    with_winner, with_loser = (np.unique(np.stack([task[rows], column]), axis=1).shape[1] for column in (winner, loser))
    if with_winner != n_tasks or with_loser != len(rows):
        return None
    n_all = int(task.max()) + 1
    least, most = np.full(n_all, np.inf), np.zeros(n_all)
    np.minimum.at(least, task[rows], answers.weight[rows])
    np.maximum.at(most, task[rows], answers.weight[rows])
    odd = int((most > least).sum())
    if odd > _FEW * n_tasks:
        return None
    if odd:
        warnings.warn(
            f"{odd} of {n_tasks} tasks hold an alternative twice: it counts once in each", DataWarning, stacklevel=3
        )
        weight = answers.weight.copy()
        weight[rows] = least[task[rows]]
        sides = None if answers.sides is None else answers.sides * (weight / answers.weight)[:, None]
        answers = replace(answers, weight=weight, sides=sides)
    return replace(answers, joint=True)


def frame_columns(answers: Comparisons) -> dict[str, Any]:
    """Columns of ``Comparisons.to_frame``."""
    columns: dict[str, Any] = {"user": answers.users.labels(answers.user)} if answers.has_users else {}
    words = np.array(["right", "tie", "left"], dtype=object)
    columns |= {
        "left": answers.items.labels(answers.left),
        "right": answers.items.labels(answers.right),
        "winner": words[answers.outcome + 1],
        "outcome": answers.outcome.astype(np.int64),
        "weight": answers.weight,
    }
    if answers.task is not None:
        columns["task"] = pl.Series(answers.task, dtype=pl.Int64).set(pl.Series(answers.task == ALONE), None)
    if answers.covariates is not None:
        columns |= dict(zip(answers.covariate_names, answers.covariates.T, strict=True))
    if answers.sides is not None:
        columns["shown_left"] = answers.sides[:, 0]
    if answers.context is not None and answers.contexts is not None:
        place = pl.Series(answers.context, dtype=pl.Int64).set(pl.Series(answers.context == ALONE), None)
        columns["context"] = answers.contexts.series().gather(place)
    if answers.time is not None:
        columns["when"] = shown_times(answers.time, answers.clock)
    if answers.copies is not None:
        columns |= {"copy_left": answers.copies[:, 0], "copy_right": answers.copies[:, 1]}
    if answers.grade is not None:
        columns["grade"] = [answers.grades[number - 1] if number else None for number in answers.grade.tolist()]
        columns["outcome"] *= np.maximum(answers.grade, 1)
    return columns


def split_by_side(answers: Comparisons) -> Comparisons:
    """As ``Comparisons.with_side``."""
    if SIDE in answers.covariate_names:
        raise DataError(f'there is a covariate called "{SIDE}" already; rename it, or read with side=False.')
    shown = np.zeros((answers.n_rows, 2)) if answers.sides is None else answers.sides
    rest = answers.weight - shown.sum(axis=1)
    parts = np.column_stack([shown, np.where(rest > _DUST * answers.weight, rest, 0.0)])
    row, which = np.nonzero(parts)
    side = np.array([1.0, -1.0, 0.0])[which]
    before = np.zeros((answers.n_rows, 0)) if answers.covariates is None else answers.covariates
    rows = answers._answers()._replace(sides=None)
    split = rows.at(row)._replace(weight=parts[row, which], covariates=np.column_stack([before[row], side]))
    names = (*answers.covariate_names, SIDE)
    return replace(answers, covariate_names=names, **canonical_answers(split)._asdict())


def grade_in(answers: Comparisons, grades: tuple[str, ...]) -> NDArray[np.int8]:
    """Grades of the rows among other names, 0 where theirs is none of them; (n_rows,)."""
    if answers.grade is None:
        return np.zeros(answers.n_rows, dtype=np.int8)
    place = [0, *(1 + grades.index(name) if name in grades else 0 for name in answers.grades)]
    return np.array(place, dtype=np.int8)[answers.grade]


def without_person(answers: Comparisons, user: Any) -> Comparisons:
    """The answers without all that is of one person: rows, id, and contexts that nobody else answered in."""
    gone = answers.users.code(user)
    rows = answers.take(answers.user != gone)
    unused = tuple(one for one in rows.intake.unused_users if str(one) != str(user))
    changed: dict[str, Any] = {"intake": replace(rows.intake, unused_users=unused)}
    if gone >= 0:
        changed |= {
            "users": Vocabulary(rows.users.series().filter(np.arange(rows.n_users) != gone)),
            "user": rows.user - (rows.user > gone),
        }
    if rows.context is not None and rows.contexts is not None:
        used, context = np.unique(rows.context, return_inverse=True)
        alone = int((used == ALONE).any())
        changed |= {"contexts": Vocabulary(rows.contexts.labels(used[alone:])), "context": context - alone}
    return replace(rows, **changed)


def joined(first: Comparisons, second: Comparisons) -> Comparisons:
    """Answers of both, no task of one a task of the other; raises DataError as ``Comparisons.append``."""
    if not isinstance(second, Comparisons):
        raise DataError(f"answers are appended to answers, predilect.read(...), not {quoted(second)}.")
    if first.has_users != second.has_users:
        raise DataError(
            "one set of answers tells people apart and the other does not; "
            "read both with the same user column, or pool both with pooled()."
        )
    if first.covariate_names != second.covariate_names and first.n_rows and second.n_rows:
        named = [", ".join(f'"{name}"' for name in one.covariate_names) or "none" for one in (first, second)]
        raise DataError(
            f"two sets of answers have different covariates, {named[0]} and {named[1]}; read both with the same "
            "covariates=[...], or leave them out with without_covariates()."
        )
    if first.clock != second.clock and first.n_rows and second.n_rows:
        raise DataError(
            f"two sets of answers have different times, {first.clock or 'none'} and {second.clock or 'none'}; read "
            f"both with {option('time', 'NAME')} of one kind, or leave the times out with without_times()."
        )
    joint = {one.joint for one in (first, second) if one.task is not None}
    if len(joint) > 1:
        raise DataError(
            "rows of a task are one answer in one of the two sets of answers, and pairs that were only asked together "
            f"in the other; read both with the same kind, such as {option('kind', 'pairs')}."
        )
    users, items = first.users.extend(second.users), first.items.extend(second.items)
    names = (first if first.n_rows else second).covariate_names
    contexts = first.contexts or second.contexts
    if first.contexts is not None and second.contexts is not None:
        contexts = first.contexts.extend(second.contexts)
    grades = joined_grades(first.grades, second.grades)
    parts = [
        one._answers()._replace(
            user=users.codes(one.users)[one.user],
            left=items.codes(one.items)[one.left],
            right=items.codes(one.items)[one.right],
            task=None,
            sides=np.zeros((one.n_rows, 2)) if one.sides is None else one.sides,
            copies=_copies_in(one, both=first.copies is not None or second.copies is not None),
            covariates=one.covariates if one.covariate_names == names else None,
            context=None if contexts is None else _context_in(one, contexts),
            grade=grade_in(one, grades) if grades else None,
        )
        for one in (first, second)
    ]
    both = AnswerColumns._make(
        None if all(part is None for part in pair) else np.concatenate([part for part in pair if part is not None])
        for pair in zip(*parts, strict=True)
    )
    answers = canonical_answers(both._replace(task=joined_tasks(first.task, second.task, first.n_rows, second.n_rows)))
    merged = first.intake.merge(second.intake)
    merged = replace(
        merged,
        duplicates=merged.duplicates + len(both.user) - len(answers.user),
        unused_items=tuple(value for value in merged.unused_items if value not in items),
        unused_users=tuple(value for value in merged.unused_users if value not in users),
    )
    return replace(
        first, joint=joint == {True}, users=users, items=items, intake=merged, covariate_names=names, contexts=contexts,
        grades=grades, clock=first.clock or second.clock,
        item_table=joined_tables(first.item_table, second.item_table), **answers._asdict(),
    )  # fmt: skip


def _copies_in(one: Comparisons, both: bool) -> NDArray[np.int16] | None:
    """Copies of the rows, zeros where only the other answers have some; None where neither has."""
    return np.zeros((one.n_rows, 2), dtype=np.int16) if both and one.copies is None else one.copies


def _context_in(one: Comparisons, contexts: Vocabulary) -> NDArray[np.int32]:
    """Codes of the contexts of answers in another vocabulary."""
    if one.context is None or one.contexts is None:
        return np.full(one.n_rows, ALONE, dtype=np.int32)
    return np.append(contexts.codes(one.contexts.series()), np.int32(ALONE))[one.context]


def joined_tables(first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
    """What describes the items of both; DataError where the two say different things of one item."""
    if first is None or second is None:
        return second if first is None else first
    both = pl.concat([first, second], how="diagonal_relaxed").unique(maintain_order=True)
    twice = both.filter(both["item"].is_duplicated())
    if len(twice):
        raise DataError(
            f"the two sets of answers describe {twice['item'].n_unique()} items differently (first: "
            f'"{shown(twice["item"][0])}"). Read both with the same profile=[...], or give the items other ids.'
        )
    return both.sort("item")


def joined_grades(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the grades of two sets of answers; DataError where their order is not known."""
    if not first or not second or first == second:
        return first or second
    if all(name in first for name in second) and [name for name in first if name in second] == list(second):
        return first
    if all(name in second for name in first) and [name for name in second if name in first] == list(first):
        return second
    if all(map(is_whole, first + second)):
        return tuple(sorted({*first, *second}, key=int))
    raise DataError(
        f"two sets of answers have different grades, {', '.join(first)} and {', '.join(second)}; read both with the "
        "same grades=[...], from slight to strong, or leave them out with without_grades()."
    )
