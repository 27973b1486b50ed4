"""Linear combinations of people's utilities, in draws of the consensus that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import semidefinite_root, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People
from predilect.inference.people.queries import offset_variance


@dataclass(frozen=True, slots=True)
class ConsensusDraws:
    """H draws of the consensus, less its mean: on the basis, (H, M), and items' residuals, (H, n_items) or none."""

    functions: FloatArray
    own: FloatArray
    now: FloatArray | None = None  # of the consensus as it moved since the fit, which people without answers are of

    @classmethod
    def of(cls, posterior: Any, n_draws: int, rng: np.random.Generator) -> ConsensusDraws:
        """Draws of N(0, C_m), and of the residuals; O(n_draws (M² + n_items)), n_items only with residuals."""
        root, now = semidefinite_root(posterior.C_m), None
        normal = rng.standard_normal((n_draws, root.shape[1]))
        sd = np.sqrt(offset_variance(posterior))
        own = rng.standard_normal((n_draws, len(sd))) * sd
        if posterior.has_moved:
            moved = semidefinite_root(posterior.now.C)
            same = moved.shape == root.shape
            now = (normal if same else rng.standard_normal((n_draws, moved.shape[1]))) @ moved.T
        return cls(normal @ root.T, own, now)

    def of_items(self, items: IntArray, Phi: FloatArray | None) -> FloatArray:
        """Those of some items, (H, k)."""
        moved = self.functions[:, items] if Phi is None else self.functions @ Phi[items].T
        return moved + self.own[:, items] if self.own.shape[1] else moved


class GivenConsensus(NamedTuple):
    """A f of one person: N(mean + moved, covariance) in each draw of the consensus; (q,), (H, q), (q, q)."""

    mean: FloatArray
    moved: FloatArray
    covariance: FloatArray

    def times(self, factor: float) -> GivenConsensus:
        """Of utilities that are multiplied."""
        return GivenConsensus(factor * self.mean, factor * self.moved, factor * factor * self.covariance)


@dataclass(frozen=True, slots=True)
class Combinations:
    """A f, for A (q, n_items), with what is the same for all people; O(q n_items M) once."""

    A: FloatArray
    on_basis: FloatArray  # A Φ, (q, M)
    moved: FloatArray  # of the consensus, (H, q)
    prior: FloatArray  # covariance of a person's, given the consensus, (q, q)
    consensus: ConsensusDraws

    @classmethod
    def of(cls, posterior: Any, A: FloatArray, consensus: ConsensusDraws) -> Combinations:
        """Combinations of the utilities of a population."""
        law = posterior.law
        on_basis = A @ law.Phi if law.has_basis else A
        moved, prior = consensus.functions @ on_basis.T, on_basis @ law.Sigma @ on_basis.T
        if consensus.own.shape[1]:
            moved = moved + consensus.own @ A.T
        if len(law.rho):
            prior += (A * law.rho) @ A.T
        return cls(A, on_basis, moved, symmetrise(prior), consensus)

    def of_person(self, posterior: Any, law: Law, people: People, sites: Sites, user: int) -> GivenConsensus:
        """Those of one user of one layout, a draw of ``law``; -1: of somebody without answers. O(k (q M + k (q + H))).

        Where the prior mean moves by δ, the posterior mean moves by δ - S_o Q δ_o, o being the k own items, and the
        posterior covariance S - S_o Q S_oᵀ stays. population.md section 3.
        """
        traits = people.traits[user] if user >= 0 else np.zeros(people.traits.shape[1])
        mean, moved, covariance = self.A @ (law.mean + law.shift @ traits), self.moved, self.prior
        on_basis, now = self.on_basis, self.consensus.now
        nothing = user < 0 or people.answer_ptr[user] == people.answer_ptr[user + 1]
        if nothing and now is not None:
            moved = now @ self.on_basis.T + (self.consensus.own @ self.A.T if self.consensus.own.shape[1] else 0.0)
        if not nothing:
            items, x, Q = people.believed_sums(user, sites, law)
            k, Phi = len(items), law.functions
            cross = self.on_basis @ law.cov[items].T
            if len(law.rho):
                cross += self.A[:, items] * law.rho[items]
            gain = cross @ Q[:k, :k]
            mean = mean + cross @ x[:k]
            moved = moved - self.consensus.of_items(items, Phi) @ gain.T
            covariance = covariance - gain @ cross.T
            if posterior.effects is not None:
                on_basis = on_basis - (gain @ Phi[items] if Phi is not None else _placed(gain, items, on_basis.shape))
        if posterior.effects is not None:
            covariance = covariance + on_basis @ posterior.effects.spread(traits) @ on_basis.T
        return GivenConsensus(mean, moved, symmetrise(covariance))


def _placed(columns: FloatArray, items: IntArray, shape: tuple[int, ...]) -> FloatArray:
    out = np.zeros(shape)
    out[:, items] = columns
    return out
