"""How sure effects of covariates are, with what is not known of how people differ.

people.md, "Intervals of effects".
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import replace

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import factorise
from predilect.inference.people.layout import People
from predilect.inference.people.person import part_of
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.fit import PopulationState, fit_population
from predilect.models.population.prior import PopulationPrior, log_prior_of_variances, second_moment

MOST_PEOPLE = 200  # who say by what factor variances grow
_RIGID = 1e5  # strength that holds a covariance, and does not drown J in rounding
_TOLERANCE = 1e-3  # of refits, in nats an answer and in noise units: a hundredth of it moves the unit's sd by some .001
# Factors of the population covariance: for effects, with a normal prior of their logarithm of standard deviation 1, and
# for the unit, with the prior of the search
_FEW_LOG_SCALES, _LOG_SCALES = np.linspace(-1.0, 1.0, 5), np.linspace(-2.0, 2.0, 9)
# Spreads of people's own effects, in units of an effect or of noise, whichever is larger, and weights of a flat prior
_SPREADS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.1, 1.5])
_WEIGHTS = np.gradient(_SPREADS) * np.array([0.5, *[1.0] * 5, 0.5])


def with_unsure_tastes(
    posterior: PopulationPosterior, state: PopulationState, prior: PopulationPrior
) -> PopulationPosterior:
    """The posterior of a fit whose effects of covariates are as unsure as tastes and own effects leave them.

    A fit holds the population covariance and the spreads of own effects. Both say how much of the margins is noise, in
    units of which effects are: each variance becomes that about the fit over 35 fits with other values, by their
    evidence. Of more than 200 people so many, evenly among all, say by what factor.
    """
    covariates = posterior.covariates
    if covariates is None or not posterior.people.n_rows:
        return posterior
    found = _Refits.of(posterior, state, prior)
    factor = np.sqrt([found.growth(place) for place in range(len(covariates.mean))])
    covariates = replace(covariates, covariance=covariates.covariance * np.outer(factor, factor))
    return replace(posterior, covariates=covariates)


def sd_of_unit(
    posterior: PopulationPosterior, state: PopulationState, prior: PopulationPrior, given: Container[str]
) -> float:
    """How unsure the noise of one answer is, in which the consensus is told: sd of a factor of all of it.

    Few answers a person hardly tell tastes from noise. Over nine scales of the population covariance, by their evidence
    and the prior of their search, it is that of the factor by which items lie farther apart than at the fit; the scale
    of the consensus follows, unless it is ``given``. 0 of more than 200 people, who leave the scale all but sure.
    """
    if not posterior.people.n_rows or posterior.people.n_active > MOST_PEOPLE:
        return 0.0
    found = _Refits.of(posterior, state, prior)

    def apart(state: PopulationState) -> FloatArray:
        """The items' utilities from their mean."""
        f = state.m if posterior.basis is None else posterior.basis.Phi @ state.m
        f = f + state.offset if len(state.offset) else f
        return np.asarray(f - f.mean())

    at_fit = apart(found.start)
    size = float(at_fit @ at_fit)
    if not size:
        return 0.0  # all items are equal in any unit
    variance = float(np.trace(found.prior.K)) / len(found.prior.K)
    log_weights, factors = [], []
    for side in (np.flip(_LOG_SCALES[_LOG_SCALES <= 0.0]), _LOG_SCALES[_LOG_SCALES > 0.0]):
        state, consensus = found.start, found.prior.consensus_variance
        for scale in np.exp(side).tolist():
            state = found.fit(state, scale, found.spread, consensus)
            if "consensus_variance" not in given:
                consensus = second_moment(found.inverse_K, state.m, state.C_m) / len(state.m)
                state = found.fit(state, scale, found.spread, consensus)
            log_prior = log_prior_of_variances(scale * variance, consensus)
            log_weights.append(found.evidence(state, consensus) + log_prior)
            factors.append(float(apart(state) @ at_fit))
    return math.sqrt(_averaged((np.array(factors) / size - 1.0) ** 2, np.array(log_weights)))


