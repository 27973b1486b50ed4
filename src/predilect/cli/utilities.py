"""``predilect utilities``: from choices to part-worths, importances and willingness to pay."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect.cli.choice import FormatName, FormatOption, OfName, OfOption, of_whom, printed
from predilect.cli.options import (
    FEATURES,
    MODEL,
    OUTPUT,
    JobsOption,
    JsonFlag,
    QuietFlag,
    ReadingOptions,
    SeedOption,
    StrictFlag,
    expanded,
    with_files,
)
from predilect.cli.session import Talk, session
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from predilect.data import Comparisons, ItemFeatures
    from predilect.data.choices import Choices

_LONGEST_NAME = 40
_OF_PEOPLE = ("part_worths", "fit")  # tables with a row or more for each person


class UtilitiesModel(StrEnum):
    """Models that say what attributes are worth."""

    population = "population"
    mixed_logit = "mixed-logit"


@expanded
def utilities(
    choices: Annotated[
        Path,
        typer.Argument(metavar="CHOICES", show_default=False, help="File of choices, long or wide, or of pairs."),
    ],
    reading: ReadingOptions,
    attributes: Annotated[
        Path | None,
        typer.Option(
            "--attributes",
            metavar="FILE",
            rich_help_panel=FEATURES,
            show_default="those in CHOICES",
            help="Attributes of the items, one row an item, ids in the column item.",
        ),
    ] = None,
    categorical: Annotated[
        str | None,
        typer.Option(
            "--categorical",
            metavar="A,B",
            rich_help_panel=FEATURES,
            help="Attributes whose numbers are labels, as of brands 1, 2 and 3, with commas between them.",
        ),
    ] = None,
    piecewise: Annotated[
        list[str] | None,
        typer.Option(
            "--piecewise",
            metavar="A=3,5",
            rich_help_panel=FEATURES,
            help="A number whose slope changes at 3 and at 5; may be repeated.",
        ),
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(
            "--price",
            metavar="NAME",
            rich_help_panel=FEATURES,
            help="The attribute in whose units all others are valued (of a piecewise one a piece: “price 3 to 5”).",
        ),
    ] = None,
    model: Annotated[
        UtilitiesModel,
        typer.Option(
            "--model",
            rich_help_panel=MODEL,
            help="population: part-worths are what is closest to people's utilities, which may hold more than "
            "attributes; mixed-logit: hierarchical Bayes, utilities are attributes alone.",
        ),
    ] = UtilitiesModel.population,
    anchor: Annotated[
        str | None,
        typer.Option(
            "--anchor",
            metavar="ITEM",
            rich_help_panel=MODEL,
            help="Without attributes: the item whose score is 100, such as the threshold of an anchored study.",
        ),
    ] = None,
    holdout: Annotated[
        int,
        typer.Option(
            "--holdout",
            metavar="K",
            min=0,
            rich_help_panel=MODEL,
            help="Also hold out K random tasks of each person, and say how well both models predict them.",
        ),
    ] = 0,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    strict: StrictFlag = False,
    of: OfOption = OfName.population,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", rich_help_panel=OUTPUT, show_default="nothing is written",
            help="Folder to make: part_worths.csv, coefficients.csv, importances.csv, fit.csv, model/ and, where asked "
            "for, willingness_to_pay.csv and holdout.csv; without attributes scores.csv and model/.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace DIR if it holds earlier results.")
    ] = False,
    format: FormatOption = FormatName.text,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:  # fmt: skip
    """Say what attributes are worth to people who made CHOICES: to the crowd, and to everybody.

    CHOICES says which alternatives were shown and which was chosen (or ranked); attributes stand beside the
    alternatives, or in --attributes FILE. Sets of items without attributes, as in best-worst studies, have scores from
    0 to 100. --format csv prints the coefficients, or the scores; md all but what is about single people.

    Example: predilect utilities choices.csv --price price --out results
    """
    with session(quiet, json or format is not FormatName.text) as talk:
        kind = printed(format, json)
        choices, attributes, reading = talk.file(choices), talk.file(attributes), with_files(reading, talk)
        from predilect._files import input_records
        from predilect._json import plain
        from predilect.cli.reading import names_in, read_features, read_votes, say_intake
        from predilect.decisions import scores
        from predilect.evaluation import holdout as hold_out
        from predilect.models.registry import estimator
        from predilect.report.folder import package_versions
        from predilect.report.output import OutputFolder
        from predilect.report.tables import write_csv

        folder = None if out is None else OutputFolder(out, force)
        with talk.progress("Reading"):
            answers = read_votes(choices, reading).comparisons
            features = read_features(
                attributes, answers, reading.unpack_limit, categorical=names_in(categorical, "--categorical"),
                piecewise=dict(map(_cuts, piecewise or [])),
            )  # fmt: skip
        say_intake(talk, answers)
        if features is None and not answers.intake.tasks_read:
            raise DataError(
                "CHOICES names its alternatives and does not describe them. Give --attributes FILE, one row an item "
                "with its id in the column item"
            )
        if features is None and (price or holdout):
            same = price in answers.intake.ignored_columns
            raise DataError(
                "--price and --holdout need attributes: give --attributes FILE, one row an item"
                + (f'. Column "{price}" of CHOICES is the same for all alternatives of a task' if same else "")
            )
        if features is not None and anchor is not None:
            raise DataError("--anchor is for scores of items without attributes; leave it out")
        _refuse_price(features, price, answers)
        for line in () if features is None else features.report:
            talk.say(line)
        chosen, why_none = _choices(answers)
        if holdout and chosen is None:
            raise DataError(f"--holdout is about choices: {why_none}")
        if folder is not None:
            folder.probe()

        settings = {"n_jobs": jobs, "random_state": seed, "strict": strict}
        with talk.progress("Fitting") as watch:
            fitted = estimator(model.value)(**settings).fit(answers, items=features, watch=watch)
            fitted.backend_ = "polars"
        with talk.progress("Tables"):
            tables: dict[str, pl.DataFrame] = {}
            if features is None:
                tables["scores"] = scores(fitted, _usual_size(chosen), anchor, random_state=seed)
            else:
                tables |= {
                    "part_worths": fitted.part_worths(), "coefficients": fitted.coefficients(),
                    "importances": fitted.importances(of.value),
                }  # fmt: skip
            if price is not None:
                tables["willingness_to_pay"] = fitted.willingness_to_pay(price)
            if chosen is not None and features is not None and fitted.personal_:
                tables["fit"] = fitted.fit_of_people()
        if holdout:
            names = [model.value, *(other.value for other in UtilitiesModel if other is not model)]
            with talk.progress("Holding out") as watch:
                tables["holdout"] = hold_out(
                    {name: estimator(name)(n_jobs=jobs, random_state=seed) for name in names}, answers, items=features,
                    n_tasks=holdout, random_state=seed, watch=watch,
                )  # fmt: skip
        if folder is not None:
            with talk.progress("Writing"), folder.writing() as place:
                for name, table in tables.items():
                    write_csv(table, place / f"{name}.csv")
                fitted.save(place / "model")
            talk.written = str(out)
        _say(talk, fitted, tables, price, of, _decided(chosen, features, answers))
        if why_none and features is not None:
            talk.say(f"How well choices are explained is not said: {why_none}.")
        if kind is FormatName.csv:
            talk.table(tables["scores" if features is None else "coefficients"])
        elif kind is FormatName.md:
            for name, table in tables.items():
                if name not in _OF_PEOPLE:
                    typer.echo(f"## {name.capitalize().replace('_', ' ')}\n")
                    talk.table(table, kind)
                    typer.echo()
        elif kind is FormatName.json:
            inputs = input_records({"choices": choices, "attributes": attributes, "item_map": reading.item_map})
            shown = {name: table.to_dicts() for name, table in tables.items() if name != "part_worths"}
            options = {
                "model": model.value,
                "price": price,
                "of": of.value,
                "piecewise": piecewise,
                "categorical": categorical,
            }
            talk.document(plain({
                "schema": "predilect/utilities", "version": 1, **shown, "warnings": talk.warned, "inputs": inputs,
                "options": options | reading.to_dict(), "seed": seed, "versions": package_versions(),
            }, words=False))  # fmt: skip
        if out is None:
            talk.say("Nothing was written; --out DIR writes everybody's part-worths and the model.")
            return
        talk.say(f"Written to {out}: {', '.join(f'{name}.csv' for name in tables)}, model/.")
        if features is not None:
            folder_name = shlex.quote(str(out))
            talk.say(f"Next: predilect simulate {folder_name} SCENARIOS says which share each of some items would get.")


def _cuts(text: str) -> tuple[str, list[float]]:
    """Name and numbers of "price=3,5"."""
    name, _, values = text.rpartition("=")
    try:
        cuts = [float(value) for value in values.split(",")]
    except ValueError:
        cuts = []
    if not name.strip() or not cuts:
        raise DataError(f'--piecewise takes an attribute and where its slope changes, as price=3,5; got "{text}"')
    return name.strip(), cuts


def _usual_size(choices: Choices | None) -> int:
    """How many alternatives most choices of the best, or else of the worst, were made from; 4 for other answers."""
    import numpy as np

    if choices is None:
        return 4
    sizes = np.diff(choices.ptr)
    best = choices.sign > 0
    return min(20, int(np.bincount(sizes[best] if best.any() else sizes).argmax()))


def _refuse_price(features: ItemFeatures | None, price: str | None, answers: Comparisons) -> None:
    """DataError, before a long fit, if nothing can be valued in this attribute."""
    if features is None or price is None:
        return
    from predilect.data.attributes import Coding, refuse_left_out, told_apart
    from predilect.data.features import FeatureSpace

    numbers = {" ".join(filter(None, (one.source, one.piece))) for one in features.outputs if one.kind == "number"}
    if price in numbers:
        coding, space = Coding.of(features), FeatureSpace(*features.align(answers.items))
        refuse_left_out(price, features, coding.only(told_apart(answers, space, coding)).attributes)
        return
    why = next((line for line in features.report if f'"{price}"' in line), "")
    if price in answers.intake.ignored_columns:
        why = f'Column "{price}" of CHOICES is the same for all alternatives of a task.'
    raise DataError(
        f'--price "{price}" is no number that differs between alternatives, so nothing can be valued in it; these are: '
        f"{', '.join(sorted(numbers)) or 'none'}. {why}".rstrip()
    )


def _choices(answers: Comparisons) -> tuple[Choices | None, str]:
    """What was chosen out of what, or why answers, such as ratings, are no choices."""
    from predilect.data.choices import choices_of

    try:
        return choices_of(answers), ""
    except DataError as error:
        return None, str(error)


def _say(
    talk: Talk, fitted: Any, tables: dict[str, pl.DataFrame], price: str | None, of: OfName, decided: list[str]
) -> None:
    talk.say()
    talk.say(f"Model: {fitted.report_['model']}. {relation}." if (relation := fitted.relation()) else
             f"Model: {fitted.report_['model']}, of all answers together.")  # fmt: skip
    for line in dict.fromkeys([*fitted.describe(), *decided]):
        talk.say(line)
    talk.say()
    if "scores" in tables:
        talk.say("Scores, of how probable it is that an item is taken from a set of the usual size:")
        talk.say(table_of(tables["scores"], {"score": "Score"}))
        return
    unit = fitted._likelihood.unit
    talk.say(f"What one unit adds, or a level against the mean of all levels, in {unit}:")
    talk.say(table_of(tables["coefficients"], {"mean": "Mean", "spread": "Between people"}))
    talk.say("Importance: the share of the range of a person's utilities over the items.")
    talk.say(table_of(tables["importances"], {"importance": "Importance", "spread": "Between people"}, as_percent=True))
    talk.say(of_whom(of, "Importances and their intervals"))
    if price is not None:
        worth = tables["willingness_to_pay"]
        talk.say(f"Worth of one unit, or of a level against the mean, in units of {price}:")
        talk.say(table_of(worth, {"median": f"In {price}"}))
        for said in worth["said"].unique().sort().to_list():
            if said:
                talk.say(f"{said[0].upper()}{said[1:]}.")
    for line in _people(tables["fit"]) if "fit" in tables else ():
        talk.say(line)
    if "holdout" in tables:
        for line in _held_out(tables["holdout"]):
            talk.say(line)


def _decided(choices: Choices | None, features: ItemFeatures | None, answers: Comparisons) -> list[str]:
    """Attributes that decide every choice, in sentences."""
    if choices is None or features is None:
        return []
    from predilect.data.choices import decided_by, within_choices

    chosen = within_choices(features.align(answers.items)[0], choices)[1]
    told = [decided_by(one, output.name) for one, output in zip(chosen.T, features.outputs, strict=True)]
    return [line for line in told if line]


def _people(fit: pl.DataFrame) -> list[str]:
    """How well people's choices are explained, in sentences."""
    import numpy as np

    from predilect._text import percent, shown

    guess = fit.filter("guesses")["user"].to_list()
    lines = [
        f"Fit: half of {len(fit)} people have a root likelihood (the typical probability of what they chose) above "
        f"{np.median(fit['rlh']):.2f}; guessing gives {np.median(fit['chance']):.2f}."
    ]
    if guess:
        share = percent(len(guess) / len(fit))
        who = f"{len(guess)} people ({share}) answer" if len(guess) > 1 else f"1 person ({share}) answers"
        lines.append(f"{who} no better than chance (first: {shown(guess[0])}); the column guesses of fit.csv says who.")
    return lines


