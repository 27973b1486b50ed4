"""``predilect simulate``: which share each of the items on offer would get."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect._text import did_you_mean
from predilect.cli.options import Folder, Force, OfName, OfOption, OutFile, numbers_in, of_whom
from predilect.cli.session import session
from predilect.cli.tables import with_intervals
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


AimName = StrEnum("AimName", ["share", "revenue", "margin"])  # what is to be largest

VaryOption = Annotated[
    str | None,
    typer.Option(
        "--vary",
        metavar="ITEM.ATTRIBUTE=1,2,3",
        help="Change a number of one item, such as ours.price=1,2,3, in every scenario that offers it.",
    ),
]
MaximiseOption = Annotated[
    AimName | None,
    typer.Option(
        "--maximise",
        help="Of the values of --vary, which makes the item's share, its revenue (share times value) or its margin "
        "(share times value less --cost) largest.",
    ),
]
CostOption = Annotated[
    float, typer.Option("--cost", metavar="C", help="Of one item that is sold, for --maximise margin.")
]
ElasticitiesOption = Annotated[
    str | None,
    typer.Option(
        "--elasticities",
        metavar="PRICE",
        help="In place of shares, by how many per cent each share changes with one per cent of this number of each "
        "item.",
    ),
]


def simulate(
    ctx: typer.Context,
    folder: Folder,
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
    vary: VaryOption = None,
    maximise: MaximiseOption = None,
    cost: CostOption = 0.0,
    elasticities: ElasticitiesOption = None,
    of: OfOption = OfName.population,
    out: OutFile = None,
    force: Force = False,
) -> None:  # fmt: skip
    """Say which share of people would choose each of the items on offer, by the model in DIR.

    Prints scenario, item, share, its 95 % interval and of whom it is; with --vary also the value, as price; with
    --maximise what each value brings for each person who chooses, and the probability that it brings the most.

    Example: predilect simulate results scenarios.csv --vary ours.price=1,2,3
    """
    with session(ctx.obj) as talk:
        scenarios = talk.file(scenarios)
        from predilect.cli.folder import Results
        from predilect.data.read.readers import read_table
        from predilect.report.output import OutputFile
        from predilect.report.tables import write_csv

        target = None if out is None else OutputFile(out, force, what="the shares need")
        fitted = Results.of(folder).with_people(talk).model
        if not hasattr(fitted, "simulate") or fitted.features_ is None:
            raise DataError(
                f"{folder} holds a model without attributes. Rank choices between described alternatives, or give "
                "rank --items FILE"
            )
        _refuse(rule, vary, maximise, cost, elasticities)
        if (vary is not None or elasticities is not None) and not hasattr(fitted, "price_curve"):
            raise DataError(
                f"{folder} holds a {fitted.report_['model']} model, which has shares alone: --vary and --elasticities "
                "need coefficients. Rank with --model population, mixed-logit or logit"
            )
        offered, items = _offered(fitted, read_table(scenarios)[1])
        given = {"items": items, "of": of.value}
        what, heads = "Shares", {"share": "Share"}
        if elasticities is not None:
            what, heads = "Elasticities", {"elasticity": "Elasticity"}
            table = _each(offered, lambda one: fitted.elasticities(one, elasticities, **given))
        elif vary is None:
            table = fitted.simulate(offered, rule.name, **given)
        else:
            offered, *curve = _varied(fitted, offered, vary)
            if maximise is None:
                table = _each(offered, lambda one: fitted.price_curve(one, *curve, rule.name, **given))
            else:
                what, heads = "Amounts", {"brings": "Brings", "p_best": "P(best)"}
                table = _each(offered, lambda one: fitted.best_price(one, *curve, maximise.value, cost=cost, **given))
        if talk.kind == "table":
            talk.show(with_intervals(table, heads, as_percent="share" in heads))
            for row in table.filter("is_best").iter_rows(named=True) if "is_best" in table.columns else ():
                talk.say(f"Largest: at {row['price']:g}, with probability {row['p_best']:.2f}.")
            talk.say(of_whom(of, f"{what} and their intervals"))
        if target is not None:
            target.write(lambda path: write_csv(table, path))
            talk.written = str(out)
            talk.say(f"Written to {out}: {len(table)} rows.")
        if talk.kind != "table":
            talk.result(table, "shares", {
                "model": fitted.report_["model"], "rule": rule.name, "of": of.value, "shares": table.to_dicts(),
            })  # fmt: skip


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


def _refuse(
    rule: RuleName, vary: str | None, maximise: AimName | None, cost: float, elasticities: str | None
) -> None:  # fmt: skip
    """DataError for options that do not go together."""
    if maximise is not None and vary is None:
        raise DataError("--maximise is about the values of --vary ITEM.ATTRIBUTE=1,2,3. Give it too")
    if elasticities is not None and vary is not None:
        raise DataError("--elasticities and --vary are different questions. Ask one at a time")
    if rule is not RuleName.share and (maximise is not None or elasticities is not None):
        raise DataError("--maximise and --elasticities are about choices by probabilities: leave --rule out")
    if cost and maximise is not AimName.margin:
        raise DataError("--cost is for --maximise margin")


def _each(offered: dict[str, list[Any]], table: Callable[[list[Any]], pl.DataFrame]) -> pl.DataFrame:
    """A table for each scenario, one under the other, with its name first."""
    import polars as pl

    found = [(name, table(one)) for name, one in offered.items()]
    return pl.concat(
        [one.insert_column(0, pl.repeat(name, len(one), eager=True).alias("scenario")) for name, one in found]
    )


def _varied(
    fitted: Any, offered: dict[str, list[Any]], vary: str
) -> tuple[dict[str, list[Any]], str, str, list[float]]:  # fmt: skip
    """Scenarios that offer the item which is to change, the item, its attribute, and the values of that."""
    said, equals, text = vary.rpartition("=")
    known = sorted((name for name in fitted.features_.sources if said.endswith(f".{name}")), key=len)
    if not equals or not known:
        numbers = ", ".join(fitted.features_.sources)
        raise DataError(
            f'--vary takes ITEM.ATTRIBUTE=1,2,3, such as ours.price=1,2,3; got "{vary}". Attributes are {numbers}'
        )
    price = known[-1]
    item, values = said.removesuffix(f".{price}"), numbers_in(text, "--vary")
    found = {name: one for name, one in offered.items() if item in map(str, one)}
    if not found:
        there = dict.fromkeys(str(one) for items in offered.values() for one in items)
        raise DataError(
            f"no scenario offers {item!r}, whose {price} should change (--vary).{did_you_mean(item, there)}"
        )
    return found, item, price, values
