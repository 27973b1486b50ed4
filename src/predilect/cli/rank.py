"""``predilect rank``: from a file of answers to a board for the crowd and one for every person."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from predilect.cli.choice import DEFAULT, ModelName, Personal, asked_for
from predilect.cli.options import (
    MODEL,
    OUTPUT,
    GaSPKOptions,
    ItemsFile,
    JobsOption,
    JsonFlag,
    PeopleFile,
    QuietFlag,
    ReadingOptions,
    SeedOption,
    StrictFlag,
    Votes,
    expanded,
)
from predilect.cli.session import Talk, session
from predilect.errors import DataError
from predilect.models.registry import COMMANDS, estimator, load_model

ScaleName = StrEnum(  # of scores
    "ScaleName", {"probit": "probit", "logit": "logit", "elo": "elo", "zero_to_hundred": "0-100", "share": "share"}
)
FormatName = StrEnum("FormatName", ["text", "md"])  # of what is printed


@expanded
def rank(
    ctx: typer.Context,
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
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    strict: StrictFlag = False,
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
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            rich_help_panel=OUTPUT,
            show_default="nothing is written",
            help="Page to make, such as board.html, to be sent on: the board, what it says, whether it can be trusted. "
            "It is one file, which asks nothing of any other place.",
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="OLD",
            rich_help_panel=OUTPUT,
            help="Folder that an earlier predilect rank wrote: say what changed since, and whether it is more than "
            "chance.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", rich_help_panel=OUTPUT, help="Replace DIR if it holds earlier results, and FILE."),
    ] = False,
    scale: Annotated[
        ScaleName,
        typer.Option(
            "--scale",
            rich_help_panel=OUTPUT,
            help="Of scores: the noise of one answer (probit), about log-odds (logit), Elo points, 0 to 100 from the "
            "last item to the first, or shares of choices in per cent.",
        ),
    ] = ScaleName.probit,
    base: Annotated[
        float | None,
        typer.Option(
            "--base",
            metavar="X",
            rich_help_panel=OUTPUT,
            show_default="0",
            help="Score of the mean of the items, or of the anchor.",
        ),
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option(
            "--anchor",
            metavar="ITEM",
            rich_help_panel=OUTPUT,
            help="The item that has the score of --base; intervals are of the distance to it.",
        ),
    ] = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(
            "--versus",
            metavar="A,B",
            rich_help_panel=OUTPUT,
            help="Also say how sure it is that item A is better than item B; may be repeated.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, rich_help_panel=OUTPUT, help="Rows to print; 0 for all.")
    ] = 50,
    format: Annotated[
        FormatName,
        typer.Option(
            "--format",
            rich_help_panel=OUTPUT,
            help="md: print the board and the verdict as Markdown; messages go to standard error.",
        ),
    ] = FormatName.text,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Rank items from the answers in VOTES: for the crowd, and for every person.

    VOTES holds one answer a row: two items, which one won (or a tie) and, best, who answered.

    Example: predilect rank votes.csv --out results
    """  # fmt: skip
    as_markdown = format is FormatName.md
    with session(quiet, json or as_markdown) as talk:
        from predilect.cli.fitting import Fitter, say_board, say_findings, say_intake, say_model, say_verdict
        from predilect.cli.pairs import named_pairs, refuse_unknown_items, say_versus, versus_table
        from predilect.cli.reading import read_features, read_people, read_votes
        from predilect.cli.segments import asked_segments, refuse_unknown, say_segments
        from predilect.decisions.scales import scale_of
        from predilect.report.changes import changes_between, shared_items
        from predilect.report.folder import RankOutput, input_records, package_versions
        from predilect.report.leaderboard import Ranking, leaderboard_document, shared_segments
        from predilect.report.markdown import markdown
        from predilect.report.output import OutputFile, OutputFolder

        started, clock = datetime.now(UTC), perf_counter()
        asked = asked_for(model, personal, pooled)
        named = named_pairs(versus or [])
        settings = gaspk.settings(model == "gaspk")
        columns, boards = asked_segments(segment or [], by, str(model), asked)
        if columns:
            asked = Personal.yes
        if json and as_markdown:
            raise DataError("--json and --format md both want standard output. Give one of them")
        folder = None if out is None else OutputFolder(out, force)
        page = None if report is None else OutputFile(report, force, what="the report needs", place="--report")
        old = None if compare is None else load_model(compare)
        unit = scale_of(scale.value, estimator(str(model))._likelihood.name, base, anchor)
        with talk.progress("Reading"):
            read = read_votes(votes, reading, by, columns if people is None else [])
            of_people = read.people or read_people(people, reading.unpack_limit, columns)
            if of_people is not None:
                refuse_unknown(boards, [(one.source, one.category or "") for one in of_people.outputs])
            features = read_features(items, read.comparisons, reading.unpack_limit)
            fitter = Fitter(str(model), features, of_people, unit, asked, verdict, seed, jobs, strict, settings)
            inputs = input_records({"votes": votes, "items": items, "people": people, "item_map": reading.item_map})
            if old is not None:
                shared_items(read.comparisons.items, old, str(compare))
            refuse_unknown_items("--anchor", [] if anchor is None else [anchor], read.comparisons, features)
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
        document = leaderboard_document(
            overall,
            unit,
            versus=beside,
            verdict=choice.to_dict(),
            by={"column": by, "fits": "independent", "rows_without_value": read.rows_without_segment} if by is not None
            else {"columns": columns, "fits": "shared"} if columns else None,
            segments=segments,
            provenance={
                "inputs": inputs,
                "options": {
                    **reading.to_dict(), "model": str(model), "personal": asked.value, "verdict": verdict, "by": by,
                    "segment": segment, "scale": scale.value, "base": base, "anchor": anchor, "versus": versus,
                    "strict": strict, **gaspk.to_dict(),
                },
                "seed": seed,
                "versions": package_versions(),
            },
            timing={"started": started.isoformat(timespec="seconds"), "seconds": seconds},
        )  # fmt: skip

        changes = None if old is None else changes_between(overall.model, old, unit, str(compare))
        # A board that took long to make is shown even if the disk is full.
        failure: OSError | None = None
        written: list[str] = []
        if page is not None:
            try:
                with talk.progress("Writing"):
                    text = _page(overall, unit, findings, choice.reason, changes, document, _command(ctx))
                    page.write(lambda place: place.write_text(text, encoding="utf-8"))
                talk.written = str(report)
            except OSError as error:
                failure = error
        if folder is not None:
            try:
                with talk.progress("Writing") as watch, folder.writing() as place:
                    written = RankOutput(overall, unit, segments, document).write(place, jobs, watch)
                talk.written = str(out)
            except OSError as error:
                failure = error
        if as_markdown:
            typer.echo(markdown(overall.board, unit, choice.verdict, top or len(overall.board), beside), nl=False)
        say_model(talk, overall, unit, choice.personal)
        say_verdict(talk, choice)
        say_board(talk, overall, unit, top)
        say_versus(talk, beside, unit)
        for value, one in segments.items():
            if isinstance(one, Ranking):
                say_board(talk, one, unit, top, value)
        if by is not None:
            _say_separate(talk, by, read.rows_without_segment)
        elif columns:
            say_segments(talk, segments, overall, unit, boards, top, out)
        if changes is not None:
            talk.say(changes.sentence)
        if json:
            talk.document(document)
        if failure is not None:
            raise failure
        if report is not None:
            talk.say(f"Written to {report}: a page to be sent on.")
        if out is not None or report is None:
            _say_next(talk, out, written)


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
    overall: Any, unit: Any, findings: Any, reason: str, changes: Any, document: dict[str, Any], command: str
) -> str:
    """The report as a page."""
    from predilect.report.contents import contents_of
    from predilect.report.page import page

    provenance = document["provenance"]
    made = {"Command": command}
    made |= {f"File of {role}": f"{one['name']}, SHA-256 {one['sha256']}" for role, one in provenance["inputs"].items()}
    made["Versions"] = ", ".join(f"{name} {version}" for name, version in provenance["versions"].items())
    told = contents_of(
        overall.model, scale=unit, findings=findings, warnings=overall.warnings, returned=reason, changes=changes,
        made=made,
    )  # fmt: skip
    return page(told)


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
