"""The setting that was chosen, calibrated: folds enough, each answer predicted as it will be in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from predilect.inference.alone import Alone
from predilect.inference.calibration import calibration
from predilect.inference.candidate import Candidate
from predilect.inference.held_out import Fold
from predilect.inference.population import PopulationState
from predilect.inference.prior import Hyperparameters

__all__ = ["ENOUGH_TO_CALIBRATE", "MOST_TO_CALIBRATE", "calibrated"]

MOST_TO_CALIBRATE = 2000  # people: with fewer than there are, margins are not those of the fit to all
ENOUGH_TO_CALIBRATE = 8000.0  # answers held out
_MOST_WORK = 1e8  # multiply-adds of a sweep, over all folds; about half a second


def calibrated(
    setting: Hyperparameters,
    candidate: Candidate,
    folds: Sequence[Fold],
    states: Sequence[PopulationState],
    free: Sequence[str],
    rng: np.random.Generator,
) -> Hyperparameters:
    """κ, κ₀, e, γ and λ by held-out answers, each predicted from all others of its person; those not ``free`` are kept.

    Parameters
    ----------
    setting, candidate
        What was chosen.
    folds, states
        Folds, and the fits to them at this setting as far as there are any: further folds start from the first.
    free : sequence of str
        Names of hyper-parameters to choose.
    rng : Generator
        Chooses rows to predict from all others where all would take long.
    """
    parts = []
    for number, fold in enumerate(folds):
        state = states[number] if number < len(states) else fold.run(candidate, setting, None, states[0]).state
        parts.append(fold.alone(candidate, setting, state, _MOST_WORK / len(folds), rng))
    alone = Alone.together(parts)
    n_unseen = alone.n_unseen if "variance_factor_unseen" in free else np.zeros_like(alone.n_unseen)
    found = calibration(
        *alone[:5], n_unseen, power=None if "variance_power" in free else setting.variance_power,
        threshold_factor=None if "threshold_factor" in free else setting.threshold_factor,
        lapse_rate=None if "lapse_rate" in free else setting.lapse_rate,
    )  # fmt: skip
    unseen = found.factor_unseen if "variance_factor_unseen" in free else setting.variance_factor_unseen
    return replace(
        setting, variance_factor=found.factor, variance_factor_unseen=unseen, variance_power=found.power,
        threshold_factor=found.threshold_factor, lapse_rate=found.lapse_rate,
    )  # fmt: skip
