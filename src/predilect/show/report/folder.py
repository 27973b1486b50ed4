"""Folder of results: personal rankings, the plot of the board, and what they were made of."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from predilect._base.progress import Watcher, tell_parts
from predilect._base.shards import workers
from predilect._base.text import amount
from predilect.decisions.ranking import best_items, is_whole
from predilect.decisions.scales import Scale
from predilect.show.charts.on_axes import can_plot, write_chart
from predilect.show.charts.pictures import board_chart, segments_chart
from predilect.show.report.leaderboard import Ranking, RefusedSegment, SharedSegment, segment_table
from predilect.show.report.tables import whole_numbers, write_csv

_ROWS_PER_CHUNK = 400_000
_ROWS_PER_GROUP = 200_000
# With very many items nobody reads whole personal rankings, and the file would have people x items rows.
MOST_ITEMS, BEST = 1000, 100
MOST_ROWS_UNASKED = 10**7  # of everybody's table; a row takes some two microseconds


def rows_of_people(model: Any) -> int:
    """Rows of the table of everybody's ranking, 0 of a model that has one ranking for all."""
    return len(model.users_) * _shown_of(len(model.items_)) if model.personal_ else 0


def _shown_of(n_items: int) -> int:
    return n_items if n_items <= MOST_ITEMS else BEST


def write_people(
    path: Path,
    model: Any,
    *,
    watch: Watcher | None = None,
    numbers: bool = False,
    executor: ThreadPoolExecutor | None = None,
    rows_per_chunk: int = _ROWS_PER_CHUNK,
) -> None:
    """Write user, item, mean, sd, rank and n as Parquet, sorted by user and rank; OSError if that fails.

    With ``numbers`` ids that are all whole numbers are integers, as others who read the same text have them. With more
    than 1 000 items only each person's 100 best. ``watch`` is told how many of the people are done. A hidden folder
    beside the file holds the parts while they are written. ``rows_per_chunk`` bounds memory, at least one person; about
    a microsecond a row. The file has the same bytes every time.
    """
    of = {"user": model.users_, "item": model.items_}
    try:
        with TemporaryDirectory(prefix=".people-", dir=path.parent) as folder:
            parts: list[Path] = []
            for start, rows in _chunks(model, executor, rows_per_chunk):
                tell_parts(watch, start, len(model.users_))
                parts.append(Path(folder) / f"{len(parts)}.parquet")
                if numbers:
                    rows = rows.with_columns(*(whole_numbers(rows[name], ids.series()) for name, ids in of.items()))
                rows.write_parquet(parts[-1], compression="lz4")
            pl.scan_parquet(parts).sink_parquet(path, row_group_size=_ROWS_PER_GROUP)
    except pl.exceptions.PolarsError as error:  # how polars reports some failures of a disk
        raise OSError(str(error).splitlines()[0]) from error


def _chunks(model: Any, executor: ThreadPoolExecutor | None, rows_per_chunk: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """The first person of each chunk, and its rows."""
    n_items = len(model.items_)
    step = max(1, rows_per_chunk // n_items)
    n_shown = _shown_of(n_items)
    n_type = np.int64 if is_whole(model.n_by_item_) else np.float64
    n_people = len(model.users_)
    for start in range(0, n_people, step):
        stop = min(start + step, n_people)
        best, columns = best_items(model, start, stop, n_shown, executor)
        counts = np.take_along_axis(model._answers_of_people(start, stop), best, axis=1)
        yield start, pl.DataFrame(columns | {"n": counts.ravel().astype(n_type)})


MOST_DRAWN, MOST_SEGMENTS_DRAWN = 150, 60  # in the pictures of a folder: items of the board; segments and their items


def plot_board(board: pl.DataFrame, scale: Scale, title: str, paths: Iterable[Path]) -> None:
    """Draw the best 150 items of a board into files, by their suffix; the same board gives the same bytes."""
    if len(board) > MOST_DRAWN:
        title += f", the best {MOST_DRAWN} of {len(board)}"
    write_chart(board_chart(board, scale.unit, scale.digits, MOST_DRAWN, scale.origin), paths, title)


_PACKAGES = ("numpy", "scipy", "numba", "polars")


def package_versions() -> dict[str, str]:
    """Versions of Predilect, of what computes its numbers, and of Python."""
    from predilect._version import __version__

    return {
        "predilect": __version__,
        **{name: version(name) for name in _PACKAGES},
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class RankOutput:
    """Results of a run, ready to be written; ``segments`` is empty without ``--by`` and ``--segment``."""

    overall: Ranking
    segments: Mapping[Any, Ranking | RefusedSegment | SharedSegment]
    document: Mapping[str, Any]
    numbers: bool = False  # whether ids came out of text, in which a number has no type
    everybody: bool = True  # whether everybody's ranking is written
    in_parts: Any = None  # of answers in parts: what the fit found out of them, which takes the place of the answers
    stored: Any = None  # the model that is stored, where it is a smaller one

    def write(self, place: Path, jobs: int | None, watch: Watcher) -> list[str]:
        """Write every file into an empty folder; their names, in the order in which somebody would open them."""
        writers: dict[str, Callable[[Path], Any]] = {
            "leaderboard.csv": self._write_csv,
            "leaderboard.json": self._write_json,
        }
        if self.segments:
            writers["segments.csv"] = lambda path: write_csv(segment_table(self.segments), path)
        model = self.overall.model
        for name, table in model._further_tables().items() if self.in_parts is None else ():
            writers[f"{name}.csv"] = partial(_write_table, table)
        if self.in_parts is not None:
            writers["model"] = lambda path: self.in_parts.write(path.parent)
        else:
            if model.personal_ and self.everybody:
                writers["users.parquet"] = lambda path: self._write_people(path, jobs, watch)
            writers["answers.parquet"] = self.overall.comparisons.to_frame("polars").write_parquet
            writers["model"] = (self.stored or model).save
        for number, (name, write) in enumerate(writers.items(), 1):
            watch(name, number)
            write(place / name)
        written = list(writers)
        if can_plot():
            written[1:1] = self._plot(place, watch)
        return ["model/" if name == "model" else name for name in written]

    def _write_csv(self, path: Path) -> None:
        write_csv(self.overall.board, path)

    def _write_json(self, path: Path) -> None:
        text = json.dumps(self.document, indent=2, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")

    def _write_people(self, path: Path, jobs: int | None, watch: Watcher) -> None:
        with workers(jobs) as executor:
            write_people(path, self.overall.model, watch=watch, numbers=self.numbers, executor=executor)

    def _plot(self, place: Path, watch: Watcher) -> list[str]:
        names = ["leaderboard.png", "leaderboard.svg"]
        watch(names[0], 0)
        model = self.overall.model
        people = "" if model._n_people is None else f" of {model._n_people} people"
        title = f"{len(self.overall.board)} items, from {amount(model.n_answers_)} answers{people}"
        plot_board(self.overall.board, model._own_scale, title, [place / name for name in names])
        charts = dict(model._further_charts())
        if shared := [one.board for one in self.segments.values() if isinstance(one, SharedSegment)]:
            unit, most = model._own_scale.of_differences, MOST_SEGMENTS_DRAWN
            of = shared, self.overall.board, unit.unit, unit.digits, most, most
            charts["segments"] = partial(segments_chart, *of)
        for stem, make in charts.items():
            more = [f"{stem}.png", f"{stem}.svg"]
            watch(more[0], 0)
            write_chart(make(), [place / name for name in more], "")
            names += more
        return names


def _write_table(table: Callable[[], Any], path: Path) -> None:
    write_csv(pl.DataFrame(table()), path)
