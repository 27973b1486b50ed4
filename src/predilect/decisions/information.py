"""Expected information of an answer, in bits, and the expected utility of the better item.

Margins z ~ N(mean, var) are in units of the noise of one answer, whose variance 1 is not part of ``var``: arrays of
one shape. The tie threshold δ (0: no ties) is one for all or one a margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.special import entr, ndtr, wrightomega, xlog1py

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.decisions.candidates import EQUAL
from predilect.inference.gaussian.posterior import Utilities

_LOG_2 = math.log(2.0)
# h(Φ(x)) in bits as a sum of Gaussians a exp(-x² / (2 c)); least squares on [0, 9], largest error 1.2e-7.
_WIDTHS = (0.6376920582020948, 0.8836974396664068, 1.0215781152703707)
_HEIGHTS = (0.01617882674758934, -0.4580572212681975, 1.4418785106717358)
# With ties h has bumps near ±δ: Gaussians of this width at distances from 0, largest error 3e-5.
_BUMP_WIDTH, _BUMP_STEP, _BUMP_MARGIN = 0.9, 0.6, 1.5
_FIT_POINTS, _FIT_MARGIN = 600, 8.0
_FEWEST_NODES, _NODES_IN_DELTA = 12, 2.0  # and so many in a unit of δ + log δ
_SMALLEST_THRESHOLD = 1e-12  # at which a tie says nothing
_LARGEST_EXPONENT = 300.0
_FAR = 10.0  # a threshold beyond which no answer is a tie, a win and a loss at once: P(win) P(loss) < 1e-40
_HALF_WINDOW, _NODES_PER_UNIT = 9.0, 4  # of the quadrature, in widths of the integrand; twice as many change 1e-13
_ENTRIES_AT_ONCE = 2**20


def expected_entropy(mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0) -> FloatArray:
    """Expected entropy of the answer given the margin, E h(answer | z), in bits.

    collaborative.md section 5, second term. In closed form: h is a sum of Gaussians in z to 1.2e-7 bits, with ties to
    3e-5, for any mean and variance. **Differs from the paper**: three Gaussians in place of one, whose error is 0.0027.
    """
    mean, var, delta = _floats(mean, var, delta)
    total = np.zeros(mean.shape)
    if not np.any(delta):
        square = mean * mean
        for c, height in zip(_WIDTHS, _HEIGHTS, strict=True):
            total += height * _gaussian(square, c, var)
        return total
    if np.any(delta > _FAR):
        return _apart(expected_entropy, mean, var, delta)
    heights, owner = _bump_heights(delta)
    width = var + _BUMP_WIDTH**2
    precision = 1.0 / width
    # Bump k is bump k - 1 times exp((±mean step - (k - 1/2) step²) / width): three exponentials for all of them.
    here = there = np.exp(-0.5 * mean * mean * precision)
    towards = np.minimum(_BUMP_STEP * np.abs(mean) * precision, _LARGEST_EXPONENT)  # beyond it all bumps are 0
    shrink = np.exp(-0.5 * _BUMP_STEP**2 * precision)
    up, down, square = np.exp(towards) * shrink, np.exp(-towards) * shrink, shrink * shrink
    total += heights[owner, 0] * here
    for k in range(1, heights.shape[1]):
        here, there = here * up, there * down
        total += heights[owner, k] * (here + there)
        up, down = up * square, down * square
    return np.asarray(total * (_BUMP_WIDTH * np.sqrt(precision)))


def bald(
    mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0, *, resolved: npt.ArrayLike | None = None,
    exact: bool = False,
) -> FloatArray:  # fmt: skip
    """Mutual information of the answer and the utilities in bits (BALD); exactly 0 at var = 0 without ties.

    ``resolved`` (0 to var) is the part of the variance that unanswered questions asked before will resolve; the
    information is what the answer adds to theirs.

    collaborative.md section 5: entropy of the answer less its expected entropy given the margin. With part r of the
    variance resolved the mean is itself N(mean, r), and the first term is the expectation over it; the second does not
    change. Without ties in closed form, to 3e-7 bits and never below -3e-7; **differs from the paper** in that,
    whose eq. 11 with its units right is good to 0.003 bits. With ties to 3e-5, or if ``exact`` by quadrature, 6 µs a
    margin.
    """
    mean, var, delta = _floats(mean, var, delta)
    rest = remaining_entropy(mean, var, delta, resolved=resolved)
    if exact and np.any(delta):
        return rest - _expected_by_quadrature(mean, var, delta)
    return rest - expected_entropy(mean, var, delta)


def remaining_entropy(
    mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0, *, resolved: npt.ArrayLike | None = None
) -> FloatArray:
    """Entropy of the answer in bits, expected over what resolves part of the variance; arguments as :func:`bald`.

    Without ties to 2e-7 bits; with ties exact, but for ``resolved`` by quadrature, 6 µs a margin.
    """
    mean, var, delta = _floats(mean, var, delta)
    known = np.zeros(()) if resolved is None else np.asarray(resolved, dtype=float)
    total = 1.0 + (var - known)
    if not np.any(delta):  # by the Gaussians of the second term, so that errors cancel and nothing is gained at var = 0
        square = mean * mean / total
        known = known if resolved is None else known / total
        return np.asarray(sum(a * _gaussian(square, c, known) for c, a in zip(_WIDTHS, _HEIGHTS, strict=True)))
    s = np.sqrt(total)
    if resolved is None:
        return _entropy_at(mean / s, delta / s)
    return _expected_by_quadrature(mean / s, known / total, delta / s)


def expected_best(left: npt.ArrayLike, right: npt.ArrayLike, var: npt.ArrayLike) -> FloatArray:
    """Expected utility of the better of two items, E max(f_left, f_right) (EUBO), on the scale of the means.

    ``left`` and ``right`` are means of utilities, ``var`` the variance of their difference. mean_left Φ(a) +
    mean_right Φ(-a) + s φ(a) with a = (mean_left - mean_right) / s (Clark 1961).
    """
    left, right = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    s = np.sqrt(np.asarray(var, dtype=float))
    gap = np.abs(left - right)
    # The larger mean, and what the smaller may add to it: s (φ(a) - a Φ(-a)) with a = gap / s >= 0.
    a = np.divide(gap, s, out=np.full(np.shape(gap * s), np.inf), where=s > 0.0)
    density = np.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.maximum(left, right) + s * density - gap * ndtr(-a))


def _apart(
    expected: Callable[[FloatArray, FloatArray, FloatArray], FloatArray], mean: FloatArray, var: FloatArray,
    delta: FloatArray,
) -> FloatArray:  # fmt: skip
    """Expected entropies for large thresholds: there two questions, which side of δ, and which of -δ."""
    delta = np.broadcast_to(delta, mean.shape)
    far, total = delta > _FAR, np.empty(mean.shape)
    total[~far] = expected(mean[~far], var[~far], delta[~far])
    z, v, d, none = mean[far], var[far], delta[far], np.zeros(int(far.sum()))
    total[far] = expected(z - d, v, none) + expected(z + d, v, none)
    return total


def _floats(*values: npt.ArrayLike) -> tuple[FloatArray, ...]:
    """Arrays of one shape, the first two at least; a threshold that is one for all stays so."""
    first, second = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values[:2]))
    return (first, second, *(np.asarray(value, dtype=float) for value in values[2:]), np.zeros(()))[:3]


def _gaussian(square: FloatArray, c: float, var: FloatArray) -> FloatArray:
    """E exp(-z² / (2 c)); ``square`` is the squared mean of z."""
    width = var + c
    return np.asarray(np.sqrt(c / width) * np.exp(square * (-0.5 / width)))


def _entropy_at(z: FloatArray, delta: FloatArray) -> FloatArray:
    """Entropy of the answer at a known margin, in bits."""
    z = np.abs(z)
    not_left = ndtr(delta - z)
    right = ndtr(-delta - z)
    total = entr(right) - xlog1py(1.0 - not_left, -not_left)
    if np.any(delta):
        total = total + entr(not_left - right)
    return np.asarray(total / _LOG_2)


def _bump_heights(delta: FloatArray) -> tuple[FloatArray, IntArray]:
    """Heights of the bumps, (n_thresholds, n_bumps), for the distinct thresholds, and the threshold of each entry."""
    thresholds, owner = np.unique(np.maximum(delta, _SMALLEST_THRESHOLD), return_inverse=True)
    return _heights_at(thresholds), owner.reshape(delta.shape)


def _heights_at(thresholds: FloatArray) -> FloatArray:
    """Heights of the bumps at rising thresholds, (n_thresholds, n_bumps); many are interpolated, to 2e-8 bits.

    Heights are linear in the entropies, which are analytic in δ but for δ log δ at 0: by Chebyshev nodes in δ + log δ.
    """
    ends = thresholds[[0, -1]] + np.log(thresholds[[0, -1]])
    n_nodes = _FEWEST_NODES + math.ceil(_NODES_IN_DELTA * (ends[1] - ends[0]))
    if len(thresholds) > n_nodes:
        x, degree = chebpts1(n_nodes), n_nodes - 1
        nodes = wrightomega(ends[0] + 0.5 * (x + 1.0) * (ends[1] - ends[0]))
        heights = np.linalg.solve(chebvander(x, degree), _fitted_heights(nodes, float(thresholds[-1])))
        place = 2.0 * (thresholds + np.log(thresholds) - ends[0]) / (ends[1] - ends[0]) - 1.0
        return np.asarray(chebvander(place, degree) @ heights)
    return _fitted_heights(thresholds, float(thresholds[-1]))


def _fitted_heights(thresholds: FloatArray, most: float) -> FloatArray:
    """The heights by least squares, for thresholds up to ``most``; 600 entropies each."""
    centres = _BUMP_STEP * np.arange(math.ceil((most + _BUMP_MARGIN) / _BUMP_STEP) + 1)
    z = np.linspace(0.0, most + _FIT_MARGIN, _FIT_POINTS)[:, None]
    bumps = np.exp(-0.5 * ((z - centres) / _BUMP_WIDTH) ** 2)
    bumps[:, 1:] += np.exp(-0.5 * ((z + centres[1:]) / _BUMP_WIDTH) ** 2)
    return np.asarray(np.linalg.lstsq(bumps, _entropy_at(z, thresholds), rcond=1e-10)[0].T)


def _expected_by_quadrature(mean: FloatArray, var: FloatArray, delta: FloatArray) -> FloatArray:
    """E h(answer | z) by the trapezoid rule over the ranges where the entropy is not negligible, (n,)."""
    mean, var, delta = np.broadcast_arrays(mean, var, delta)
    if np.any(delta > _FAR):
        return _apart(_expected_by_quadrature, mean, var, delta)
    shape, (mean, var, delta) = mean.shape, (np.abs(mean.ravel()), var.ravel(), delta.ravel())
    root, width = np.sqrt(var), 1.0 / np.sqrt(1.0 + var)
    spread = root * delta * width * width
    centre = -root * mean * width * width
    half = spread + _HALF_WINDOW * width
    n_nodes = 1 + 2 * math.ceil(_NODES_PER_UNIT * float(np.max(half / width, initial=_HALF_WINDOW)))
    node = np.linspace(-1.0, 1.0, n_nodes)
    total = np.empty(len(mean))
    step = max(1, _ENTRIES_AT_ONCE // n_nodes)
    for start in range(0, len(mean), step):
        some = slice(start, start + step)
        x = centre[some, None] + half[some, None] * node
        h = _entropy_at(mean[some, None] + root[some, None] * x, delta[some, None])
        weight = np.exp(-0.5 * x * x) * (half[some, None] * (node[1] - node[0]) / math.sqrt(2.0 * math.pi))
        total[some] = np.einsum("ij,ij->i", h, weight)
    return total.reshape(shape)


# Scores of some pairs, given how much of their variance other questions resolve.
Score = Callable[[Any, FloatArray | None], FloatArray]

_NO_VARIANCE = 1e-10  # of the largest variance: what rounding leaves of the variance between identical items
_PAIRS_IN_CACHE = 2**14
_SHORTLIST = 2**15  # eight times as many each time that a pair beyond them may be better
_RESCORED_FIRST = 4096  # four times as many each time that these do not decide


def no_variance(var: FloatArray) -> BoolArray:
    """Whether margins have no variance but for rounding, as those of identical items; shape (n,)."""
    return np.asarray(var <= _NO_VARIANCE * var.max(initial=0.0))


def shuffled(var: FloatArray, rng: np.random.Generator) -> IntArray:
    """All pairs in random order, but those without variance last."""
    order = rng.permutation(len(var))
    return np.asarray(order[np.argsort(no_variance(var)[order], kind="stable")])


def greedy(
    score: Score,
    var: FloatArray,
    left: IntArray,
    right: IntArray,
    utilities: Utilities,
    n: int,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """Places and scores (at most n,) of pairs chosen one by one for the largest gain, drawn among equal ones.

    Information about others never raises the gain of a question, so an earlier score is a bound: only pairs that might
    be the best by it are scored again. Rows of G are such that Cov(f) - Gᵀ G is the covariance given the questions.
    """
    bound = np.empty(len(var))
    for start in range(0, len(var), _PAIRS_IN_CACHE):
        bound[start : start + _PAIRS_IN_CACHE] = score(slice(start, start + _PAIRS_IN_CACHE), None)
    idle = no_variance(var)
    n_open = len(var) - int(idle.sum())
    bound[idle] = -np.inf
    if n == 1 and n_open:  # nothing to condition on
        first = np.array([rng.choice(equal_to_best(bound))])
        return first, bound[first]
    rows = None if utilities.Phi is None else utilities.rows()
    G = np.zeros((min(n, n_open), len(utilities.mean)))
    fresh = np.zeros(len(var), dtype=np.int64)  # number of questions that the bound takes into account
    chosen: list[int] = []
    scores: list[float] = []
    size = _SHORTLIST
    shortlist, outside = _best_of(bound, size)
    for k in range(len(G)):
        floor, at_once = -np.inf, _RESCORED_FIRST
        while True:
            here = bound[shortlist]
            best = shortlist[equal_to_best(here)]
            if float(bound[best].min()) <= outside:
                size *= 8
                shortlist, outside = _best_of(bound, size)
                continue
            if (fresh[best] == k).all():
                break
            stale = shortlist[(here >= floor - _margin(floor)) & (here > -np.inf) & (fresh[shortlist] < k)]
            if len(stale) > at_once:
                stale = stale[np.argpartition(bound[stale], -at_once)[-at_once:]]
            bound[stale] = score(stale, _resolved(G[:k], left[stale], right[stale]))
            fresh[stale] = k
            floor, at_once = max(floor, float(bound[stale].max())), 4 * at_once
        one = int(rng.choice(best))
        chosen.append(one)
        scores.append(float(bound[one]))
        bound[one] = -np.inf
        a, b = int(left[one]), int(right[one])
        g = _against(utilities, rows, a, b) - (G[:k, a] - G[:k, b]) @ G[:k]
        G[k] = g / np.sqrt(1.0 + max(g[a] - g[b], 0.0))
    last = np.flatnonzero(idle).astype(np.int64) if n > n_open else np.zeros(0, dtype=np.int64)
    last = last[rng.permutation(len(last))[: n - n_open]]
    worth = score(last, _resolved(G, left[last], right[last]))
    return np.append(np.array(chosen, dtype=np.int64), last), np.append(np.array(scores), worth)


def equal_to_best(score: FloatArray) -> IntArray:
    """Places of the largest score, and of those equal to it but for rounding."""
    best = float(score.max())
    return np.flatnonzero(score >= best - _margin(best)).astype(np.int64)


def _margin(best: float) -> float:
    return EQUAL * max(1.0, abs(best)) if math.isfinite(best) else 0.0


def _best_of(bound: FloatArray, size: int) -> tuple[IntArray, float]:
    """The places of the largest bounds, in order of place, and the largest bound of all others."""
    if size >= len(bound):
        return np.arange(len(bound)), -np.inf
    place = np.argpartition(bound, -size)
    return np.sort(place[-size:]), float(bound[place[:-size]].max())


def _resolved(G: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Variance of pairs that the questions behind G resolve."""
    difference = G[:, left] - G[:, right]
    return np.asarray(np.einsum("ij,ij->j", difference, difference))


def _against(utilities: Utilities, rows: FloatArray | None, a: int, b: int) -> FloatArray:
    """Covariance of all utilities with f(a) - f(b), shape (n_items,)."""
    if rows is None:
        return np.asarray(utilities.covariance[:, a] - utilities.covariance[:, b])
    g = rows @ (utilities.covariance @ (rows[a] - rows[b]))
    if len(utilities.own):
        g[a] += utilities.own[a]
        g[b] -= utilities.own[b]
    return np.asarray(g)
