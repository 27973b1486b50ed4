"""Column names in common use for each role, and the columns of pairs by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from predilect._text import did_you_mean, near_miss, option, shown, spoken_to
from predilect.data.frames import clean_ids, column_names, index_names, open_frame, to_columns
from predilect.errors import DataError

USER = (
    "user", "user_id", "worker", "worker_id", "judge", "judge_id", "annotator", "annotator_id", "rater", "rater_id",
    "participant", "participant_id", "respondent", "respondent_id", "person", "person_id", "voter", "voter_id",
    "visitor_id", "public_username", "subject", "subject_id", "session_id", "session_hash",
)  # fmt: skip
PAIRS = (
    ("left", "right"),
    ("model_a", "model_b"),
    ("item_a", "item_b"),
    ("item1", "item2"),
    ("a", "b"),
    ("option_a", "option_b"),
    ("video_a", "video_b"),
    ("left_item", "right_item"),
    ("model_a_name", "model_b_name"),
    ("generator_1", "generator_2"),
)
WINNER = (
    "winner", "label", "chosen", "choice", "outcome", "result", "preferred", "preference", "chosen_model_name", "vote",
)  # fmt: skip
WEIGHT = ("weight", "count")
TASK = ("task", "task_id", "choice_set", "choice_set_id", "choice_id")
_SEPARATORS = str.maketrans("", "", "_-. ")
ITEM = ("item", "item_id", "id", "model", "name")
_NAMES = {
    "user": USER, "left": tuple(pair[0] for pair in PAIRS), "right": tuple(pair[1] for pair in PAIRS),
    "winner": WINNER, "weight": WEIGHT, "task": TASK,
}  # fmt: skip


def guess_one(names: Sequence[str], candidates: Sequence[str]) -> str | None:
    """First candidate that names a column, whatever its case, underscores, hyphens, points and spaces."""
    known = {plain(name): name for name in reversed(names)}
    return next((known[plain(candidate)] for candidate in candidates if plain(candidate) in known), None)


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
        ("user", user, guess_one(names, USER), False),
        ("left", left, pair[0], True),
        ("right", right, pair[1], True),
        ("winner", winner, guess_one(names, WINNER), need_winner),
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
            if pair == (None, None) and need_winner and role == "left":
                several = (
                    f" In a choice file, where more than two were shown at a time, say what was asked, such as "
                    f"{option('kind', 'best')}, and name the answer and the alternatives: {option('winner', 'NAME')}, "
                    f"{option('alternatives', 'NAME')}, or where each has columns of its own "
                    f"{option('alternatives', ['A', 'B', 'C'])}."
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
    """Columns of the left and the right item, as given or guessed; only one of them where the other is missing."""
    halves: list[tuple[str | None, str | None]] = []
    for first, second in PAIRS:
        one, two = guess_one(names, [first]), guess_one(names, [second])
        if left in (None, one) and right in (None, two):
            if one is not None and two is not None:
                return one, two
            halves.append((one, two))
    # No whole pair: half of one at least tells which column is the one that is missing.
    return next((half for half in halves if half != (None, None)), (None, None))


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


def plain(name: str) -> str:
    """The name of a column without case, separators and spaces."""
    return name.strip().lower().translate(_SEPARATORS)


def listed(names: Sequence[str]) -> str:
    """Names of columns, in quotes."""
    return ", ".join(f'"{shown(name)}"' for name in names) or "(none)"
