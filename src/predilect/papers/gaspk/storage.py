"""What is stored of a fitted ``GaSPK``, and the posterior made of it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_choice
from predilect._base.stored import (
    DESCRIBED,
    LARGEST,
    PLAIN,
    amounts,
    codes,
    number_within,
    numbers,
    outcomes,
    positive,
    within,
)
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import factorise
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.mode import state_at
from predilect.papers.gaspk.posterior.basis import DenseBasis, PointBasis
from predilect.papers.gaspk.posterior.curvature import ByCoordinates
from predilect.papers.gaspk.posterior.posterior import GaSPKPosterior
from predilect.papers.gaspk.prior import basis_of
from predilect.papers.gaspk.settings import BACKENDS
from predilect.papers.gaspk.tradeoffs.choices import TradeOffChoices
from predilect.papers.gaspk.tradeoffs.grids import LevelGrid
from predilect.papers.gaspk.tradeoffs.map import TradeOffMap
from predilect.papers.gaspk.training import posterior_of

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a fitted model: the mode, the weights, and the answers that the curvature is made of.

    T trade-offs of D numbers, C characteristics, R rows of answers, and rank M.
    """

    trade_offs: Annotated[TradeOffMap, DESCRIBED]
    grid: Annotated[LevelGrid | None, DESCRIBED]
    backend: Annotated[str, PLAIN]
    points: Annotated[FloatArray, numbers("T D")]
    places: Annotated[IntArray | None, amounts("T", "int64")]
    w: Annotated[FloatArray, numbers("M C")]
    gamma: Annotated[FloatArray, amounts("U C")]
    user: Annotated[IntArray, codes("R", "U", "int64")]
    point: Annotated[IntArray, codes("R", "T", "int64")]
    outcome: Annotated[npt.NDArray[np.int8], outcomes("R")]
    weight: Annotated[FloatArray, positive("R")]
    # Stored and not computed again: where eigenvalues are nearly equal, another machine might turn the coordinates.
    root: Annotated[FloatArray | None, numbers("T M")] = None
    back: Annotated[FloatArray | None, numbers("M M")] = None
    pivots: Annotated[FloatArray | None, numbers("M D")] = None
    left_out: Annotated[float | None, within(0.0, 1.0)] = None
    # What was learned online does not follow from the answers.
    covariance: Annotated[FloatArray | None, numbers("K K")] = None
    left_open: Annotated[FloatArray | None, numbers("U C C")] = None

    @classmethod
    def of(cls, posterior: GaSPKPosterior, choices: TradeOffChoices, answers: TradeOffAnswers, backend: str) -> Stored:
        """What is stored of a posterior."""
        basis, curvature, more = posterior.basis, posterior.curvature, {}
        if isinstance(basis, DenseBasis):
            more = {name: getattr(basis, name) for name in ("root", "back", "pivots", "left_out")}
        if isinstance(curvature, ByCoordinates) and not curvature.follows:
            more |= {"covariance": curvature.covariance_matrix(), "left_open": posterior.left_open}
        return cls(
            choices.trade_offs, choices.grid, backend, choices.points, choices.places, posterior.w, posterior.gamma,
            answers.user, answers.point, answers.outcome, answers.weight, **more,
        )  # fmt: skip

    def checked(self) -> None:
        """ValueError unless points, places, weights and answers fit each other."""
        grid, places, points = self.grid, self.places, self.points
        if self.trade_offs.n_dimensions != points.shape[1] or (grid is None) != (places is None):
            raise ValueError(f"trade-offs of {self.trade_offs.n_dimensions} numbers, but points of {points.shape[1]}")
        if grid is not None and places is not None:
            on_grid = places[-1] < grid.n_points and len(grid.levels) == points.shape[1]
            if not on_grid or (np.diff(places) <= 0).any():
                raise ValueError("places that are not on the grid")
        if (np.abs(self.gamma.sum(axis=1) - 1.0) > 1e-6).any():
            raise ValueError("weights of a person do not sum to 1")
        if (np.diff((self.user * len(points) + self.point) * 3 + self.outcome) <= 0).any():
            raise ValueError("the answers do not ascend")

    def basis(self, kernel: Kernel, choices: TradeOffChoices, n_components: int) -> PointBasis:
        """The basis of the characteristics; ValueError if it is none of this kernel's."""
        if self.root is None or self.back is None or self.pivots is None or self.left_out is None:
            check_choice("backend", self.backend, BACKENDS)
            return basis_of(kernel, choices, self.backend, n_components, len(self.user))
        basis = DenseBasis(kernel, self.pivots, self.root, self.back, self.left_out)
        most = kernel.diagonal(self.points) * (1.0 + _ROUNDING)
        if not all((np.einsum("ij,ij->i", Phi, Phi) <= most).all() for Phi in (self.root, basis.rows(self.points)[0])):
            raise ValueError("a basis of more than the prior variance")
        return basis


def restore_gaspk(model: Any, stored: Stored) -> tuple[GaSPKPosterior, TradeOffChoices, TradeOffAnswers]:
    """Posterior, trade-offs and answers; ``model`` has hyper-parameters and tie threshold.

    Raises ValueError if the parts do not fit each other.
    """
    h, w, gamma, points = model.hyperparameters_, stored.w, stored.gamma, stored.points
    choices = TradeOffChoices(stored.trade_offs, stored.grid, points, stored.places)
    answers = TradeOffAnswers(
        stored.user, stored.point, stored.outcome, stored.weight, n_users=len(gamma), n_points=len(points)
    )
    kernel: Kernel = h.kernel
    basis = stored.basis(kernel, choices, h.n_components)
    if w.shape != (basis.rank, h.n_components) or gamma.shape[1] != h.n_components:
        raise ValueError(f"{basis.rank} coordinates of {h.n_components} characteristics, but w is {w.shape}")
    number_within("spread", h.spread, 1.0, LARGEST)
    state = state_at(basis, answers, gamma, Probit(model.tie_threshold_), w)
    number_within("open_share", h.open_share, 0.0, 1.0)
    number_within("newcomer_factor", h.newcomer_factor, 1.0, LARGEST)
    number_within("usual", h.usual, 0.0, LARGEST)
    alpha = number_within("concentration", h.concentration, 0.0, LARGEST)
    if alpha > 0.0 and not (gamma > 0.0).all():
        raise ValueError("weights of 0 under a prior that has none")
    posterior = posterior_of(model._settings, h, choices.trade_offs, model._space, state, w)
    covariance = stored.covariance
    if covariance is not None:
        if len(covariance) != w.size or not np.isfinite(factorise(covariance).lower).all():
            raise ValueError(f"a covariance of {len(covariance)} coordinates, of which there are {w.size}")
        left_open = posterior.left_open if stored.left_open is None else stored.left_open
        if (left_open is None) != (posterior.left_open is None):
            raise ValueError("covariances of weights that have no prior, or none of weights that have one")
        online = ByCoordinates(covariance.reshape(*w.shape, *w.shape), follows=False)
        posterior = replace(posterior, curvature=online, low_rank=None, left_open=left_open)
    return posterior, choices, answers
