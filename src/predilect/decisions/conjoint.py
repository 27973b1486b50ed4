"""The conjoint kit: part-worths, importances, willingness to pay and market shares, from draws of coefficients.

It knows no model: whatever gives draws of a person's coefficients can use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from predilect._base.arguments import check_choice
from predilect._base.text import did_you_mean, either
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.choices import Choices
from predilect.errors import DataError
from predilect.inference.likelihoods.special import TAILS_95, Z_95

RULES = ("share", "first_choice", "randomised")
OF = ("population", "respondents")  # of whom an average is, and its interval
_WEIGHTS = (0, 1)  # which stream of the seed
_GUESSES = 0.9  # probability of guessing
_ROUNDING = 1e-9  # of the largest coefficient: levels of a category sum to 0
_NOTHING = 0.05  # share of a squared spread that is seen: below it the interval is as good as from 0 to infinity
_ZERO = 0.025  # share of draws beyond which a price may be without effect
AIMS = ("share", "revenue", "margin")
_STEP = 1e-4  # of central differences of a chance, in units of utility
_MOST_LINES = 2000
_MOST_OF_FEW = 0.25  # of a mean that 1 % of the people may make before it is said


class PersonDraws(Protocol):
    """Draws of the coefficients of people, by their codes.

    -1 is the population's central person, None anybody: somebody of the population without answers.
    """

    @property
    def levels(self) -> Sequence[tuple[str, str]]:
        """Attribute and level of each coefficient; the level of a number is empty."""
        ...

    @property
    def n_people(self) -> int:
        """Number of people."""
        ...

    @property
    def of_one_population(self) -> bool:
        """Whether all draws are at one estimate of how people differ, and not over what is possible of it."""
        ...

    def coefficients(self, user: int) -> FloatArray:
        """Draws in the units of the attributes, (R, n_levels); those of the levels of a category sum to 0."""
        ...

    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """The population's means in draws, (R, n_levels), and standard deviations with 95 % intervals, (3, n_levels).

        None where these follow from the draws of people.
        """
        ...

    def ranges(self, user: int) -> FloatArray:
        """How far utilities are apart by each attribute over the items, (R, n_attributes)."""
        ...

    def utilities(self, user: int | None, rows: Any) -> FloatArray:
        """Utilities of items with these columns of the model, (R, n_items)."""
        ...

    def chances(self, V: FloatArray, user: int | None, rows: Any) -> FloatArray:
        """Probabilities of each of some items to be chosen, from their utilities (R, n_items); of the same shape."""
        ...

    def chance_of_first(self, V: FloatArray, user: int | None, rows: Any, sets: IntArray) -> FloatArray:
        """Probability that the first item of each of n sets is chosen, (R, n), from utilities (R, n, k).

        ``sets``: places of the items in ``rows``, (n, k).
        """
        ...

    def expected_best(self, V: FloatArray, user: int | None, rows: Any) -> FloatArray:
        """Expected utility, with its noise, of the item that is chosen, (R,), up to a constant."""
        ...

    def pay_of_people(self, price: int) -> PayOfPeople | None:
        """Of the ratio over people, in units of the coefficient at ``price``; None where it has no known mean."""
        ...


class PayOfPeople(NamedTuple):
    """Median and mean over people of what they would pay for each unit, in draws of the population, (R, n_levels).

    ``top``: what part of the mean is of the 1 % of people who would pay most, about, (n_levels,).
    """

    median: FloatArray
    mean: FloatArray
    top: FloatArray


def rows_at(rows: Any, index: Any) -> Any:
    """Some of the items whose columns of a model these are."""
    return type(rows)._make(one[index] for one in rows)


class Span(NamedTuple):
    """What of an attribute occurs in the items: its columns, and their rows among which the extremes are."""

    columns: IntArray
    rows: FloatArray


def spans_of(
    levels: Sequence[tuple[str, str]], report: FloatArray, X: FloatArray, has: BoolArray | None = None
) -> list[Span]:
    """Spans of the attributes over items with columns X (n_items, d), which are ``report`` (n_levels, d) by level.

    ``has``: whether an item has what a column is of, (n_items, d); by default all have all.
    """
    found = []
    for name in dict.fromkeys(attribute for attribute, _ in levels):
        mine = [k for k, (attribute, _) in enumerate(levels) if attribute == name]
        columns = np.flatnonzero(report[mine].any(axis=0))
        rows = X if has is None else X[has[:, columns].any(axis=1)]
        values = np.unique(rows[:, columns], axis=0)
        found.append(Span(columns, values[[0, -1]] if len(columns) == 1 else values))
    return found


def ranges_of(weights: FloatArray, spans: Sequence[Span]) -> FloatArray:
    """How far utilities are apart by each attribute, (R, n_attributes), from weights of the columns (R, d)."""
    return np.stack([np.ptp(weights[:, one.columns] @ one.rows.T, axis=1) for one in spans], axis=1)


def attributes_of(draws: PersonDraws) -> list[str]:
    """Names of the attributes, each once."""
    return list(dict.fromkeys(attribute for attribute, _ in draws.levels))


def part_worths(draws: PersonDraws, users: Sequence[Any]) -> dict[str, Any]:
    """Columns user, attribute, level, mean, sd, lower, upper: everybody's coefficients with 95 % intervals."""
    found = [_summary(draws.coefficients(code)) for code in range(draws.n_people)]
    n = len(draws.levels)
    table: dict[str, Any] = {
        "user": [user for user in users for _ in range(n)],
        "attribute": [attribute for attribute, _ in draws.levels] * len(users),
        "level": [level for _, level in draws.levels] * len(users),
    }
    return table | {name: np.concatenate([one[name] for one in found]) for name in ("mean", "sd", "lower", "upper")}


