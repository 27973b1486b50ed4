"""``predilect simulate``: which share each of the items on offer would get."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect._text import did_you_mean
from predilect.cli.choice import FormatName, FormatOption, OfName, OfOption, of_whom, printed
from predilect.cli.options import UNPACK_LIMIT, JsonFlag, QuietFlag, UnpackLimit
from predilect.cli.session import session
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from predilect._types import BoolArray, FloatArray
    from predilect.data import ItemFeatures


class RuleName(StrEnum):
    """How people choose."""

    share = "share"
    first_choice = "first-choice"
    randomised = "randomised"


def simulate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", show_default=False, help="Folder that predilect utilities wrote."),
    ],
    scenarios: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIOS", show_default=False,
            help="File of what is on offer together: columns scenario (one for all without it) and item, and the "
            "attributes of items that the model does not know.",
        ),
    ],
    rule: Annotated[
        RuleName,
        typer.Option(
            "--rule",
            help="share: people choose by the probabilities of the model; first-choice: what is best by their mean "
            "utilities; randomised: what is best in each draw of them.",
        ),
    ] = RuleName.share,
    price_curve: Annotated[
        str | None,
        typer.Option(
            "--price-curve", metavar="ITEM", help="Change the price of this item, in every scenario that offers it.",
        ),
    ] = None,
    prices: Annotated[
        str | None, typer.Option("--prices", metavar="1,2,3", help="The prices that --price-curve tries.")
    ] = None,
    price: Annotated[
        str, typer.Option("--price", metavar="NAME", help="The attribute that --price-curve changes: any number.")
    ] = "price",
    of: OfOption = OfName.population,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", show_default="nothing is written", help="A .csv file."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    unpack_limit: UnpackLimit = UNPACK_LIMIT,
    format: FormatOption = FormatName.text,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:  # fmt: skip
    """Say which share of people would choose each of the items on offer, by the MODEL that predilect utilities wrote.

    Prints scenario, item, share, its 95 % interval and of whom it is; with --price-curve also the price.

    Example: predilect simulate results scenarios.csv --price-curve ours --prices 1,2,3
    """
    with session(quiet, json or format is not FormatName.text) as talk:
        kind = printed(format, json)
        scenarios = talk.file(scenarios)
        from predilect._json import plain
        from predilect.cli.utilities import table_of
        from predilect.data.read.readers import read_table
        from predilect.models.registry import load_model
        from predilect.report.output import OutputFile
        from predilect.report.tables import write_csv

        if (price_curve is None) != (prices is None):
            raise DataError("--price-curve ITEM and --prices 1,2,3 go together")
        target = None if out is None else OutputFile(out, force)
        fitted = load_model(model)
        if not hasattr(fitted, "simulate") or fitted.features_ is None:
            raise DataError(f"{model} holds a model without attributes. Fit one with predilect utilities")
        fitted.backend_ = "polars"
        offered, items = _offered(fitted, read_table(scenarios, unpack_limit=unpack_limit)[1])
        named = rule.name
        if price_curve is None or prices is None:
            table = fitted.simulate(offered, named, items=items, of=of.value)
        else:
            table = _curves(fitted, offered, items, price_curve, price, _numbers(prices), named, of.value)
        if kind in (FormatName.csv, FormatName.md):
            talk.table(table, kind)
        elif kind is FormatName.text:
            talk.show(table_of(table, {"share": "Share"}, as_percent=True))
            talk.say(of_whom(of, "Shares and their intervals"))
        if target is not None:
            target.write(lambda path: write_csv(table, path))
            talk.written = str(out)
            talk.say(f"Written to {out}.")
        if kind is FormatName.json:
            talk.document(plain({
                "schema": "predilect/shares", "version": 1, "model": fitted.report_["model"], "rule": named,
                "of": of.value, "warnings": talk.warned, "shares": table.to_dicts(),
            }, words=False))  # fmt: skip


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(value) for value in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise DataError(f'--prices takes numbers with commas between them, got "{text}"')
    return numbers


def _offered(fitted: Any, table: pl.DataFrame) -> tuple[dict[str, list[Any]], pl.DataFrame | None]:
    """Items by scenario, and the attributes of those that the model does not know."""
    import polars as pl

    from predilect.data.frames import as_text, clean_ids, to_series
    from predilect.data.read.names import ITEM, guess_one
    from predilect.data.read.profiles import plain_values
    from predilect.models.reading import refuse_gaps

    item, scenario = guess_one(table.columns, ITEM), guess_one(table.columns, ("scenario", "market", "set", "task"))
    if item is None:
        raise DataError(
            f"found no column item in SCENARIOS; the columns are {', '.join(table.columns) or '(none)'}. Give a row "
            "for each item on offer, with columns scenario and item"
        )
    if table.is_empty():
        raise DataError("SCENARIOS has no rows. Give a row for each item on offer, with columns scenario and item")
    ids = clean_ids(table[item], item)
    if ids.null_count():
        raise DataError(f'column "{item}" of SCENARIOS is empty in row {int(ids.is_null().arg_max() or 0) + 1}')
    names = pl.repeat("", len(table), eager=True) if scenario is None else as_text(table[scenario]).fill_null("")
    offered: dict[str, list[Any]] = {}
    for name, one in zip(names.to_list(), ids.to_list(), strict=True):
        offered.setdefault(name, []).append(one)
    features = fitted.features_
    given = [name for name in features.sources if name in table.columns]
    if not given:
        return offered, None
    described = pl.DataFrame([ids.alias("item"), *(plain_values(to_series(table[name], name)) for name in given)])
    # Items may stand with empty cells beside those that are described, and known ones lack what they have in the model.
    stated = ~pl.all_horizontal(pl.col(given).is_null())
    codes = features.ids.codes(ids, unknown="minus_one")
    refuse_gaps(features, described, ids, (codes < 0) & described.select(stated).to_series().to_numpy())
    described = described.filter(stated).unique(maintain_order=True)
    codes = features.ids.codes(described["item"], unknown="minus_one")
    known = described.filter(pl.Series(codes >= 0))
    apart = _differ(features, known, features.matrix[codes[codes >= 0]])
    if apart.any():
        raise DataError(
            f"item {known['item'][int(apart.argmax())]!r} is known to the model with other attributes than in "
            "SCENARIOS. Give what is new another name, or leave the cells empty"
        )
    new = described.filter(pl.Series(codes < 0))
    twice = new.filter(pl.col("item").is_duplicated())
    if len(twice):
        raise DataError(
            f"item {twice['item'][0]!r} has two sorts of attributes in SCENARIOS. Give each a name of its own"
        )
    if len(new):
        features.refuse_lacking(table.columns)
    return offered, new if len(new) else None


def _differ(features: ItemFeatures, given: pl.DataFrame, matrix: FloatArray) -> BoolArray:
    """Whether attributes that are given, empty cells being none, are others than those encoded in the matrix; (n,)."""
    import numpy as np
    import polars as pl

    from predilect.data.encoding import encode

    nothing = pl.Series([None] * len(given), dtype=pl.String)
    columns = {name: given[name] if name in given.columns else nothing for name in features.sources}
    stated = np.column_stack([columns[one.source].is_not_null().to_numpy() for one in features.outputs])
    return np.asarray((stated & (np.abs(encode(features.outputs, columns)[0] - matrix) > 1e-9)).any(axis=1))


def _curves(
    fitted: Any,
    offered: dict[str, list[Any]],
    items: Any,
    item: str,
    price: str,
    values: list[float],
    rule: str,
    of: str,
) -> pl.DataFrame:
    import polars as pl

    found: list[pl.DataFrame] = [
        fitted.price_curve(one, item, price, values, rule, items=items, of=of).insert_column(0, pl.repeat(
            name, len(values) * len(one), eager=True).alias("scenario"))
        for name, one in offered.items() if item in map(str, one)
    ]  # fmt: skip
    if not found:
        known = dict.fromkeys(str(one) for items in offered.values() for one in items)
        raise DataError(
            f"no scenario offers {item!r}, whose price should change (--price-curve).{did_you_mean(item, known)}"
        )
    return pl.concat(found)
