"""Evaluations of several trade-offs together: their joint law, and draws of it that people share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import eigenpairs, symmetrise
from predilect.covariance.kernels import Kernel
from predilect.posteriors.gaspk.curvature import ByAnswers, ByCoordinates, Curvature
from predilect.posteriors.gaspk.posterior import GaSPKPosterior
from predilect.posteriors.gaspk.products import ByProducts
from predilect.posteriors.gaspk.solver import solve

__all__ = ["Draws", "Noise", "draw", "from_noise", "joint", "weights_of"]

FloatArray = npt.NDArray[np.float64]

_DRAWS_AT_ONCE = 250
_ROUNDING = 1e-12


def weights_of(posterior: GaSPKPosterior, user: int | None) -> tuple[FloatArray, float]:
    """Weights of a person, or the people's average for None, and what they leave open.

    Returns
    -------
    gamma : array of float, shape (n_c,)
    open_ : float
        Variance far from the trade-off 0: T² - 1 of one person; people's weights err independently of each other, so
        that of their average it is (T² - 1) / n_users.
    """
    if user is None:
        return posterior.gamma.mean(axis=0), (posterior.spread - 1.0) / len(posterior.gamma)
    return posterior.gamma[user], posterior.spread - 1.0


def joint(
    posterior: GaSPKPosterior, kernel: Kernel, user: int | None, trade_offs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of f_u at trade-offs.

    Parameters
    ----------
    posterior : GaSPKPosterior
    kernel : Kernel
        Of a characteristic.
    user : int or None
        None: the average of the people.
    trade_offs : array of float, shape (m, d)

    Returns
    -------
    mean, covariance : arrays of float, shapes (m,) and (m, m)

    Notes
    -----
    T² (γᵀ cov(F) γ + |γ|² (k - Φ Φᵀ)) + (T² - 1) k / k(∞). The last term is what weights that are taken as known leave
    open: as much as in ``GaSPKPosterior.evaluations`` far from 0, and like a characteristic from one trade-off to the
    next, so that it vanishes at the trade-off 0 where the characteristics do. rank² n_c² operations, then m rank².
    """
    gamma, open_ = weights_of(posterior, user)
    rows, _ = posterior.basis.rows(trade_offs)
    K = kernel(trade_offs)
    covariance = posterior.curvature.covariance(rows, gamma) + float(gamma @ gamma) * (K - rows @ rows.T)
    covariance = posterior.spread * covariance + (open_ / posterior.prior_variance) * K
    return rows @ (posterior.w @ gamma), symmetrise(covariance)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of the characteristics at trade-offs, the same for everybody.

    Attributes
    ----------
    mean : array of float, shape (n_c, m)
    deviation : array of float, shape (n_c, n_draws, m)
        Of the characteristics from their mean.
    alike : array of float, shape (n_draws, m)
        Draws with covariance k / k(∞), for what a person's weights leave open.
    spread : float
        T².
    """

    mean: FloatArray
    deviation: FloatArray
    alike: FloatArray
    spread: float

    def of(self, gamma: FloatArray, open_: FloatArray) -> FloatArray:
        """Evaluations under weights (p, n_c) that leave ``open_`` (p,) of variance open, shape (p, n_draws, m).

        Their law, line by line, is that of :func:`joint`; p m n_draws n_c operations.
        """
        out = np.tensordot(np.sqrt(self.spread) * gamma, self.deviation, axes=1)
        out += (gamma @ self.mean)[:, None, :]
        if open_.any():
            out += np.sqrt(open_)[:, None, None] * self.alike
        return np.asarray(out)


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Independent standard normal numbers that draws are made of.

    Attributes
    ----------
    coordinates : array of float, shape (rank, n_c, n)
    answers : array of float, shape (n_rows, n) or (n_points, n_c, n); empty for :class:`ByCoordinates`
    """

    coordinates: FloatArray
    answers: FloatArray


