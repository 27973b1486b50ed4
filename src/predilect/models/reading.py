"""Input of an estimator in the form that the inference takes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from predilect._base.text import amount, did_you_mean, either, shown, spoken_to
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons, ItemFeatures, PersonFeatures, Vocabulary
from predilect.data.comparisons import SIDE
from predilect.data.features import FeatureSpace
from predilect.data.frames import (
    as_text,
    clean_ids,
    column_names,
    index_names,
    is_list,
    open_frame,
    to_columns,
    to_series,
)
from predilect.data.intake import counted
from predilect.data.keyed_rows import results_of
from predilect.data.read.columns import pair_columns, refuse_index
from predilect.data.read.covariates import covariate_columns, differences, flat, refuse_missing
from predilect.data.read.names import guess_one
from predilect.data.read.options import read_options
from predilect.errors import DataError, DataWarning

Said = Mapping[str, Any] | None  # of columns, or of how they are read


def refuse_said_twice(columns: Said, reading: Said) -> None:
    """DataError if something is said of how Comparisons are read."""
    given = "columns" if columns else "reading" if reading else None
    if given is not None:
        raise DataError(
            f"X is a Comparisons, which was read already: give {given} to predilect.read(...) or "
            "Comparisons.from_frame(...)"
        )


def read_answers(
    X: Any, y: npt.ArrayLike | None, *, with_ties: bool = False, covariates: Sequence[str] = (),
    grades: tuple[str, ...] = (), columns: Said = None, reading: Said = None,
) -> Comparisons:  # fmt: skip
    """Comparisons from a frame and, perhaps, outcomes, in which 0 is a tie for a model ``with_ties``.

    With names of the model's ``covariates``, a row for each side on which its left item was shown, if that is one; what
    has no column is equal on both sides. ``grades`` are those of the model; outcomes are their numbers.
    """
    if isinstance(X, Comparisons):
        refuse_said_twice(columns, reading)
        if y is not None:
            raise DataError("X is a Comparisons, which holds the outcomes already; leave y out")
        answers = X
    else:
        options = read_options(columns, reading)
        if covariates:
            options["covariates"] = tuple(_columns_of_covariates(X, covariates))
            if SIDE in covariates and options.get("side") is None:
                options["side"] = "where known"
        if y is not None:
            options["outcome"] = y
            options["ties"] = ["0"] if with_ties else options.get("ties", ())
        numbers = tuple(map(str, range(1, len(grades) + 1)))
        by_number = y is not None and len(grades) > 0 and not all(name.isdecimal() for name in grades)
        if grades:
            options["grades"] = numbers if by_number else grades
        answers = Comparisons.read_with(X, options)
        return replace(answers, grades=grades) if by_number and answers.grades else answers
    in_use = SIDE in covariates and answers.sides is not None and SIDE not in answers.covariate_names
    return answers.with_side() if in_use else answers


def _columns_of_covariates(X: Any, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Columns of those covariates of a model that a frame has; DataError for half of one."""
    if all(name == SIDE for name in names):
        return {}
    table, _ = open_frame(X)
    named = [name for name in names if name != SIDE]
    return covariate_columns(column_names(table), named, index_names(table), needed=False)


def covariates_of_pairs(X: Any, names: Sequence[str], n: int) -> FloatArray:
    """Covariates of the n pairs of a frame, (n, n_names): left is on the left, and what has no column is equal."""
    found = np.zeros((n, len(names)))
    if names:
        there = _columns_of_covariates(X, names)
        with spoken_to("pairs"):
            given = differences(to_columns(X, flat(there)), there, np.arange(n))
            refuse_missing(given, list(there), np.arange(n))
        found[:, [names.index(name) for name in there]] = given
        found[:, [place for place, name in enumerate(names) if name == SIDE]] = 1.0
    return found


