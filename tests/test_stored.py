"""What classes of saved models say of their fields, and how these are packed, checked and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pytest

from predilect._base.stored import (
    LARGEST,
    PART,
    PLAIN,
    amounts,
    build,
    check_sizes,
    check_values,
    codes,
    fields_of,
    flags,
    numbers,
    optional,
    outcomes,
    pack,
    pointer,
    positive,
    stored_in,
    unless,
    within,
)
from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import covariances

TABLE = {
    "mean": numbers("M"), "cov": covariances("M M"), "ptr": pointer("U+1", "R"), "item": codes("R", "I"),
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
    table = {"cov": covariances("K N N")}
    check_values(table, {}, {"cov": some * (1.0 + 1e-12 * rng.standard_normal(some.shape))})
    check_values(table, {}, {"cov": np.zeros((3, 0, 0))})


def test_infinity_in_half_the_bytes_is_seen():
    with pytest.raises(ValueError, match="x must be"):
        check_values({"x": amounts("K", "float16")}, {}, {"x": np.array([np.inf], dtype=np.float16)})


@pytest.mark.parametrize(("n_grades", "largest"), [(0, 1), (1, 1), (3, 4)])
def test_outcomes_go_as_far_as_there_are_grades(n_grades, largest):
    table, sizes = {"said": outcomes("R", "grades")}, {"grades": n_grades}
    check_values(table, sizes, {"said": np.array([-largest, 0, largest], dtype=np.int8)})
    with pytest.raises(ValueError, match="said must be 1, 0 or -1"):
        check_values(table, sizes, {"said": np.array([largest + 1], dtype=np.int8)})


def test_codes_below_a_size_that_nothing_has_are_refused():
    with pytest.raises(ValueError, match="codes from 0 to below V"):
        check_values({"variant": codes("R", "V")}, {}, {"variant": np.zeros(3, dtype=np.int32)})


@dataclass
class Ball:
    mass: Annotated[FloatArray, positive("N")]
    colour: Annotated[str, PLAIN] = "red"


@dataclass
class Cube:
    side: Annotated[float, within(0.0, 10.0)]
    names: Annotated[tuple[str, ...], PLAIN] = ()


@dataclass
class Box:
    """Everything that a class may store."""

    size: Annotated[FloatArray, numbers("D")]
    content: Annotated[Ball | Cube, PART]
    room: float  # given
    lid: Annotated[Cube | None, PART] = None
    label: Annotated[FloatArray | None, numbers("D")] = None
    wear: Annotated[FloatArray, unless(1.0, amounts("D"))] = field(default_factory=lambda: np.ones(2))
    _secret: Annotated[int | None, PLAIN] = None
    forgotten: int = 7

    @property
    def double(self) -> Annotated[FloatArray, numbers("D")]:
        return 2.0 * self.size

    @classmethod
    def restored(cls, size, content, room, lid, label, double, _secret, wear=None):
        assert (double == 2.0 * size).all()
        return cls(size, content, room, lid, label, np.full(2, 1.0) if wear is None else wear, _secret)

    def checked(self):
        if self.room < self.size.sum():
            raise ValueError("the room is too small for the box")


def read_again(box, room=10.0):
    values, arrays = pack(box)
    table = fields_of(Box, values)
    check_values(table, check_sizes(table, {}, described(arrays)), arrays)
    return build(Box, values, arrays, {"room": room, "unasked": 1})


BOXES = {
    "few": Box(np.array([1.0, 2.0]), Ball(np.array([3.0])), 9.0),
    "all": Box(
        np.array([1.0, 2.0]), Cube(2.0, ("a", "b")), 9.0, Cube(3.0), np.array([5.0, 6.0]), np.array([1.0, 0.0]), 4, 8
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", BOXES)
def test_what_was_packed_is_built_again_from_what_is_stored_and_given(which):
    box, again = BOXES[which], read_again(BOXES[which])
    assert (again.content, again.lid, again._secret) == (box.content, box.lid, box._secret)
    assert (again.room, again.forgotten) == (10.0, 7)
    for name in ("size", "wear", "label"):
        np.testing.assert_array_equal(getattr(again, name), getattr(box, name))


def test_arrays_have_the_names_of_the_fields_on_the_way_and_what_says_nothing_is_absent():
    values, arrays = pack(BOXES["few"])
    assert set(arrays) == {"size", "double", "content.mass"}
    assert values == {"content": {"colour": "red", "class": "Ball"}, "lid": None, "secret": None}
    assert set(pack(BOXES["all"])[1]) == {"size", "double", "label", "wear"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda values: values["content"].update({"class": "Cone"}), "content is none of Ball, Cube"),
        (lambda values: values.update(content=[1]), r"content is \[1\], and no part of a model"),
        (lambda values: values.update(content=None), "content is None, and no part of a model"),
        (lambda values: values["content"].update(colour=3), "content.colour is 3, not str"),
    ],
)
def test_values_that_no_class_has_are_refused(change, said):
    values, arrays = pack(BOXES["few"])
    change(values)
    with pytest.raises(ValueError, match=said):
        fields_of(Box, values) and build(Box, values, arrays, {"room": 10.0})


def test_a_class_stores_what_the_classes_above_do_unless_it_says_not_to():
    @dataclass
    class Told(Box):
        size: FloatArray  # the type alone
        content: Annotated[Ball | Cube, None]

    assert set(stored_in(Box)) - set(stored_in(Told)) == {"content"}
    assert set(stored_in(Told)) < set(stored_in(Box))


def test_what_a_class_says_of_its_fields_together_is_asked():
    with pytest.raises(ValueError, match="too small for the box"):
        read_again(BOXES["few"], room=2.0)


def test_a_number_out_of_its_range_is_refused():
    values, arrays = pack(BOXES["all"])
    values["lid"]["side"] = 11.0
    with pytest.raises(ValueError, match=r"lid\.side must be a number from 0 to 10"):
        build(Box, values, arrays, {"room": 10.0})
