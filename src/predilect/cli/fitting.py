"""Fits of all answers and of segments, the choice between personal and pooled, and what is printed of boards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from predilect._base.progress import Watcher, tell_parts
from predilect._base.text import as_typed, one_line
from predilect.cli.session import Common, Talk
from predilect.data import Comparisons, Finding, ItemFeatures, PersonFeatures, check
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.evaluation.verdict import drift_in_short
from predilect.models.registry import COMMANDS, Wanted, estimator
from predilect.show.report.leaderboard import Ranking, RefusedSegment, describe
from predilect.show.report.sections import board_table
from predilect.show.report.text import terminal

if TYPE_CHECKING:
    from predilect.evaluation.verdict import Verdict

_FIT = 0.3  # of the time of a fit with its verdict
MOST_ROWS = 50  # of a board that is printed without being asked for all


def say_model(talk: Talk, ranking: Ranking, scale: Scale, wanted_personal: bool) -> None:
    """Print in detail the model, the meaning of a score, how the fit went and where the prior came from."""
    for line in describe(ranking, scale, wanted_personal):
        talk.detail(line)


def say_verdict(talk: Talk, model: Any, scale: Scale, verdict: Verdict | None) -> None:
    """Print the unit of scores and the verdict, if there is one, in a line each; in detail, all of it."""
    talk.say(f"Score: {scale.unit}; {scale.origin}. Model: {model._called}.")
    if (drift := model.report_.get("drift")) is not None:
        talk.say(f"Verdict: {drift_in_short(drift)}")
    if verdict is not None:
        talk.say(f"Verdict: {verdict.in_short}")
        for sentence in verdict.sentences:
            talk.detail(f"Verdict: {sentence}")


def say_choice(talk: Talk, choice: Choice) -> None:
    """Print which model is returned, in detail where a verdict says it; or what would give a verdict."""
    if choice.asked == "auto":
        (talk.say if choice.verdict is None else talk.detail)(choice.reason)
    elif choice.can_be_judged:
        talk.say("Verdict: none; --personal auto says whether personal rankings predict better than one for all.")


def say_board(
    talk: Talk, board: pl.DataFrame, scale: Scale, top: int, title: str = "", where: Path | None = None
) -> None:  # fmt: skip
    """Print the first ``top`` rows of a board, 0 for all, quiet or not; ``where``: the folder that holds the rest."""
    rows = min(top or len(board), len(board))
    talk.say()
    if title:
        talk.show(title, style="bold")
    talk.show(terminal(replace(board_table(board, scale, rows), caption=""), talk.width))
    if rows < len(board):
        folder = "DIR" if where is None else as_typed(where)
        talk.say(f"... and {len(board) - rows} more items; predilect show {folder} --top 0 shows all.")


def asked_for(model: str, personal: str | None, of_nobody: bool = False) -> str:
    """Personal rankings, "auto", "yes" or "no"; DataError if the model has no such ranking.

    Only a model that is judged has a verdict to choose by; one that makes either sort of ranking makes one for all
    unless something else is asked for; of answers ``of_nobody`` in particular each makes one for all.
    """
    entry = COMMANDS[model]
    if entry.rankings == "judged":
        return personal or "auto"
    if entry.rankings == "either":
        return "yes" if personal == "yes" else "no"
    can, cannot = ("no", "yes") if entry.rankings == "one" else ("yes", "no")
    if personal == cannot and not (of_nobody and cannot == "no"):
        raise DataError(f"--model {model} {entry.instead} or leave --personal {cannot} out")
    return can


@dataclass(frozen=True)
class Choice:
    """The model that is returned, and why.

    ``personal``: whether the fit that is returned, and those of segments, were asked for personal rankings;
    ``returned``: "pooled", or the name of the model that came out.
    """

    asked: str
    personal: bool
    verdict: Verdict | None
    returned: str
    can_be_judged: bool
    for_segments: bool

    @property
    def reason(self) -> str:
        """The reason in a sentence."""
        name = {"population": "personal"}.get(self.returned, self.returned)
        if self.asked != "auto":
            return f"Returned: the {name} model, as asked for."
        if self.verdict is None:
            return "Returned: the pooled model, the only one there is for these answers."
        outcome = self.verdict.personal.outcome
        if outcome == "unknown":
            why = "although it could not be judged" if name == "personal" else "the only one there is for these answers"
            return f"Returned: the {name} model, {why}."
        if self.verdict.only_consistency and name == "personal":
            return (
                "Returned: the personal model, which knows how consistently each person answers; personal rankings "
                "differ from the crowd's by little."
            )
        if name == "personal":
            if self.verdict.favours == "pooled":
                return "Returned: the personal model, which --segment takes, although the verdict does not favour it."
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
        return {**self.verdict.to_dict(), "asked": self.asked, "returned": self.returned, "reason": self.reason}


@dataclass(frozen=True)
class Fitter:
    """Settings that every fit of a run shares; ``settings`` are arguments of the model, or DataError."""

    name: str
    settings: Mapping[str, Any]
    personal: str
    common: Common
    features: ItemFeatures | None = None
    people: PersonFeatures | None = None

    def __post_init__(self) -> None:
        if self.settings:
            try:
                asked = Wanted(self.personal != "no", self.features is not None, self.people is not None)
                estimator(self.name)(**{**COMMANDS[self.name].arguments(asked), **self.settings})._check()
            except (TypeError, ValueError) as error:  # no such parameter, or a value out of its range
                raise DataError(f"--model {self.name}: {error}") from None

    def look(self, comparisons: Comparisons) -> list[Finding]:
        """Findings of ``check``, with the items that only the features know."""
        return check(comparisons, None if self.features is None else self.features.ids)

    def fit(
        self, talk: Talk, comparisons: Comparisons, findings: list[Finding], *, for_segments: bool
    ) -> tuple[Ranking, Choice]:
        """Fit the model that is to be returned, judge it, and make its board; raises DataError, ConvergenceError.

        ``for_segments``: whether boards of segments are wanted, which the pooled model has not, whatever the verdict.
        """
        personal = self.personal != "no"
        can_be_judged = COMMANDS[self.name].rankings == "judged" and comparisons.time is None
        verdict = None
        before = len(talk.warned)
        is_judged = can_be_judged and self.personal == "auto"
        with talk.progress("Ranking", *([_FIT] if is_judged else [])) as watch:
            model = self._fitted(comparisons, personal, watch)
            if is_judged:
                verdict = model.verdict(watch=watch)
                if verdict.favours == "pooled" and not for_segments:
                    personal = False
                    model = self._fitted(comparisons, personal, watch)
                    model._keep_verdict(verdict)
            ranking = Ranking.of(model, comparisons, model._own_scale, findings, talk.warned[before:])
        returned = str(model.report_["model"])
        return ranking, Choice(self.personal, personal, verdict, returned, can_be_judged, for_segments)

    def _fitted(self, comparisons: Comparisons, personal: bool, watch: Watcher | None) -> Any:
        asked = Wanted(personal, items=self.features is not None, people=self.people is not None)
        common = {"n_jobs": self.common.jobs, "random_state": self.common.seed, "strict": self.common.strict}
        model = estimator(self.name)(**{**COMMANDS[self.name].arguments(asked), **common, **self.settings})
        return model.fit(comparisons, items=self.features, people=self.people, watch=watch)

    def fit_segments(
        self, talk: Talk, segments: Mapping[str, Comparisons | str], personal: bool
    ) -> dict[str, Ranking | RefusedSegment]:
        """Fit each segment by itself, all personal or all pooled; DataError if none can be ranked."""
        results: dict[str, Ranking | RefusedSegment] = {}
        with talk.progress("Ranking") as watch:
            for place, (value, comparisons) in enumerate(segments.items()):
                tell_parts(watch, place, len(segments))
                if isinstance(comparisons, str):
                    results[value] = RefusedSegment(comparisons)
                    continue
                try:
                    before = len(talk.warned)
                    watch(one_line(value), place + 1)
                    model = self._fitted(comparisons, personal, None)
                    results[value] = Ranking.of(
                        model, comparisons, model._own_scale, self.look(comparisons), talk.warned[before:]
                    )
                except DataError as error:
                    results[value] = RefusedSegment(str(error))
        reasons = {value: result.reason for value, result in results.items() if isinstance(result, RefusedSegment)}
        if len(reasons) == len(results):
            value, reason = next(iter(reasons.items()))
            raise DataError(f"no segment can be ranked (first: {one_line(value)}: {reason})")
        for value, reason in reasons.items():
            talk.warn(f"{one_line(value)} cannot be ranked: {reason}.")
        return results
