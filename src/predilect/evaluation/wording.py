"""The sentences of the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from predilect.evaluation.verdict import SMALLEST_GAIN, Contest

__all__ = ["judged", "not_judged"]

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
        f"{words.subject} {claim}: over {contest.n_answers:g} held-out answers of {contest.n_people} people{drawn} the "
        f"log loss is {_nats(loss)} {words.model} and {_nats(baseline)} {words.baseline}: {direction} by "
        f"{_nats(abs(gain))} nats an answer (95 % interval {_nats(low)} to {_nats(high)})"
    )
    return replace(contest, sentence=f"{sentence}. {_meaning(contest, gain, lower, upper)}")


def not_judged(question: str, why: str) -> Contest:
    """A contest without a result, and why."""
    return Contest(question, "unknown", f"{_WORDS[question].whether} could not be judged: {why}.")


def _meaning(contest: Contest, gain: float, lower: float, upper: float) -> str:
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
