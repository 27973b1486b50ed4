"""Gradient of the bound in the item kernel's hyper-parameters: modern.md 6, crowdgppl.md 2.5."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect.factors.answers import FactorAnswers
from predilect.factors.items import ItemDesign
from predilect.factors.state import FactorState
from predilect.factors.sweep import refreshed
from predilect.gaussian.projection import item_covariance_gradient
from predilect.latent.sparse.gradient import projection_gradient
from predilect.latent.sparse.margins import gathered, graph_laplacian

FloatArray = npt.NDArray[np.float64]


def theta_gradient(state: FactorState, answers: FactorAnswers, design: ItemDesign) -> FloatArray:
    """∂ bound / ∂ theta of the kernel at a fixed point, shape (n_parameters,).

    The bound at held q in f_m coordinates, where its derivative needs no derivative of q (envelope theorem):

    - KL: ½ Σ_c tr[(s_c K⁻¹(m mᵀ + S)K⁻¹ - K⁻¹) dK_mm];
    - through A = K_nm K⁻¹: with Ē = ∂ data/∂A from the means and covariances at the items, dA = (dK_nm - A dK_mm) K⁻¹;
    - through the residual between the points: dR = dK_nn - dA K_mn - A dK_mn over pairs, weighed -λ E w²/(2 s).

    crowdgppl.md eq. 39 has only the first term, exact only where the points are the items. n_items M C + M³ C
    operations, n_pairs M, and the kernel's gradient.
    """
    projection = design.projection
    slope_mean, slope_var = _row_slopes(state, answers)
    functions = [(f, s, c) for c, (f, s) in enumerate(zip(state.components, state.s, strict=True))]
    if state.consensus is not None:
        functions.append((state.consensus, state.s_0, -1))
    M, n = design.n_points, len(design.G)
    inverse = projection.factor.inverse()
    G_mm = np.zeros((M, M))
    into_A = np.zeros((n, M))
    into_R = np.zeros(len(design.left))
    for f, s, c in functions:
        m, S = projection.at_points(f.mean, f.lower)
        G_mm += 0.5 * (s * inverse @ (np.outer(m, m) + S) @ inverse - inverse)
        if projection.A is None:
            continue
        if c < 0:
            first, second = slope_mean, slope_var
        else:
            weight = state.mu[answers.user, c]
            # ∂V/∂δ_c = 2 (Σ_u δ)_c beside the mean's part
            cross = np.einsum("pk,pk->p", state.Sigma[answers.user, c], state.delta[answers.pair])
            first = slope_mean * weight + 2.0 * slope_var * cross
            second = slope_var * (weight**2 + state.Sigma[answers.user, c, c])
        H: FloatArray = np.asarray(np.bincount(answers.pair, first, len(design.left)), dtype=np.float64)
        W: FloatArray = np.asarray(np.bincount(answers.pair, second, len(design.left)), dtype=np.float64)
        into_A += np.outer(gathered(n, design.left, design.right, H), m)
        into_A += 2.0 * np.asarray(graph_laplacian(n, design.left, design.right, W) @ (projection.A @ S))
        into_R += W / s
    if projection.A is None:
        return item_covariance_gradient(projection.kernel, projection.points, projection.known_points, G_mm)
    # R = K_nn - A K_mn, with K_mn = K_mm Aᵀ: dR = dK_nn - dK_nm Aᵀ - A dK_mn + A dK_mm Aᵀ, over pairs d R dᵀ.
    A = projection.A
    LA = np.asarray(graph_laplacian(n, design.left, design.right, into_R) @ A)
    G_nm = into_A @ inverse - 2.0 * LA
    G_mm += -A.T @ into_A @ inverse + A.T @ LA
    return projection_gradient(projection, G_mm, G_nm.__getitem__, design.left, design.right, into_R)


def _row_slopes(state: FactorState, answers: FactorAnswers) -> tuple[FloatArray, FloatArray]:
    """∂ data/∂ mean and ∂ data/∂ variance of the margin of each row, weights included."""
    sites, slope, _ = refreshed(state, answers, None, 1.0)
    return answers.weight * slope, -0.5 * answers.weight * sites.precision
