"""Fits of all answers and of segments, and what ``rank`` and ``check`` print of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from predilect._text import amount, one_line, percent, shortened
from predilect.cli.choice import Choice, Personal
from predilect.cli.session import Talk
from predilect.data import Comparisons, Finding, ItemFeatures, PersonFeatures, check
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.models.registry import COMMANDS, Asked, estimator
from predilect.progress import Watcher
from predilect.report.leaderboard import Ranking, Refused, describe

_LONGEST_NAME = 48
_SEGMENT_ROWS = 10


def say_intake(talk: Talk, comparisons: Comparisons) -> None:
    """Print what was read and what was left out."""
    for line in comparisons.intake.describe():
        talk.say(line)
    who = f"{comparisons.n_users} people" if comparisons.has_users else "people not named"
    answers = f"{amount(comparisons.n_answers)} answers"
    if comparisons.intake.tasks_read:
        answers = f"{amount(comparisons.n_answers)} times one alternative over another"
    talk.say(f"{answers}, {comparisons.n_items} items, {who}.")


def say_findings(talk: Talk, findings: Sequence[Finding]) -> None:
    """Print what ``check`` found: warnings as warnings, the rest as notes."""
    for finding in findings:
        if finding.severity == "warning":
            talk.warn(finding.message)
        else:
            talk.say(f"Note: {finding.message}")


def say_model(talk: Talk, ranking: Ranking, scale: Scale, wanted_personal: bool) -> None:
    """Print the model, the meaning of a score, how the fit went and where the prior came from."""
    talk.say()
    for line in describe(ranking, scale, wanted_personal):
        talk.say(line)


def say_verdict(talk: Talk, choice: Choice) -> None:
    """Print what held-out answers say, and which model is returned for it."""
    for sentence in choice.verdict.sentences if choice.verdict is not None else ():
        talk.say(f"Verdict: {sentence}")
    if choice.asked is Personal.auto:
        talk.say(choice.reason)


def say_board(talk: Talk, ranking: Ranking, scale: Scale, top: int, segment: str | None = None) -> None:
    """Print a board, and of a segment its first rows only."""
    rows = len(ranking.board) if top == 0 else top
    rows = rows if segment is None else min(rows, _SEGMENT_ROWS)
    talk.say()
    if segment is not None:
        told = "" if ranking.model.report_["model"] == "population" else ", pooled model"
        talk.say(f"{one_line(segment)}: {amount(ranking.comparisons.n_answers)} answers{told}", style="bold")
    talk.say(board_table(ranking.board, scale, rows))
    if rows < len(ranking.board):
        talk.say(f"... and {len(ranking.board) - rows} more items; --top 0 shows all.")


def board_table(board: pl.DataFrame, scale: Scale, rows: int) -> Table:
    """The first rows of a board."""
    # The numbers keep their width on a narrow terminal; only names may be cut.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Rank", justify="right", no_wrap=True, min_width=4)
    table.add_column("95 %", no_wrap=True, min_width=7)
    table.add_column("Item", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("Score", justify="right", no_wrap=True, min_width=6)
    table.add_column("95 % interval", justify="right", no_wrap=True, min_width=13)
    table.add_column("P(best)", justify="right", no_wrap=True, min_width=7)
    table.add_column("Tier", justify="right", no_wrap=True, min_width=4)
    table.add_column("Answers", justify="right", no_wrap=True, min_width=7)

    def score(value: float) -> str:
        return f"{round(value, scale.digits) + 0.0:.{scale.digits}f}"  # never -0.00

    for row in board.head(rows).iter_rows(named=True):
        table.add_row(
            str(row["rank"]),
            f"{row['rank_low']}–{row['rank_high']}",
            Text(shortened(one_line(row["item"]), _LONGEST_NAME)),
            score(row["mean"]),
            f"{score(row['lower'])} … {score(row['upper'])}",
            percent(row["p_best"]),
            str(row["tier"]),
            amount(row["n"]),
        )
    return table


@dataclass(frozen=True)
class Fitter:
    """Settings that every fit of a run shares; ``settings`` are further arguments of the model."""

    name: str
    features: ItemFeatures | None
    people: PersonFeatures | None
    scale: Scale
    personal: Personal
    verdict: bool
    seed: int
    jobs: int | None
    strict: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    def look(self, comparisons: Comparisons) -> list[Finding]:
        """Findings of ``check``, with the items that only the features know."""
        return check(comparisons, None if self.features is None else self.features.ids)

    def fit(self, talk: Talk, comparisons: Comparisons, findings: list[Finding]) -> tuple[Ranking, Choice]:
        """Fit the model that is to be returned, judge it, and make its board; raises DataError, ConvergenceError."""
        personal = self.personal is not Personal.no
        verdict = None
        before = len(talk.warned)
        with talk.progress("Ranking") as watch:
            model = self._fitted(comparisons, personal, watch)
            if self.verdict and COMMANDS[self.name].rankings == "judged":
                verdict = model.verdict(watch=watch)
                if self.personal is Personal.auto and verdict.favours == "pooled":
                    personal = False
                    model = self._fitted(comparisons, personal, watch)
                    model.keep_verdict(verdict)
            ranking = Ranking.of(model, comparisons, self.scale, findings, talk.warned[before:])
        return ranking, Choice(self.personal, personal, verdict, str(model.report_["model"]))

    def _fitted(self, comparisons: Comparisons, personal: bool, watch: Watcher) -> Any:
        settings = {"n_jobs": self.jobs, "random_state": self.seed, "strict": self.strict}
        asked = Asked(personal, items=self.features is not None, people=self.people is not None)
        model = estimator(self.name)(**COMMANDS[self.name].arguments(asked), **settings, **self.settings)
        return model.fit(comparisons, items=self.features, users=self.people, watch=watch)

    def fit_segments(
        self, talk: Talk, segments: Mapping[str, Comparisons | str], personal: bool
    ) -> dict[str, Ranking | Refused]:
        """Fit each segment by itself, all personal or all pooled; DataError if none can be ranked."""
        results: dict[str, Ranking | Refused] = {}
        for number, (value, comparisons) in enumerate(segments.items(), 1):
            name = one_line(value)
            if isinstance(comparisons, str):
                results[value] = Refused(comparisons)
            else:
                try:
                    before = len(talk.warned)
                    with talk.progress(f"Ranking {name} ({number} of {len(segments)})") as watch:
                        model = self._fitted(comparisons, personal, watch)
                        results[value] = Ranking.of(
                            model, comparisons, self.scale, self.look(comparisons), talk.warned[before:]
                        )
                except DataError as error:
                    results[value] = Refused(str(error))
        reasons = {value: result.reason for value, result in results.items() if isinstance(result, Refused)}
        if len(reasons) == len(results):
            value, reason = next(iter(reasons.items()))
            raise DataError(f"no segment can be ranked (first: {one_line(value)}: {reason})")
        for value, reason in reasons.items():
            talk.warn(f"{one_line(value)} cannot be ranked: {reason}.")
        return results