def coefficients(draws: PersonDraws) -> dict[str, Any]:
    """Columns attribute, level, mean, sd, lower, upper, spread, spread_lower, spread_upper: those of the population.

    ``spread`` is the standard deviation between people with a 95 % interval.
    """
    known = draws.population()
    central, (spread, lower, upper) = (draws.coefficients(-1), _spreads(draws)) if known is None else known
    return {
        "attribute": [attribute for attribute, _ in draws.levels], "level": [level for _, level in draws.levels],
        **_summary(central), "spread": spread, "spread_lower": lower, "spread_upper": upper,
    }  # fmt: skip


def _spreads(draws: PersonDraws) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Standard deviation between people, its mean over the draws and its 95 % interval; three (n_levels,).

    The interval is of the draws, or, where they are of one population, by :func:`interval_of_spread`.
    """
    exponent = _exponents(draws.coefficients(-1))  # of units in which squares neither overflow nor vanish
    total, squares, known = np.zeros(()), np.zeros(()), np.zeros(())
    first = np.ldexp(draws.coefficients(0), -exponent)
    for code in range(draws.n_people):
        one = np.ldexp(draws.coefficients(code), -exponent)
        away = one - first
        total, squares, known = total + away, squares + away**2, known + one.var(axis=0)
    n = draws.n_people
    spread = _summary(np.sqrt(np.maximum(squares / n - (total / n) ** 2, 0.0)))
    if draws.of_one_population:
        spread["lower"], spread["upper"] = interval_of_spread(spread["mean"], known / n, n)
    mean, lower, upper = (np.ldexp(spread[name], exponent) for name in ("mean", "lower", "upper"))
    return mean, lower, upper


def interval_of_spread(s: FloatArray, v: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """95 % interval of standard deviations between n people whose coefficients are normal, each known with variance v.

    By their information: of the logarithm of the spread s the standard deviation is (1 - v / s²)⁻¹ (2 n)^-½.
    """
    between = np.maximum(1.0 - np.divide(v, s * s, out=np.zeros_like(v), where=s > 0.0), _NOTHING)
    factor = np.exp(Z_95 / (between * np.sqrt(2.0 * n)))
    return s / factor, s * factor


def importances(draws: PersonDraws, of: str = "population", seed: int = 0) -> dict[str, Any]:
    """Columns attribute, importance, spread, lower, upper, of: shares of utility's range that attributes make, sum 1.

    ``importance`` is the mean over people, with the 95 % interval of that of the people ``of`` whom it is, see
    :func:`average`; ``spread`` the standard deviation between people.
    """
    of_people = (_shares(draws.ranges(code)) for code in range(draws.n_people))
    mean, spread, by_draw = average(of_people, of, seed)
    lower, upper = ends(by_draw, mean)
    names = attributes_of(draws)
    return {
        "attribute": names, "importance": mean, "spread": spread, "lower": lower, "upper": upper,
        "of": [of] * len(names),
    }  # fmt: skip


def willingness_to_pay(draws: PersonDraws, price: str, user: int = -1) -> dict[str, Any]:
    """Columns attribute, level, median, lower, upper, said: what one unit is worth, in units of the price.

    Quantiles of the ratio of draws, never a mean over a standard deviation. Where the price may be without effect the
    ratio has no bounds: they are infinite, and ``said`` says so. Where the ratio has a known mean over people, of the
    population (-1) the median over people, and columns mean, mean_lower, mean_upper with theirs. DataError if there is
    no such price.
    """
    names = [attribute for attribute, _ in draws.levels]
    c = draws.coefficients(user)
    numbers = _numbers(draws.levels, c)
    if price not in numbers:
        raise DataError(
            f'"{price}" is no attribute that is a number; these are: {", ".join(numbers) or "none"}.'
            f"{did_you_mean(price, numbers)}"
        )
    place = numbers[price]
    positive = float((c[:, place] >= 0.0).mean())
    others = [k for k in range(len(names)) if k != place]
    if not c[:, place].all():
        raise DataError(f'the coefficient of "{price}" is 0 in some draws: nothing can be valued in it')
    people = draws.pay_of_people(place) if user == -1 else None
    ratio = -c[:, others] / c[:, [place]] if people is None else people.median[:, others]
    found: dict[str, tuple[FloatArray, ...]] = {"": _median_and_ends(ratio)}
    said = [""] * len(others)
    if people is not None:
        found["mean"] = _median_and_ends(people.mean[:, others])
        said = [_of_few(top) for top in people.top[others]]
    if positive >= 1.0 - _ZERO:
        said = [f"more {price} is better: amounts are what people would have to be given more of"] * len(others)
    elif positive > _ZERO:
        nothing = np.full(len(others), np.inf)
        found = {name: (one[0], -nothing, nothing) for name, one in found.items()}
        why = f"unbounded: {price} may matter not at all, or the other way round ({positive:.0%} of the draws)"
        said = [why] * len(others)
    table: dict[str, Any] = {"attribute": [names[k] for k in others], "level": [draws.levels[k][1] for k in others]}
    for name, one in found.items():
        heads = (name or "median", *(f"{name}_{end}".removeprefix("_") for end in ("lower", "upper")))
        table |= dict(zip(heads, one, strict=True))
    return table | {"said": said}


def _median_and_ends(draws: FloatArray) -> tuple[FloatArray, ...]:
    """Median of draws (R, k) and their 95 % interval; of amounts that are infinite in some draws these are draws."""
    method = "linear" if np.isfinite(draws).all() else "inverted_cdf"
    return tuple(np.quantile(draws, (0.5, *TAILS_95), axis=0, method=method))  # type: ignore[call-overload]


def _of_few(top: float) -> str:
    """Where a mean over people is that of a tail, in words; else empty."""
    few = f"{top:.0%} of the mean over people come from the 1 % who would pay most: take the median"
    return few if top > _MOST_OF_FEW else ""


def _numbers(levels: Sequence[tuple[str, str]], c: FloatArray) -> dict[str, int]:
    """Places of the coefficients (R, n_levels) that are of one unit of a number, or of a piece of one, by name."""
    found: dict[str, int] = {}
    for attribute in dict.fromkeys(attribute for attribute, _ in levels):
        mine = [k for k, (name, _) in enumerate(levels) if name == attribute]
        is_category = np.abs(c[:, mine].sum(axis=1)).max() <= _ROUNDING * np.abs(c[:, mine]).max()
        if not levels[mine[0]][1] or not is_category:
            found |= {" ".join(filter(None, levels[k])): k for k in mine}
    return found


def contrasts(draws: PersonDraws, attribute: str, user: int = -1) -> dict[str, Any]:
    """Columns level, against, mean, sd, lower, upper: differences of each two levels of a category.

    DataError if the attribute is none.
    """
    c = draws.coefficients(user)
    numbers = set(_numbers(draws.levels, c).values())
    mine = [k for k, (name, _) in enumerate(draws.levels) if name == attribute and k not in numbers]
    if not mine:
        known = dict.fromkeys(name for k, (name, _) in enumerate(draws.levels) if k not in numbers)
        raise DataError(
            f'"{attribute}" is no category with levels to compare; these are: {", ".join(known) or "none"}.'
            f"{did_you_mean(attribute, known)}"
        )
    first, second = np.triu_indices(len(mine), 1)
    names = [draws.levels[k][1] for k in mine]
    return {
        "level": [names[k] for k in first], "against": [names[k] for k in second],
        **_summary(c[:, np.array(mine)[first]] - c[:, np.array(mine)[second]]),
    }  # fmt: skip


def market_shares(
    draws: PersonDraws, rows: Any, rule: str, of: str = "population", seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of items with columns ``rows`` (k, d), the mean over people, and their 95 % intervals; three arrays (k,).

    "share": everybody chooses by the probabilities of the model. "randomised": everybody takes what is best, in each
    draw of their coefficients. "first_choice": what is best by mean utilities, of which the share is more extreme than
    it is sure: its interval is that of "randomised", made to hold it. ``of``: see :func:`average`.
    """
    check_choice("rule", rule, RULES)
    by_means: list[FloatArray] = []

    def of_people() -> Iterable[FloatArray]:
        for code in range(draws.n_people):
            V = draws.utilities(code, rows)
            if rule == "first_choice":
                by_means.append(_best(V.mean(axis=0, keepdims=True))[0])
            yield draws.chances(V, code, rows) if rule == "share" else _best(V)

    mean, _, by_draw = average(of_people(), of, seed)
    lower, upper = ends(by_draw, mean)
    if not by_means:
        return mean, lower, upper
    share = np.mean(by_means, axis=0)
    return share, np.minimum(lower, share), np.maximum(upper, share)


