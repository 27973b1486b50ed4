"""Personal or pooled: what was asked for, what the verdict says, and what is returned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from predilect.errors import DataError
from predilect.models.registry import COMMANDS

if TYPE_CHECKING:
    from predilect.evaluation.verdict import Verdict


if TYPE_CHECKING:
    ModelName = str
else:
    ModelName = StrEnum("ModelName", {name.replace("-", "_"): name for name in COMMANDS})
DEFAULT = ModelName("population")

Personal = StrEnum("Personal", ["auto", "yes", "no"])  # choice of personal rankings


def asked_for(model: str, personal: Personal | None, pooled: bool) -> Personal:
    """Meaning of the options together; DataError if they contradict each other, or the model has no such ranking.

    Only a model that is judged has a verdict to choose by; one that makes either sort of ranking makes one for all
    unless something else is asked for.
    """
    if pooled and personal not in (None, Personal.no):
        raise DataError(f"--pooled means --personal no, which contradicts --personal {personal}. Give one of them.")
    personal, entry = Personal.no if pooled else personal, COMMANDS[model]
    if entry.rankings == "judged":
        return personal or Personal.auto
    if entry.rankings == "either":
        return Personal.yes if personal is Personal.yes else Personal.no
    can, cannot = (Personal.no, Personal.yes) if entry.rankings == "one" else (Personal.yes, Personal.no)
    if personal is cannot:
        also = " (--pooled)" if cannot is Personal.no else ""
        raise DataError(f"--model {model} {entry.instead} or leave --personal {cannot}{also} out")
    return can


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
        if self.verdict.only_care and name == "personal":
            return (
                "Returned: the personal model, which knows how consistently each person answers; personal rankings "
                "differ from the crowd's by little."
            )
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
