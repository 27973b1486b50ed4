"""How each judge's answers fit what the rest say: agreement, infit and outfit, with what is expected by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.keyed_rows import sides_of
from predilect.decisions.ranking import beyond_chance
from predilect.inference.gaussian.dense import symmetrise
from predilect.models.population.batches import keyed

_STEP = 1e-4  # of a margin, for slopes
_TIED = 1e-6  # of the largest score: what rounding leaves of a margin of which the rest say nothing
_ROUNDING = 1e-9  # of variances
_SMALLEST_SD = 1e-6  # of a fit, that is not rounding
_AT_ONCE = 256  # judges
# Of a mean square, above which its cube root is not normal: a few answers that nobody expected are all of outfit then
_LARGEST_SD = np.sqrt(2.0)
_POINTS = np.array([1.0, 0.5, 0.0])  # that an answer gives the left item: better, a tie, worse


class JudgedRows(NamedTuple):
    """Answers in the order of the judges; item codes, +1 where the left one is better, 0 for a tie."""

    ptr: IntArray  # (n_judges + 1,)
    left: IntArray
    right: IntArray
    outcome: FloatArray
    weight: FloatArray
    x: FloatArray  # covariates, (n, n_covariates)
    alone: BoolArray  # rows that are an answer by themselves

    @property
    def who(self) -> IntArray:
        """The judge of each row."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))


class _AboutJudge(NamedTuple):
    """What a judge's answers tell of the crowd's utilities of the own items (k), and what people like the judge are."""

    items: IntArray
    x: FloatArray  # score, (k,)
    Q: FloatArray  # information, (k, k)
    spread: FloatArray  # covariance over people, (k, k)
    shift: FloatArray  # of the mean of people with the judge's traits, from the crowd's, (k,)


class _CrowdWithout(NamedTuple):
    """The crowd without a judge, about the judge's own items."""

    items: IntArray
    mean: FloatArray  # of the crowd, (k,)
    shift: FloatArray
    covariance: FloatArray  # of the utilities of somebody new who is like the judge, (k, k)


def judge_columns(model: Any, rows: JudgedRows, about: Callable[[int], _AboutJudge]) -> dict[str, FloatArray]:
    """Agreement, infit and outfit of everybody with those left over, (n_judges,) each; NaN where there is nothing.

    ``rows`` and ``about`` are those of :func:`rows_by_judge`.

    people.md, "Judges". Answers are held against the crowd without the judge, by one Newton step. O(k³) a
    judge who answered on k items, and O(rows).
    """
    names = ("agreement", "infit", "infit_z", "outfit", "outfit_z")
    n = len(rows.ptr) - 1
    found = {name: np.full(n, np.nan) for name in names}
    for start in range(0, n, _AT_ONCE):
        judges = np.arange(start, min(start + _AT_ONCE, n))
        for name, values in zip(names, _of_some(model, rows, judges, about), strict=True):
            found[name][judges] = values
    return found


def rows_by_judge(model: Any) -> tuple[JudgedRows, Callable[[int], _AboutJudge]]:
    """Answers in the order of the judges, and what the answers of each tell."""
    return _of_people(model) if model.personal_ else _of_everybody(model)


def misfits(infit_z: FloatArray) -> BoolArray:
    """Who misfits beyond chance, (n,): a high infit, at a false discovery rate of 5 % over those who have one."""
    found, known = np.zeros(len(infit_z), dtype=bool), np.isfinite(infit_z)
    if known.any():
        found[known] = beyond_chance(infit_z[known]) & (infit_z[known] > 0.0)
    return found


def _of_people(model: Any) -> tuple[JudgedRows, Callable[[int], _AboutJudge]]:
    """Answers of a personal model, and what each judge told; nothing was told by who came after the fit."""
    posterior = model.posterior_
    people, sites, law, effects = posterior.people, posterior.sites, posterior.law, posterior.covariates
    step = posterior.now.law.mean - law.mean  # by which answers since the fit have moved the crowd
    first = np.repeat(people.item_ptr[:-1], np.diff(people.answer_ptr))
    left, right = (people.item_idx[first + side].astype(np.int64) for side in (people.left, people.right))
    x = np.zeros((len(left), 0)) if effects is None else effects.patterns[people.variant]

    def about(judge: int) -> _AboutJudge:
        items, score, Q = people.believed_sums(judge, sites, law)
        k = len(items)
        shift, Q = law.shift[items] @ people.traits[judge], Q[:k, :k]
        return _AboutJudge(items.astype(np.int64), score[:k] - Q @ step[items], Q, law.covariance(items), shift)

    outcome = np.sign(people.outcome).astype(float)
    return JudgedRows(people.answer_ptr, left, right, outcome, people.weight, x, people.task < 0), about


