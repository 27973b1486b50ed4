"""Fits of the whole and of its segments, with the options of the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from predilect.cli.session import Talk
from predilect.data import Comparisons, Finding, ItemFeatures, PersonFeatures, check
from predilect.errors import DataError
from predilect.models.population import Population
from predilect.report.leaderboard import Ranking, Refused
from predilect.report.scales import Scale
from predilect.report.text import one_line

__all__ = ["Fitter"]


@dataclass(frozen=True)
class Fitter:
    """What every fit of a run shares.

    Attributes
    ----------
    features : ItemFeatures or None
    people : PersonFeatures or None
    scale : Scale
    personal : bool
    seed : int
    jobs : int or None
    strict : bool
    """

    features: ItemFeatures | None
    people: PersonFeatures | None
    scale: Scale
    personal: bool
    seed: int
    jobs: int | None
    strict: bool

    def look(self, comparisons: Comparisons) -> list[Finding]:
        """What ``check`` finds, with the items that only the features know."""
        return check(comparisons, None if self.features is None else self.features.ids)

    def fit(self, talk: Talk, comparisons: Comparisons, findings: list[Finding], doing: str = "Ranking") -> Ranking:
        """Fit a model and make its board.

        Raises
        ------
        DataError
            If the answers cannot be ranked.
        ConvergenceError
            If the fit does not converge and ``strict``.
        """
        model = Population(personal=self.personal, n_jobs=self.jobs, random_state=self.seed, strict=self.strict)
        before = len(talk.warned)
        with talk.progress(doing) as watch:
            model.fit(comparisons, items=self.features, users=self.people, watch=watch)
            return Ranking.of(model, comparisons, self.scale, findings, talk.warned[before:])

    def fit_segments(self, talk: Talk, segments: Mapping[str, Comparisons | str]) -> dict[str, Ranking | Refused]:
        """Fit each segment by itself.

        Raises
        ------
        DataError
            If none can be ranked.
        """
        results: dict[str, Ranking | Refused] = {}
        for number, (value, comparisons) in enumerate(segments.items(), 1):
            name = one_line(value)
            if isinstance(comparisons, str):
                results[value] = Refused(comparisons)
            else:
                try:
                    doing = f"Ranking {name} ({number} of {len(segments)})"
                    results[value] = self.fit(talk, comparisons, self.look(comparisons), doing)
                except DataError as error:
                    results[value] = Refused(str(error))
        reasons = {value: result.reason for value, result in results.items() if isinstance(result, Refused)}
        if len(reasons) == len(results):
            value, reason = next(iter(reasons.items()))
            raise DataError(f"no segment can be ranked (first: {one_line(value)}: {reason})")
        for value, reason in reasons.items():
            talk.warn(f"{one_line(value)} cannot be ranked: {reason}.")
        return results
