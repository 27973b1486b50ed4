"""What makes no difference to answers, and what stays with them: tasks, sides, covariates, contexts and grades."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predilect.data import Comparisons

# One of each person, items, outcome, weight, task, context, covariate of numbers, and one of flags.
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 3), st.integers(1, 3), st.sampled_from([2, 1, 0, -1, -2]),
        st.sampled_from([1.0, 0.25, 3.0, 7.5]),  # sums of these have the same bits in any order
        st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "x", "y"]), st.sampled_from([-1.5, 0.0, 0.5]),
        st.booleans(),
    ),
    min_size=1, max_size=20,
)  # fmt: skip
CARRIED = st.sets(st.sampled_from(["task", "context", "covariates", "grades"]))
RANDOMS = st.randoms(use_true_random=False)
COVARIATES, ALONE = ("length", "long"), (None, -1)
many = settings(max_examples=2 * settings.default.max_examples)


def frame_of(rows: list[tuple]) -> dict[str, list]:
    return {
        "user": [f"u{row[0]}" for row in rows], "left": [f"i{row[1]}" for row in rows],
        "right": [f"i{(row[1] + row[2]) % 4}" for row in rows], "outcome": [row[3] for row in rows],
        **{name: [row[place] for row in rows] for place, name in enumerate(("weight", "task", "context"), 4)},
        "length": [row[7] for row in rows], "long": [float(row[8]) for row in rows],
    }  # fmt: skip


def read(
    frame: dict[str, list], carried: set[str], names: tuple[str, ...] | None = None, **columns: Any
) -> Comparisons:
    """With what is carried, of covariates those that are not zero everywhere."""
    graded = "grades" in carried
    names = tuple(name for name in COVARIATES if any(frame[name])) if names is None else names
    said = {"task": "task" if "task" in carried else None, "weights": "weight"}
    said |= {"covariates": list(names)} if "covariates" in carried else {}
    said |= {"context": "context"} if "context" in carried else {}
    outcome = frame["outcome"] if graded else np.sign(frame["outcome"]).tolist()
    reading = (
        {"tie": "0"} | ({"grades": ["1", "2"]} if graded else {}) | ({} if "task" in carried else {"task": "none"})
    )
    table = {name: pl.Series(column, dtype=pl.String if name == "context" else None)
             for name, column in frame.items() if name != "outcome"}  # fmt: skip
    return Comparisons.from_frame(pl.DataFrame(table), columns=said | columns, outcome=outcome, reading=reading)


def moved(frame: dict[str, list], order: list[int]) -> dict[str, list]:
    return {name: [column[row] for row in order] for name, column in frame.items()}


def swapped(frame: dict[str, list], rows: list[bool]) -> dict[str, list]:
    """The sides of some rows exchanged, with all that goes with them."""
    turned = dict(frame)
    for one, other in (("left", "right"), ("right", "left")):
        turned[one] = [b if flip else a for a, b, flip in zip(frame[one], frame[other], rows, strict=True)]
    for name in ("outcome", *COVARIATES):
        turned[name] = [-x if flip else x for x, flip in zip(frame[name], rows, strict=True)]
    return turned


def same(one: Comparisons, two: Comparisons, *without: str) -> bool:
    """Equal, and their arrays the same."""
    names = {"user", "left", "right", "outcome", "grade", "weight", "task", "context", "sides", "covariates"}
    pairs = [(getattr(one, name), getattr(two, name)) for name in names - set(without)]
    return one == two and all((a is None and b is None) or np.array_equal(a, b) for a, b in pairs)


def sorted_rows(answers: Comparisons) -> list[tuple]:
    """All that is said of each row but the name of its task."""
    frame = answers.to_frame("polars").drop("task", "shown_left", strict=False)
    # Not by polars: of a column without values it cannot sort in every version.
    return sorted(frame.with_columns(pl.col(pl.Float64) + 0.0).rows(), key=repr)


@pytest.mark.slow
@many
@given(ROWS, CARRIED, RANDOMS)
def test_order_of_rows_sides_and_names_of_tasks_make_no_difference(rows, carried, random):
    frame = frame_of(rows)
    plain, order = read(frame, carried), random.sample(range(len(rows)), len(rows))
    turned = moved(frame, order)
    assert same(read(turned, carried), plain)
    assert same(read(turned, carried).with_side(), plain.with_side())
    # Each person's tasks get new names, which may be those of other people's.
    names = {user: random.sample(["x", "1", "zz", "b"], 4) for user in ("u0", "u1", "u2")}
    turned["task"] = [None if task is None else names[user][task]
                      for user, task in zip(turned["user"], turned["task"], strict=True)]  # fmt: skip
    turned["task"] = turned["task"] if any(turned["task"]) else frame["task"]
    assert same(read(swapped(turned, [random.random() < 0.5 for _ in rows]), carried), plain, "sides")


@many
@given(ROWS, CARRIED)
def test_swapping_left_and_right_flips_sides_and_covariates_and_nothing_else(rows, carried):
    frame = frame_of(rows)
    one, two = read(frame, carried), read(swapped(frame, [True] * len(rows)), carried)
    assert same(one, two, "sides")
    assert (one.sides is None) == (two.sides is None)
    if one.sides is not None and one.task is None:  # tasks that are equal but for their sides may change places
        np.testing.assert_array_equal(one.sides, two.sides[:, ::-1])
    flip = np.array([1.0] * len(one.covariate_names) + [-1.0])
    second = two.with_side()
    assert sorted_rows(one.with_side()) == sorted_rows(replace(second, covariates=second.covariates * flip))


@many
@given(ROWS, CARRIED)
def test_split_by_side_and_merged_again_is_what_it_was(rows, carried):
    found, plain = read(frame_of(rows), carried), read(frame_of(rows), carried - {"covariates"})
    split = found.with_side()
    assert split.sides is None
    assert split.covariate_names == (*found.covariate_names, "side")
    assert split.n_answers == found.n_answers == plain.n_answers
    for one in (found, split, plain.with_side()):
        assert same(one.without_covariates(), plain, "sides")
    assert same(found.without_grades(), read(frame_of(rows), carried - {"grades"}), "sides")
    if found.sides is not None:
        assert (found.sides.sum(axis=1) <= found.weight).all()
        rest = split.pooled()
        for side, sign in enumerate((1.0, -1.0)):
            assert rest.weight[sign * rest.covariates[:, -1] > 0].sum() == found.sides[:, side].sum()


@many
@given(ROWS, ROWS, CARRIED)
def test_what_is_appended_pooled_and_taken_keeps_what_it_carries(first, second, carried):
    carried = carried - {"task"}
    one, two = frame_of(first), frame_of(second)
    both = {name: one[name] + two[name] for name in one}
    names = tuple(name for name in COVARIATES if any(one[name]) and any(two[name]))
    whole, *parts = (read(frame, carried, names) for frame in (both, one, two))
    if all((part.sides is None) == (whole.sides is None) for part in parts):
        assert same(parts[0].append(parts[1]), whole)
        assert same(parts[1].append(parts[0]), whole)
    assert same(whole.pooled(), read(both, carried, names, who=None), "sides")
    found, more = whole.take(np.arange(0, len(whole), 2)), whole.with_items(["i00", "zz"])
    for name in ("sides", "covariates", "context", "grade"):
        values = getattr(whole, name)
        if values is not None:
            np.testing.assert_array_equal(getattr(more, name), values)
            assert getattr(found, name) is None or np.array_equal(getattr(found, name), values[::2])


@many
@given(ROWS, CARRIED, RANDOMS, st.sampled_from(["polars", "pandas"]))
def test_any_rows_round_trip(rows, carried, random, kind):
    answers = read(frame_of(rows), carried - {"grades"})
    for found in (answers, answers.take([row for row in range(len(answers)) if random.random() < 0.5] or [0])):
        ids = [(found.users, found.user), (found.items, [*found.left, *found.right])]
        ids += [] if found.contexts is None else [(found.contexts, found.context[found.context >= 0])]
        if any(len({*codes}) < len(names.ids) for names, codes in ids):
            continue  # a frame holds no id without an answer
        columns = {"task": None if found.task is None else "task", "covariates": list(found.covariate_names)}
        columns |= {} if found.contexts is None else {"context": "context"}
        again = Comparisons.from_frame(found.to_frame(kind), columns=columns, reading={"side": False})
        assert again == found
        assert Comparisons.from_rows(found.to_frame("polars"), found.covariate_names) == found
    graded = read(frame_of(rows), carried).with_used_grades(1)
    assert Comparisons.from_rows(graded.to_frame("polars"), graded.covariate_names) == graded


@many
@given(ROWS, CARRIED, st.integers(2, 4))
def test_repeating_rows_is_the_same_as_weights(rows, carried, times):
    frame = frame_of([(*row[:4], 1.0, *row[5:]) for row in rows])
    weighted = read(frame | {"weight": [float(times)] * len(rows)}, carried)
    # Of rows of one task that are equal it is not known who was shown where.
    assert same(read({name: column * times for name, column in frame.items()}, carried), weighted, "sides")


@many
@given(ROWS, CARRIED)
def test_rows_are_those_of_a_plain_sum(rows, carried):
    """Against a dictionary: one row for each person, question, answer, all that is carried, and task."""
    frame, expected, found = frame_of(rows), {}, {}
    answers = read(frame, carried)
    for user, left, right, outcome, weight, task, context, *x in zip(*frame.values(), strict=True):
        sign = 1 if left < right else -1
        outcome = sign * (outcome if "grades" in carried else int(np.sign(outcome)))
        x = [sign * value + 0.0 for value, name in zip(x, COVARIATES, strict=True) if name in answers.covariate_names]
        key = (*sorted((left, right)), outcome, context if "context" in carried else None, *x)
        members = expected.setdefault((user, task if "task" in carried else None), {})
        members[key] = members.get(key, 0.0) + weight
    table = answers.to_frame("polars")
    names = ["left", "right", "outcome", "context", *answers.covariate_names]
    codes = [-1] * len(table) if answers.task is None else answers.task.tolist()
    for row, code in zip(table.to_dicts(), codes, strict=True):
        members = found.setdefault((row["user"], code), {})
        members[tuple(row.get(name) for name in names)] = row["weight"]

    def of_tasks(each):
        return sorted((who, sorted(map(str, rows.items()))) for (who, task), rows in each.items() if task not in ALONE)

    def alone(each):
        return {who: rows for (who, task), rows in each.items() if task in ALONE}

    assert of_tasks(found) == of_tasks(expected)
    assert alone(found) == alone(expected)
    # Codes count the tasks in the order in which the rows meet them.
    assert list(dict.fromkeys(code for code in codes if code >= 0)) == list(range(1 + max(codes)))
