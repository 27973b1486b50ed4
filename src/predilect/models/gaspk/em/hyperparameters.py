"""Length-scales and amplitude of characteristics: median heuristic, and evidence given people's weights."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from predilect.gaussian.kernels import Kernel, Linear, Product, Selected
from predilect.latent.evidence import EvidenceSearch, maximise_evidence
from predilect.likelihoods.views import Probit
from predilect.models.gaspk.em.answers import TradeOffAnswers

FloatArray = npt.NDArray[np.float64]

LENGTH_RULES = ("median", "median-sqrt-half", "per-dimension")
_MOST_POINTS = 1000
_MOST_ROWS = 600
_MOST_EVALUATIONS = 25


def length_scales_by_rule(points: FloatArray, rule: str, antisymmetric: bool, random_state: int) -> FloatArray:
    """The median heuristic, shape (d,), over distinct trade-offs (n_points, d).

    Mirror images are included if antisymmetric. "median": median distance; "median-sqrt-half": √(median squared
    distance / 2), after Houlsby et al.; "per-dimension": √d times the median difference in each dimension, of those
    that differ. At most 1 000 points, drawn at random. gaspk.md 4: the paper leaves open whether there is one
    length-scale or one a dimension.
    """
    d = points.shape[1]
    everything = np.vstack([points, -points]) if antisymmetric else points
    if len(everything) > _MOST_POINTS:
        rows = np.random.default_rng(random_state).choice(len(everything), _MOST_POINTS, replace=False)
        everything = everything[np.sort(rows)]
    if rule == "per-dimension":
        found = np.ones(d)
        for k in range(d):
            apart = pdist(everything[:, k : k + 1])
            apart = apart[apart > 0.0]
            found[k] = math.sqrt(d) * float(np.median(apart)) if len(apart) else 1.0
        return found
    apart = pdist(everything)
    apart = apart[apart > 0.0]
    length = float(np.median(apart)) if len(apart) else 1.0
    return np.full(d, length / math.sqrt(2.0) if rule == "median-sqrt-half" else length)


def by_evidence(
    kernel: Kernel,
    points: FloatArray,
    answers: TradeOffAnswers,
    gamma: FloatArray,
    delta: float,
    *,
    fixed: tuple[str, ...],
    random_state: int,
) -> EvidenceSearch:
    """Hyper-parameters of largest Laplace evidence given the weights ``gamma`` (n_users, n_c), but for those ``fixed``.

    Of 600 rows, those of people drawn at random. gaspk.md 1.1: given the weights the answers are classified by one
    process with the kernel (γ · γ') k(t, t'). The evidence takes the weights as known, and so likes large amplitudes
    that fit them too well.
    """
    n_users, n_c = gamma.shape
    order = np.random.default_rng(random_state).permutation(n_users)
    rows = np.argsort(np.argsort(order)[answers.user], kind="stable")[:_MOST_ROWS]
    x = np.hstack([gamma[answers.user[rows]], points[answers.point[rows]]])
    together = Product(
        (
            Selected(Linear(np.array([float(n_c)])), tuple(range(n_c))),
            Selected(kernel, tuple(range(n_c, x.shape[1]))),
        ),
        ("people", "trade-offs"),
    )
    values = dict(zip(together.names, np.exp(together.theta).tolist(), strict=True))
    still = {name: (values[name], values[name]) for name in ("people.variance", *(f"trade-offs.{n}" for n in fixed))}
    found = maximise_evidence(
        together, x, np.arange(len(rows)), None, answers.outcome[rows], answers.weight[rows], Probit(delta),
        method="laplace", bounds=still, tolerance=1e-6, max_evaluations=_MOST_EVALUATIONS,
    )  # fmt: skip
    learned = kernel.with_theta(found.kernel.theta[1:])
    return EvidenceSearch(learned, found.fit, found.gradient[1:], found.at_bound, found.report)
