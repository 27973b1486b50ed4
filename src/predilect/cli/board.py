"""What ``rank`` and ``check`` say: the intake, the findings, the model, the board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from predilect.cli.choice import Choice, Personal
from predilect.cli.session import Talk
from predilect.data import Comparisons, Finding
from predilect.models.population import Population
from predilect.report.leaderboard import Ranking
from predilect.report.scales import Scale
from predilect.report.text import amount, one_line, percent, shortened

__all__ = ["board_table", "say_board", "say_findings", "say_intake", "say_model", "say_verdict"]

_LONGEST_NAME = 48
_SEGMENT_ROWS = 10


def say_intake(talk: Talk, comparisons: Comparisons) -> None:
    """Tell what was read and what was left out."""
    for line in comparisons.intake.describe():
        talk.say(line)
    who = f"{comparisons.n_users} people" if comparisons.has_users else "nobody told apart"
    talk.say(f"{amount(comparisons.n_answers)} answers, {comparisons.n_items} items, {who}.")


def say_findings(talk: Talk, findings: Sequence[Finding]) -> None:
    """Tell what ``check`` found: warnings as warnings, the rest as notes."""
    for finding in findings:
        if finding.severity == "warning":
            talk.warn(finding.message)
        else:
            talk.say(f"Note: {finding.message}")


def say_model(talk: Talk, ranking: Ranking, scale: Scale, wanted_personal: bool) -> None:
    """Tell which model it is, what a score means, how the fit went and where the prior came from."""
    model, comparisons = ranking.model, ranking.comparisons
    talk.say()
    if model.personal_:
        talk.say(
            f"Model: population. Each of {comparisons.n_users} people has an equal voice, however much they answered: "
            "the board is the average person's."
        )
    else:
        why = ""
        if wanted_personal:
            why = " (the answers name one person only)" if comparisons.has_users else " (no column says who answered)"
        talk.say(f"Model: pooled{why}. Each of {amount(model.n_answers_)} answers counts once, whoever gave it.")
    talk.say(scale.meaning)
    if ties := scale.ties(model.tie_threshold_, model.hyperparameters_.tie_spread):
        talk.say(ties)
    talk.say(_fit_line(model))
    if model.features_ is not None:
        talk.say(f"Item features: {', '.join(model.features_.sources) or 'none of use'}; {_use_of_features(model)}.")
    if model.user_features_ is not None and model.personal_:
        used = "used" if model.traits_ is not None else "not used, as held-out answers do not gain by them"
        talk.say(f"Features of people: {', '.join(model.user_features_.sources) or 'none of use'}; {used}.")
    for line in model.report_["features"]:
        talk.say(f"Item features: {line}")


def _use_of_features(model: Population) -> str:
    h, functions = model.hyperparameters_, model.functions_
    if functions is None:
        return (
            f"they explain {100 * h.feature_weight:.0f} % of the prior variance between people and "
            f"{100 * h.consensus_weight:.0f} % of the crowd's, going by the evidence"
        )
    parts = [f"{functions.n_attributes} attributes"] if functions.n_attributes else []
    parts += [f"a kernel through {len(functions.points)} inducing points"] if len(functions.points) else []
    own = ", and what each item has to itself" if functions.own or not functions.n_attributes else ""
    return f"utilities hang on {' and '.join(parts)}{own}"


def say_verdict(talk: Talk, choice: Choice) -> None:
    """Tell what held-out answers say, and which model is returned for it."""
    if choice.verdict is None:
        return
    for sentence in choice.verdict.sentences:
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
    """The first rows of a board.

    Parameters
    ----------
    board : polars.DataFrame
        On ``scale``.
    scale : Scale
    rows : int
    """
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


def _fit_line(model: Population) -> str:
    report: dict[str, Any] = model.report_
    fit, prior, seconds = report["fit"], report["prior"], report["timing"]["fit_seconds"]
    verb = "converged" if fit["converged"] else "DID NOT CONVERGE"
    line = f"Fit: {verb} after {fit['iterations']} passes ({seconds:.1f} s)"
    chosen, n_trials = model.hyperparameters_, len(prior.get("trials", []))
    if n_trials == 0:
        return f"{line}; prior by evidence, as there are too few answers to try it on held-out ones."
    if not model.personal_:
        return f"{line}; prior variance {chosen.consensus_scale:.2g}, the likeliest of {n_trials} settings tried."
    return (
        f"{line}; prior variance of a person about the crowd {chosen.scale:.2g}, worth {chosen.strength:.0f} people, "
        f"chosen among {n_trials} settings by {amount(prior.get('n_held_out', 0))} held-out answers."
    )
