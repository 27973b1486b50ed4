"""Description of a fitted model in sentences."""

from __future__ import annotations

import math
from typing import Any

from predilect._text import amount
from predilect.likelihoods.calibration import Calibration
from predilect.report.leaderboard import Ranking
from predilect.report.scales import Scale

_FEW_LAPSES = 0.005
_NEARLY_ALL = 0.95

# Models whose description is how they relate people to each other.
_EACH = {
    "joint": "One process of {} people and the items, by the features of both",
    "bonilla-gp": "One process of {} people and the items, by the features of both",
    "hierarchical-gp": "The utilities of {} people are draws from one Gaussian, which is learned",
    "gpvu": "The utilities of {} people are shared factors, and a process of each one's own",
    "single-user-gp": "A utility function for each of {} people, learned from their own answers alone",
}


def describe(ranking: Ranking, scale: Scale, wanted_personal: bool) -> list[str]:
    """Which model it is, what a score means, how the fit went and where the prior came from, in sentences."""
    model, comparisons = ranking.model, ranking.comparisons
    lines = [_name(model, comparisons.n_users, comparisons.has_users, wanted_personal), scale.meaning]
    calibration = model.posterior_.calibration
    if noise := _noise_line(calibration):
        lines.append(noise)
    if ties := scale.ties(model.tie_threshold_, calibration.tie_spread):
        lines.append(ties)
    lines += [model.describe_fit(), *model.describe()]
    return lines + [f"Item features: {line}" for line in model.report_["features"]]


def _name(model: Any, n_users: int, has_users: bool, wanted_personal: bool) -> str:
    name = model.report_["model"]
    if name == "crowd-gppl":
        return f"Model: crowd-gppl. The crowd's utilities, and how each of {n_users} people differs along components."
    if name == "collaborative" and model.personal_:
        return (
            f"Model: collaborative. Functions that {n_users} people share, each with own weights; the board is the "
            "average person's."
        )
    if name in _EACH and model.personal_:
        return f"Model: {name}. {_EACH[name].format(n_users)}; the board is the average person's."
    if name == "gppl" and model.personal_:
        together = "learned together by their features" if model.users == "joint" else "each learned alone"
        return f"Model: gppl. A utility function for each of {n_users} people, {together}; the board is their average."
    if name == "gaspk":
        number = model.hyperparameters_.n_characteristics
        mixture = f"a mixture of {number} evaluations" if number > 1 else "one evaluation"
        whose = f"each of {n_users} people has {mixture}" if model.personal_ else "one evaluation for all"
        return f"Model: gaspk. What an item has more and less of than another: {whose}; the board is their average."
    if model.personal_:
        return (
            f"Model: population. Each of {n_users} people has an equal voice, however much they answered: the board is "
            "the average person's."
        )
    why = ""
    if wanted_personal:
        why = " (the answers name one person only)" if has_users else " (no column says who answered)"
    return f"Model: {name}{why}. Each of {amount(model.n_answers_)} answers counts once, whoever gave it."


def _noise_line(c: Calibration) -> str:
    """The noise that predictions take, where that is not the unit of scores."""
    sd = math.sqrt(c.noise_factor)
    if c.lapse_rate < _FEW_LAPSES:
        if sd > _NEARLY_ALL:
            return ""
        return f"Predicted probabilities take {sd:.2f} times this noise for an answer's, as held-out answers ask for."
    careless = f"{math.sqrt(c.lapse_noise):.1f} times it" if math.isfinite(c.lapse_noise) else "the toss of a coin"
    return (
        f"Predicted probabilities take {sd:.2f} times this noise for {100 * (1 - c.lapse_rate):.0f} % of the answers', "
        f"and {careless} for the others, which are given with little care, as held-out answers ask for."
    )
