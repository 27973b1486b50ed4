"""Prior of the characteristics over the trade-offs of answers: kernel, length-scales, basis, hyper-parameters."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import pdist

from predilect._base.types import FloatArray
from predilect.errors import DataError
from predilect.inference.gaussian.kernels import Antisymmetric, Kernel, Linear, Product, Scaled, Selected, Stationary
from predilect.inference.gaussian.kernels.stationary import drawn_rows, median_length_scales
from predilect.inference.latent.evidence import EvidenceSearch, maximise_evidence
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.mode import FACTORISED
from predilect.papers.gaspk.posterior.basis import MOST_RANK, DenseBasis, PointBasis, kernel_parts
from predilect.papers.gaspk.posterior.grid import GridBasis
from predilect.papers.gaspk.settings import LENGTH_RULES, FitSettings
from predilect.papers.gaspk.tradeoffs.choices import TradeOffChoices

_FEW_POINTS = 1500  # below, dense algebra over the points of a grid costs less than the grid
_MOST_POINTS = 1000  # of the median heuristic
_SEED = 0  # of its draw: random_state changes no predictions
_MOST_ROWS = 600  # of the evidence
_MOST_EVALUATIONS = 25


class KernelPrior:
    """Kernels and bases over the trade-offs of a fit; keeps the last basis, which another amplitude only scales."""

    def __init__(self, settings: FitSettings, choices: TradeOffChoices, n_c: int, n_rows: int) -> None:
        self.settings, self.choices, self.n_c, self.n_rows = settings, choices, n_c, n_rows
        self.backend = choose_backend(settings.backend, choices)
        self._lengths = _length_scales(settings, choices)
        self._last: tuple[Kernel, PointBasis] | None = None

    def kernel(self, amplitude: float) -> Kernel:
        """The kernel of an amplitude."""
        kernel = Scaled(Stationary(self._lengths, self.settings.kernel, "product"), amplitude)
        return Antisymmetric(kernel) if self.settings.antisymmetric else kernel

    def basis(self, kernel: Kernel) -> PointBasis:
        """The basis of a kernel."""
        if self._last is not None:
            before, basis = self._last
            if np.array_equal(before.theta, kernel.theta):
                return basis
            if np.array_equal(before.theta[1:], kernel.theta[1:]):
                basis = basis.times(math.exp(kernel.theta[0] - before.theta[0]), kernel)
                self._last = kernel, basis
                return basis
        basis = basis_of(kernel, self.choices, self.backend, self.n_c, self.n_rows)
        self._last = kernel, basis
        return basis


def choose_backend(asked: str, choices: TradeOffChoices) -> str:
    """Choice of backend: "grid" for more than 1 500 trade-offs on a grid, else "function".

    docs/math/gaspk.md section 1.1: both give the same. A product takes n_points rank operations in function space, and
    n_T Σ n_d on the grid, for each characteristic.
    """
    if asked != "auto":
        return asked
    return "grid" if choices.grid is not None and len(choices.points) > _FEW_POINTS else "function"


def basis_of(kernel: Kernel, choices: TradeOffChoices, backend: str, n_c: int, n_rows: int) -> PointBasis:
    """The basis of a kernel over the trade-offs of answers, for so many characteristics and rows of answers."""
    if backend == "function" or choices.grid is None or choices.places is None:
        return DenseBasis.of(kernel, choices.points, MOST_RANK if n_rows <= FACTORISED else FACTORISED // n_c)
    amplitude, inner, antisymmetric = kernel_parts(kernel)
    scales = np.broadcast_to(inner.length_scales, len(choices.grid.levels))
    return GridBasis.of(
        choices.grid.levels, [Stationary(np.array([scale]), inner.shape) for scale in scales], choices.places,
        amplitude=amplitude, antisymmetric=antisymmetric,
    )  # fmt: skip


def _length_scales(settings: FitSettings, choices: TradeOffChoices) -> FloatArray:
    """Length-scales as given or by a rule, (d,); DataError for another number of them."""
    scales, d = settings.length_scale, choices.points.shape[1]
    if isinstance(scales, str):
        rule = scales if scales in LENGTH_RULES else "per-dimension"
        return length_scales_by_rule(choices.points, rule, settings.antisymmetric, _SEED)
    lengths = np.atleast_1d(np.asarray(scales, dtype=np.float64))
    if len(lengths) not in (1, d):
        raise DataError(
            f"length_scale holds {len(lengths)} numbers, but trade-offs have {d} dimensions: "
            f"{', '.join(choices.trade_offs.names)}. Give one number for all, or one for each."
        )
    return np.broadcast_to(lengths, d).copy()


def length_scales_by_rule(points: FloatArray, rule: str, antisymmetric: bool, random_state: int) -> FloatArray:
    """The median heuristic, shape (d,), over distinct trade-offs (n_points, d).

    Mirror images are included if antisymmetric. "median": median distance; "per-dimension": √d times the median
    difference in each dimension, of those that differ. At most 1 000 points, drawn at random. docs/math/gaspk.md
    section 4: the paper leaves open whether there is one length-scale or one a dimension.
    """
    everything = np.vstack([points, -points]) if antisymmetric else points
    if rule == "per-dimension":
        return median_length_scales(everything, "root", random_state)
    apart = pdist(drawn_rows(everything, _MOST_POINTS, random_state))
    apart = apart[apart > 0.0]
    return np.full(points.shape[1], float(np.median(apart)) if len(apart) else 1.0)


def fixed_by(settings: FitSettings, kernel: Kernel) -> tuple[str, ...] | None:
    """Names of hyper-parameters that the evidence keeps fixed; None if it learns nothing."""
    amplitude = settings.amplitude == "evidence"
    lengths = isinstance(settings.length_scale, str) and settings.length_scale == "evidence"
    if not amplitude and not lengths:
        return None
    return tuple(n for n in kernel.names if (n == "variance" and not amplitude) or (n != "variance" and not lengths))


def by_evidence(
    kernel: Kernel, points: FloatArray, answers: TradeOffAnswers, gamma: FloatArray, delta: float, *,
    fixed: tuple[str, ...], random_state: int,
) -> EvidenceSearch[Kernel]:  # fmt: skip
    """Hyper-parameters of largest Laplace evidence given the weights ``gamma`` (n_users, n_c), but for those ``fixed``.

    Of 600 rows, those of people drawn at random. docs/math/gaspk.md section 1.1: given the weights the answers are
    classified by one process with the kernel (γ · γ') k(t, t') (Rasmussen & Williams, Algorithm 5.1). The evidence
    takes the weights as known, and so likes large amplitudes that fit them too well.
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
