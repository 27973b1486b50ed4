"""``predilect ask``: the pairs to ask a person next."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from predilect.cli.options import Folder
from predilect.cli.session import session
from predilect.errors import DataError

TargetName = StrEnum("TargetName", ["person", "board", "best", "top", "random"])  # what the answers are for
StrategyName = StrEnum("StrategyName", ["bald", "entropy", "eubo", "random"])  # criterion of the next question

Target = Annotated[
    TargetName,
    typer.Option(
        "--target",
        help="What the answers should tell: what USER prefers; where the items stand for the crowd (board); which is "
        "best; which are the --first K (top); random: any pair. All but the first are drawn, with --seed.",
    ),
]
First = Annotated[
    int | None,
    typer.Option("--first", metavar="K", min=1, show_default="1", help="With --target top: the first so many items."),
]
Difficulty = Annotated[
    float | None,
    typer.Option(
        "--difficulty",
        metavar="P",
        min=0.0,
        max=1.0,
        show_default="any",
        help="About the crowd: no pair of which the likelier answer is less likely than P.",
    ),
]
Exclude = Annotated[
    Path | None,
    typer.Option(
        "--exclude",
        metavar="FILE",
        help="Pairs that are not asked, of this person where there is a column of people: answers that came after "
        "the model, or all, if the model does not hold them. With --size sets: answers, or a column item, and task "
        "where there are several.",
    ),
]


def ask(
    ctx: typer.Context,
    folder: Folder,
    user: Annotated[
        str | None,
        typer.Argument(
            metavar="[USER]",
            show_default="somebody without answers",
            help="Who is asked; somebody whom the model does not know is asked what a new person would be.",
        ),
    ] = None,
    n: Annotated[
        int,
        typer.Option("--number", "-n", metavar="N", min=1, help="How many pairs; each for what it adds to the others."),
    ] = 1,
    strategy: Annotated[
        StrategyName,
        typer.Option(
            "--strategy",
            help="bald: the answer tells most about the person; entropy: it is hardest to predict; eubo: the better "
            "item is expected to be best; random: any pair.",
        ),
    ] = StrategyName.bald,
    target: Target = TargetName.person,
    first: First = None,
    difficulty: Difficulty = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            "--candidates",
            metavar="FILE",
            show_default="all pairs",
            help="What may be asked: pairs, in columns left and right (and user: only this person's rows), or items, "
            "in a column item.",
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            "--size",
            metavar="K",
            min=2,
            max=20,
            show_default="pairs",
            help="Ask for the best of so many items in place of pairs: prints item, p_best and score, a row an item.",
        ),
    ] = None,
    exclude: Exclude = None,
    repeat: Annotated[
        bool,
        typer.Option(
            "--repeat", help="Also ask pairs, or sets, that the person answered, as far as the model holds them."
        ),
    ] = False,
) -> None:
    """Choose the pairs to ask USER next, by the model in DIR.

    Prints left, right, score (bits that the answer tells, beyond those of the pairs above; with eubo the expected
    utility of the better item above the average item), p_left, p_tie and p_right, as CSV; about the crowd the bits of
    one such answer about the board, sides as drawn, and probability, the chance with which the pair was drawn. Nothing
    but the header if no pair is left.

    Example: predilect ask results ann -n 5
    """
    with session(ctx.obj, "csv") as talk:
        candidates, exclude = talk.file(candidates), talk.file(exclude)
        from predilect.cli.folder import Results
        from predilect.data.read.readers import read_table

        results, seed = Results.of(folder), ctx.obj.seed
        results.refuse_unusable()
        fitted = results.with_answers(user)
        pool = None if candidates is None else _pairs_or_items(candidates)
        again = "" if repeat or user is None else " --repeat also asks what was answered."
        about = {"model": fitted.report_["model"], "user": user}
        about_crowd = _about_crowd(target, first, difficulty)
        about["target"] = target.value
        if size is not None:
            if n != 1 or strategy is not StrategyName.bald or difficulty is not None:
                raise DataError("--size asks for one set: it goes without -n, --strategy and --difficulty")
            if pool is not None and hasattr(pool, "columns"):
                raise DataError("a set is made of items: give --candidates FILE a column item")
            shown = None if exclude is None else _sets(exclude)
            table = fitted.suggest_set(user, size, pool, exclude=shown, repeat=repeat, random_state=seed, **about_crowd)
            if table.is_empty():
                talk.say(f"No set of {size} is left to ask.{again}")
            talk.result(table, "set", {**about, "set": table.to_dicts()})
            return
        asked = None if exclude is None else read_table(exclude)[1]
        table = fitted.suggest(user, n, candidates=pool, strategy=strategy.value, exclude=asked, repeat=repeat,
                               random_state=seed, **about_crowd)  # fmt: skip
        if len(table) < n:
            left = f"{len(table) or 'no'} pair{'s are' if len(table) > 1 else ' is'} left to ask"
            talk.say(f"Asked for {n}, but {left}.{again}")
        talk.result(table, "questions", {**about, "strategy": strategy.value, "questions": table.to_dicts()})


def _about_crowd(target: TargetName, first: int | None, difficulty: float | None) -> dict[str, Any]:
    """Arguments of questions about the crowd; none of those about a person."""
    if target is not TargetName.person:
        limits = {} if difficulty is None else {"difficulty": difficulty}
        return {"target": target.value, "k": first or 1, **limits}
    if difficulty is not None or first is not None:
        raise DataError("--difficulty and --first are of questions about the crowd: say --target board, best or top")
    return {}


def _sets(path: Path) -> Any:
    """Table with a row an item, or answers."""
    from predilect.data.read.columns import guess_pair
    from predilect.data.read.names import ITEM, TASK, guess_one
    from predilect.data.read.readers import read_file, read_table

    names, table = read_table(path)
    if guess_pair(names, None, None) == (None, None) and guess_one(names, ITEM) is not None:
        return table
    return read_file(path, {"task": guess_one(names, TASK)})


def _pairs_or_items(path: Path) -> Any:
    """Table of pairs, or list of items."""
    from predilect.data.read.columns import guess_pair, listed
    from predilect.data.read.names import ITEM, guess_one
    from predilect.data.read.readers import read_table

    names, table = read_table(path)
    item = guess_one(names, ITEM)
    pair = guess_pair(names, None, None)
    if item is None and pair == (None, None):
        raise DataError(
            f"found neither columns left and right, of pairs, nor a column item in --candidates FILE; its columns are "
            f"{listed(names)}. Rename them"
        )
    return table if item is None or None not in pair else table[item]