def covariates_of(answers: Comparisons, names: Sequence[str]) -> FloatArray:
    """Covariates of answers by their names, (n_rows, n_names); 0 where they are not known."""
    found = np.zeros((answers.n_rows, len(names)))
    for place, name in enumerate(names):
        if name in answers.covariate_names and answers.covariates is not None:
            found[:, place] = answers.covariates[:, answers.covariate_names.index(name)]
        elif name == SIDE and answers.sides is not None:
            found[:, place] = (answers.sides[:, 0] - answers.sides[:, 1]) / answers.weight
    return found


@dataclass(frozen=True, slots=True)
class Training:
    """Answers, with the items that only the features name, and features; ``space`` is in vocabulary order."""

    comparisons: Comparisons
    features: ItemFeatures | None
    people: PersonFeatures | None
    space: FeatureSpace

    @property
    def personal(self) -> bool:
        """Whether users are identified, and there are at least two."""
        return self.comparisons.has_users and self.comparisons.n_users > 1


def read_training(
    X: Any, y: npt.ArrayLike | None, items: Any, users: Any, delta: float | None, columns: Said, reading: Said, *,
    has_prior: bool = False, ties: bool = False,
) -> Training:  # fmt: skip
    """Input of ``fit``; DataError if there is nothing to learn from, or ties that the threshold ``delta`` rules out.

    ``has_prior``: the model says something of ``items`` of which there are no answers; ``ties``: and of those of which
    all answers, of people who are known, are ties.
    """
    comparisons = _no_answers(X, items) if has_prior else None
    began = comparisons is not None
    if comparisons is None:
        comparisons = read_answers(X, y, columns=columns, reading=reading)
    if not comparisons.n_rows and not began:
        raise DataError("there are no answers to learn from. Were they all left out of these comparisons?")
    if not np.any(comparisons.outcome) and not (began or (ties and comparisons.has_users)):
        raise DataError(
            f"all {amount(comparisons.n_answers)} answers are ties: nothing says which item is better. Collect answers "
            "that prefer one, or check which words were read as ties"
        )
    if delta == 0.0 and comparisons.has_ties:
        raise DataError(
            "tie_threshold=0 says that ties cannot happen, but some answers are ties. Use 'auto', or leave them out"
        )
    given = items is not None and not (isinstance(X, Comparisons) and isinstance(items, ItemFeatures))
    if items is None:
        items = comparisons.item_table
    comparisons = replace(comparisons, item_table=None)
    if is_list(items):
        comparisons, items = comparisons.with_items(items), None
    features = items if isinstance(items, ItemFeatures) or items is None else ItemFeatures.from_frame(items)
    if features is not None:
        if given:  # those that were read before are of the command, which says so itself, or of a fold
            warn_of_items_without_features(comparisons, features)
        comparisons = comparisons.with_items(features.ids)
    people = users if isinstance(users, PersonFeatures) or users is None else PersonFeatures.from_frame(users)
    if people is not None and people is not users and comparisons.has_users:
        warn_of_people_without_features(comparisons, people)
    return Training(comparisons, features, people, feature_space(features, comparisons.items))


def _no_answers(X: Any, items: Any) -> Comparisons | None:
    """No answers about the ``items``, where ``X`` holds none; None where it does. DataError without items."""
    if isinstance(X, Comparisons):
        if X.n_rows:
            return None
        known, backend = X.items, X.backend
    elif X is None:
        known, backend = Vocabulary([]), "polars"
    elif items is None:
        return None
    else:
        table, backend = open_frame(X)
        names = column_names(table)
        if not names or len(to_columns(table, names[:1])[names[0]]):
            return None
        known = Vocabulary([])
    if items is None and len(known) < 2:
        raise DataError(
            f"there are no answers, and no items of which the prior could speak. Give answers, or the items "
            f"({either('--items FILE', 'items=[...]')})"
        )
    found = Comparisons.nothing(known, backend)
    count = len(Vocabulary([*known, *items])) if is_list(items) else 2
    if count < 2:
        raise DataError("there are no answers, and fewer than two items. A comparison needs two: items=[...]")
    return found


def warn_of_items_without_features(comparisons: Comparisons, features: ItemFeatures) -> None:
    """Warn, whoever called ``fit`` or a command, of items with answers that are not in the table of features."""
    source = either("--items FILE", "items=...")
    _warn_without_features(comparisons.items, features, 1, "items with answers", "an item is alike to no other", source)


