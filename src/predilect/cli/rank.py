"""``predilect rank``: from a file of answers to a board for the crowd and one for every person."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from predilect.cli.choice import DEFAULT, FormatName, ModelName, Personal, ResultOptions, asked_for
from predilect.cli.options import (
    MODEL,
    GaSPKOptions,
    ItemsFile,
    JobsOption,
    PeopleFile,
    ReadingOptions,
    SeedOption,
    StrictFlag,
    Votes,
    expanded,
    with_files,
)
from predilect.cli.session import Talk, session
from predilect.models.registry import COMMANDS, estimator, load_model


@expanded
def rank(
    ctx: typer.Context,
    votes: Votes,
    reading: ReadingOptions,
    gaspk: GaSPKOptions,
    results: ResultOptions,
    items: ItemsFile = None,
    people: PeopleFile = None,
    model: Annotated[
        ModelName,
        typer.Option(
            "--model",
            rich_help_panel=MODEL,
            metavar="NAME",
            help=f"One of {', '.join(COMMANDS)}.",
        ),
    ] = DEFAULT,
    personal: Annotated[
        Personal | None,
        typer.Option(
            "--personal",
            rich_help_panel=MODEL,
            show_default="auto",
            help="yes: an equal voice and an own ranking for everybody; no: one ranking in which each answer counts "
            "once; auto: what the verdict favours.",
        ),
    ] = None,
    pooled: Annotated[bool, typer.Option("--pooled", rich_help_panel=MODEL, help="Short for --personal no.")] = False,
    verdict: Annotated[
        bool,
        typer.Option(
            "--verdict/--no-verdict",
            rich_help_panel=MODEL,
            help="Say whether personal rankings predict better than one for all; about half of the time.",
        ),
    ] = True,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            rich_help_panel=MODEL,
            help="Also a board for each value of this column, each fitted by itself.",
        ),
    ] = None,
    segment: Annotated[
        list[str] | None,
        typer.Option(
            "--segment",
            metavar="COLUMN",
            rich_help_panel=MODEL,
            help="Also say how people of each value of this column (of the people file, or else of VOTES) differ from "
            "the crowd, in one fit; COLUMN=VALUE prints that board too. May be repeated.",
        ),
    ] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    strict: StrictFlag = False,
) -> None:
    """Rank items from the answers in VOTES: for the crowd, and for every person.

    VOTES holds one answer a row: two items, which one won (or a tie) and, best, who answered.

    Example: predilect rank votes.csv --out results
    """  # fmt: skip
    with session(results.quiet, results.is_for_programs, results.explain) as talk:
        votes, items, people, reading = talk.file(votes), talk.file(items), talk.file(people), with_files(reading, talk)
        from predilect._files import input_records
        from predilect.cli.fitting import Fitter, named_pairs, refuse_unknown_items, versus_table
        from predilect.cli.reading import read_features, read_people, read_votes, say_findings, say_intake
        from predilect.cli.segments import asked_segments, refuse_unknown
        from predilect.data.read.readers import is_text
        from predilect.decisions.scales import scale_of
        from predilect.models.reading import warn_of_people_without_features
        from predilect.report.changes import changes_between, shared_items
        from predilect.report.folder import RankOutput, package_versions
        from predilect.report.leaderboard import leaderboard_document, shared_segments
        from predilect.report.output import OutputFile, OutputFolder

        started, clock = datetime.now(UTC), perf_counter()
        printed, out, report, compare = results.printed, results.out, results.report, results.compare
        asked = asked_for(model, personal, pooled)
        named = named_pairs(results.versus or [])
        settings = gaspk.settings(model == "gaspk")
        columns, boards = asked_segments(segment or [], by, str(model), asked)
        if columns:
            asked = Personal.yes
        if people is not None and asked is Personal.no:
            talk.warn("--people is not used, as one ranking for all tells nobody apart.")
        folder = None if out is None else OutputFolder(out, results.force)
        page = None if report is None else OutputFile(report, results.force, what="the report needs", place="--report")
        old = None if compare is None else load_model(compare)
        unit = scale_of(results.scale.value, estimator(str(model))._likelihood.name, results.base, results.anchor)
        with talk.progress("Reading"):
            read = read_votes(votes, reading, by, columns if people is None else [])
            of_people = read.people or read_people(people, reading.unpack_limit, columns)
            if of_people is not None:
                if people is not None and read.comparisons.has_users:
                    warn_of_people_without_features(read.comparisons, of_people)
                refuse_unknown(boards, [(one.source, one.category or "") for one in of_people.outputs])
            features = read_features(items, read.comparisons, reading.unpack_limit)
            fitter = Fitter(str(model), features, of_people, unit, asked, verdict, seed, jobs, strict, settings)
            inputs = input_records({"votes": votes, "items": items, "people": people, "item_map": reading.item_map})
            if old is not None:
                shared_items(read.comparisons.items, old, str(compare))
            anchors = [] if results.anchor is None else [results.anchor]
            refuse_unknown_items("--anchor", anchors, read.comparisons, features)
            refuse_unknown_items("--versus", [name for pair in named for name in pair], read.comparisons, features)
        seconds = {"reading": perf_counter() - clock}
        say_intake(talk, read.comparisons)
        findings = fitter.look(read.comparisons)
        say_findings(talk, findings)
        for output in (folder, page):
            if output is not None:
                output.probe()

        overall, choice = fitter.fit(talk, read.comparisons, findings)
        segments: dict[Any, Any] = {}
        if by is not None:
            segments = fitter.fit_segments(talk, read.segments, choice.personal)
        elif columns:
            segments = shared_segments(overall.model, unit)
            refuse_unknown(boards, segments)  # those of whom nobody answered
        seconds["fitting"] = perf_counter() - clock - seconds["reading"]
        beside = versus_table(overall.model, named, unit)
        changes = None if old is None else changes_between(overall.model, old, unit, str(compare))
        document = leaderboard_document(
            overall,
            unit,
            verdict=choice.to_dict(),
            versus=beside,
            changes=None if changes is None else changes.to_dict(),
            by={"column": by, "fits": "independent", "rows_without_value": read.rows_without_segment} if by is not None
            else {"columns": columns, "fits": "shared"} if columns else None,
            segments=segments,
            provenance={
                "inputs": inputs,
                "options": {
                    **reading.to_dict(), "model": str(model), "personal": asked.value, "verdict": verdict, "by": by,
                    "segment": segment, "strict": strict, **results.to_dict(), **gaspk.to_dict(),
                },
                "seed": seed,
                "versions": package_versions(),
            },
            timing={"started": started.isoformat(timespec="seconds"), "seconds": seconds},
        )  # fmt: skip
        # A board that took long to make is shown even if the disk is full.
        failure: OSError | None = None
        written: list[str] = []
        if page is not None:
            try:
                with talk.progress("Writing"):
                    text = _page(
                        overall, unit, findings, choice.reason, changes, document, _command(ctx), results.name_people
                    )
                    page.write(lambda place: place.write_text(text, encoding="utf-8"))
                talk.written = str(report)
            except OSError as error:
                failure = error
        if folder is not None:
            try:
                with talk.progress("Writing") as watch, folder.writing() as place:
                    made = RankOutput(
                        overall, unit, segments, document, changes, results.users_as.value, is_text(votes)
                    )
                    written = made.write(place, jobs, watch)
                talk.written = str(out)
            except OSError as error:
                failure = error
        told = Printed(overall, choice, unit, beside, segments, boards, changes, by, read.rows_without_segment)
        _say(talk, told, results)
        if printed is FormatName.json:
            talk.document(document)
        if failure is not None:
            raise failure
        if report is not None:
            talk.say(f"Written to {report}: a page to be sent on.")
        if out is not None or report is None:
            _say_next(talk, out, written)
        if not talk.explains:
            talk.say("--explain says how the answers were read, what was learned, and the verdict in full.")


@dataclass(frozen=True)
class Printed:
    """What is printed of a ranking."""

    overall: Any
    choice: Any
    scale: Any
    versus: Any
    segments: dict[Any, Any]
    boards: list[tuple[str, str]]
    changes: Any
    by: str | None
    n_without: int


def _say(talk: Talk, told: Printed, results: ResultOptions) -> None:
    """Print the board, what is said of pairs, segments and changes, and the verdict."""
    from predilect.cli.fitting import rows_shown, say_board, say_model, say_verdict, say_versus
    from predilect.cli.segments import say_segments
    from predilect.report.leaderboard import Ranking
    from predilect.report.sections import board_in_short
    from predilect.report.text import markdown

    overall, scale, top = told.overall, told.scale, results.top
    if results.printed is FormatName.md:
        rows = rows_shown(overall.board, top)
        parts = board_in_short(overall.board, scale, rows, told.choice.verdict, told.versus)
        typer.echo(markdown(parts), nl=False)
    elif results.printed is FormatName.csv:
        talk.table(overall.board)
    if not talk.as_json:
        say_board(talk, overall, scale, top)
        say_versus(talk, told.versus, scale)
    if told.by is not None:
        for value, one in told.segments.items():
            if isinstance(one, Ranking):
                say_board(talk, one, scale, top, value)
        talk.say(f'Each board by "{told.by}" was fitted by itself: small segments borrow nothing from the others.')
        if told.n_without:
            rows_have = "1 row has" if told.n_without == 1 else f"{told.n_without} rows have"
            talk.warn(f'{rows_have} no value in column "{told.by}" and count for the overall board only.')
    elif told.segments:
        say_segments(talk, told.segments, overall, scale, told.boards, top, results.out)
    if told.changes is not None:
        talk.say(told.changes.sentence)
    say_verdict(talk, told.choice, overall, scale)
    say_model(talk, overall, scale, told.choice.personal)


def _command(ctx: typer.Context) -> str:
    """The command with the options that were given, and names of files without their folders."""
    given = ["predilect", str(ctx.info_name)]
    for one in ctx.command.params:
        value, source = ctx.params.get(one.name or ""), ctx.get_parameter_source(one.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        names = one.opts if value is not False else one.secondary_opts
        flag = [] if one.param_type_name == "argument" else names[-1:]
        for part in value if isinstance(value, list | tuple) else [value]:
            told = [] if isinstance(part, bool) else [Path(part).name if isinstance(part, Path) else str(part)]
            given.append(shlex.join([*flag, *told]))
    return " ".join(given)


def _page(
    overall: Any, unit: Any, findings: Any, reason: str, changes: Any, document: dict[str, Any], command: str,
    name_people: bool,
) -> str:  # fmt: skip
    """The report as a page."""
    from predilect.report.page import page
    from predilect.report.sections import contents_of

    provenance = document["provenance"]
    made = {"Command": command}
    made |= {f"File of {role}": f"{one['name']}, SHA-256 {one['sha256']}" for role, one in provenance["inputs"].items()}
    made["Versions"] = ", ".join(f"{name} {version}" for name, version in provenance["versions"].items())
    told = contents_of(
        overall.model, scale=unit, findings=findings, warnings=overall.warnings, returned=reason, changes=changes,
        made=made, name_people=name_people,
    )  # fmt: skip
    return page(told)


def _say_next(talk: Talk, out: Path | None, written: list[str]) -> None:
    if out is None:
        talk.say("Nothing was written; --out DIR writes the board, everybody's own ranking and the model.")
        return
    talk.say(f"Written to {out}: {', '.join(written)}.")
    if "leaderboard.png" not in written:
        talk.say('No plot was made, for want of Matplotlib: pip install "predilect[plots]".')
    talk.say(f"Next: predilect predict {shlex.quote(str(out))} PAIRS says how likely each answer to other pairs is.")
