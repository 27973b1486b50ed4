"""Tables that become one with a row an answer, or an alternative, before they are read.

Matrices of wins, judgements in lists, as arena-hard writes them, and columns of annotators; answers that refer to a
design: ``design.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from predilect._text import shown
from predilect.data.frames import Columns, as_text
from predilect.data.intake import Intake
from predilect.data.read.columns import guess_pair, listed
from predilect.data.read.design import with_design
from predilect.data.read.names import PEOPLE, WINNER, guess_one
from predilect.data.read.options import ReadOptions, option
from predilect.data.read.set_columns import holds_numbers
from predilect.errors import DataError

_ANNOTATOR = re.compile(r"(?:annotator|rater|judge|grader|labell?er|evaluator|worker)[ _.-]?(\d{1,18})", re.I)
_KEY = ("cmp_key", "comparison", "pair", "pair_key", "matchup")
_BETWEEN = (" vs. ", " vs ", "_vs_", "-vs-", " / ", "|", "/", ":", ",", "_")
_VERDICT = re.compile(r"\W*([ab])\s*(>>|>|=|<|<<)\s*([ab])\W*", re.I)


@dataclass(frozen=True)
class Reshaped:
    """Columns that are read instead, with what is said of them; ``roles``: columns of the table as it came, or ""."""

    columns: dict[str, pl.Series]
    options: ReadOptions
    roles: Mapping[str, str]
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] | None = None

    def told(self, intake: Intake) -> Intake:
        """The account of reading, by the columns that the table has."""
        ignored = intake.ignored_columns if self.ignored is None else self.ignored
        columns = {role: name for role, name in intake.columns.items() if role not in self.roles}
        columns |= {role: name for role, name in self.roles.items() if name}
        return replace(intake, columns=columns, ignored_columns=ignored, notes=(*self.notes, *intake.notes))


def reshaped(raw: Columns, options: ReadOptions) -> Reshaped | None:
    """What is read instead of a table that holds no answer a row, or None; DataError if it is one of these, damaged."""
    if options.get("design") is not None:
        read, said, roles, notes = with_design(dict(raw), options)
        return Reshaped(read, said, roles, notes)
    if options.get("kind") not in (None, "pairs") or options.get("outcome") is not None:
        return None
    forms = (_wins, _judgements, _annotators)
    return next((shape for form in forms if (shape := form(raw, options)) is not None), None)


def _wins(raw: Columns, options: ReadOptions) -> Reshaped | None:
    """A square table of how often the item of a row won over that of a column, or the other way round."""
    found = _square(raw)
    if found is None or any(options.get(role) for role in ("left", "right", "winner", "alternatives")):
        return None
    label, rows, columns = found
    cells = np.stack([_counts(columns[name], name, rows) for name in rows])  # of column, row
    lost = np.isnan(cells) & ~np.isnan(cells.T)
    diagonal = np.nan_to_num(np.diag(cells))
    if diagonal.any():
        item = rows[int(diagonal.argmax())]
        raise DataError(
            f'the matrix says that "{shown(item)}" won over itself {diagonal.max():g} times: row and column '
            f'"{shown(item)}" must hold 0 or nothing where they meet.'
        )
    if lost.any():
        place, row = np.argwhere(lost)[0]
        raise DataError(
            f'the cell of row "{shown(rows[row])}" and column "{shown(rows[place])}" is empty, but not the one across '
            "the diagonal. Write 0 where neither won."
        )
    cells = np.nan_to_num(cells)
    if (cells == cells.T).all() and options.get("positive") is None:
        raise DataError(
            "the matrix is the same across its diagonal: each item won as often as it lost, or numbers are no wins. If "
            f"they are, say {option('positive', 'left')}."
        )
    row_won = _who_won(label, rows, cells, options)
    loser, winner = (place.ravel() for place in np.indices(cells.shape))
    if not row_won:
        loser, winner = winner, loser
    there = cells.ravel() > 0
    items = pl.Series(rows)
    read = {
        "won": items.gather(winner[there]), "lost": items.gather(loser[there]), "times": pl.Series(cells.ravel()[there])
    }  # fmt: skip
    # Rows are winners and losers: of sides nothing is known.
    said: ReadOptions = {
        **options, "user": False, "left": "won", "right": "lost", "weight": "times", "task": False, "side": False,
        "outcome": np.ones(int(there.sum()), dtype=np.int8),
    }  # fmt: skip
    one, other = (winner[there][0], loser[there][0]) if there.any() else (0, 0)
    first = f'"{shown(rows[one])}" won over "{shown(rows[other])}" {cells.ravel()[there][0]:g} times'
    told = (
        f"A matrix of wins of {len(rows)} items: the {'row' if row_won else 'column'} won over the "
        f"{'column' if row_won else 'row'}, as in {first}."
    )
    roles = {"right": "", "weight": "", "left": label or "the index"}
    roles |= {f"right {nth}": name for nth, name in enumerate(rows, 1)}
    return Reshaped(read, {**said, "positive": None}, roles, (told,), ())


def _square(raw: Columns) -> tuple[str, list[str], dict[str, pl.Series]] | None:
    """Name of the column of row names, items in order of the columns, and columns by item, their rows in that order.

    DataError if rows and columns name nearly the same items.
    """
    index = getattr(getattr(raw.table, "to_native", lambda: None)(), "index", None)
    names, n_rows = raw.names, raw.n_rows
    if n_rows < 2 or not 0 <= abs(len(names) - n_rows) <= max(2, n_rows // 2):
        return None
    labels = {}
    if index is not None and str(index.dtype) in ("object", "str", "string"):
        labels[""] = [str(name) for name in index]
    text = {name: one for name, one in raw.items() if one.dtype == pl.String}
    labels |= {name: [str(value) for value in one] for name, one in text.items() if one.n_unique() == n_rows}
    for label, rows in labels.items():
        across = [name for name in names if name != label]
        shared = set(rows) & set(across)
        if len(shared) < 2 or 2 * len(shared) <= max(len(rows), len(across)):
            continue
        numeric = {name: raw[name] for name in across}
        if not all(holds_numbers(one, least=0.0) for name, one in numeric.items() if name in shared):
            continue
        if set(rows) != set(across):
            raise DataError(
                "the table looks like a matrix of wins, but its rows and columns are not the same items: "
                f"only in rows {listed(sorted(set(rows) - shared))}; only in columns "
                f"{listed(sorted(set(across) - shared))}. Each item needs a row and a column."
            )
        place = [rows.index(name) for name in across]
        return label, across, {name: one.gather(place) for name, one in numeric.items()}
    return None


def _counts(series: pl.Series, name: str, rows: Sequence[str]) -> np.ndarray[Any, Any]:
    """Counts of a column, NaN where empty; DataError if one is none."""
    number = as_text(series).str.strip_chars().cast(pl.Float64, strict=False)
    count = number.fill_null(np.nan).to_numpy().copy()
    odd = np.flatnonzero((count != np.round(count)) & ~np.isnan(count))
    if len(odd):
        raise DataError(
            f'a matrix of wins must hold counts, whole numbers from 0; row "{shown(rows[odd[0]])}" has '
            f'{count[odd[0]]:g} in column "{shown(name)}". If it holds shares, multiply them by the number of answers.'
        )
    return count


LOSERS = ("rejected_model", "loser", "rejected", "dispreferred", "worse", "lost")


def _who_won(label: str, rows: Sequence[str], cells: np.ndarray[Any, Any], options: ReadOptions) -> bool:
    """Whether the item of the row won, as said or by the name of the first column; DataError if neither tells."""
    if options.get("positive") is not None:
        return options["positive"] == "left"
    if guess_one([label], (*WINNER, "won", "wins", "row_wins")) is not None:
        return True
    if guess_one([label], LOSERS) is not None:
        return False
    place, row = np.argwhere(cells != cells.T)[0]
    raise DataError(
        f'a matrix of wins, and no word says whether rows won or columns. Row "{shown(rows[row])}" has '
        f'{cells[place, row]:g} in column "{shown(rows[place])}": "{shown(rows[row])}" won over '
        f'"{shown(rows[place])}" so often if you say {option("positive", "left")}, the other way round if you say '
        f"{option('positive', 'right')}."
    )


def _judgements(raw: Columns, options: ReadOptions) -> Reshaped | None:
    """Verdicts of a judge on answers of a model and of the baseline, in both orders, in a list a row."""
    names = raw.names
    games, model = guess_one(names, ("games",)), guess_one(names, ("model", "model_id", "model_name"))
    if games is None or model is None or options.get("left") or options.get("right"):
        return None
    lists = raw[games].to_list()
    if not any(_scores(one) for one in lists):
        return None
    baseline = guess_one(names, ("baseline", "baseline_model", "reference"))
    scores = [_scores(one) for one in lists]
    row = np.repeat(np.arange(len(scores)), [len(one) for one in scores])
    swapped = np.concatenate([np.arange(len(one)) % 2 == 1 for one in scores]) if len(row) else np.zeros(0, dtype=bool)
    outcome = [_verdict(label) for one in scores for label in one]
    others = {name: one.gather(row) for name, one in raw.items() if name != games}
    mine = as_text(others[model])
    theirs = pl.Series(["baseline"] * len(row)) if baseline is None else as_text(others[baseline])
    left = pl.Series(np.where(swapped, mine.to_numpy(), theirs.to_numpy()).tolist(), dtype=pl.String)
    right = pl.Series(np.where(swapped, theirs.to_numpy(), mine.to_numpy()).tolist(), dtype=pl.String)
    read = {name: one for name, one in others.items() if name not in (model, baseline)}
    read |= {"assistant A": left, "assistant B": right}
    said: ReadOptions = {**options, "left": "assistant A", "right": "assistant B", "outcome": outcome, "ties": ["0"]}
    if any(abs(one) == 2 for one in outcome if one is not None):
        said["grades"] = options.get("grades") or ["1", "2"]
    first = "baseline" if baseline is None else shown(baseline)
    note = f"In the first of the {shown(games)} of a row A is the {first}, in the second the {shown(model)}."
    return Reshaped(
        read, said, {"left": f"{baseline or 'baseline'} and {model}", "right": "", "winner": games}, (note,)
    )


def _scores(games: Any) -> list[Any]:
    if not isinstance(games, list | tuple | np.ndarray):
        return []
    return [game.get("score") for game in games if isinstance(game, Mapping) and "score" in game]


def _verdict(label: Any) -> int | None:
    """From 2 for A>>B to -2 for B>>A; None for what says nothing."""
    match = None if label is None else _VERDICT.fullmatch(str(label))
    if match is None or match[1].lower() == match[3].lower():
        return None
    size = 0 if match[2] == "=" else len(match[2])
    return size * (1 if (match[1].lower() == "a") == (match[2][0] == ">") else -1)


def _annotators(raw: Columns, options: ReadOptions) -> Reshaped | None:
    """Answers in one column an annotator, where nothing else tells who answered what; perhaps one names both items."""
    names = raw.names
    number = {name: int(match[1]) for name in names if (match := _ANNOTATOR.fullmatch(name.strip()))}
    each = sorted(number, key=lambda name: (number[name], name))
    given = any(options.get(role) is not None for role in ("user", "winner", "kind", "alternatives"))
    if len(each) < 2 or given or guess_one(names, (*WINNER, *PEOPLE)) is not None:
        return None
    key = None
    if None in guess_pair(names, options.get("left"), options.get("right")):
        key = guess_one(names, _KEY)
        if key is None or options.get("left") or options.get("right"):
            return None
    others = {name: raw[name] for name in names if name not in (*each, key)}
    if key is not None:
        others |= _both_items(raw[key], key)
    words = pl.DataFrame({name: as_text(raw[name]) for name in each})
    place, called = np.arange(len(words) * len(each)), f"{each[0]} to {each[-1]}"
    read = {name: series.gather(place // len(each)) for name, series in others.items()}
    read["annotator"] = pl.Series(each).gather(place % len(each))
    read[called] = pl.Series(words.to_numpy().ravel().tolist(), dtype=pl.String)
    asked = read[called].is_not_null()
    roles = {"user": "", "winner": ""} | ({} if key is None else {"left": key, "right": key})
    roles |= {f"user and winner {n}": name for n, name in enumerate(each, 1)}
    return Reshaped({name: series.filter(asked) for name, series in read.items()}, {**options, "winner": called}, roles)


def _both_items(series: pl.Series, name: str) -> dict[str, pl.Series]:
    """The items left and right of the first separator that every value holds just once."""
    both = items_apart(series)
    if both is not None:
        return dict(zip(("left", "right"), both, strict=True))
    first = as_text(series).drop_nulls()[0]
    raise DataError(
        f'column "{shown(name)}" must name both items in every row, with one and the same sign between them that no '
        f'name holds, such as "tea_milk" or "tea vs milk"; got "{shown(first)}". Make two columns of it, called '
        "left and right."
    )


def items_apart(series: pl.Series) -> tuple[pl.Series, pl.Series] | None:
    """The two items that every value of a column names, None if it does not."""
    words = as_text(series)
    for separator in _BETWEEN:
        if (words.str.count_matches(separator, literal=True) == 1).all():
            parts = words.str.split(separator).list
            return parts.get(0).str.strip_chars(), parts.get(1).str.strip_chars()
    return None
