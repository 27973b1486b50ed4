"""Expected information of an answer, in bits, and the expected utility of the better item.

Margins z ~ N(mean, var) are in units of the noise of one answer, whose variance 1 is not part of ``var``: arrays of
one shape. The tie threshold δ (0: no ties) is one for all or one a margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import entr, ndtr, xlog1py

FloatArray = npt.NDArray[np.float64]
_LOG_2 = math.log(2.0)
# h(Φ(x)) in bits as a sum of Gaussians a exp(-x² / (2 c)); least squares on [0, 9], largest error 1.2e-7.
_WIDTHS = (0.6376920582020948, 0.8836974396664068, 1.0215781152703707)
_HEIGHTS = (0.01617882674758934, -0.4580572212681975, 1.4418785106717358)
# With ties h has bumps near ±δ: Gaussians of this width at distances from 0, largest error 3e-5.
_BUMP_WIDTH, _BUMP_STEP, _BUMP_MARGIN = 0.9, 0.6, 1.5
_FIT_POINTS, _FIT_MARGIN = 600, 8.0
_LARGEST_EXPONENT = 300.0
_FAR = 10.0  # a threshold beyond which no answer is a tie, a win and a loss at once: P(win) P(loss) < 1e-40
_HALF_WINDOW, _NODES_PER_UNIT = 10.0, 8  # of the quadrature, in widths of the integrand
_ENTRIES_AT_ONCE = 2**20


def answer_entropy(mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0) -> FloatArray:
    """Entropy of the answer in bits, the criterion of maximum entropy search: at most 1, with ties log2(3).

    collaborative.md section 5, first term. Relative error of a few ulps up to |mean| / sqrt(1 + var) = 37, where the
    entropy leaves the range of floating-point numbers, and 0 from there.
    """
    s = np.sqrt(1.0 + np.asarray(var, dtype=float))
    return _entropy_at(np.asarray(mean, dtype=float) / s, np.asarray(delta, dtype=float) / s)


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
    mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0, *, resolved: npt.ArrayLike | None = None
) -> FloatArray:
    """Mutual information of the answer and the utilities in bits (BALD); exactly 0 at var = 0 without ties.

    ``resolved`` (0 to var) is the part of the variance that unanswered questions asked before will resolve; the
    information is what the answer adds to theirs.

    collaborative.md section 5: entropy of the answer less its expected entropy given the margin. With part r of the
    variance resolved the mean is itself N(mean, r), and the first term is the expectation over it; the second does not
    change. Without ties in closed form, to 3e-7 bits and never below -3e-7; **differs from the paper** in that,
    whose eq. 11 with its units right is good to 0.003 bits. With ties to 3e-5.
    """
    mean, var, delta = _floats(mean, var, delta)
    return remaining_entropy(mean, var, delta, resolved=resolved) - expected_entropy(mean, var, delta)


def remaining_entropy(
    mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0, *, resolved: npt.ArrayLike | None = None
) -> FloatArray:
    """Entropy of the answer in bits, expected over what resolves part of the variance; arguments as :func:`bald`.

    Without ties to 2e-7 bits; with ties exact, but for ``resolved`` by quadrature, 10 µs a margin.
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


def _bump_heights(delta: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Heights of the bumps, (n_thresholds, n_bumps), for the distinct thresholds, and the threshold of each entry."""
    thresholds, owner = np.unique(delta, return_inverse=True)
    most = float(thresholds[-1])
    centres = _BUMP_STEP * np.arange(math.ceil((most + _BUMP_MARGIN) / _BUMP_STEP) + 1)
    z = np.linspace(0.0, most + _FIT_MARGIN, _FIT_POINTS)[:, None]
    bumps = np.exp(-0.5 * ((z - centres) / _BUMP_WIDTH) ** 2)
    bumps[:, 1:] += np.exp(-0.5 * ((z + centres[1:]) / _BUMP_WIDTH) ** 2)
    target = _entropy_at(z, thresholds)
    return np.asarray(np.linalg.lstsq(bumps, target, rcond=1e-10)[0].T), owner.reshape(delta.shape)


def _expected_by_quadrature(mean: FloatArray, var: FloatArray, delta: FloatArray) -> FloatArray:
    """E h(answer | z) by the trapezoid rule.

    With z = mean + sqrt(var) x, the entropy falls as exp(-(|z| - δ)²/2) outside of ±δ, so the integrand is about
    Gaussian in x, of width 1/sqrt(1 + var), around points between sqrt(var) (±δ - mean) / (1 + var).
    """
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
