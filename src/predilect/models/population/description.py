"""A fitted population model in sentences."""

from __future__ import annotations

import math
from typing import Any

from predilect._text import amount
from predilect.likelihoods.calibration import Calibration

_FEW_LAPSES = 0.005
_NEARLY_ALL = 0.95


def describe_population(model: Any) -> list[str]:
    """The noise that predictions take, where the prior came from, and the use of features."""
    lines = [noise] if (noise := _noise_line(model.posterior_.calibration)) else []
    lines.append(_prior_line(model))
    if not model.personal_:
        lines.append(_independence_line(model.posterior_.dependence is not None))
    if model.features_ is not None:
        lines.append(
            f"Item features: {', '.join(model.features_.sources) or 'none of use'}; {_use_of_features(model)}."
        )
    if model.user_features_ is not None and model.personal_:
        used = "used" if model.traits_ is not None else "not used, as held-out answers do not gain by them"
        lines.append(f"Features of people: {', '.join(model.user_features_.sources) or 'none of use'}; {used}.")
    return lines


def _independence_line(people: bool) -> str:
    if people:
        return (
            "Intervals take people for independent of each other, and not their answers. Scores are the average "
            "answer's: the more people differ, the closer together they are than the average person's."
        )
    return "Intervals take all answers for independent, as at most four people, or too many items, are told apart."


def _use_of_features(model: Any) -> str:
    h, functions = model.hyperparameters_, model.functions_
    if functions is None:
        return (
            f"they explain {100 * h.feature_weight:.0f} % of the prior variance between people and "
            f"{100 * h.consensus_weight:.0f} % of the crowd's, going by the evidence"
        )
    parts = [f"{functions.n_attributes} attributes"] if functions.n_attributes else []
    parts += [f"a kernel through {len(functions.points)} inducing points"] if len(functions.points) else []
    own = ", and what each item has to itself" if functions.own or not functions.n_attributes else ""
    return f"the basis of utilities is {' and '.join(parts)}{own}"


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


def _prior_line(model: Any) -> str:
    prior, chosen = model.report_["prior"], model.hyperparameters_
    n_trials = len(prior.get("trials", []))
    if n_trials == 0:
        return "The prior is by evidence, as there are too few answers to try it on held-out ones."
    if not model.personal_:
        return f"Prior variance {chosen.consensus_variance:.2g}, the likeliest of {n_trials} settings tried."
    return (
        f"Prior variance of a person about the crowd {chosen.variance:.2g}, worth {chosen.strength:.0f} people, chosen "
        f"among {n_trials} settings by {amount(prior.get('n_held_out', 0))} held-out answers."
    )
