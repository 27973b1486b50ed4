"""``predilect predict``: how likely each answer is, pair by pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect.cli.options import COLUMNS, FEATURES, UNPACK_LIMIT, JsonFlag, ModelFolder, QuietFlag, UnpackLimit
from predilect.cli.session import session

if TYPE_CHECKING:
    import polars as pl


_SUFFIXES = (".csv", ".parquet", ".jsonl")


def predict(
    model: ModelFolder,
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS", show_default=False, help="File of pairs, one a row: left, right and perhaps user."
        ),
    ],
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", metavar="FILE", rich_help_panel=FEATURES, help="Features of items that the model does not know."
        ),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(
            "--people",
            metavar="FILE",
            rich_help_panel=FEATURES,
            help="Features and segments of people whom the model does not know.",
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", rich_help_panel=COLUMNS, help="Whose answer it is.")
    ] = None,
    left: Annotated[
        str | None, typer.Option("--left", metavar="NAME", rich_help_panel=COLUMNS, help="The one item shown.")
    ] = None,
    right: Annotated[
        str | None, typer.Option("--right", metavar="NAME", rich_help_panel=COLUMNS, help="The other item shown.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", show_default="standard output", help="A .csv, .parquet or .jsonl file."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    unpack_limit: UnpackLimit = UNPACK_LIMIT,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Say how likely each answer to PAIRS is, by the MODEL that predilect rank wrote.

    Adds p_left, p_tie and p_right (they sum to 1), margin (utility of left less that of right, in units of the noise
    of one answer) and sd (how unsure that is) to the columns of PAIRS, in its own order. A person whom the model does
    not know is taken to be somebody new from the same crowd.
    """
    with session(quiet, as_json=True) as talk:  # standard output is for the predictions
        from predilect._json import plain
        from predilect.data import read_frame
        from predilect.data.read.readers import read_table
        from predilect.errors import DataError
        from predilect.models.registry import load_model
        from predilect.report.output import OutputFile

        target = None if out is None else OutputFile(out, force)
        if out is not None and target is not None and not target.is_special and out.suffix not in _SUFFIXES:
            raise DataError(f"{out} should end in {', '.join(_SUFFIXES)}, which says what kind of file to write")
        fitted = load_model(model)
        _, table = read_table(pairs, unpack_limit=unpack_limit)
        features = None if items is None else read_frame(items, unpack_limit=unpack_limit)
        of_people = None if people is None else read_frame(people, unpack_limit=unpack_limit)
        result = _predictions(fitted, table, _roles(table.columns, user, left, right), features, of_people)
        if target is not None:
            target.write(lambda path: _write(result, path, out))
            talk.written = str(out)
            talk.say(f"Written to {out}: {len(result)} predictions.")
        if json:
            talk.document({
                "schema": "predilect/predictions", "version": 1, "model": fitted.report_["model"],
                "warnings": talk.warned, "predictions": plain(result.to_dicts(), words=False),
            })  # fmt: skip
        elif target is None:
            talk.table(result)


def _roles(names: list[str], user: str | None, left: str | None, right: str | None) -> dict[str, str]:
    from predilect.data.read.columns import guess_columns

    return guess_columns(names, user=user, left=left, right=right, weight=False, task=False, need_winner=False)


def _predictions(model: Any, table: pl.DataFrame, roles: dict[str, str], items: Any, users: Any) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    from predilect.data.derived import SIDE
    from predilect.data.read.covariates import covariate_columns, flat
    from predilect.errors import DataError

    names = [name for name in model.covariate_names() if name != SIDE]
    more = flat(covariate_columns(table.columns, names, needed=False))
    asked = table.select(*(pl.col(column).alias(role) for role, column in roles.items()), *more)
    mean, variance, chance = model.predict_margin_and_proba(asked, items=items, users=users)
    added = {
        "p_left": chance[:, 0], "p_tie": chance[:, 1], "p_right": chance[:, 2], "margin": mean,
        "sd": np.sqrt(variance),
    }  # fmt: skip
    taken = [name for name in added if name in table.columns]
    if taken:
        raise DataError(f"PAIRS has a column {taken[0]} already, which the predictions would replace; rename it")
    return table.with_columns(pl.Series(name, values) for name, values in added.items())


def _write(table: pl.DataFrame, path: Path, named: Path | None) -> None:
    from predilect.report.tables import refuse_nested

    kind = path.suffix if named is None else named.suffix
    if kind == ".parquet":
        table.write_parquet(path)
    elif kind == ".jsonl":
        table.write_ndjson(path)
    else:
        refuse_nested(table)
        table.write_csv(path)