def _averaged(values: FloatArray, log_weights: FloatArray) -> float:
    """Mean of values by weights whose logarithms are given up to a constant."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights @ values / weights.sum())


def _some(posterior: PopulationPosterior) -> IntArray:
    """People who answered, by code; of many some, evenly by how much their answers say, whatever their names."""
    people = posterior.people
    n_rows = np.diff(people.answer_ptr)
    owner = np.repeat(np.arange(people.n_users), n_rows)
    information = np.bincount(owner, people.weight * posterior.sites.precision, people.n_users)
    users = np.flatnonzero(n_rows)
    users = users[np.argsort(information[users], kind="stable")]
    return np.sort(users[np.unique(np.linspace(0, len(users) - 1, MOST_PEOPLE).astype(np.int64))])


class _Refits:
    """Fits in which the population covariance is a multiple of what it was, and the spreads of own effects given."""

    def __init__(self, people: People, prior: PopulationPrior, start: PopulationState) -> None:
        self.people = people
        share = start.own_scale * prior.own_share
        self.prior = replace(
            prior, K=start.Sigma, strength=_RIGID, variance=1.0, own_share=share, tie_spread=0.0,
            K_consensus=prior.K if prior.K_consensus is None else prior.K_consensus, consistency_spread=0.0,
        )  # fmt: skip
        self.inverse_K = self.prior.precision_of_consensus()
        self.spread = np.array(prior.covariate_spread or np.zeros(people.patterns.shape[1]))
        self.start = self.fit(start, 1.0, self.spread, prior.consensus_variance)

    @classmethod
    def of(cls, posterior: PopulationPosterior, state: PopulationState, prior: PopulationPrior) -> _Refits:
        """Of the people of a fit, or of some; own thresholds and consistency stay."""
        users = _some(posterior)
        people, sites = part_of(posterior.people, posterior.sites, users, n_basis=posterior.n_basis)
        rows = np.concatenate([np.arange(*posterior.people.answer_ptr[user : user + 2]) for user in users])
        people = replace(
            people, patterns=posterior.people.patterns, variant=posterior.people.variant[rows],
            traits=np.zeros((len(users), 0)), clicks=np.zeros(0), slope_columns=np.zeros((len(rows), 0)),
        )  # fmt: skip
        start = replace(
            state, sites=sites, B=np.zeros((len(state.m), 0)), log_tie_factor=np.zeros(0),
            log_consistency=np.zeros(0), thresholds=None,
        )  # fmt: skip
        return cls(people, prior, start)

    def fit(
        self, start: PopulationState, scale: float, spread: FloatArray, consensus_variance: float
    ) -> PopulationState:
        """A fit from another."""
        prior = replace(
            self.prior, variance=scale, consensus_variance=consensus_variance,
            covariate_spread=tuple(spread.tolist()) if spread.any() else (),
        )  # fmt: skip
        start = replace(start, Sigma=scale * self.prior.K, own_scale=scale)
        return fit_population(
            self.people, prior, delta=start.delta or None, start=start, tolerance=_TOLERANCE,
            site_tolerance=_TOLERANCE, kept=False,
        )  # fmt: skip

    def evidence(self, state: PopulationState, consensus_variance: float) -> float:
        """Log evidence, with consensus and effects integrated out by Laplace's method as if apart, up to a constant."""
        squares = (state.m @ self.inverse_K @ state.m + state.gamma @ state.gamma) / consensus_variance
        volume = factorise(state.C_m).log_det() - len(state.m) * math.log(consensus_variance)
        if len(state.gamma):
            volume += factorise(state.C_gamma).log_det() - len(state.gamma) * math.log(consensus_variance)
        return float(state.evidence - 0.5 * squares + 0.5 * volume)

    def growth(self, place: int) -> float:
        """By what factor the variance of an effect grows, at least 1."""
        value, variance = self.start.gamma[place], self.start.C_gamma[place, place]
        table = []
        for log_scale in _FEW_LOG_SCALES.tolist():
            state = self.start
            for spread, weight in zip(_SPREADS * max(1.0, abs(value)), _WEIGHTS.tolist(), strict=True):
                spreads = self.spread.copy()
                spreads[place] = spread
                state = self.fit(state, float(np.exp(log_scale)), spreads, self.prior.consensus_variance)
                log_weight = self.evidence(state, self.prior.consensus_variance) + np.log(weight) - 0.5 * log_scale**2
                table.append((log_weight, state.C_gamma[place, place] + (state.gamma[place] - value) ** 2))
        log_weights, squares = np.transpose(table)
        return max(_averaged(squares, log_weights) / float(variance), 1.0)