def _held_out(table: pl.DataFrame) -> list[str]:
    """What held-out tasks say, in sentences."""
    from predilect._text import amount

    first, second = table.row(0, named=True), table.row(1, named=True)
    lines = [f"Held out: {amount(first['choices'])} choices of {first['people']} people."]
    for row in table.iter_rows(named=True):
        shares = "" if row["share_error"] is None else f", shares off by {100 * row['share_error']:.1f} points"
        lines.append(
            f"  {row['model']}: chose as predicted in {100 * row['hit_rate']:.1f} %, log loss {row['log_loss']:.3f}"
            f"{shares}"
        )
    if second["lower"] <= 0.0 <= second["upper"]:
        verdict = "predict about equally well"
    else:
        better, other = (first, second) if second["lower"] > 0.0 else (second, first)
        verdict = f"differ: {better['model']} predicts better than {other['model']}"
    lines.append(
        f"Verdict: the two models {verdict} (log loss of {second['model']} less that of {first['model']}: "
        f"{second['difference']:.3f}, 95 % interval {second['lower']:.3f} to {second['upper']:.3f})."
    )
    return lines


def table_of(table: pl.DataFrame, values: dict[str, str], *, as_percent: bool = False, rows: int = 60) -> Table:
    """Rows of a table with labels, numbers by their heads, and the 95 % interval of the first; 80 columns wide."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from predilect._text import one_line, shortened

    known = ("scenario", "price", "item", "attribute", "level")
    labels = [name for name in known if name in table.columns]
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in labels:
        found.add_column(name.capitalize(), overflow="ellipsis", no_wrap=True, ratio=1)
    heads = list(values.items())
    found.add_column(heads[0][1], justify="right", no_wrap=True)
    found.add_column("95 % interval", justify="right", no_wrap=True)
    for _, head in heads[1:]:
        found.add_column(head, justify="right", no_wrap=True)

    def told(value: float) -> str:
        return f"{100.0 * value:.1f} %" if as_percent else f"{value:.3g}" if abs(value) < 1e4 else f"{value:.0f}"

    for row in table.head(rows).iter_rows(named=True):
        interval = f"{told(row['lower'])} … {told(row['upper'])}"
        found.add_row(
            *(Text(shortened(one_line(row[name]), _LONGEST_NAME)) for name in labels), told(row[heads[0][0]]), interval,
            *(told(row[name]) for name, _ in heads[1:]),
        )  # fmt: skip
    return found
