"""``predilect simulate``: which share each of the items on offer would get."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect._base.text import did_you_mean
from predilect.cli.options import Folder, ForceAll, OfName, OfOption, OutFile, numbers_in, of_whom
from predilect.cli.session import session
from predilect.cli.tables import with_intervals
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from predilect._base.types import BoolArray, FloatArray
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
        help="Of the values of --vary, which makes the item's share, its revenue (share times price) or its margin "
        "(share times price less --cost) largest; of the lines of --line, the sum of these.",
    ),
]
LineOption = Annotated[
    int | None,
    typer.Option(
        "--line",
        metavar="N",
        help="In place of --vary: which N of our items to offer together, beside those of others, by --maximise. Ours "
        "are those with yes in a column ours of SCENARIOS.",
    ),
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        "--price", metavar="NAME",
        help="The attribute that is the price: for --line; alone: how much more a choice from each scenario is worth "
        "than one from the first.",
    ),
]  # fmt: skip
CostOption = Annotated[
    str | None,
    typer.Option(
        "--cost", metavar="C",
        help="Of one item that is sold, for --maximise margin: a number, or with --line a column of SCENARIOS.",
    ),
]  # fmt: skip
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
    line: LineOption = None,
    price: PriceOption = None,
    cost: CostOption = None,
    elasticities: ElasticitiesOption = None,
    of: OfOption = OfName.population,
    out: OutFile = None,
    force: ForceAll = False,
) -> None:  # fmt: skip
    """Say which share of people would choose each of the items on offer, by the model in DIR, of items with attributes.

    Prints scenario, item, share, its 95 % interval and of whom it is; with --vary also the value, as price; with
    --maximise what each value, or line, brings for each person who chooses, and the probability that it brings the
    most; with --price alone what a choice from each scenario is worth more than one from the first (consumer surplus).

    Example: predilect simulate results scenarios.csv --vary ours.price=1,2,3
    """
    with session(ctx.obj) as talk:
        scenarios = talk.file(scenarios)
        from predilect.cli.folder import Results
        from predilect.data.read.readers import read_table
        from predilect.show.report.output import OutputFile
        from predilect.show.report.tables import write_csv

        target = None if out is None else OutputFile(out, force, what="the shares need", reads=[folder, scenarios])
        results = Results.of(folder).with_people(talk)
        fitted = results.model
        name = fitted.report_["model"]
        if not hasattr(fitted, "worth"):
            raise DataError(
                f"{folder} holds a {name} model, which has no shares. Rank with --model population, gaspk, "
                "mixed-logit, logit, nested-logit or latent-class"
            )
        if fitted.features_ is None:
            raise DataError(
                f"{folder} holds a model of items without attributes, and shares are of described ones. Rank choices "
                "between described alternatives, or give rank --items FILE"
            )
        _refuse(rule, vary, maximise, line, price, cost, elasticities)
        results.refuse_unusable(force)
        if fitted._not_usable:
            talk.say(f"Not usable: {fitted._not_usable}.")
        if (vary, line, elasticities, price) != (None, None, None, None) and not hasattr(fitted.worth, "price_curve"):
            raise DataError(
                f"{folder} holds a {name} model, which has shares alone: --vary, --line, "
                "--elasticities and --price need coefficients. Rank with --model population, mixed-logit or logit"
            )
        given = read_table(scenarios)[1]
        offered, items = _offered(fitted, given)
        rest = {"items": items, "of": of.value}
        what, heads = "Shares", {"share": "Share"}
        if elasticities is not None:
            what, heads = "Elasticities", {"elasticity": "Elasticity"}
            table = _each(offered, lambda _, ids: fitted.worth.elasticities(ids, elasticities, **rest))
        elif maximise is not None:
            what, heads = "Amounts", {"brings": "Brings", "p_best": "P(best)"}
            table = _best(fitted, offered, given, maximise.value, vary, line, price, cost, rest)
        elif price is not None:
            what, heads = f"Amounts of {price}", {"surplus": "Surplus"}
            table = fitted.worth.surplus(offered, price, **rest)
        elif vary is not None:
            offered, *curve = _varied(fitted, offered, vary)
            table = _each(offered, lambda _, ids: fitted.worth.price_curve(ids, *curve, rule.name, **rest))
        else:
            table = fitted.worth.simulate(offered, rule.name, **rest)
        if talk.kind == "table":
            talk.show(with_intervals(table, heads, as_percent="share" in heads))
            for row in table.filter("is_best").iter_rows(named=True) if "is_best" in table.columns else ():
                best = row["line"] if line is not None else f"at {row['price']:g}"
                talk.say(f"Largest: {best}, with probability {row['p_best']:.2f}.")
            talk.say(of_whom(of, f"{what} and their intervals"))
        if target is not None:
            target.write(lambda path: write_csv(table, path))
            talk.written = str(out)
            talk.say(f"Written to {out}: {len(table)} rows.")
        if talk.kind != "table":
            talk.result(table, "shares", {
                "model": fitted.report_["model"], "rule": rule.name, "of": of.value, "shares": table.to_dicts(),
            })  # fmt: skip


def _sets_of(table: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """The scenario of each row, and its item."""
    import polars as pl

    from predilect.data.frames import as_text, clean_ids
    from predilect.data.read.names import ITEM, guess_one

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
    return names, ids


def _offered(fitted: Any, table: pl.DataFrame) -> tuple[dict[str, list[Any]], pl.DataFrame | None]:
    """Items by scenario, and the attributes of those that the model does not know."""
    import polars as pl

    from predilect.data.frames import to_series
    from predilect.data.read.profiles import plain_values
    from predilect.models.reading import refuse_gaps

    names, ids = _sets_of(table)
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
    plain = [k for k, one in enumerate(features.outputs) if one.factors is None]
    stated = np.column_stack([columns[features.outputs[k].source].is_not_null().to_numpy() for k in plain])
    apart = np.abs(encode(features.outputs, columns)[0] - matrix)[:, plain] > 1e-9
    return np.asarray((stated & apart).any(axis=1))


def _refuse(
    rule: RuleName, vary: str | None, maximise: AimName | None, line: int | None, price: str | None, cost: str | None,
    elasticities: str | None,
) -> None:  # fmt: skip
    """DataError for options that do not go together."""
    asked = [flag for flag, value in {"--elasticities": elasticities, "--vary": vary, "--line": line}.items()
             if value is not None]  # fmt: skip
    if len(asked) > 1:
        raise DataError(f"{' and '.join(asked)} are different questions. Ask one at a time")
    if maximise is not None and asked not in (["--vary"], ["--line"]):
        raise DataError("--maximise is about the values of --vary ITEM.ATTRIBUTE=1,2,3, or --line N. Give one of them")
    if line is not None and maximise is None:
        raise DataError("--line asks which line brings the most: say of what, --maximise share, revenue or margin")
    if rule is not RuleName.share and (maximise, elasticities, price) != (None, None, None):
        raise DataError("--maximise, --elasticities and --price are about choices by probabilities: leave --rule out")
    if price is not None and (vary, elasticities) != (None, None):
        raise DataError("--price is for --line, or alone; --vary and --elasticities name the attribute themselves")
    if cost is not None and maximise is not AimName.margin:
        raise DataError("--cost is for --maximise margin")


def _best(
    fitted: Any, offered: dict[str, list[Any]], given: pl.DataFrame, maximise: str, vary: str | None,
    line: int | None, price: str | None, cost: str | None, rest: dict[str, Any],
) -> pl.DataFrame:  # fmt: skip
    """What each price of an item brings, or each line of our items."""
    import numpy as np

    from predilect.data.read.profiles import flags

    column = cost if line is not None and cost in given.columns else None
    amount = 0.0 if cost is None or column is not None else _amount(cost, line is not None)
    if vary is not None:
        offered, *curve = _varied(fitted, offered, vary)
        return _each(offered, lambda _, ids: fitted.worth.best_price(ids, *curve, maximise, cost=amount, **rest))
    names, ids = _sets_of(given)
    if "ours" not in given.columns:
        raise DataError(
            "--line chooses among our items: say yes to them in a column ours of SCENARIOS, and no to others"
        )
    ours = flags(given["ours"])
    if ours is None:
        raise DataError('column "ours" of SCENARIOS should hold yes or no in each row')

    def lines(name: str, offer: list[Any]) -> pl.DataFrame:
        rows = np.flatnonzero((names == name).to_numpy() & ours)
        mine = ids.gather(rows).to_list()
        if not mine:
            raise DataError(
                f'nothing in scenario "{name}" is ours: column "ours" of SCENARIOS says yes to no item of it'
            )
        paid = amount if column is None else dict(zip(mine, _amounts(given[column].gather(rows)), strict=True))
        others = [one for one in offer if one not in mine]
        found: pl.DataFrame = fitted.worth.best_line(mine, others, line, maximise, price=price, cost=paid, **rest)
        return found

    return _each(offered, lines)


def _amount(text: str, or_column: bool) -> float:
    """What one that is sold costs; DataError unless it is one finite number."""
    try:
        [found] = numbers_in(text, "--cost")
    except ValueError:
        either_way = ", or a column of SCENARIOS" if or_column else ""
        raise DataError(f'--cost takes a number{either_way}; got "{text}"') from None
    return found


def _amounts(column: pl.Series) -> list[float]:
    """Finite numbers; DataError for anything else."""
    import polars as pl

    found = column.cast(pl.Float64, strict=False)
    if not found.is_finite().fill_null(False).all():
        raise DataError(f'column "{column.name}" of SCENARIOS should hold what one of each of our items costs (--cost)')
    return found.to_list()


def _each(offered: dict[str, list[Any]], table: Callable[[str, list[Any]], pl.DataFrame]) -> pl.DataFrame:
    """A table for each scenario, one under the other, with its name first."""
    import polars as pl

    found = [(name, table(name, one)) for name, one in offered.items()]
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
