"""Proposals: whoever asks, looks or answers meets no text that nobody has accepted, and is kept from nothing by it."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from live.polls import DRINKS, answered, made, of_kind
from predilect.errors import DataError
from predilect.live import Poll
from predilect.live.given import Refused
from predilect.live.settings import Strategy

INSULT = "an insult about the mayor"


def told(poll, person):
    """All that a participant can read, as text."""
    asked = poll.ask(person, 3)
    board = poll.board()["item"].to_list()
    own = poll.mine(person)
    return json.dumps([[item.name for one in asked for item in one.items], board, str(poll.outlook()),
                       None if own is None else own["item"].to_list(), poll.own(person)])  # fmt: skip


@pytest.mark.parametrize("strategy", get_args(Strategy))
@pytest.mark.parametrize("kind", ["pair", pytest.param("best", marks=pytest.mark.slow)])
def test_a_proposal_keeps_nobody_from_anything_and_is_seen_once_accepted(tmp_path, kind, strategy):
    with made(tmp_path, **of_kind(kind), strategy=strategy, proposals=True, own_ranking=1) as poll:
        answered(poll, ["ann", "bob"], 1)
        poll.propose_item("ann", INSULT)
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            for one in (poll, other):
                answered(one, ["bob", "new"], 1)
                assert INSULT not in told(one, "bob")
            poll.moderate(INSULT, accept=False)
            answered(other, ["bob", "newer"], 1)
            assert INSULT not in told(other, "newer")
            poll.moderate(INSULT, accept=True)
            answered(other, ["bob", "newest"], 1)
            assert INSULT in other.board()["item"].to_list()
            poll.retire(INSULT)
            other.log.refresh()
            assert INSULT not in {item.name for person in ("bob", "newest") for one in other.ask(person, 3)
                                  for item in one.items}  # fmt: skip
            assert INSULT not in other.board()["item"].to_list()


def test_no_error_tells_a_text_that_nobody_accepted(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        number = poll.propose_item("ann", INSULT)
        poll.ask("bob")
        for item in (INSULT, INSULT[:-1], number, number + 1):
            with pytest.raises(DataError) as refused:
                poll.report("bob", item)
            assert INSULT not in str(refused.value).replace(str(item), "")
        with pytest.raises(Refused, match="no item"):
            poll.report("bob", number)


@pytest.mark.parametrize("again", ["Free Wifi", "free wifi", "Free  wifi!", " FREE WIFI "])
def test_a_proposal_that_is_there_already_is_one(tmp_path, again):
    with made(tmp_path, proposals=True) as poll:
        number = poll.propose_item("ann", "Free Wifi")
        n_events = poll.log.state.sequence
        assert poll.propose_item("ann", again) == number
        assert poll.log.state.sequence == n_events
        # Whoever proposes what waits, or was refused, is not told that somebody else did.
        for accept in (None, False):
            if accept is not None:
                poll.moderate(number, accept=accept)
            assert poll.propose_item("bob", again) == number
        poll.moderate(number, accept=True)
        with pytest.raises(Refused, match='asks about "Free Wifi" already'):
            poll.propose_item("bob", again)
        assert len(poll.items) == len(DRINKS) + 1
        assert poll.propose_item("bob", "Free Wifi in buses") == number + 1


@pytest.mark.parametrize("name", ["\u200b", " \u2060\ufeff ", "\u202e\u0301"])
def test_a_name_that_nobody_sees_is_none(tmp_path, name):
    with made(tmp_path, proposals=True) as poll:
        poll.join("ann")
        for act in (lambda: poll.propose_item("ann", name), lambda: poll.add_items([name])):
            with pytest.raises(DataError, match="needs a name"):
                act()
        assert len(poll.items) == len(DRINKS)


def test_the_organiser_is_told_what_to_do_with_an_item(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        poll.propose_item("ann", "beer")
        with pytest.raises(Refused, match='"beer" is there already: it is proposed'):
            poll.add_items(["beer"])
        with pytest.raises(Refused, match=r'"tea" is asked about\. Retire it'):
            poll.moderate("tea", accept=False)
        poll.retire("tea")
        with pytest.raises(Refused, match='"tea" is retired, and not asked about any more'):
            poll.moderate("tea", accept=False)


@pytest.mark.parametrize(
    "settings",
    [{"kind": "best", "strategy": "best", "size": 4}, {"strategy": "board", "difficulty": 0.55},
     {"strategy": "best", "difficulty": 0.55}, {"strategy": "top", "difficulty": 0.9}],
)  # fmt: skip
def test_the_last_sets_that_are_left_are_drawn_for_certain(tmp_path, settings):
    """Of the only set that is left the chance is 1, whatever the sum rounds to; what is hard comes late, not never."""
    n = 5 if "kind" in settings else 3
    with made(tmp_path, DRINKS[:n], **settings) as poll:
        for k in range(8):
            number = poll.join(name=f"person {k}")
            for _ in range(n):  # sets of five as of three items
                (question,) = poll.ask(number)
                poll.tell(number, question.shown, max(question.items, key=lambda item: item.number).name)
            assert poll.ask(number) == []
        assert poll.left_out() == []
        assert 1.0 - 1e-12 < poll.export("shown")["probability"].max() <= 1.0


@pytest.mark.parametrize("first", ["erased first", "erased last"])
def test_what_two_propose_goes_with_the_last_of_them(tmp_path, first):
    file = tmp_path / "poll.db"
    with made(tmp_path, proposals=True) as poll:
        number = poll.propose_item("ann", "Free Wifi")
        for key in ("k", "k", "l"):
            assert poll.propose_item("bob", "free wifi!", key=key) == number
        with pytest.raises(Refused, match="came with a proposal before"):
            poll.undo("bob", key="k")
        poll.propose_item("cas", "a fountain")
        order = ["ann", "bob"] if first == "erased first" else ["bob", "ann"]

        def names(one):
            return [item.name for item in one.items[len(DRINKS) :]], [item.state for item in one.items[len(DRINKS) :]]

        poll.erase(order[0])
        assert poll.own(order[1])["proposals"] == ["Free Wifi"]
        with Poll.open(file, background=False) as again:
            assert names(poll) == names(again) == (["Free Wifi", "a fountain"], ["proposed", "proposed"])
        poll.erase(order[1])
        with Poll.open(file, background=False) as again:
            assert names(poll) == names(again)
            assert names(again)[0][1] == "a fountain"
            assert "Free Wifi" not in names(again)[0]
    for one in tmp_path.iterdir():
        assert b"Free Wifi" not in one.read_bytes()


def test_nobody_proposes_what_stands_for_the_erased(tmp_path):
    """Or the text of somebody who is erased would be there twice, and the log could not be read."""
    with made(tmp_path, proposals=True) as poll:
        poll.propose_item("ann", f"(erased {len(DRINKS) + 2})")
        poll.propose_item("bob", "beer")
        poll.erase("bob")
        with Poll.open(tmp_path / "poll.db", background=False) as again:
            assert [item.name for item in again.items] == [item.name for item in poll.items]


def test_who_may_propose_no_more_is_told_so_whatever_the_text(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        poll.propose_item("bob", "beer")
        for k in range(20):
            poll.propose_item("ann", f"beer {k}")
        for text in ("beer", "wine"):  # of which one waits
            with pytest.raises(Refused, match="may propose 20"):
                poll.propose_item("ann", text)


def test_another_text_with_the_key_of_a_proposal_is_refused_and_not_taken_for_it(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        number = poll.propose_item("ann", "free wifi", key="k")
        assert poll.propose_item("ann", " Free  WIFI ", key="k") == number
        with pytest.raises(Refused, match="this key came with another proposal before"):
            poll.propose_item("ann", "longer breaks", key="k")
        assert poll.propose_item("ann", "longer breaks", key="l") == number + 1
