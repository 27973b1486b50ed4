"""Description of a fitted model in sentences."""

from __future__ import annotations

from typing import Any

from predilect._text import amount
from predilect.report.leaderboard import Ranking
from predilect.report.tables import Scale


def describe(ranking: Ranking, scale: Scale, wanted_personal: bool) -> list[str]:
    """Which model it is, what a score means, what was learned and how the fit went, in sentences."""
    model = ranking.model
    lines = [f"Model: {_relation(model, ranking.comparisons.has_users, wanted_personal)}.", scale.meaning]
    if ties := scale.ties(model.tie_threshold_, model.posterior_.calibration.tie_spread):
        lines.append(ties)
    lines += [*model.describe(), _fit(model)]
    return lines + [f"Item features: {line}" for line in model.report_["features"]]


def _relation(model: Any, has_users: bool, wanted_personal: bool) -> str:
    name = model.report_["model"]
    if told := model.relation():
        return f"{name}. {told}"
    why = ""
    if wanted_personal:
        why = " (the answers name one person only)" if has_users else " (no column says who answered)"
    return f"{name}{why}. Each of {amount(model.n_answers_)} answers counts once, whoever gave it"


def _fit(model: Any) -> str:
    fit, seconds = model.report_["fit"], model.report_["timing"]["fit_seconds"]
    verb = "converged" if fit["converged"] else "DID NOT CONVERGE"
    return f"Fit: {verb} after {fit['iterations']} iterations of {fit['method']} ({seconds:.1f} s)."
