"""Groups of opinion that a poll publishes: none too small, also by the difference of two publications."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from live.polls import DRINKS, made
from live.served import browser, served
from predilect.decisions.groups import Group, Groups, ItemOfAll, Opinion
from predilect.errors import DataError
from predilect.live import Settings
from predilect.live import groups as published
from predilect.live.tables import groups
from predilect.show.report.page import page


def found(*people: int) -> Groups:
    opinions = tuple(Opinion(name, 1.0, 0.5, 1.5, 0.5, 0.1, 0.9) for name in DRINKS)
    share = 1.0 / len(people) if people else 0.0
    told = tuple(Group("ABCDE"[k], n, share, 0.1, 0.9, opinions) for k, n in enumerate(people))
    return Groups("groups" if people else "none", told, tuple(ItemOfAll(name, 1.0, 0.95, 0.2) for name in DRINKS),
                  sum(people), 10, 5.0, 0.9, 3.0)  # fmt: skip


def test_a_difference_is_of_as_many_as_a_group():
    whose = {f"p{k}": "A" if k < 30 else "B" for k in range(60)}
    both = [f"p{k}" for k in (*range(20, 30), *range(30, 40))]
    assert published.may_follow(found(30, 30), whose, both, 10)
    assert not published.may_follow(found(30, 30), whose, both[1:], 10)  # nine of group A
    assert not published.may_follow(found(30, 30), whose, both[:10], 10)  # all of one group
    assert published.may_follow(found(), {}, [], 10)
    gone = [*both, "p99"]  # who took back all answers has no group
    assert published.may_follow(found(30, 30), whose, gone, 10)


@pytest.fixture
def looked_for():
    """What the model finds, in place of what it would: groups, and whose is whose."""
    here: dict[str, object] = {}

    class Model:
        personal_ = True

        def _grouped(self, _):
            return here["groups"], here["whose"]

    here["model"] = Model()
    return here


def answer(poll, *people):
    for person in people:
        for question in poll.ask(f"person {person}"):
            poll.tell(f"person {person}", question.shown, question.items[0].number)


def publish(poll, here, *people):
    """With groups of so many people, to which participants belong in turn."""
    numbers = sorted(poll.log.state.people)
    here |= {"groups": found(*people), "whose": {f"p{n}": "AB"[k % 2] for k, n in enumerate(numbers)}}
    published.publish(poll.log, poll.log.state, 0, here["model"], len(poll.log.state.erasures))
    return poll.groups()


def test_publications_wait_for_enough_people_of_every_group(tmp_path, looked_for):
    with made(tmp_path, smallest_group=5) as poll:
        answer(poll, *range(9))
        assert publish(poll, looked_for, 5, 4) is None
        answer(poll, 9)
        assert publish(poll, looked_for, 5, 5) == found(5, 5)
        answer(poll, *range(10, 19))  # five of group A and four of group B
        assert publish(poll, looked_for, 10, 9) == found(5, 5)
        answer(poll, *range(9))  # who were there before, and now are among those that changed
        assert publish(poll, looked_for, 11, 8) == found(11, 8)
        answer(poll, *range(10))
        assert publish(poll, looked_for) == found()  # that there are none tells nothing of anybody
        assert publish(poll, looked_for, 11, 9) == found(11, 9)


def test_what_was_published_goes_with_who_is_erased_and_stays_known(tmp_path, looked_for):
    with made(tmp_path, smallest_group=5) as poll:
        answer(poll, *range(20))
        assert publish(poll, looked_for, 10, 10) is not None
        poll.erase("person 0")
        assert poll.groups() is None
        with poll.database.reading() as connection:
            assert [row.content for row in connection.execute(sa.select(groups.c.content))] == [None]
        # The difference would be the one who was erased.
        assert publish(poll, looked_for, 10, 9) is None
        answer(poll, *range(20, 30))
        assert publish(poll, looked_for, 15, 14) is not None


def test_an_organiser_may_ask_for_more_people_or_for_no_groups(tmp_path, looked_for):
    with made(tmp_path, smallest_group=5) as poll:
        answer(poll, *range(30))
        shown = publish(poll, looked_for, 20, 10)
        assert [one.people for one in shown.groups] == [20, 10]
        assert poll.export("groups").height == 2 * len(DRINKS)
        poll.retire("cola")
        assert {one.item for one in poll.groups().items} == set(DRINKS) - {"cola"}
        poll.change(smallest_group=11)
        assert poll.groups() is None
        assert poll.export("groups").height == 0
        poll.change(smallest_group=0)
        assert publish(poll, looked_for, 15, 15) is None
    with pytest.raises(DataError, match="from 5 up"):
        Settings(question="Which?", smallest_group=4)


@pytest.mark.slow
def test_a_refit_finds_camps_and_the_pages_and_the_report_show_them(tmp_path):
    """The real model, from answers to the page."""
    with made(tmp_path, smallest_group=5, public=True) as poll:
        for _ in range(12):
            for k in range(24):
                for question in poll.ask(f"person {k}"):
                    numbers = [item.number for item in question.items]
                    poll.tell(f"person {k}", question.shown, max(numbers) if k % 2 else min(numbers))
        assert poll.refit() is not None
        shown = poll.groups()
        assert shown.outcome == "groups"
        assert sorted(one.people for one in shown.groups) == [12, 12]
        assert "What divides us" in page(poll.contents())
        name = poll.name
    with served(str(tmp_path / "poll.db")) as (address, _), browser(address) as somebody:
        told = somebody.get(f"/p/{name}/results").text
    assert "What divides us, what unites us" in told
    assert "Group A: 12 people" in told
