"""``predilect rank``: from a file of answers to a board for the crowd and one for every person."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from predilect.cli.choice import DEFAULT, ModelName, Personal, asked_for
from predilect.cli.options import (
    GaSPKOptions,
    ItemsFile,
    JsonFlag,
    PeopleFile,
    QuietFlag,
    ReadingOptions,
    Votes,
    expanded,
)
from predilect.cli.session import Talk, session
from predilect.models.registry import COMMANDS

MODEL = "Model"
OUTPUT = "Output"

ScaleName = StrEnum("ScaleName", ["probit", "logit", "elo"])  # the unit of a score


@expanded
def rank(
    votes: Votes,
    reading: ReadingOptions,
    gaspk: GaSPKOptions,
    items: ItemsFile = None,
    people: PeopleFile = None,
    model: Annotated[
        ModelName,
        typer.Option(
            "--model",
            rich_help_panel=MODEL,
            help="; ".join(f"{name}: {entry.about}" for name, entry in COMMANDS.items()) + ".",
        ),
    ] = DEFAULT,
    personal: Annotated[
        Personal | None,
        typer.Option(
            "--personal",
            rich_help_panel=MODEL,
            show_default="auto",
            help="yes: an equal voice and an own ranking for everybody; no: one ranking in which each answer counts "
            "once; auto: what the verdict favours, and yes with --no-verdict.",
        ),
    ] = None,
    pooled: Annotated[bool, typer.Option("--pooled", rich_help_panel=MODEL, help="Short for --personal no.")] = False,
    verdict: Annotated[
        bool,
        typer.Option(
            "--verdict/--no-verdict",
            rich_help_panel=MODEL,
            help="Say whether personal rankings predict held-out answers better than one ranking for all; it takes "
            "about as long as the ranking.",
        ),
    ] = True,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            rich_help_panel=MODEL,
            help="Also make a board for each value of this column of VOTES, each fitted by itself.",
        ),
    ] = None,
    segment: Annotated[
        list[str] | None,
        typer.Option(
            "--segment",
            metavar="COLUMN",
            rich_help_panel=MODEL,
            help="Also say how people of each value of this column (of the people file, or else of VOTES) differ from "
            "the crowd, in one fit in which small segments borrow from it; may be repeated. COLUMN=VALUE prints the "
            "board of that segment too.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, rich_help_panel=MODEL, help="The same seed gives the same result.")
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            rich_help_panel=MODEL,
            show_default="all cores",
            help="Threads; the result is the same for any number.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", rich_help_panel=MODEL, help="Fail (exit code 3) if the fit does not converge.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            rich_help_panel=OUTPUT,
            show_default="nothing is written",
            help="Folder to make: leaderboard.csv, .json, .png and .svg, people.csv, users.parquet, model/ and, "
            "with --by or --segment, segments.csv (of the latter also .png and .svg); with --model gaspk also "
            "weights.csv and characteristics.csv, .png and .svg.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace DIR if it holds earlier results.")
    ] = False,
    scale: Annotated[
        ScaleName,
        typer.Option(
            "--scale",
            rich_help_panel=OUTPUT,
            help="Unit of scores: the noise of one answer (probit), about log-odds (logit), or Elo points.",
        ),
    ] = ScaleName.probit,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, rich_help_panel=OUTPUT, help="Rows to print; 0 for all.")
    ] = 50,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Rank items from the answers in VOTES: for the crowd, and for every person.

    VOTES holds one answer a row: two items, which one won (or a tie) and, best, who answered.

    Example: predilect rank votes.csv --out results
    """  # fmt: skip
    with session(quiet, json) as talk:
        from predilect.cli.fitting import Fitter, say_board, say_findings, say_intake, say_model, say_verdict
        from predilect.cli.reading import read_features, read_people, read_votes
        from predilect.cli.segments import asked_segments, refuse_unknown, say_segments
        from predilect.report.folder import RankOutput, input_records, package_versions
        from predilect.report.leaderboard import Ranking, leaderboard_document, shared_segments
        from predilect.report.output import OutputFolder
        from predilect.report.tables import SCALES

        started, clock = datetime.now(UTC), perf_counter()
        asked = asked_for(model, personal, pooled)
        settings = gaspk.settings(model == "gaspk")
        columns, boards = asked_segments(segment or [], by, str(model), asked)
        if columns:
            asked = Personal.yes
        folder = None if out is None else OutputFolder(out, force)
        unit = SCALES[scale.value]
        with talk.progress("Reading"):
            read = read_votes(votes, reading, by, columns if people is None else [])
            of_people = read.people or read_people(people, reading.unpack_limit, columns)
            if of_people is not None:
                refuse_unknown(boards, [(one.source, one.category or "") for one in of_people.outputs])
            features = read_features(items, reading.unpack_limit)
            fitter = Fitter(str(model), features, of_people, unit, asked, verdict, seed, jobs, strict, settings)
            inputs = input_records({"votes": votes, "items": items, "people": people, "item_map": reading.item_map})
        seconds = {"reading": perf_counter() - clock}
        say_intake(talk, read.comparisons)
        findings = fitter.look(read.comparisons)
        say_findings(talk, findings)
        if folder is not None:
            folder.probe()

        overall, choice = fitter.fit(talk, read.comparisons, findings)
        segments: dict[Any, Any] = {}
        if by is not None:
            segments = fitter.fit_segments(talk, read.segments, choice.personal)
        elif columns:
            segments = shared_segments(overall.model, unit)
            refuse_unknown(boards, segments)  # those of whom nobody answered
        seconds["fitting"] = perf_counter() - clock - seconds["reading"]
        document = leaderboard_document(
            overall,
            unit,
            verdict=choice.to_dict(),
            by={"column": by, "fits": "independent", "rows_without_value": read.rows_without_segment} if by is not None
            else {"columns": columns, "fits": "shared"} if columns else None,
            segments=segments,
            provenance={
                "inputs": inputs,
                "options": {
                    **reading.to_dict(), "model": str(model), "personal": asked.value, "verdict": verdict, "by": by,
                    "segment": segment, "scale": scale.value,
                    "strict": strict, **gaspk.to_dict(),
                },
                "seed": seed,
                "versions": package_versions(),
            },
            timing={"started": started.isoformat(timespec="seconds"), "seconds": seconds},
        )  # fmt: skip

        # A board that took long to make is shown even if the disk is full.
        failure: OSError | None = None
        written: list[str] = []
        if folder is not None:
            try:
                with talk.progress("Writing") as watch, folder.writing() as place:
                    written = RankOutput(overall, unit, segments, document).write(place, jobs, watch)
                talk.written = str(out)
            except OSError as error:
                failure = error
        say_model(talk, overall, unit, choice.personal)
        say_verdict(talk, choice)
        say_board(talk, overall, unit, top)
        for value, one in segments.items():
            if isinstance(one, Ranking):
                say_board(talk, one, unit, top, value)
        if by is not None:
            _say_separate(talk, by, read.rows_without_segment)
        elif columns:
            say_segments(talk, segments, overall, unit, boards, top, out)
        if json:
            talk.document(document)
        if failure is not None:
            raise failure
        _say_next(talk, out, written)


def _say_separate(talk: Talk, by: str, n_without: int) -> None:
    talk.say(f'Each board by "{by}" was fitted by itself: small segments borrow nothing from the others.')
    if n_without:
        rows = "1 row has" if n_without == 1 else f"{n_without} rows have"
        talk.warn(f'{rows} no value in column "{by}" and count for the overall board only.')


def _say_next(talk: Talk, out: Path | None, written: list[str]) -> None:
    if out is None:
        talk.say("Nothing was written; --out DIR writes the board, everybody's own ranking and the model.")
        return
    talk.say(f"Written to {out}: {', '.join(written)}.")
    if "leaderboard.png" not in written:
        talk.say('No plot was made, for want of Matplotlib: pip install "predilect[plots]".')
    talk.say(f"Next: predilect predict {out} PAIRS says how likely each answer to other pairs is.")