def _of_everybody(model: Any) -> tuple[JudgedRows, Callable[[int], _AboutJudge]]:
    """Answers of a pooled model that was not loaded, and what each judge told; grades count by their side."""
    posterior, answers = model.posterior_, model.comparisons_
    held, effects = keyed(answers, posterior.covariates)
    held = held.at(np.argsort(held.user, kind="stable"))
    left, right, code, variant = sides_of(held.key)
    outcome, mean = np.sign(code), posterior.crowd().mean
    x = np.zeros((len(left), 0)) if effects is None else effects.patterns[variant]
    margin = mean[left] - mean[right]
    if effects is not None:
        margin = margin + x @ effects.mean
    cut = np.broadcast_to(model.tie_threshold_ * posterior.tie_factors_of_pairs(left, right), margin.shape)
    slope, curvature = model._likelihood.all_tilted(outcome, margin, np.zeros_like(margin), np.array(cut))[1:3]
    slope, curvature = held.weight * slope, held.weight * curvature
    ptr = held.user.searchsorted(np.arange(answers.n_users + 1))

    def about(judge: int) -> _AboutJudge:
        mine = slice(ptr[judge], ptr[judge + 1])
        items = np.unique(np.concatenate([left[mine], right[mine]]))
        k, i, j = len(items), items.searchsorted(left[mine]), items.searchsorted(right[mine])
        score = np.asarray(np.bincount(i, slope[mine], k) - np.bincount(j, slope[mine], k), dtype=float)
        off = np.bincount(i * k + j, curvature[mine], k * k).reshape(k, k)
        off = off + off.T
        return _AboutJudge(items, score, np.diag(off.sum(axis=1)) - off, np.zeros((k, k)), np.zeros(k))

    return JudgedRows(ptr, left, right, outcome.astype(float), held.weight, x, held.task < 0), about


def _without(model: Any, about: _AboutJudge) -> _CrowdWithout:
    """The crowd without a judge: of N(m, C) with C⁻¹ less Q, and C⁻¹ m less what the score comes from."""
    posterior, items = model.posterior_, about.items
    if model.personal_:
        law, C = posterior.now.law, posterior.now.C_answers
        mean, Phi = law.mean[items], law.Phi[items] if law.has_basis else None
    else:
        C, Phi = posterior.covariance, None if posterior.Phi is None else posterior.Phi[items]
        mean = posterior.mean[items] if Phi is None else Phi @ posterior.mean
    C = C[np.ix_(items, items)] if Phi is None else Phi @ C @ Phi.T
    C = symmetrise(np.linalg.solve(np.eye(len(items)) - C @ about.Q, C))
    return _CrowdWithout(items, mean - C @ about.x, about.shift, about.spread + C)


class _JudgedPairs(NamedTuple):
    """The pairs of some judges' answers, as the crowd without each judge sees them; (n,) each."""

    gap: FloatArray  # of the crowd's scores
    mean: FloatArray  # of the margin of somebody new who is like the judge
    var: FloatArray
    known: BoolArray  # whether there is a crowd without the judge
    sides: Sequence[tuple[IntArray, IntArray]]  # for each judge the places of the items among the own ones


def _pairs(rows: JudgedRows, bounds: list[slice], rest: list[_CrowdWithout]) -> _JudgedPairs:
    """Pairs of the judges whose rows are within ``bounds``, one judge after the other."""
    gaps, means, variances, known, sides = [], [], [], [], []
    for mine, one in zip(bounds, rest, strict=True):
        i, j = one.items.searchsorted(rows.left[mine]), one.items.searchsorted(rows.right[mine])
        own, gap = np.diagonal(one.covariance), one.mean[i] - one.mean[j]
        var = own[i] + own[j] - 2.0 * one.covariance[i, j]
        # Where the judge said nearly all, rounding may leave no rest to speak of.
        is_sound = bool((var > -_ROUNDING * (own[i] + own[j])).all())
        gaps.append(gap * is_sound)
        means.append(is_sound * (gap + one.shift[i] - one.shift[j]))
        variances.append(is_sound * np.maximum(var, 0.0))
        known.append(np.full(len(gap), is_sound))
        sides.append((i, j))
    return _JudgedPairs(
        np.concatenate(gaps), np.concatenate(means), np.concatenate(variances), np.concatenate(known), sides
    )


