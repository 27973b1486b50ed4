"""What answers say of the effects of their covariates, and of the consensus, at once."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from predilect._base.types import FloatArray
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.dense import factorise, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People


class CovariateInformation(NamedTuple):
    """Information of all answers in the effects γ of covariates, sites held (people.md, "Covariates of answers")."""

    with_consensus: FloatArray  # Σ_u Aᵀ Q_u X, (M, n_covariates)
    own: FloatArray  # Σ_u Xᵀ Q_u X, (n_covariates, n_covariates)

    def joint(self, C_m: FloatArray, precision: float) -> tuple[FloatArray, FloatArray]:
        """Posterior covariances of consensus and effects, from that of the consensus at known effects."""
        C_R = C_m @ self.with_consensus
        rest = self.own + precision * np.eye(len(self.own)) - self.with_consensus.T @ C_R
        C_gamma = factorise(symmetrise(rest)).inverse()
        return symmetrise(C_m + C_R @ C_gamma @ C_R.T), C_gamma


def covariate_information(people: People, sites: Sites, law: Law) -> CovariateInformation:
    """Sums over people by one pass over the answers for each covariate.

    α is linear in η, and Q_u x the α of sites of mean x where the prior mean is 0: what a pass sums up is then Q_u X.
    """
    n_effects = people.patterns.shape[1]
    none = replace(law, mean=np.zeros_like(law.mean), shift=np.zeros_like(law.shift))
    a = np.repeat(people.consistency, np.diff(people.answer_ptr))
    # Of the same size as margins for the pass, whatever the outliers.
    size = np.abs(people.patterns).max(axis=0, initial=0.0)
    found = []
    for column in (people.patterns / np.where(size > 0.0, size, 1.0)).T:
        about = Sites(sites.precision, a * sites.precision * column[people.variant])
        found.append(expectation(people, about, none, 1.0, n_sweeps=0))
    M = law.Phi.shape[1] if law.has_basis else people.n_items
    with_consensus = np.array([one.r for one in found]).reshape(n_effects, M).T * size
    own = np.array([one.r_covariates for one in found]).reshape(n_effects, n_effects).T * size
    return CovariateInformation(with_consensus, symmetrise(own))


def own_effects(people: People, sites: Sites, law: Law, effects: CovariateEffects) -> tuple[FloatArray, FloatArray]:
    """Posterior means and standard deviations of each person's own effects γ + c_u, (n_users, n_covariates).

    γ and c_u are taken for independent. One pass over the answers.
    """
    mean, reliability = (
        expectation(people, sites, law, 1.0, n_sweeps=0).own_slopes[:, 4:].reshape(people.n_users, -1, 2).T
    )
    var = np.diagonal(effects.covariance)[:, None] + effects.spread[:, None] ** 2 * (1.0 - reliability)
    return effects.mean + effects.spread * mean.T, np.sqrt(var.T)
