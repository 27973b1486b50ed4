"""Choice of a prior by held-out answers: a search over amplitudes and concentrations, then numbers of characteristics.

docs/math/gaspk.md section 2.1. The evidence takes weights as known, and prefers amplitudes that fit them too well: on
choices among cars it rises to an amplitude of 155, where held-out answers have a log loss of .30, against .25 at 20.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Watcher
from predilect._base.types import BoolArray, FloatArray
from predilect.data import Comparisons
from predilect.data.content import dealt, keys_of_answers, summed
from predilect.data.features import FeatureSpace
from predilect.data.splits import masks_of_folds, masks_of_newcomers
from predilect.inference.gaussian.kernels import Kernel
from predilect.papers.gaspk.calibration import HeldOutMargins, MarginCalibration, calibrated, with_newcomers
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.dirichlet import concentration_of, squared_length
from predilect.papers.gaspk.em.fit import EM, run, weights_to_start
from predilect.papers.gaspk.em.mode import curvature_at, low_rank_at
from predilect.papers.gaspk.posterior.basis import PointBasis
from predilect.papers.gaspk.posterior.curvature import in_parts
from predilect.papers.gaspk.posterior.solver import telling_coordinates
from predilect.papers.gaspk.posterior.sums import mixed
from predilect.papers.gaspk.prior import KernelPrior
from predilect.papers.gaspk.settings import FitSettings
from predilect.papers.gaspk.tradeoffs.choices import CodedAnswers

_SIZES = (1.0, 3.0, 10.0, 30.0, 100.0)  # prior variances of a person's evaluation, twice that if antisymmetric
_FIRST = (2, 2)  # where the search begins: 10 and 3
_UNSEARCHED = 3.0  # amplitude before the evidence is asked, and where nothing can be held out
_FOLDS = 0  # seed of the folds: random_state changes no predictions
_MOST_PEOPLE_TRIED = 1000
_TRIAL_ROUNDS = 10
_ROUNDS_OF_NUMBERS = 40
_NUMBERS_AT_ONCE = 20_000_000
_UNTOLD = 1e-3

Folds = Sequence[tuple[TradeOffAnswers, TradeOffAnswers]]


@dataclass(frozen=True, slots=True)
class KernelCandidate:
    """A kernel of the characteristics, their number, and α of the prior of people's weights."""

    kernel: Kernel
    n_c: int
    concentration: float = 0.0


@dataclass(frozen=True, slots=True)
class CandidateTrial:
    """Held-out log loss of a candidate (nats an answer), at its calibration."""

    candidate: KernelCandidate
    log_loss: float
    calibration: MarginCalibration
    held_out: HeldOutMargins | None = None  # None if nothing could be held out


@dataclass(frozen=True, slots=True, eq=False)
class CandidateTable:
    """The candidates: rows are prior variances, columns how alike people are.

    Those of other numbers of characteristics than the largest have the same prior variance of a person's evaluation, of
    which as much differs between people.
    """

    prior: KernelPrior
    searched: bool  # whether sizes are variances of a person's evaluation, and not amplitudes
    sizes: tuple[float, ...]
    concentrations: tuple[float, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, settings: FitSettings, prior: KernelPrior) -> CandidateTable:
        """The candidates of some settings."""
        amplitude, most = settings.amplitude, max(settings.numbers)
        searched = amplitude == "auto"
        sizes = _SIZES if searched else (_UNSEARCHED if isinstance(amplitude, str) else float(amplitude),)
        return cls(prior, searched, sizes, (0.0,) if most == 1 else settings.concentrations, settings.numbers)

    @property
    def shape(self) -> tuple[int, int]:
        """Sizes and concentrations."""
        return len(self.sizes), len(self.concentrations)

    @property
    def starts(self) -> list[tuple[int, int]]:
        """Where searches begin: from people who are alike as a rule one does not come to kinds of people."""
        row, column = min(_FIRST[0], len(self.sizes) - 1), min(_FIRST[1], len(self.concentrations) - 1)
        return [(row, one) for one in dict.fromkeys((column, 0))]

    def candidate(self, size: int, alpha: int, n_c: int) -> KernelCandidate:
        """One of them."""
        most, a = max(self.numbers), self.concentrations[alpha]
        if 1 < n_c < most:
            a = concentration_of(n_c, a, most)
        amplitude = self.sizes[size] / (squared_length(n_c, a) if self.searched else 1.0)
        return KernelCandidate(self.prior.kernel(amplitude), n_c, a)


