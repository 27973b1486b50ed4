"""``predilect predict``: how likely each answer is, pair by pair."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect.cli.options import Folder, Force, ItemsOption, OutFile, PairColumnOption, PeopleOption
from predilect.cli.session import session

if TYPE_CHECKING:
    import polars as pl


_SUFFIXES = (".csv", ".parquet", ".jsonl")


def predict(
    ctx: typer.Context,
    folder: Folder,
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS", show_default=False, help="File of pairs, one a row: left, right and perhaps user."
        ),
    ],
    column: PairColumnOption = None,
    items: ItemsOption = None,
    people: PeopleOption = None,
    out: OutFile = None,
    force: Force = False,
) -> None:
    """Say how likely each answer to PAIRS is, by the model in DIR.

    Adds to the columns of PAIRS, in its own order, the probabilities that the left item is preferred (p_left), that
    neither is (p_tie) and that the right one is (p_right), which sum to 1; margin (utility of left less that of right,
    in units of the noise of one answer, or log-odds of a logit) and sd (how unsure that is); --out FILE is a .csv,
    .parquet or .jsonl. A person whom the model does not know is taken to be somebody new from the same crowd.
    Covariates of the model are columns of PAIRS too; without them left and right are equal.
    """
    with session(ctx.obj, "csv") as talk:
        pairs, items, people = talk.file(pairs), talk.file(items), talk.file(people)
        from predilect.cli.folder import Results
        from predilect.data import read_frame
        from predilect.data.intake import counted
        from predilect.data.read.readers import is_text, read_table
        from predilect.errors import DataError
        from predilect.show.report.output import OutputFile
        from predilect.show.report.tables import whole_numbers

        target = None if out is None else OutputFile(out, force, reads=[folder, pairs, items, people])
        if out is not None and target is not None and not target.is_special and out.suffix not in _SUFFIXES:
            raise DataError(f"{out} should end in {', '.join(_SUFFIXES)}, which says what kind of file to write")
        results = Results.of(folder)
        results.refuse_unusable(force)
        fitted = results.predicting()
        _, table = read_table(pairs)
        features = None if items is None else read_frame(items)
        of_people = None if people is None else read_frame(people)
        roles = _roles(table.columns, column or [])
        asked = _asked(fitted, table, roles)
        result = _predictions(fitted, table, asked, features, of_people)
        score = _score(fitted, table, asked, features, of_people)
        if score is not None:
            talk.say(
                f"The winner was among the answers: {100 * score['accuracy']:.1f} % were the likeliest, log loss "
                f"{score['log_loss']:.3f} nats an answer ({counted(score['n_answers'], 'answer')})."
            )
        if target is not None:
            if is_text(pairs) and out is not None and out.suffix in (".parquet", ".jsonl"):
                # In text a number has no type.
                result = result.with_columns(whole_numbers(result[name]) for name in roles.values())
            target.write(lambda path: _write(result, path, out))
            talk.written = str(out)
            talk.say(f"Written to {out}: {len(result)} predictions.")
        if target is None or talk.kind == "json":
            talk.result(result, "predictions", {
                "model": fitted.report_["model"], "score": score, "predictions": result.to_dicts(),
            })  # fmt: skip


def _roles(names: list[str], columns: list[str]) -> dict[str, str]:
    from predilect.data.read.columns import pair_roles
    from predilect.data.read.options import from_command
    from predilect.errors import DataError

    said = from_command(columns, ())
    other = [key for key in said if key not in ("user", "left", "right")]
    if other:
        raise DataError(f"of pairs to predict -c names the roles who, left and right, and no other ({other[0]})")
    return pair_roles(names, user=said.get("user"), left=said.get("left"), right=said.get("right"))


def _asked(model: Any, table: pl.DataFrame, roles: dict[str, str]) -> pl.DataFrame:
    """The pairs as the model takes them: roles as names of columns, and covariates."""
    import polars as pl

    from predilect.data.comparisons import SIDE
    from predilect.data.read.covariates import covariate_columns, flat

    names = [name for name in model._covariate_names() if name != SIDE]
    more = flat(covariate_columns(table.columns, names, needed=False))
    return table.select(*(pl.col(column).alias(role) for role, column in roles.items()), *more)


def _predictions(model: Any, table: pl.DataFrame, asked: pl.DataFrame, items: Any, people: Any) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    from predilect.errors import DataError

    mean, variance, chance = model._predict_margin_and_proba(asked, items=items, people=people)
    added = {
        "p_left": chance[:, 0], "p_tie": chance[:, 1], "p_right": chance[:, 2], "margin": mean,
        "sd": np.sqrt(variance),
    }  # fmt: skip
    taken = [name for name in added if name in table.columns]
    if taken:
        raise DataError(f"PAIRS has a column {taken[0]} already, which the predictions would replace; rename it")
    return table.with_columns(pl.Series(name, values) for name, values in added.items())


def _score(
    model: Any, table: pl.DataFrame, asked: pl.DataFrame, items: Any, people: Any
) -> dict[str, float] | None:  # fmt: skip
    """Accuracy and log loss of the answers, if there are any: None without a column of winners that can be read."""
    from predilect.data.read.names import WINNER, guess_one
    from predilect.errors import DataError, DataWarning
    from predilect.models.reading import read_answers

    winner = guess_one(table.columns, WINNER)
    if winner is None:
        return None
    try:
        answers = read_answers(
            asked.with_columns(table[winner].alias("winner")), None, with_ties=model.tie_threshold_ > 0.0,
            covariates=model._covariate_names(), grades=model.grades_,
        )  # fmt: skip
    except DataError as error:
        warnings.warn(f"The answers are not scored: {error}", DataWarning, stacklevel=2)
        return None
    score, accuracy = model._score_and_accuracy(answers, items=items, people=people)
    return {"accuracy": accuracy, "log_loss": -score, "n_answers": answers.n_answers}


def _write(table: pl.DataFrame, path: Path, named: Path | None) -> None:
    from predilect.show.report.tables import refuse_nested, write_csv

    kind = path.suffix if named is None else named.suffix
    if kind == ".parquet":
        table.write_parquet(path)
    elif kind == ".jsonl":
        table.write_ndjson(path)
    else:
        refuse_nested(table)
        write_csv(table, path)
