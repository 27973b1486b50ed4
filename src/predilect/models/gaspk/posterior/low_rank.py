"""Low-rank variances of characteristics on a grid, from its n_e largest eigenvectors: gaspk.md 2, eqs. 8 and 9."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from predilect._text import quoted
from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import Factor, factorise
from predilect.models.gaspk.posterior.curvature import MANY, pair_table, quadratic_forms, quadratic_forms_by_pairs
from predilect.models.gaspk.posterior.grid import GridBasis
from predilect.models.gaspk.posterior.solver import assembled, largest_coordinates

Form = Literal["consistent", "paper"]

_NUMBERS_AT_ONCE = 16_000_000
_QUESTIONS_AT_ONCE = 50_000
_FLOOR = 1e-10
_ROUNDING = 1e-9  # of the prior variance: beyond it that is no clamp but an error of the formula


def clamped(values: FloatArray, prior: FloatArray) -> tuple[FloatArray, int]:
    """Variances (q,) of mixtures clamped to [1e-10, prior variance], and how many that changed."""
    low = np.minimum(_FLOOR, prior)
    outside = (values < low - _ROUNDING * prior) | (values > prior * (1.0 + _ROUNDING))
    return np.clip(values, low, prior), int(outside.sum())


@dataclass(frozen=True, eq=False)
class LowRank:
    """The posterior under K̃ = Q S Qᵀ + Λ for K_T, Λ diagonal such that K̃ has the diagonal of K_T.

    Where functions are antisymmetric, so is what Λ adds: a trade-off and its mirror have it with opposite signs.
    ``form`` "consistent" has K̃ in all three places of eq. 9, so that variances are never negative; "paper" keeps the
    exact K outside, which is what was printed, and may give negative ones: K̃ - K is indefinite. Signs are those of eq.
    9 and P has its Π, which one rendering of algorithm 3 lacks. **Differs from the paper**: blocks of n_c x n_c for
    each trade-off, where eq. 9 has the diagonal, the variances of single characteristics, which are not enough for a
    mixture's.
    """

    basis: GridBasis
    B: FloatArray  # (n_points, n_c, n_c), W at the observed points
    form: Form
    chosen: IntArray  # (n_e,), coordinates of the eigenvectors in Q
    slack: FloatArray  # (n_points,), Λ at the observed points
    Pi: FloatArray  # (n_points, n_c, n_c), B (I + Λ B)⁻¹
    factor: Factor  # of S^½ P S^½ = I + Φ_eᵀ Π Φ_e, n_e n_c square

    @classmethod
    def of(cls, basis: GridBasis, B: FloatArray, n_e: int, *, form: Form = "consistent") -> LowRank:
        """Factorise for n_e >= 1 eigenvectors; more than ``basis.rank`` are all.

        n_points n_e² n_c²/2 + (n_e n_c)³/3 operations. Raises ValueError for an unknown choice, or if a trade-off and
        its mirror are both points of an antisymmetric basis.
        """
        if form not in ("consistent", "paper"):
            raise ValueError(f'form must be "consistent" or "paper", not {quoted(form)}')
        if n_e < 1:
            raise ValueError(f"at least one eigenvector is needed, not {n_e}")
        if basis.antisymmetric and basis.mirrored:
            raise ValueError("a trade-off and its mirror are both points; fold them, and turn the answers about one")
        n_c = B.shape[1]
        chosen = largest_coordinates(basis, n_e)
        slack = basis.rows(basis.trade_offs(basis.places), chosen)[1]
        # B (I + Λ B)⁻¹ is symmetric; I + Λ B has eigenvalues of at least 1.
        Pi = np.linalg.solve(np.eye(n_c) + slack[:, None, None] * B, B)
        Pi = 0.5 * (Pi + Pi.transpose(0, 2, 1))
        return cls(basis, B, form, chosen, slack, Pi, factorise(assembled(basis, Pi, chosen)))

    @property
    def n_c(self) -> int:
        """Characteristics."""
        return int(self.B.shape[1])

    def blocks(self, x: FloatArray) -> FloatArray:
        """Posterior covariances of the characteristics at trade-offs (q, d), shape (q, n_c, n_c), not clamped.

        "consistent": on the grid or off it; q n_e² n_c²/2 operations, half of that from 8 characteristics on. "paper":
        on the grid only (ValueError); 2 n_e n_c² products with the basis besides for every 16 000 000 / (n_e n_c²)
        points, and q n_e² n_c³.
        """
        return self._consistent(x) if self.form == "consistent" else self._paper(x)

    def variances(self, x: FloatArray, gamma: FloatArray, codes: IntArray | None = None) -> tuple[FloatArray, int]:
        """Variances of f_u(t) = Σ_c γ_c f^c(t) by :func:`clamped`, with the prior variance |γ|² k(t, t).

        ``gamma`` (q, n_c) are the weights of each question, ``codes`` (q,) its row in ``x``; by default q rows in
        order. ``blocks`` once for each trade-off, then n_c² operations a question.
        """
        place = np.arange(len(x)) if codes is None else codes
        V, own = self.blocks(x), self.basis.prior_variance(x)
        values = np.empty(len(gamma))
        for start in range(0, len(gamma), _QUESTIONS_AT_ONCE):
            some = slice(start, start + _QUESTIONS_AT_ONCE)
            half = np.matmul(gamma[some, None, :], V[place[some]])[:, 0]
            values[some] = np.einsum("qc,qc->q", half, gamma[some])
        return clamped(values, own[place] * np.einsum("qc,qc->q", gamma, gamma))

    @cached_property
    def _inverse(self) -> FloatArray:
        """Posterior covariance of the chosen coordinates, shape (n_e, n_c, n_e, n_c); or its table of pairs."""
        n = len(self.chosen)
        M = self.factor.inverse().reshape(n, self.n_c, n, self.n_c)
        return pair_table(M) if self.n_c >= MANY else M

    def _consistent(self, x: FloatArray) -> FloatArray:
        rows, slack = self.basis.rows(x, self.chosen)
        if self.n_c >= MANY:
            V = quadratic_forms_by_pairs(rows, self._inverse, self.n_c)
        else:
            V = quadratic_forms(rows, self._inverse)
        # f = Q-part + e, e ~ N(0, Λ) independent of all others. Given the Q-part g, answers there say of e what they
        # say of f - g: f has the precision Λ⁻¹ + B around J g, J = (I + Λ B)⁻¹.
        observed = self.basis.observed(x)
        seen = observed >= 0
        eye = np.eye(self.n_c)
        V[~seen] += slack[~seen, None, None] * eye
        J = np.linalg.inv(eye + slack[seen, None, None] * self.B[observed[seen]])
        inner = J @ V[seen] @ J.transpose(0, 2, 1) + slack[seen, None, None] * J
        V[seen] = 0.5 * (inner + inner.transpose(0, 2, 1))
        return V

    def _paper(self, x: FloatArray) -> FloatArray:
        codes = self.basis.codes(x)
        if (codes < 0).any():
            raise ValueError('eq. 9 is for trade-offs on the grid; take form="consistent" elsewhere')
        n_e, n_c, m = len(self.chosen), self.n_c, self.basis.n_points
        Phi = self.basis.columns(self.chosen)
        prior = self.basis.prior_variance(x)
        out = np.empty((len(codes), n_c, n_c))
        step = max(1, _NUMBERS_AT_ONCE // max(n_e * n_c * n_c, m))
        for start in range(0, len(codes), step):
            part = codes[start : start + step]
            there = replace(self.basis, places=part, Phi=None)
            K = self.basis.covariance(part, self.basis.places)
            first = (np.square(K) @ self.Pi.reshape(m, -1)).reshape(-1, n_c, n_c)
            Y = np.empty((n_e, n_c, len(part), n_c))
            for e in range(n_e):
                columns = (Phi[:, e, None, None] * self.Pi).reshape(m, -1)
                Y[e] = there.forward(self.basis.backward(columns)).reshape(-1, n_c, n_c).transpose(1, 0, 2)
            half = self.factor.solve_lower(Y.reshape(n_e * n_c, -1)).reshape(-1, len(part), n_c)
            last = np.matmul(half.transpose(1, 2, 0), half.transpose(1, 0, 2))
            out[start : start + step] = prior[start : start + step, None, None] * np.eye(n_c) - first + last
        return 0.5 * (out + out.transpose(0, 2, 1))
