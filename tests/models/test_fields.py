"""What the tables say that arrays of saved models must be."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.models.checks import LARGEST
from predilect.models.saving import (
    amounts,
    check_sizes,
    check_values,
    codes,
    covariance,
    flags,
    numbers,
    optional,
    outcomes,
    pointer,
    positive,
)

TABLE = {
    "mean": numbers("M"), "cov": covariance("M M"), "ptr": pointer("U+1", "R"), "item": codes("R", "I"),
    "own": optional(amounts("I|0")), "scale": positive("U"), "said": outcomes("R"), "known": flags("I"),
}  # fmt: skip
SIZES = {"I": 3, "U": 2}


def arrays():
    return {
        "mean": np.array([1.0, -2.0]), "cov": np.array([[2.0, 1.0], [1.0, 2.0]]), "ptr": np.array([0, 1, 4]),
        "item": np.array([0, 2, 1, 2], dtype=np.int32), "own": np.zeros(3), "scale": np.array([0.1, 5.0]),
        "said": np.array([1, 0, -1, 1], dtype=np.int8), "known": np.array([True, False, True]),
    }  # fmt: skip


def described(found):
    return {name: [str(a.dtype), list(a.shape)] for name, a in found.items()}


def check(found):
    sizes = check_sizes(TABLE, SIZES, described(found))
    check_values(TABLE, sizes, found)
    return sizes


def test_sizes_are_found_and_what_is_not_in_the_table_is_left_alone():
    assert check(arrays() | {"more": np.array(["x"])}) == {"I": 3, "U": 2, "M": 2, "R": 4}
    assert check(arrays() | {"own": np.zeros(0)})["M"] == 2
    without = arrays()
    del without["own"]
    assert check(without)["R"] == 4


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("mean", np.array([1, 2])), ("mean", np.zeros((2, 1))), ("mean", np.zeros(3)), ("cov", np.eye(3)),
        ("ptr", np.array([0, 4])), ("item", np.zeros(5, dtype=np.int32)), ("item", np.zeros(4, dtype=np.int64)),
        ("own", np.zeros(2)), ("scale", np.ones(2, dtype=">f8")), ("known", np.zeros(3, dtype=np.uint8)),
    ],
)  # fmt: skip
def test_another_type_or_shape_is_refused_before_any_number_is_read(name, array):
    with pytest.raises(ValueError, match=r" is .* of shape .*, not "):
        check_sizes(TABLE, SIZES, described(arrays() | {name: array}))


def test_a_missing_array_is_refused():
    found = arrays()
    del found["scale"]
    with pytest.raises(ValueError, match="no array scale"):
        check(found)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("mean", [np.nan, 0.0]), ("mean", [0.0, np.inf]), ("mean", [-1.1 * LARGEST, 0.0]),
        ("cov", [[1.0, 0.5], [0.4, 1.0]]), ("cov", [[1.0, 2.0], [2.0, 1.0]]), ("cov", [[-1.0, 0.0], [0.0, 1.0]]),
        ("cov", [[0.0, 0.1], [0.1, 0.0]]), ("cov", [[np.nan, 0.0], [0.0, 1.0]]),
        ("ptr", [0, 5, 4]), ("ptr", [1, 1, 4]), ("ptr", [0, 1, 3]), ("ptr", [0, -1, 4]),
        ("item", [0, 0, 0, 3]), ("item", [0, 0, 0, -1]), ("own", [0.0, 0.0, -1e-9]), ("scale", [0.0, 1.0]),
        ("said", [1, 0, 2, 1]),
    ],
)  # fmt: skip
def test_values_that_are_not_what_they_must_be_are_refused(name, values):
    found = arrays()
    found[name] = np.array(values, dtype=found[name].dtype)
    with pytest.raises(ValueError, match=f"{name} must be"):
        check(found)


def test_a_yes_that_is_neither_yes_nor_no_is_refused():
    with pytest.raises(ValueError, match="known must be yes or no"):
        check(arrays() | {"known": np.array([0, 1, 2], dtype=np.uint8).view(bool)})


@pytest.mark.parametrize("n", [1, 5])
def test_covariances_that_rounding_has_touched_and_zeros_pass(n):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, n, 2))
    some = root @ np.swapaxes(root, -1, -2)
    some[0] = 0.0
    table = {"cov": covariance("K N N")}
    check_values(table, {}, {"cov": some * (1.0 + 1e-12 * rng.standard_normal(some.shape))})
    check_values(table, {}, {"cov": np.zeros((3, 0, 0))})


def test_infinity_in_half_the_bytes_is_seen():
    with pytest.raises(ValueError, match="x must be"):
        check_values({"x": amounts("K", "float16")}, {}, {"x": np.array([np.inf], dtype=np.float16)})
