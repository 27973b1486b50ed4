"""Fits of all answers and of segments, with the options of the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from predilect._text import one_line
from predilect.cli.choice import Choice, Personal
from predilect.cli.session import Talk, Watch
from predilect.data import Comparisons, Finding, ItemFeatures, PersonFeatures, check
from predilect.errors import DataError
from predilect.models.registry import COMMANDS, Asked, estimator
from predilect.report.leaderboard import Ranking, Refused
from predilect.report.tables import Scale


@dataclass(frozen=True)
class Fitter:
    """Settings that every fit of a run shares; ``settings`` are further arguments of the model."""

    name: str
    features: ItemFeatures | None
    people: PersonFeatures | None
    scale: Scale
    personal: Personal
    verdict: bool
    seed: int
    jobs: int | None
    strict: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    def look(self, comparisons: Comparisons) -> list[Finding]:
        """Findings of ``check``, with the items that only the features know."""
        return check(comparisons, None if self.features is None else self.features.ids)

    def fit(self, talk: Talk, comparisons: Comparisons, findings: list[Finding]) -> tuple[Ranking, Choice]:
        """Fit the model that is to be returned, judge it, and make its board; raises DataError, ConvergenceError."""
        personal = self.personal is not Personal.no
        verdict = None
        before = len(talk.warned)
        with talk.progress("Ranking") as watch:
            model = self._fitted(comparisons, personal, watch)
            if self.verdict and COMMANDS[self.name].rankings == "judged":
                verdict = model.verdict(watch=watch)
                if self.personal is Personal.auto and verdict.favours == "pooled":
                    personal = False
                    model = self._fitted(comparisons, personal, watch)
                    model.keep_verdict(verdict)
            ranking = Ranking.of(model, comparisons, self.scale, findings, talk.warned[before:])
        return ranking, Choice(self.personal, personal, verdict, str(model.report_["model"]))

    def _fitted(self, comparisons: Comparisons, personal: bool, watch: Watch) -> Any:
        settings = {"n_jobs": self.jobs, "random_state": self.seed, "strict": self.strict}
        asked = Asked(personal, items=self.features is not None, people=self.people is not None)
        model = estimator(self.name)(**COMMANDS[self.name].arguments(asked), **settings, **self.settings)
        return model.fit(comparisons, items=self.features, users=self.people, watch=watch)

    def fit_segments(
        self, talk: Talk, segments: Mapping[str, Comparisons | str], personal: bool
    ) -> dict[str, Ranking | Refused]:
        """Fit each segment by itself, all personal or all pooled; DataError if none can be ranked."""
        results: dict[str, Ranking | Refused] = {}
        for number, (value, comparisons) in enumerate(segments.items(), 1):
            name = one_line(value)
            if isinstance(comparisons, str):
                results[value] = Refused(comparisons)
            else:
                try:
                    before = len(talk.warned)
                    with talk.progress(f"Ranking {name} ({number} of {len(segments)})") as watch:
                        model = self._fitted(comparisons, personal, watch)
                        results[value] = Ranking.of(
                            model, comparisons, self.scale, self.look(comparisons), talk.warned[before:]
                        )
                except DataError as error:
                    results[value] = Refused(str(error))
        reasons = {value: result.reason for value, result in results.items() if isinstance(result, Refused)}
        if len(reasons) == len(results):
            value, reason = next(iter(reasons.items()))
            raise DataError(f"no segment can be ranked (first: {one_line(value)}: {reason})")
        for value, reason in reasons.items():
            talk.warn(f"{one_line(value)} cannot be ranked: {reason}.")
        return results
