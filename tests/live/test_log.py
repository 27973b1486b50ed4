"""The log of a poll: every answer once, whatever is repeated, taken back, refused, or cut off."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
import zlib
from collections import Counter
from itertools import pairwise

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from live.polls import DRINKS, answered, fail_once, made, reply
from predilect.errors import DataError, OutputError
from predilect.live import Poll, Settings
from predilect.live import tables as tables_of
from predilect.live.given import Refused
from predilect.live.state import PollState, checksum, decoded, due_counts
from predilect.live.tables import Database, events


def kept(poll, kind="answered"):
    """Events of a kind, as the database has them."""
    with poll.database.reading() as connection:
        chosen = sa.select(events).where(events.c.poll == poll.log.poll).order_by(events.c.sequence)
        every = [decoded(row) for row in connection.execute(chosen)]
    assert [event.sequence for event in every] == list(range(1, len(every) + 1))
    return [event for event in every if event.kind == kind]


def said(poll):
    return poll.export("answers").drop("time", "shown_ms", "reason").rows()


COLUMN = st.one_of(st.none(), st.integers(), st.text(), st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(COLUMN, max_size=6))
def test_the_checksum_of_a_row_is_that_of_its_columns_in_json(columns):
    assert checksum(*columns) == zlib.crc32(json.dumps(columns).encode())


def test_a_question_stays_until_it_is_answered(tmp_path):
    with made(tmp_path) as poll:
        (question,) = poll.ask("ann")
        assert poll.ask("ann") == [question]
        assert len(poll.ask("ann", 3)) == 3
        assert poll.ask("ann", 3)[0] == question
        told = poll.tell("ann", question.shown, "left")
        assert question not in poll.ask("ann", 3)
        assert not told.repeated
        assert said(poll) == [
            ("p3", "Which drink?", question.items[0].name, question.items[1].name, "left", question.shown)
        ]


def test_the_same_key_counts_once_and_gives_the_first_result(tmp_path):
    with made(tmp_path) as poll:
        (question,) = poll.ask("ann")
        first = poll.tell("ann", question.shown, "left", key="k")
        again = poll.tell("ann", question.shown, "left", key="k")
        assert (again.answer, again.repeated) == (first.answer, True)
        with pytest.raises(Refused, match="key was used"):
            poll.tell("ann", question.shown, "right", key="k")
        assert poll.undo("ann", key="u") == first.answer == poll.undo("ann", key="u")
        with pytest.raises(Refused, match="taken back since"):  # or the answer would be lost in silence
            poll.tell("ann", question.shown, "left", key="k")
        assert len(kept(poll)) == 1
        assert not poll.tell("ann", question.shown, "left", key="k2").repeated
        # Another participant may use the same key.
        (other,) = poll.ask("bob")
        assert not poll.tell("bob", other.shown, "left", key="k").repeated


def test_a_key_is_of_one_thing(tmp_path):
    with made(tmp_path, proposals=True, criteria=["taste", "price"]) as poll:
        first, second = poll.ask("ann", 2)
        told = poll.tell("ann", first.shown, "left", key="a")
        item = poll.propose_item("ann", "beer", key="p")
        with pytest.raises(Refused, match="came with an answer before, not with a proposal"):
            poll.propose_item("ann", "wine", key="a")
        with pytest.raises(Refused, match="came with an answer before, not with an answer to be taken back"):
            poll.undo("ann", key="a")
        with pytest.raises(Refused, match="came with a proposal before, not with an answer"):
            poll.tell("ann", second.shown, "left", key="p")
        with pytest.raises(Refused, match="another question"):
            poll.tell("ann", second.shown, "left", key="a")
        with pytest.raises(Refused, match="used for another answer"):
            poll.tell("ann", first.shown, "left", criterion=1, key="a")
        assert poll.tell("ann", first.shown, "left", criterion=0, key="a").repeated
        assert poll.propose_item("ann", "beer", key="p") == item
        new = poll.replace("ann", told.answer, "right", key="r")
        assert poll.replace("ann", told.answer, "right", key="r") == type(new)(new.answer, True)
        with pytest.raises(Refused, match="replaced or taken back since"):
            poll.tell("ann", first.shown, "left", key="a")
        assert poll.undo("ann", key="u") == new.answer
        with pytest.raises(Refused, match="replaced or taken back since"):
            poll.replace("ann", told.answer, "right", key="r")
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            assert other.undo("ann", key="u") == new.answer
            assert other.log.state.people == poll.log.state.people
        assert said(poll) == []


def test_an_answer_is_replaced_or_taken_back_and_the_log_keeps_all(tmp_path):
    with made(tmp_path) as poll:
        (question,) = poll.ask("ann")
        first = poll.tell("ann", question.shown, "left")
        assert poll.tell("ann", question.shown, "left").repeated  # the same answer twice is one
        with pytest.raises(Refused, match="answered already"):
            poll.tell("ann", question.shown, "right")
        second = poll.replace("ann", first.answer, "tie")
        assert [row[4] for row in said(poll)] == ["tie"]
        assert len(kept(poll)) == 2
        with pytest.raises(Refused, match="no answer"):
            poll.replace("ann", first.answer, "left")
        assert poll.undo("ann") == second.answer
        assert said(poll) == []
        assert poll.ask("ann")[0].shown == question.shown
        with pytest.raises(Refused, match="no answer to take back"):
            poll.undo("ann")


def test_nobody_reaches_the_questions_and_answers_of_others(tmp_path):
    with made(tmp_path) as poll:
        (mine,), (theirs,) = poll.ask("ann"), poll.ask("bob")
        with pytest.raises(Refused, match="no question"):
            poll.tell("ann", theirs.shown, "left")
        told = poll.tell("bob", theirs.shown, "left")
        with pytest.raises(Refused, match="no answer"):
            poll.replace("ann", told.answer, "right")
        with pytest.raises(Refused, match="no participant"):
            poll.tell("cas", mine.shown, "left")
        assert len(kept(poll)) == 1


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [("pair", "both"), ("best", "left"), ("best-worst", ["tea"]), ("order", ["tea", "milk"]), ("order", "tie")],
)
def test_every_kind_takes_its_own_answers_only(tmp_path, kind, wrong):
    with made(tmp_path, kind=kind) as poll:
        (question,) = poll.ask("ann")
        assert len({item.number for item in question.items}) == (2 if kind == "pair" else 4)
        with pytest.raises(DataError):
            poll.tell("ann", question.shown, wrong)
        with pytest.raises(DataError):
            poll.tell("ann", question.shown, [question.items[0].name] * 2)
        answer = reply(question, random.Random(1))
        poll.tell("ann", question.shown, answer)
        names = {item.number: item.name for item in question.items}
        row = poll.export("answers").to_dicts()[0]
        if kind == "order":
            assert [row[f"rank{k}"] for k in range(1, 5)] == [names[number] for number in answer]
        elif kind == "best-worst":
            assert (row["best"], row["worst"]) == tuple(names[number] for number in answer)
        else:
            assert (row["best"] if kind == "best" else row[row["winner"]]) == names[answer]
        poll.skip("ann", poll.ask("ann")[0].shown)
        assert poll.progress("ann").answered == 2


def test_what_is_not_offered_is_refused(tmp_path):
    with made(tmp_path, ties=False, skips=False, undo=False) as poll:
        (question,) = poll.ask("ann")
        for answer in ("tie", "skip", None):
            with pytest.raises(Refused):
                poll.tell("ann", question.shown, answer)
        poll.tell("ann", question.shown, "right")
        with pytest.raises(Refused):
            poll.undo("ann")
        with pytest.raises(Refused):
            poll.propose_item("ann", "beer")


def test_states_of_a_poll(tmp_path):
    with made(tmp_path) as poll:
        (question,) = poll.ask("ann")
        poll.pause()
        assert poll.ask("ann") == []
        with pytest.raises(Refused, match="paused"):
            poll.tell("ann", question.shown, "left")
        poll.resume()
        poll.tell("ann", question.shown, "left")
        poll.close()
        with pytest.raises(Refused, match="closed"):
            poll.ask("bob")
        assert poll.status == "closed"


def test_hasty_answers_are_told_by_the_time_on_the_screen(tmp_path, monkeypatch):
    clock = [1e9]
    monkeypatch.setattr("predilect.live.log.time.time", lambda: clock[0])
    with made(tmp_path, items=[f"i{k}" for k in range(12)]) as poll:
        questions = poll.ask("ann", 2)
        for k in range(12):  # as pages do: two questions are held, each .6 s on the screen
            clock[0] += 0.6
            _, questions = poll.tell_and_ask("ann", questions[0].shown, "left", 2, shown_ms=600)
            clock[0] += 5.0 * (k == 11)
        assert poll.people()["faster_than_a_second"] == 12
        poll.undo("ann")
        poll.tell("ann", poll.ask("ann")[0].shown, "left", shown_ms=1000)
        assert poll.people()["share_faster_than_a_second"] == 11 / 12
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            assert other.people() == poll.people()
            assert other.export("answers")["shown_ms"].to_list() == [600] * 11 + [1000]
        # Without it the time since the draw tells, unless the question was drawn ahead.
        for wait, n in ((0.9, 2), (1.1, 2), (0.9, 1)):
            for question in poll.ask("bob", n):
                clock[0] += wait
                poll.tell("bob", question.shown, "left")
        assert poll.people()["faster_than_a_second"] == 11 + 2
        assert poll.people()["share_faster_than_a_second"] == 13 / 15
    for wrong in (-1, 0.5, True, "1", 2**53):
        with pytest.raises(DataError, match="whole number of milliseconds"):
            poll.tell("ann", 1, "left", shown_ms=wrong)


def test_a_limit_and_everything_asked(tmp_path):
    with made(tmp_path, limit=2) as poll:
        answered(poll, ["ann"], 5)
        assert len(said(poll)) == 2
        assert poll.progress("ann").left == 0
    with made(tmp_path / "..", name="other", items=DRINKS[:3]) as poll:
        answered(poll, ["ann"], 9)
        assert len({frozenset(row[2:4]) for row in said(poll)}) == len(said(poll)) == 3


@pytest.mark.slow
def test_random_questions_have_the_probability_that_is_logged(tmp_path):
    with made(tmp_path, items=DRINKS[:3]) as poll:
        first = Counter()
        for k in range(300):
            (question,) = poll.ask(f"p{k}")
            first[tuple(item.name for item in question.items)] += 1
        shown = poll.export("shown")
        assert set(shown["probability"]) == {1 / 3}
        assert len(first) == 6  # three pairs, two sides each
        expected = 300 / 6
        assert sum((n - expected) ** 2 / expected for n in first.values()) < 20.5  # chi-square, .999 of 5


def test_criteria_share_the_question(tmp_path):
    with made(tmp_path, criteria=["taste", "price"]) as poll:
        (first,) = poll.ask("ann")
        assert (first.criterion, first.text) == (0, "taste")
        poll.tell("ann", first.shown, "left")
        (second,) = poll.ask("ann")
        assert (second.shown, second.criterion, second.items) == (first.shown, 1, first.items)
        poll.tell("ann", second.shown, "tie")
        assert [row[1] for row in said(poll)] == ["taste", "price"]
        assert poll.ask("ann")[0].shown != first.shown
        assert poll.log.state.n_answers == [1, 1]


def test_items_come_and_go(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        number = poll.propose_item("ann", " iced   tea ", key="k")
        assert poll.propose_item("ann", "iced tea", key="k") == number
        assert poll.propose_item("bob", "iced tea") == number  # who is not told that somebody proposed it
        assert poll.log.state.item(number).state == "proposed"
        assert "iced tea" not in {item.name for item in poll.log.state.active()}
        poll.moderate("iced tea", accept=True)
        poll.add_items([{"name": "beer", "attributes": {"alcohol": "5 %"}}])
        poll.retire("milk")
        names = {item.name for _ in range(40) for question in poll.ask("cas", 15) for item in question.items}
        assert names == {"tea", "juice", "water", "cola", "iced tea", "beer"}
        (question,) = poll.ask("dan")
        poll.report("dan", question.items[0].number)
        poll.report("dan", question.items[0].number)
        reports = dict(poll.export("items").select("item", "reports").iter_rows())
        assert reports[question.items[0].name] == 1
        with pytest.raises(Refused, match="only an item that was shown"):
            poll.report("dan", next(item for item in poll.items if item not in question.items).number)


def test_a_question_about_a_retired_item_is_asked_no_more_and_can_still_be_answered(tmp_path):
    with made(tmp_path, limit=1) as poll:
        (question,) = poll.ask("ann")
        retired = question.items[0].name
        poll.retire(retired)
        (other,) = poll.ask("ann")
        assert retired not in {item.name for item in other.items}
        assert (poll.progress("ann").answered, poll.progress("ann").left) == (0, 1)
        poll.tell("ann", question.shown, "left")  # it may stand on a screen
        assert len(said(poll)) == 1
        assert poll.progress("ann").answered == 1
        poll.moderate(retired, accept=True)
        assert poll.ask("ann") == [other]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"kind": "best", "size": 5}, {"kind": "pair"}),
        ({"kind": "pair"}, {"kind": "order", "size": 4}),
        ({"kind": "pair"}, {"kind": "best-worst"}),
        ({"kind": "best", "size": 4}, {"size": 3}),
        ({"criteria": ["taste", "price"]}, {"criteria": ["price", "taste"]}),
    ],
)
def test_what_answers_mean_changes_for_new_questions_only(tmp_path, before, after):
    with made(tmp_path, **before) as poll:
        (question,) = poll.ask("ann")
        poll.change(**after)
        with pytest.raises(Refused, match="no question"):
            poll.tell("ann", question.shown, question.items[-1].number)
        assert poll.log.state.times_shown == [0] * len(DRINKS)
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            (asked,) = other.ask("ann")
            assert (asked.kind, len(asked.items)) == (poll.settings.kind, poll.settings.n_shown)
            assert asked.text == poll.settings.boards[0]
            other.tell("ann", asked.shown, reply(asked, random.Random(1)))
            assert len(said(other)) == 1


def test_another_process_reads_the_same(tmp_path):
    with made(tmp_path, proposals=True) as poll:
        answered(poll, ["ann", "bob"], 4)
        poll.undo("ann")
        poll.propose_item("bob", "beer")
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            assert said(other) == said(poll)
            assert other.settings == poll.settings
            (question,) = other.ask("ann")
            # What one writes the other decides on, though it has not read it yet.
            other.tell("ann", question.shown, "left", key="k")
            assert poll.tell("ann", question.shown, "left", key="k").repeated
            assert said(other) == said(poll)
            state = PollState()
            for event in sorted((one for kind in ("state", "item_added", "joined", "shown", "answered", "undone")
                                 for one in kept(poll, kind)), key=lambda one: one.sequence):  # fmt: skip
                state.apply(event)
            assert state.changes == poll.log.state.changes
            assert state.times_shown == poll.log.state.times_shown


def test_many_threads_write_in_groups_and_nothing_is_lost(tmp_path):
    with made(tmp_path, items=[f"i{k}" for k in range(30)]) as poll:
        transactions = []
        sa.event.listen(poll.database.engine, "commit", lambda _: transactions.append(1))
        told = []

        def take_part(name):
            source = random.Random(name)
            for _ in range(10):
                (question,) = poll.ask(name)
                told.append(poll.tell(name, question.shown, reply(question, source), key=str(question.shown)).answer)

        threads = [threading.Thread(target=take_part, args=(f"p{k}",)) for k in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == [event.sequence for event in kept(poll)]
        assert len(set(told)) == 120
        assert len(transactions) < 12 + 120 + 120


def test_a_full_disk_refuses_and_loses_nothing(tmp_path):
    with made(tmp_path, items=[f"a long name of item number {k}" for k in range(50)]) as poll:
        answered(poll, ["ann"], 3)
        before = said(poll)
        with poll.database.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        sa.event.listen(
            poll.database.engine, "begin", lambda one: one.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        )

        def fill():
            for k in range(2000):
                poll.join(f"somebody {k}")

        with pytest.raises(OutputError, match=r"full.*Make room"):
            fill()
        with pytest.raises(OutputError, match="full"):
            fill()
        n_shown = len(poll.export("shown"))
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            assert said(other)[: len(before)] == before
            assert len(other.export("shown")) == n_shown
            answered(other, ["bob"], 1)  # there is room again


def test_the_numbers_of_refits():
    counts = due_counts()
    first = [next(counts) for _ in range(40)]
    assert first[:3] == [10, 62, 120]
    assert all(later - earlier >= 50 for earlier, later in pairwise(first))
    assert all(any(abs(count - 10 * 1.1**k) < 1 for k in range(300)) for count in first)


def test_settings_are_checked_and_what_answers_mean_stays(tmp_path):
    with pytest.raises(DataError, match='Did you mean "kind"'):
        made(tmp_path, kinds="pair")
    with pytest.raises(DataError, match="one of pair"):
        made(tmp_path, kind="pairs")
    with pytest.raises(DataError, match="twice"):
        made(tmp_path, items=["tea", "tea"])
    with pytest.raises(DataError, match="shows 2 items"):
        made(tmp_path, items=["tea"])
    with pytest.raises(DataError, match="no file can keep"):
        made(tmp_path, items=["tea\x00", "milk"])
    with made(tmp_path, name="one") as poll:
        poll.change(kind="best", size=3)
        poll.tell("ann", poll.ask("ann")[0].shown, "skip")
        with pytest.raises(Refused, match="cannot change"):
            poll.change(kind="pair")
        poll.change(public=True)
        with pytest.raises(DataError, match="4 items"):
            made(tmp_path, items=DRINKS[:3], name="few", kind="best")
        assert poll.settings == Settings.of(poll.settings.to_dict() | {"public": True})


@pytest.mark.parametrize(
    ("together", "said", "alone"),
    [
        ({"limit": 5, "own_ranking": 10}, "own_ranking=10 does nothing here: nobody gives so many", {"own_ranking": 5}),
        ({"kind": "pair", "size": 5}, "size=5 does nothing here", {"size": 4}),
        ({"kind": "best", "retest": 0.1}, "retest=0.1 does nothing here", {"retest": 0.0}),
        ({"strategy": "person", "difficulty": 0.6}, "difficulty=0.6 does nothing here", {"difficulty": 0.0}),
        ({"kind": "order", "difficulty": 0.6}, "difficulty=0.6 does nothing here", {"difficulty": 0.0}),
        ({"completion": "https://panel.example"}, "completion=https://panel.example does nothing here", {}),
    ],
)
def test_settings_that_are_accepted_together_all_do_something(tmp_path, together, said, alone):
    with pytest.raises(DataError, match=said):
        made(tmp_path, **together)
    with made(tmp_path, kind="best", size=5, name="one") as poll:
        with pytest.raises(DataError, match=said):
            poll.change(**together)
        rest = {name: value for name, value in together.items() if name not in alone and name != "completion"}
        poll.change(**rest)  # what was not said follows
        assert {name: getattr(poll.settings, name) for name in alone} == alone
    with made(tmp_path, **{**rest, **alone}, name="two") as poll:  # what makes no difference may be said
        assert {name: getattr(poll.settings, name) for name in alone} == alone


def test_a_question_shows_no_more_items_than_there_are(tmp_path):
    with made(tmp_path) as poll, pytest.raises(Refused, match="would show 8 items, and there are 5"):
        poll.change(kind="best", size=8)


def test_a_file_of_another_version_is_upgraded_with_a_copy_or_refused(tmp_path, monkeypatch):
    with made(tmp_path) as poll:
        answered(poll, ["ann"], 2)
        rows, token = said(poll), poll.token
    with sqlite3.connect(tmp_path / "poll.db") as old:  # which had no checksums
        old.execute("ALTER TABLE events DROP COLUMN crc")
        old.execute("DROP TABLE groups")
        old.execute("DROP TABLE organisers")
        old.execute("UPDATE facts SET value = '1' WHERE name = 'version'")
    old.close()
    with Poll.open(tmp_path / "poll.db", background=False) as poll:
        assert said(poll) == rows
        assert poll.organiser(token).role == "organiser"  # of a log without roles
        answered(poll, ["bob"], 1)
        assert len(said(poll)) == len(rows) + 1
        assert poll.groups() is None
    with sqlite3.connect(tmp_path / "poll.db") as newer, sqlite3.connect(tmp_path / "poll.db.version1") as older:
        assert [len(one.execute("PRAGMA table_info(events)").fetchall()) for one in (newer, older)] == [8, 7]
    newer.close()
    older.close()
    monkeypatch.setattr(tables_of, "VERSION", 1)
    with pytest.raises(DataError, match="newer"):
        Poll.open(tmp_path / "poll.db")


def test_what_is_no_poll_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no poll"):
        Poll.open(tmp_path / "nothing.db")
    (tmp_path / "text.db").write_text("hello " * 1000)
    with pytest.raises(DataError, match="no database of polls"):
        Poll.open(tmp_path / "text.db")
    with pytest.raises(DataError, match="SQLite or PostgreSQL"):
        Poll.open("mysql://host/name")
    with made(tmp_path, name="one"), made(tmp_path, name="two"):
        with pytest.raises(DataError, match="2 polls"):
            Poll.open(tmp_path / "poll.db")
        with pytest.raises(DataError, match='no poll "three"'):
            Poll.open(tmp_path / "poll.db", "three")
        assert Database(tmp_path / "poll.db").names() == ["one", "two"]
    with pytest.raises(DataError, match="already"):
        made(tmp_path, name="one")


def test_tokens(tmp_path):
    with made(tmp_path) as poll:
        assert poll.is_organiser(poll.token)
        assert not poll.is_organiser(poll.token + "a")
        assert poll.token not in (tmp_path / "poll.db").read_bytes().decode("latin-1")
        new = poll.new_token()
        assert poll.is_organiser(new)
        assert not poll.is_organiser(poll.token)


def test_a_backup_is_made_while_the_poll_is_in_use(tmp_path):
    with made(tmp_path) as poll:
        answered(poll, ["ann"], 3)
        poll.database.backup(tmp_path / "copy.db")
        answered(poll, ["ann"], 1)
        with Poll.open(tmp_path / "copy.db", background=False) as copy:
            assert said(copy) == said(poll)[:3]
        with pytest.raises(DataError, match="exists"):
            poll.database.backup(tmp_path / "copy.db")


@pytest.mark.parametrize("kind", ["answered", "shown", "joined", "undone", "item_added", "proposed", "reported"])
def test_a_row_that_cannot_be_taken_in_ends_no_poll_and_is_not_lost(tmp_path, monkeypatch, caplog, kind):
    file = tmp_path / "poll.db"
    with made(tmp_path, proposals=True, undo=True) as poll, Poll.open(file, background=False) as other:
        answered(poll, ["ann"], 2)
        row = fail_once(monkeypatch, kind)
        answered(poll, ["bob", "cas"], 2)
        question = poll.ask("ann")[0]
        poll.tell("ann", question.shown, question.items[0].number, key="k")
        poll.undo("ann", key="u")
        poll.propose_item("ann", "beer", key="p")
        assert poll.propose_item("bob", "Beer") == 6 + (kind == "item_added")
        poll.report("bob", poll.ask("bob")[0].items[0].number)
        poll.report("cas", poll.ask("cas")[0].items[0].number)
        poll.propose_item("bob", "wine")
        answered(other, ["bob", "cas"], 2)
        poll.log.refresh()
        for one in (poll, other):
            assert row[0] in {left_out.row for left_out in one.left_out()}
            assert len(one.export("answers")) >= 7
            one.board(), one.people(), one.export("participants"), one.export("items"), one.own("ann")
        assert said(poll) == said(other)
        lines = [one.message for one in caplog.records if f"row {row[0]}, {kind}: a mistake of ours" in one.message]
        assert len(lines) == 2  # one of each process
        numbers = {item.name: item.number for item in other.items if item.state != "refused"}
    monkeypatch.undo()
    with Poll.open(file, background=False) as mended:  # which makes no such mistake
        assert mended.left_out() == []
        assert numbers.items() <= {item.name: item.number for item in mended.items}.items()


def test_who_follows_the_log_goes_on_after_a_mistake(tmp_path, monkeypatch, caplog):
    looks, right = [], Poll.look

    def look(self):
        looks.append(1)
        if len(looks) < 3:
            raise ZeroDivisionError("a mistake of ours")
        right(self)

    monkeypatch.setattr(Poll, "look", look)
    with made(tmp_path, background=True) as poll, Poll.open(tmp_path / "poll.db", background=False) as other:
        poll.board()
        answered(other, ["ann"], 1)
        began = time.monotonic()
        while not len(poll.log.state.people) and time.monotonic() - began < 20.0:
            time.sleep(0.05)
        assert len(poll.log.state.people) == 1
    assert [one for one in caplog.messages if "mistake" in one] == [
        f"{poll.name}: following the log failed: ZeroDivisionError: a mistake of ours"
    ]
