"""``predilect check``: what was read, and what will make a ranking of it untrustworthy."""

from __future__ import annotations

import shlex
from typing import Any

from predilect.cli.choice import FormatName, FormatOption, printed
from predilect.cli.options import ItemsFile, JsonFlag, QuietFlag, ReadingOptions, Votes, expanded, with_files
from predilect.cli.session import session


@expanded
def check(
    votes: Votes,
    reading: ReadingOptions,
    items: ItemsFile = None,
    format: FormatOption = FormatName.text,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Read VOTES and say what will make a ranking untrustworthy, without ranking.

    Warnings do not change the exit code, which is 0 if the file can be read and 2 otherwise. --format csv or md prints
    what was found, a row each.
    """
    with session(quiet, json or format is not FormatName.text) as talk:
        kind = printed(format, json)
        given, votes, items, reading = votes, talk.file(votes), talk.file(items), with_files(reading, talk)
        from dataclasses import asdict

        from predilect._files import input_records
        from predilect._json import plain
        from predilect.cli.reading import read_features, read_votes, say_findings, say_intake
        from predilect.data import check as look

        comparisons = read_votes(votes, reading).comparisons
        features = read_features(items, comparisons, reading.unpack_limit)
        findings = look(comparisons, None if features is None else features.ids)
        say_intake(talk, comparisons)
        if features is not None:
            for line in features.report:
                talk.say(line)
        say_findings(talk, findings)
        if not findings:
            talk.say("Nothing stands in the way of a ranking.")
        talk.say(f"Next: predilect rank {shlex.quote(str(given))} --out DIR, with the same options.")
        if kind in (FormatName.csv, FormatName.md):
            import polars as pl

            columns = ("severity", "code", "count", "message")
            schema = {name: pl.Int64 if name == "count" else pl.String for name in columns}
            talk.table(
                pl.DataFrame([[getattr(one, name) for name in columns] for one in findings], schema, orient="row"), kind
            )
        elif kind is FormatName.json:
            document: dict[str, Any] = {
                "schema": "predilect/check",
                "version": 1,
                "n_users": comparisons.n_users if comparisons.has_users else None,
                "n_items": comparisons.n_items,
                "n_answers": comparisons.n_answers,
                "reading": comparisons.reading.to_dict(),
                "intake": asdict(comparisons.intake),
                "findings": [asdict(finding) for finding in findings],
                "warnings": talk.warned,
                "inputs": input_records({"votes": votes, "items": items, "item_map": reading.item_map}),
            }
            talk.document(plain(document, words=False))
