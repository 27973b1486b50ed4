"""``predilect compare``: what changed between two rankings, and whether it is more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from predilect.cli.options import Force, OutFile, ScaleOption
from predilect.cli.session import session


def compare(
    ctx: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD", show_default=False, help="Folder of the earlier ranking.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", show_default=False, help="Folder of the later one.")],
    scale: ScaleOption = "probit",
    out: OutFile = None,
    force: Force = False,
) -> None:
    """Say what changed from the ranking in OLD to that in NEW, and whether it is more than chance.

    A row for each item of both, the surest change first: its scores and ranks in both, the difference with its 95 %
    interval, and whether it is more than chance.

    Example: predilect compare june july
    """
    with session(ctx.obj) as talk:
        from predilect.cli.folder import Results
        from predilect.decisions.scales import scale_of
        from predilect.show.report.changes import ASSUMPTION, changes_between
        from predilect.show.report.output import OutputFile
        from predilect.show.report.tables import write_csv

        target = None if out is None else OutputFile(out, force, what="the changes need", reads=[old, new])
        before, after = Results.of(old).model, Results.of(new).model
        changes = changes_between(after, before, scale_of(scale, after._likelihood.name), str(old))
        columns = ("item", "old", "new", "difference", "lower", "upper", "more_than_chance", "old_rank", "new_rank")
        if target is not None:
            target.write(lambda path: write_csv(changes.table, path))
            talk.written = str(out)
            talk.say(f"Written to {out}: {len(changes.table)} rows.")
        if talk.kind == "table":
            talk.result(changes.table.select(columns), "changes", {})
        talk.show(changes.sentence)
        talk.detail(ASSUMPTION)
        if talk.kind != "table":
            talk.result(changes.table, "changes", changes.to_dict())
