"""Fits of all answers and of segments, and what ``rank`` prints of them and of named pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from rich.text import Text

from predilect._text import first_few, one_line, shown
from predilect.cli.choice import Choice, Personal
from predilect.cli.options import items_in
from predilect.cli.session import Talk
from predilect.data import Comparisons, Finding, ItemFeatures, PersonFeatures, check
from predilect.data.intake import counted
from predilect.decisions import versus
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.models.registry import COMMANDS, Asked, estimator
from predilect.progress import Watcher, tell_parts
from predilect.report.leaderboard import Ranking, Refused, describe
from predilect.report.sections import board_table
from predilect.report.tables import sentence_of_pair
from predilect.report.text import terminal

_SEGMENT_ROWS = 10


def say_model(talk: Talk, ranking: Ranking, scale: Scale, wanted_personal: bool) -> None:
    """Print in detail the model, the meaning of a score, how the fit went and where the prior came from."""
    for line in describe(ranking, scale, wanted_personal):
        talk.detail(line)


def say_verdict(talk: Talk, choice: Choice, ranking: Ranking, scale: Scale) -> None:
    """Print the unit of scores and the verdict in a line each; in detail, all of it and which model is returned."""
    talk.say(f"Score: {scale.unit}; {scale.origin}. Model: {ranking.model.report_['model']}.")
    if choice.verdict is not None:
        talk.say(f"Verdict: {choice.verdict.in_short}")
        for sentence in choice.verdict.sentences:
            talk.detail(f"Verdict: {sentence}")
    if choice.asked is Personal.auto:
        (talk.say if choice.verdict is None else talk.detail)(choice.reason)


def rows_shown(board: pl.DataFrame, top: int) -> int:
    """How many rows of a board --top asks for; 0 for all."""
    return min(top or len(board), len(board))


def say_board(talk: Talk, ranking: Ranking, scale: Scale, top: int, segment: str | None = None) -> None:
    """Print a board, quiet or not, and of a segment its first rows only."""
    rows = rows_shown(ranking.board, top)
    rows = rows if segment is None else min(rows, _SEGMENT_ROWS)
    talk.say()
    if segment is not None:
        told = "" if ranking.model.report_["model"] == "population" else ", pooled model"
        talk.show(f"{one_line(segment)}: {counted(ranking.comparisons.n_answers, 'answer')}{told}", style="bold")
    talk.show(terminal(board_table(ranking.board, scale, rows), talk.width))
    if rows < len(ranking.board):
        talk.say(f"... and {len(ranking.board) - rows} more items; --top 0 shows all.")


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

    def _fitted(self, comparisons: Comparisons, personal: bool, watch: Watcher | None) -> Any:
        settings = {"n_jobs": self.jobs, "random_state": self.seed, "strict": self.strict}
        asked = Asked(personal, items=self.features is not None, people=self.people is not None)
        model = estimator(self.name)(**COMMANDS[self.name].arguments(asked), **settings, **self.settings)
        return model.fit(comparisons, items=self.features, users=self.people, watch=watch)

    def fit_segments(
        self, talk: Talk, segments: Mapping[str, Comparisons | str], personal: bool
    ) -> dict[str, Ranking | Refused]:
        """Fit each segment by itself, all personal or all pooled; DataError if none can be ranked."""
        results: dict[str, Ranking | Refused] = {}
        with talk.progress("Ranking") as watch:
            for number, (value, comparisons) in enumerate(segments.items()):
                tell_parts(watch, number, len(segments))
                if isinstance(comparisons, str):
                    results[value] = Refused(comparisons)
                    continue
                try:
                    before = len(talk.warned)
                    watch(one_line(value), number + 1)
                    model = self._fitted(comparisons, personal, None)
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


def named_pairs(given: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs out of ``A,B``; DataError for another number of names, or a pair of an item with itself."""
    pairs = []
    for text in given:
        names = items_in(text, "--versus")
        if len(names) != 2 or names[0] == names[1]:
            raise DataError(
                f'--versus takes two items with a comma between them, such as tea,milk; got "{shown(text)}". Put a '
                "name that has a comma itself in double quotes, and say --versus again for another pair"
            )
        pairs.append((names[0], names[1]))
    return pairs


def refuse_unknown_items(
    flag: str, names: Sequence[str], answers: Comparisons, features: ItemFeatures | None
) -> None:  # fmt: skip
    """DataError for an item, named with an option, that will not be on the board; before anything is fitted."""
    for name in names:
        if answers.items.code(name) < 0 and (features is None or features.ids.code(name) < 0):
            there = first_few(answers.items.ids, 5)
            raise DataError(f'{flag} names "{shown(name)}", which nobody compared. Items are {there}')


def versus_table(model: Any, pairs: list[tuple[str, str]], scale: Scale) -> pl.DataFrame | None:
    """The named pairs on the crowd's board; None without any."""
    return pl.DataFrame(versus(model, pairs, scale=scale)) if pairs else None


def say_versus(talk: Talk, table: pl.DataFrame | None, scale: Scale) -> None:
    """Print a sentence for each named pair."""
    for row in [] if table is None else table.iter_rows(named=True):
        talk.say(Text(one_line(sentence_of_pair(row, scale.of_differences))))
