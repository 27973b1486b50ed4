"""What is asked of ``predilect rank``: personal or pooled, and why; scales, pairs and files. Formats of commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect.cli.options import OUTPUT
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


ScaleName = StrEnum(  # of scores
    "ScaleName", {"probit": "probit", "logit": "logit", "elo": "elo", "zero_to_hundred": "0-100", "share": "share"}
)
OfName = StrEnum("OfName", ["population", "respondents"])  # of whom an average over people is
OfOption = Annotated[
    OfName,
    typer.Option(
        "--of",
        rich_help_panel=OUTPUT,
        help="Of whom averages over people are, and their intervals: of the population that the people who answered "
        "are a sample of, or of these respondents alone.",
    ),
]
FormatName = StrEnum("FormatName", ["text", "csv", "md", "json"])  # of what is printed
FormatOption = Annotated[
    FormatName,
    typer.Option("--format", metavar="KIND", rich_help_panel=OUTPUT, help="Print text, a table as csv or md, or json."),
]


def of_whom(of: OfName, what: str) -> str:
    """Of whom averages and their intervals are, in a sentence."""
    if of is OfName.population:
        return (
            f"{what} are of the population of which those who answered are a sample (--of respondents: of them alone)."
        )
    return f"{what} are of those who answered alone (--of population: of the population of which they are a sample)."


def printed(format: FormatName, json: bool) -> FormatName:
    """What is printed; DataError where two things are asked for."""
    if json and format not in (FormatName.text, FormatName.json):
        raise DataError(f"--json and --format {format} both want standard output. Give one of them")
    return FormatName.json if json else format


FileKind = StrEnum("FileKind", ["parquet", "csv"])


@dataclass(frozen=True)
class ResultOptions:
    """What comes out of a ranking; every field is an option."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            rich_help_panel=OUTPUT,
            help="Folder to make: the board (CSV, JSON, pictures), everybody's ranking, the model.",
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", rich_help_panel=OUTPUT, help="Page to make, to be sent on, such as board.html."
        ),
    ] = None
    name_people: Annotated[
        bool,
        typer.Option(
            "--name-people", rich_help_panel=OUTPUT, help="Let the page name people, where a sentence is about some."
        ),
    ] = False
    force: Annotated[
        bool,
        typer.Option("--force", rich_help_panel=OUTPUT, help="Replace DIR if it holds earlier results, and FILE."),
    ] = False
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="OLD",
            rich_help_panel=OUTPUT,
            help="Folder of an earlier ranking: what changed since, and is it more than chance.",
        ),
    ] = None
    users_as: Annotated[
        FileKind,
        typer.Option("--users-as", rich_help_panel=OUTPUT, help="users.parquet, everybody's ranking, or users.csv."),
    ] = FileKind.parquet
    scale: Annotated[
        ScaleName,
        typer.Option(
            "--scale",
            metavar="NAME",
            rich_help_panel=OUTPUT,
            help="Of scores: probit (the noise of one answer is 1), logit, elo, 0-100, or share (in per cent).",
        ),
    ] = ScaleName.probit
    base: Annotated[
        float | None,
        typer.Option(
            "--base", metavar="X", rich_help_panel=OUTPUT, help="Score of the mean of the items, or of the anchor."
        ),
    ] = None
    anchor: Annotated[
        str | None,
        typer.Option("--anchor", metavar="ITEM", rich_help_panel=OUTPUT, help="The item with the score of --base."),
    ] = None
    versus: Annotated[
        list[str] | None,
        typer.Option(
            "--versus",
            metavar="A,B",
            rich_help_panel=OUTPUT,
            help="Also say how sure it is that A is better than B; may be repeated.",
        ),
    ] = None
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, rich_help_panel=OUTPUT, help="Rows to print; 0 for all.")
    ] = 50
    format: Annotated[
        FormatName,
        typer.Option(
            "--format", metavar="KIND", rich_help_panel=OUTPUT, help="Print text, csv (all rows), md or json."
        ),
    ] = FormatName.text
    json: Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Short for --format json.")] = False
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            rich_help_panel=OUTPUT,
            help="Also say how answers were read, what was learned, and the verdict in full.",
        ),
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="Print the board, warnings and errors only.")
    ] = False

    @property
    def printed(self) -> FormatName:
        """What is printed; DataError where two things are asked for."""
        return printed(self.format, self.json)

    @property
    def is_for_programs(self) -> bool:
        """Whether standard output holds a document or a table alone."""
        return self.json or self.format is not FormatName.text

    def to_dict(self) -> dict[str, Any]:
        """What the numbers depend on, for the record of a run."""
        return {"scale": self.scale.value, "base": self.base, "anchor": self.anchor, "versus": self.versus}
