"""Groups of opinion in words and numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from predilect.decisions.groups import Groups, described
from predilect.inference.people.mixture import GroupMeans
from tolerances import EXACT


@pytest.fixture
def two() -> Groups:
    mean = np.array([[2.0, -1.0, 1.0, -2.0], [-2.0, 0.0, 1.0, 1.0]])
    rng = np.random.default_rng(0)
    shares = 0.6 + 0.02 * rng.standard_normal((400, 1)) * [1.0, -1.0] + [0.0, -0.2]
    means = mean + 0.1 * rng.standard_normal((400, 2, 4))
    found = GroupMeans(np.array([0.6, 0.4]), mean, np.ones(4), shares, means)
    groups, items = described(["tea", "milk", "juice", "water"], np.array([30, 70]), found)
    return Groups("groups", groups, items, 100, 10, 8.0, 0.9, 3.0)


def test_the_largest_group_is_the_first(two):
    assert [(one.name, one.people, one.share) for one in two.groups] == [("A", 70, 0.4), ("B", 30, 0.6)]
    assert [one.item for one in two.groups[1].prefers] == ["tea"]
    assert {one.item for one in two.groups[0].prefers} == {"milk", "water"}


def test_a_difference_is_from_all_others(two):
    of = {one.item: one for one in two.groups[0].opinions}
    assert of["tea"].difference == pytest.approx(-4.0, abs=EXACT)
    assert of["water"].difference == pytest.approx(3.0, abs=EXACT)
    reach = of["tea"].difference_upper - of["tea"].difference
    assert reach == pytest.approx(1.96 * 0.1 * 2**0.5, rel=0.15)


def test_what_all_like_and_what_divides(two):
    assert [one.item for one in two.unites] == ["juice"]
    assert {one.item: one.lowest for one in two.items} == {"tea": -2.0, "milk": -1.0, "juice": 1.0, "water": -2.0}
    assert two.divides[0].item == "tea"
    between = 0.6 * 0.4 * 16.0
    assert two.divides[0].divides == pytest.approx(between / (between + 1.0), abs=EXACT)


def test_groups_are_the_same_after_json(two):
    assert Groups.from_dict(json.loads(json.dumps(two.to_dict()))) == two
    with pytest.raises(ValueError, match="none of groups"):
        Groups.from_dict(two.to_dict() | {"outcome": "some"})


def test_sentences_name_everything(two):
    said = " ".join(two.sentences)
    assert "two groups of opinion among 100 people" in said
    assert "All groups like: juice." in said
    assert two.table().height == 8
    for outcome in ("none", "small", "few"):
        assert len(Groups(outcome).sentences) == 1
        assert Groups(outcome).table().columns == two.table().columns
