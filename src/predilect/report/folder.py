"""Provenance of a result: the files it was made of, and versions."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from predilect._plots import can_plot
from predilect._text import amount
from predilect.report.leaderboard import Ranking, Refused, segment_table
from predilect.report.people import write_people
from predilect.report.plot import plot_board
from predilect.report.tables import Scale, write_csv
from predilect.shards import workers

_PACKAGES = ("numpy", "scipy", "numba", "polars")


def file_record(path: Path) -> dict[str, str | int]:
    """Name, size in bytes and SHA-256 of a file; the name without its folder, which differs between machines."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def input_records(paths: Mapping[str, Path | None]) -> dict[str, dict[str, str | int]]:
    """Records of the files that were given, by the role they play."""
    return {role: file_record(path) for role, path in paths.items() if path is not None}


def package_versions() -> dict[str, str]:
    """Versions of Predilect, of what computes its numbers, and of Python."""
    from predilect import __version__

    return {
        "predilect": __version__,
        **{name: version(name) for name in _PACKAGES},
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class RankOutput:
    """Results of a run, ready to be written; ``segments`` is empty without ``--by``."""

    overall: Ranking
    scale: Scale
    segments: Mapping[str, Ranking | Refused]
    document: Mapping[str, Any]

    def write(self, place: Path, jobs: int | None, watch: Callable[[str, int], None]) -> list[str]:
        """Write every file into an empty folder; their names, in the order in which somebody would open them."""
        writers: dict[str, Callable[[Path], Any]] = {
            "leaderboard.csv": self._write_csv,
            "leaderboard.json": self._write_json,
        }
        if self.segments:
            writers["segments.csv"] = lambda path: write_csv(segment_table(self.segments), path)
        model = self.overall.model
        for name, table in model.further_tables().items():
            writers[f"{name}.csv"] = partial(_write_table, table)
        if model.personal_:
            writers["users.parquet"] = lambda path: self._write_people(path, jobs)
        writers["model"] = model.save
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

    def _write_people(self, path: Path, jobs: int | None) -> None:
        with workers(jobs) as executor:
            write_people(path, self.overall.model, per_probit=self.scale.per_probit, executor=executor)

    def _plot(self, place: Path, watch: Callable[[str, int], None]) -> list[str]:
        names = ["leaderboard.png", "leaderboard.svg"]
        watch(names[0], 0)
        model = self.overall.model
        people = f" of {len(model.users_)} people" if model.users_ is not None else ""
        title = f"{len(self.overall.board)} items, from {amount(model.n_answers_)} answers{people}"
        plot_board(self.overall.board, self.scale, title, [place / name for name in names])
        for stem, plot in model.further_plots().items():
            more = [f"{stem}.png", f"{stem}.svg"]
            watch(more[0], 0)
            plot([place / name for name in more])
            names += more
        return names


def _write_table(table: Callable[[], Any], path: Path) -> None:
    write_csv(pl.DataFrame(table()), path)
