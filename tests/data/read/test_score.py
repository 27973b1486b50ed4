"""What is made of many tables: nothing is read wrongly, and questions lead to what was meant."""

from __future__ import annotations

from collections import Counter

import pytest

from made_tables import LAYOUTS
from reading_score import score


def whole(seeds):
    return sum((score(layout, seeds) for layout in LAYOUTS), Counter())


@pytest.mark.slow
def test_questions_lead_to_what_was_meant():
    found = whole(range(3))
    assert found["WRONG"] == found["refusals"] == 0
    assert found["truth in two"] >= 0.9 * found["of which can be read"]


@pytest.mark.slow
def test_most_tables_are_read_or_asked_about_so_that_it_helps():
    found = whole(range(60))
    assert found["WRONG"] == found["refusals"] == 0
    assert found["right"] >= 750  # of 1 680, of which a third can only be asked about
    assert found["offers"] >= 0.99 * found["of which can be read"]
    assert found["truth in two"] >= 0.95 * found["of which can be read"]
