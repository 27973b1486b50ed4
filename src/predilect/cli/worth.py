"""``predilect worth``: what attributes are worth to the people of a ranking, or scores of items without attributes."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect._base.text import as_typed
from predilect.cli.options import Folder, ForceAll, OfName, OfOption, UserOption, of_whom
from predilect.cli.session import Talk, session
from predilect.cli.tables import as_rich, with_intervals
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from predilect.cli.folder import Results
    from predilect.data import Comparisons
    from predilect.data.choices import Choices

_OF_FIT = ("log likelihood at 0", "log likelihood", "rho squared", "AIC", "BIC")
_OF_PEOPLE = ("part_worths", "fit", "memberships")  # tables with a row or more for each person


ErrorsName = StrEnum("ErrorsName", ["clustered", "robust", "hessian"])
ErrorsOption = Annotated[
    ErrorsName | None,
    typer.Option(
        "--errors",
        show_default="clustered where somebody answered more than once",
        help="Whose standard errors the intervals of a logit or of latent classes are by: clustered (by person), "
        "robust (each answer by itself) or hessian.",
    ),
]
HoldoutOption = Annotated[
    int,
    typer.Option(
        "--holdout",
        metavar="K",
        min=0,
        help="Also hold out K random tasks of each person, fit population and mixed-logit to the rest, and say how "
        "well they predict them.",
    ),
]


def worth(
    ctx: typer.Context,
    folder: Folder,
    price: Annotated[
        str | None,
        typer.Option(
            "--price",
            metavar="NAME",
            help="The attribute in whose units all others are valued (of a piecewise one a piece: “price 3 to 5”).",
        ),
    ] = None,
    user: UserOption = None,
    of: OfOption = OfName.population,
    anchor: Annotated[
        str | None,
        typer.Option(
            "--anchor",
            metavar="ITEM",
            help="Without attributes: the item whose score is 100, such as the threshold of an anchored study.",
        ),
    ] = None,
    holdout: HoldoutOption = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            show_default="nothing is written",
            help="Folder to make, of the tables as CSV, part-worths of all people among them.",
        ),
    ] = None,
    errors: ErrorsOption = None,
    force: ForceAll = False,
) -> None:
    """Say what attributes are worth to the people of the ranking in DIR: to the crowd, and to everybody.

    Attributes are those that described the alternatives of choices, or those of rank --items FILE. Sets of items
    without attributes, as in best-worst studies, have scores from 0 to 100. --format csv prints the coefficients, or
    the scores; md all but what is about single people.

    Example: predilect worth results --price price -o worth
    """
    with session(ctx.obj) as talk:
        from predilect.cli.folder import Results
        from predilect.show.report.output import OutputFolder
        from predilect.show.report.tables import write_csv

        target = None if out is None else OutputFolder(out, force, reads=[folder])
        results = Results.of(folder).with_people(talk, user)
        _refuse(results, price, anchor, holdout)
        results.refuse_unusable(force)
        if errors is not None:
            results = _with_errors(talk, results, errors.value)
        model = results.model
        with talk.progress("Tables"):
            tables, notes = _tables(results, price, user, of, anchor, ctx.obj.seed)
        if holdout:
            tables["holdout"] = _held_out_tasks(talk, results, holdout, ctx.obj.seed, ctx.obj.jobs)
        if target is not None:
            with talk.progress("Writing"), target.writing() as place:
                for name, table in tables.items():
                    write_csv(table, place / f"{name}.csv")
                if "summary" in tables:
                    pay = tables.get("willingness_to_pay")
                    (place / "summary.tex").write_text(model.summary().latex(pay) + "\n", encoding="utf-8")
            talk.written = str(out)
        first = tables["scores"] if "scores" in tables else tables["coefficients" if user is None else "part_worths"]
        _say(talk, model, tables, price, user, of, notes)
        if talk.kind == "md":
            for name, table in tables.items():
                if name not in _OF_PEOPLE or user is not None:
                    typer.echo(f"## {name.capitalize().replace('_', ' ')}\n")
                    talk.table(table, "md")
                    typer.echo()
        elif talk.kind != "table":
            shown = {name: table.to_dicts() for name, table in tables.items() if name != "part_worths" or user}
            talk.result(first, "worth", {
                "model": model.report_["model"], "price": price, "user": user, "of": of.value, "seed": ctx.obj.seed,
                **shown,
            })  # fmt: skip
        if out is None:
            what = "the scores" if "scores" in tables else "everybody's part-worths"
            talk.say(f"Nothing was written; -o DIR writes {what}.")
        else:
            also = ", summary.tex" if "summary" in tables else ""
            talk.say(f"Written to {out}: {', '.join(f'{name}.csv' for name in tables)}{also}.")
        if "scores" not in tables:
            talk.say(f"Next: predilect simulate {as_typed(folder)} SCENARIOS says which share each item gets.")


def _with_errors(talk: Talk, results: Results, errors: str) -> Results:
    """Results of which intervals are by these errors: the logit is fitted again where they are by others."""
    model = results.model
    if model._called not in ("logit", "nested-logit", "latent-class"):
        raise DataError(
            f"--errors is about a logit or latent classes, and {results.given} holds a {model._called} model: leave it "
            "out, or rank with --model logit"
        )
    if model.summary().errors == errors:
        return results
    if model.user_features_ is not None:
        more = f",n_classes={model.n_classes}" if model.n_classes > 1 else ""
        more += "" if model.nests is None else f",nests={model.nests}"
        raise DataError(
            f"{results.given} does not hold the attributes of people (--people) that its model rests on. Rank again "
            f"with --model {model._called}{more},errors={errors}"
        )
    answers = results.answers("--errors")
    with talk.progress("Fitting") as watch:
        fitted = type(model)(**model.get_params() | {"errors": errors})
        fitted.fit(answers, items=model.features_, watch=watch)
    return replace(results, model=fitted)


def _refuse(results: Results, price: str | None, anchor: str | None, holdout: int) -> None:
    """DataError for what the model cannot tell."""
    model = results.model
    has_attributes = model.features_ is not None and hasattr(getattr(model, "worth", None), "parts")
    if hasattr(model, "indifference"):
        steps = model.trade_offs_.steps()
        numbers = [one.label for one in steps if one.is_number and len({step.source for step in steps}) > 1]
        pay = f"--pay-with {as_typed(numbers[0])}, --accept" if numbers else "--accept"
        raise DataError(
            f"{results.given} holds a GaSPK model, which knows trade-offs: predilect show {as_typed(results.given)} "
            f"{pay} or --indifference"
        )
    if model.features_ is not None and not has_attributes:
        raise DataError(
            f"{results.given} holds a model that does not say what attributes are worth. Rank with --model population "
            "or mixed-logit"
        )
    if not has_attributes and (price or holdout):
        raise DataError("--price and --holdout need attributes: rank again with --items FILE, one row an item")
    if has_attributes and anchor is not None:
        raise DataError("--anchor is for scores of items without attributes; leave it out")
    if not has_attributes and model.comparisons_ is None and results.folder is None:
        raise DataError(f"{results.given} is a model alone; give the folder that predilect rank wrote")


def _tables(
    results: Results, price: str | None, user: str | None, of: OfName, anchor: str | None, seed: int
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """Tables by name, and what else is to be said."""
    import polars as pl

    model = results.model
    if model.features_ is None:
        chosen = _choices(results.answers("a score"))[0]
        return {"scores": pl.DataFrame(model.scores(_usual_size(chosen), anchor, user, random_state=seed))}, []
    found = {"part_worths": model.worth.parts()}
    if user is not None:
        one = model.users_.labels([model._user_code(user)])[0]
        found["part_worths"] = found["part_worths"].filter(pl.col("user") == one)
        if found["part_worths"].is_empty():
            raise DataError(
                f"{results.given} holds one ranking for all, and part-worths of nobody alone. Leave --user out, or "
                "rank again with --personal yes, or --model mixed-logit"
            )
    else:
        found |= {"coefficients": model.worth.coefficients(), "importances": model.worth.importances(of.value)}
        if hasattr(model, "summary"):
            found["summary"] = model.summary().table
            if model.n_classes > 1:
                found["classes"] = model.classes()
            if model._member is not None:
                found["memberships"] = model.memberships()
    if price is not None:
        found["willingness_to_pay"] = model.worth.willingness_to_pay(price, user)
    if user is not None or not model.personal_:
        return found, []
    try:
        answers = results.answers("that")
        chosen, why_none = _choices(answers)
    except DataError as error:
        chosen, why_none = None, str(error)
    if chosen is None:
        return found, [f"How well choices are explained is not said: {why_none}."]
    found["fit"] = model.worth.fit_of_people(answers)
    return found, _decided(chosen, model, answers)


def _held_out_tasks(talk: Talk, results: Results, n_tasks: int, seed: int, jobs: int | None) -> pl.DataFrame:
    """How well both models of attributes predict tasks that were held out."""
    import polars as pl

    from predilect.evaluation import holdout as hold_out
    from predilect.models.registry import estimator

    answers = results.answers("--holdout")
    if (why_none := _choices(answers)[1]) != "":
        raise DataError(f"--holdout is about choices: {why_none}")
    names = sorted(("population", "mixed-logit"), key=results.model.report_["model"].__ne__)
    models = {name: estimator(name)(n_jobs=jobs, random_state=seed) for name in names}
    with talk.progress("Holding out") as watch:
        return pl.DataFrame(hold_out(
            models, answers, items=results.model.features_, n_tasks=n_tasks, random_state=seed, watch=watch,
        ))  # fmt: skip


def _usual_size(choices: Choices | None) -> int:
    """How many alternatives most choices of the best, or else of the worst, were made from; 4 for other answers."""
    import numpy as np

    if choices is None:
        return 4
    sizes = np.diff(choices.ptr)
    best = choices.sign > 0
    return min(20, int(np.bincount(sizes[best] if best.any() else sizes).argmax()))


def _choices(answers: Comparisons) -> tuple[Choices | None, str]:
    """What was chosen out of what, or why answers, such as ratings, are no choices."""
    from predilect.data.choices import choices_of

    try:
        return choices_of(answers), ""
    except DataError as error:
        return None, str(error)


_UNIT = "What one unit adds, or a level against the mean of all levels, in {}:"


def say_coefficients(talk: Talk, fitted: Any, coefficients: pl.DataFrame) -> None:
    """Print what attributes are worth to the crowd."""
    talk.say(_UNIT.format(fitted._likelihood.unit))
    _show(talk, with_intervals(coefficients, {"mean": "Mean", "spread": "Between people"}))


def _say(
    talk: Talk, fitted: Any, tables: dict[str, pl.DataFrame], price: str | None, user: str | None, of: OfName,
    notes: list[str],
) -> None:  # fmt: skip
    relation = fitted._relation()
    talk.say(f"Model: {fitted._called}. {relation}." if relation else
             f"Model: {fitted._called}, of all answers together.")  # fmt: skip
    for line in dict.fromkeys([*fitted.describe(), *notes]):
        talk.say(line)
    if "scores" in tables:
        talk.say("Scores, of how probable it is that an item is taken from a set of the usual size:")
        _show(talk, with_intervals(tables["scores"], {"score": "Score"}))
        return
    if user is None:
        say_coefficients(talk, fitted, tables["coefficients"])
        if "classes" in tables:
            talk.say("Classes of people, and their mean coefficients:")
            _show(talk, as_rich(tables["classes"]))
        if "summary" in tables:
            summary = fitted.summary()
            words = (f"{name} {summary.facts[name]:.2f}" for name in _OF_FIT if summary.facts.get(name) is not None)
            talk.say(f"Likelihood: {', '.join(words)}.")
            for line in str(summary).splitlines():
                talk.detail(line)
        talk.say("Importance: the share of the range of a person's utilities over the items.")
        heads = {"importance": "Importance", "spread": "Between people"}
        _show(talk, with_intervals(tables["importances"], heads, as_percent=True))
        talk.say(of_whom(of, "Importances and their intervals"))
    else:
        talk.say(_UNIT.format(fitted._likelihood.unit))
        _show(talk, with_intervals(tables["part_worths"].drop("user"), {"mean": "Mean"}))
    if price is not None:
        worth = tables["willingness_to_pay"]
        talk.say(f"Worth of one unit, or of a level against the mean, in units of {price}:")
        of_people = "mean" in worth.columns
        _show(talk, with_intervals(worth, {"median": f"{'Median over people, in' if of_people else 'In'} {price}"}))
        if of_people:
            mean = worth.select("attribute", "level", "mean", lower="mean_lower", upper="mean_upper")
            _show(talk, with_intervals(mean, {"mean": f"Mean over people, in {price}"}))
        for said in worth["said"].unique().sort().to_list():
            if said:
                talk.say(f"{said[0].upper()}{said[1:]}.")
    for line in _people(tables["fit"]) if "fit" in tables else ():
        talk.say(line)
    if "holdout" in tables:
        for line in _held_out(tables["holdout"]):
            talk.say(line)


def _show(talk: Talk, table: Any) -> None:
    """A table, which is a result where tables are printed for people."""
    (talk.show if talk.kind == "table" else talk.say)(table)


def _decided(choices: Choices, fitted: Any, answers: Comparisons) -> list[str]:
    """Attributes that decide every choice, in sentences."""
    from predilect.data.choices import decided_by, within_choices

    features = fitted.features_
    chosen = within_choices(features.align(answers.items)[0], choices)[1]
    words = [decided_by(one, output.name) for one, output in zip(chosen.T, features.outputs, strict=True)]
    return [line for line in words if line]


def _people(fit: pl.DataFrame) -> list[str]:
    """How well people's choices are explained, in sentences."""
    import numpy as np

    from predilect._base.text import percent, shown

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
    from predilect._base.text import amount

    first, second = table.row(0, named=True), table.row(1, named=True)
    lines = [f"Held out: {amount(first['choices'])} choices of {first['people']} people."]
    for row in table.iter_rows(named=True):
        shares = "" if row["share_error"] is None else f", shares off by {100 * row['share_error']:.1f} points"
        lines.append(
            f"  {row['model']}: chose as predicted in {100 * row['hit_rate']:.1f} %, log loss {row['log_loss']:.3f}"
            f"{shares}"
        )
    interval = f", 95 % interval {second['lower']:.3f} to {second['upper']:.3f}"
    if first["people"] < 2:
        verdict, interval = "cannot be told apart by one person", ""
    elif second["lower"] <= 0.0 <= second["upper"]:
        verdict = "predict about equally well"
    else:
        better, other = (first, second) if second["lower"] > 0.0 else (second, first)
        verdict = f"differ: {better['model']} predicts better than {other['model']}"
    lines.append(
        f"Verdict: the two models {verdict} (log loss of {second['model']} less that of {first['model']}: "
        f"{second['difference']:.3f}{interval})."
    )
    lines += [
        f"The fit of {one['model']} to the other tasks did not converge: this is not its last word."
        for one in (first, second)
        if one["converged"] is False
    ]
    return lines
