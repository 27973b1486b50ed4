"""Column names in common use for each role, and the columns of pairs by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from predilect._base.text import did_you_mean, either, near_miss, shown, spoken_to
from predilect.data.frames import clean_ids, column_names, index_names, open_frame, to_columns
from predilect.data.read.names import (
    ITEM,
    PEOPLE,
    TASK,
    WEIGHT,
    WINNER,
    answer_columns,
    guess_one,
    half_of_pair,
    likely_items,
    pair_families,
    same_thing,
)
from predilect.data.read.options import option
from predilect.errors import DataError

_NAMES = {
    "user": PEOPLE, "left": ("left", "model_a", "item_a", "item1"), "right": ("right", "model_b", "item_b", "item2"),
    "winner": WINNER, "weight": WEIGHT, "task": TASK,
}  # fmt: skip


def guess_columns(
    names: Sequence[str],
    *,
    user: str | bool | None = None,
    left: str | None = None,
    right: str | None = None,
    winner: str | None = None,
    weight: str | bool | None = None,
    task: str | bool | None = None,
    need_winner: bool = True,
    index: Sequence[str] = (),
    taken: Sequence[str] = (),
) -> dict[str, str]:
    """Column for each role: as named by the caller, otherwise guessed; keys "left", "right" and perhaps other roles.

    False for a role means no such column. A task is guessed only where there is a user, as task ids need be distinct
    within a person only. ``index`` holds names of a pandas frame's index, refused where one would be the column of a
    role; ``taken`` columns that are never guessed. Raises DataError if a named column is not there, or one that is
    needed cannot be guessed.
    """
    found: dict[str, str] = {}
    pair = guess_pair(names, left, right)
    roles: list[tuple[str, str | bool | None, str | None, bool]] = [
        ("user", user, guess_one(names, PEOPLE), False),
        ("left", left, pair[0], True),
        ("right", right, pair[1], True),
        ("winner", winner, next(iter(answer_columns(names)), None), need_winner),
        ("weight", weight, guess_one(names, WEIGHT), False),
        ("task", task, guess_one(names, TASK), False),
    ]
    for role, given, *_ in roles:
        if isinstance(given, str) and (need_winner or role != "winner"):
            require_column(given, role, names, index)
    for role, given, guess, needed in roles:
        if given is False or (role == "winner" and not need_winner):
            continue
        if role == "task" and given is None and "user" not in found:
            continue
        if isinstance(given, str):
            found[role] = given
            continue
        if guess is not None and (given is True or guess not in (user, left, right, winner, weight, task, *taken)):
            found[role] = guess
            continue
        refuse_index(index, _NAMES[role], role)
        if needed or given is True:
            several = ""
            item = guess_one(names, ITEM)
            if item is not None and need_winner and guess_one(names, PEOPLE) is None and not answer_columns(names):
                raise DataError(
                    f"found no answers, neither two items and who won nor a choice; the columns are {listed(names)}. "
                    f'By its column "{shown(item)}" this may be a table of items: give it beside the answers with '
                    f"{either('--items FILE', 'items=FRAME')}."
                )
            if pair == (None, None) and need_winner and role == "left":
                several = (
                    f" In a choice file, where more than two were shown at a time, name the answer, the task and the "
                    f"alternatives: "
                    f"{option('winner', 'NAME')}, {option('task', 'NAME')}, {option('alternatives', 'NAME')}, or where "
                    f"each has columns of its own {option('alternatives', ['A', 'B', 'C'])}."
                )
            if len(names) == 1 and len(names[0].split()) > 2:
                several = " It is the only one: what lies between columns must be a comma, a semicolon, a tab or |."
            free = [name for name in names if name not in found.values()]
            near = guess_one(free, _NAMES[role]) or next((n for n in free if near_miss(n, _NAMES[role])), "NAME")
            raise DataError(
                f"found no column for the {role}{' item' if role in ('left', 'right') else ''}; the columns are "
                f"{listed(names)}. Name it with {option(role, near)}.{several}"
            )
    _refuse_shared(found, names)
    return found


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


def pair_columns(frame: Any) -> tuple[dict[str, str], dict[str, pl.Series]]:
    """Names, and ids, of the columns left, right and perhaps user of a frame of pairs, by role; raises DataError."""
    table, _ = open_frame(frame)
    with spoken_to("pairs"):
        roles = guess_columns(
            column_names(table), need_winner=False, weight=False, task=False, index=index_names(table)
        )
    columns = to_columns(table, roles.values())
    return roles, {role: clean_ids(columns[name], name) for role, name in roles.items()}


def refuse_index(index: Sequence[str], names: Sequence[str], role: str) -> None:
    """DataError if a pandas index has a name from ``names``, those of a column that was not found."""
    name = guess_one(index, names)
    if name is not None:
        raise DataError(
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
    if len(likely) > 1 and all(same_thing(likely[0].stem, one.stem) and likely[0].sides == one.sides for one in likely):
        likely = sorted(likely, key=lambda family: "name" not in family.stem)[:1]
    if len(likely) > 1 and likely[0].rank == 3:
        return None, None
    if len(likely) > 1:
        told = ", or ".join(f'"{shown(one.left)}" and "{shown(one.right)}"' for one in likely)
        named = " or ".join(option("left", one.left, right=one.right) for one in likely[:2])
        raise DataError(f"the items that were compared could stand in {told}. Say in which: {named}.")
    if likely:
        return likely[0].left, likely[0].right
    # Half of a pair at least tells which column is the one that is missing.
    return next((half for name in sorted(names) if (half := half_of_pair(name)) != (None, None)), (None, None))


def _refuse_shared(found: dict[str, str], names: Sequence[str]) -> None:
    for role, column in found.items():
        twin = next((other for other in found if other != role and found[other] == column), None)
        if twin is not None:
            raise DataError(
                f'column "{column}" cannot be both {role} and {twin}; the columns are {listed(names)}. '
                f"Name another with {option(twin, 'NAME')}."
            )
        if list(names).count(column) > 1:
            raise DataError(f'there are {list(names).count(column)} columns called "{column}"; rename all but one.')


def listed(names: Sequence[str]) -> str:
    """Names of columns, in quotes."""
    return ", ".join(f'"{shown(name)}"' for name in names) or "(none)"


def first_columns(names: Sequence[str]) -> str:
    """Names of the first three columns, in quotes, and whether there are more."""
    return listed(names[:3]) + (" ..." if len(names) > 3 else "")
