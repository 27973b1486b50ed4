"""Whether a population model that took answers since its fit should be fitted again."""

from __future__ import annotations

from typing import Any

import numpy as np

from predilect._base.text import amount
from predilect._base.types import FloatArray
from predilect.inference.gaussian.posterior import Utilities

_SHARE = 0.1  # of the answers of the fit
_FIRST_ANSWERS, _FIRST_PEOPLE = 10.0, 2  # after the prior
_LARGEST_STEP = 1.0  # of an item from the mean of the items, in standard deviations at the fit


def reason_to_refit(model: Any) -> str | None:
    """Why a refit is due, in a sentence; None if it is not."""
    counts = model.report_.get("updates", {})
    changed = counts.get("answers_added", 0.0) + counts.get("answers_taken_back", 0.0)
    if not changed:
        return None
    if not model.n_fitted_:
        if model.n_answers_ >= _FIRST_ANSWERS and n_people(model) >= _FIRST_PEOPLE:
            return f"the model is the prior with {amount(model.n_answers_)} answers added, and can be fitted to them"
        return None
    if changed >= _SHARE * model.n_fitted_:
        return f"{amount(changed)} answers came or were taken back since the fit to {amount(model.n_fitted_)}"
    if not model.personal_:
        return None
    posterior = model.posterior_
    counts_of_new = [model.n_by_item_[model.items_.code(item)] for item in model.provisional_items_]
    if np.any(np.array(counts_of_new) > 0.0):
        return f"{len(counts_of_new)} items joined since the fit, and there are answers about them"
    if "awaited_ties" in model.report_ and _has_ties(posterior):
        return "a first tie came, and the threshold of ties was set before there was one"
    step, worst = _largest_step(posterior)
    if step > _LARGEST_STEP:
        return f"the score of {model.items_.ids[worst]!r} moved by {step:.1f} standard deviations since the fit"
    return None


def n_people(model: Any) -> int:
    """People with answers."""
    posterior = model.posterior_
    return int((~posterior.without_answers(np.arange(posterior.n_users))).sum())


def _has_ties(posterior: Any) -> bool:
    later = (person.outcome for person in posterior.overlay.values())
    return bool((posterior.people.outcome == 0).any()) or any((outcome == 0).any() for outcome in later)


def _largest_step(posterior: Any) -> tuple[float, int]:
    """Largest step of an item from the mean of all since the fit, in its standard deviations at the fit; which item."""
    if not posterior.has_moved:
        return 0.0, 0
    now, law = posterior.crowd(), posterior.law
    step: FloatArray = now.mean - law.mean
    fitted = Utilities(law.mean, posterior.C_m, now.Phi, now.items, now.own)
    sd = np.sqrt(np.maximum(fitted.centred_marginals()[1], 0.0))
    step = np.abs(step - step.mean())
    ratio = np.divide(step, sd, out=np.zeros_like(step), where=sd > 0.0)
    worst = int(np.argmax(ratio))
    return float(ratio[worst]), worst