def average(of_people: Iterable[FloatArray], of: str, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of people's draws (R, k) over people and draws, their spread, (k,); and the average in each draw, (R, k).

    Of "respondents" the average over the people who answered. Of "population", whose sample they are, that by the
    Bayesian bootstrap (Rubin 1981): in each draw people weigh what standard exponentials say, the same for all columns.
    """
    check_choice("of", of, OF)
    rng = np.random.default_rng([seed, *_WEIGHTS])
    means: list[FloatArray] = []
    total: Any = 0.0
    weights: Any = 0.0
    for one in of_people:
        w = rng.standard_exponential((len(one), 1)) if of == "population" else 1.0
        total, weights = total + w * one, weights + w
        means.append(one.mean(axis=0))
    return np.mean(means, axis=0), sd_of(np.array(means)), np.asarray(total / weights)


def ends(by_draw: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the interval of 95 % of the draws (R, k) of parts of 1 below their mean, and of those above it; two (k,).

    The mean, unlike the median, may lie beyond the 2.5 and 97.5 % quantiles: of a share that is next to nothing in
    nearly all draws, say. Where it is the median, these are the ends. Then they are moved, in proportion to what is
    left to 0 and to 1, from around the mean of the draws to around the ``mean`` (k,) over people.
    """
    centre = by_draw.mean(axis=0)
    below = np.mean(by_draw <= centre, axis=0)
    miss = 2.0 * TAILS_95[0]
    quantiles = zip(by_draw.T, miss * below, 1.0 - miss * (1.0 - below), strict=True)
    lower, upper = np.transpose([np.quantile(draws, [low, high]) for draws, low, high in quantiles])
    one = np.ones_like(mean)
    lower = lower * np.divide(mean, centre, out=one.copy(), where=centre > 0.0)
    upper = 1.0 - (1.0 - upper) * np.divide(1.0 - mean, 1.0 - centre, out=one, where=centre < 1.0)
    return np.minimum(lower, mean), np.maximum(upper, mean)  # which rounding may undo


def fit_of_people(
    draws: PersonDraws, choices: Choices, codes: Sequence[int | None], rows: Sequence[Any]
) -> dict[str, Any]:
    """Columns choices, rlh, chance, p_guessing, guesses: how well each person's choices are explained.

    ``codes`` and ``rows`` are, for each person with choices, in their order, the code of the draws, and the columns of
    the items that the person met, ascending by item.
    """
    table: dict[str, list[Any]] = {name: [] for name in ("choices", "rlh", "chance", "p_guessing", "guesses")}
    people, first = np.unique(choices.user, return_index=True)
    for start, stop, code, met in zip(first, np.append(first[1:], len(choices.user)), codes, rows, strict=True):
        ptr = choices.ptr[start : stop + 1]
        item = np.unique(choices.item[ptr[0] : ptr[-1]], return_inverse=True)[1]
        weight, size = choices.weight[start:stop], np.diff(ptr)
        own, anybody = (_log_chances(draws, one, met, choices, slice(start, stop), item)
                        for one in (code, None))  # fmt: skip
        guessed = -np.log(size) @ weight
        # The answers together, each draw being one person.
        as_member = np.logaddexp.reduce(anybody @ weight) - np.log(len(anybody))
        p_guessing = float(expit(guessed - as_member))
        mean = np.logaddexp.reduce(own, axis=0) - np.log(len(own))
        for name, value in zip(
            table,
            (weight.sum(), np.exp(mean @ weight / weight.sum()), np.exp(guessed / weight.sum()), p_guessing,
             p_guessing > _GUESSES),
            strict=True,
        ):  # fmt: skip
            table[name].append(value)
    assert len(people) == len(codes)
    return table


def _log_chances(
    draws: PersonDraws, user: int | None, met: Any, choices: Choices, span: slice, item: IntArray
) -> FloatArray:  # fmt: skip
    """Log chances of one person's choices in each draw of the utilities of the items met, (R, n_choices)."""
    V = draws.utilities(user, met)
    ptr, sign = choices.ptr[span.start : span.stop + 1] - choices.ptr[span.start], choices.sign[span]
    size, found = np.diff(ptr), np.empty((len(V), len(sign)))
    for k in np.unique(size).tolist():
        which = np.flatnonzero(size == k)
        at = item[ptr[which][:, None] + np.arange(k)]
        sets = V[:, at] * sign[which][:, None]  # (R, n, k)
        with np.errstate(divide="ignore"):  # what is impossible in a draw
            found[:, which] = np.log(draws.chance_of_first(sets, user, met, at))
    return found


def logit_chances(V: FloatArray) -> FloatArray:
    """Chances in proportion to exp(V), row by row."""
    odds = np.exp(V - V.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _best(V: FloatArray) -> FloatArray:
    """1 for the best item of each row, shared where several are."""
    best = V.max(axis=1, keepdims=True) == V
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def _shares(ranges: FloatArray) -> FloatArray:
    total = ranges.sum(axis=1, keepdims=True)
    equal = np.full_like(ranges, 1.0 / ranges.shape[1])
    return np.asarray(np.divide(ranges, total, out=equal, where=total > 0.0))


def _exponents(draws: FloatArray) -> IntArray:
    return np.asarray(np.frexp(np.abs(draws).max(axis=0))[1])


def sd_of(draws: FloatArray) -> FloatArray:
    """Standard deviation of each column, also where squares overflow or vanish."""
    exponent = _exponents(draws)
    return np.asarray(np.ldexp(np.ldexp(draws, -exponent).std(axis=0), exponent))


def _summary(draws: FloatArray) -> dict[str, FloatArray]:
    lower, upper = np.quantile(draws, TAILS_95, axis=0)
    return {"mean": draws.mean(axis=0), "sd": sd_of(draws), "lower": lower, "upper": upper}


def elasticities(
    draws: PersonDraws, rows: Any, step: FloatArray, price: FloatArray, of: str, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Elasticity of the share of item i (row) by the price of item j (column), and its 95 % interval; three (k, k).

    ``rows``: the k items, then each once more with its price moved by ``step`` (k,), which utilities follow linearly.
    Shares S_i are means over people: (∂S_i / ∂p_j) p_j / S_i. Chances are differentiated by central differences.
    """
    k = len(price)
    offered = rows_at(rows, slice(k))

    def of_people() -> Iterable[FloatArray]:
        for code in range(draws.n_people):
            V = draws.utilities(code, rows)
            slope = (V[:, k:] - V[:, :k]) / step
            V = V[:, :k]
            parts = [draws.chances(V, code, offered)]
            for j in range(k):
                moved = np.zeros_like(V)
                moved[:, j] = _STEP
                up, down = (draws.chances(one, code, offered) for one in (V + moved, V - moved))
                by_utility = (up - down) / (2.0 * _STEP)
                parts.append(by_utility * slope[:, [j]])
            yield np.concatenate(parts, axis=1)

    mean, _, by_draw = average(of_people(), of, seed)

    def ratios(values: FloatArray) -> FloatArray:
        share, slopes = values[..., :k], values[..., k:].reshape(*values.shape[:-1], k, k)
        return np.swapaxes(slopes, -1, -2) * price / share[..., None]

    found = ratios(mean)
    by_draw = ratios(by_draw)
    lower, upper = np.quantile(by_draw + found - by_draw.mean(axis=0), TAILS_95, axis=0)
    return found, lower, upper


def surplus(
    draws: PersonDraws, price: str, rows: Any, moved: int, step: float, sets: Sequence[IntArray], of: str, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What a choice from each set is worth to people more than one from the first, in units of the price; three (n,).

    The change of the expected utility of what is chosen over how much utility falls with the price (Small and Rosen
    1981); of a logit that is the change of log Σ exp V. Mean over people, and its 95 % interval. ``rows``: items, of
    which sets have the places, and last the item at ``moved`` once more with its price moved by ``step``. DataError
    unless utility falls in every draw of everybody: else its inverse has no mean.
    """
    rising = 0.0

    def of_people() -> Iterable[FloatArray]:
        nonlocal rising
        for code in range(draws.n_people):
            V = draws.utilities(code, rows)
            fall = (V[:, moved] - V[:, -1]) / step
            rising += float((fall <= 0.0).mean()) / draws.n_people
            best = np.stack([draws.expected_best(V[:, one], code, rows_at(rows, one)) for one in sets], axis=1)
            yield (best - best[:, :1]) / np.where(fall > 0.0, fall, np.inf)[:, None]

    mean, _, by_draw = average(of_people(), of, seed)
    if rising:
        raise DataError(
            f"utility does not fall with {price} in {rising:.2g} of the draws of people, so that no amount of it says "
            f'what a choice is worth. Take a model in which it always does: MixedLogit with distributions={{"{price}": '
            '"negative log-normal"}, or "fixed"'
        )
    lower, upper = np.quantile(by_draw + mean - by_draw.mean(axis=0), TAILS_95, axis=0)
    return mean, lower, upper


class Offer(NamedTuple):
    """A set on offer: places of its items, of ours among these, and what one of each that is sold brings."""

    items: IntArray
    ours: IntArray
    worth: FloatArray


def best_of(
    draws: PersonDraws, rows: Any, offers: Sequence[Offer], of: str, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What each offer brings, for each who chooses: mean, 95 % interval, and P(it brings the most); four (n,).

    An offer brings Σ share times worth over our items. All are compared in the same draws of people's coefficients.
    """

    def of_people() -> Iterable[FloatArray]:
        for code in range(draws.n_people):
            V = draws.utilities(code, rows)
            found = (draws.chances(V[:, one.items], code, rows_at(rows, one.items)) for one in offers)
            yield np.stack([p[:, one.ours] @ one.worth for p, one in zip(found, offers, strict=True)], axis=1)

    mean, _, by_draw = average(of_people(), of, seed)
    by_draw = by_draw + mean - by_draw.mean(axis=0)
    lower, upper = np.quantile(by_draw, TAILS_95, axis=0)
    best = by_draw == by_draw.max(axis=1, keepdims=True)
    return mean, lower, upper, np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def lines_of(n: int, size: int) -> list[tuple[int, ...]]:
    """All lines of so many of n offers; DataError if there are none, or too many to go through."""
    if not 1 <= size <= n:
        raise DataError(f"a line of {size} out of {n} offers cannot be: take {either('--line', 'size=')} from 1 to {n}")
    if comb(n, size) > _MOST_LINES:
        raise DataError(
            f"{comb(n, size)} lines of {size} out of {n} offers are more than the {_MOST_LINES} that are gone through. "
            f"Leave out offers that cannot win, or take a smaller {either('--line', 'size=')}"
        )
    return list(combinations(range(n), size))
