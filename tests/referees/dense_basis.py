"""The population on a basis, written out over items: S = ΦΣΦᵀ + diag(ρ), mean Φm + c + ΦBx_u for person u.

Everything that the package computes on the functions of a basis is here computed on the items, by the referee of
:mod:`referees.dense_population`, and only then projected.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from referees.dense_population import Person, person_ep


@dataclass
class Truth:
    """Parameters of a population on a basis; empty arrays where it has no such part."""

    Phi: np.ndarray
    Sigma: np.ndarray
    m: np.ndarray
    share: np.ndarray  # of the items' own variance
    own_scale: float
    offset: np.ndarray
    B: np.ndarray  # functions x traits
    traits: np.ndarray  # people x traits
    delta: float
    C_m: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    offset_variance: np.ndarray = field(default_factory=lambda: np.zeros(0))
    C_B: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def rho(self) -> np.ndarray:
        return self.own_scale * self.share

    @property
    def S(self) -> np.ndarray:
        own = np.diag(self.rho) if len(self.share) else 0.0
        return self.Phi @ self.Sigma @ self.Phi.T + own

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Prior mean of the utilities of somebody with traits x."""
        offset = self.offset if len(self.share) else 0.0
        return self.Phi @ (self.m + self.B @ x) + offset

    def C(self, x: np.ndarray) -> np.ndarray:
        """Covariance of that mean."""
        own = np.diag(self.offset_variance) if len(self.share) else 0.0
        effects = x @ x * self.C_B if len(x) else 0.0
        return self.Phi @ (self.C_m + effects) @ self.Phi.T + own

    def people(self, rows) -> list[Person]:
        """Converged EP of every person of ``rows``, in item space."""
        found = []
        for u in range(rows.n_users):
            own = rows.user == u
            found.append(
                person_ep(
                    self.S, self.mean(self.traits[u]), rows.left[own], rows.right[own], rows.outcome[own],
                    weight=rows.weight[own], delta=self.delta,
                )
            )  # fmt: skip
        return found

    def utilities(self, person: Person, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of f_u, the consensus and the effects integrated out, from the sites of ``person``.

        With S singular, as without own parts, there is no S⁻¹: f = A mean + b with A = (I + S XᵀΛX)⁻¹.
        """
        S, mean = self.S, self.mean(x)
        information = person.X.T @ ((person.w * person.lam)[:, None] * person.X)
        A = np.linalg.inv(np.eye(len(mean)) + S @ information)
        f = A @ (mean + S @ person.X.T @ (person.w * person.eta))
        return f, A @ S + A @ self.C(x) @ A.T


def nobody(n_items: int) -> Person:
    """Somebody without answers."""
    none = np.zeros(0)
    zero = np.zeros((n_items, n_items))
    return Person(np.zeros((0, n_items)), none, none, 0.0, 0.0, np.zeros(n_items), zero, zero, 0.0, zero, none)
