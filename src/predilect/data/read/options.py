"""What can be said of how a table is read: one list, for arguments, options of commands, messages and the docs.

``columns`` name the column of a role, ``reading`` says what values mean. In Python both are dicts, on the command line
``-c ROLE=COLUMN`` and ``--read KEY=VALUE``, each as often as needed. Readers know each option by its ``key``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

from predilect._base.text import did_you_mean, for_shell, interface, shown
from predilect.errors import DataError

Kind = Literal["pairs", "best", "best_worst", "order", "rank", "rating", "approval"]
WinnerIs = Literal["item", "side", "sign"]
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0", "none")


class ReadOptions(TypedDict, total=False):
    """Options as the readers take them, by :attr:`Option.key`."""

    user: str | bool | None
    left: str | None
    right: str | None
    winner: str | None
    won: str | None
    lost: str | None
    ties: Iterable[object]
    weight: str | bool | None
    outcome: Any
    item_map: Mapping[Any, Any] | None
    winner_is: WinnerIs | None
    drop_missing: bool
    drop_self: bool
    drop_unknown: bool
    task: str | bool | None
    runs: bool | None
    covariates: Sequence[str]
    side: bool | Literal["where known"] | None  # the last for a model that has an effect of the side
    context: str | None
    kind: Kind | None
    alternatives: str | Sequence[str] | None
    profile: Sequence[str] | None
    none: str
    grades: Sequence[str]
    left_word: Sequence[str]
    right_word: Sequence[str]
    positive: Literal["left", "right"] | None
    best: Literal["low", "high"] | None
    constants: bool | None
    both_bad: Literal["tie", "item"] | None
    design: Any
    table: str | None
    criterion: str | bool | None
    keep: str | None


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be said: the role of a column, or a key of ``reading``.

    ``form``: "column", or several "columns"; a "word", "words", one of ``values``, or "yes" and no. ``also``: other
    names that are taken for it. ``may_lack``: whether one may say that there is no such column.
    """

    name: str
    key: str
    form: Literal["column", "columns", "word", "words", "value", "yes"]
    help: str
    values: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    may_lack: bool = False

    @property
    def is_column(self) -> bool:
        """Whether it is a role of columns."""
        return self.form in ("column", "columns")


OPTIONS = (
    Option("who", "user", "column", "Who answered; nothing for nobody in particular.", also=("user",), may_lack=True),
    Option("left", "left", "column", "The one item shown."),
    Option("right", "right", "column", "The other item shown."),
    Option("answer", "winner", "column", "The answer: an item, a side, a tie, a grade, a number.", also=("winner",)),
    Option("won", "won", "column", "The item that won, where left and right are not said."),
    Option("lost", "lost", "column", "The item that lost."),
    Option(
        "task", "task", "column", "Which rows are about one question, such as one choice from several; ids need be "
        "distinct within a person only.", may_lack=True,
    ),
    Option(
        "alternatives", "alternatives", "columns", "Which alternative a row is about, or the column that lists those "
        "shown; the columns of those shown; or, where columns describe alternatives, their names in the order of their "
        "numbers.",
    ),
    Option(
        "profile", "profile", "columns", "What describes alternatives that have no name; nothing for items that are "
        "those named, whatever differs beside them.",
    ),
    Option(
        "weights", "weight", "column", "How many answers a row stands for; nothing for one.", also=("weight",),
        may_lack=True,
    ),
    Option(
        "context", "context", "column", "The prompt, scenario or place that answers are about: those on one, whoever "
        "gave them, depend on each other.",
    ),
    Option(
        "covariates", "covariates", "columns", "Numbers by which the two shown may differ, such as length: a column of "
        "differences, left minus right, or length for length_left and length_right, or length_a and length_b.",
    ),
    Option(
        "kind", "kind", "value", "What was asked: one of two, the best of several, best and worst, an order, ranks, "
        "ratings, or any number that is approved of.",
        ("pairs", "best", "best_worst", "order", "rank", "rating", "approval"),
    ),
    Option("answer-is", "winner_is", "value", "What the answers are.", ("item", "side", "sign")),
    Option("tie", "ties", "words", "A further word for a tie, besides tie, draw, equal, both_bad and the like."),
    Option("left-word", "left_word", "words", "A further word in the answers for the left side."),
    Option("right-word", "right_word", "words", "A further word in the answers for the right side."),
    Option(
        "positive", "positive", "value", "Which side positive numbers speak for, or those above the "
        "middle of a scale.",
        ("left", "right"),
    ),
    Option("best", "best", "value", "Which end of ranks, marks or ratings is the good one.", ("low", "high")),
    Option(
        "grades", "grades", "words", "Names of grades from slight to strong, where an answer is a side and a grade, "
        "such as left slightly better; or numbers: 1,2,3.",
    ),
    Option("both-bad", "both_bad", "value", "What both bad is: a tie, or a loss of both.", ("tie", "item")),
    Option(
        "side", "side", "yes", "Whether left and right are where the items were shown, which may sway people; by "
        "default what the table shows.",
    ),
    Option(
        "task", "runs", "value", "runs: consecutive rows of one person with one winner are one choice; none: each row "
        "is an answer by itself.", ("runs", "none"),
    ),
    Option("constants", "constants", "yes", "Whether alternatives that have names have constants of their own."),
    Option("none", "none", "word", 'The item that stands for "none of these".'),
    Option(
        "drop", "drop", "words", "Rows to leave out, and to count: missing (an id or a covariate), self (an item "
        "against itself), unknown (an answer that is no item, side or tie).", ("missing", "self", "unknown"),
    ),
    Option(
        "criterion", "criterion", "word", 'Which one the board is about, where a column "criterion" says that answers '
        "are about several.",
    ),
    Option(
        "keep", "keep", "word", "Rows to use: COLUMN:VALUE, or COLUMN:VALUE,VALUE for several, such as valid:yes.",
    ),
    Option("table", "table", "word", "Table of a database, or sheet of a workbook."),
)  # fmt: skip
_ROLES = {name: one for one in OPTIONS if one.is_column for name in (one.name, *one.also)}
_KEYS = {one.name: one for one in OPTIONS if not one.is_column}
_OF_FILES = ("table",)


