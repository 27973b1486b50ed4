"""Column names in common use for each role, and the columns of pairs by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from predilect._base.text import did_you_mean, near_miss, shown, spoken_to
from predilect.data.frames import Columns, clean_ids, column_names, index_names, open_frame, to_columns
from predilect.data.read.names import (
    PEOPLE,
    PEOPLE_BY_RANK,
    WINNER,
    all_named,
    guess_one,
    half_of_pair,
    likely_items,
    pair_families,
    same_thing,
    tokens,
)
from predilect.data.read.options import ReadOptions, option
from predilect.errors import DataError

_WORDS = {
    "user": PEOPLE, "left": ("left", "model_a", "item_a", "item1"), "right": ("right", "model_b", "item_b", "item2"),
    "winner": WINNER,
}  # fmt: skip
_ROLES = ("user", "left", "right", "winner", "won", "lost", "weight", "task", "context", "time", "alternatives")


def require_columns(raw: Columns, said: ReadOptions) -> None:
    """DataError if a column that was named for a role is not there."""
    for role in _ROLES:
        if isinstance(given := said.get(role), str):
            require_column(given, role, raw.names, raw.index)


def require_column(given: str, role: str, names: Sequence[str], index: Sequence[str]) -> None:
    """DataError if the column given for a role is not there."""
    if given not in names:
        refuse_index(index, [given], role)
        raise no_column(given, f"as {role}", names)


def no_column(name: str, given: str, names: Sequence[str]) -> DataError:
    """The error for a column that is not there; ``given`` says where it was named."""
    return DataError(
        f'there is no column "{shown(name)}" (given {given}); the columns are {listed(names)}.'
        f"{did_you_mean(name, names)}"
    )


def pair_roles(
    names: Sequence[str],
    *,
    user: str | bool | None = None,
    left: str | None = None,
    right: str | None = None,
    index: Sequence[str] = (),
) -> dict[str, str]:
    """Columns left, right and perhaps user of pairs without answers, as they were named or are called.

    Raises DataError for a column that is not there, and if one of an item cannot be told.
    """
    given = {"user": user, "left": left, "right": right}
    for role, name in given.items():
        if isinstance(name, str):
            require_column(name, role, names, index)
    one, two = guess_pair(names, left, right)
    who = named_or_guessed([name for name in names if name not in (one, two)], user, PEOPLE)
    found = {"user": who, "left": one, "right": two}
    for role, name in found.items():
        if name is None and given[role] is None:
            refuse_index(index, _WORDS[role], role)
            if role != "user":
                raise lacking(role, names, index)
    roles = {role: name for role, name in found.items() if name is not None}
    for role, name in roles.items():
        twin = next((other for other in roles if other != role and roles[other] == name), None)
        if twin is not None:
            raise DataError(
                f'column "{shown(name)}" cannot be both {role} and {twin}; the columns are {listed(names)}. '
                f"Name another with {option(twin, 'NAME')}."
            )
    refuse_doubled(roles.values(), names)
    return roles


def refuse_doubled(used: Iterable[str], names: Sequence[str]) -> None:
    """DataError if there are several columns of one of the names in use."""
    for name in used:
        if list(names).count(name) > 1:
            raise DataError(f'there are several columns called "{shown(name)}"; rename all but one.')


def pair_columns(frame: Any) -> tuple[dict[str, str], dict[str, pl.Series]]:
    """Names, and ids, of the columns left, right and perhaps user of a frame of pairs, by role; raises DataError."""
    table, _ = open_frame(frame)
    with spoken_to("pairs"):
        roles = pair_roles(column_names(table), index=index_names(table))
    columns = to_columns(table, roles.values())
    return roles, {role: clean_ids(columns[name], name) for role, name in roles.items()}


def lacking(role: str, names: Sequence[str], index: Sequence[str]) -> DataError:
    """The error for a column of a role that is not found, perhaps as it is the ``index`` of a pandas frame."""
    if (name := guess_one(index, _WORDS[role])) is not None:
        return _is_index(name, role)
    near = next((name for name in names if near_miss(name, _WORDS[role])), "NAME")
    what = f"{role} item" if role in ("left", "right") else role
    return DataError(
        f"found no column for the {what}; the columns are {listed(names)}. Name it with {option(role, near)}."
    )


def named_or_guessed(names: Sequence[str], said: Any, words: Sequence[str]) -> str | None:
    """The column that was named for a role, or the first that is called so; None if it was said that there is none."""
    return said if isinstance(said, str) else None if said is False else guess_one(names, words)


def refuse_index(index: Sequence[str], names: Sequence[str], role: str) -> None:
    """DataError if a pandas index has a name from ``names``, those of a column that was not found."""
    if (name := guess_one(index, names)) is not None:
        raise _is_index(name, role)


def _is_index(name: str, role: str) -> DataError:
    return DataError(
        f'"{name}" is the index of the frame and no column, and so is not read as the {role}. Make it a column '
        "with frame.reset_index(), or drop it with frame.reset_index(drop=True)."
    )


def guess_pair(names: Sequence[str], left: str | None, right: str | None) -> tuple[str | None, str | None]:
    """Columns of the left and the right item, as given or guessed; only one of them where the other is missing.

    DataError if two pairs of columns are as likely.
    """
    if left is not None and right is not None:
        return left, right
    families = pair_families(names)
    if left is not None or right is not None:
        given = left or right
        family = next((one for one in families if given in (one.left, one.right)), None)
        whole = family is not None and (left in (None, family.left)) and (right in (None, family.right))
        if family is not None and whole:
            return family.left, family.right
        place = 0 if left is None else 1
        halves = [one for name in {*names} - {given} if (one := half_of_pair(name)[place]) is not None]
        other = halves[0] if len(halves) == 1 else None
        return left or other, right or other
    likely = likely_items(families)
    if len(likely) > 1 and likely[0].rank == 3:
        return None, None
    if len(likely) > 1:
        pairs = ", or ".join(f'"{shown(one.left)}" and "{shown(one.right)}"' for one in likely)
        named = " or ".join(option("left", one.left, right=one.right) for one in likely[:2])
        raise DataError(f"the items that were compared could stand in {pairs}. Say in which: {named}.")
    if likely:
        return likely[0].left, likely[0].right
    # Half of a pair at least tells which column is the one that is missing.
    return next((half for name in sorted(names) if (half := half_of_pair(name)) != (None, None)), (None, None))


def people_in(raw: Columns, free: Sequence[str]) -> list[str]:
    """Columns that may say who answered, as surely as each other, and tell answers apart in different ways."""
    named = next((found for words in PEOPLE_BY_RANK if (found := all_named(free, words))), [])
    kept: dict[str, pl.Series] = {}
    for name in named:
        try:
            ids = clean_ids(raw[name], name).cast(pl.String)
        except DataError:
            if len(named) == 1:
                return [name]  # whose ids are refused
            continue
        if (len(named) == 1 or len(ids.drop_nulls())) and not any(
            _tell_alike(ids, name, other, its) for its, other in kept.items()
        ):
            kept[name] = ids
    return list(kept)


def _tell_alike(one: pl.Series, name: str, other: pl.Series, its: str) -> bool:
    """Whether two columns are the same people, one perhaps by their names."""
    both = pl.DataFrame({"one": one, "two": other})
    counts = {both.n_unique(), both["one"].n_unique(), both["two"].n_unique()}
    return len(counts) == 1 and (same_thing(tokens(name), tokens(its)) or both["one"].equals(both["two"]))


def listed(names: Sequence[str]) -> str:
    """Names of columns, in quotes."""
    return ", ".join(f'"{shown(name)}"' for name in names) or "(none)"


def first_columns(names: Sequence[str]) -> str:
    """Names of the first three columns, in quotes, and whether there are more."""
    return listed(names[:3]) + (" ..." if len(names) > 3 else "")
