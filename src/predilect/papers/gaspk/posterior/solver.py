"""Preconditioned conjugate gradients for H = I + Φᵀ B Φ, the posterior precision of the coordinates.

``B`` (n_points, n_c, n_c), positive semidefinite, or its lower triangles (n_points, n_c (n_c + 1)/2): quicker for one
right-hand side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh_tridiagonal

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import Factor, factorise
from predilect.inference.gaussian.solve import Solution, conjugate_gradients
from predilect.papers.gaspk.posterior.basis import PointBasis
from predilect.papers.gaspk.posterior.curvature import Noise, precision_of
from predilect.papers.gaspk.posterior.sums import packed_product, unpacked

_LOOSE = 1e-6  # from here on up the recurrence of conjugate gradients is as good as the residual: rounding is far below
_NOTICEABLE = 1e-3  # of the prior precision 1: P is I for coordinates about which answers say less
_NUMBERS_AT_ONCE = 500_000  # more right-hand sides at once fall out of the cache


def precision_product(basis: PointBasis, B: FloatArray, x: FloatArray) -> FloatArray:
    """H x = x + Φᵀ B Φ x for x (rank · n_c, k), entry (j, c) of the coordinates in row j n_c + c.

    docs/math/gaspk.md section 2, eqs. 6 and 11 in whitened coordinates. One ``forward`` and one ``backward`` of n_c k
    columns, and n_points n_c² k operations.
    """
    k, n_c = x.shape[1], len(x) // max(basis.rank, 1)
    if B.ndim == 2 and k == 1:
        product = basis.backward(packed_product(B, basis.forward(x.reshape(basis.rank, n_c))))
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
    def of(cls, basis: PointBasis, B: FloatArray, together: IntArray | None = None) -> Preconditioner:
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


def telling_coordinates(basis: PointBasis, rest: float) -> IntArray:
    """The fewest coordinates that leave out at most a share ``rest`` of what points vary, ascending."""
    smallest_first = np.sort(basis.sizes)
    left = np.searchsorted(np.cumsum(smallest_first), rest * smallest_first.sum(), side="right")
    return largest_coordinates(basis, basis.rank - int(left))


def largest_coordinates(basis: PointBasis, n_coordinates: int) -> IntArray:
    """The coordinates along which the points vary most, ascending, shape (min(n_coordinates, rank),).

    On a grid those with the largest eigenvalues; Σ_t Φ_tj² otherwise. Ties go to the first.
    """
    size = basis.sizes
    # Equal ones differ by rounding, which must not decide their order.
    chosen = np.argsort(-np.round(size / max(float(size.max(initial=0.0)), 1e-300), 10), kind="stable")[:n_coordinates]
    return np.sort(chosen)


def assembled(basis: PointBasis, B: FloatArray, coordinates: IntArray) -> FloatArray:
    """H restricted to some coordinates, shape (len(coordinates) · n_c,) squared, row j n_c + c as in ``solve``."""
    return precision_of(basis.columns(coordinates), B)


def solve(
    basis: PointBasis,
    B: FloatArray,
    right: FloatArray,
    *,
    preconditioner: Preconditioner | None = None,
    tolerance: float = 1e-8,
    max_iter: int = 2000,
) -> Solution:
    """Solution of H x = b, shape (rank, n_c) or (rank, n_c, k), by conjugate gradients to |b - H x| / |b| <= tolerance.

    A preconditioner of an earlier, similar B is as right, only slower.

    docs/math/gaspk.md section 3, step 3.3. **Differs from the paper**: the system of rank · n_c coordinates and not
    that of answers, so that its size does not grow with them; and blocks of Φ, B as preconditioner. Some 2 to 10
    products to 1e-2, 5 to 50 to 1e-6. H is at least I: the error of x is at most |b - H x|.
    """
    if preconditioner is None:
        preconditioner = Preconditioner.of(basis, B)
    shape, size = right.shape, basis.rank * right.shape[1]
    columns = right.reshape(size, -1)
    step = max(1, _NUMBERS_AT_ONCE // max(size, 1))
    parts = [
        conjugate_gradients(
            lambda x: precision_product(basis, B, x),
            columns[:, begin : begin + step],
            precondition=preconditioner.solve,
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
    basis: PointBasis,
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

    docs/math/gaspk.md section 3, step 6. log |H| = log |P| + tr log M for M = R⁻¹ H R⁻ᵀ, P = R Rᵀ, by stochastic
    Lanczos quadrature with ±1 probes. **Differs from the paper**: since P holds blocks of H, tr(M - I) is 0 exactly,
    and z'(M - I)z is taken from each probe; what is left is of second order in what P leaves out. Steps end when one
    moves the value by less than a tenth of the standard error. One product with Φ and Φᵀ a step and probe.
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
    basis: PointBasis, B: FloatArray, P: Preconditioner, probes: FloatArray, n_probes: int, max_steps: int
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
        converged = step > 0 and moved <= max(_ENOUGH * noise, _ROUNDING * size)
        if converged or not going.any():
            break
        before, q = q, r / np.where(going, norm, 1.0)
    return values, int(taken.max())


_COLUMNS = 256
_NUMBERS_IN_A_PRODUCT = 4_000_000
_VARIANCE = 1e-5  # its square is the accuracy of a variance


@dataclass(frozen=True, eq=False)
class ByProducts:
    """H = I + Φᵀ B Φ, never formed, for blocks ``B`` (n_points, n_c, n_c): docs/math/gaspk.md section 3, steps
    3.3 and 7.

    A variance needs a solution of its own: some 5 products with Φ and Φᵀ. Where points are many and variances need not
    be exact, take ``LowRank``.
    """

    basis: PointBasis
    B: FloatArray
    tolerance: float = 1e-8  # of |x - H y| / |x| in solve

    is_factorised = False

    @property
    def noise_shape(self) -> tuple[int, ...]:
        return self.B.shape[:2]

    @cached_property
    def several(self) -> Preconditioner:
        """For many right-hand sides."""
        return Preconditioner.of(self.basis, self.B, largest_coordinates(self.basis, _TOGETHER // self.n_c))

    @property
    def n_c(self) -> int:
        """Characteristics."""
        return int(self.B.shape[1])

    def log_det(self) -> float:
        return self.log_determinant.value

    @cached_property
    def log_determinant(self) -> LogDeterminant:
        """Log |H| with its standard error, of the same probes for any B."""
        return log_determinant(self.basis, self.B)

    def covariance_matrix(self) -> FloatArray:
        """H⁻¹, for few coordinates."""
        return factorise(precision_of(self.basis.dense(), self.B)).inverse()

    def drawn(self, noise: Noise) -> FloatArray:
        values, vectors = np.linalg.eigh(self.B)
        scaled = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        e = np.einsum("tcd,tdn->tcn", scaled, noise.answers)
        z = noise.coordinates
        e = z + self.basis.backward(e.reshape(len(e), -1)).reshape(z.shape)
        return solve(self.basis, self.B, e, preconditioner=self.several, tolerance=self.tolerance).x

    def blocks(self, rows: FloatArray) -> FloatArray:
        """Covariances of the characteristics, exact to 1e-10 of their prior variances; n_c solutions a row."""
        out = np.empty((len(rows), self.n_c, self.n_c))
        step = max(1, self._at_once // self.n_c)
        unit = np.eye(self.n_c)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            # Column (q, d) is row q of the basis for characteristic d and 0 for the others.
            S = np.einsum("qj,cd->jcqd", part, unit).reshape(-1, len(part) * self.n_c)
            X, HX = self._solved(S)
            half = X.reshape(self.basis.rank, self.n_c, len(part), self.n_c)
            first = np.einsum("qj,jcqd->qcd", part, half, optimize=True)
            shape = (len(X), len(part), self.n_c)
            second = np.einsum("nqc,nqd->qcd", X.reshape(shape), HX.reshape(shape), optimize=True)
            out[start : start + step] = first + first.transpose(0, 2, 1) - 0.5 * (second + second.transpose(0, 2, 1))
        return out

    def variances(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Variances of mixtures: one solution each."""
        out = np.empty(len(rows))
        for start in range(0, len(rows), self._at_once):
            some = slice(start, start + self._at_once)
            S = np.einsum("qj,qc->jcq", rows[some], gamma[some]).reshape(self.basis.rank * self.n_c, -1)
            X, HX = self._solved(S)
            out[some] = np.einsum("nq,nq->q", 2.0 * S - HX, X)
        return np.maximum(out, 0.0)

    def covariance(self, rows: FloatArray, gamma: FloatArray) -> FloatArray:
        """Covariance of one person's evaluations: one solution a row."""
        whole = np.empty((len(rows), len(rows)))
        for start in range(0, len(rows), self._at_once):
            some = slice(start, start + self._at_once)
            S = np.einsum("qj,c->jcq", rows[some], gamma)
            X = solve(self.basis, self.B, S, preconditioner=self.several, tolerance=self.tolerance).x
            whole[:, some] = rows @ np.einsum("jcq,c->jq", X, gamma)
        return 0.5 * (whole + whole.T)

    def mixed(self, gamma: FloatArray) -> FloatArray:
        """Covariance of Σ_c γ_c w_c: rank solutions, for bases of few coordinates."""
        return self.covariance(np.eye(self.basis.rank), gamma)

    @property
    def _at_once(self) -> int:
        return max(1, min(_COLUMNS, _NUMBERS_IN_A_PRODUCT // max(self.basis.rank * self.n_c, 1)))

    def _solved(self, S: FloatArray) -> tuple[FloatArray, FloatArray]:
        """X near H⁻¹ S and H X: SᵀX + XᵀS - XᵀHX is off by EᵀHE, E = H⁻¹S - X, at most |S - HX|² since H ≥ I."""
        shape = (self.basis.rank, self.n_c, S.shape[1])
        X = solve(self.basis, self.B, S.reshape(shape), preconditioner=self.several, tolerance=_VARIANCE).x
        X = X.reshape(S.shape)
        return X, precision_product(self.basis, self.B, X)
