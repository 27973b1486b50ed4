"""Mean and variance of mixtures of characteristics, question by question."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect._compile import kernel

__all__ = ["mixed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


def mixed(
    user: IntArray, point: IntArray, gamma: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """γ_uᵀ m_t and γ_uᵀ V_t γ_u of each question (user, point), shapes (n,); 0 where the code of a person is negative.

    ``mean`` (n_points, n_c) and symmetric ``covariance`` (n_points, n_c, n_c) are of the characteristics. n n_c²/2
    operations, fewer where weights are 0, and no memory but the results.
    """
    out = np.zeros((2, len(user)))
    _mixed(
        np.asarray(user, dtype=np.int64), np.asarray(point, dtype=np.int64), np.ascontiguousarray(gamma),
        np.ascontiguousarray(mean), np.ascontiguousarray(covariance), out,
    )  # fmt: skip
    return out[0], out[1]


@kernel
def _mixed(
    user: npt.NDArray[np.int64], point: npt.NDArray[np.int64], gamma: FloatArray, mean: FloatArray, V: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    for i in range(user.shape[0]):
        u, t = user[i], point[i]
        if u < 0:
            continue
        m = v = 0.0
        for c in range(gamma.shape[1]):
            own = gamma[u, c]
            if own == 0.0:
                continue
            m += own * mean[t, c]
            half = 0.5 * V[t, c, c] * own
            for d in range(c):
                half += V[t, c, d] * gamma[u, d]
            v += 2.0 * own * half
        out[0, i], out[1, i] = m, v
