"""Parallel expectation propagation for one person with very many answers, with step control."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.inference.compiled.person_ep import answers_evidence, refresh_sites
from predilect.posteriors.law import Law
from predilect.posteriors.people import People, Sites

__all__ = ["PersonPass", "dense_pass"]

FloatArray = npt.NDArray[np.float64]

_SMALLEST_STEP = 0.1


@dataclass(frozen=True, slots=True)
class PersonPass:
    """Contribution of one person, on the own items."""

    user: int
    items: npt.NDArray[np.int32]
    x: FloatArray  # Xᵀ α, (k,)
    Q: FloatArray  # Xᵀ Q X, (k, k)
    out: FloatArray  # (4,): evidence, its gradient and curvature in δ, largest change of a margin
    ties: FloatArray  # (2,): gradient and curvature in the logarithm of the person's own threshold


def dense_pass(
    people: People, user: int, sites: Sites, law: Law, delta: float, n_sweeps: int, tolerance: float
) -> PersonPass:  # fmt: skip
    """Parallel EP sweeps of one person's sites, in place, with the fixed point of sequential ones."""
    rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
    factor = float(people.tie_factor[user])
    own_delta = delta * factor
    outcome, weight = people.outcome[rows], people.weight[rows]
    precision, linear = sites.precision[rows], sites.linear[rows]  # views: the sites change in place
    items, person = people.dense(user, law)
    prior_var = person.prior_var
    state = person.condition(weight * precision, weight * linear)
    step, last, largest = 1.0, math.inf, 0.0
    for _ in range(n_sweeps):
        # What the copies of a row leave of the variance that there is without them, which is at most the prior's: where
        # they carry nearly all information, the difference has lost its digits and the bound has them.
        total = weight * precision
        share = np.maximum(1.0 - total * state.var, 1.0 / (1.0 + total * prior_var))
        largest = refresh_sites(outcome, weight, state.mean, state.var, share, precision, linear, own_delta, step)
        if largest > last:
            step = max(0.5 * step, _SMALLEST_STEP)
        last = largest
        state = person.condition(weight * precision, weight * linear)
        if largest < tolerance:
            break
    out = np.zeros(4)
    answers_evidence(outcome, weight, state.mean, state.var, precision, linear, person.z_bar, own_delta, out)
    out[0] += 0.5 * (state.quadratic - state.log_det)
    out[3] = largest
    slope = own_delta * out[1]
    ties = np.array([slope, own_delta * own_delta * out[2] + slope])
    out[1] *= factor
    out[2] *= factor * factor
    return PersonPass(user, items, *person.sums(state), out, ties)
