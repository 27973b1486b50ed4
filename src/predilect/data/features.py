"""Features of items and people: tables encoded as numbers, and the plan that encodes new rows alike."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import issparse

from predilect._base.json import plain, typed
from predilect._base.stored import Sizes, flags, numbers, optional, unless
from predilect._base.text import did_you_mean, either, quoted, shown
from predilect._base.types import BoolArray, FloatArray
from predilect.data.encoding import OnlyFor, Output, encode, one_row_each, only_for, plan_and_encode, product_of
from predilect.data.frames import Columns, as_text, clean_ids, open_frame
from predilect.data.read.columns import listed, refuse_index
from predilect.data.read.names import ITEM, PEOPLE_OF_TABLES, guess_one
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.kernels import squared_exponential


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Features of items as a standardised matrix, with the plan that encodes those of new items.

    Numbers and booleans are standardised to mean 0 and standard deviation 1 over the items; a missing number
    becomes the mean, and a further column marks where. Text becomes one standardised 0/1 column per category.
    Constant columns and free text are dropped, and the report says so.

    Attributes
    ----------
    ids : Vocabulary
    matrix : float64 array, shape (n_items, n_columns)
        Rows in the order of ``ids``; read-only.
    outputs : tuple of Output
        How each column is made.
    n_columns_before_constants : int
        Number of encoded columns before the constant ones were dropped.
    report : tuple of str
    """

    ids: Vocabulary
    matrix: NDArray[np.float64]
    outputs: tuple[Output, ...]
    n_columns_before_constants: int
    report: tuple[str, ...] = ()

    what: ClassVar[str] = "item"
    id_names: ClassVar[tuple[str, ...]] = ITEM

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=np.float64).view()
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        id_column: str | None = None,
        *,
        columns: Iterable[str] | None = None,
        categorical: Iterable[str] = (),
        piecewise: Mapping[str, Sequence[float]] | None = None,
    ) -> Self:
        """Encode a table with one row per item.

        Parameters
        ----------
        frame : data frame or dict of columns
        id_column : str, optional
            By default the first of item, item_id, id, model, name (for people: user, user_id, ...).
        columns : iterable of str, optional
            The features to use; by default all other columns.
        categorical : iterable of str
            Numeric columns whose values are labels and not amounts.
        piecewise : mapping of column to numbers, optional
            Where the slope of a number changes: ``{"price": [3, 5]}`` makes three columns, what of the price lies up to
            3, from 3 to 5 and from 5 on, which add up to it.

        Raises
        ------
        DataError
            If ids are missing, an item has two different rows, a number is infinite, it is a sparse matrix, or a cut is
            not within what is there.
        """
        table, id_column = cls._with_ids(frame, id_column)
        names = table.names
        wanted = [name for name in (names if columns is None else columns) if name != id_column]
        cuts = dict(piecewise or {})
        for given, named in (("categorical", list(categorical)), ("piecewise", list(cuts))):
            unknown = [name for name in named if name not in wanted]
            if unknown:
                raise DataError(
                    f"{given} names columns that are not there: {', '.join(unknown)}; there are {', '.join(wanted)}."
                )
        series = {name: table[name] for name in wanted}
        ids = clean_ids(table[id_column], id_column)
        if not len(ids):
            raise DataError(f"the table of {cls.what} features has no rows. Is it the right file?")
        if ids.null_count():
            row = int(ids.is_null().arg_max() or 0) + 1
            raise DataError(f'column "{id_column}" holds {ids.null_count()} missing ids (first: row {row}).')
        for name in cuts:
            if name in categorical or not series[name].dtype.is_numeric():
                raise DataError(f'"{name}" is not a number, and only slopes of numbers change (piecewise).')
        series, ids, report = one_row_each(series, ids, cls.what)
        return cls._encoded(series, ids, categorical, report, cuts)

    @classmethod
    def _with_ids(cls, frame: Any, id_column: str | None) -> tuple[Columns, str]:
        """Columns of a table, and the name of that of the ids; DataError if there is none."""
        _refuse_sparse(frame, cls.what)
        table = Columns(open_frame(frame)[0])
        if id_column is None:
            index = [name for name in table.index if name not in table]
            id_column = guess_one([*table, *index], cls.id_names)
            refuse_index(index, [id_column] if id_column in index else [], f"column of the {cls.what} ids")
        if id_column is None or id_column not in table:
            or_name = either("", ', or name it: id_column="NAME"')
            raise DataError(
                f"found no column with the {cls.what} ids{'' if id_column is None else f' called {quoted(id_column)}'} "
                f"in the table of {cls.what} features; its columns are {listed(table.names)}. Call it "
                f'"{cls.id_names[0]}"{or_name}.'
            )
        return table, id_column

    @classmethod
    def _encoded(
        cls, series: Mapping[str, pl.Series], ids: pl.Series, categorical: Iterable[str], report: list[str],
        piecewise: Mapping[str, Sequence[float]] | None = None,
    ) -> Self:  # fmt: skip
        outputs, matrix, n_encoded, notes = plan_and_encode(series, set(categorical), ids, cls.what, piecewise)
        return cls(Vocabulary(ids), matrix, outputs, n_encoded, (*report, *notes))

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the matrix."""
        return [output.name for output in self.outputs]

    @property
    def sources(self) -> list[str]:
        """Names of the columns the matrix is made from."""
        return list(dict.fromkeys(output.source for output in self.outputs if output.factors is None))

    @property
    def gaps(self) -> set[str]:
        """Columns that are empty for some that have other features, so that what is empty there was learned."""
        marks = [k for k, one in enumerate(self.outputs) if one.kind == "missing"]
        found = {self.outputs[k].source for k in marks if self.columns[k] == f"{self.outputs[k].source} missing"}
        raw = self._raw
        nothing = [k for k in marks if self.columns[k] != f"{self.outputs[k].source} missing"]
        described = ~(raw[:, nothing] > 0.5).any(axis=1)
        for source in {one.source for one in self.outputs if one.kind == "category"}:
            places = self.places_of(source)
            if (described & (raw[:, places] < 0.5).all(axis=1)).any():
                found.add(source)
        return found

    @cached_property
    def only(self) -> dict[str, OnlyFor]:
        """Numbers and categories that only items with some levels of a category have, by
        :func:`~predilect.data.encoding.only_for`; none of people.
        """
        if self.what != "item" or not len(self):
            return {}
        held = self._raw > 0.5
        gaps = {one.source: k for k, one in enumerate(self.outputs) if one.name == f"{one.source} missing"}
        marks = [k for k, one in enumerate(self.outputs) if one.kind == "missing" and k not in gaps.values()]
        present: dict[str, BoolArray] = {}
        levels: dict[str, pl.Series] = {}
        for one in self.outputs:
            if one.kind == "number":
                present[one.source] = ~held[:, gaps[one.source]] if one.source in gaps else np.ones(len(self), bool)
            elif one.kind == "category" and one.source not in levels:
                places = self.places_of(one.source)
                present[one.source] = np.asarray(held[:, places].any(axis=1))
                names = pl.Series([None, *(self.outputs[k].category for k in places)], dtype=pl.String)
                levels[one.source] = names.gather(np.where(present[one.source], held[:, places].argmax(axis=1) + 1, 0))
        return only_for(present, levels, ~np.asarray(held[:, marks].any(axis=1)))

    @property
    def _raw(self) -> FloatArray:
        """The matrix in the units of the columns."""
        return self.matrix * [one.scale for one in self.outputs] + [one.centre for one in self.outputs]

    def places_of(self, category: str) -> list[int]:
        """Columns of the levels of a category."""
        return [k for k, one in enumerate(self.outputs) if (one.kind, one.source) == ("category", category)]

    def numbers(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Columns that are numbers, in their units, from encoded rows (n, n_columns); the mean for what is missing."""
        found: dict[str, FloatArray] = {}
        for k, one in enumerate(self.outputs):
            if one.kind == "number":  # the pieces of one add up to it
                found[one.source] = found.get(one.source, 0.0) + matrix[:, k] * one.scale + one.centre
        return found

    def transform(self, frame: Any) -> NDArray[np.float64]:
        """Matrix of the features of new items, in the order of the rows; shape (n_rows, n_columns).

        An unknown category is none of the known ones, and a ``DataWarning`` counts them. Raises DataError if a column
        is missing or holds another kind of value.
        """
        _refuse_sparse(frame, self.what)
        table = Columns(open_frame(frame)[0])
        self.refuse_lacking(table.names)
        matrix, report = encode(self.outputs, {name: table[name] for name in self.sources or table.names[:1]})
        for line in report:
            warnings.warn(line, DataWarning, stacklevel=2)
        return matrix

    def refuse_lacking(self, names: list[str]) -> None:
        """DataError if the columns of a table of new items are not all that features are made from."""
        lacking = [name for name in self.sources if name not in names]
        if lacking:
            raise DataError(
                f"the features of the new {self.what}s lack the column{'s' * (len(lacking) > 1)} {listed(lacking)}; "
                f"their columns are {listed(names)}. Give every column that the model's features were made from."
                f"{did_you_mean(lacking[0], names)}"
            )

    def lack(self, matrix: NDArray[np.float64], source: str) -> NDArray[np.bool_]:
        """Which encoded rows (n, n_columns) have no value of a column, or no features at all; (n,)."""
        marks = [
            k for k, one in enumerate(self.outputs)
            if one.kind == "missing" and (one.source == source or one.name != f"{one.source} missing")
        ]  # fmt: skip
        return np.asarray((matrix[:, marks] > 0.0).any(axis=1))

    def shifted(self, row: NDArray[np.float64], source: str, value: float) -> NDArray[np.float64]:
        """By how much a row of the matrix changes where a number of it becomes ``value``; shape (n_columns,).

        DataError if it is no number that is in use, or missing in the row.
        """
        places = [k for k, one in enumerate(self.outputs) if one.source == source and one.kind == "number"]
        if not places:
            numbers = dict.fromkeys(one.source for one in self.outputs if one.kind == "number")
            raise DataError(
                f'"{source}" is no number in use; these are: {", ".join(numbers) or "none"}'
                f"{either('. Say which with --price NAME', '')}"
            )
        if self.lack(row[None], source)[0]:
            raise DataError(f'the item has no "{source}" that could change')
        change = np.zeros(len(self.outputs))
        change[places] = encode([self.outputs[k] for k in places], {source: pl.Series([value])})[0][0]
        change[places] -= row[places]
        for k, one in enumerate(self.outputs):
            if one.factors is not None and not set(places).isdisjoint(one.factors):
                change[k] = one.scaled(product_of(row + change, one.factors)) - row[k]
        return change

    def align(self, items: Vocabulary) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Matrix for the ids of another vocabulary, (len(items), n_columns), and the mask of those with features.

        Rows of ids without features are zeros, the mean.
        """
        code = self.ids.codes(items.series(), unknown="minus_one", what=self.what)
        has_features = code >= 0
        matrix = np.zeros((len(items), self.matrix.shape[1]))
        matrix[has_features] = self.matrix[code[has_features]]
        return matrix, has_features

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the plan, the ids and the matrix."""
        return {
            "what": self.what,
            "outputs": [plain(output) for output in self.outputs],
            "n_columns_before_constants": self.n_columns_before_constants,
            "report": list(self.report),
            "ids": list(self.ids.ids),
            "matrix": self.matrix.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Features that ``to_dict`` wrote."""
        outputs = typed(tuple[Output, ...], plain["outputs"], "outputs")
        ids = Vocabulary(plain["ids"])
        matrix = np.array(plain["matrix"], dtype=np.float64).reshape(len(ids), len(outputs))
        if not np.isfinite(matrix).all():
            raise ValueError(f"features of the {cls.what}s that are no numbers")
        if any(not 0 <= k < place for place, one in enumerate(outputs) for k in one.factors or ()):
            raise ValueError("products of features that do not come before them")
        n_columns = typed(int, plain["n_columns_before_constants"], "n_columns_before_constants")
        return cls(ids, matrix, outputs, n_columns, typed(tuple[str, ...], plain["report"], "report"))

    def __len__(self) -> int:
        return len(self.ids)


MOST_SEGMENTS = 200


@dataclass(frozen=True, eq=False)
class PersonFeatures(ItemFeatures):
    """Features of people; as ``ItemFeatures``, with the id column guessed from the names in use for people.

    Attributes
    ----------
    segments : tuple of str
        Columns that say which group of people somebody belongs to; each value is a segment.
    """

    what: ClassVar[str] = "person"
    id_names: ClassVar[tuple[str, ...]] = PEOPLE_OF_TABLES

    segments: tuple[str, ...] = ()

    def without(self, user: Any) -> Self:
        """The same without one person.

        A category that nobody has any more loses its name, and stays a column, to which effects belong.
        """
        keep = np.arange(len(self)) != self.ids.code(user)
        held = self.matrix * [one.scale for one in self.outputs] + [one.centre for one in self.outputs] > 0.5
        lost = (held.any(axis=0) & ~held[keep].any(axis=0)).tolist()
        outputs = tuple(
            replace(one, name=f"{one.source}=(erased)", category="") if gone and one.kind == "category" else one
            for one, gone in zip(self.outputs, lost, strict=True)
        )
        return replace(self, ids=Vocabulary(self.ids.series().filter(keep)), matrix=self.matrix[keep], outputs=outputs)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        id_column: str | None = None,
        *,
        columns: Iterable[str] | None = None,
        categorical: Iterable[str] = (),
        piecewise: Mapping[str, Sequence[float]] | None = None,
        segments: str | Iterable[str] = (),
    ) -> Self:
        """Encode a table with one row per person, or the segments of people from a table of answers.

        Parameters
        ----------
        frame, id_column, columns, categorical, piecewise
            As :meth:`ItemFeatures.from_frame`; with ``segments``, ``columns`` are further features, by default none.
        segments : str or iterable of str
            Columns that say which segment somebody belongs to. People may have several rows: empty cells beside a
            value count for nothing, and somebody without any value belongs to no segment.

        Raises
        ------
        DataError
            As :meth:`ItemFeatures.from_frame`; if somebody belongs to two segments of a column, or a column holds fewer
            than two values or more than 200.
        """
        groups = (segments,) if isinstance(segments, str) else tuple(dict.fromkeys(segments))
        if not groups:
            return super().from_frame(frame, id_column, columns=columns, categorical=categorical, piecewise=piecewise)
        table, id_column = cls._with_ids(frame, id_column)
        if id_column in groups:
            raise DataError(
                f'column "{shown(id_column)}" says who somebody is, and is no segment besides. Name another column'
            )
        wanted = dict.fromkeys((*groups, *(() if columns is None else columns)))
        ids = clean_ids(table[id_column], id_column)
        named = ids.is_not_null()
        people = ids.filter(named)
        series = {name: table[name].filter(named) for name in wanted}
        for name in groups:
            series[name] = _segment_of_each(name, as_text(series[name]), people)
        one_each, ids, report = one_row_each(series, people, cls.what)
        made = cls._encoded(one_each, ids, (*categorical, *groups), report, piecewise)
        return replace(made, segments=groups)

    def to_dict(self) -> dict[str, Any]:
        """As :meth:`ItemFeatures.to_dict`, with the segments."""
        return super().to_dict() | {"segments": list(self.segments)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Features that ``to_dict`` wrote."""
        segments = typed(tuple[str, ...], plain.get("segments", []), "segments")
        found = replace(super().from_dict(plain), segments=segments)
        if not set(segments) <= {one.source for one in found.outputs if one.kind == "category"}:
            raise ValueError("segments without a column")
        return found


def _segment_of_each(name: str, value: pl.Series, people: pl.Series) -> pl.Series:
    """The segment of each row's person, whose other rows may leave it empty; DataError where it is no segment."""
    table = pl.DataFrame({"id": people, "value": value})
    pairs = table.drop_nulls("value").unique(maintain_order=True)
    n_segments = pairs["value"].n_unique()
    if n_segments > MOST_SEGMENTS:
        raise DataError(
            f'column "{name}" holds {n_segments} different values, and people are cut into at most {MOST_SEGMENTS} '
            "segments. Name a column with fewer, or map its values to groups"
        )
    if n_segments < 2:
        only = "no value at all" if n_segments == 0 else f'one value only ("{shown(pairs["value"][0])}")'
        raise DataError(
            f'column "{name}" holds {only}: there are no segments to compare. Leave it out'
            f"{either('', '; people who are new to a fitted model come as a table, predict_proba(..., people=frame)')}"
        )
    twice = pairs.filter(pl.col("id").is_duplicated())
    if len(twice):
        by = either(f" (--by {name})", "")
        first = twice.filter(pl.col("id") == twice["id"][0])["value"].head(2).to_list()
        raise DataError(
            f'{twice["id"].n_unique()} people stand in two or more segments of column "{name}" (first: '
            f'{twice["id"][0]}, in "{shown(first[0])}" and "{shown(first[1])}"): it tells answers apart, not people. '
            f"Give each value a fit of its own{by}, or give everybody one value"
        )
    return table.join(pairs, on="id", how="left", maintain_order="left")["value_right"].rename(name)


def _refuse_sparse(frame: Any, what: str) -> None:
    """DataError for sparse frames: thousands of columns would be made dense and standardised."""
    if issparse(frame):
        raise DataError(
            f"expected a data frame of {what} features, got a sparse {type(frame).__name__}. Reduce it to some "
            f"dense columns first, for instance sklearn.decomposition.TruncatedSVD(100).fit_transform(matrix), and put "
            f"these into a table with a column of {what} ids."
        )


# Of the largest singular value, and of that of a column of variance 1, which is what columns have over all people whose
# features are given: what is collinear, or constant over all who answered, is rounding and no trait.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, slots=True)
class Traits:
    """Principal components of people's features, each of mean 0 and variance 1 over the people who answered."""

    mean: Annotated[FloatArray, numbers("G")]  # (n_columns,)
    rotation: Annotated[FloatArray, numbers("G T")]  # (n_columns, n_traits)

    @classmethod
    def of(cls, matrix: FloatArray, known: BoolArray) -> Traits:
        """Principal components of features (n_users, n_columns), where known."""
        rows = matrix[known]
        mean = rows.mean(axis=0) if len(rows) else np.zeros(matrix.shape[1])
        if len(rows) < 2 or not matrix.shape[1]:
            return cls(mean, np.zeros((matrix.shape[1], 0)))
        _, values, vectors = np.linalg.svd(rows - mean, full_matrices=False)
        keep = values > _NEGLIGIBLE * max(float(values[0]), float(np.sqrt(len(rows))))
        return cls(mean, (vectors[keep] / values[keep, None]).T * np.sqrt(len(rows)))

    def transform(self, matrix: FloatArray, known: BoolArray) -> FloatArray:
        """Traits of people, shape (n, n_traits); zeros, the average person, where nothing is known."""
        return np.where(known[:, None], (matrix - self.mean) @ self.rotation, 0.0)


@dataclass(frozen=True, slots=True)
class FeatureSpace:
    """Standardised item features, (n_items, n_columns), for the kernel part of K₀."""

    matrix: Annotated[FloatArray, optional(numbers("I F"))]
    known: Annotated[BoolArray, unless(0.0, flags("I"))]  # an item without features is uncorrelated with all others

    @classmethod
    def empty(cls, n_items: int) -> FeatureSpace:
        """Feature space of items without features."""
        return cls(np.zeros((n_items, 0)), np.zeros(n_items, dtype=bool))

    @classmethod
    def restored(cls, sizes: Sizes, matrix: FloatArray | None = None, known: BoolArray | None = None) -> Self:
        """Feature space of a saved model, with what is not stored as it is without features.

        ValueError if the matrix has other columns than there are.
        """
        space = cls.empty(sizes["I"])
        found = cls(space.matrix if matrix is None else matrix, space.known if known is None else known)
        if found.matrix.shape[1] != sizes["F"]:
            raise ValueError(f"{sizes['F']} features of items, and a matrix of {found.matrix.shape[1]}")
        return found

    @property
    def informative(self) -> bool:
        """Whether features can explain anything: at least one column, and two items that have it."""
        return self.matrix.shape[1] > 0 and int(self.known.sum()) > 1

    def covariance(self, weight: float, length_scale: float) -> FloatArray:
        """Prior covariance K₀ = w K_θ + (1 - w) I, shape (n_items, n_items); unit diagonal."""
        n_items = len(self.known)
        if weight == 0.0 or not self.informative:
            return np.eye(n_items)
        K = weight * self._kernel(self, length_scale)
        np.fill_diagonal(K, 1.0)
        return K

    def cross(self, new: FeatureSpace, weight: float, length_scale: float) -> FloatArray:
        """Kernel part K_*o of the covariance between new items and these, shape (n_new, n_items)."""
        if weight == 0.0 or not self.informative:
            return np.zeros((len(new.known), len(self.known)))
        return np.asarray(weight * self._kernel(new, length_scale).T)

    def _kernel(self, other: FeatureSpace, length_scale: float) -> FloatArray:
        kernel = squared_exponential(self.matrix, other.matrix, length_scale)
        kernel[~self.known] = 0.0
        kernel[:, ~other.known] = 0.0
        return kernel