def draw(posterior: GaSPKPosterior, kernel: Kernel, lines: FloatArray, n_draws: int, random_state: int) -> Draws:
    """Draw the characteristics at trade-offs.

    Parameters
    ----------
    posterior : GaSPKPosterior
    kernel : Kernel
        Of a characteristic.
    lines : array of float, shape (n_lines, n, d)
        Trade-offs; those of one line are drawn jointly, and what one wants of two lines together must not matter.
    n_draws : int
    random_state : int

    Returns
    -------
    draws : Draws
        At m = n_lines n trade-offs, line after line.

    Notes
    -----
    A solution with H for every draw, then m rank n_c operations each. What the basis does not hold is drawn line by
    line, from the same numbers for each, so that neighbouring lines get neighbouring draws: n³ operations a line.
    Memory m n_c n_draws, and 250 rank n_c.
    """
    rng = np.random.default_rng(random_state)
    n_lines, n, d = lines.shape
    rows, _ = posterior.basis.rows(lines.reshape(-1, d))
    n_c = posterior.gamma.shape[1]
    deviation = np.empty((n_c, n_draws, len(rows)))
    for start in range(0, n_draws, _DRAWS_AT_ONCE):
        some = slice(start, min(start + _DRAWS_AT_ONCE, n_draws))
        n_some = some.stop - some.start
        noise = Noise(
            rng.standard_normal((posterior.basis.rank, n_c, n_some)),
            rng.standard_normal((*_shape_of_answers(posterior.curvature), n_some)),
        )
        deviation[:, some] = np.einsum("mj,jcn->cnm", rows, from_noise(posterior.curvature, noise), optimize=True)
    own, shared = rng.standard_normal((n_c, n_draws, n)), rng.standard_normal((n_draws, n))
    alike = np.empty((n_draws, len(rows)))
    for line in range(n_lines):
        here = slice(line * n, (line + 1) * n)
        K = kernel(lines[line])
        size = float(np.diagonal(K).max(initial=0.0))
        deviation[:, :, here] += own @ _root(K - rows[here] @ rows[here].T, size)
        alike[:, here] = shared @ _root(K / posterior.prior_variance, 1.0)
    return Draws((rows @ posterior.w).T, deviation, alike, posterior.spread)


def from_noise(curvature: Curvature, noise: Noise) -> FloatArray:
    """Coordinates with covariance H⁻¹ from standard normal numbers, shape (rank, n_c, n).

    Notes
    -----
    H⁻¹ e for e with covariance H: e = L z where H = L Lᵀ is factorised, and otherwise e = z + Aᵀ T^½ z', since
    H = I + Aᵀ T A.
    """
    z = noise.coordinates
    if isinstance(curvature, ByCoordinates):
        flat = curvature.factor.lower @ z.reshape(-1, z.shape[2])
        return np.asarray(curvature.factor.solve(flat).reshape(z.shape))
    if isinstance(curvature, ByAnswers):
        # M = I + T^½ A Aᵀ T^½, and H⁻¹ x = x - Aᵀ T^½ M⁻¹ T^½ A x.
        Phi, scaled = curvature.Phi, curvature.root[:, None] * curvature.gamma
        e = z + np.einsum("ij,ic,in->jcn", Phi, scaled, noise.answers, optimize=True)
        inner = curvature.factor.solve(np.einsum("ij,ic,jcn->in", Phi, scaled, e, optimize=True))
        return np.asarray(e - np.einsum("ij,ic,in->jcn", Phi, scaled, inner, optimize=True))
    if isinstance(curvature, ByProducts):
        values, vectors = np.linalg.eigh(curvature.B)
        scaled = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        e = np.einsum("tcd,tdn->tcn", scaled, noise.answers)
        e = z + curvature.basis.backward(e.reshape(len(e), -1)).reshape(z.shape)
        return solve(curvature.basis, curvature.B, e, preconditioner=curvature.several, tolerance=curvature.tolerance).x
    raise TypeError(f"no draws from a {type(curvature).__name__}")


def _shape_of_answers(curvature: Curvature) -> tuple[int, ...]:
    if isinstance(curvature, ByAnswers):
        return (len(curvature.Phi),)
    if isinstance(curvature, ByProducts):
        return curvature.B.shape[:2]
    return (0,)


def _root(matrix: FloatArray, size: float) -> FloatArray:
    """The symmetric root of a covariance, without what a difference of covariances of ``size`` cannot tell from 0."""
    values, vectors = eigenpairs(symmetrise(matrix))
    root = np.sqrt(np.where(values > _ROUNDING * size, values, 0.0))
    return np.asarray((vectors * root) @ vectors.T)
