"""Description of a fitted population model in sentences."""

from __future__ import annotations

from typing import Any

from predilect._text import amount


def describe_features(model: Any) -> list[str]:
    """Sentences on the features of items and of people, where there are any."""
    lines = []
    if model.features_ is not None:
        lines.append(
            f"Item features: {', '.join(model.features_.sources) or 'none of use'}; {_use_of_features(model)}."
        )
    if model.user_features_ is not None and model.personal_:
        used = "used" if model.traits_ is not None else "not used, as held-out answers do not gain by them"
        lines.append(f"Features of people: {', '.join(model.user_features_.sources) or 'none of use'}; {used}.")
    return lines


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
    return f"utilities hang on {' and '.join(parts)}{own}"


def describe_fit(model: Any) -> str:
    """Sentence on how the fit went, and where the prior came from."""
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
