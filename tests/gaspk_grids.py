"""Small grids with answers, and their covariances written out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from predilect.inference.gaussian.kernels import Stationary
from predilect.papers.gaspk.posterior.grid import GridBasis
from predilect.papers.gaspk.posterior.sums import packed_blocks, unpacked

SYMMETRIC = [[-1.0, 0.0, 1.0], [-2.0, -1.0, 1.0, 2.0], [-1.5, -0.5, 0.0, 0.5, 1.5], [-1.0, 1.0]]
PLAIN = [[0.0, 0.3, 1.0], [1.0, 2.0, 5.0], [2.0], [-1.0, 4.0]]


def trade_offs(levels):
    """Every point of a grid in row-major order, shape (n_T, d)."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*levels, indexing="ij")], axis=1)


def covariance(kernels, x, y, amplitude=1.0, antisymmetric=False):
    """Written out: a Π_d k_d, or half of its difference between y and -y."""

    def product(z):
        return math.prod(kernel(x[:, [d]], z[:, [d]]) for d, kernel in enumerate(kernels))

    return amplitude * ((product(y) - product(-y)) / 2.0 if antisymmetric else product(y))


def kernels_of(levels, shape="matern-3/2", scale=1.3):
    return [Stationary(np.array([scale + 0.1 * d]), shape) for d in range(len(levels))]


@dataclass(frozen=True)
class Problem:
    basis: GridBasis
    B: np.ndarray
    K: np.ndarray  # over the whole grid

    @property
    def n_c(self):
        return self.B.shape[1]

    def precision(self):
        """H, rank n_c square; row j n_c + c."""
        Phi = self.basis.dense()
        H = np.einsum("tj,tcd,tk->jckd", Phi, self.B, Phi).reshape(Phi.shape[1] * self.n_c, -1)
        return H + np.eye(len(H))

    def posterior(self, codes):
        """Covariances (q, n_c, n_c) at points of the grid by gaspk.md eq. 7, K - K (W⁻¹ + K)⁻¹ K, in function space."""
        places, n_c = self.basis.places, self.n_c
        m = len(places)
        W = np.zeros((m, n_c, m, n_c))
        W[np.arange(m), :, np.arange(m), :] = self.B
        W = W.reshape(m * n_c, -1)
        K = np.kron(self.K[np.ix_(places, places)], np.eye(n_c))
        inner = W @ np.linalg.inv(np.eye(len(W)) + K @ W)
        out = []
        for code in codes:
            k = np.kron(self.K[code, places][:, None], np.eye(n_c))
            out.append(self.K[code, code] * np.eye(n_c) - k.T @ inner @ k)
        return np.array(out)


def problem(antisymmetric=True, n_c=3, n_answers=150, n_users=12, seed=0, amplitude=2.0, share=0.6, **options):
    rng = np.random.default_rng(seed)
    levels = SYMMETRIC if antisymmetric else PLAIN
    kernels = kernels_of(levels)
    x = trade_offs(levels)
    n_grid = len(x)
    if antisymmetric:  # folded: of a trade-off and its mirror one, no matter which
        kept = rng.permutation(n_grid // 2)[: int(share * n_grid / 2)]
        kept = np.where(rng.random(len(kept)) < 0.5, n_grid - 1 - kept, kept)
    else:
        kept = rng.permutation(n_grid)[: int(share * n_grid)]
    basis = GridBasis.of(levels, kernels, kept, amplitude=amplitude, antisymmetric=antisymmetric, **options)
    gamma = rng.dirichlet(np.ones(n_c), n_users)
    user, point = rng.integers(0, n_users, n_answers), rng.integers(0, len(kept), n_answers)
    B = unpacked(packed_blocks(user, point, rng.random(n_answers) * 3.0, gamma, len(kept)))
    return Problem(basis, B, covariance(kernels, x, x, amplitude, antisymmetric))
