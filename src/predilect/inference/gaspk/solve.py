"""Newton direction, curvature and determinant at a state, direct or iterative by cost."""

from __future__ import annotations
import numpy as np
import numpy.typing as npt
from predilect.inference.gaspk.mode import State
from predilect.posteriors.gaspk.basis import Basis
from predilect.posteriors.gaspk.curvature import Curvature, factorised
from predilect.posteriors.gaspk.log_determinant import log_determinant
from predilect.posteriors.gaspk.products import ByProducts
from predilect.posteriors.gaspk.solver import Preconditioner, solve

__all__ = ["FACTORISED", "Newton", "curvature_at", "log_det_at"]
FloatArray = npt.NDArray[np.float64]
_FACTORISED_STEP = 200  # rows: below, a Cholesky is quicker than a few products
FACTORISED = 3000  # rows up to which a curvature that is kept is factorised
_STALE = 0.1  # relative change of the curvature after which its preconditioner is made again
_FACTORISED_ANSWERS = 2500  # answers up to which the determinant is exact, where there are more coordinates


def curvature_at(state: State) -> Curvature:
    """The curvature, factorised up to 3 000 rows, and by conjugate gradients beyond."""
    answers = state.answers
    if min(_rows(state), answers.n_rows) <= FACTORISED:
        return factorised(state.basis.dense(), state.B, answers.user, answers.point, state.precision, state.gamma)
    return ByProducts(state.basis, state.B)


class Newton:
    """:func:`direction` for successive states of one basis, with the preconditioner reused while B hardly changes.

    Only the number of iterations depends on it: an old one costs a product or two more, a new one as much as five.
    """

    def __init__(self) -> None:
        self._basis: Basis | None = None
        self._made_of: FloatArray | None = None
        self._preconditioner: Preconditioner | None = None

    def __call__(self, state: State, gradient: FloatArray, accuracy: float) -> FloatArray:
        """H⁻¹ gradient, shape (rank, n_c), to a relative accuracy of the residual."""
        if _rows(state) <= _FACTORISED_STEP:
            return curvature_at(state).solve(gradient)
        # No entry of a block exceeds the root of the product of its two diagonal ones, so the diagonal suffices.
        n_c = state.gamma.shape[1]
        size, before = state.packed[:, np.arange(n_c) * (np.arange(n_c) + 3) // 2], self._made_of
        if (
            self._preconditioner is None
            or before is None
            or self._basis is not state.basis
            or np.linalg.norm(size - before) > _STALE * np.linalg.norm(before)
        ):
            self._basis, self._made_of = state.basis, size
            self._preconditioner = Preconditioner.of(state.basis, state.packed)
        return solve(state.basis, state.packed, gradient, preconditioner=self._preconditioner, tolerance=accuracy).x


def log_det_at(state: State, random_state: int) -> float:
    """Log |H|: exact while that is cheap, then estimated with fixed probes."""
    if state.answers.n_rows <= min(_FACTORISED_ANSWERS, _rows(state)):
        return curvature_at(state).log_det()
    return log_determinant(state.basis, state.B, random_state=random_state).value


def _rows(state: State) -> int:
    return int(state.basis.rank * state.gamma.shape[1])
