"""Choose the scale and shape of the prior by evidence, with the population covariance held at its prior mean.

With Σ = s₀ K₀ people's utilities are integrated out and only a few numbers are left, so, unlike J, the evidence may
choose them: s₀, w and ℓ by its gradient ½ tr((N - H) dΣ/dθ), and s_t by the EM step that integrates the consensus out.
What the evidence cannot choose, how far Σ may leave its prior (ν₀), is left to held-out answers
(:mod:`predilect.inference.selection`), which start from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from predilect.covariance.dense import factorise
from predilect.inference.expectation import Expectation, expectation
from predilect.inference.maximisation import consensus_step, threshold_step
from predilect.inference.prior import FeatureSpace, Hyperparameters
from predilect.likelihoods.probit import threshold_for_tie_share
from predilect.posteriors.people import People, Sites

__all__ = ["rigid_hyperparameters"]

FloatArray = npt.NDArray[np.float64]

# Name: how far a coordinate may move from the start, and the standard deviation of a weak normal prior about it, which
# decides only where a handful of answers say nothing. Scales and lengths are logarithmic, the weight is a log-odds.
_COORDINATES = {"scale": (5.0, 2.0), "feature_weight": (4.0, 1.0), "length_scale": (2.0, 1.0)}
_ROUNDS = 2  # the prior of the consensus is held within a round
_MAX_EVALUATIONS = 30  # a round
_TOLERANCE = 1e-6  # of the evidence: 1e-4 stops nats short of the top
_MAX_PROFILE_STEPS = 3
_STILL = 3e-3
_CONSENSUS_SCALES = (1e-3, 1e3)


def rigid_hyperparameters(
    people: People,
    space: FeatureSpace,
    start: Hyperparameters,
    free: Sequence[str],
    *,
    delta: float | None = None,
    executor: ThreadPoolExecutor | None = None,
) -> Hyperparameters:
    """Maximise the evidence of the rigid population over some of s₀, s_t, w and ℓ.

    Parameters
    ----------
    people, space
        Answers, and where their items lie.
    start : Hyperparameters
        Where to start; what is not in ``free`` stays.
    free : sequence of str
        Among "scale", "consensus_scale", "feature_weight" and "length_scale".
    delta : float, optional
        Tie threshold, if it is held fixed; otherwise it is learned along.
    executor : ThreadPoolExecutor, optional
        Threads.

    Returns
    -------
    hyperparameters : Hyperparameters

    Notes
    -----
    population.md section 2, end: the gradient by the chain rule. About 20 evaluations of one to four E steps.
    """
    names = [name for name in _COORDINATES if name in free]
    learn_consensus = "consensus_scale" in free
    if not names and not learn_consensus:
        return start
    centre_of_prior = _coordinates(names, start)
    tied = people.weight[people.outcome == 0].sum() / people.n_answers
    search = _Rigid(people, space, start, executor)
    search.delta = delta if delta is not None else threshold_for_tie_share(tied) if tied > 0.0 else 0.0
    search.learn_delta = delta is None and tied > 0.0
    search.learn_consensus = learn_consensus

    for _ in range(_ROUNDS):
        search.start_round()
        if not names:
            search.evaluate(names, np.zeros(0))
            continue
        centre = _coordinates(names, search.setting)
        search.setting = _climb(search, names, centre, centre_of_prior)
    search.start_round()
    return replace(search.setting, consensus_scale=search.consensus_scale)


def _climb(search: _Rigid, names: list[str], centre: list[float], centre_of_prior: list[float]) -> Hyperparameters:
    """L-BFGS on the evidence plus the weak prior, the prior of the consensus held."""
    start = search.setting
    offset = np.array(centre) - np.array(centre_of_prior)
    sd = np.array([_COORDINATES[name][1] for name in names])
    half_width = np.array([_COORDINATES[name][0] for name in names])

    def negative(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = search.evaluate(names, x)
        away = x + offset
        return -value + 0.5 * float(np.sum((away / sd) ** 2)), -gradient + away / sd**2

    result = minimize(
        negative, np.zeros(len(names)), jac=True, method="L-BFGS-B",
        bounds=list(zip(-half_width - offset, half_width - offset, strict=True)),
        options={"maxfun": _MAX_EVALUATIONS, "ftol": _TOLERANCE},
    )  # fmt: skip
    return _hyperparameters(names, start, np.asarray(result.x))


class _Rigid:
    """The evidence at Σ = s₀ K₀, with the consensus, s_t and δ at their best for it."""

    def __init__(
        self, people: People, space: FeatureSpace, start: Hyperparameters, executor: ThreadPoolExecutor | None
    ) -> None:
        self.people = people
        self.space = space
        self.setting = start
        self.executor = executor
        self.sites = Sites.flat(people.n_rows)
        self.m = np.zeros(people.n_items)
        self.delta = 0.0
        self.consensus_scale = start.consensus_scale
        self.learn_delta = False
        self.learn_consensus = False
        self.precision = np.zeros((0, 0))  # of the consensus, held within a round
        self.current: Expectation | None = None

    def start_round(self) -> None:
        """Take the prior of the consensus from where the search stands: its kernel, and s_t by its EM step."""
        h = self.setting
        inverse_K = factorise(self.space.covariance(h.consensus_weight, h.length_scale)).inverse()
        if self.learn_consensus and self.current is not None:
            m, C_m = consensus_step(self.m, inverse_K / self.consensus_scale, self.current)
            second_moment = float(m @ inverse_K @ m + np.vdot(inverse_K, C_m))
            self.consensus_scale = float(np.clip(second_moment / len(m), *_CONSENSUS_SCALES))
        self.precision = inverse_K / self.consensus_scale

    def evaluate(self, names: list[str], x: FloatArray) -> tuple[float, FloatArray]:
        """Evidence less the penalty of the consensus, both at its best, and the gradient in ``x``."""
        setting = _hyperparameters(names, self.setting, x)
        K = self.space.covariance(setting.feature_weight, setting.length_scale)
        Sigma = setting.scale * K
        for step in range(_MAX_PROFILE_STEPS + 1):
            current = expectation(
                self.people, self.sites, Sigma, self.m, self.delta, n_sweeps=4, tolerance=1e-3, executor=self.executor
            )
            m, _ = consensus_step(self.m, self.precision, current)
            if step == _MAX_PROFILE_STEPS or np.abs(m - self.m).max() < _STILL * (1.0 + np.abs(m).max()):
                break
            self.m = m
            if self.learn_delta:
                self.delta = threshold_step(self.delta, current)
        self.current = current
        value = current.evidence - 0.5 * float(self.m @ self.precision @ self.m)
        # At the best consensus and threshold their own movement adds nothing to the gradient.
        gradient = np.array([0.5 * float(np.vdot(current.D, self._slope(name, setting, K))) for name in names])
        return value, gradient

    def _slope(self, name: str, setting: Hyperparameters, K: FloatArray) -> FloatArray:
        """dΣ/dx for one coordinate."""
        if name == "scale":
            return setting.scale * K
        w = setting.feature_weight
        kernel = K / w
        np.fill_diagonal(kernel, 1.0)
        if name == "feature_weight":  # K₀ = w K_θ + (1 - w) I, and w is logistic in x
            return setting.scale * w * (1.0 - w) * (kernel - np.eye(len(K)))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(kernel > 0.0, -2.0 * kernel * np.log(kernel), 0.0)  # dK_θ / d log ℓ = K_θ r² / ℓ²
        return np.asarray(setting.scale * w * slope)


def _coordinates(names: list[str], setting: Hyperparameters) -> list[float]:
    w = setting.feature_weight
    return [math.log(w / (1.0 - w)) if name == "feature_weight" else math.log(getattr(setting, name)) for name in names]


def _hyperparameters(names: list[str], start: Hyperparameters, x: FloatArray) -> Hyperparameters:
    changes: dict[str, float] = {}
    for name, centre, offset in zip(names, _coordinates(names, start), x.tolist(), strict=True):
        value = centre + offset
        changes[name] = 1.0 / (1.0 + math.exp(-value)) if name == "feature_weight" else math.exp(value)
    return replace(start, **changes)
