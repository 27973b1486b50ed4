"""Newton's direction and the determinant at a state, by whatever is cheaper."""
from __future__ import annotations
import numpy as np
import numpy.typing as npt
from predilect.inference.gaspk.mode import State
from predilect.posteriors.gaspk.curvature import ByAnswers, ByCoordinates, factorised
FloatArray = npt.NDArray[np.float64]
def curvature_at(state: State):
    answers = state.answers
    return factorised(state.basis.dense(), state.B, answers.user, answers.point, state.precision, state.gamma)
def direction(state: State, gradient: FloatArray, accuracy: float) -> FloatArray:
    return curvature_at(state).solve(gradient)
def log_det_at(state: State, random_state: int) -> float:
    return curvature_at(state).log_det()
