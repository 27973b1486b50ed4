"""Ids and their integer codes: the only place where an id becomes a number."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.forks import refuse_without_threads
from predilect._base.text import did_you_mean, quoted, shown
from predilect.data.frames import FEW, clean_ids, to_series
from predilect.errors import DataError

EVERYONE = "everyone"  # who answered, where nobody is named
_FEW_NUMBERS, _FEW_TEXTS = 8, 300  # ids that are looked up one by one, which is quicker; measured


class Vocabulary:
    """Sorted, unique ids; the code of an id is its position.

    Text is sorted by code point, whole numbers by value, so a vocabulary does not depend on the order in which ids were
    met. Look-ups take the other kind where nothing is lost: 7 finds "7" among text ids; "7" finds 7 among integer ids,
    "07" does not.

    Parameters
    ----------
    ids : iterable, array or series
        All text or all whole numbers; repeated ids count once.

    Raises
    ------
    DataError
        If an id is missing or the kinds are mixed.

    Notes
    -----
    Building and looking up cost O(n log n) and run in polars.
    """

    __slots__ = ("_hash", "_ids", "_is_integer", "_list")

    _ids: pl.Series
    _list: list[Any] | None
    _hash: int | None
    _is_integer: bool

    def __init__(self, ids: Any) -> None:
        series = clean_ids(_series_of(ids), "ids")
        if series.null_count():
            row = int(series.is_null().arg_max() or 0)
            raise DataError(f"{series.null_count()} ids are missing or blank (first: position {row + 1}).")
        if len(series) <= FEW:
            self._ids = pl.Series("id", sorted(set(series.to_list())), dtype=series.dtype)
        else:
            refuse_without_threads()
            self._ids = (series if rises(series) else series.unique().sort()).alias("id")
        self._list = None
        self._hash = None
        self._is_integer = bool(self._ids.dtype == pl.Int64)

    @property
    def ids(self) -> list[Any]:
        """The ids in order, as Python ``str`` or ``int``; treat as read-only."""
        if self._list is None:
            self._list = self._ids.to_list()
        return self._list

    @property
    def is_integer(self) -> bool:
        """Whether the ids are integers and not text."""
        return self._is_integer

    def array(self) -> NDArray[Any]:
        """The ids as int64 array, or as object array of ``str``; shape (n,)."""
        return self._ids.to_numpy() if self.is_integer else np.array(self.ids, dtype=object)

    def series(self) -> pl.Series:
        """The ids as polars series, shape (n,)."""
        return self._ids

    def codes(
        self, values: Any, unknown: Literal["raise", "minus_one"] = "raise", what: str = "item"
    ) -> NDArray[np.int32]:
        """Codes of ids, int32, shape (n,).

        Parameters
        ----------
        values : array, list or series, shape (n,)
        unknown : {"raise", "minus_one"}
            What to do with missing ids and those not in the vocabulary: DataError, or code -1.
        what : str
            Noun for the message.
        """
        raw = clean_ids(_series_of(values), what)
        codes = self._find(raw)
        if unknown == "raise" and (codes < 0).any():
            if raw.null_count():
                raise DataError(_missing_message(raw, what))
            rows = np.flatnonzero(codes < 0)
            first = ", ".join(_show(raw[int(row)]) for row in rows[:3])
            sample = ", ".join(_show(value) for value in self._ids.head(5).to_list())
            kind = ""
            if len(self) and raw.dtype != self._ids.dtype:
                kinds = ("text", "integers") if self.is_integer else ("integers", "text")
                kind = f", which are {kinds[1]}, while those asked for are {kinds[0]}"
            raise DataError(
                f"{len(rows)} of {len(codes)} {what} ids are not known (first: {first}); "
                f"there are {len(self)} known ids, such as {sample or 'none'}{kind}."
                f"{did_you_mean(raw[int(rows[0])], self.ids)}"
            )
        return codes

    def _find(self, raw: pl.Series) -> NDArray[np.int32]:
        wanted = raw
        if self.is_integer and raw.dtype == pl.String:
            number = raw.cast(pl.Int64, strict=False)
            wanted = number.set((number.cast(pl.String) != raw).fill_null(True), None)
        elif not self.is_integer and raw.dtype == pl.Int64:
            wanted = raw.cast(pl.String)
        if len(wanted) <= (_FEW_NUMBERS if self.is_integer else _FEW_TEXTS):
            return np.array([self._position(value) for value in wanted.to_list()], dtype=np.int32)
        refuse_without_threads()
        if wanted.equals(self._ids):
            return np.arange(len(self), dtype=np.int32)
        if self.is_integer:
            known, value = self._ids.to_numpy(), wanted.fill_null(0).to_numpy()
            if not len(known):
                return np.full(len(value), -1, dtype=np.int32)
            place = np.minimum(np.searchsorted(known, value), len(known) - 1)
            hit = (known[place] == value) & wanted.is_not_null().to_numpy()
            return np.where(hit, place, -1).astype(np.int32)
        code = pl.Series(np.arange(len(self), dtype=np.int32))
        return wanted.replace_strict(self._ids, code, default=-1, return_dtype=pl.Int32).to_numpy().copy()

    def _position(self, value: Any) -> int:
        if value is None:
            return -1
        ids = self.ids
        place = bisect_left(ids, value)
        return place if place < len(ids) and ids[place] == value else -1

    def own(self, value: Any) -> Any:
        """One id as this vocabulary would hold it; None for what is missing, or not an id of its kind.

        One without ids may become of either kind.
        """
        if isinstance(value, str):
            if not self.is_integer:
                return value if value.strip() else None
            try:
                number = int(value)
            except ValueError:
                return None
            return number if str(number) == value else None
        if isinstance(value, float | np.floating):
            if not float(value).is_integer() or abs(float(value)) >= 2.0**53:
                return None
        elif isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, int | np.integer):
            return None
        try:
            return int(value) if self.is_integer or not len(self) else str(int(value))
        except ValueError:  # more digits than Python writes
            return None

    def code(self, value: Any) -> int:
        """Code of one id, or -1; as :meth:`codes`, within microseconds."""
        return self._position(self.own(value))

    def labels(self, codes: Any) -> NDArray[Any]:
        """Ids of codes, int64 or object of ``str``, shape (n,); IndexError for a code not in ``[0, len(self))``."""
        codes = np.asarray(codes, dtype=np.int64)
        if codes.size and (codes.min() < 0 or codes.max() >= len(self)):
            raise IndexError(f"codes must lie in [0, {len(self)}), got {codes.min()} to {codes.max()}")
        labels: NDArray[Any] = self.array()[codes]
        return labels

    def extend(self, ids: Any) -> Vocabulary:
        """New vocabulary with more ids; an id of the other kind is converted where nothing is lost, else DataError."""
        more = clean_ids(_series_of(ids), "ids")
        if not len(more):
            return self
        if len(self) and self.is_integer and more.dtype == pl.String:
            number = more.cast(pl.Int64, strict=False)
            lost = (number.cast(pl.String) != more).fill_null(True)
            if lost.any():
                raise DataError(
                    f"the ids so far are integers, such as {self.ids[0]}, but {int(lost.sum())} new ids are text "
                    f"(first: {_show(more.filter(lost)[0])}). Ids must be all text or all integers."
                )
            more = number
        elif len(self) and not self.is_integer and more.dtype == pl.Int64:
            more = more.cast(pl.String)
        if more.equals(self._ids):
            return self
        return Vocabulary(pl.concat([self._ids, more]) if len(self) else more)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, value: object) -> bool:
        return self.code(value) >= 0

    def __iter__(self) -> Any:
        return iter(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or (self.is_integer == other.is_integer and self._ids.equals(other._ids))

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self.ids))
        return self._hash

    def __repr__(self) -> str:
        shown = ", ".join(_show(value) for value in self._ids.head(5).to_list())
        return f"Vocabulary({len(self)} ids: {shown}{', ...' if len(self) > 5 else ''})"


def rises(ids: pl.Series) -> bool:
    """Whether every id is above the one before, as those of a vocabulary are."""
    return bool((ids.head(-1) < ids.tail(-1)).all())


def _missing_message(ids: pl.Series, what: str) -> str:
    if len(ids) == 1:
        return f"the {what} id is missing: it is None, NaN or blank."
    row = int(ids.is_null().arg_max() or 0) + 1
    return f"{ids.null_count()} of {len(ids)} {what} ids are missing (first: position {row}): None, NaN or blank."


def _show(value: Any) -> str:
    return f'"{shown(value)}"' if isinstance(value, str) else str(value)


def _series_of(values: Any) -> pl.Series:
    if isinstance(values, Vocabulary):
        return values.series()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError(f"expected a list, array or series of ids, got {type(values).__name__} {quoted(values)}.")
    if not hasattr(values, "__len__"):
        values = list(values)
    return to_series(values, "ids")