def warn_of_people_without_features(comparisons: Comparisons, features: PersonFeatures) -> None:
    """As :func:`warn_of_items_without_features`, where nobody is in the table: some are always missing."""
    source, least = either("--people FILE", "people=..."), comparisons.n_users
    _warn_without_features(comparisons.users, features, least, "people", "a person is taken for the average", source)


def _warn_without_features(
    ids: Vocabulary, features: ItemFeatures, least: int, who: str, so: str, source: str
) -> None:  # fmt: skip
    known = Vocabulary(features.ids)
    lost = [one for one, code in zip(ids, known.codes(ids, "minus_one"), strict=True) if code < 0]
    if lost and len(lost) >= least:
        unasked = [one for one in known if one not in ids]
        warnings.warn(
            f'there are no features of {len(lost)} of the {len(ids)} {who} (first: "{shown(lost[0])}"): such {so}. Add '
            f"them to {source}, spelled as in the answers.{did_you_mean(lost[0], unasked)}", DataWarning, stacklevel=5,
        )  # fmt: skip


def feature_space(features: ItemFeatures | None, items: Vocabulary) -> FeatureSpace:
    """Feature space of the items, in the order of a vocabulary."""
    return FeatureSpace.empty(len(items)) if features is None else FeatureSpace(*features.align(items))


def results_by_item(comparisons: Comparisons) -> FloatArray:
    """Wins, ties and losses of each item; shape (n_items, 3)."""
    sides = comparisons.left, comparisons.right
    return results_of(*sides, comparisons.outcome, comparisons.weight, comparisons.n_items)


def feature_lines(features: ItemFeatures, space: FeatureSpace) -> list[str]:
    """Report on the features, in sentences."""
    lines = list(features.report)
    missing = int((~space.known).sum())
    if missing:
        lines.append(f"{missing} of {len(space.known)} items have no features: they are alike to no other item.")
    return lines


@dataclass(frozen=True, slots=True)
class PairQueries:
    """Pairs to predict.

    ``users`` holds codes, -1 for an unseen user or none named; ``left`` and ``right`` codes of known items, or
    ``n_known + position`` in ``new_items`` (sorted ids); ``unknown_users`` for rows that name an unseen user a position
    in ``new_users`` (sorted ids), -1 for the others. Arrays have shape (n,).
    """

    users: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    new_items: list[Any]
    n_unknown_users: int
    unknown_users: npt.NDArray[np.int32]
    new_users: list[Any]
    covariates: FloatArray  # (n, n_covariates) of the model, left minus right

    def of_new_users(self, rows: FloatArray) -> FloatArray:
        """Features of the person of each pair, shape (n, d), from those of ``new_users``; zeros for all others."""
        return np.where((self.unknown_users >= 0)[:, None], rows[self.unknown_users], 0.0)


