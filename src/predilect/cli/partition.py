"""``predilect partition``: answers beyond memory, dealt out by person; and ``rank`` and ``check`` of such."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect._base.text import as_typed
from predilect.cli.options import ColumnOption, DesignOption, Force, MapOption, ReadOption, Said
from predilect.cli.session import Talk, session
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.parts import Parts

_OF_FIT = ("pool", "work", "most_people", "start")  # settings of --model that are of fit_parts
_MOST_CHECKED = 20_000  # people whose answers are looked at for what makes a ranking untrustworthy


def partition(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", show_default=False,
            help="Files of answers of one form, with a column of who answered, as predilect rank takes them.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", show_default=False, help="Folder to make, or to add to.")
    ],
    column: ColumnOption = None,
    read: ReadOption = None,
    design: DesignOption = None,
    item_map: MapOption = None,
    parts: Annotated[
        int | None,
        typer.Option("--parts", metavar="N", show_default="one for 250 000 rows", help="How many parts to make."),
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add the answers to the parts that DIR holds.")] = False,
    force: Force = False,
) -> None:  # fmt: skip
    """Deal the answers in FILEs out to parts by person, where they are more than memory holds.

    Then predilect check and rank take DIR in place of a file. All answers of a person are in one part, by a hash of the
    id, and DIR/manifest.json says what is in which.

    Example: predilect partition votes-1.csv votes-2.csv -o parts
    """
    with session(ctx.obj) as talk:
        given = [talk.file(file) for file in files]
        said = Said.of(talk, column, read, design, item_map)
        from predilect.cli.reading import Source
        from predilect.parts.dealing import partition_files

        settings = Source.of(given[0], said).settings
        with talk.progress("Partitioning") as watch:
            made = partition_files(
                given, out, settings.options, parts, settings.unpack_limit, add=add, overwrite=force, watch=watch
            )
        talk.written = str(out)
        for line in made.intake.describe(name_people=True) if talk.explains else made.intake.reading.lines():
            talk.say(line)
        talk.say(f"Written to {out}: {made.described()}.")
        place = as_typed(out)
        why = _why_not_ranked(made)
        rank = "" if why else f"predilect rank {place} -o results; "
        talk.say(f"Next: {rank}predilect check {place} reads every part.{why and f' {why}'}")
        if talk.kind != "table":
            talk.result(_records(made), "partition", {"parts": [asdict(one) for one in made.records]})


def _records(parts: Any) -> Any:
    import polars as pl

    return pl.DataFrame([asdict(one) for one in parts.records])


def refuse_reading(said: Said) -> None:
    """DataError if it is said how a folder of parts is read, which was said when it was made."""
    for flag, value in (
        ("-c", said.column),
        ("--read", said.read),
        ("--design", said.design),
        ("--map", said.item_map),
    ):
        if value:
            raise DataError(f"{flag} says how files are read, and parts were read: say it to predilect partition")


def _why_not_ranked(parts: Parts) -> str:
    """What a fit to parts lacks, in a sentence; empty where there is nothing."""
    if parts.n_users == 1:
        return "To be ranked, parts need the answers of two people or more."
    if parts.has_contexts:
        return "To be ranked, parts may have no contexts: partition the files again without -c context=..."
    return ""


def check_parts(talk: Talk, folder: Path, said: Said, items: Path | None) -> None:
    """Read every part, and say what is in them, and what will make a ranking of them untrustworthy."""
    refuse_reading(said)
    from predilect.cli.reading import ReadingOptions, read_features, say_findings
    from predilect.data import check
    from predilect.parts import Parts

    parts = Parts.open(folder)
    with talk.progress("Reading parts") as watch:
        for number, _ in enumerate(parts.check(), 1):
            watch("reading parts", number)
    for line in parts.intake.describe(name_people=True):
        talk.say(line)
    talk.say(f"{parts.described()}; each part is as the manifest says, and no person is in two.")
    sample = parts.sample(_MOST_CHECKED, 50 * _MOST_CHECKED)
    features = read_features(items, sample, ReadingOptions())
    findings = check(sample, None if features is None else features.ids)
    if sample.n_users < parts.n_users:
        talk.say(f"What follows is of {sample.n_users} of the people.")
    say_findings(talk, findings)
    if not findings:
        talk.say("No problems found.")
    talk.say(_why_not_ranked(parts) or f"Next: predilect rank {as_typed(folder)} -o DIR.")
    if talk.kind != "table":
        talk.result(_records(parts), "check", {
            "n_users": parts.n_users, "n_items": parts.n_items, "n_answers": parts.n_answers,
            "reading": parts.intake.reading.to_dict(), "findings": [asdict(finding) for finding in findings],
            "parts": [asdict(one) for one in parts.records],
        })  # fmt: skip


def rank_parts(
    talk: Talk, folder: Path, said: Said, refused: Mapping[str, Any], items: Path | None, model: str,
    out: Path | None, force: bool, command: str, common: Any,
) -> None:  # fmt: skip
    """``predilect rank`` of a folder of parts: the crowd's board, the model, and what is found out about each part."""
    refuse_reading(said)
    for flag, value in refused.items():
        if value:
            raise DataError(f"{flag} is not known of a folder of parts, of which the personal model is fitted")
    from predilect._base.files import input_records
    from predilect.cli.fitting import MOST_ROWS, say_board, say_model
    from predilect.cli.options import model_said
    from predilect.cli.reading import ReadingOptions, read_features
    from predilect.decisions.scales import SCALES
    from predilect.models.registry import estimator
    from predilect.parts import Parts
    from predilect.show.report.folder import RankOutput, package_versions
    from predilect.show.report.leaderboard import Ranking, leaderboard_document
    from predilect.show.report.output import OutputFolder
    from predilect.show.report.sections import board_in_short
    from predilect.show.report.text import markdown

    name, settings = model_said(model, ["population"])
    target = None if out is None else OutputFolder(out, force, reads=[folder, items])
    parts, scale = Parts.open(folder), SCALES["probit"]
    talk.say(f"{parts.described()}.")
    features = None if items is None else read_features(items, parts.sample(1000, 100_000), ReadingOptions())
    how = {key: settings.pop(key) for key in _OF_FIT if key in settings}
    before = len(talk.warned)
    with talk.progress("Ranking") as watch:
        try:
            chosen = estimator(name)(**{"n_jobs": common.jobs, "random_state": common.seed, "strict": common.strict},
                                     **settings)  # fmt: skip
        except (TypeError, ValueError) as error:
            raise DataError(f"--model {name}: {error}") from None
        fitted = chosen.fit_parts(parts, items=features, watch=watch, **how)
    answers = replace(fitted.population.comparisons_, intake=parts.intake)
    overall = Ranking.of(fitted.population, answers, scale, [], talk.warned[before:])
    document = leaderboard_document(
        overall, scale, provenance={"command": command, "inputs": input_records({"items": items}),
        "parts": {"checksum": parts.checksum, "n_parts": len(parts)}, "seed": common.seed,
        "versions": package_versions()}, timing={"seconds": fitted.population.report_["timing"]["fit_seconds"]},
    )  # fmt: skip
    written: list[str] = []
    if target is not None:
        with talk.progress("Writing") as watch, target.writing() as place:
            written = RankOutput(overall, {}, document, in_parts=fitted).write(place, common.jobs, watch)
        talk.written = str(out)
        if "work" not in how:
            fitted._remove_work()
    if talk.kind == "table":
        say_board(talk, overall.board, scale, MOST_ROWS, where=out)
    say_model(talk, overall, scale, True)
    if out is None:
        talk.say("Nothing was written; -o DIR writes the board and the model.")
    else:
        talk.say(f"Written to {out}: {', '.join(written)}.")
        talk.say(f"Next: predilect show {as_typed(out)} --user ID reads the part of one person.")
    if talk.kind != "table":
        short = markdown(board_in_short(overall.board, scale, MOST_ROWS, None))
        talk.result(overall.board, "leaderboard", json.loads(json.dumps(document)), markdown=short)
