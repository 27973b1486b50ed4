"""``predilect report``: a page about a ranking, to be sent on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect.cli.options import Folder, Force, ScaleOption
from predilect.cli.session import session

if TYPE_CHECKING:
    from predilect.cli.folder import Results
    from predilect.show.report.sections import Contents


def report(
    ctx: typer.Context,
    folder: Folder,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="PAGE", show_default=False, help="Page to make: board.html, or board.md as Markdown."
        ),
    ],
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Its heading.")] = "",
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="OLD", help="Folder of an earlier ranking: what changed since."),
    ] = None,
    scale: ScaleOption = "probit",
    name_people: Annotated[
        bool,
        typer.Option("--name-people", help="Name people where a sentence is about some; think of whom it goes to."),
    ] = False,
    force: Force = False,
) -> None:
    """Make a page about the ranking in DIR: one file that needs nothing else, to be sent on.

    The board, what it says, whether it can be trusted, how to read it, items against each other, people, segments,
    what to ask next. No id of a person is in it without --name-people.

    Example: predilect report results -o board.html --title "Which model writes best?"
    """
    with session(ctx.obj) as talk:
        from predilect.cli.folder import Results
        from predilect.decisions.scales import scale_of
        from predilect.show.report.changes import changes_between
        from predilect.show.report.notebook import refuse_other_form, written
        from predilect.show.report.output import OutputFile

        refuse_other_form(out)
        target = OutputFile(out, force, what="the report needs", reads=[folder, compare])
        results = Results.of(folder).with_people(talk)
        model = results.model
        old = None if compare is None else Results.of(compare).model
        unit = scale_of(scale, model._likelihood.name)
        with talk.progress("Writing"):
            contents = contents_in(
                results, scale=unit, title=title, name_people=name_people,
                changes=None if old is None else changes_between(model, old, unit, str(compare)),
            )  # fmt: skip
            text = written(contents, out)
            target.write(lambda place: place.write_text(text, encoding="utf-8"))
        talk.written = str(out)
        talk.say(f"Written to {out}: a page to send on.")


def contents_in(results: Results, **settings: Any) -> Contents:
    """Contents of a report on what a folder holds."""
    from predilect.show.report.sections import contents_of

    document = results.document
    return contents_of(
        results.model, warnings=document.get("warnings", ()), made=_made(document), **_checked(document), **settings,
        returned=(document.get("verdict") or {}).get("reason", ""),
    )  # fmt: skip


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    """What was read and what ``check`` found in it, as the folder has it; nothing where it holds nothing of that."""
    from predilect.data import Finding, Intake

    if "findings" not in document or "intake" not in document:
        return {}
    found = [Finding(**{**one, "examples": tuple(one["examples"])}) for one in document["findings"]]
    return {"findings": found, "intake": Intake(**document["intake"])}


def _made(document: dict[str, Any]) -> dict[str, str]:
    """How the ranking was made, by the name of each fact."""
    provenance = document.get("provenance")
    if provenance is None:
        return {}
    made = {"Command": provenance["command"]} if "command" in provenance else {}
    made |= {f"File of {role}": f"{one['name']}, SHA-256 {one['sha256']}" for role, one in provenance["inputs"].items()}
    made["Versions"] = ", ".join(f"{name} {version}" for name, version in provenance["versions"].items())
    return made
