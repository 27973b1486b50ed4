"""The population of people's coefficients: a hierarchical linear model of the attributes, in draws.

population.md section 4, "The population of coefficients".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from predilect._base.compile import kernel
from predilect._base.types import BoolArray, FloatArray
from predilect.decisions.conjoint import interval_of_spread
from predilect.inference.gaussian.dense import factorise, semidefinite_root
from predilect.inference.gaussian.small import DEGREES, draw_covariance, draw_normal, draw_scale, inverse
from predilect.inference.likelihoods.special import TAILS_95
from predilect.inference.people.layout import People
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.fit import PopulationState, fit_population
from predilect.models.population.prior import PopulationPrior, least_strength

_N_DRAWS, _BURN, _THIN = 1000, 300, 5
_MOST_VISITS = 400_000  # of people by the sweeps that are kept: of many people fewer sweeps lie between two draws
_MOST_PEOPLE, _MOST_FUNCTIONS = 2000, 20  # beyond, the covariance stays as estimated
# Prior of the covariance at which answers are approximated, in people, and of people's utilities about the mean
_STRENGTH, _VARIANCE = 2.0, 1.0
_WIDTH = 5.0  # of the half-t prior of standard deviations
# Least prior variance of m: one that is learned would draw in what answers hardly tell, as of two attributes alike.
_LEAST_VARIANCE = 25.0


class LinearFunctions(NamedTuple):
    """Φ (n_items, M) of a linear model: columns of the attributes, and one for each item without attributes."""

    Phi: FloatArray
    size: FloatArray  # by which columns of the attributes are divided, (n_columns,)

    @classmethod
    def of(cls, columns: FloatArray, known: BoolArray) -> LinearFunctions:
        """From centred columns of the items (n_items, n_columns), which say nothing of those that are not known."""
        size = np.sqrt((columns[known] ** 2).mean(axis=0) * columns.shape[1])
        return cls(np.hstack([columns / size, np.eye(len(known))[:, ~known]]), size)

    def coefficients(self, report: FloatArray) -> FloatArray:
        """``report`` (q, n_columns) of the columns, of the coefficients of the functions, (q, M)."""
        found = np.zeros((len(report), self.Phi.shape[1]))
        found[:, : len(self.size)] = report / self.size
        return found


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Coefficients b_u ~ N(m, Σ) of M functions, and the Gaussian that stands for each person's answers."""

    mean: FloatArray  # m at its mode, (M,)
    covariance: FloatArray  # of m at the estimated Σ, (M, M)
    Sigma: FloatArray  # estimated, (M, M)
    prior_precision: float  # of each element of m
    information: FloatArray  # H_u of people with answers, (U, M, M)
    linear: FloatArray  # h_u, (U, M)
    engaged: FloatArray  # probability that a person does not click at random, (U,)

    @classmethod
    def of(cls, posterior: PopulationPosterior, Phi: FloatArray, delta: float, variance: float) -> Coefficients:
        """Fit of utilities Φ b_u to the answers of a population, whose people answer as consistently as it found.

        ``Phi`` (n_items, M) has rows of mean square 1; ``variance`` is that of a consensus utility. Traits of people
        are part of how they differ. O(U n² M) a pass, as a fit.
        """
        people = posterior.consolidated().people
        # Who clicks at random stays as it was found.
        people = replace(people, traits=np.zeros((people.n_users, 0)), clicks=np.zeros(0))
        M, effects = Phi.shape[1], posterior.covariates
        variance = max(variance, _LEAST_VARIANCE)
        spread = () if effects is None else tuple(effects.spread.tolist())
        prior = PopulationPrior(np.eye(M), _STRENGTH, _VARIANCE, variance, Phi=Phi, covariate_spread=spread)
        prior = replace(prior, strength=max(_STRENGTH, least_strength(prior, people.n_active, people.n_answers)))
        state = fit_population(people, prior, delta=delta)
        return cls._at(state, people, prior)

    @classmethod
    def _at(cls, state: PopulationState, people: People, prior: PopulationPrior) -> Coefficients:
        fitted = state.posterior(people, prior)
        people, sites, law = fitted.people, fitted.sites, fitted.law
        users = np.flatnonzero(np.diff(people.answer_ptr))
        M = len(state.m)
        score, told = np.empty((len(users), M)), np.empty((len(users), M, M))
        for place, user in enumerate(users.tolist()):
            items, x, Q = people.sums(user, sites, law)
            rows, k = law.Phi[items], len(items)
            score[place], told[place] = rows.T @ x[:k], rows.T @ Q[:k, :k] @ rows
        # The covariance Σ - Σ T Σ is (Σ⁻¹ + H)⁻¹, and the mean m + Σ score is that times Σ⁻¹ m + h.
        H = np.linalg.solve(np.eye(M) - told @ state.Sigma, told)
        H = 0.5 * (H + H.transpose(0, 2, 1))
        h = H @ state.m + score + np.einsum("uij,uj->ui", H @ state.Sigma, score)
        return cls(
            state.m, state.C_m, state.Sigma, 1.0 / prior.consensus_variance, H, h, people.engaged[users].copy()
        )  # fmt: skip

    def drawn(self, report: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draws of the means over the population of ``report`` b, (R, q); its standard deviations and their 95 %
        intervals: mean, lower and upper, (3, q).

        Σ is integrated out by Gibbs sampling: O(R thin U M³). Of more than 2 000 people, or 20 functions, it stays as
        estimated: m is normal, and a spread has its :func:`~predilect.decisions.conjoint.interval_of_spread`.
        """
        exponent = np.frexp(np.abs(report).max(axis=1))[1]  # of units in which squares neither overflow nor vanish
        means, spreads = self._drawn(np.ldexp(report, -exponent[:, None]), rng)
        return np.ldexp(means, exponent), np.ldexp(spreads, exponent)

    def _drawn(self, report: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        U, M = self.linear.shape
        if U > _MOST_PEOPLE or M > _MOST_FUNCTIONS:
            return self._at_estimate(report, rng)
        means, covariances = np.empty((_N_DRAWS, M)), np.empty((_N_DRAWS, M, M))
        thin = int(np.clip(_MOST_VISITS // (_N_DRAWS * U), 1, _THIN))
        _sample(
            self.information, self.linear, self.engaged, self.mean, self.Sigma, self.prior_precision, _WIDTH, _BURN,
            thin, rng, means, covariances,
        )  # fmt: skip
        spreads = np.sqrt(np.einsum("qi,rij,qj->rq", report, covariances, report, optimize=True))
        return means @ report.T, np.vstack([spreads.mean(axis=0), np.quantile(spreads, TAILS_95, axis=0)])

    def _at_estimate(self, report: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        root = semidefinite_root(self.covariance)
        means = self.mean + rng.standard_normal((_N_DRAWS, root.shape[1])) @ root.T
        s = np.sqrt(np.einsum("qi,ij,qj->q", report, self.Sigma, report))
        left = np.linalg.inv(factorise(self.Sigma).inverse() + self.information).mean(axis=0)
        v = np.einsum("qi,ij,qj->q", report, left, report)
        return means @ report.T, np.vstack([s, *interval_of_spread(s, v, len(self.linear))])


@kernel
def _sample(
    H: FloatArray, h: FloatArray, engaged: FloatArray, mean: FloatArray, Sigma: FloatArray, precision: float,
    width: float, burn: int, thin: int, rng: np.random.Generator, means: FloatArray, covariances: FloatArray,
) -> None:  # fmt: skip
    """Gibbs sampling of b_u ~ N(m, Σ), told of by H_u and h_u, of m ~ N(0, I/precision), and of Σ.

    Somebody who may click at random says something in a share ``engaged`` of the sweeps. Draws are written to ``means``
    (R, M) and ``covariances`` (R, M, M).
    """
    U, M = h.shape
    S, P, V, L, b = Sigma.copy(), np.empty((M, M)), np.empty((M, M)), np.empty((M, M)), np.empty(M)
    m, total, scatter, scale = mean.copy(), np.empty(M), np.empty((M, M)), np.empty(M)
    df = DEGREES + M - 1.0
    for sweep in range(burn + len(means) * thin):
        inverse(S, L, P, M)
        draw_scale(P, df, width, M, rng, scale)
        for i in range(M):
            total[i] = 0.0
            for j in range(M):
                scatter[i, j] = 0.0
        for u in range(U):
            told = 1.0 if rng.random() < engaged[u] else 0.0
            for i in range(M):
                b[i] = told * h[u, i]
                for j in range(M):
                    V[i, j] = P[i, j] + told * H[u, i, j]
                    b[i] += P[i, j] * m[j]
            draw_normal(V, L, b, M, rng)
            for i in range(M):
                total[i] += b[i]
                for j in range(i + 1):
                    scatter[i, j] += b[i] * b[j]
        for i in range(M):
            b[i] = 0.0
            for j in range(M):
                V[i, j] = U * P[i, j]
                b[i] += P[i, j] * total[j]
            V[i, i] += precision
        draw_normal(V, L, b, M, rng)
        for i in range(M):
            m[i] = b[i]
        for i in range(M):
            for j in range(i + 1):
                scatter[i, j] += U * m[i] * m[j] - m[i] * total[j] - m[j] * total[i]
            scatter[i, i] += scale[i]
        draw_covariance(scatter, df + U, False, M, rng, S)
        place = sweep - burn
        if place >= 0 and place % thin == thin - 1:
            place = place // thin
            for i in range(M):
                means[place, i] = m[i]
                for j in range(M):
                    covariances[place, i, j] = S[i, j]
