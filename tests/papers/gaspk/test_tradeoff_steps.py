"""Names of changes in trade-offs, and where they point."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.data import Comparisons, ItemFeatures
from predilect.errors import DataError
from predilect.papers.gaspk.tradeoffs.fit import fit_trade_offs
from predilect.papers.gaspk.tradeoffs.map import round_size
from tolerances import EXACT

ITEMS = {
    "item": list("abcdef"), "price": [1.0, 2.0, 3.0, 4.0, 5.0, None], "fuel": ["gas", "oil", "sun"] * 2,
    "new": ["yes", "no", "no", "yes", "yes", "no"],
}  # fmt: skip
ANSWERS = Comparisons.from_frame({"left": list("abcdea"), "right": list("bcdeff"), "winner": list("abcdea")})


def fitted(**changes):
    return fit_trade_offs(ItemFeatures.from_frame(ITEMS), ANSWERS, units={"price": "EUR"}, **changes)


def test_steps_are_numbers_and_categories_instead_of_the_first():
    labels = [step.label for step in fitted().steps()]
    assert labels == [
        "price (EUR)", "fuel=oil instead of fuel=gas", "fuel=sun instead of fuel=gas", "new=no instead of new=yes"
    ]  # fmt: skip


def test_a_step_is_the_trade_off_in_own_units():
    trade_offs = fitted()
    for name, units in (
        ("price", {"price": [1.0]}),
        ("price (EUR)", {"price": [1.0]}),
        ("fuel=sun instead of fuel=oil", {"fuel=sun": [1], "fuel=oil": [-1]}),
        ("fuel=sun", {"fuel=sun": [1], "fuel=gas": [-1]}),
        ("fuel=gas", {"fuel=gas": [1], "fuel=oil": [-1]}),
        ("new", {"new=no": [1]}),
        ("new=no", {"new=no": [1]}),
        ("new=yes", {"new=no": [-1]}),
        ("new=yes instead of new=no", {"new=yes": [1]}),
        ("price missing", {"price missing": [1]}),
    ):
        step = trade_offs.step(name)
        np.testing.assert_allclose(step.direction, trade_offs.from_units(units)[0], atol=EXACT)
        assert step.is_number == name.startswith("price")
        assert trade_offs.step(step.label).label == step.label


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("colour", "there is no attribute .* price"), ("fuel", "several categories.*fuel=oil instead of fuel=gas"),
        ("fuel=sun instead of new=no", "there is no attribute"), ("fuel=sun instead of fuel=sun", "is no attribute"),
        ("price instead of fuel=sun", "there is no attribute"),
    ],
)  # fmt: skip
def test_unknown_names(name, said):
    with pytest.raises(DataError, match=said):
        fitted().step(name)


def test_items_as_attributes_have_no_steps():
    trade_offs = fit_trade_offs(None, ANSWERS)
    assert trade_offs.steps() == []
    with pytest.raises(DataError, match="without a table of items"):
        trade_offs.step("a")


def test_round_size():
    assert [round_size(x) for x in (0.13, 0.9, 1.4, 1.5, 3.0, 3.4, 8.0, 1234.0)] == [0.1, 1, 1, 2, 2, 5, 10, 1000]