def read_queries(
    X: Any, items: Vocabulary, people: Vocabulary | None, added: Mapping[Any, int] | None = None,
    covariates: Sequence[str] = (),
) -> PairQueries:  # fmt: skip
    """Read pairs from a frame (in its order) with left, right and perhaps user, or from comparisons (canonical order).

    ``users`` is None if the model does not tell people apart; ``added`` holds codes of people who are not in it yet.
    Covariates are as in :func:`covariates_of` and :func:`covariates_of_pairs`.
    Raises DataError if a column or an id is missing, or a pair compares an item with itself.
    """
    if isinstance(X, Comparisons):
        left, right = (pl.Series(X.items.labels(codes)) for codes in (X.left, X.right))
        user = pl.Series(X.users.labels(X.user)) if X.has_users else None
        x = covariates_of(X, covariates)
    else:
        roles, columns = pair_columns(X)
        left, right, user = columns["left"], columns["right"], columns.get("user")
        x = covariates_of_pairs(X, covariates, len(left))
        for side, series in (("left", left), ("right", right)):
            if series.null_count():
                row = int(series.is_null().arg_max() or 0) + 1
                raise DataError(
                    f'column "{roles[side]}" holds {series.null_count()} missing ids (first: row {row}); '
                    "there is nothing to predict in such rows. Leave them out"
                )
    codes_left = items.codes(left, unknown="minus_one")
    codes_right = items.codes(right, unknown="minus_one")
    new = Vocabulary([])
    if (codes_left < 0).any() or (codes_right < 0).any():
        new_left, new_right = left.filter(pl.Series(codes_left < 0)), right.filter(pl.Series(codes_right < 0))
        if new_left.dtype != new_right.dtype:  # 7 on one side and "7" on the other are the same item
            new_left, new_right = new_left.cast(pl.String), new_right.cast(pl.String)
        new = Vocabulary(pl.concat([new_left, new_right]))
        for codes, ids in ((codes_left, new_left), (codes_right, new_right)):
            codes[codes < 0] = len(items) + new.codes(ids)
    same = np.flatnonzero(codes_left == codes_right) if not isinstance(X, Comparisons) else codes_left[:0]
    if len(same):
        raise DataError(
            f"{len(same)} of {len(left)} pairs compare an item with itself (first: row {same[0] + 1}, "
            f"{left[int(same[0])]!r}). "
            "Leave them out"
        )
    codes_user = np.full(len(left), -1, dtype=np.int32)
    unknown_users, new_users = codes_user.copy(), Vocabulary([])
    if people is not None and user is not None:
        codes_user = people.codes(user, unknown="minus_one", what="user")
        if added:
            for row in np.flatnonzero(codes_user < 0).tolist():
                codes_user[row] = added.get(people.own(user[row]), -1)
        named = (codes_user < 0) & user.is_not_null().to_numpy()
        if named.any():
            ids = user.filter(pl.Series(named))
            new_users = Vocabulary(ids)
            unknown_users[named] = new_users.codes(ids, what="user")
    n_unknown = int((unknown_users >= 0).sum())
    return PairQueries(
        codes_user, codes_left, codes_right, list(new.ids), n_unknown, unknown_users, list(new_users.ids), x
    )


def rows_of_features(
    new: list[Any], features: ItemFeatures, frame: Any, complete: bool = False
) -> tuple[FloatArray, BoolArray]:
    """Encoded features of new items or people (sorted ids), and the mask of those in the frame; raises DataError.

    ``complete``: as :func:`refuse_gaps` has it.
    """
    if isinstance(frame, ItemFeatures):
        raise DataError(
            f"expected a table of the new {features.what}s, got {type(frame).__name__}. Give the table that it was "
            "made from: the model encodes it as it did those of the fit"
        )
    table, _ = open_frame(frame)
    names = column_names(table)
    id_column = guess_one(names, features.id_names)
    if id_column is None:
        refuse_index(index_names(table), features.id_names, f"{features.what} ids")
        raise DataError(
            f"found no column with the {features.what} ids; the columns are {', '.join(names)}. "
            f"Call it {features.id_names[0]}"
        )
    ids = clean_ids(to_columns(table, [id_column])[id_column], id_column)
    if ids.n_unique() < len(ids):
        raise DataError(f'column "{id_column}" holds repeated {features.what} ids; keep one row per {features.what}')
    code = Vocabulary(new).codes(ids, unknown="minus_one")
    if complete or features.only:
        refuse_gaps(features, table, ids, code >= 0, complete)
    encoded = features.transform(table)
    matrix, known = np.zeros((len(new), encoded.shape[1])), np.zeros(len(new), dtype=bool)
    matrix[code[code >= 0]] = encoded[code >= 0]
    known[code[code >= 0]] = True
    return matrix, known


