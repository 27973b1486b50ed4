"""The model of a poll is a cache: the same board from the same log, in whichever process, whatever happened between."""

from __future__ import annotations

import random
import re
import threading
import time

import numpy as np
import pytest

from live.polls import DRINKS, answered, made, of_kind, reply
from live.test_kept import url  # noqa: F401  the databases
from predilect.live import Poll
from predilect.live.belief import Belief
from predilect.live.refits import Worker
from predilect.show.report.page import page
from tolerances import ITERATIVE

PEOPLE = [f"person {k}" for k in range(8)]


def scores(poll):
    """Scores of the board, by item."""
    return dict(poll.board().select("item", "mean").iter_rows())


def close(one, other):
    assert one.keys() == other.keys()
    assert np.allclose(
        [one[item] for item in sorted(one)], [other[item] for item in sorted(other)], rtol=0, atol=ITERATIVE
    )


@pytest.mark.slow
def test_the_board_begins_alike_and_moves_with_every_answer(tmp_path):
    with made(tmp_path, strategy="board") as poll:
        assert set(scores(poll).values()) == {0.0}
        (question,) = poll.ask("ann")
        better, worse = (item.name for item in question.items)
        poll.tell("ann", question.shown, better)
        first = scores(poll)
        assert first[better] > 0.0 > first[worse]
        poll.replace("ann", 5, worse)
        close(scores(poll), {**first, better: first[worse], worse: first[better]})
        poll.undo("ann")
        assert max(map(abs, scores(poll).values())) < ITERATIVE
        assert poll.board()["n"].sum() == 0


@pytest.mark.slow
def test_a_restart_has_the_board_of_an_uninterrupted_run(tmp_path):
    with made(tmp_path, strategy="random") as poll:
        answered(poll, PEOPLE, 8)
        poll.undo(PEOPLE[0])
        before = poll.board()  # of the prior, with every answer as it came
        with Poll.open(tmp_path / "poll.db", background=False) as again:
            close(scores(again), scores(poll))
            assert again.refit() == poll.log.state.due[-1]
            assert poll.refit() is None
            assert poll.belief().made_at == again.belief().made_at == poll.log.state.due[-1]
            close(scores(again), scores(poll))
            answered(again, PEOPLE[:3], 1, seed=5)
            poll.look()
            close(scores(again), scores(poll))
        with Poll.open(tmp_path / "poll.db", background=False) as again:
            close(scores(again), scores(poll))
        assert poll.board()["sd"][0] != before["sd"][0]


@pytest.mark.slow
def test_a_poll_goes_on_when_everybody_is_erased(tmp_path):
    people = PEOPLE[:3]
    with made(tmp_path, strategy="board") as poll:
        answered(poll, people, 5)
        assert poll.refit() is not None
        poll.board()
        numbers = [poll.who(name=name) for name in people]
        rest = poll.belief().board_without(numbers)
        assert rest["n"].sum() == 0
        assert np.allclose(rest["mean"], 0.0, rtol=0, atol=ITERATIVE)
        for name in people:
            poll.erase(name)
            poll.board(), poll.outlook()
        assert set(scores(poll).values()) == {0.0}
        answered(poll, ["new", "newer"], 3)
        assert poll.board()["n"].sum() == 2 * 6
        now = scores(poll)
    with Poll.open(tmp_path / "poll.db", background=False) as again:
        close(scores(again), now)


@pytest.mark.slow
def test_whoever_is_erased_told_the_board_nothing(tmp_path):
    with made(tmp_path, strategy="random", name="one") as poll, made(tmp_path, strategy="random", name="two") as other:
        source = random.Random(3)
        for person in [*PEOPLE, "gone"]:
            for _ in range(8):
                (question,) = poll.ask(person)
                better = reply(question, source)
                poll.tell(person, question.shown, better)
                if person != "gone":
                    tell_same(other, person, question, better)
        poll.refit()
        scores(poll)
        poll.erase("gone")
        poll.refit()
        other.refit()
        with Poll.open(tmp_path / "poll.db", "one", background=False) as again:
            close(scores(again), scores(poll))
        assert dict(poll.board().select("item", "n").iter_rows()) == dict(other.board().select("item", "n").iter_rows())


def tell_same(poll, person, question, better):
    """Give the answer of another poll, about the same items."""
    from predilect.live.log import New, Writing

    number = poll.join(person)
    items = [item.number for item in question.items]
    shown = poll.log.write(
        number, lambda state, _: Writing(lambda made: made[0], [New("shown", {"items": items, "p": None}, number)])
    )
    poll.tell(number, shown, better)


