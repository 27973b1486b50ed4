"""What ``rank`` and ``check`` print: the intake, the findings, the model, the board."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from predilect._text import amount, one_line, percent, shortened
from predilect.cli.fitting import Choice, Personal
from predilect.cli.session import Talk
from predilect.data import Comparisons, Finding
from predilect.report.leaderboard import Ranking, describe
from predilect.report.tables import Scale

_LONGEST_NAME = 48
_SEGMENT_ROWS = 10


def say_intake(talk: Talk, comparisons: Comparisons) -> None:
    """Print what was read and what was left out."""
    for line in comparisons.intake.describe():
        talk.say(line)
    who = f"{comparisons.n_users} people" if comparisons.has_users else "nobody told apart"
    talk.say(f"{amount(comparisons.n_answers)} answers, {comparisons.n_items} items, {who}.")


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
