"""The machine-readable record of a ranking: ``leaderboard.json``, ``leaderboard.csv`` and ``segments.csv``.

Schema ``predilect/leaderboard``, version 1. Scores of every board are in the unit of ``scale``; numbers under ``model``
are in units of the noise of one answer. Everything but ``timing`` is the same, byte for byte, when the same files are
ranked again with the same options and versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from predilect._base.json import plain
from predilect._base.text import amount
from predilect.data import Comparisons, Finding
from predilect.data.orders import weights_of_rows
from predilect.decisions.scales import Scale
from predilect.show.charts.facts import further_table
from predilect.show.report.tables import least_consistent

SCHEMA = "predilect/leaderboard"
VERSION = 1


@dataclass(frozen=True)
class Ranking:
    """Board, its model and answers, what ``check`` found, and the warnings of the fit."""

    model: Any
    comparisons: Comparisons
    board: pl.DataFrame
    findings: list[Finding]
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, model: Any, comparisons: Comparisons, scale: Scale, findings: list[Finding], warned: list[str]
    ) -> Ranking:
        """The crowd's board of a fitted model."""
        return cls(model, comparisons, pl.DataFrame(model.rank(scale=scale)), findings, warned)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "model": _model(self.model, self.comparisons),
            "board": self.board.to_dicts(),
            "reading": self.comparisons.reading.to_dict(),
            "intake": asdict(self.comparisons.intake),
            "findings": [asdict(finding) for finding in self.findings],
            "warnings": self.warnings,
        }


@dataclass(frozen=True)
class RefusedSegment:
    """A segment that cannot be ranked, and why."""

    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"not_ranked": self.reason}


SEGMENT_COLUMNS = ("column", "segment", "people")


@dataclass(frozen=True)
class SharedSegment:
    """One segment's board out of a fit that all segments share: rows of ``model.segments()``."""

    board: pl.DataFrame

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {name: self.board[name][0] for name in SEGMENT_COLUMNS} | {
            "board": self.board.drop(SEGMENT_COLUMNS).to_dicts()
        }


def shared_segments(model: Any, scale: Scale) -> dict[tuple[str, str], SharedSegment]:
    """Boards of a model's segments, by column and value."""
    parts = pl.DataFrame(model.segments(scale=scale)).partition_by("column", "segment", maintain_order=True)
    return {(part["column"][0], part["segment"][0]): SharedSegment(part) for part in parts}


def leaderboard_document(
    overall: Ranking,
    scale: Scale,
    *,
    verdict: Mapping[str, Any] | None = None,
    by: Mapping[str, Any] | None = None,
    segments: Mapping[Any, Ranking | RefusedSegment | SharedSegment] | None = None,
    provenance: Mapping[str, Any],
    timing: Mapping[str, Any],
) -> dict[str, Any]:
    """The record of a ranking as plain values.

    ``verdict``: what held-out answers say of the whole, and which model was returned; ``by``: how the answers were cut
    into segments; ``segments``: ranking, or why there is none, by the segment's value; ``provenance``: command, files,
    options, seed and versions, nothing that differs between two runs; ``timing``: dates and seconds.
    """
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "scale": scale.to_dict(),
        **plain(overall.to_dict(), words=False),
        "verdict": plain(verdict, words=False),
        "by": plain(by, words=False),
        "segments": [
            {"segment": value, **plain(segment.to_dict(), words=False)} for value, segment in (segments or {}).items()
        ],
        "provenance": plain(provenance, words=False),
        "timing": plain(timing, words=False),
    }  # fmt: skip


def segment_table(segments: Mapping[Any, Ranking | RefusedSegment | SharedSegment]) -> pl.DataFrame:
    """The boards of all segments under each other; of separate fits with a first column ``segment``."""
    boards = [
        segment.board if isinstance(segment, SharedSegment)
        else segment.board.select(pl.lit(value).alias("segment"), pl.all())
        for value, segment in segments.items()
        if not isinstance(segment, RefusedSegment)
    ]  # fmt: skip
    # Amounts may be whole in one segment and fractions in another.
    return pl.concat(boards, how="vertical_relaxed")


def _model(model: Any, comparisons: Comparisons) -> dict[str, Any]:
    report = model.report_
    return {
        "name": report["model"],
        "n_users": model._n_people,
        "n_items": len(model.items_),
        "n_answers": model.n_answers_,
        "tie_threshold": model.tie_threshold_,
        "log_evidence": model.log_evidence_,
        "hyperparameters": model.hyperparameters_.to_dict(),
        "prior_search": report["prior"],
        "convergence": report["fit"],
        "features": report["features"],
    }


def describe(ranking: Ranking, scale: Scale, wanted_personal: bool) -> list[str]:
    """Which model it is, what a score means, what was learned and how the fit went, in sentences."""
    model = ranking.model
    lines = [f"Model: {_relation(model, ranking.comparisons, wanted_personal)}.", scale.meaning]
    if ties := scale.ties(model.tie_threshold_, model.posterior_.calibration.tie_spread):
        lines.append(ties)
    lines += [*model.describe(), *least_consistent(further_table(model, "people")), _fit(model)]
    return lines + [f"Item features: {line}" for line in model.report_["features"]]


def _relation(model: Any, answers: Comparisons, wanted_personal: bool) -> str:
    name = model._called
    if relation := model._relation():
        return f"{name}. {relation}"
    why = ""
    if wanted_personal:
        why = " (the answers name one person only)" if answers.has_users else " (no column says who answered)"
    n = float(weights_of_rows(answers).sum()) if answers.joint else model.n_answers_
    return f"{name}{why}. Each of {amount(n)} answers counts once, whoever gave it"


def _fit(model: Any) -> str:
    fit, seconds = model.report_["fit"], model.report_["timing"]["fit_seconds"]
    verb = "converged" if fit["converged"] else "DID NOT CONVERGE"
    return f"Fit: {verb} after {fit['iterations']} iterations of {fit['method']} ({seconds:.1f} s)."
