"""Scales for scores: noise of one answer, log-odds, Elo points, 0 to 100, shares; scores of best-worst studies."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from predilect._base.arguments import check_choice, check_number
from predilect._base.text import either, one_line, quoted, shown
from predilect._base.types import FloatArray
from predilect.data import Vocabulary, build_frame
from predilect.decisions.candidates import Fitted
from predilect.decisions.conjoint import logit_chances
from predilect.decisions.questions import chance_of_first, code_of
from predilect.decisions.ranking import Board
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.inference.likelihoods.registry import LIKELIHOODS
from predilect.inference.likelihoods.special import TAILS_95
from predilect.inference.likelihoods.views import LOGISTIC_SLOPE

ELO_OF_LOG_ODDS = 400.0 / math.log(10.0)
_DRAWS = 200  # of each person


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit for scores, and where its zero is; defined in docs/reference/outputs.md.

    ``per_probit``: how many of this unit are one unit of utility, for differences; 1 where it is no multiple of
    utilities; ``unit``: for the axis of a plot; ``meaning``: what a score or a gap between two means, in a sentence;
    ``digits``: decimals worth showing; ``log_odds``: log-odds of an answer in one unit of utility; ``base``: score of
    the mean of the items, or of the item ``anchor``.
    """

    name: str
    per_probit: float
    unit: str
    meaning: str
    digits: int
    log_odds: float = LOGISTIC_SLOPE
    base: float = 0.0
    anchor: Any = None

    @property
    def is_linear(self) -> bool:
        """Whether a score is a multiple of a utility, so that gaps mean the same everywhere."""
        return self.name not in ("0-100", "share")

    @property
    def is_plain(self) -> bool:
        """Whether 0 is the mean of the items."""
        return self.is_linear and self.anchor is None and self.base == 0.0

    @property
    def origin(self) -> str:
        """Where the zero is, or the base."""
        if self.name == "0-100":
            return "0 is the last item, 100 the first"
        if self.name == "share":
            return "all items together are 100"
        who = "the mean of the items" if self.anchor is None else one_line(self.anchor)
        return f"{self.base:g} is {who}"

    @property
    def of_differences(self) -> Scale:
        """Scale of differences between boards: this one, or that of utilities where gaps do not mean the same."""
        return self if self.is_linear else scales_of_unit(self.log_odds)["probit"]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "name": self.name, "per_probit": self.per_probit, "unit": self.unit, "meaning": self.meaning,
            "base": self.base, "anchor": self.anchor,
        }  # fmt: skip

    def ties(self, threshold: float, spread: float = 0.0) -> str:
        """Meaning of the tie threshold, in probit units, for the median person; empty without ties."""
        if threshold <= 0.0:
            return ""
        equal = math.erf(threshold / math.sqrt(2.0))
        better, worse = (0.5 * math.erfc((threshold - gap) / math.sqrt(2.0)) for gap in (1.0, -1.0))
        share = 100.0 * (better + 0.5 * (1.0 - better - worse))
        apart = (
            f"; {self.per_probit:.{self.digits}f} apart, the better one is preferred in {100 * better:.0f} %, the "
            f"other in {100 * worse:.0f} %, and the rest are ties: a win share, ties halved, of {share:.0f} %"
        )
        if self.name == "elo":
            usual = 100.0 / (1.0 + 10.0 ** (-self.per_probit / 400.0))
            apart += f" ({usual:.0f} % by the usual formula of Elo, which knows no ties)"
        return (
            "That is without ties; with them, as here, two items with equal "
            f"scores tie in {100 * equal:.0f} % of answers{apart if self.is_linear else ''}."
        ) + self._spread_of_ties(threshold, spread)

    def _spread_of_ties(self, threshold: float, spread: float) -> str:
        if spread <= 0.0:
            return ""
        low, high = (math.erf(threshold * math.exp(sign * spread) / math.sqrt(2.0)) for sign in (-1.0, 1.0))
        return (
            " That is the middle person: people differ in how readily they call a tie, and two thirds of them tie in "
            f"{100 * low:.0f} to {100 * high:.0f} % of answers on equal items."
        )

    def scores(
        self, utilities: Utilities, items: Vocabulary, mean: FloatArray, sd: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Score, its standard deviation and the ends of its 95 % interval, (n_items,) by code.

        ``mean`` and ``sd`` are those of the centred utilities. DataError if the anchor is none of the items.
        """
        if self.name == "share":
            return _shares(utilities, mean, self.log_odds)
        factor, base, weights = self.per_probit, self.base, None
        if self.name == "0-100":
            utilities = utilities.in_sure_unit()  # of a range any unit is as much
            sd = np.sqrt(np.maximum(utilities.centred_marginals()[1], 0.0))
            low, high = float(mean.min()), float(mean.max())
            factor = 100.0 / ((high - low) or 1.0)  # where all are equal, all are at 50
            base, mean = 50.0, mean - 0.5 * (low + high)
        elif self.anchor is not None:
            place = int(items.codes([self.anchor])[0])
            weights = np.zeros(len(mean))
            weights[place] = 1.0
            sd = np.sqrt(np.maximum(utilities.centred_marginals(weights)[1], 0.0))
            mean = mean - mean[place]
        below, above = utilities.centred_reach(weights)
        score = factor * mean + base
        return score, factor * sd, score - factor * below, score + factor * above

    def of_board(self, board: Board, utilities: Utilities, items: Vocabulary) -> Board:
        """A board with its scores on this scale; ranks and tiers stay."""
        order = np.argsort(board.item)
        found = self.scores(utilities, items, board.mean[order], board.sd[order])
        mean, sd, lower, upper = (values[board.item] for values in found)
        return replace(board, mean=mean, sd=sd, lower=lower, upper=upper)


def _shares(
    utilities: Utilities, mean: FloatArray, log_odds: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Per cent of choices between all items at the posterior mean, and the delta method for the logits of shares."""
    share = softmax(log_odds * mean)
    # The slope of log(p_i / (1 - p_i)) is (e_i - p) / (1 - p_i), times the log-odds of a unit.
    rest = np.maximum(1.0 - share, np.finfo(float).tiny)
    slope = log_odds / rest
    spread = slope * np.sqrt(np.maximum(utilities.centred_marginals(share)[1], 0.0))
    centre = logit(share)
    below, above = utilities.centred_reach(share)
    lower, upper = 100.0 * expit(centre - slope * below), 100.0 * expit(centre + slope * above)
    return 100.0 * share, 100.0 * share * rest * spread, lower, upper


@cache
def scales_of_unit(log_odds: float) -> dict[str, Scale]:
    """Scales of models in which ``log_odds`` are the log-odds of an answer in one unit of utility; 1 of a logit."""
    exact = log_odds == 1.0
    about, times = ("", "log-odds times") if exact else ("about ", f"probit scores times {log_odds:.4g} ·")
    logit = Scale(
        "logit",
        log_odds,
        "log-odds of one answer",
        f"Scores are {'' if exact else 'approximate '}log-odds{'' if exact else f', {times[:-2]}'}: if two items lie g "
        f"apart, the better one is preferred with probability {about}1 / (1 + exp(-g)), which is 73 % for 1 and 88 % "
        "for 2.",
        2,
    )
    probit = Scale(
        "probit",
        1.0,
        "noise of one answer = 1",
        "One unit is the noise of one answer (standard deviation 1): if two items lie g apart, the better one is "
        "preferred with probability Φ(g), which is 69 % for 0.5, 84 % for 1 and 98 % for 2.",
        2,
    )
    points = log_odds * ELO_OF_LOG_ODDS
    elo = Scale(
        "elo",
        points,
        "Elo points",
        f"Scores are Elo points, {times} 400 / ln 10 = {points:.1f}: a gap of 100 means that the better item is "
        f"preferred with probability {about}64 %, a gap of 200 {about}76 %.",
        0,
    )
    hundred = Scale(
        "0-100",
        1.0,
        "of 100",
        "Scores are utilities brought to 0 to 100: the last item is at 0 and the first at 100, as if these two were "
        "known. Gaps can be compared within this board alone.",
        0,
    )
    share = Scale(
        "share",
        1.0,
        "per cent of choices",
        "Scores are Bradley-Terry shares, exp of the log-odds over their sum, in per cent: how choices between all "
        "items at once would split. An item with twice the share of another is preferred to it two times out of three.",
        1,
    )
    table = {"probit": logit if exact else probit, "logit": logit, "elo": elo, "0-100": hundred, "share": share}
    return {name: replace(one, log_odds=log_odds) for name, one in table.items()}


SCALES = scales_of_unit(LOGISTIC_SLOPE)


def _parts_of(text: str, base: float | None, anchor: Any) -> tuple[str, float | None, Any]:
    """Name, base and anchor of "NAME:BASE:ITEM", whichever of these stand there; DataError for another form."""
    name, colon, rest = text.partition(":")
    if not colon:
        return name.lower(), base, anchor
    form = f"{either('--scale', 'scale')} takes NAME:BASE:ITEM, such as elo:1000:gpt-4"
    if base is not None or anchor is not None:
        raise DataError(f'{form}; "{text}" says base or anchor a second time')
    number, colon, item = rest.partition(":")
    if colon and not item:
        raise DataError(f'{form}; "{text}" names no item')
    try:
        return name.lower(), float(number) if number else None, item or None
    except ValueError:
        raise DataError(f'{form}; "{number}" is no number') from None


def scale_of(name: str | Scale, likelihood: str, base: float | None = None, anchor: Any = None) -> Scale:
    """Scale by name, for a model whose answers have this likelihood: utilities of a logit model are log-odds.

    ``base``: score of the mean of the items, or of the item ``anchor``; both may stand in the name, "elo:1000:gpt-4".
    DataError for a name that is none, a base that is no number, and either with a scale that has no zero of its own.
    """
    if isinstance(name, Scale):
        return name
    if isinstance(name, str):
        name, base, anchor = _parts_of(name, base, anchor)
    check_choice("scale", name, SCALES)
    unit = scales_of_unit(LIKELIHOODS[likelihood].log_odds)[name]
    if base is None and anchor is None:
        return unit
    if not unit.is_linear:
        given = "base" if base is not None else "anchor"
        raise DataError(
            f"the scale {name} has its ends by itself, so {given} means nothing there. Leave it out, or ask for "
            f"""{either("--scale elo", 'scale="elo"')}"""
        )
    check_number("base", base, None)
    base = 0.0 if base is None else float(base)
    sentence = f" The mean of the items is at {base:g}."
    if anchor is not None:
        sentence = f" {shown(anchor)} is at {base:g} by definition, and intervals are of the distance to it."
    return replace(unit, base=base, anchor=anchor, meaning=unit.meaning + sentence)


def scores(model: Fitted, size: int = 4, anchor: Any = None, user: Any = None, *, random_state: int = 0) -> Any:
    """See :meth:`Asking.scores <predilect.models.asking.Asking.scores>`."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= 20:
        raise DataError(f"size must be a whole number of items from 2 to 20; got {quoted(size)}")
    now: Any = copy.copy(model)  # as it is, whatever other threads do
    if not now.posterior_.by_utilities:
        raise DataError("the answers of this model are about more than the utilities of items: they have no scores")
    place = None if anchor is None else int(now.items_.codes([anchor])[0])
    if user is not None or not now.personal_ or now.users_ is None:
        codes = [code_of(now, user)]
    else:
        codes = list(range(len(now.users_))) or [-1]
    total: FloatArray = np.zeros((_DRAWS, len(now.items_)))
    for code in codes:
        f = _drawn(now.posterior_, code, random_state)
        away = f - (f.mean(axis=1, keepdims=True) if place is None else f[:, [place]])
        others = np.zeros((away.size, size - 1))
        sets = np.column_stack([away.reshape(-1), others])
        chance = chance_of_first(sets) if now._likelihood.has_normal_noise else logit_chances(sets)[:, 0]
        p = chance.reshape(away.shape)
        total += 100.0 * (p * size if place is not None else p / p.sum(axis=1, keepdims=True))
    by_draw = total / len(codes)
    score = by_draw.mean(axis=0)
    order = np.argsort(-score, kind="stable")
    lower, upper = np.quantile(by_draw, TAILS_95, axis=0)[:, order]
    names = now.items_.series().gather(order).alias("item")
    return build_frame({"item": names, "score": score[order], "lower": lower, "upper": upper}, now._backend)


def _drawn(posterior: Posterior, user: int, seed: int) -> FloatArray:
    """Draws of a person's utilities in units of their own noise, (_DRAWS, n_items)."""
    utilities = posterior.person(user).times(posterior.consistency_of(user))
    return utilities.opposite_draws(_DRAWS, np.random.default_rng([seed, user + 1]))
