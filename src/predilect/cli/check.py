"""``predilect check``: what was read, and what will make a ranking of it untrustworthy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from predilect._base.files import are_parts, input_records
from predilect._base.text import as_typed
from predilect.cli.options import ColumnOption, DesignOption, ItemsOption, MapOption, ReadOption, Said, Votes
from predilect.cli.session import session
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.data import Comparisons


def check(
    ctx: typer.Context,
    file: Votes,
    column: ColumnOption = None,
    read: ReadOption = None,
    design: DesignOption = None,
    item_map: MapOption = None,
    items: ItemsOption = None,
) -> None:
    """Read FILE and say what was read, and what will make a ranking untrustworthy, without ranking.

    Warnings do not change the exit code, which is 0 if the file can be read and 2 otherwise. --format csv or md prints
    what was found, a row each.
    """
    with session(replace(ctx.obj, explain=True)) as talk:
        said, items = Said.of(talk, column, read, design, item_map), talk.file(items)
        if are_parts(file):
            from predilect.cli.partition import check_parts

            check_parts(talk, file, said, items)
            return
        given, file = file, talk.file(file)
        from dataclasses import asdict

        import polars as pl

        from predilect.cli.reading import Source, advise_parts, read_features, say_findings, say_intake
        from predilect.data import check as look

        source = Source.of(file, said)
        comparisons = source.read().comparisons
        features = read_features(items, comparisons, source.settings)
        findings = look(comparisons, None if features is None else features.ids)
        say_intake(talk, comparisons)
        if features is not None:
            for line in features.report:
                talk.say(line)
        say_findings(talk, findings)
        advise_parts(talk, given, comparisons)
        if not findings:
            talk.say("No problems found.")
        talk.say(_next(given, comparisons))
        if talk.kind == "table":
            return
        columns = ("severity", "code", "count", "message")
        schema = {name: pl.Int64 if name == "count" else pl.String for name in columns}
        rows = [[getattr(one, name) for name in columns] for one in findings]
        talk.result(pl.DataFrame(rows, schema, orient="row"), "check", {
            "n_users": comparisons.n_users if comparisons.has_users else None,
            "n_items": comparisons.n_items,
            "n_answers": comparisons.n_answers,
            "reading": comparisons.reading.to_dict(),
            "intake": asdict(comparisons.intake),
            "findings": [asdict(finding) for finding in findings],
            "inputs": input_records({**source.files, "items": items}),
        })  # fmt: skip


def _next(given: Path, comparisons: Comparisons) -> str:
    """What to do with the answers."""
    from predilect.data.checks import check_answers

    if not comparisons.outcome.any():
        return "Next: collect answers that prefer an item. All of these are ties, which make no ranking."
    try:
        check_answers(comparisons.with_used_grades())
    except DataError as error:
        return f"Next: change how it is read, or predilect rank refuses it: {error}."
    return f"Next: predilect rank {as_typed(given)} -o DIR, with the same options."