@pytest.mark.slow
def test_items_that_come_later_join_the_board(tmp_path):
    with made(tmp_path, strategy="board") as poll:
        answered(poll, PEOPLE, 3)
        poll.refit()
        poll.add_items(["mate"])
        poll.retire("tea")
        board = scores(poll)
        assert "mate" in board
        assert "tea" not in board
        asked = {item.name for k in range(12) for question in poll.ask(f"new {k}", 3) for item in question.items}
        assert "mate" in asked
        assert "tea" not in asked


@pytest.mark.slow
def test_whoever_asks_waits_for_no_weights_unless_the_items_are_others(tmp_path, monkeypatch):
    with made(tmp_path, strategy="board") as poll:
        answered(poll, PEOPLE, 2)
        belief = Belief(poll.log, 0, is_followed=True)
        first = belief.asker()
        answered(poll, PEOPLE, 1)
        assert belief.asker() is first
        belief.follow()
        second = belief.asker()
        assert second is not first
        poll.retire("tea")
        third = belief.asker()
        assert third is not second
        answered(poll, PEOPLE, 1)
        assert belief.asker() is third
        monkeypatch.setattr("predilect.live.belief._SECONDS_OF_AN_ASKER", 0.0)
        assert belief.asker() is third
        monkeypatch.setattr(belief, "_followed_at", belief._followed_at - 60.0)  # the thread has died
        assert belief.asker() is not third


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["board", "best", "top", "person"])
@pytest.mark.parametrize("kind", ["pair", "best", "best-worst", "order"])
def test_every_strategy_asks_every_kind(tmp_path, kind, strategy):
    with made(tmp_path, **of_kind(kind), strategy=strategy, top=2) as poll:
        answered(poll, PEOPLE[:4], 3)
        shown = poll.export("shown")
        assert len(shown) == 12
        assert all(len(set(row["items"].split(" | "))) == (2 if kind == "pair" else 3) for row in shown.to_dicts())
        if kind == "pair":
            pairs = [(row["user"], frozenset(row["items"].split(" | "))) for row in shown.to_dicts()]
            assert len(set(pairs)) == len(pairs)
        if strategy == "person":
            assert shown["probability"].null_count() == 12
        else:
            assert all(0.0 < chance <= 1.0 for chance in shown["probability"])
        before = scores(poll)
        assert max(before.values()) > 0.0
        if strategy == "board":
            assert poll.refit() == poll.log.state.due[0]
            assert poll.belief().made_at == poll.log.state.due[0]
            assert max(scores(poll).values()) > 0.0
            assert poll.ask("new")


@pytest.mark.parametrize("strategy", ["board", "person"])
def test_no_set_is_shown_twice_to_one_participant(tmp_path, strategy):
    with made(tmp_path, kind="best", size=4, strategy=strategy) as poll:
        first = poll.ask("ann", 2)
        poll.tell("ann", first[0].shown, first[0].items[0].number)
        every = [first[0], *poll.ask("ann", 9)]
        assert len({frozenset(item.number for item in question.items) for question in every}) == len(every) == 5


def test_own_rankings_come_after_enough_answers(tmp_path):
    with made(tmp_path, own_ranking=3) as poll:
        answered(poll, ["ann", "bob"], 2)
        assert poll.mine("ann") is None
        answered(poll, ["ann"], 1)
        assert set(poll.mine("ann")["item"]) == set(DRINKS)


def test_repeated_pairs_have_their_sides_swapped(tmp_path):
    with made(tmp_path, retest=0.5, items=[f"i{k}" for k in range(12)]) as poll:
        poll._source = random.Random(0)  # of 30 questions 11 are repeated on average, and by chance now and then five
        answered(poll, ["ann"], 30)
        shown = poll.export("shown").to_dicts()
        again = [row for row in shown if row["retest"]]
        assert len(again) > 5
        for row in again:
            before = next(one for one in shown if set(one["items"].split(" | ")) == set(row["items"].split(" | ")))
            assert before["items"].split(" | ") == row["items"].split(" | ")[::-1]
            assert shown.index(row) - shown.index(before) >= 5


def test_the_outlook_is_the_models(tmp_path):
    with made(tmp_path) as poll:
        answered(poll, PEOPLE, 4)
        found = poll.outlook()
        assert found.claim == "best"
        assert found.level == 0.95
        assert found.enough == (found.probability >= 0.95)
        assert poll.outlook("top", level=0.6).level == 0.6


