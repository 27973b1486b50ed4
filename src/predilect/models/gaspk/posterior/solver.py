"""Preconditioned conjugate gradients for H = I + Φᵀ B Φ, the posterior precision of the coordinates.

``B`` (n_points, n_c, n_c), positive semidefinite, or its lower triangles (n_points, n_c (n_c + 1)/2): quicker for one
right-hand side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal

from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import Factor, factorise
from predilect.gaussian.solve import Solution, conjugate_gradients
from predilect.models.gaspk.posterior.blocks import MANY, packed_product, unpacked, weighted_grams
from predilect.models.gaspk.posterior.scores import Basis

_LOOSE = 1e-6  # from here on up the recurrence of conjugate gradients is as good as the residual: rounding is far below
_NOTICEABLE = 1e-3  # of the prior precision 1: P is I for coordinates about which answers say less
_NUMBERS_AT_ONCE = 500_000  # more right-hand sides at once fall out of the cache


def precision_product(basis: Basis, B: FloatArray, x: FloatArray) -> FloatArray:
    """H x = x + Φᵀ B Φ x for x (rank · n_c, k), entry (j, c) of the coordinates in row j n_c + c.

    gaspk.md 2, eqs. 6 and 11 in whitened coordinates. One ``forward`` and one ``backward`` of n_c k columns, and
    n_points n_c² k operations.
    """
    k, n_c = x.shape[1], len(x) // max(basis.rank, 1)
    if B.ndim == 2 and k == 1:
        w = x.reshape(basis.rank, n_c)
        gram = getattr(basis, "weighted_gram", None)
        product = basis.backward(packed_product(B, basis.forward(w))) if gram is None else gram(B, w)
        return np.asarray(x + product.reshape(x.shape))
    B = unpacked(B) if B.ndim == 2 else B
    n = len(B)
    F = basis.forward(x.reshape(basis.rank, n_c * k))
    # A product of small matrices and vectors is no work for BLAS.
    BF = np.einsum("tcd,td->tc", B, F) if k == 1 else (B @ F.reshape(n, n_c, k)).reshape(n, n_c * k)
    return np.asarray(x + basis.backward(BF).reshape(x.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Preconditioner:
    """P near H: an n_c x n_c block for each coordinate, one dense block of the most important ones; I elsewhere."""

    rank: int
    n_c: int
    alone: IntArray  # (n_alone,), coordinates with a block L Lᵀ of their own
    inverse_lower: FloatArray  # (n_alone, n_c, n_c), L⁻¹
    inverse: FloatArray  # (n_alone, n_c, n_c), L⁻ᵀ L⁻¹
    together: IntArray  # (n_together,), coordinates of the dense block, ascending
    factor: Factor | None  # of that block, n_together n_c square; None if there is none

    @classmethod
    def of(cls, basis: Basis, B: FloatArray, together: IntArray | None = None) -> Preconditioner:
        """The blocks of H itself; ``together``: coordinates of the dense block, by default none: best for one solution.

        P_j = I + Σ_t Φ_tj² B_t: H restricted to coordinate j. One ``gram_diagonal`` of n_c (n_c + 1)/2 columns and rank
        n_c³; the dense block takes n_points n_together² n_c²/2 + (n_together n_c)³/3 more. Rows of Φ at points that are
        spread over the grid are nearly orthogonal, which is why blocks this small suffice.
        """
        packed = B if B.ndim == 2 else B[:, *np.tril_indices(B.shape[1])]
        n_c = int((2.0 * packed.shape[1]) ** 0.5)
        low, high = np.tril_indices(n_c)
        gram = basis.gram_diagonal(np.ascontiguousarray(packed))
        dense = np.zeros(basis.rank, dtype=bool)
        factor = None
        if together is not None and len(together):
            dense[together] = True
            factor = factorise(assembled(basis, unpacked(packed), np.flatnonzero(dense)))
        # P_j is positive semidefinite: no entry of P_j - I is larger than its largest diagonal one.
        noticeable = gram[:, low == high].max(axis=1, initial=0.0) > _NOTICEABLE
        alone = np.flatnonzero(noticeable & ~dense)
        P = np.empty((len(alone), n_c, n_c))
        P[:, low, high] = gram[alone]
        P[:, high, low] = gram[alone]
        P += np.eye(n_c)
        # At least I, so that a plain Cholesky cannot fail; thousands of small ones in one call.
        inverse_lower = np.linalg.inv(np.linalg.cholesky(P))
        inverse = inverse_lower.transpose(0, 2, 1) @ inverse_lower
        return cls(basis.rank, n_c, alone, inverse_lower, inverse, np.flatnonzero(dense), factor)

    def solve(self, x: FloatArray) -> FloatArray:
        """P⁻¹ x, shape (rank · n_c, k)."""
        return self._apply(x, self.inverse, None if self.factor is None else self.factor.solve)

    def half(self, x: FloatArray) -> FloatArray:
        """R⁻¹ x with P = R Rᵀ."""
        return self._apply(x, self.inverse_lower, None if self.factor is None else self.factor.solve_lower)

    def half_transposed(self, x: FloatArray) -> FloatArray:
        """R⁻ᵀ x."""
        factor = self.factor
        upper = None if factor is None else lambda y: factor.solve(factor.lower @ y)
        return self._apply(x, self.inverse_lower.transpose(0, 2, 1), upper)

    def log_det(self) -> float:
        """Log |P|."""
        blocks = -2.0 * float(np.log(np.diagonal(self.inverse_lower, axis1=1, axis2=2)).sum())
        return blocks + (self.factor.log_det() if self.factor is not None else 0.0)

    def _apply(self, x: FloatArray, blocks: FloatArray, dense: Callable[[FloatArray], FloatArray] | None) -> FloatArray:
        k = x.shape[1]
        rows = x.reshape(self.rank, self.n_c, k)
        out = rows.copy()
        every = len(self.alone) == self.rank
        mine = rows if every else rows[self.alone]
        done = np.einsum("jcd,jd->jc", blocks, mine[:, :, 0])[:, :, None] if k == 1 else blocks @ mine
        if every:
            return np.asarray(done).reshape(x.shape)
        out[self.alone] = done
        if dense is not None:
            out[self.together] = dense(rows[self.together].reshape(-1, k)).reshape(-1, self.n_c, k)
        return out.reshape(x.shape)


def largest_coordinates(basis: Basis, n_coordinates: int) -> IntArray:
    """The coordinates along which the points vary most, ascending, shape (min(n_coordinates, rank),).

    On a grid those with the largest eigenvalues; Σ_t Φ_tj² otherwise. Ties go to the first.
    """
    eigenvalues = getattr(basis, "eigenvalues", None)
    size = basis.gram_diagonal(np.ones((basis.n_points, 1)))[:, 0] if eigenvalues is None else eigenvalues
    # Equal ones differ by rounding, which must not decide their order.
    chosen = np.argsort(-np.round(size / max(float(size.max(initial=0.0)), 1e-300), 10), kind="stable")[:n_coordinates]
    return np.sort(chosen)


def assembled(basis: Basis, B: FloatArray, coordinates: IntArray) -> FloatArray:
    """H restricted to some coordinates, shape (len(coordinates) · n_c,) squared, row j n_c + c as in ``solve``.

    n_points len(coordinates)² n_c²/2 operations for n_c (n_c + 1)/2 matrix products; half of them where n_c is large.
    """
    n, n_c = len(coordinates), B.shape[1]
    Phi = _columns(basis, coordinates)
    H = np.empty((n, n_c, n, n_c))
    low, high = np.tril_indices(n_c)
    grams = weighted_grams(Phi, B[:, low, high]) if n_c >= MANY else None
    part, (e, f) = np.empty((n, n)), np.tril_indices(n)
    for k, (c, d) in enumerate(zip(low, high, strict=True)):
        if grams is None:
            part = Phi.T @ (B[:, c, d, None] * Phi)
        else:
            part[e, f] = part[f, e] = grams[k]
        H[:, c, :, d] = part
        H[:, d, :, c] = part
    whole = H.reshape(n * n_c, n * n_c)
    whole[np.diag_indices(n * n_c)] += 1.0
    return whole


def solve(
    basis: Basis,
    B: FloatArray,
    right: FloatArray,
    *,
    preconditioner: Preconditioner | None = None,
    start: FloatArray | None = None,
    tolerance: float = 1e-8,
    max_iter: int = 2000,
) -> Solution:
    """Solution of H x = b, shape (rank, n_c) or (rank, n_c, k), by conjugate gradients to |b - H x| / |b| <= tolerance.

    A preconditioner of an earlier, similar B is as right, only slower.

    gaspk.md 3, step 3.3. **Differs from the paper**: the system of rank · n_c coordinates and not that of answers, so
    that its size does not grow with them; and blocks of Φ, B as preconditioner. Some 2 to 10 products to 1e-2, 5 to 50
    to 1e-6. H is at least I: the error of x is at most |b - H x|.
    """
    if preconditioner is None:
        preconditioner = Preconditioner.of(basis, B)
    shape, size = right.shape, basis.rank * right.shape[1]
    columns = right.reshape(size, -1)
    first = None if start is None else start.reshape(columns.shape)
    step = max(1, _NUMBERS_AT_ONCE // max(size, 1))
    parts = [
        conjugate_gradients(
            lambda x: precision_product(basis, B, x),
            columns[:, begin : begin + step],
            precondition=preconditioner.solve,
            start=None if first is None else first[:, begin : begin + step],
            tolerance=tolerance,
            max_iter=max_iter,
            check=tolerance < _LOOSE,
        )
        for begin in range(0, columns.shape[1], step)
    ]
    if not parts:
        return Solution(np.zeros(shape), 0, 0.0, tolerance, True)
    return Solution(
        np.hstack([part.x for part in parts]).reshape(shape),
        max(part.iterations for part in parts),
        max(part.residual for part in parts),
        tolerance,
        all(part.converged for part in parts),
    )


def _columns(basis: Basis, coordinates: IntArray) -> FloatArray:
    """Columns of Φ, shape (n_points, len(coordinates))."""
    columns = getattr(basis, "columns", None)
    if columns is not None:
        return np.asarray(columns(coordinates))
    units = np.zeros((basis.rank, len(coordinates)))
    units[coordinates, np.arange(len(coordinates))] = 1.0
    return basis.forward(units)


_DENSE_SIZE = 6_000
_DENSE_OPERATIONS = 2e10  # about a second
_TOGETHER = 1_000  # rows of the preconditioner's dense block
_ENOUGH = 0.1  # of the standard error: what the steps of Lanczos may leave out
_ROUNDING = 1e-12
_EXHAUSTED = 1e-10  # a Lanczos vector of this length, of 1, is rounding: the Krylov space is whole


@dataclass(frozen=True, slots=True)
class LogDeterminant:
    """Log-determinant in nats; standard error of the probes and number of Lanczos steps are 0 where it is exact."""

    value: float
    standard_error: float
    steps: int


def log_determinant(
    basis: Basis,
    B: FloatArray,
    *,
    preconditioner: Preconditioner | None = None,
    n_probes: int = 30,
    max_steps: int = 200,
    exact: bool | None = None,
    random_state: int = 0,
) -> LogDeterminant:
    """Log |I + Φᵀ B Φ| for positive semidefinite blocks ``B`` (n_points, n_c, n_c).

    ``preconditioner`` None has a dense block of 1 000 rows; ``n_probes`` >= 2. ``exact`` None: where the matrix has at
    most 6 000 rows and takes at most 2e10 operations. The same probes for any B: differences between similar ones are
    better known than either.

    gaspk.md 3, step 6; modern.md A.5. log |H| = log |P| + tr log M for M = R⁻¹ H R⁻ᵀ, P = R Rᵀ, by stochastic Lanczos
    quadrature with ±1 probes. **Differs from the paper**: since P holds blocks of H, tr(M - I) is 0 exactly, and z'(M -
    I)z is taken from each probe; what is left is of second order in what P leaves out. Steps end when one moves the
    value by less than a tenth of the standard error. One product with Φ and Φᵀ a step and probe.
    """
    size = basis.rank * B.shape[1]
    if exact is None:
        operations = size**3 / 3.0 + float(basis.n_points) * size**2
        exact = size <= _DENSE_SIZE and operations <= _DENSE_OPERATIONS
    if exact:
        H = assembled(basis, B, np.arange(basis.rank))
        return LogDeterminant(factorise(H).log_det(), 0.0, 0)
    if n_probes < 2:
        raise ValueError(f"a standard error needs at least 2 probes, not {n_probes}")
    if preconditioner is None:
        preconditioner = Preconditioner.of(basis, B, largest_coordinates(basis, _TOGETHER // B.shape[1]))
    # Signs that do not depend on the size of a chunk.
    signs = np.random.default_rng(random_state).integers(0, 2, (n_probes, size))
    probes = 2.0 * signs.T.astype(np.float64) - 1.0
    at_once = max(1, _NUMBERS_AT_ONCE // max(size, 1))
    values, steps = np.empty(n_probes), 0
    for start in range(0, n_probes, at_once):
        part = probes[:, start : start + at_once]
        values[start : start + at_once], taken = _quadrature(basis, B, preconditioner, part, n_probes, max_steps)
        steps = max(steps, taken)
    error = float(values.std(ddof=1)) / math.sqrt(n_probes)
    return LogDeterminant(preconditioner.log_det() + float(values.mean()), error, steps)


def _quadrature(
    basis: Basis, B: FloatArray, P: Preconditioner, probes: FloatArray, n_probes: int, max_steps: int
) -> tuple[FloatArray, int]:
    """z'(log M - M + I)z of each probe, shape (k,), and the steps taken."""
    size, k = probes.shape
    length = np.sqrt(float(size))
    q, before = probes / length, np.zeros_like(probes)
    alpha, beta = np.zeros((k, max_steps)), np.zeros((k, max_steps))
    going = np.ones(k, dtype=bool)
    taken = np.zeros(k, dtype=np.intp)
    values = np.zeros(k)
    for step in range(max_steps):
        r = P.half(precision_product(basis, B, P.half_transposed(q)))
        alpha[:, step] = np.einsum("nk,nk->k", q, r)
        r -= alpha[:, step] * q
        if step:
            r -= beta[:, step - 1] * before
        taken[going] = step + 1
        norm = np.linalg.norm(r, axis=0)
        beta[:, step] = norm
        last = values.copy()
        for probe in np.flatnonzero(going):
            n = taken[probe]
            theta, vectors = eigh_tridiagonal(alpha[probe, :n], beta[probe, : n - 1])
            values[probe] = size * float(np.square(vectors[0]) @ (np.log(theta) - (theta - 1.0)))
        going &= norm > _EXHAUSTED
        moved = float(np.abs(values - last).max())
        noise = (float(values.std()) if k > 1 else abs(float(values[0]))) / math.sqrt(n_probes)
        settled = step > 0 and moved <= max(_ENOUGH * noise, _ROUNDING * size)
        if settled or not going.any():
            break
        before, q = q, r / np.where(going, norm, 1.0)
    return values, int(taken.max())