def read_options(
    columns: Mapping[str, Any] | None, reading: Mapping[str, Any] | None, *, of_file: bool = False
) -> ReadOptions:
    """Options of the readers, from what was said; DataError for a name that is none, or a value that it cannot have."""
    found: dict[str, Any] = {}
    for what, given in (("columns", columns), ("reading", reading)):
        if given is not None and not isinstance(given, Mapping):
            raise DataError(f"{what} is a dict, such as {_EXAMPLES[what]}; got {shown(repr(given))}.")
        for name, value in (given or {}).items():
            _put(found, _known(what, str(name), of_file), value)
    return _settled(found)


def _settled(found: dict[str, Any]) -> ReadOptions:
    """With what follows from the options that were said."""
    if "runs" in found and found.get("task"):
        task, runs = option("task", found["task"]), option("runs", found["runs"])
        raise DataError(f"{task} and {runs} contradict each other. Give one of them.")
    if found.get("runs") is False:  # each answer is one by itself
        found.setdefault("task", False)
    return cast("ReadOptions", found)


_EXAMPLES = {"columns": '{"who": "judge", "answer": "vote"}', "reading": '{"tie": "skipped"}'}


def _known(what: str, name: str, of_file: bool = True) -> Option:
    """The option of a name among columns or reading; DataError if there is none."""
    known, other = (_ROLES, _KEYS) if what == "columns" else (_KEYS, _ROLES)
    one = known.get(name if what == "columns" else name.replace("_", "-"))
    if one is not None and (of_file or one.key not in _OF_FILES):
        return one
    if name in other or name.replace("_", "-") in other:
        raise DataError(f'"{shown(name)}" is said in {"reading" if what == "columns" else "columns"}, not in {what}.')
    noun = "role of a column" if what == "columns" else "key of reading"
    names = dict.fromkeys(map(_named, known.values()))
    raise DataError(f'"{shown(name)}" is no {noun}; there are {", ".join(names)}.{did_you_mean(name, known)}')


def _put(found: dict[str, Any], one: Option, value: Any) -> None:
    """Set one option; said twice, lists grow, and anything else is an error. None says nothing of how to read."""
    if value is None and not one.is_column:
        return
    if one.form == "column":
        lacks = one.may_lack and value in (None, "", False)
        value = False if lacks else _text(one, value)
    elif one.form in ("columns", "words"):
        value = [] if one.key == "profile" and value in (None, "", False) else _words(one, value)
        if one.key == "drop":
            found |= {f"drop_{word}": True for word in value}
            return
        held = found.pop(one.key, [])
        held = [held] if isinstance(held, str) else held
        value = [*held, *(word for word in value if word not in held)]
        if one.key == "alternatives" and len(value) == 1:
            value = value[0]
    elif one.form == "yes":
        value = _yes(one, value)
    elif one.form == "value":
        value = _one_of(one, value)
        value = value == "runs" if one.key == "runs" else value
    else:
        value = _text(one, value)
    if found.get(one.key, value) != value:
        raise DataError(f'"{_named(one)}" is said twice, {shown(repr(found[one.key]))} and {shown(repr(value))}.')
    found[one.key] = value


