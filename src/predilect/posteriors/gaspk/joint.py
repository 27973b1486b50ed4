"""Evaluations of several trade-offs together: their joint law, and draws of it that people share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import eigenpairs, symmetrise
from predilect.covariance.kernels import Kernel
from predilect.posteriors.gaspk.curvature import ByAnswers, ByCoordinates, Curvature
from predilect.posteriors.gaspk.mixtures import Mixtures
from predilect.posteriors.gaspk.posterior import GaSPKPosterior
from predilect.posteriors.gaspk.products import ByProducts
from predilect.posteriors.gaspk.solver import solve

__all__ = ["Draws", "Noise", "draw", "from_noise", "joint"]

FloatArray = npt.NDArray[np.float64]

_DRAWS_AT_ONCE = 250
_ROUNDING = 1e-12


def joint(
    posterior: GaSPKPosterior, kernel: Kernel, mixture: Mixtures, trade_offs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of f_u at trade-offs.

    Parameters
    ----------
    posterior : GaSPKPosterior
    kernel : Kernel
        Of a characteristic.
    mixture : Mixtures
        Of one person, or the average of the people.
    trade_offs : array of float, shape (m, d)

    Returns
    -------
    mean, covariance : arrays of float, shapes (m,) and (m, m)

    Notes
    -----
    T² (γᵀ cov(F) γ + |γ|² (k - Φ Φᵀ)) + E[F] cov(γ) E[F]ᵀ + o k / k(∞): what is not known of the characteristics, of
    the weights, and o, what held-out answers ask for beyond, like a characteristic from one trade-off to the next. All
    of it vanishes at the trade-off 0 where the characteristics do. What is not known of both at once is left out.
    rank² n_c² operations, then m rank².
    """
    gamma = mixture.gamma[0]
    rows, _ = posterior.basis.rows(trade_offs)
    K = kernel(trade_offs)
    covariance = posterior.curvature.covariance(rows, gamma) + float(gamma @ gamma) * (K - rows @ rows.T)
    covariance = posterior.spread * covariance + (mixture.left_open[0] / posterior.prior_variance) * K
    F = rows @ posterior.w
    by_weights = F @ mixture.root[0]
    return F @ gamma, symmetrise(covariance + by_weights @ by_weights.T)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of the characteristics at trade-offs, the same for everybody.

    Attributes
    ----------
    mean : array of float, shape (n_c, m)
    deviation : array of float, shape (n_c, n_draws, m)
        Of the characteristics from their mean.
    alike : array of float, shape (n_draws, m)
        Draws with covariance k / k(∞), for what is left open.
    normal : array of float, shape (n_draws, n_c)
        Standard normal, for what is not known of weights.
    spread : float
        T².
    """

    mean: FloatArray
    deviation: FloatArray
    alike: FloatArray
    normal: FloatArray
    spread: float

    def of(self, people: Mixtures) -> FloatArray:
        """Evaluations of people, shape (p, n_draws, m).

        Their law, line by line, is that of :func:`joint`; 2 p m n_draws n_c operations.
        """
        weights = people.gamma[:, None, :] + np.matmul(self.normal, people.root.transpose(0, 2, 1))
        out = np.matmul(weights, self.mean)
        out += np.tensordot(np.sqrt(self.spread) * people.gamma, self.deviation, axes=1)
        if people.left_open.any():
            out += np.sqrt(people.left_open)[:, None, None] * self.alike
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
    normal = rng.standard_normal((n_draws, n_c))
    own, shared = rng.standard_normal((n_c, n_draws, n)), rng.standard_normal((n_draws, n))
    alike = np.empty((n_draws, len(rows)))
    for line in range(n_lines):
        here = slice(line * n, (line + 1) * n)
        K = kernel(lines[line])
        size = float(np.diagonal(K).max(initial=0.0))
        deviation[:, :, here] += own @ _root(K - rows[here] @ rows[here].T, size)
        alike[:, here] = shared @ _root(K / posterior.prior_variance, 1.0)
    return Draws((rows @ posterior.w).T, deviation, alike, normal, posterior.spread)


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