def _of_some(
    model: Any, rows: JudgedRows, judges: IntArray, about: Callable[[int], _AboutJudge]
) -> Iterator[FloatArray]:  # fmt: skip
    """Agreement, infit, its z, outfit and its z of judges who follow each other, (n,) each."""
    bounds = [slice(rows.ptr[judge], rows.ptr[judge + 1]) for judge in judges.tolist()]
    at, n = slice(bounds[0].start, bounds[-1].stop), len(judges)
    rest = [_without(model, about(judge)) for judge in judges.tolist()]
    pairs = _pairs(rows, bounds, rest)
    who = np.repeat(np.arange(n), [one.stop - one.start for one in bounds])
    outcome, weight = rows.outcome[at], rows.weight[at]

    def sums(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(who, values, n), dtype=float)

    largest = float(np.abs(model.posterior_.crowd().mean).max(initial=0.0))
    decided = (outcome != 0.0) & (np.abs(pairs.gap) > _TIED * largest)
    with np.errstate(invalid="ignore", divide="ignore"):
        yield sums(weight * (decided & (np.sign(pairs.gap) == outcome))) / sums(weight * decided)
        expected, variance, fourth, slope = _residuals(model, rows.left[at], rows.right[at], rows.x[at], pairs)
        squared = (0.5 * (1.0 + outcome) - expected) ** 2
        weight = np.where(rows.alone[at] & pairs.known & (variance > 0.0), weight, 0.0)
        for by in (np.ones_like(variance), 1.0 / variance):  # infit: answers count by their information; outfit: alike
            by = np.where(weight > 0.0, by, 0.0)
            total = sums(weight * by * variance)
            apart = sums(weight * by**2 * (fourth - variance**2 - slope**2 * pairs.var))
            moved = weight * by * slope  # answers of one person vary together, as that person's utilities do
            for place, (mine, (i, j), one) in enumerate(zip(bounds, pairs.sides, rest, strict=True)):
                step = moved[mine.start - at.start : mine.stop - at.start]
                a = np.bincount(i, step, len(one.items)) - np.bincount(j, step, len(one.items))
                apart[place] += a @ one.covariance @ a
            fit = sums(weight * by * squared) / total
            sd = np.minimum(np.sqrt(apart) / total, _LARGEST_SD)
            sd[sd < _SMALLEST_SD] = np.nan  # where either answer is as likely, each is as far from what was expected
            yield fit
            yield (np.cbrt(fit) - 1.0) * 3.0 / sd + sd / 3.0  # Wilson and Hilferty


def _residuals(
    model: Any, left: IntArray, right: IntArray, x: FloatArray, pairs: _JudgedPairs
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Mean, variance and fourth central moment of what an answer gives the left item, 1, ½ or 0, of somebody new; and
    the slope of the second moment about that mean, in the mean of the margin; (n,) each.
    """
    posterior, nobody = model.posterior_, np.full(len(left), -1)
    mean, var = pairs.mean, pairs.var
    if posterior.covariates is not None:
        mean, var = posterior.covariates.of_anybody().added(mean, var, x)

    def chances(mean: FloatArray) -> FloatArray:
        delta, likelihood = model.tie_threshold_, model._likelihood
        return np.asarray(posterior.outcome_proba(mean, var, nobody, left, right, delta, likelihood))

    p = chances(mean)
    expected = p @ _POINTS
    away = (_POINTS - expected[:, None]) ** 2
    second = [(chances(mean + step) * away).sum(axis=1) for step in (_STEP, -_STEP)]
    slope = (second[0] - second[1]) / (2.0 * _STEP)
    return expected, (p * away).sum(axis=1), (p * away**2).sum(axis=1), slope
