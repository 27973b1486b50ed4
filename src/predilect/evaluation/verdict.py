"""The verdict of held-out answers on personal rankings, item features and ties, in numbers and in words.

:mod:`predilect.evaluation.judging` makes one; :mod:`predilect.evaluation.wording` writes its sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from predilect._json import typed

__all__ = ["OUTCOMES", "SMALLEST_GAIN", "Contest", "Verdict", "outcome_of"]

OUTCOMES = ("better", "nothing", "worse", "unknown")
# Nats an answer. Less than half a per cent in the probability of what people answered changes no decision, and crowds
# that agree differ by up to so much because two priors were fitted.
SMALLEST_GAIN = 0.005


@dataclass(frozen=True, slots=True)
class Contest:
    """Comparison of two models on the same held-out answers.

    Attributes
    ----------
    question : str
        ``"personal"``: personal rankings against one ranking for all. ``"features"``: with item features against
        without. ``"ties"``: ties that are likelier between close items against one share of ties for every pair.
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

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Contests of a model's parts on held-out answers.

    Attributes
    ----------
    personal : Contest
        Personal rankings against the pooled model.
    features, ties : Contest or None
        None where there are no item features, or no ties.
    settings : dict
        ``n_folds``, ``max_people``, ``n_bootstrap`` and ``random_state`` that were asked for.
    n_users, n_users_drawn : int
        People in the answers, and those that took part.
    notes : tuple of str
        What else to know: fits that did not converge, say.
    """

    personal: Contest
    features: Contest | None
    ties: Contest | None
    settings: dict[str, int]
    n_users: int
    n_users_drawn: int
    notes: tuple[str, ...] = ()

    @property
    def favours(self) -> str:
        """``"pooled"`` where personal rankings predict no better than one for all, else ``"personal"``.

        What could not be judged stays personal: that is the model in which every person has an equal voice.
        """
        return "pooled" if self.personal.outcome in ("nothing", "worse") else "personal"

    @property
    def contests(self) -> list[Contest]:
        """Contests that were held, personal rankings first."""
        return [contest for contest in (self.personal, self.features, self.ties) if contest is not None]

    @property
    def sentences(self) -> list[str]:
        """The verdict in plain sentences."""
        return [contest.sentence for contest in self.contests] + list(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {**asdict(self), "notes": list(self.notes), "favours": self.favours}

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