def choose(
    settings: FitSettings, prior: KernelPrior, coded: CodedAnswers, answers: Comparisons, space: FeatureSpace,
    executor: ThreadPoolExecutor | None, watch: Watcher | None,
) -> tuple[CandidateTrial, list[CandidateTrial]]:  # fmt: skip
    """The candidate of lowest held-out log loss, and all trials: sizes and concentrations, then numbers."""
    table = CandidateTable.of(settings, prior)
    most = max(table.numbers)
    unjudged = CandidateTrial(table.candidate(*table.starts[0], most), math.nan, MarginCalibration())
    if settings.spread is not None and len(table.numbers) == math.prod(table.shape) == 1:
        return unjudged, []
    keys = keys_of_answers(answers, space)  # or the names of people and items would say who is held out
    order = np.random.default_rng(_FOLDS).permutation(answers.n_users)
    drawn = dealt(order, summed(keys, answers.user, answers.n_users)) < _MOST_PEOPLE_TRIED
    tried = drawn[answers.user]

    def folds_of(masks: list[BoolArray]) -> Folds:
        return [(coded.answers(answers, tried & ~out), coded.answers(answers, out)) for out in masks]

    masks = masks_of_folds(answers, _FOLDS, among=tried, keys=keys)
    if not masks:
        return unjudged, []
    judge = _Judge(table, folds_of(masks), settings, executor, watch)
    a_nat = 1.0 / sum(float(answers.weight[out].sum()) for out in masks)  # of all answers held out together
    found = min((search(judge, table.shape, start) for start in table.starts), key=lambda place: judge(*place))
    place = widest(judge, table.shape, found, a_nat)
    chosen = judge.trial(*place, most)
    if len(table.numbers) > 1:
        # Fits that begin anew are compared with those that began at others before, so all must come to their ends.
        at_end = [judge.trial(*place, n_c, _ROUNDS_OF_NUMBERS) for n_c in sorted(table.numbers)]
        least = min(trial.log_loss for trial in at_end)
        # More characteristics must be worth a nat.
        chosen = next(trial for trial in at_end if trial.log_loss <= least + a_nat)
    several = settings.spread is None and chosen.candidate.n_c > 1
    masks = masks_of_newcomers(answers, _FOLDS, among=tried, keys=keys) if several else []
    if masks and chosen.held_out is not None:
        basis = prior.basis(chosen.candidate.kernel)
        newcomers, _ = predict_held_out(chosen.candidate, basis, folds_of(masks), settings, executor=executor)
        chosen = replace(chosen, calibration=with_newcomers(chosen.calibration, chosen.held_out, newcomers))
    return chosen, list(judge.trials.values())


@dataclass(slots=True, eq=False)
class _Judge:
    """Log losses of places in the table, each fitted once; fits begin at the weights of the one before."""

    table: CandidateTable
    folds: Folds
    settings: FitSettings
    executor: ThreadPoolExecutor | None
    watch: Watcher | None
    trials: dict[tuple[int, int, int, int], CandidateTrial] = field(default_factory=dict)
    begun: list[FloatArray] | None = None

    def __call__(self, size: int, alpha: int) -> float:
        return self.trial(size, alpha, max(self.table.numbers)).log_loss

    def trial(self, size: int, alpha: int, n_c: int, rounds: int = _TRIAL_ROUNDS) -> CandidateTrial:
        """The trial of a place, of at most so many rounds."""
        most = max(self.table.numbers)
        if (size, alpha, n_c, rounds) not in self.trials:
            one = self.table.candidate(size, alpha, n_c)
            out, weights = predict_held_out(
                one, self.table.prior.basis(one.kernel), self.folds, self.settings, executor=self.executor,
                begin=self.begun if n_c == most else None, rounds=rounds,
            )  # fmt: skip
            self.trials[size, alpha, n_c, rounds] = judged(one, out)
            if n_c == most and one.concentration > 0.0:
                self.begun = weights
            if self.watch is not None:
                self.watch("trying priors on held-out answers, number", len(self.trials))
        return self.trials[size, alpha, n_c, rounds]


def judged(candidate: KernelCandidate, out: HeldOutMargins) -> CandidateTrial:
    """Log loss of a candidate by answers held out of its fits."""
    calibration, loss = calibrated(out)
    return CandidateTrial(candidate, loss, calibration, out)


