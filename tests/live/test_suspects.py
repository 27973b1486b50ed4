"""Whose answers look like none, and the board without them; skips with a reason; the first question at once."""

from __future__ import annotations

import random

import pytest

from live.polls import answered, made, reply
from live.served import browser, fields, served
from predilect.errors import DataError
from predilect.live.given import Button
from predilect.live.suspects import suspects


def test_the_hasty_and_those_on_one_side_are_flagged_and_readers_are_not(tmp_path):
    items, source = [f"i{k}" for k in range(12)], random.Random(0)
    with made(tmp_path, items, own_ranking=0, retest=0.4) as poll:
        poll._source = random.Random(0)
        for k in range(30):
            for _ in range(20):
                for one in poll.ask(f"reader {k}"):
                    poll.tell(f"reader {k}", one.shown, reply(one, source), shown_ms=2000)
        before = poll.board()
        for _ in range(20):
            for one in poll.ask("hasty"):
                poll.tell("hasty", one.shown, reply(one, source), shown_ms=400)
            for one in poll.ask("left"):
                poll.tell("left", one.shown, "left", shown_ms=3000)
            for one in poll.ask("coin"):
                poll.tell("coin", one.shown, source.choice(["left", "right"]), shown_ms=3000)
        numbers = {name: poll.who(name=name) for name in ("hasty", "left", "coin")}
        found = suspects(poll.log.state)
        assert found[numbers["hasty"]] == ("fast",)
        assert "one_side" in found[numbers["left"]]
        assert len(found.keys() - set(numbers.values())) <= 3  # of 30 who read
        people = poll.people()
        assert people["suspects"] == len(found)
        assert people["suspected_of"]["fast"] == 1
        rows = {row["user"]: row["suspected_of"] for row in poll.export("participants").to_dicts()}
        assert rows[f"p{numbers['hasty']}"] == "fast"
        rest = poll.board_without_suspects()
        assert rest["n"].sum() < poll.board()["n"].sum()
        assert set(rest["item"]) == set(before["item"])
        assert poll.board()["n"].sum() == before["n"].sum() + 3 * 40  # it leaves nobody out


@pytest.mark.parametrize("n", [1, 8])
def test_few_answers_on_one_side_say_nothing(tmp_path, n):
    with made(tmp_path, [f"i{k}" for k in range(9)]) as poll:
        for _ in range(n):
            for one in poll.ask("ann"):
                poll.tell("ann", one.shown, "left", shown_ms=3000)
        assert suspects(poll.log.state) == {}


def test_a_skip_may_say_why(tmp_path):
    with made(tmp_path, ["tea", "skip", "tie", "left"]) as poll:
        for reason in ("skip:same", "skip:unknown", "skip:same"):
            (question,) = poll.ask("ann")
            poll.tell("ann", question.shown, reason)
        with pytest.raises(DataError):
            poll.tell("ann", poll.ask("ann")[0].shown, "skip:weather")
        rows = poll.export("answers")
        assert rows["winner"].to_list() == ["skip"] * 3
        assert rows["reason"].to_list() == ["same", "unknown", "same"]
        assert poll.people()["skipped_because"] == {"same": 2, "unknown": 1}
        assert [one["reason"] for one in poll.own("ann")["answers"]] == ["same", "unknown", "same"]
        for person in ("bob", "cem", "dan"):  # a button is no item that is called like it
            for _ in range(6):
                for question in poll.ask(person):
                    poll.tell(person, question.shown, Button("skip"))
        assert poll.export("answers")["winner"].to_list() == ["skip"] * 21


def test_the_first_question_comes_at_once_and_counts_once(tmp_path):
    with made(tmp_path, name="x", at_once=True, consent="For a *study*.", strategy="board") as poll:
        answered(poll, ["u1", "u2"], 2)
        n = len(poll.log.state.people)
    with served(str(tmp_path / "poll.db")) as (address, host):
        client = browser(address)
        page = client.get("/p/x").text
        assert "By answering you take part" in page
        assert "<em>study</em>" in page
        live = host.poll("x").log.state
        assert len(live.people) == n  # a reader is nobody yet
        form = fields(page, "/first")
        assert (
            client.post("/p/x/first", data=form | {"first": "1" + form["first"], "answer": "left"}).status_code == 403
        )
        twice = [browser(address), browser(address)]  # two clicks, before a cookie came
        for one in twice:
            told = one.post("/p/x/first", data=form | {"answer": "left", "shown_ms": "1200"}).text
            assert "Answered: 1" in told
        assert len(live.people) == n + 1
        person = live.people[max(live.people)]
        (answer,) = person.answers.values()
        assert (answer.value, answer.shown_ms) == ((0,), 1200)
        assert person.shown[answer.shown].probability == pytest.approx(float(form["first"].split(" ")[1]))
        assert len({cookie.value for one in twice for cookie in one.cookies.jar if "participant" in cookie.name}) == 1
        host.poll("x").retire("tea")
        late = browser(address)
        page = late.get("/p/x").text
        items = [int(one) for one in fields(page, "/first")["first"].split(" ")[2:-1]]
        host.poll("x").add_items(["mate"])
        host.poll("x").retire(items[0])  # what was read ends before it is answered
        told = late.post("/p/x/first", data=fields(page, "/first") | {"answer": "left"}).text
        assert "Answered: 0" in told
        host.poll("x").pause()
        assert "/first" not in browser(address).get("/p/x").text


def test_a_first_answer_that_is_not_complete_is_asked_for_again(tmp_path):
    with made(tmp_path, name="x", at_once=True, kind="order", size=3):
        pass
    with served(str(tmp_path / "poll.db")) as (address, host):
        client = browser(address)
        form = fields(client.get("/p/x").text, "/first")
        items = form["first"].split(" ")[2:-1]
        told = client.post("/p/x/first", data=form | {f"place{one}": "1" for one in items})
        assert told.status_code == 400
        assert "Give every item a place" in told.text
        again = fields(told.text, "/answer")
        page = client.post("/p/x/answer", data=again | {f"place{one}": str(k) for k, one in enumerate(items, 1)}).text
        assert "Answered: 1" in page
        assert [row["rank1"] for row in host.poll("x").export("answers").to_dicts()] == [
            host.poll("x").items[int(items[0]) - 1].name
        ]
