"""Groups of opinion of a fitted model: found where they are, and the same whatever people and items are called."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import predilect
from predilect import Population
from predilect.errors import DataError
from simulate import comparisons, named, shuffled
from simulate_camps import FIXED, agreeing, camps


def frame(rows):
    table = named(rows.user, rows.left, rows.right)
    pairs = zip(table["left"], table["right"], rows.outcome, strict=True)
    return table | {"winner": [left if y > 0 else right for left, right, y in pairs]}


@pytest.fixture(scope="module")
def rows():
    return camps(5, n_users=60)


@pytest.fixture(scope="module")
def model(rows):
    return Population(**FIXED).fit(frame(rows))


@pytest.mark.slow
def test_two_camps_are_found_and_who_agrees_has_none(model):
    found = model.groups()
    assert found.outcome == "groups"
    assert sorted(one.people for one in found.groups) == [30, 30]
    ends = {one.prefers[0].item for one in found.groups}
    assert ends == {"i0", "i5"}
    for one in found.groups:
        assert one.lower < 0.5 < one.upper
    assert Population(**FIXED).fit(comparisons(agreeing(1))).groups().outcome == "none"


@pytest.mark.slow
def test_no_group_is_smaller_than_the_caller_allows(model):
    assert model.groups(smallest=30).outcome == "groups"
    assert model.groups(smallest=31).outcome == "few"
    uneven = camps(6, n_users=60)
    uneven.user = np.where(uneven.user >= 40, uneven.user // 2 * 2, uneven.user)  # few are left of one camp
    found = Population(**FIXED).fit(frame(uneven)).groups(smallest=25)
    assert found.outcome in ("small", "few", "none")
    assert not found.groups


@pytest.mark.slow
def test_the_same_answers_give_the_same_bits(rows, model):
    again = Population(**FIXED).fit(shuffled(frame(rows), Random(3))).groups()
    assert again == model.groups()


@pytest.mark.slow
def test_names_of_people_and_items_play_no_part(rows, model):
    table = frame(rows)
    rename = {f"i{k}": f"{'zebra' * (k % 2)}x{9 - k}" for k in range(6)}
    table = {
        "user": [f"{int(one[1:]) * 7919 % 61:02d}{one}" for one in table["user"]],
        "left": [rename[one] for one in table["left"]], "right": [rename[one] for one in table["right"]],
        "winner": [rename[one] for one in table["winner"]],
    }  # fmt: skip
    other, ours = Population(**FIXED).fit(table).groups(), model.groups()
    assert sorted(one.people for one in other.groups) == sorted(one.people for one in ours.groups)
    assert other.gain == pytest.approx(ours.gain, abs=0.05)
    theirs = {(rename[one.item]): one.divides for one in ours.items}
    for one in other.items:
        assert one.divides == pytest.approx(theirs[one.item], abs=0.01)


@pytest.mark.slow
def test_a_saved_model_and_one_that_was_updated_have_groups(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = predilect.load(tmp_path / "model")
    assert loaded.groups() == model.groups()
    loaded.update(user="newcomer", left="i0", right="i5", outcome=1)
    assert loaded.groups().n_people == 61


def test_what_cannot_be_asked(model):
    for wrong in ({"smallest": 4}, {"most": 6}, {"most": 1}, {"random_state": -1}):
        with pytest.raises(DataError):
            model.groups(**wrong)
    with pytest.raises(DataError, match="tells nobody apart"):
        Population(personal=False).fit(comparisons(agreeing(2))).groups()
