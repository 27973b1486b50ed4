"""``predilect design``: the tasks of a choice study, and what answers to them will tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from predilect._base.text import as_typed, first_few, quoted, shown
from predilect.cli.options import Force, OutFile
from predilect.cli.session import Talk, session
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from predilect.choice.designs import Design

_STARTS, _TASKS_OF_ALL_STARTS = 20, 400  # random designs to start from, fewer where tasks are very many
_POWER = 0.8
_EXAMPLE = "attribute,level,prior with the rows price,1,-0.5 and price,2, and brand,A,0.3 and brand,B,"


def design(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="LEVELS",
            show_default=False,
            help="Table of a row a level: columns attribute and level, and perhaps prior, sd and spread. - is standard "
            "input.",
        ),
    ],
    tasks: Annotated[int, typer.Option("--tasks", metavar="N", min=1, help="Tasks that each respondent answers.")] = 10,
    alternatives: Annotated[
        int, typer.Option("--alternatives", metavar="N", min=1, help="Alternatives of a task.")
    ] = 3,
    none: Annotated[bool, typer.Option("--none", help="Each task also offers none of these.")] = False,
    versions: Annotated[
        int, typer.Option("--versions", metavar="N", min=1, help="Versions of the questionnaire, of N tasks each.")
    ] = 1,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Show each level of an attribute equally often.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="A=1,B=2",
            help="Levels that no alternative may have together: brand=A,price=3. May be repeated.",
        ),
    ] = None,
    respondents: Annotated[
        int, typer.Option("--respondents", metavar="N", min=1, help="How many there will be, for errors and power.")
    ] = 200,
    out: OutFile = None,
    force: Force = False,
) -> None:
    """Make a design of a choice study from the attributes and levels in LEVELS, and say what answers will tell.

    The design is D-efficient for a logit. Numbers have a slope, other levels effects that sum to 0. The column prior is
    what is thought of them (of a number on one of its rows), sd how unsure that is, spread by how much people differ (a
    standard deviation, on one row of the attribute): errors and power are those of a mixed logit then. A row None is
    about the constant of none of these. -o FILE is a .csv with a row an alternative, which rank --design takes beside
    the answers.

    Example: predilect design levels.csv --tasks 8 --versions 4 -o design.csv
    """
    with session(ctx.obj) as talk:
        file = talk.file(file)
        from predilect.choice.designs import design as efficient
        from predilect.data.read.readers import read_table
        from predilect.show.report.output import OutputFile
        from predilect.show.report.tables import write_csv

        target = None if out is None else OutputFile(out, force, what="the design needs", reads=[file])
        if out is not None and target is not None and not target.is_special and out.suffix != ".csv":
            raise DataError(f"{out} should end in .csv, which is what a design is written as")
        said = _said(file, read_table(file)[1])
        with talk.progress("Searching"):
            found = efficient(
                said.levels, tasks, alternatives, priors=said.priors, outside=none, balanced=balanced,
                prohibited=[_prohibited(text, said.levels) for text in without or []], n_blocks=versions,
                n_starts=max(1, min(_STARTS, _TASKS_OF_ALL_STARTS // (tasks * versions))), random_state=ctx.obj.seed,
            )  # fmt: skip
        expected = _expected(found, respondents, said.spreads)
        _say(talk, found, expected, respondents, said)
        if target is not None:
            target.write(lambda path: write_csv(found.table, path))
            talk.written = str(out)
            talk.say(f"Written to {out}: {len(found.table)} rows. Next: ask the questions, then")
            talk.say(f"predilect rank ANSWERS --design {as_typed(out)} --model mixed-logit -o DIR")
        elif talk.kind == "table":
            talk.say("Nothing was written; -o FILE writes the design, and --format csv prints it.")
        if talk.kind != "table":
            talk.result(found.table, "design", {
                "d_error": found.d_error, "respondents": respondents, "design": found.table.to_dicts(),
                "expected": expected.to_dicts(), "overlap": found.overlap.to_dicts(),
                "balance": found.balance.to_dicts(),
            })  # fmt: skip


class _Levels(NamedTuple):
    """What a table of levels says, as ``design`` and its ``expected`` take it."""

    levels: dict[str, list[Any]]
    priors: dict[str, Any]
    spreads: dict[str, float]


def _said(file: Path, table: pl.DataFrame) -> _Levels:
    """Attributes in the order of the file; DataError where it has other columns, or a number that is none."""
    import polars as pl

    table = table.rename({name: name.strip().lower() for name in table.columns})
    if not {"attribute", "level"} <= set(table.columns):
        raise DataError(
            f"{file.name} has the columns {first_few(table.columns, 10)}, and a table of levels has a row a level, "
            f"with the columns attribute and level, and perhaps prior, sd and spread: {_EXAMPLE}"
        )
    other = [name for name in table.columns if name not in ("attribute", "level", "prior", "sd", "spread")]
    if other:
        raise DataError(
            f'{file.name}: the column "{shown(other[0])}" means nothing here. Columns are attribute, level, prior, sd '
            "and spread"
        )
    texts = table.select(pl.all().cast(pl.String).str.strip_chars()).with_columns(pl.all().replace("", None))
    found = _Levels({}, {}, {})
    for name, rows in texts.filter(pl.any_horizontal(pl.all().is_not_null())).group_by(
        "attribute", maintain_order=True
    ):
        attribute = name[0]
        if attribute is None:
            raise DataError(f"{file.name}: a level names no attribute. Repeat the attribute on each row")
        labels = [one for one in rows["level"].to_list() if one is not None]
        numbers = [_number(one) for one in labels]
        is_number = bool(labels) and None not in numbers
        levels: list[Any] = labels
        if is_number:
            levels = [int(x) if x.is_integer() else x for x in numbers if x is not None]
        priors = [_prior(file, row) for row in rows.iter_rows(named=True)]
        given = [(level, one) for level, one in zip(rows["level"].to_list(), priors, strict=True) if one is not None]
        if labels:
            found.levels[str(attribute)] = levels
        if given and labels and not is_number:
            if any(level is None for level, _ in given):
                raise DataError(f'{file.name}: a prior of the category "{shown(attribute)}" stands on no level')
            found.priors[str(attribute)] = dict(given)
        elif given:
            if len({one for _, one in given}) > 1:
                raise DataError(
                    f'{file.name}: "{shown(attribute)}" has several priors, and a number has one, its slope: what one '
                    "unit more adds. Give it on one row"
                )
            found.priors[str(attribute)] = given[0][1]
        spreads = {_needed(file, "spread", one) for one in _column(rows, "spread") if one is not None}
        if len(spreads) > 1:
            raise DataError(f'{file.name}: "{shown(attribute)}" has several spreads. Give one, on one row')
        if spreads:
            found.spreads[str(attribute)] = spreads.pop()
    return found


def _column(rows: pl.DataFrame, name: str) -> list[str | None]:
    return rows[name].to_list() if name in rows.columns else [None] * len(rows)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _needed(file: Path, name: str, text: str) -> float:
    found = _number(text)
    if found is None:
        raise DataError(f"{file.name}: {name} is a number, not {quoted(text)}")
    return found


def _prior(file: Path, row: dict[str, Any]) -> Any:
    """A prior with its standard deviation, a prior alone, or None."""
    mean, sd = (None if row.get(name) is None else _needed(file, name, row[name]) for name in ("prior", "sd"))
    if sd is None:
        return mean
    return (0.0 if mean is None else mean, sd)


def _prohibited(text: str, levels: dict[str, list[Any]]) -> dict[str, Any]:
    """Levels of "brand=A,price=3", as the table has them."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, level = (one.strip() for one in part.partition("="))
        if not equals:
            raise DataError(f'--without takes ATTRIBUTE=LEVEL with commas between them; got "{shown(text)}"')
        found[name] = next((one for one in levels.get(name, ()) if str(one) == level), level)
    return found


