"""The verdict of held-out answers on personal rankings, item features and ties, in numbers and in words.

:mod:`predilect.evaluation.judging` makes one; :mod:`predilect.evaluation.verdict` writes its sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any, Self

from predilect._base.json import typed
from predilect._base.text import amount, number
from predilect.evaluation.metrics import Reliability

OUTCOMES = ("better", "nothing", "worse", "unknown")
# Nats an answer. Less than half a per cent in the probability of what people answered changes no decision, and crowds
# that agree differ by up to so much because two priors were fitted.
SMALLEST_GAIN = 0.005
_NOTHING = 0.0005  # nats, which are printed as 0.000


@dataclass(frozen=True, slots=True)
class Contest:
    """Comparison of two models on the same held-out answers.

    Attributes
    ----------
    question : str
        ``"personal"``: personal rankings against one ranking for all. ``"consistency"``: one ranking for all, in which
        people differ in the noise of their answers, against one in which they do not. ``"features"``: with item
        features against without. ``"ties"``: ties that are likelier between close items against one share of ties for
        all pairs. ``"covariates"``: with the side and other covariates of answers against without.
    outcome : str
        ``"better"``, ``"nothing"``, ``"worse"`` or ``"unknown"`` (could not be judged).
    sentence : str
        The same in words, with the numbers.
    log_loss, baseline_log_loss : float or None
        Mean three-class log loss of the first model and of the second, in nats an answer; None where unknown.
    accuracy, baseline_accuracy : float or None
        Share of the answers that were the likeliest of the three.
    gain, lower, upper : float or None
        ``baseline_log_loss - log_loss``, positive where the first model is better, with its 95 % interval from a
        bootstrap over people, expanded as Student's t is where they are few.
    n_people : int
        Whose answers were held out.
    n_answers : float
        Answers held out.
    n_folds : int
        Folds fitted.
    """

    question: str
    outcome: str
    sentence: str
    log_loss: float | None = None
    baseline_log_loss: float | None = None
    accuracy: float | None = None
    baseline_accuracy: float | None = None
    gain: float | None = None
    lower: float | None = None
    upper: float | None = None
    n_people: int = 0
    n_answers: float = 0.0
    n_folds: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Contests of a model's parts on held-out answers.

    Attributes
    ----------
    personal : Contest
        Personal rankings against the pooled model, or, where people differ in consistency, against one ranking that
        knows.
    features, ties, consistency, covariates : Contest or None
        None where there are no item features, no ties, where held-out answers do not ask for consistency to differ (or
        not where tastes do), or where neither the side nor other covariates of answers are in the model.
    settings : dict
        ``n_folds``, ``max_people``, ``n_bootstrap`` and ``random_state`` that were asked for.
    n_users, n_users_drawn : int
        People in the answers, and those that took part.
    notes : tuple of str
        What else to know: fits that did not converge, say.
    reliability : tuple of Reliability
        How often held-out answers came that were given a probability, of the model that is favoured; empty where
        nothing could be judged.
    """

    personal: Contest
    features: Contest | None
    ties: Contest | None
    settings: dict[str, int]
    n_users: int
    n_users_drawn: int
    notes: tuple[str, ...] = ()
    consistency: Contest | None = None
    covariates: Contest | None = None
    reliability: tuple[Reliability, ...] = ()

    @property
    def _tastes_alike(self) -> bool:
        return self.personal.outcome in ("nothing", "worse")

    @property
    def only_consistency(self) -> bool:
        """Whether people differ in consistency, but not in taste."""
        return self._tastes_alike and self.consistency is not None and self.consistency.outcome == "better"

    @property
    def favours(self) -> str:
        """``"pooled"`` where personal rankings predict no better than one for all, else ``"personal"``.

        What could not be judged stays personal: that is the model in which every person has an equal voice. So does
        what is one ranking for all but for the consistency of people, which the pooled model does not know.
        """
        return "pooled" if self._tastes_alike and not self.only_consistency else "personal"

    @property
    def contests(self) -> list[Contest]:
        """Contests that were held, personal rankings first."""
        held = (self.personal, self.consistency, self.features, self.ties, self.covariates)
        return [contest for contest in held if contest is not None]

    @property
    def sentences(self) -> list[str]:
        """The verdict in plain sentences."""
        first = ["People differ in consistency, not in taste."] if self.only_consistency else []
        told = [one.sentence for one in self.contests if one.question != "consistency" or one.outcome == "better"]
        return first + told + list(self.notes)

    @property
    def in_short(self) -> str:
        """The verdict on personal rankings in one sentence."""
        contest = self.personal
        if contest.outcome == "unknown":
            return contest.sentence
        if self.only_consistency:
            return "People differ in how consistently they answer, and not in taste: one ranking serves them all."
        told = {
            "better": "People differ in taste, and rankings of their own predict them better than the crowd's",
            "nothing": "One ranking serves all: rankings of people's own predict held-out answers no better",
            "worse": "One ranking serves all: rankings of people's own predict held-out answers worse",
        }[contest.outcome]
        by = (float(value or 0.0) for value in (contest.gain, contest.lower, contest.upper))
        gain, lower, upper = (100.0 * math.expm1(value) for value in by)
        likelier, sign = ("likelier", 1.0) if gain >= 0.0 else ("less likely", -1.0)
        low, high = sorted((sign * lower, sign * upper))
        return (
            f"{told} (knowing who answers makes the given answer {number(abs(gain), 1)} % {likelier}, 95 % interval "
            f"{number(low, 1)} to {number(high, 1)} %)."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        values = asdict(self)
        return {
            **values, "notes": list(self.notes), "reliability": list(values["reliability"]), "favours": self.favours,
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return f"<div><strong>Verdict of held-out answers</strong>{said}</div>"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; raises KeyError, TypeError or ValueError for other values."""
        found: Self = typed(cls, {name: value for name, value in values.items() if name != "favours"}, "verdict")
        for contest in found.contests:
            if contest.outcome not in OUTCOMES:
                raise ValueError(f"the outcome {contest.outcome!r} is none of {', '.join(OUTCOMES)}")
        return found


def outcome_of(gain: float, lower: float, upper: float) -> str:
    """Word for a gain and its 95 % interval: "nothing" if that holds 0 or the gain is below :data:`SMALLEST_GAIN`."""
    if not (lower > 0.0 or upper < 0.0) or abs(gain) < SMALLEST_GAIN:
        return "nothing"
    return "better" if gain > 0.0 else "worse"


_WIDE = 0.03  # nats an answer: a gain that one would like to know of


@dataclass(frozen=True, slots=True)
class _Words:
    subject: str
    better: str
    nothing: str
    worse: str
    model: str
    baseline: str
    whether: str


_WORDS = {
    "personal": _Words(
        "Personal rankings",
        "predict people better than one ranking for all",
        "predict people no better than one ranking for all",
        "predict people worse than one ranking for all",
        "with personal rankings",
        "with one ranking for all",
        "Whether personal rankings mean anything",
    ),
    "consistency": _Words(
        "One ranking that knows how consistently each person answers",
        "predicts answers better than one that takes everybody for alike",
        "predicts answers no better than one that takes everybody for alike",
        "predicts answers worse than one that takes everybody for alike",
        "if it knows",
        "if not",
        "Whether people differ in consistency",
    ),
    "features": _Words(
        "Item features",
        "help to predict answers",
        "neither help nor harm",
        "make predictions worse (leave them out unless items without answers must be ranked)",
        "with them",
        "without",
        "Whether item features help",
    ),
    "ties": _Words(
        "Ties",
        "are predicted better for being taken as a sign that two items are close",
        "are predicted no better for being taken as a sign that two items are close",
        "are predicted worse for being taken as a sign that two items are close (think of leaving them out)",
        "with more ties between close items",
        "with the same share of ties for every pair",
        "Whether ties mean that items are close",
    ),
    "covariates": _Words(
        "The side on which an item was shown, or what else was named of the answers,",
        "helps to predict them",
        "neither helps nor harms",
        "makes predictions worse (read the answers without it: side no, and no covariates)",
        "with it",
        "without",
        "Whether the side, or what else was named of the answers, helps",
    ),
}


def judged(contest: Contest, n_users: int, n_users_drawn: int) -> Contest:
    """The contest with a sentence that says its numbers."""
    words = _WORDS[contest.question]
    loss, baseline, gain, lower, upper = (
        float("nan") if value is None else value
        for value in (contest.log_loss, contest.baseline_log_loss, contest.gain, contest.lower, contest.upper)
    )
    claim = {"better": words.better, "nothing": words.nothing, "worse": words.worse}[contest.outcome]
    drawn = f", drawn from {n_users}," if n_users_drawn < n_users else ""
    direction = "lower" if gain >= 0.0 else "higher"
    sign = 1.0 if gain >= 0.0 else -1.0
    low, high = sorted((sign * lower, sign * upper))
    sentence = (
        f"{words.subject} {claim}: over {amount(contest.n_answers)} held-out answers of {contest.n_people} "
        f"people{drawn} the log loss is {_nats(loss)} {words.model} and {_nats(baseline)} {words.baseline}: "
        f"{direction} by {_nats(abs(gain))} nats an answer (95 % interval {_nats(low)} to {_nats(high)})"
    )
    return replace(contest, sentence=f"{sentence}. {_meaning(contest, gain, lower, upper)}")


def not_judged(question: str, why: str) -> Contest:
    """A contest without a result, and why."""
    return Contest(question, "unknown", f"{_WORDS[question].whether} could not be judged: {why}.")


def _meaning(contest: Contest, gain: float, lower: float, upper: float) -> str:
    if max(abs(lower), abs(upper)) < _NOTHING:
        return "They predict alike."
    if contest.outcome == "nothing" and (lower > 0.0 or upper < 0.0):
        return f"That is more than chance, but too little to matter (less than {SMALLEST_GAIN})."
    if contest.outcome == "nothing":
        within = "That is within chance"
        if upper > _WIDE:
            return f"{within}, though there may be a gain worth having: more answers, or more people, would tell."
        return f"{within}."
    more, per_cent = ("higher", math.expm1(gain)) if gain > 0.0 else ("lower", -math.expm1(gain))
    said = f"What people answered was given a {100 * per_cent:.2g} % {more} probability"
    if contest.accuracy is None or contest.baseline_accuracy is None:
        return f"{said}."
    return (
        f"{said}, and was the likeliest answer in {100 * contest.accuracy:.1f} % of cases against "
        f"{100 * contest.baseline_accuracy:.1f} %."
    )


def _nats(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # never -0.000
