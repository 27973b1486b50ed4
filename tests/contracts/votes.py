"""Answers with text ids as plain columns: what the contracts give to estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate import Answers, crowd

ROWS = crowd(1, 20, 6, 12, delta=0.4)
PAIRS = np.array([(a, b) for a in range(6) for b in range(6) if a != b])


def item_ids(codes: Any) -> list[str]:
    return [f"item {code}" for code in np.asarray(codes).tolist()]


def user_ids(codes: Any) -> list[str]:
    return [f"person {code:04d}" for code in np.asarray(codes).tolist()]


def votes(rows: Answers = ROWS, order: Any = slice(None)) -> tuple[dict[str, list[str]], np.ndarray]:
    """Columns user, left and right, and the outcomes; the rows in the given order."""
    columns = {
        "user": user_ids(rows.user[order]),
        "left": item_ids(rows.left[order]),
        "right": item_ids(rows.right[order]),
    }
    return columns, rows.outcome[order].astype(int)


def questions(n_users: int = 20, pairs: np.ndarray = PAIRS) -> dict[str, list[str]]:
    """Every ordered pair of items for every person."""
    return {
        "user": user_ids(np.repeat(np.arange(n_users), len(pairs))),
        "left": item_ids(np.tile(pairs[:, 0], n_users)),
        "right": item_ids(np.tile(pairs[:, 1], n_users)),
    }


def without_user(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: column for name, column in columns.items() if name != "user"}


def swapped(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """The same with the sides exchanged."""
    return columns | {"left": columns["right"], "right": columns["left"]}


def same_bits(one: Any, other: Any) -> None:
    """Both predict and rank alike, to the last bit."""
    asked = questions()
    for a, b in zip(one.predict_margin(asked), other.predict_margin(asked), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.predict_proba(asked), other.predict_proba(asked))
    for user in (None, "person 0003"):
        a, b = one.rank(user), other.rank(user)
        assert type(a) is type(b)
        assert list(a.columns) == list(b.columns)
        for name in a.columns:
            assert list(a[name]) == list(b[name])
