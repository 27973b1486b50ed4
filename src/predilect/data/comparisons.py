"""Pairwise answers as frozen columns of codes in one canonical order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from predilect._forks import refuse_without_threads
from predilect.data.canonical import ALONE, Answers, canonical_answers, row_offsets
from predilect.data.derived import frame_columns, grade_in, joined, split_by_side
from predilect.data.frames import build_frame, open_frame
from predilect.data.intake import Intake, Reading
from predilect.data.orders import choices_in, joint_rows, n_joint
from predilect.data.read.assemble import EVERYONE
from predilect.data.read.options import ReadOptions, read_options
from predilect.data.read.recognise import assembled
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

_COLUMNS = {
    "user": np.int32, "left": np.int32, "right": np.int32, "outcome": np.int8, "weight": np.float64, "task": np.int32,
    "sides": np.float64, "covariates": np.float64, "context": np.int32, "grade": np.int8,
}  # fmt: skip
_TOGETHER = (
    ("covariates", "covariate_names", "one name a column"), ("context", "contexts", "codes, and what they stand for"),
    ("grade", "grades", "a number for each row, and what the numbers stand for"),
)  # fmt: skip


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
        Codes; ``left < right`` in every row.
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

    def __post_init__(self) -> None:
        for one, other, names in _TOGETHER:
            if (getattr(self, one) is None) != (getattr(self, other) in (None, ())):
                raise DataError(f"{one} and {other} go together: {names}.")
        n_columns = {"sides": 2, "covariates": len(self.covariate_names)}
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
            nothing = (name == "task" and not (array > ALONE).any()) or (name == "sides" and not array.any())
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
        frame : data frame or dict of columns
            pandas, polars, Arrow or whatever else narwhals reads, eager or lazy.
        columns : dict of role to column, optional
            Columns that are not found, or not to be found, by their names: who, left, right, answer, won, lost, task,
            alternatives, profile, weights, context, covariates. None or "" says that there is no such column.
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
    def read_with(cls, frame: Any, options: ReadOptions) -> Comparisons:
        """:meth:`from_frame` by the options of the readers."""
        refuse_without_threads()
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
    def reading(self) -> Reading:
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

    def without_covariates(self) -> Comparisons:
        """The same answers without covariates and sides; rows that are equal then are one."""
        if not self.covariate_names:
            return self if self.sides is None else replace(self, sides=None)
        answers = self._answers()._replace(sides=None, covariates=None)
        return replace(self, covariate_names=(), **canonical_answers(answers)._asdict())

    def with_weight(self, weight: ArrayLike) -> Comparisons:
        """The same rows with other, positive weights, shape (n_rows,); sides change in proportion."""
        weight = np.asarray(weight, dtype=np.float64)
        sides = None if self.sides is None else self.sides * (weight / self.weight)[:, None]
        return replace(self, weight=weight, sides=sides)

    def _answers(self) -> Answers:
        return Answers._make(getattr(self, name) for name in Answers._fields)

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
            item was shown on the left, context, and grade, a name, missing where only the side is known; then outcome
            holds its number (1 without one). ``from_frame(..., side=False)``, with ``task="task"``,
            ``covariates=[...]`` and ``context="context"`` where there are any, reads it back to the same comparisons
            without their sides and grades.
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
        if self.contexts != other.contexts or self.grades != other.grades:
            return False
        mine, theirs = (one._answers()._replace(sides=None) for one in (self, other))
        if self.task is not None:
            # Codes that share no order may still put the same rows together.
            mine, theirs = canonical_answers(mine), canonical_answers(theirs)
        pairs = zip(mine, theirs, strict=True)
        return all(one is two or np.array_equal(one, two) for one, two in pairs)  # type: ignore[arg-type]

    # Not hashable, as whatever is compared by its contents; mypy takes it for a method of object that was lost.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        people = f"{self.n_users} users, " if self.has_users else ""
        return f"Comparisons({people}{self.n_items} items, {self.n_rows} rows, {self.n_answers:.10g} answers)"