@pytest.mark.slow
def test_boards_and_outlooks_are_about_the_items_that_are_left(tmp_path):
    with made(tmp_path, top=5, own_ranking=3) as poll:
        answered(poll, PEOPLE, 6)
        first = poll.board()["item"][0]
        poll.outlook()
        poll.retire(first)
        board = poll.board()
        assert board["rank"].to_list() == [1, 2, 3, 4]
        assert board["p_best"].sum() == pytest.approx(1.0)
        assert board["mean"].sum() == pytest.approx(0.0, abs=ITERATIVE)
        assert poll.outlook().items == (board["item"][0],)
        assert poll.outlook().probability == pytest.approx(board["p_best"][0], abs=0.03)
        assert len(poll.outlook("top").items) == 3
        assert len(poll.mine(PEOPLE[0])) == 4
        poll.moderate(first, accept=True)
        assert len(poll.board()) == 5


@pytest.mark.slow
def test_two_processes_show_the_same_and_see_each_other_at_once(url):  # noqa: F811
    with made(url) as poll:
        answered(poll, PEOPLE, 8)
    with Poll.open(url) as one, Poll.open(url) as other:
        one.board(), other.board()
        wanted = one.log.state.due[-1]
        limit = time.monotonic() + 120.0
        while min(poll.belief().made_at for poll in (one, other)) < wanted:
            assert time.monotonic() < limit, "no process of its own made the refit"
            time.sleep(0.1)
        close(scores(one), scores(other))
        answered(one, PEOPLE[:2], 1)
        limit = time.monotonic() + 30.0  # the bar is a second on a machine that is not busy
        while other.log.state.sequence < one.log.state.sequence:
            assert time.monotonic() < limit
            time.sleep(0.05)
        close(scores(one), scores(other))
        one.disconnect()
        answered(other, PEOPLE[:2], 1)
        assert len(other.export("answers")) == 8 * len(PEOPLE) + 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pair", "best"])
def test_a_report_counts_what_the_poll_counts(tmp_path, kind):
    with made(tmp_path, **of_kind(kind), strategy="random") as poll:
        poll.skip("idle", poll.ask("idle")[0].shown)
        for n in (10, 30, 62):
            answered(poll, [f"person {k}" for k in range(poll.people()["answers"] + 1, n + 1)], 1, seed=n)
            poll.refit()
            answered(poll, [f"late {n}"], 1)
            poll.undo(f"person {n - 1}")
            people = poll.people()
            told = re.sub(r"<[^>]+>", " ", page(poll.contents()))
            assert set(re.findall(r"(\d+) answers of (\d+) people", told)) == {
                (str(people["answers"]), str(people["with_answers"]))
            }
            assert f"each of {people['with_answers']} people" in told
            assert f"used {people['answers']}." in told
            assert "Left out 1 row: not answered" in told
            assert poll.board()["n"].sum() == 2 * people["answers"] or kind == "best"


@pytest.mark.slow
def test_boards_are_made_once_however_many_look(tmp_path, monkeypatch):
    with made(tmp_path, own_ranking=2) as poll:
        answered(poll, PEOPLE[:3], 3)
        belief, n_made = poll.belief(), []
        rank = type(belief.catch_up())._rank_among

        def counted(model, items, user=None):
            n_made.append(user)
            time.sleep(0.05)
            return rank(model, items, user)

        monkeypatch.setattr(type(belief.model), "_rank_among", counted)
        threads = [threading.Thread(target=look) for look in
                   [lambda: poll.board(max_age=1.0), lambda: poll.mine(PEOPLE[0])] * 5]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(n_made) == 2
        # Another's answers wait for half a second; own ones, and other items, do not.
        monkeypatch.setattr("predilect.live.belief._TIMES_AS_LONG", 1e3)
        answered(poll, PEOPLE[1:2], 1)
        poll.board(max_age=0.01), poll.mine(PEOPLE[0])
        first = len(n_made)
        answered(poll, PEOPLE[1:2], 1)
        poll.board(max_age=0.01), poll.mine(PEOPLE[0])
        assert len(n_made) == first
        poll.board()  # with every answer
        answered(poll, PEOPLE[:1], 1)
        mine = poll.mine(PEOPLE[0])
        assert len(n_made) == first + 2
        poll.undo(PEOPLE[0])
        poll.retire(mine["item"][0])
        assert mine["item"][0] not in poll.mine(PEOPLE[0])["item"]
        assert mine["item"][0] not in poll.board(max_age=1.0)["item"]
        poll.erase(PEOPLE[1])
        n_before = len(n_made)
        poll.board(max_age=1.0)
        assert len(n_made) == n_before + 1


def test_nothing_stays_open_of_a_process_that_died_while_it_fitted(tmp_path):
    with made(tmp_path) as poll:
        worker = Worker(poll.database)
        worker.ask(poll.name)
        first = worker._process
        first.kill()
        first.wait()
        for _ in range(1000):
            if first.stdin.closed and first.stdout.closed:
                break
            time.sleep(0.01)
        worker.ask(poll.name)
        assert first.stdin.closed
        assert first.stdout.closed
        assert worker._process is not first
        worker.close()