def _text(one: Option, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise DataError(f'"{_named(one)}" is {"the name of a column" if one.is_column else "a word"}; got {value!r}.')
    return value


def _words(one: Option, value: Any) -> list[Any]:
    words = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    wrong = [word for word in words if one.values and word not in one.values]
    if wrong:
        raise DataError(_wrong(one, wrong[0]))
    return words


def _one_of(one: Option, value: Any) -> str:
    word = str(value).replace("-", "_") if isinstance(value, str) else value
    if word not in one.values:
        raise DataError(_wrong(one, value))
    return str(word)


def _yes(one: Option, value: Any) -> bool:
    word = str(value).lower()
    if word not in (*_YES, *_NO):
        raise DataError(f'"{_named(one)}" is yes or no; got {value!r}.')
    return word in _YES


def _named(one: Option) -> str:
    return one.name if interface() == "command" else one.name.replace("-", "_")


def _wrong(one: Option, value: Any) -> str:
    return f'"{_named(one)}" is one of {", ".join(one.values)}; got {value!r}.{did_you_mean(value, one.values)}'


def from_command(columns: Sequence[str], reading: Sequence[str]) -> ReadOptions:
    """As :func:`read_options`, of what was given as ROLE=COLUMN and KEY=VALUE, with commas between several."""
    found: dict[str, Any] = {}
    for flag, given, what, form in (
        ("-c", columns, "columns", "ROLE=COLUMN, such as who=judge"),
        ("--read", reading, "reading", "KEY=VALUE, such as tie=skipped"),
    ):
        for said in given:
            name, sign, value = said.partition("=")
            if not sign:
                raise DataError(f'{flag} takes {form}; got "{shown(said)}".')
            one = _known(what, name.strip())
            several = one.form == "columns" or one.key in ("grades", "drop")
            several = several and not (one.key == "profile" and not value)
            _put(found, one, _listed(value, flag) if several else value)
    return _settled(found)


def _listed(text: str, flag: str) -> list[str]:
    """Names with commas between them, as a line of a CSV."""
    rows = list(csv.reader([text], skipinitialspace=True))
    names = [name.strip() for row in rows for name in row]
    if not names or not all(names):
        raise DataError(f'{flag} takes names with commas between them; one of "{shown(text)}" is empty.')
    return names


def option(key: str, value: Any, **more: Any) -> str:
    """How to say one or ``more`` options of reading in the words of whoever reads a message.

    The value "NAME" is that of any column, False for a column that there is none.
    """
    if key == "design":
        return "--design FILE" if interface() == "command" else "design=FRAME"
    said = [_said(*one) for one in {key: value, **more}.items()]
    if interface() == "pairs":
        return " and ".join(f'the header "{one.key}"' for one, _ in said)
    if interface() == "command":
        return " ".join(f"{'-c' if one.is_column else '--read'} {_typed(one, value)}" for one, value in said)
    found: dict[str, dict[str, Any]] = {}
    for one, value in said:
        found.setdefault("columns" if one.is_column else "reading", {})[one.name.replace("-", "_")] = value
    return ", ".join(f"{name}={_in_python(values)}" for name, values in found.items())


def _said(key: str, value: Any) -> tuple[Option, Any]:
    """An option and its value as one says it."""
    if key.startswith("drop_"):
        key, value = "drop", key.removeprefix("drop_")
    if key == "runs" or (key == "task" and value is False):
        key, value = "runs", "runs" if value else "none"
    one = next(one for one in OPTIONS if one.key == key)
    if value is False and one.is_column:
        value = ""
    return one, value if isinstance(value, str | bool) or len(value) != 1 else value[0]


def as_given(options: ReadOptions) -> tuple[list[str], list[str]]:
    """Options as :func:`from_command` takes them: ROLE=COLUMN, and KEY=VALUE."""
    found: tuple[list[str], list[str]] = [], []
    for one, value in (_said(key, value) for key, value in options.items()):
        found[not one.is_column].append(_equation(one, value))
    return found


def _equation(one: Option, value: Any) -> str:
    text = ("yes" if value else "no") if isinstance(value, bool) else value
    return f"{one.name}={text if isinstance(text, str) else joined(text)}"


def _typed(one: Option, value: Any) -> str:
    return for_shell(_equation(one, value))


def _in_python(values: Mapping[str, Any]) -> str:
    said = json.dumps(values, ensure_ascii=False)
    return said.replace(": true", ": True").replace(": false", ": False")


def joined(names: Sequence[str]) -> str:
    """Names with commas between them; names that hold one in quotes."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(names)
    return out.getvalue()


def own_words(options: ReadOptions) -> tuple[list[str], list[str]]:
    """Words for the left and for the right side that are given."""
    return as_words(options.get("left_word")), as_words(options.get("right_word"))


def as_words(ties: Iterable[object] | None) -> list[str]:
    """Words for ties as text; DataError for what holds none."""
    try:
        return [ties] if isinstance(ties, str) else [str(word) for word in (() if ties is None else ties)]
    except (TypeError, ValueError) as error:  # nothing to go through; a number of more digits than Python writes
        raise DataError(
            f'ties must be a list of words, such as ["even"], got {type(ties).__name__} ({error}).'
        ) from error
