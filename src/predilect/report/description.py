"""Description of a fitted model in sentences."""

from __future__ import annotations

import math
from typing import Any

from predilect.models.population.model import Population
from predilect.report.leaderboard import Ranking
from predilect.report.scales import Scale
from predilect.report.text import amount

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
    if isinstance(model, Population) and (noise := _noise_line(model)):
        lines.append(noise)
    spread = model.hyperparameters_.tie_spread if isinstance(model, Population) else 0.0
    if ties := scale.ties(model.tie_threshold_, spread):
        lines.append(ties)
    if isinstance(model, Population):
        lines.append(_fit_line(model))
        if model.features_ is not None:
            lines.append(
                f"Item features: {', '.join(model.features_.sources) or 'none of use'}; {_use_of_features(model)}."
            )
        if model.user_features_ is not None and model.personal_:
            used = "used" if model.traits_ is not None else "not used, as held-out answers do not gain by them"
            lines.append(f"Features of people: {', '.join(model.user_features_.sources) or 'none of use'}; {used}.")
    else:
        lines += [_fit_of_a_process(model), *model.describe()]
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
        number = model.hyperparameters_.n_components
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


def _fit_of_a_process(model: Any) -> str:
    fit, seconds = model.report_["fit"], model.report_["timing"]["fit_seconds"]
    verb = "converged" if fit["converged"] else "DID NOT CONVERGE"
    return f"Fit: {fit['method']} {verb} after {fit['iterations']} iterations ({seconds:.1f} s)."


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


def _noise_line(model: Population) -> str:
    """The noise that predictions take, where that is not the unit of scores."""
    found = model.hyperparameters_.calibration
    sd = math.sqrt(found.noise_factor)
    if found.lapse_rate < _FEW_LAPSES:
        if sd > _NEARLY_ALL:
            return ""
        return f"Predicted probabilities take {sd:.2f} times this noise for an answer's, as held-out answers ask for."
    coin = math.isinf(found.lapse_noise)
    careless = "the toss of a coin" if coin else f"{math.sqrt(found.lapse_noise):.1f} times it"
    share = 1 - found.lapse_rate
    return (
        f"Predicted probabilities take {sd:.2f} times this noise for {100 * share:.0f} % of the answers', "
        f"and {careless} for the others, which are given with little care, as held-out answers ask for."
    )


def _fit_line(model: Population) -> str:
    report: dict[str, Any] = model.report_
    fit, prior, seconds = report["fit"], report["prior"], report["timing"]["fit_seconds"]
    verb = "converged" if fit["converged"] else "DID NOT CONVERGE"
    line = f"Fit: {verb} after {fit['iterations']} passes ({seconds:.1f} s)"
    chosen, n_trials = model.hyperparameters_, len(prior.get("trials", []))
    if n_trials == 0:
        return f"{line}; prior by evidence, as there are too few answers to try it on held-out ones."
    if not model.personal_:
        return f"{line}; prior variance {chosen.consensus_variance:.2g}, the likeliest of {n_trials} settings tried."
    return (
        f"{line}; prior variance of a person about the crowd {chosen.variance:.2g}, worth {chosen.strength:.0f} "
        f"people, chosen among {n_trials} settings by {amount(prior.get('n_held_out', 0))} held-out answers."
    )
