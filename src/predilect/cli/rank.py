"""``predilect rank``: from a file of answers to a board for the crowd and one for every person."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from predilect._base.files import are_parts, input_records
from predilect._base.text import as_typed
from predilect.cli.options import (
    FEATURES,
    MODEL,
    OUTPUT,
    ColumnOption,
    DesignOption,
    ItemsOption,
    MapOption,
    PeopleOption,
    ReadOption,
    Said,
    Votes,
    kept_of,
    model_said,
)
from predilect.cli.session import Talk, session
from predilect.errors import DataError
from predilect.models.registry import COMMANDS

Personal = StrEnum("Personal", ["auto", "yes", "no"])  # choice of personal rankings


def rank(
    ctx: typer.Context,
    file: Votes,
    column: ColumnOption = None,
    read: ReadOption = None,
    design: DesignOption = None,
    item_map: MapOption = None,
    items: ItemsOption = None,
    people: PeopleOption = None,
    segment: Annotated[
        list[str] | None,
        typer.Option(
            "--segment",
            metavar="COLUMN",
            rich_help_panel=FEATURES,
            help="Also say how people of each value of this column (of the people file, or else of FILE) differ from "
            "the crowd, in one fit. May be repeated.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            rich_help_panel=FEATURES,
            help="Also a board for each value of this column, each fitted by itself.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            rich_help_panel=MODEL,
            metavar="NAME[,SETTING=VALUE]",
            help="By what it is for: see the end of this help. Settings are the arguments that it has in Python: "
            "gaspk,n_components=4. With keep=20% a small model is stored, of what each person may choose; criterion= "
            "and others of compress go with it.",
        ),
    ] = "population",
    personal: Annotated[
        Personal | None,
        typer.Option(
            "--personal",
            rich_help_panel=MODEL,
            show_default="auto",
            help="yes: an equal voice and an own ranking for everybody; no: one ranking in which each answer counts "
            "once; auto: whichever predicts held-out answers better, which is the verdict and takes longest.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            rich_help_panel=OUTPUT,
            show_default="nothing is written",
            help="Folder to make: the board, everybody's ranking, pictures, the model.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace DIR if it holds earlier results.")
    ] = False,
) -> None:
    """Rank items from the answers in FILE: for the crowd, and for every person.

    FILE holds one answer a row: two items, which one won (or a tie) and, best, who answered. Choices out of several
    items, orders, ratings and best-worst answers are read too. Then predilect show, report, worth
    and others ask DIR.

    Example: predilect rank votes.csv -o results
    """  # fmt: skip
    with session(ctx.obj) as talk:
        common, items, people = ctx.obj, talk.file(items), talk.file(people)
        said = Said.of(talk, column, read, design, item_map)
        if are_parts(file):
            from predilect.cli.partition import rank_parts

            pooled = personal if personal is Personal.no else None
            refused = {"--people": people, "--segment": segment, "--by": by, "--personal no": pooled}
            rank_parts(talk, file, said, refused, items, model, out, force, _command(ctx, said), common)
            return
        given, file = file, talk.file(file)
        from predilect.cli.fitting import MOST_ROWS, Fitter, asked_for
        from predilect.cli.reading import Source, advise_parts, read_features, read_people, say_findings, say_intake
        from predilect.cli.segments import refuse_segments
        from predilect.data.read.readers import is_text
        from predilect.models.reading import warn_of_people_without_features
        from predilect.show.report.folder import MOST_ROWS_UNASKED, RankOutput, package_versions, rows_of_people
        from predilect.show.report.leaderboard import leaderboard_document, shared_segments
        from predilect.show.report.output import OutputFolder
        from predilect.show.report.sections import board_in_short
        from predilect.show.report.text import markdown

        started, clock = datetime.now(UTC), perf_counter()
        source = Source.of(file, said)
        name, settings = model_said(model, list(COMMANDS))
        small = kept_of(settings)
        if small is not None and out is None:
            raise DataError("keep= is of the model that is stored, and nothing is stored without -o DIR")
        of_nobody = source.settings.options.get("user") is False
        asked = asked_for(name, None if personal is None else personal.value, of_nobody)
        columns = list(dict.fromkeys(segment or ()))
        if columns:
            refuse_segments(by, name, asked)
        fitter = Fitter(name, settings, asked, common)
        folder = None if out is None else OutputFolder(out, force, reads=[*source.files.values(), items, people])
        with talk.progress("Reading"):
            reading = source.read(by, columns if people is None else [])
            of_people = reading.people or read_people(people, source.settings, columns)
            if of_people is not None and people is not None and reading.comparisons.has_users:
                warn_of_people_without_features(reading.comparisons, of_people)
            features = read_features(items, reading.comparisons, source.settings)
            fitter = replace(fitter, features=features, people=of_people)
            inputs = input_records({**source.files, "items": items, "people": people})
        seconds = {"reading": perf_counter() - clock}
        if small is not None:  # before the fit, which may take long
            from predilect.papers.compression.criteria import items_a_person

            items_a_person(small["keep"], reading.comparisons.n_items)
        say_intake(talk, reading.comparisons)
        for line in () if features is None else features.report:
            talk.detail(line)
        findings = fitter.look(reading.comparisons)
        say_findings(talk, findings)
        if asked != "no":
            advise_parts(talk, given, reading.comparisons)
        if folder is not None:
            folder.probe()

        overall, choice = fitter.fit(talk, reading.comparisons, findings, for_segments=bool(columns))
        if people is not None and asked == "no" and not overall.model.personal_:  # a setting of the model may ask too
            talk.warn("--people is not used, as one ranking for all tells nobody apart.")
        segments: dict[Any, Any] = {}
        if by is not None:
            segments = fitter.fit_segments(talk, reading.segments, choice.personal)
        elif columns:
            segments = shared_segments(overall.model, overall.model._own_scale)
        seconds["fitting"] = perf_counter() - clock - seconds["reading"]
        document = leaderboard_document(
            overall,
            overall.model._own_scale,
            verdict=choice.to_dict(),
            by={"column": by, "fits": "independent", "rows_without_value": reading.rows_without_segment}
            if by is not None else {"columns": columns, "fits": "shared"} if columns else None,
            segments=segments,
            provenance={
                "command": _command(ctx, said),
                "inputs": inputs,
                "options": {**said.record, "model": model, "personal": asked, "by": by, "segment": segment,
                            "strict": common.strict},
                "seed": common.seed,
                "versions": package_versions(),
            },
            timing={"started": started.isoformat(timespec="seconds"), "seconds": seconds},
        )  # fmt: skip
        stored = overall.model if small is None else overall.model.compress(**small)
        # A board that took long to make is shown even if the disk is full.
        failure: OSError | None = None
        written: list[str] = []
        n_rows = 0
        if folder is not None:
            try:
                with talk.progress("Writing") as watch, folder.writing() as place:
                    n_rows = rows_of_people(overall.model)
                    is_asked = asked == "yes" or n_rows <= MOST_ROWS_UNASKED
                    made = RankOutput(overall, segments, document, is_text(source.path), is_asked, stored=stored)
                    written = made.write(place, common.jobs, watch)
                talk.written = str(out)
            except OSError as error:
                failure = error
        _say(talk, overall, choice, segments, by, reading.rows_without_segment, out)
        if failure is not None:
            raise failure
        for line in stored.describe() if small is not None else ():
            talk.say(line)
        _say_next(talk, out, written, stored, n_rows)
        if not talk.explains:
            talk.say("--explain says how the answers were read, what was learned, and the verdict in full.")
        if talk.kind != "table":
            short = markdown(board_in_short(overall.board, overall.model._own_scale, MOST_ROWS, choice.verdict))
            talk.result(overall.board, "leaderboard", document, markdown=short)


def _say(
    talk: Talk, overall: Any, choice: Any, segments: dict[Any, Any], by: str | None, n_without: int, out: Path | None
) -> None:  # fmt: skip
    """Print the board, what is said of segments, and the verdict."""
    from predilect.cli.fitting import MOST_ROWS, say_board, say_choice, say_model, say_verdict
    from predilect.cli.segments import say_segments
    from predilect.cli.worth import say_coefficients
    from predilect.show.report.leaderboard import Ranking

    scale = overall.model._own_scale
    if talk.kind == "table" and _of_profiles(overall):
        say_coefficients(talk, overall.model, overall.model.worth.coefficients())
        if out is not None:
            talk.say(f"predilect show {as_typed(out)} has the board of the {len(overall.board)} alternatives.")
    elif talk.kind == "table":
        say_board(talk, overall.board, scale, MOST_ROWS, where=out)
    if by is not None:
        for value, one in segments.items():
            if isinstance(one, Ranking):
                say_board(talk, one.board, scale, 10, _title(one, value), out)
        talk.say(f'Each board by "{by}" was fitted by itself: small segments borrow nothing from the others.')
        if n_without:
            rows_have = "1 row has" if n_without == 1 else f"{n_without} rows have"
            talk.warn(f'{rows_have} no value in column "{by}" and count for the overall board only.')
    elif segments:
        say_segments(talk, segments, overall, scale)
    say_verdict(talk, overall.model, scale, choice.verdict)
    say_choice(talk, choice)
    say_model(talk, overall, scale, choice.personal)


def _of_profiles(ranking: Any) -> bool:
    """Whether items are what their attributes say, which are what somebody asks for: no board of such a thing is."""
    from predilect.show.charts.facts import has_attributes

    intake, model = ranking.comparisons.intake, ranking.model
    named = any(role.startswith("feature ") for role in intake.columns)
    return bool(intake.attributes) and not named and has_attributes(model) and not model._not_usable


def _title(ranking: Any, segment: str) -> str:
    from predilect._base.text import one_line
    from predilect.data.intake import counted

    pooled = "" if ranking.model.report_["model"] == "population" else ", pooled model"
    return f"{one_line(segment)}: {counted(ranking.comparisons.n_answers, 'answer')}{pooled}"


def _command(ctx: typer.Context, said: Said) -> str:
    """The command with the options that the numbers depend on, and names of files without their folders."""
    given = ["predilect", str(ctx.info_name)]
    for context in filter(None, (ctx, ctx.parent)):
        for one in context.command.params:
            value, source = context.params.get(one.name or ""), context.get_parameter_source(one.name or "")
            if source is None or source.name != "COMMANDLINE" or one.name in ("out", "jobs"):
                continue
            value = said.record["map"] if one.name == "item_map" else value
            flag = [] if one.param_type_name == "argument" else one.opts[:1]
            for part in value if isinstance(value, list | tuple) else [value]:
                words = [] if isinstance(part, bool) else [part.name if isinstance(part, Path) else str(part)]
                given.append(shlex.join([*flag, *words]))
    return " ".join(given)


def _say_next(talk: Talk, out: Path | None, written: list[str], model: Any, n_rows: int) -> None:
    from predilect._base.text import grouped
    from predilect.cli.folder import longer
    from predilect.show.charts.facts import has_attributes

    if out is None:
        talk.say("Nothing was written; -o DIR writes the board, everybody's own ranking and the model.")
        return
    talk.say(f"Written to {out}: {', '.join(written)}.")
    if "leaderboard.png" not in written:
        talk.say('No plot was made, for want of Matplotlib: pip install "predilect[plots]".')
    place = as_typed(out)
    if n_rows and "users.parquet" not in written:
        talk.say(
            f"Everybody's ranking was not written, as users.parquet would have {grouped(n_rows)} rows: predilect show "
            f"{place} --user ID shows one, and rank with --personal yes writes all."
        )
    if model._not_usable:
        more = f"to say what attributes are worth, rank again with {longer(model)}"
    elif has_attributes(model):
        more = f"predilect worth {place} says what attributes are worth"
    else:
        more = f"predilect show {place} ITEM ITEM says which of two is better"
    talk.say(f"Next: predilect report {place} -o board.html makes a page to send on; {more}.")
