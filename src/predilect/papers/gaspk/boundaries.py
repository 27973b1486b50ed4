"""Indifference curves and willingness to pay: how much of one attribute offsets how much of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from predilect._base.text import quoted
from predilect._base.types import BoolArray, FloatArray
from predilect.errors import DataError
from predilect.inference.likelihoods.special import TAILS_95
from predilect.papers.gaspk.posterior.joint import CharacteristicDraws, Mixtures, draw
from predilect.papers.gaspk.questions import codes_of, frame_of, limits, mixtures_of, typical_size, warn_outside
from predilect.papers.gaspk.tradeoffs.map import Step, tidy

_N_DRAWS = 1000
_SIDE, _STRETCH = 20, 4.0  # points of a line on each side of 0, and by how much they are denser near it
_NUMBERS_AT_ONCE = 20_000_000
_VALUES = 9


def indifference(
    model: Any,
    attribute: str,
    against: str,
    at: Sequence[float] | None = None,
    user: Any = None,
    *,
    other: Mapping[str, float] | None = None,
) -> Any:
    """The indifference curve: for changes of one attribute the change of another at which f_u = 0.

    Parameters
    ----------
    model : GaSPK
        Fitted.
    attribute : str
        A number ("time"), or a change of category ("fuel=gas instead of fuel=oil", "fuel=gas").
    against : str
        A number: its change that makes the trade-off neither better nor worse.
    at : sequence of float, optional
        Changes of ``attribute`` in own units. By default nine over the range of the trade-offs learned from; of
        categories -1, 0 and 1.
    user : id, list of ids or "all", optional
        By default the average of the people.
    other : mapping of str to float, optional
        Changes of other attributes, the same in every row; 0 by default.

    Returns
    -------
    frame : data frame of the caller's kind
        Columns user (if asked for), the attribute, the other one (where the mean evaluation is 0), lower and upper
        (95 % interval) and share_without. Units are in the names. With p_accept > p_reject on one side of the curve and
        less on the other.

    Raises
    ------
    DataError
        If an attribute or person is not known, both are the same, ``against`` is a category, or a number is not finite.

    Warns
    -----
    DataWarning
        If values of ``attribute`` or ``other`` lie outside the range of the trade-offs learned from.

    Notes
    -----
    Of several such changes the one nearest to 0, within the range of the trade-offs learned from: beyond it a
    function returns to its prior and its zeros mean nothing. The interval is that of 1 000 joint draws of the
    posterior. A draw without a zero counts as inf or -inf: as beyond that end of the range at which the evaluation is
    nearer to 0. share_without is the share of such draws, and lower and upper may be infinite: the answers do not show
    that any amount would do. Draws reflect the uncertainty of the characteristics and of people's weights. How often
    such intervals held the truth is in ``models/gaspk/posterior/joint.py``: for single people take exact weights.
    """
    model = model._now()
    one, two = model.trade_offs_.step(attribute), model.trade_offs_.step(against)
    _check_amount(two, "against")
    if one.source == two.source and one.dimension.label == two.dimension.label:
        raise DataError(f'attribute and against are both "{one.label}"; name two.')
    values = _default_values(model, one) if at is None else _numbers(at, "at")
    fixed = np.zeros(model.trade_offs_.n_dimensions)
    for name, amount in (other or {}).items():
        held = model.trade_offs_.step(name)
        if held.label in (one.label, two.label):
            raise DataError(f'"{name}" is what the curve is about; other says what else changes.')
        fixed = fixed + _numbers([amount], f'other["{name}"]')[0] * held.direction
    starts = fixed + values[:, None] * one.direction
    warn_outside(model, starts)
    found = _offsets(model, starts, two, user)
    columns: dict[str, Any] = {} if found.labels is None else {"user": found.labels}
    columns |= {one.label: np.tile(values, found.n_people), two.label: found.value}
    return frame_of(model, columns, found.columns)


def willingness(
    model: Any, pay_with: str, attribute: str | None = None, change: float | None = None, user: Any = None
) -> Any:
    """Willingness to pay: how much of one attribute, such as a price, offsets a change of another.

    Parameters
    ----------
    model : GaSPK
        Fitted.
    pay_with : str
        A number, such as a price.
    attribute : str, optional
        A number or a change of category; by default all but ``pay_with``: categories instead of the first of each
        column.
    change : float, optional
        How much of the attribute, in own units: by default 1; a round number near its standard deviation over the
        items where 1 lies outside the range of the trade-offs learned from. Of categories 1: one instead of the other.
    user : id, list of ids or "all", optional
        By default the average of the people.

    Returns
    -------
    frame : data frame of the caller's kind
        One row a person and attribute: user (if asked for), attribute, change, a column called like ``pay_with``, lower
        and upper (95 % interval), and share_without as for :func:`indifference`. If a person gives up at most 3 of
        ``pay_with`` for the change, it is 3 where that is a price, and -3 where more of it is better. A change that has
        to be made up for has the other sign.

    Raises
    ------
    DataError
        As for :func:`indifference`.

    Notes
    -----
    A change of finite size: the zero of f_u(change, y) in y, not a ratio of slopes, from which it differs where f
    is not linear. Where f hardly depends on ``pay_with`` no amount of it makes up for anything: then values are
    infinite, share_without is large, and there is no willingness to speak of. That of the average of the people is not
    the average of theirs. People share the draws; cost: a solution for each draw, then about 1 ms for each person and
    attribute.
    """
    model = model._now()
    trade_offs = model.trade_offs_
    two = trade_offs.step(pay_with)
    _check_amount(two, "pay_with")
    if attribute is None:
        steps = [step for step in trade_offs.steps() if step.source != two.source]
        if not steps:
            raise DataError(f'there is no attribute beside "{two.label}".')
    else:
        steps = [trade_offs.step(attribute)]
        if steps[0].dimension.label == two.dimension.label:
            raise DataError(f'attribute and pay_with are both "{two.label}"; name two.')
    sizes = np.array([_default_change(model, step) for step in steps])
    if change is not None:
        sizes[:] = _numbers([change], "change")[0]
    starts = sizes[:, None] * np.array([step.direction for step in steps])
    warn_outside(model, starts)
    found = _offsets(model, starts, two, user)
    columns: dict[str, Any] = {} if found.labels is None else {"user": found.labels}
    label = pl.Series([step.label for step in steps])
    added = {
        "attribute": label.gather(np.tile(np.arange(len(steps)), found.n_people)),
        "change": np.tile(sizes, found.n_people), two.label: found.value,
    }  # fmt: skip
    return frame_of(model, columns | added, found.columns)


class _Offsets:
    """Zeros along lines, for people: rows are people, and within them lines."""

    def __init__(self, labels: list[Any] | None, n_people: int, zeros: FloatArray) -> None:
        n_lines = zeros.shape[1]
        self.n_people = n_people
        self.labels = None if labels is None else pl.Series(labels).gather(np.repeat(np.arange(n_people), n_lines))
        self.value = zeros[:, :, 0].ravel()
        flat = zeros.reshape(n_people * n_lines, -1)
        self.columns = {"lower": flat[:, 1], "upper": flat[:, 2], "share_without": flat[:, 3]}


def _offsets(model: Any, starts: FloatArray, two: Step, user: Any) -> _Offsets:
    """Amounts of ``two`` that offset trade-offs, shape (n_lines, k), for the people asked for."""
    posterior, kernel = model.posterior_, model.hyperparameters_.kernel
    who = codes_of(model, user)
    people, labels = mixtures_of(model, who), None if who is None else who[1]
    n_people = len(people.gamma)
    y = _line(*limits(model)[two.dimension.label])
    points = starts[:, None, :] + y[:, None] * two.direction
    draws = draw(posterior, kernel, points, _N_DRAWS, model.seed_)
    zeros = np.empty((n_people, len(starts), 4))
    step = max(1, _NUMBERS_AT_ONCE // (len(starts) * len(y) * _N_DRAWS))
    for start in range(0, n_people, step):
        some = slice(start, start + step)
        zeros[some] = _summary(draws, people.of(some), y, len(starts))
    return _Offsets(labels, n_people, zeros)


def _summary(draws: CharacteristicDraws, people: Mixtures, y: FloatArray, n_lines: int) -> FloatArray:
    """Zero of the mean, 2.5 and 97.5 % quantiles of those of the draws, share without; shape (p, n_lines, 4)."""
    n_people, size = len(people.gamma), float(np.abs(y).max())
    out = np.empty((n_people, n_lines, 4))
    out[..., 0] = tidy(nearest_zero((people.gamma @ draws.mean).reshape(n_people, n_lines, -1), y), size)
    found = nearest_zero(draws.of(people).reshape(n_people, _N_DRAWS, n_lines, -1), y)
    # A draw, and no interpolation between two: one of them may be infinite.
    low, high = np.quantile(found, TAILS_95, axis=1, method="inverted_cdf")
    out[..., 1], out[..., 2] = tidy(low, size), tidy(high, size)
    out[..., 3] = np.isinf(found).mean(axis=1)
    return out


def nearest_zero(f: FloatArray, y: FloatArray) -> FloatArray:
    """Zero nearest to y = 0 of functions f (..., m) at y (m,), by linear interpolation; shape (...).

    y ascends and holds 0. inf or -inf where there is none: the end at which |f| is smaller.
    """
    middle = int(np.flatnonzero(y == 0.0)[0])
    crosses = np.diff(f > 0.0, axis=-1)
    right = _first_zero(f[..., middle:], crosses[..., middle:], y[middle:])
    before = crosses[..., :middle][..., ::-1]
    left = _first_zero(f[..., middle::-1], before, y[middle::-1])
    zero = np.where(np.abs(left) < np.abs(right), left, right)
    none = np.isinf(zero)
    zero[none] = np.where(np.abs(f[..., -1][none]) <= np.abs(f[..., 0][none]), np.inf, -np.inf)
    return np.where(f[..., middle] == 0.0, 0.0, zero)


def _first_zero(f: FloatArray, crosses: BoolArray, y: FloatArray) -> FloatArray:
    """The first zero along y; inf where there is none."""
    if len(y) < 2:
        return np.full(f.shape[:-1], np.inf)
    j = crosses.argmax(axis=-1)[..., None]
    a, b = np.take_along_axis(f, j, axis=-1), np.take_along_axis(f, j + 1, axis=-1)
    found = np.take_along_axis(crosses, j, axis=-1)
    zero = y[j] - a * (y[j + 1] - y[j]) / np.where(found, b - a, 1.0)
    return np.where(found, zero, np.inf)[..., 0]


def _line(low: float, high: float) -> FloatArray:
    """Amounts from low <= 0 to high >= 0, 0 among them and the others denser near it."""
    u = np.sinh(_STRETCH * np.linspace(0.0, 1.0, _SIDE + 1)) / np.sinh(_STRETCH)
    left = low * u[:0:-1] if low < 0.0 else np.zeros(0)
    return np.concatenate([left, [0.0], high * u[1:] if high > 0.0 else np.zeros(0)])


def _default_values(model: Any, step: Step) -> FloatArray:
    if not step.is_number:
        return np.array([-1.0, 0.0, 1.0])
    low, high = limits(model)[step.dimension.label]
    return tidy(np.linspace(low, high, _VALUES), max(abs(low), abs(high)))


def _default_change(model: Any, step: Step) -> float:
    low, high = limits(model)[step.dimension.label]
    return 1.0 if not step.is_number or low <= 1.0 <= high else typical_size(model, step)


def _check_amount(step: Step, what: str) -> None:
    if not step.is_number:
        raise DataError(f'{what} must be a number, of which there can be more or less; "{step.label}" is a category.')


def _numbers(values: Any, what: str) -> FloatArray:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must hold numbers, got {quoted(values)}.") from error
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise DataError(f"{what} must hold finite numbers, at least one, got {quoted(values)}.")
    return numbers
