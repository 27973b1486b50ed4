"""Pairwise answers as frozen columns of codes in one canonical order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from predilect.data.canonical import ALONE, Answers, canonical_answers, joined_tasks, row_offsets
from predilect.data.frames import build_frame, open_frame
from predilect.data.intake import Intake
from predilect.data.read.assemble import EVERYONE, ReadOptions, assemble
from predilect.data.read.winners import WinnerIs
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

SIDE = "side"  # the covariate that Comparisons.with_side makes
_DUST = 1e-9  # relative: sums of weights carry rounding errors
_COLUMNS = (("user", np.int32), ("left", np.int32), ("right", np.int32), ("outcome", np.int8), ("weight", np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Pairwise answers, coded, checked and sorted.

    Rows are sorted by user, left, right and outcome code, with the item of the smaller code on the left; equal
    rows (of one task, where tasks are known, and with the same covariates) are one row with their weights added,
    contradicting ones stay apart. Since ids are sorted too, the order of the rows that came in and a swap of left and
    right change nothing but ``intake`` and ``sides``; except that choices are recognised by the order where no column
    says which rows are one task.

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

    Notes
    -----
    The arrays are read-only. Use ``Comparisons.from_frame`` or ``read_comparisons``; the constructor expects
    canonical rows and does not sort. ``==`` compares ids, answers, covariates, contexts and which answers
    share a task, not the intake, nor sides, which are all that a swap of left and right changes.
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

    def __post_init__(self) -> None:
        for name, dtype in _COLUMNS:
            array = np.asarray(getattr(self, name), dtype=dtype).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if len({len(getattr(self, name)) for name, _ in _COLUMNS}) > 1:
            raise DataError("user, left, right, outcome and weight must have the same length.")
        if self.task is not None:
            task = np.maximum(np.asarray(self.task, dtype=np.int32), ALONE)
            if task.shape != self.user.shape:
                raise DataError(f"task has shape {task.shape}, expected ({self.n_rows},): one code a row.")
            task.flags.writeable = False
            object.__setattr__(self, "task", task if (task > ALONE).any() else None)
        if (self.context is None) != (self.contexts is None):
            raise DataError("context and contexts go together: codes, and what they stand for.")
        if self.context is not None:
            context = np.asarray(self.context, dtype=np.int32).view()
            if context.shape != self.user.shape:
                raise DataError(f"context has shape {context.shape}, expected ({self.n_rows},): one code a row.")
            context.flags.writeable = False
            object.__setattr__(self, "context", context)
        if (self.covariates is None) != (not self.covariate_names):
            raise DataError("covariates and covariate_names go together: one name a column.")
        for name, n_columns in (("sides", 2), ("covariates", len(self.covariate_names))):
            if getattr(self, name) is not None:
                array = np.asarray(getattr(self, name), dtype=np.float64).view()
                if array.shape != (self.n_rows, n_columns):
                    raise DataError(f"{name} has shape {array.shape}, expected ({self.n_rows}, {n_columns}).")
                array.flags.writeable = False
                object.__setattr__(self, name, array)
        if self.sides is not None and not self.sides.any():
            object.__setattr__(self, "sides", None)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | bool | None = None,
        left: str | None = None,
        right: str | None = None,
        winner: str | None = None,
        ties: Iterable[object] = (),
        weight: str | bool | None = None,
        outcome: Any = None,
        item_map: Mapping[Any, Any] | None = None,
        winner_is: WinnerIs | None = None,
        drop_missing: bool = False,
        drop_self: bool = False,
        drop_unknown: bool = False,
        task: str | bool | None = None,
        covariates: Sequence[str] = (),
        side: bool | None = None,
        context: str | None = None,
    ) -> Comparisons:
        """Read a data frame with one answer a row.

        Parameters
        ----------
        frame : data frame or dict of columns
            pandas, polars, Arrow or whatever else narwhals reads, eager or lazy.
        user, left, right, winner, weight : str, optional
            Column names; guessed from the names in common use where not given. ``user=False`` and
            ``weight=False`` use no such column even if there is one.
        ties : iterable
            Winner values that stand for a tie, besides tie, draw, equal, both_bad and the like.
        outcome : array-like, shape (n_rows,), optional
            1 (left better), 0 (tie) or -1 (right better), or booleans (True: left better), instead of a winner
            column. Only 1 and 0 is an error, as 0 may mean right: ``ties=["0"]`` says that it is a tie.
        item_map : mapping, optional
            Replaces every item id, as a dict of id to id or a dict of two columns.
        winner_is : {"item", "side", "sign"}, optional
            What the winner column holds, where its values could be read in two ways.
        drop_missing, drop_self, drop_unknown : bool
            Leave out, and count in ``intake``, rows without an id, rows of an item against itself, and rows
            whose winner is none of the two items nor a tie. Each is an error otherwise.
        task : str, optional
            Column that says which of a person's answers were given in one go, such as the pairs made of one
            choice from several items: held-out tests keep them together. Ids need be distinct within a person
            only, or over all rows where users are not identified; a missing id is an answer without a task. Guessed
            where users are identified and somebody has two tasks; ``task=False`` uses none. Without such a column,
            consecutive rows of one person with one winner over different items are taken for one choice, if at least
            95 % of the rows of repeated winners and most of all rows lie so, and they are not merely sorted;
            ``intake.choices_found`` counts them, and ``task=False`` refuses it.
        covariates : sequence of str
            What else differed between the two shown and may have moved the answer, such as the length of two texts.
            ``"length"`` is a column of numbers, left minus right, or stands for two columns of which the difference is
            taken, ``length_left`` and ``length_right`` or ``length_a`` and ``length_b``. Rows without a value are
            an error, or left out by ``drop_missing``.
        side : bool, optional
            Whether left and right are the sides on which items were shown. By default they are, unless rows come from
            choices, from columns such as chosen and rejected, have the winner on one side in more than four of five
            decided answers (20 or more), or are pairs sorted by id; ``intake.no_sides`` has the reason. A model that
            knows sides then finds out whether they move answers. False keeps no sides. True says that they are, and
            makes the side a covariate, as :meth:`with_side` does; an error where the columns or choices rule it out.
        context : str, optional
            Column with the prompt, scenario or place that answers are about: those on one, of whomever, depend on each
            other. A missing id is an answer without one.

        Raises
        ------
        DataError
            With what was expected, what came, in which rows, and what to do.

        Notes
        -----
        O(n log n) time; about 1 s and 100 bytes a row for a million rows.
        """
        options: ReadOptions = {
            "user": user,
            "left": left,
            "right": right,
            "winner": winner,
            "ties": ties,
            "weight": weight,
            "outcome": outcome,
            "item_map": item_map,
            "winner_is": winner_is,
            "drop_missing": drop_missing,
            "drop_self": drop_self,
            "drop_unknown": drop_unknown,
            "task": task,
            "covariates": covariates,
            "side": side,
            "context": context,
        }
        table, backend = open_frame(frame)
        users, items, contexts, answers, names, has_users, intake = assemble(table, options)
        found = cls(
            users, items, has_users=has_users, intake=intake, backend=backend, covariate_names=names, contexts=contexts,
            **answers._asdict(),
        )  # fmt: skip
        return found.with_side() if side else found

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
        if self.has_users != other.has_users:
            raise DataError(
                "one set of answers tells people apart and the other does not; "
                "read both with the same user column, or pool both with pooled()."
            )
        if self.covariate_names != other.covariate_names and self.n_rows and other.n_rows:
            told = [", ".join(f'"{name}"' for name in one.covariate_names) or "none" for one in (self, other)]
            raise DataError(
                f"two sets of answers have different covariates, {told[0]} and {told[1]}; read both with the same "
                "covariates=[...], or leave them out with without_covariates()."
            )
        users, items = self.users.extend(other.users), self.items.extend(other.items)
        joined = []
        for name, ids in (("user", users), ("left", items), ("right", items)):
            parts = [ids.codes(side.users if name == "user" else side.items)[getattr(side, name)]
                     for side in (self, other)]  # fmt: skip
            joined.append(np.concatenate(parts))
        outcome, weight = (np.concatenate([getattr(self, n), getattr(other, n)]) for n in ("outcome", "weight"))
        task = joined_tasks(self.task, other.task, self.n_rows, other.n_rows)
        names = (self if self.n_rows else other).covariate_names
        sides, covariates = None, None
        if self.sides is not None or other.sides is not None:
            sides = np.concatenate([one.sides if one.sides is not None else np.zeros((one.n_rows, 2))
                                    for one in (self, other)])  # fmt: skip
        if names:
            with_names = (one.covariates for one in (self, other) if one.covariate_names == names)
            covariates = np.concatenate([part for part in with_names if part is not None])
        contexts, context = self.contexts or other.contexts, None
        if contexts is not None:
            contexts = contexts if self.contexts is None or other.contexts is None else contexts.extend(other.contexts)
            context = np.concatenate([one._context_in(contexts) for one in (self, other)])
        answers = canonical_answers(
            Answers(joined[0], joined[1], joined[2], outcome, weight, task, sides, covariates, context)
        )
        merged = self.intake.merge(other.intake)
        merged = replace(
            merged,
            duplicates=merged.duplicates + len(outcome) - len(answers.user),
            unused_items=tuple(value for value in merged.unused_items if value not in items),
            unused_users=tuple(value for value in merged.unused_users if value not in users),
        )
        return Comparisons(
            users, items, has_users=self.has_users, intake=merged, backend=self.backend, covariate_names=names,
            contexts=contexts, **answers._asdict(),
        )  # fmt: skip

    def _context_in(self, contexts: Vocabulary) -> NDArray[np.int32]:
        """Codes of the contexts in another vocabulary."""
        if self.context is None or self.contexts is None:
            return np.full(self.n_rows, ALONE, dtype=np.int32)
        return np.append(contexts.codes(self.contexts.series()), np.int32(ALONE))[self.context]

    def with_side(self) -> Comparisons:
        """Answers of which the side is one more covariate, the last, called "side"; ``sides`` is None.

        It is 1 where the left item was shown on the left, -1 on the right and 0 where that is not known; rows are split
        by it. DataError if there is a covariate of this name already.
        """
        if SIDE in self.covariate_names:
            raise DataError(f'there is a covariate called "{SIDE}" already; rename it, or read with side=False.')
        shown = np.zeros((self.n_rows, 2)) if self.sides is None else self.sides
        rest = self.weight - shown.sum(axis=1)
        parts = np.column_stack([shown, np.where(rest > _DUST * self.weight, rest, 0.0)])
        row, which = np.nonzero(parts)
        side = np.array([1.0, -1.0, 0.0])[which]
        before = np.zeros((self.n_rows, 0)) if self.covariates is None else self.covariates
        answers = self._answers()._replace(sides=None)
        split = answers.at(row)._replace(weight=parts[row, which], covariates=np.column_stack([before[row], side]))
        names = (*self.covariate_names, SIDE)
        return replace(self, covariate_names=names, **canonical_answers(split)._asdict())

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
        """The same answers without people and tasks; equal answers of different people add up."""
        answers = canonical_answers(self._answers()._replace(user=np.zeros_like(self.user), task=None))
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
            item was shown on the left, and context. ``from_frame(..., side=False)``, with ``task="task"``,
            ``covariates=[...]`` and ``context="context"`` where there are any, reads it back to the same comparisons
            without their sides.
        """
        columns: dict[str, Any] = {"user": self.users.labels(self.user)} if self.has_users else {}
        words = np.array(["right", "tie", "left"], dtype=object)
        columns |= {
            "left": self.items.labels(self.left),
            "right": self.items.labels(self.right),
            "winner": words[self.outcome + 1],
            "outcome": self.outcome.astype(np.int64),
            "weight": self.weight,
        }
        if self.task is not None:
            columns["task"] = pl.Series(self.task, dtype=pl.Int64).set(pl.Series(self.task == ALONE), None)
        if self.covariates is not None:
            columns |= dict(zip(self.covariate_names, self.covariates.T, strict=True))
        if self.sides is not None:
            columns["shown_left"] = self.sides[:, 0]
        if self.context is not None and self.contexts is not None:
            place = pl.Series(self.context, dtype=pl.Int64).set(pl.Series(self.context == ALONE), None)
            columns["context"] = self.contexts.series().gather(place)
        return build_frame(columns, backend or self.backend)

    def __len__(self) -> int:
        return self.n_rows

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparisons):
            return NotImplemented
        same_ids = self.users == other.users and self.items == other.items and self.has_users == other.has_users
        if not same_ids or self.covariate_names != other.covariate_names or (self.task is None) != (other.task is None):
            return False
        if self.contexts != other.contexts:
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