def predict_held_out(
    candidate: KernelCandidate, basis: PointBasis, folds: Folds, settings: FitSettings, *,
    executor: ThreadPoolExecutor | None = None, begin: Sequence[FloatArray] | None = None, rounds: int = _TRIAL_ROUNDS,
) -> tuple[HeldOutMargins, list[FloatArray]]:  # fmt: skip
    """Margins of the answers held out of each of ``folds`` of (kept, held out); at most so many ``rounds`` each.

    Also the weights of each fold, from which a similar candidate may ``begin``. Coordinates that hold a thousandth
    of what the points vary are left out: of 5 300 trade-offs of eight attributes that is half of them, and two thirds
    of the time.
    """
    basis = basis.only(telling_coordinates(basis, _UNTOLD))
    short = replace(settings, max_rounds=min(settings.max_rounds, rounds), concentration=candidate.concentration)
    said: list[npt.NDArray[np.int8]] = []
    columns: list[tuple[FloatArray, ...]] = []
    deltas: list[float] = []
    weights: list[FloatArray] = []
    for number, (kept, out) in enumerate(folds):
        gamma = weights_to_start(basis, kept, candidate.n_c, short, 0) if begin is None else begin[number]
        found = run(basis, kept, gamma, short, executor=executor, with_evidence=False)
        said.append(out.outcome)
        mean, var = held_out_margins(found, out, settings)
        columns.append((mean, var, variances_by_weights(found, out), out.weight, kept.per_person[out.user]))
        deltas.append(found.delta)
        weights.append(found.gamma)
    mean, var, by_weights, weight, n_known = map(np.concatenate, zip(*columns, strict=True))
    uncertain = by_weights if candidate.concentration > 0.0 and candidate.n_c > 1 else None
    return HeldOutMargins(
        np.concatenate(said), mean, var, uncertain, weight, n_known, float(np.mean(deltas))
    ), weights  # fmt: skip


def held_out_margins(found: EM, answers: TradeOffAnswers, settings: FitSettings) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (n,) of the margins of answers at the points of a fit.

    Where a curvature on a grid is not factorised variances are of low rank, as in predictions: 1 500 solutions of
    equations took 100 s where these take one.
    """
    state, F = found.mode.state, found.mode.F
    gamma, basis, curvature = found.gamma[answers.user], state.basis, curvature_at(state)
    mean = np.einsum("ic,ic->i", gamma, F[answers.point])
    low_rank = low_rank_at(state, curvature, settings)
    if low_rank is not None:
        points, code = np.unique(answers.point, return_inverse=True)
        var = mixed(answers.user, code, found.gamma, F[points], low_rank.point_blocks(points))[1]
        return mean, np.maximum(var, 0.0)
    var = np.empty(answers.n_rows)
    for some in in_parts(answers.n_rows, basis.rank, _NUMBERS_AT_ONCE):
        var[some] = curvature.variances(basis.point_rows(answers.point[some]), gamma[some])
    return mean, var


def variances_by_weights(found: EM, answers: TradeOffAnswers) -> FloatArray:
    """Variance (n,) of the margins of answers by what is left open of people's weights; 0 without a prior of them."""
    if found.left_open is None:
        return np.zeros(answers.n_rows)
    # Σ F_c C_cd F_d is a mixture of the people's covariances by the characteristics at the trade-offs.
    return mixed(answers.point, answers.user, found.mode.F, found.gamma, found.left_open)[1]


def search(judge: Callable[[int, int], float], sizes: tuple[int, int], start: tuple[int, int]) -> tuple[int, int]:
    """Coordinate descent on a table of losses: the place from which no step along a row or a column goes down."""

    def loss(place: tuple[int, int]) -> float:
        return judge(*place) if all(0 <= k < n for k, n in zip(place, sizes, strict=True)) else math.inf

    best, stayed, axis = start, 0, 0
    while stayed < 2:
        before = best
        for by in (1, -1):
            while loss(step := (best[0] + by, best[1]) if axis == 0 else (best[0], best[1] + by)) < loss(best):
                best = step
        axis, stayed = 1 - axis, stayed + 1 if best == before else 0
    return best


def widest(
    judge: Callable[[int, int], float], sizes: tuple[int, int], best: tuple[int, int], worth: float
) -> tuple[int, int]:
    """From the best place as far down the rows and then back along the columns as costs at most ``worth``.

    Rows are prior variances and columns how alike people are. A few hundred answers hardly tell these apart, and
    predictions know nothing of that: with the smallest of several that do as well intervals were too narrow.
    """
    least = judge(*best)
    for by in ((1, 0), (0, -1)):
        row, column = best
        while (column := column + by[1]) >= 0 and (row := row + by[0]) < sizes[0]:
            loss = judge(row, column)
            if loss > least + worth:
                break
            best, least = (row, column), min(least, loss)
    return best