def _expected(found: Design, respondents: int, spreads: dict[str, float]) -> pl.DataFrame:
    """Errors and power with so many respondents, and how many give a power of 80 %; power where there is a prior."""
    import polars as pl

    table: pl.DataFrame = found.expected(respondents, spreads=spreads)
    needed = found.people_needed(power=_POWER, spreads=spreads)["people"]
    power = pl.when(pl.col("prior") != 0.0).then(pl.col("power"))
    return table.with_columns(power.alias("power"), needed.alias("respondents_for_80"))


def _say(talk: Talk, found: Design, expected: pl.DataFrame, respondents: int, said: _Levels) -> None:
    """Print the design in short, what it will tell, and how much alternatives are alike."""
    lines = str(found).split("\n")
    talk.say(lines[0])
    for line in lines[1:-2]:
        talk.detail(line)
    if talk.kind == "table":
        from predilect.cli.tables import as_rich

        talk.show(as_rich(expected.select("attribute", "level", "prior", "se", "power", "respondents_for_80")))
        talk.say(as_rich(found.overlap))
    model = "a mixed logit's means" if said.spreads else "a logit"
    power = "power: the chance that the 95 % interval leaves 0 out if the prior is true"
    if not (expected["prior"] != 0.0).any():
        power = "power is not known without priors (a column prior)"
    talk.say(f"Expected standard errors (se) of {model} with {respondents} respondents; {power}.")
    if not said.spreads:
        talk.say("Where people differ errors are larger: a column spread says by how much, as a standard deviation.")
    talk.say(
        "Overlap: 0 where all levels of a task differ, 1 where all are the same; least is what so few levels allow."
    )
