"""Stationary kernels, sums that their derivatives need, and the median heuristic for length-scales."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.kernels.base import check_rows, positive, theta_of
from predilect.inference.gaussian.kernels.combine import Combinable

_WIDE = 64  # columns from which a matrix product is quicker than differences
# Where |a - b|² is below this share of |a|² + |b|², the product has lost too many digits: differences are taken there.
_NEAR = 1e-4
_MANY = 0.1  # share of such pairs from which differences of all are quicker
_NUMBERS_AT_ONCE = 1 << 20


def squared_distances(x: FloatArray, y: FloatArray | None, scales: FloatArray) -> FloatArray:
    """Σ_d ((x_id - y_jd) / ℓ_d)², (n, m), for length-scales (d,) or (1,); symmetric with a zero diagonal without ``y``.

    Identical rows have distance 0. n m d operations; relative error below 1e-11. From 64 columns on by
    |x|² + |y|² - 2 x·y, and by differences for close pairs, where this would cancel.
    """
    from scipy.spatial.distance import cdist  # which takes a while to import

    a = x / scales
    b = a if y is None else y / scales
    if x.shape[1] < _WIDE:
        return np.asarray(cdist(a, b, "sqeuclidean"))
    centre = b.mean(axis=0) if len(b) else 0.0  # for the product only: centring rounds differences of close rows
    a_c = a - centre
    b_c = a_c if y is None else b - centre
    sizes = _sizes(a_c, b_c)
    square: FloatArray = a_c @ b_c.T
    del a_c, b_c
    square *= -2.0
    square += sizes
    if y is None:
        square = 0.5 * (square + square.T)
    near = square < _NEAR * sizes
    if np.count_nonzero(near) > len(a) + _MANY * near.size:  # apart from the diagonal
        return np.asarray(cdist(a, b, "sqeuclidean"))
    if y is None:
        np.fill_diagonal(near, False)
        np.fill_diagonal(square, 0.0)
    for i, j in _in_parts(near, x.shape[1]):
        square[i, j] = np.square(a[i] - b[j]).sum(axis=1)
    return square


def weighted_squares(x: FloatArray, y: FloatArray | None, weights: FloatArray, square: FloatArray) -> FloatArray:
    """Σ_ij weights_ij (x_id - y_jd)² for every column d, (d,); ``square`` (n, m) are the ``squared_distances``.

    One matrix product: n m d operations, and no array of n x m x d. Close pairs, for which it would cancel, are added
    by differences: weights may grow without bound there, as the slope of Matérn-1/2 does.
    """
    y = x if y is None else y
    centre = x.mean(axis=0) if len(x) else 0.0
    a, b = x - centre, y - centre
    near = square < _NEAR * _sizes(a, b)
    near &= weights != 0.0
    out = np.zeros(x.shape[1])
    if near.any():
        for i, j in _in_parts(near & (square > 0.0), x.shape[1]):
            out += weights[i, j] @ np.square(x[i] - y[j])
        weights = np.where(near, 0.0, weights)
    out -= 2.0 * np.einsum("id,id->d", a, weights @ b)
    out += weights.sum(axis=1) @ (a * a)
    out += weights.sum(axis=0) @ (b * b)
    return out


def _sizes(a: FloatArray, b: FloatArray) -> FloatArray:
    """|a_i|² + |b_j|², (n, m)."""
    return np.asarray(np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None, :])


def _in_parts(where: BoolArray, n_columns: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows and columns of marked pairs, in pieces whose features need little memory."""
    rows, columns = np.nonzero(where)
    step = max(1, _NUMBERS_AT_ONCE // max(1, n_columns))
    for start in range(0, len(rows), step):
        yield rows[start : start + step], columns[start : start + step]


SHAPES = ("squared-exponential", "matern-1/2", "matern-3/2", "matern-5/2")
FORMS = ("isotropic", "product")


@dataclass(frozen=True, slots=True, eq=False)
class Stationary(Combinable):
    """Stationary kernel κ(r) of the distance r between rows divided by length-scales; k(x, x) = 1.

    Attributes
    ----------
    length_scales : array of float, shape (d,) or (1,)
        ℓ > 0: one for each feature (automatic relevance determination), or one for all.
    shape : str
        "squared-exponential" exp(-r²/2), "matern-1/2" exp(-r), "matern-3/2" (1 + √3 r) exp(-√3 r), "matern-5/2"
        (1 + √5 r + 5 r²/3) exp(-√5 r).
    form : str
        "isotropic": r is the Euclidean distance over all features. "product": the product over features of κ of the
        distance in one feature; for the squared exponential the same.

    Notes
    -----
    crowdgppl.md, kernels (iii): the papers' text has the product, the authors' code the isotropic form with the
    gradient of the product; here each form has its own gradient. n m d operations; a product form of d features makes d
    passes.
    """

    length_scales: FloatArray
    shape: str = "matern-3/2"
    form: str = "isotropic"

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise ValueError(f"the shape of a kernel must be one of {', '.join(SHAPES)}, not {self.shape!r}")
        if self.form not in FORMS:
            raise ValueError(f"the form of a kernel must be one of {', '.join(FORMS)}, not {self.form!r}")
        object.__setattr__(self, "length_scales", positive(self.length_scales, "length-scales"))

    @property
    def names(self) -> tuple[str, ...]:
        n = len(self.length_scales)
        return ("length_scale",) if n == 1 else tuple(f"length_scale[{d}]" for d in range(n))

    @property
    def theta(self) -> FloatArray:
        return np.log(self.length_scales)

    def with_theta(self, theta: FloatArray) -> Self:
        return replace(self, length_scales=theta_of(theta, len(self.length_scales)))

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """k(x_i, y_j), shape (n, m)."""
        self._check(x, y)
        if self._isotropic:
            return _value(self.shape, squared_distances(x, y, self.length_scales))
        out = np.ones((len(x), len(x if y is None else y)))
        for _, square in self._by_feature(x, y):
            out *= _value(self.shape, square)
        return out

    def diagonal(self, x: FloatArray) -> FloatArray:
        self._check(x, None)
        return np.ones(len(x))

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        self._check(x, y)
        square = np.square((x - y) / self.length_scales)
        if self._isotropic:
            return _value(self.shape, square.sum(axis=1))
        return np.asarray(_value(self.shape, square).prod(axis=1))

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        self._check(x, y)
        scales = self.length_scales
        if self._isotropic:
            square = squared_distances(x, y, scales)
            fall = weights * _fall(self.shape, square)
            if len(scales) == 1:
                return np.array([float(np.sum(fall * square))])
            return weighted_squares(x / scales, None if y is None else y / scales, fall, square)
        whole = weights * self(x, y)
        parts = np.zeros(x.shape[1])
        for d, square in self._by_feature(x, y):  # κ of one feature is positive: only far away it underflows
            ratio = _fall(self.shape, square) * square
            value = _value(self.shape, square)
            parts[d] = np.sum(np.divide(whole * ratio, value, out=np.zeros_like(value), where=value > 0.0))
        return parts if len(scales) > 1 else np.array([parts.sum()])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        return np.zeros(len(self.length_scales))

    def pairs_gradient(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        self._check(x, y)
        squares = np.square((x - y) / self.length_scales)
        if self._isotropic:
            parts = (weights * _fall(self.shape, squares.sum(axis=1))) @ squares
        else:
            values = _value(self.shape, squares)
            ratios = np.divide(
                _fall(self.shape, squares) * squares, values, out=np.zeros_like(values), where=values > 0.0
            )
            parts = (weights * values.prod(axis=1)) @ ratios
        return np.asarray(parts) if len(self.length_scales) > 1 else np.array([float(parts.sum())])

    @property
    def _isotropic(self) -> bool:
        return self.form == "isotropic" or self.shape == "squared-exponential"

    def _by_feature(self, x: FloatArray, y: FloatArray | None) -> Iterator[tuple[int, FloatArray]]:
        a = x / self.length_scales
        b = a if y is None else y / self.length_scales
        for d in range(a.shape[1]):
            yield d, np.square(a[:, d, None] - b[None, :, d])

    def _check(self, x: FloatArray, y: FloatArray | None) -> None:
        check_rows(x, y, len(self.length_scales) if len(self.length_scales) > 1 else None)


def matern(length_scales: npt.ArrayLike, order: float = 1.5, form: str = "isotropic") -> Stationary:
    """Matérn kernel of order 1/2, 3/2 or 5/2.

    Parameters
    ----------
    length_scales : array-like of float, shape (d,) or ()
        ℓ > 0, one for each feature or one for all.
    order : float, default 1.5
    form : {"isotropic", "product"}, default "isotropic"
        As in :class:`Stationary`.

    Raises
    ------
    ValueError
        If there is no closed form of that order.
    """
    shapes = {0.5: "matern-1/2", 1.5: "matern-3/2", 2.5: "matern-5/2"}
    if order not in shapes:
        raise ValueError(f"the order of a Matérn kernel must be 0.5, 1.5 or 2.5, not {order!r}")
    return Stationary(np.asarray(length_scales, dtype=np.float64), shapes[order], form)


def squared_exponential(x: FloatArray, y: FloatArray, length_scale: float) -> FloatArray:
    """``exp(-|x - y|² / (2 ℓ²))``, (n, m), for one ℓ > 0; population.md section 1."""
    return Stationary(np.array([length_scale]), "squared-exponential")(x, None if y is x else y)


def _value(shape: str, square: FloatArray) -> FloatArray:
    """κ at r² = square."""
    if shape == "squared-exponential":
        return np.asarray(np.exp(-0.5 * square))
    r = np.sqrt(square)
    if shape == "matern-1/2":
        return np.asarray(np.exp(-r))
    if shape == "matern-3/2":
        r *= math.sqrt(3.0)
        return np.asarray((1.0 + r) * np.exp(-r))
    r *= math.sqrt(5.0)
    return np.asarray((1.0 + r + r * r / 3.0) * np.exp(-r))


def _fall(shape: str, square: FloatArray) -> FloatArray:
    """-κ'(r) / r: the derivative of κ by log ℓ_d is this times (difference in feature d / ℓ_d)²."""
    if shape == "squared-exponential":
        return np.asarray(np.exp(-0.5 * square))
    r = np.sqrt(square)
    if shape == "matern-1/2":  # infinite at r = 0, where the difference it multiplies is 0
        return np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > 0.0)
    if shape == "matern-3/2":
        return np.asarray(3.0 * np.exp(-math.sqrt(3.0) * r))
    s = math.sqrt(5.0) * r
    return np.asarray(5.0 / 3.0 * (1.0 + s) * np.exp(-s))


MEDIAN_RULES = ("per-feature", "root", "preprint", "2020", "code", "arguments")
_MANY_FEATURES = 200
_MAX_ROWS = 1000
_DIFFERENCES = 50_000_000  # in all; beyond it fewer rows are drawn, for 30 000 features some 57


def median_length_scales(features: FloatArray, rule: str = "per-feature", random_state: int = 0) -> FloatArray:
    """Median heuristic for the length-scale of every feature.

    Parameters
    ----------
    features : array of float, shape (n, d)
    rule : str
        With m_d the median of ``|x_id - x_jd|`` over pairs of rows, and m'_d that over pairs that differ:
        "root" √d m'_d; "per-feature" and "code" m'_d, times √d for more than 200 features; "2020" m_d; "preprint"
        d m_d; "arguments" 20 √d m_d.
    random_state : int
        Seeds the draw of rows.

    Returns
    -------
    length_scales : array of float, shape (d,)
        In the units of the features. Where m_d is 0, m'_d takes its place; 1 for a constant feature, whose length-scale
        has no effect.

    Raises
    ------
    ValueError
        If there is no such rule, or a feature is not finite.

    Notes
    -----
    crowdgppl.md 2.5 (eq. 37 of the preprint, of the article of 2020, the authors' code, and their setting for
    arguments); modern.md 6 is "per-feature". **Differs from the papers**: "root", since the distance between two rows
    of d features is about √d medians; without the factor, items of ten features and more are almost uncorrelated. Of
    more than 1 000 rows as many are drawn without replacement; fewer for more than 100 features, so that 5 · 10⁷
    differences are taken at most (a few seconds). A feature that is constant in the rows drawn, but not in all, gets
    the median of its nonzero differences from that constant.

    **Differs from the code** in the number of rows drawn, and in that a seed fixes them.
    """
    check_rows(features, None)
    if rule not in MEDIAN_RULES:
        raise ValueError(f"the rule must be one of {', '.join(MEDIAN_RULES)}, not {rule!r}")
    if not np.isfinite(features).all():
        raise ValueError("features must be finite numbers; fill gaps before the length-scales are chosen")
    n_features = features.shape[1]
    most = min(_MAX_ROWS, math.isqrt(2 * _DIFFERENCES // max(1, n_features)))
    drawn = np.ascontiguousarray(drawn_rows(features, most, random_state).T)
    first, second = np.triu_indices(drawn.shape[1], 1)
    only_different = rule in ("root", "per-feature", "code")
    medians = np.zeros(n_features)
    for d, values in enumerate(drawn):
        medians[d] = _median(np.abs(values[first] - values[second]), only_different)
        if medians[d] == 0.0 and len(values):  # constant in the rows drawn
            medians[d] = _median(np.abs(features[:, d] - values[0]), True)
    root = math.sqrt(n_features)
    factor = {"preprint": float(n_features), "2020": 1.0, "arguments": 20.0 * root, "root": root}.get(
        rule, root if n_features > _MANY_FEATURES else 1.0
    )
    return np.where(medians > 0.0, factor * medians, 1.0)


def drawn_rows(features: FloatArray, most: int, random_state: int) -> FloatArray:
    """At most so many rows, drawn without replacement, in their order."""
    if len(features) <= most:
        return features
    rows = np.random.default_rng(random_state).choice(len(features), most, replace=False)
    return features[np.sort(rows)]


def _median(differences: FloatArray, only_different: bool) -> float:
    """Median of all differences, or of those other than 0, also where that of all would be 0; 0 if all are."""
    n, zeros = len(differences), len(differences) - int(np.count_nonzero(differences))
    if zeros == n:
        return 0.0
    skip = zeros if only_different or zeros > n // 2 else 0
    middle = [skip + (n - skip - 1) // 2, skip + (n - skip) // 2]
    low, high = np.partition(differences, middle)[middle]
    return 0.5 * float(low + high)


DISTANCE_RULES = ("distance", "half-distance")
_MOST_ROWS = 2000


def median_distance_scales(features: FloatArray, rule: str, random_state: int = 0) -> FloatArray:
    """Standard deviation of every feature times the median distance of standardised rows, (d,).

    ``rule`` is "distance", the median of the distances, as in the paper, or "half-distance", the root of half the
    median of their squares, as in its authors' code. From 2 000 rows at most. 1 for a constant feature; the standard
    deviations themselves where the median is 0. ValueError if there is no such rule. collaborative.md 7 (Houlsby et al.
    2012): features standardised to mean 0 and deviation 1, then one length-scale.
    """
    check_rows(features, None)
    if rule not in DISTANCE_RULES:
        raise ValueError(f"the rule must be one of {', '.join(DISTANCE_RULES)}, not {rule!r}")
    deviation = features.std(axis=0) if len(features) else np.zeros(features.shape[1])
    scales = np.where(deviation > 0.0, deviation, 1.0)
    rows = drawn_rows(features, _MOST_ROWS, random_state)
    first, second = np.triu_indices(len(rows), 1)
    squares = squared_distances(rows, None, scales)[first, second]
    median = float(np.median(squares)) if len(squares) else 0.0
    factor = math.sqrt(median if rule == "distance" else 0.5 * median)
    return scales * (factor if factor > 0.0 else 1.0)
