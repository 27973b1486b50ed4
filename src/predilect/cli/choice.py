"""Personal or pooled: what was asked for, what the verdict says, and what is returned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.evaluation.verdict import Verdict


class ModelName(StrEnum):
    """Which model ranks."""

    population = "population"
    gppl = "gppl"
    crowd_gppl = "crowd-gppl"
    gaspk = "gaspk"
    collaborative = "collaborative"
    joint = "joint"
    single_user_gp = "single-user-gp"
    hierarchical_gp = "hierarchical-gp"
    bonilla_gp = "bonilla-gp"
    gp_classifier = "gp-classifier"
    gpvu = "gpvu"


class Personal(StrEnum):
    """Whether everybody gets an own ranking."""

    auto = "auto"
    yes = "yes"
    no = "no"


def asked_for(model: ModelName, personal: Personal | None, pooled: bool) -> Personal:
    """Meaning of the options together; DataError if they contradict each other.

    Only the population model has a verdict to choose by: otherwise GPPL is one ranking for all unless something else is
    asked for, GP classification is one ranking for all, and the others are personal.
    """
    if pooled and personal not in (None, Personal.no):
        raise DataError(f"--pooled means --personal no, which contradicts --personal {personal}. Give one of them.")
    if model is ModelName.gp_classifier:
        if personal is Personal.yes:
            raise DataError(
                "--model gp-classifier is one ranking for all; one for each person is --model single-user-gp. Say "
                "that, or leave --personal yes out"
            )
        return Personal.no
    if model not in (ModelName.population, ModelName.gppl, ModelName.gaspk):
        if pooled or personal is Personal.no:
            raise DataError(
                f"--model {model} ranks for everybody and for the crowd; without people it is --model gppl. Say "
                "that, or leave --personal no (--pooled) out"
            )
        return Personal.yes
    if model is ModelName.gaspk:
        if pooled or personal is Personal.no:
            raise DataError(
                "--model gaspk ranks for everybody and for their average, by what they have in common. Say --no-user "
                "for one function of all answers, or leave --personal no (--pooled) out"
            )
        return Personal.yes
    if pooled:
        return Personal.no
    if model is ModelName.gppl:
        return Personal.yes if personal is Personal.yes else Personal.no
    return personal or Personal.auto


@dataclass(frozen=True)
class Choice:
    """The model that is returned, and why.

    ``personal``: whether the fit that is returned, and those of segments, were asked for personal rankings;
    ``verdict``: None with ``--no-verdict``; ``returned``: "pooled", or the name of the model that came out.
    """

    asked: Personal
    personal: bool
    verdict: Verdict | None
    returned: str

    @property
    def reason(self) -> str:
        """The reason in a sentence."""
        name = {"population": "personal"}.get(self.returned, self.returned)
        if self.asked is not Personal.auto:
            return f"Returned: the {name} model, as asked for."
        if self.verdict is None:
            if name == "pooled":
                return "Returned: the pooled model, the only one there is for these answers."
            return (
                "Returned: the personal model; with --no-verdict nothing says whether it predicts better than one "
                "ranking for all."
            )
        outcome = self.verdict.personal.outcome
        if outcome == "unknown":
            why = "although it could not be judged" if name == "personal" else "the only one there is for these answers"
            return f"Returned: the {name} model, {why}."
        if name == "personal":
            return "Returned: the personal model, since the verdict favours it."
        how = "worse" if outcome == "worse" else "no better"
        return (
            f"Returned: the pooled model, since personal rankings predict {how}. With --personal yes everybody has an "
            "equal voice and an own ranking all the same."
        )

    def to_dict(self) -> dict[str, Any] | None:
        """As plain values, for JSON; None without a verdict."""
        if self.verdict is None:
            return None
        return {**self.verdict.to_dict(), "asked": self.asked.value, "returned": self.returned, "reason": self.reason}
