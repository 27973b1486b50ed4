"""Calibration of the selected hyper-parameters by leave-one-out predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from predilect.inference.alone import Alone
from predilect.inference.calibration_search import calibration
from predilect.inference.candidate import Candidate
from predilect.inference.held_out import Fold
from predilect.inference.population import PopulationState
from predilect.inference.prior import Hyperparameters
from predilect.posteriors.chains import IMPLIED

__all__ = ["ENOUGH_TO_CALIBRATE", "MOST_TO_CALIBRATE", "calibrated"]

MOST_TO_CALIBRATE = 2000  # people: with fewer than there are, margins are not those of the fit to all
ENOUGH_TO_CALIBRATE = 8000.0  # answers held out
_OTHERS = ("threshold_factor", "noise_factor", "lapse_rate", "lapse_noise")
_MOST_WORK = 1e8  # multiply-adds of a sweep, over all folds; about half a second


def calibrated(
    setting: Hyperparameters,
    candidate: Candidate,
    folds: Sequence[Fold],
    states: Sequence[PopulationState],
    free: Sequence[str],
    rng: np.random.Generator,
) -> Hyperparameters:
    """Hyper-parameters with those of the calibration in ``free`` chosen by leave-one-out predictions.

    ``states`` are fits to the first of the ``folds``; ``rng`` chooses rows where leave-one-out predictions take long.
    """
    parts = []
    for number, fold in enumerate(folds):
        state = states[number] if number < len(states) else fold.run(candidate, setting, None, states[0]).state
        parts.append(fold.alone(candidate, setting, state, _MOST_WORK / len(folds), rng))
    alone = Alone.together(parts)
    kind = alone.kind.copy()
    if "variance_factor_unseen" not in free:
        kind[(kind > 0) & (kind != IMPLIED)] = 0
    if "variance_factor_implied" not in free:
        kind[kind == IMPLIED] = 0
    held: dict[str, float | None] = {name: None if name in free else getattr(setting, name) for name in _OTHERS}
    power = None if "variance_power" in free else setting.variance_power
    found = calibration(alone.outcome, alone.mean, alone.var, alone.weight, alone.delta, kind, power=power, **held)
    settled = {name: getattr(found, name) for name in _OTHERS}
    if "variance_factor_unseen" in free:
        settled["variance_factor_unseen"] = found.factor_unseen
    if "variance_factor_implied" in free:
        settled["variance_factor_implied"] = found.factor_implied
    return replace(setting, variance_factor=found.factor, variance_power=found.power, **settled)
