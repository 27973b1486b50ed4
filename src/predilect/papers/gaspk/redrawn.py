"""Fits to people weighted anew: how sure a fit is of characteristics and weights. docs/math/gaspk.md section 2.3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.fit import left_open_at, penalty_at, weights_given
from predilect.papers.gaspk.em.mode import Newton, find_mode, state_at
from predilect.papers.gaspk.posterior.basis import DenseBasis
from predilect.papers.gaspk.posterior.posterior import GaSPKPosterior
from predilect.papers.gaspk.settings import FitSettings

_ROUNDS = 4  # with 15 the spread of shares is the same
_CLOSE = 1e-4  # of a margin
_KNOWN = 1e-6  # of the prior variance: what the trade-offs answered about leave open of others


class Redrawn(NamedTuple):
    """What a fit might have been."""

    posterior: GaSPKPosterior  # with characteristics that are known
    weights: FloatArray  # (n_users,), of the people, 1 on average


@dataclass(frozen=True, slots=True)
class _NoCovariance:
    """No covariance."""

    n_c: int

    def blocks(self, x: FloatArray) -> FloatArray:
        return np.zeros((len(x), self.n_c, self.n_c))

    def point_blocks(self, points: IntArray) -> FloatArray:
        return np.zeros((len(points), self.n_c, self.n_c))


def redrawn(model: Any, posterior: GaSPKPosterior, asked: FloatArray, n: int) -> Iterator[Redrawn]:
    """``n`` posteriors that differ as fits to other people would, and as the prior leaves open what answers do not say.

    Each person has an exponential weight (each answer, where the model does not know who answered). The prior of the
    characteristics is centred at a draw from itself: the mode is then a draw of the posterior, were all Gaussian and
    the weights of people known. These are found anew, four rounds from those of the fit. At the trade-offs ``asked``
    (q, d) too characteristics are exact draws, but on a grid, of which they are interpolations. ``posterior`` is the
    model's, perhaps with room for further items.
    """
    settings: FitSettings = model._settings
    answers: TradeOffAnswers = model.answers_
    open_share, delta = model.hyperparameters_.open_share, float(model.tie_threshold_)
    rng = np.random.default_rng([model.seed_, len(posterior.gamma)])
    basis, n_c, n_users = posterior.basis, posterior.w.shape[1], len(posterior.gamma)
    if isinstance(basis, DenseBasis) and len(asked):
        points = model._choices.points
        points = np.hstack([points, np.zeros((len(points), asked.shape[1] - points.shape[1]))])
        fresh = asked[basis.rows(asked)[1] > _KNOWN * posterior.prior_variance]
        basis = basis.extended(np.vstack([points, fresh]), np.arange(len(points))) if len(fresh) else basis
    likelihood, F_found = Probit(delta), posterior.basis.forward(posterior.w)
    for _ in range(n):
        people = rng.standard_exponential(n_users)
        people /= people.mean()
        weight = answers.weight * people[answers.user] if n_users > 1 else rng.standard_gamma(answers.weight)
        heavy = replace(answers, weight=weight)
        centre = rng.standard_normal((basis.rank, n_c))
        w, F, gamma, newton = posterior.w, F_found, posterior.gamma, Newton()
        for _ in range(_ROUNDS):
            penalty = penalty_at(state_at(posterior.basis, heavy, gamma, likelihood, w), F, settings)
            mode = find_mode(
                posterior.basis, heavy, gamma, likelihood, newton, start=w, centre=centre[: len(w)], penalty=penalty,
                tolerance=_CLOSE,
            )  # fmt: skip
            w, F = mode.w, mode.F
            gamma = weights_given(settings, answers, F, gamma, delta)
        state = state_at(posterior.basis, answers, gamma, likelihood, w)
        left_open = left_open_at(state, w, settings.estimator, settings.concentration)
        yield Redrawn(
            replace(
                posterior, basis=basis, w=np.vstack([w, centre[len(w) :]]), gamma=gamma, low_rank=_NoCovariance(n_c),
                exact_up_to=0, left_open=None if left_open is None else open_share * left_open,
            ),
            people,
        )  # fmt: skip