def refuse_gaps(features: ItemFeatures, table: Any, ids: pl.Series, new: BoolArray, complete: bool = True) -> None:
    """DataError if an attribute is empty in rows of new items, (n_rows,), that no item of the fit lacks.

    Of an attribute that only some levels of a category have: no item with them; a value of others is warned of. These
    alone are looked at unless ``complete``.
    """
    have, gaps = column_names(table), features.gaps
    columns = to_columns(table, [name for name in features.sources if name in have])
    for name, column in columns.items():
        column = as_text(column) if column.dtype in (pl.String, pl.Object) else column
        filled = column.is_not_null().to_numpy()
        only = features.only.get(name)
        mine, whose = np.full(len(new), complete and name not in gaps), "no item of the fit"
        if only is not None and only.category in columns:
            whose = f"no item of the fit {only}"
            level = as_text(columns[only.category])
            mine = level.is_in(only.levels).fill_null(False).to_numpy()
            zero = (column.cast(pl.Float64, strict=False) == 0.0).fill_null(False).to_numpy()
            beside = np.flatnonzero(new & filled & ~mine & ~zero & level.is_not_null().to_numpy())
            if len(beside):
                warnings.warn(
                    f'"{shown(name)}" of {counted(len(beside), "new item")} (first: {ids[int(beside[0])]!r}) counts '
                    f"for nothing in a model of coefficients: the items of the fit have it only {only}",
                    DataWarning, stacklevel=2,
                )  # fmt: skip
        empty = np.flatnonzero(new & ~filled & mine)
        if len(empty):
            row = int(empty[0])
            raise DataError(
                f'the attribute "{name}" is empty for {counted(len(empty), "new item")} (first: {ids[row]!r}, '
                f"row {row + 1} of {either('SCENARIOS', 'items')}), and {whose} lacks it. Give new items all their "
                "attributes; items that the model knows need none"
            )


def codes_of_sets(model: Any, sets: list[list[Any]], items: Any) -> tuple[list[IntArray], FloatArray]:
    """Codes of the items of each set, and encoded attributes (n_new, d) of those not known.

    A new item has the number of known ones and its row as its code. DataError where attributes of it are not given.
    """
    names = clean_ids(to_series([item for one in sets for item in one]), "item")
    codes = model.items_.codes(names, unknown="minus_one").astype(np.int64)
    n_columns = model._space.matrix.shape[1]
    cuts = list(pairwise(np.cumsum([0, *map(len, sets)]).tolist()))
    if not (codes < 0).any():
        return [codes[start:stop] for start, stop in cuts], np.zeros((0, n_columns))
    lost = names.filter(pl.Series(codes < 0))
    new = Vocabulary(lost)
    space = new_item_space(list(new.ids), model.features_, items, n_columns, complete=True)
    if not space.known.all():
        without = new.ids[int(np.argmin(space.known))]
        named = "" if model.features_ is None else f" {', '.join(model.features_.sources)}"
        raise DataError(
            f"{len(new)} items are not known to the model (first: {without!r}). Give their attributes{named} "
            f"({either('columns of SCENARIOS', 'items=...')}).{did_you_mean(without, model.items_)}"
        )
    codes[codes < 0] = len(model.items_) + new.codes(lost)
    return [codes[start:stop] for start, stop in cuts], space.matrix


def new_item_space(
    new_items: list[Any], features: ItemFeatures | None, frame: Any, n_columns: int, complete: bool = False
) -> FeatureSpace:
    """Feature space of new items (sorted ids), shape (n_new, n_columns), as far as ``frame`` says; raises DataError.

    ``complete``: as :func:`refuse_gaps` has it.
    """
    if frame is None or features is None:
        return FeatureSpace(np.zeros((len(new_items), n_columns)), np.zeros(len(new_items), dtype=bool))
    return FeatureSpace(*rows_of_features(new_items, features, frame, complete))


ROUNDING = 1e-9  # of the end of a range


def beyond(values: Mapping[str, FloatArray], known: Mapping[str, tuple[float, float]]) -> tuple[int, str]:
    """How many rows of numbers, (n,) by name, lie outside the known range of one, and these ranges for a message."""
    outside, where = np.zeros(1, dtype=bool), []
    for name, column in values.items():
        low, high = known[name]
        slack = ROUNDING * max(abs(low), abs(high))
        mine = (column < low - slack) | (column > high + slack)
        if mine.any():
            where.append(f"{name} from {low:.6g} to {high:.6g}")
        outside = outside | mine
    return int(outside.sum()), "; ".join(where[:3]) + (" ..." if len(where) > 3 else "")
