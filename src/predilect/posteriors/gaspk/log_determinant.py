"""Log-determinant of I + Φᵀ B Φ: by Cholesky where that is cheap, else by stochastic Lanczos quadrature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh_tridiagonal

from predilect.covariance.dense import factorise
from predilect.posteriors.gaspk.basis import Basis
from predilect.posteriors.gaspk.solver import Preconditioner, assembled, largest_coordinates, precision_product

__all__ = ["LogDeterminant", "log_determinant"]

FloatArray = npt.NDArray[np.float64]

_DENSE_SIZE = 6_000
_DENSE_OPERATIONS = 2e10  # about a second
_TOGETHER = 1_000  # rows of the preconditioner's dense block
_NUMBERS_AT_ONCE = 500_000
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
