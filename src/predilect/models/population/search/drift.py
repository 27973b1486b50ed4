"""Whether items move, how far and how fast: hyper-parameters of ratings over time, by evidence and forecasts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from predilect._base.progress import Report, Watcher
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.latent.drift import (
    EP_TOLERANCE,
    NEWTON_TOLERANCE,
    Drifting,
    Moving,
    TimedAnswers,
    covariance_of_utilities,
    fit_drift,
    grid_of,
    refined,
)
from predilect.inference.latent.pooled import PooledAnswers, PooledPrior, margin_variances, refit_pooled
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.likelihoods.views import PairLikelihood
from predilect.models.population.drift import Drift
from predilect.models.population.pooled import PooledPosterior
from predilect.models.population.search.plan import Plan
from predilect.models.population.train import Trained

_MOST_TIMES, _MOST_OF_SEARCH, _FEWEST_TIMES = 1000, 200, 16
_WORK, _WORK_OF_SEARCH = 3e10, 2e9  # operations of an elimination, 6 T n³
_ITEMS_OF_SEARCH, _ROWS_OF_SEARCH = 150, 2000  # the busiest items settle the hyper-parameters of all
# Weak priors: a factor e² about 1 of the level's variance, as in the pooled model; about a quarter of it and a quarter
# of the span of what moves.
_WIDE, _USUAL_VARIANCE, _USUAL_SHARE = 2.0, 0.25, 0.25
_VARIANCES = (1e-4, 1e2)
_FIRST_STEP, _LAST_STEP, _MOST_EVALUATIONS = 0.7, 0.05, 60  # in logarithms of hyper-parameters
_LOOSE = 1e-5  # of the last step of fits that are only compared
_LEAST_GAIN = 3.0  # nats of evidence, below which items are taken to stay
_CUTS, _AHEAD = (0.6, 0.7, 0.8, 0.9), 0.1  # shares of the answers: those before, and those that are foretold


class _Settings(NamedTuple):
    """Hyper-parameters of a fit."""

    level: float  # s_t
    moving: Moving
    delta: float


class _Searched(NamedTuple):
    """The best hyper-parameters, their evidence with the weak priors, and how many were tried."""

    settings: _Settings
    evidence: float
    n_trials: int


@dataclass(frozen=True)
class _League:
    """Answers about some of the items, at their times."""

    timed: TimedAnswers
    K: FloatArray

    @classmethod
    def of(
        cls, answers: Comparisons, K: FloatArray, thresholds: Thresholds | None, likelihood: type[PairLikelihood],
        work: float, most: int,
    ) -> _League:  # fmt: skip
        """At as many times as an elimination of so much work allows."""
        assert answers.time is not None
        rows = PooledAnswers.of(answers, likelihood, thresholds)
        most = int(np.clip(work / (6.0 * answers.n_items**3), _FEWEST_TIMES, most))
        times, at = grid_of(answers.time, answers.weight, most)
        return cls(TimedAnswers(rows, at, times), K)

    def prior(self, level: float) -> PooledPrior:
        """Prior of m and of the effects."""
        x = self.timed.rows.covariates
        found = PooledPrior.of(self.K, level, None, 0 if x is None else x.shape[1])
        return found if found.precision.ndim == 2 else found._replace(precision=np.diag(found.precision))

    def fit(self, settings: _Settings, start: Drifting | None = None, tolerance: float = NEWTON_TOLERANCE) -> Drifting:
        """The fit at some hyper-parameters."""
        return fit_drift(self.timed, self.prior(settings.level), settings.moving, settings.delta, start, tolerance)

    def staying(self, delta: float) -> tuple[float, float]:
        """s_t at which utilities that do not move have the largest evidence, and that evidence with the weak prior."""
        from scipy.optimize import minimize_scalar

        def loss(log_level: float) -> float:
            state = refit_pooled(self.timed.rows, self.prior(math.exp(log_level)), delta, self.nothing)
            return 0.5 * (log_level / _WIDE) ** 2 - state.evidence

        found = minimize_scalar(loss, bounds=(-6.0, 6.0), method="bounded", options={"xatol": _LAST_STEP})
        return math.exp(found.x), -float(found.fun)

    @property
    def nothing(self) -> FloatArray:
        """Where a search for m and the effects begins."""
        return np.zeros(len(self.prior(1.0).precision))

    def memory(self) -> tuple[float, float]:
        """The shortest and the longest memory: from the median gap between times of one item to the span."""
        rows, at, times = self.timed.rows, self.timed.at, self.timed.times
        item, place = np.concatenate([rows.left, rows.right]), np.concatenate([at, at])
        seen = np.unique(item.astype(np.int64) * len(times) + place)
        gaps = np.diff(times[seen % len(times)])[np.diff(seen // len(times)) == 0]
        span = float(times[-1] - times[0])
        return min(float(np.median(gaps)) if len(gaps) else span, 0.5 * span), span

    def forecast_gain(self, settings: _Settings, level: float) -> float | None:
        """Nats an answer by which answers of later times are likelier if items move; None where nothing is later.

        Fits to the answers up to a time foretell the next tenth; four times.
        """
        timed, delta = self.timed, settings.delta
        share = np.cumsum(np.bincount(timed.at, timed.rows.weight)) / timed.rows.n_answers
        gains, weights = 0.0, 0.0
        for cut in _CUTS:
            place = int(np.searchsorted(share, cut)) + 1
            ahead = np.flatnonzero((timed.at >= place) & (share[timed.at] <= cut + _AHEAD + 1e-9))
            if place >= len(timed.times) or not len(ahead) or not share[place - 1]:
                continue
            before, prior = timed.before(place), self.prior(settings.level)
            moved = fit_drift(before, prior, settings.moving, delta, tolerance=_LOOSE)
            stayed = refit_pooled(before.rows, self.prior(level), delta, self.nothing)
            C = stayed.covariance()
            weight = timed.rows.weight[ahead]
            gain = self._score(ahead, stayed.mode[None], [C], np.zeros(len(ahead), dtype=np.int64), delta)
            later = np.unique(timed.at[ahead])
            laws = [
                _later(moved, settings.moving, times_ahead) for times_ahead in timed.times[later] - before.times[-1]
            ]
            means, covariances = np.array([law[0] for law in laws]), [law[1] for law in laws]
            which = np.searchsorted(later, timed.at[ahead])
            gains += float(weight @ (self._score(ahead, means, covariances, which, delta) - gain))
            weights += float(weight.sum())
        return gains / weights if weights else None

    def _score(
        self, ahead: IntArray, means: FloatArray, covariances: list[FloatArray], which: IntArray, delta: float
    ) -> FloatArray:
        """Log probabilities of some answers under laws of utilities and effects, of which each has one, (n,)."""
        rows, prior = self.timed.rows, self.prior(1.0)
        left, right, x = rows.left[ahead], rows.right[ahead], rows.covariates
        x = None if x is None else x[ahead]
        mean = means[which, left] - means[which, right]
        if x is not None:
            mean = mean + np.einsum("ij,ij->i", x, means[which, rows.n_items :])
        var = np.zeros(len(ahead))
        for k, C in enumerate(covariances):
            some = which == k
            var[some] = margin_variances(prior, C, left[some], right[some], None if x is None else x[some])
        return rows.likelihood(delta).tilted(rows.outcome[ahead], mean, var)[0]


def _later(found: Drifting, moving: Moving, ahead: float) -> tuple[FloatArray, FloatArray]:
    """Law of the utilities and effects some time after the last answers."""
    kept = math.exp(-ahead / moving.length)
    V, H = next(found.chain.covariances())
    n = len(V)
    V = kept**2 * V + moving.variance * (1.0 - kept**2) * np.eye(n)
    mean = found.state.rest.copy()
    mean[:n] += kept * found.state.g[-1]
    return mean, covariance_of_utilities(V, kept * H, found.chain.covariance)


def _search(league: _League, level: float, delta: float, free: dict[str, bool], watch: Watcher | None) -> _Searched:
    """Hyper-parameters of the largest evidence with weak priors, from those of items that stay.

    Free: the length of memory and the variance of what moves, s_t unless it is given, δ where it is learned.
    """
    from scipy.optimize import minimize

    low, high = league.memory()
    last: list[Drifting] = []
    usual = math.log(_USUAL_SHARE * high)

    def settings(x: FloatArray) -> _Settings:
        more = iter(x[2:])
        return _Settings(
            math.exp(next(more)) if free["level"] else level, Moving(math.exp(x[0]), math.exp(x[1])),
            math.exp(next(more)) if free["delta"] else delta,
        )  # fmt: skip

    def loss(x: Any) -> float:
        found = league.fit(settings(x), last[-1] if last else None, _LOOSE)
        last[:] = [found]
        if watch is not None:
            watch("finding how items move", 1)
        away = ((x[0] - math.log(_USUAL_VARIANCE)) / _WIDE) ** 2 + ((x[1] - usual) / _WIDE) ** 2
        away += (math.log(settings(x).level) / _WIDE) ** 2
        return 0.5 * away - found.evidence

    more = [math.log(level)] * free["level"] + [math.log(delta or 1.0)] * free["delta"]
    starts: list[FloatArray] = [
        np.array([math.log(0.5 * level), math.log(one), *more])
        for one in np.clip([high / 16.0, high / 4.0, high], low, high).tolist()
    ]
    first: Any = min(starts, key=loss)
    ends: Any = [tuple(map(math.log, one)) for one in (_VARIANCES, (low, high))]
    best = minimize(
        loss, first, method="COBYQA", bounds=ends + [(None, None)] * len(more),
        options={"initial_tr_radius": _FIRST_STEP, "final_tr_radius": _LAST_STEP, "maxfev": _MOST_EVALUATIONS},
    )  # fmt: skip
    return _Searched(settings(best.x), -float(best.fun), int(best.nfev) + len(starts))


def _busiest(answers: Comparisons) -> IntArray:
    """Codes of the items that settle how all move: all, or those with the most answers that have enough of them."""
    n = answers.n_items
    met = np.bincount(answers.left, answers.weight, n) + np.bincount(answers.right, answers.weight, n)
    order, most = np.argsort(-met, kind="stable"), _ITEMS_OF_SEARCH
    while most < n:
        among = np.zeros(n, dtype=bool)
        among[order[:most]] = True
        if (among[answers.left] & among[answers.right]).sum() >= _ROWS_OF_SEARCH:
            return np.flatnonzero(among)
        most = int(1.5 * most)
    return np.arange(n)


def _among(answers: Comparisons, items: IntArray) -> Comparisons:
    """The answers about some items, by their codes among these."""
    if len(items) == answers.n_items:
        return answers
    place = np.full(answers.n_items, -1)
    place[items] = np.arange(len(items))
    kept = answers.take((place[answers.left] >= 0) & (place[answers.right] >= 0))
    names = type(answers.items)(answers.items.labels(items))
    return replace(kept, items=names, left=place[kept.left], right=place[kept.right])


def with_drift(plan: Plan, trained: Trained, asked: Any) -> tuple[Trained, Drift | None, dict[str, Any]]:
    """A pooled model with items that move, if they are found to; what was found, and a report of it.

    ``trained`` is the model of items that stay; ``asked`` as ``Population.drift``. Some thirty eliminations of at most
    some 100 items, and one of all, 18 T n_items³.
    """
    answers = plan.answers.pooled()
    assert answers.time is not None
    n_times = len(np.unique(answers.time))
    report: dict[str, Any] = {
        "asked": asked if isinstance(asked, str | bool) else list(asked), "found": False, "evidence_gain": None,
        "forecast_gain": None, "n_times": n_times, "n_items_of_search": answers.n_items, "trials": 0,
    }  # fmt: skip
    if n_times < 2:
        return trained, None, report
    h, thresholds, posterior = trained.hyperparameters, trained.posterior.thresholds, trained.posterior
    assert isinstance(posterior, PooledPosterior)
    K = plan.space.covariance(h.consensus_weight, h.length_scale)
    delta = trained.delta if thresholds is None else thresholds.scale
    if isinstance(asked, tuple | list):
        settings = _Settings(h.consensus_variance, Moving(*map(float, asked)), delta)
    else:
        items = _busiest(answers)
        league = _League.of(
            _among(answers, items), K[np.ix_(items, items)], _of_items(thresholds, items), plan.likelihood,
            _WORK_OF_SEARCH, _MOST_OF_SEARCH,
        )  # fmt: skip
        free = {
            "level": "consensus_variance" not in plan.given,
            "delta": plan.delta is None and thresholds is None and answers.has_ties,
        }
        level, evidence = league.staying(delta)
        searched = _search(league, level if free["level"] else h.consensus_variance, delta, free, plan.watch)
        settings = searched.settings
        report |= {
            "evidence_gain": searched.evidence - evidence, "forecast_gain": league.forecast_gain(settings, level),
            "n_items_of_search": len(items), "trials": searched.n_trials,
        }  # fmt: skip
    gain, ahead = report["evidence_gain"], report["forecast_gain"]
    if asked == "auto" and (gain < _LEAST_GAIN or (ahead is not None and ahead <= 0.0)):
        return trained, None, report
    league = _League.of(answers, K, thresholds, plan.likelihood, _WORK, _MOST_TIMES)
    prior = league.prior(settings.level)
    found = refined(league.timed, prior, settings.moving, settings.delta, league.fit(settings))
    report |= {"found": True, "variance": settings.moving.variance, "length": settings.moving.length}
    return *_moved(trained, found, league, settings, answers), report


def _of_items(thresholds: Thresholds | None, items: IntArray) -> Thresholds | None:
    """Thresholds of some items alone."""
    if thresholds is None or not len(thresholds.of_items):
        return thresholds
    return replace(thresholds, of_items=thresholds.of_items[items])


def _moved(
    trained: Trained, found: Drifting, league: _League, settings: _Settings, answers: Comparisons
) -> tuple[Trained, Drift]:
    """The model at the time of the last answers, and what is kept to tell of other times."""
    old, n = trained.posterior, answers.n_items
    assert isinstance(old, PooledPosterior)
    assert old.believed is not None
    chosen = replace(trained.hyperparameters, consensus_variance=settings.level)
    believed = replace(old.believed, hyperparameters=chosen)
    assert answers.time is not None
    times, now = league.timed.times, float(answers.time.max())
    mean, C = _later(found, settings.moving, now - float(times[-1]))
    covariates = None if old.covariates is None else CovariateEffects(mean[n:], C[n:, n:])
    posterior = PooledPosterior.of(mean, C, None, believed, None, covariates, old.thresholds)
    drift = Drift.of(found, settings.moving, times, now, answers.clock, believed)
    by_ep = league.timed.rows.orders is None
    tolerance = EP_TOLERANCE if by_ep else NEWTON_TOLERANCE
    fit = Report(
        method="EP over time" if by_ep else "Newton over time", iterations=found.iterations, residual=found.step,
        tolerance=tolerance, converged=found.step <= tolerance, jitter=league.prior(settings.level).jitter,
        seconds=trained.fit.seconds, unit="noise units of the largest change of a margin",
        advice="look for extreme weights or scores",
    )  # fmt: skip
    delta = trained.delta if old.thresholds is not None else settings.delta
    return replace(
        trained, posterior=posterior, hyperparameters=chosen, delta=delta, log_evidence=found.evidence, fit=fit
    ), drift
