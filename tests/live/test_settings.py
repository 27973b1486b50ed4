"""The one model of settings, and what is drawn from it: forms, the command, the API; times at which a poll opens."""

from __future__ import annotations

import html
import json
import re
import time

import httpx
import pytest

from cli.running import run
from live.polls import fail_once, made
from live.served import browser, fields, joined, served
from predilect.errors import DataError
from predilect.live import Poll, Settings
from predilect.live.given import Refused
from predilect.live.moments import moment, seconds_of
from predilect.live.settings import described, read_settings
from predilect.live.web.texts import Speech, english

OTHER = {
    "question": "Which one?", "kind": "best", "size": 5, "strategy": "best", "top": 7, "criteria": ("a, b", "c"),
    "instruction": "Slowly.\n\nPlease.", "consent": "Agreed.", "language": "de", "at_once": True, "ties": False,
    "skips": False, "undo": False, "proposals": True, "limit": 30, "retest": 0.25, "difficulty": 0.6,
    "own_ranking": 4, "public": True, "smallest_group": 20, "level": 0.8, "opens": "2097-05-01 09:00 Europe/Berlin",
    "closes": "2097-06-01 18:30 America/New_York", "retention_days": 9, "images": ("images.example.org",),
    "origins": ("https://city.example", "https://b.example"), "pids": "signed", "completion": "https://p.example/done",
    "webhook": "https://hook.example/a?b=c",
}  # fmt: skip
ALONE = {"retest", "difficulty"}  # they do nothing of sets


def test_each_setting_has_words_and_is_written_as_it_is_read():
    assert OTHER.keys() == described().keys()
    both = (Settings(question="?"), Settings(**OTHER))
    for one in described().values():
        assert one.said.endswith((".", '."'))
        for told in both:
            value = getattr(told, one.name)
            read = one.read(one.written(value))
            assert (tuple(read) if isinstance(read, list) else read) == value
        label = f"option_{one.name}" if one.form == "switch" else one.name
        choices = {f"{one.name}_{choice}" for choice in one.choices if one.name != "language"}
        assert {label, f"settings_{one.section}"} | choices <= english().keys()
    assert all(f"\n{name} : " in Settings.__doc__ for name in described())
    assert set(Settings.model_json_schema()["properties"]) == set(described())


def test_a_log_of_before_is_read_as_it_was():
    before = {
        "question": "Which?", "kind": "pair", "size": 4, "strategy": "board", "top": 3, "criteria": [],
        "instruction": "", "consent": "x" * 10_000, "language": "en", "ties": True,
        "skips": True, "undo": True, "proposals": False,
        "limit": 5, "own_ranking": 5, "public": False, "level": 0.95, "retest": 0, "difficulty": 0.0,
        "retention_days": 0, "images": [], "pids": "none",
        "completion": f"https://a@p.example/done?x={'y' * 20_000} z",
    }  # fmt: skip
    told = Settings.of(before)
    assert {name: value for name, value in told.to_dict().items() if name in before} == before | {
        "criteria": (), "images": (),
    }  # fmt: skip
    assert (told.opens, told.closes, told.webhook, told.origins) == ("", "", "", ())


@pytest.fixture
def place(tmp_path):
    with made(tmp_path, name="ideas", draft=True) as poll:
        token = poll.token
    with served(str(tmp_path / "poll.db")) as (address, host):
        ruler = browser(address)
        ruler.post("/o/ideas/sign-in", data={"token": token})
        yield address, host, ruler, token


@pytest.mark.slow
def test_the_form_holds_every_setting_and_changes_what_was_changed(place):
    _, host, ruler, _ = place
    page = ruler.get("/o/ideas/settings").text
    assert set(re.findall(r'id="(\w+)" name', page)) | set(re.findall(r'checkbox" name="(\w+)"', page)) == set(OTHER)
    csrf = {"csrf": fields(page, "/settings")["csrf"]}  # and no box, which a browser would send as it stands
    for name, value in OTHER.items():
        if name in ALONE:
            continue
        answer = ruler.post("/o/ideas/settings", data=csrf | {name: described()[name].written(value)})
        assert answer.status_code == 200, answer.text
        assert getattr(host.poll("ideas").settings, name) == value
    told = host.poll("ideas").settings
    assert told.to_dict() == OTHER | {"retest": 0.0, "difficulty": 0.0}
    answer = ruler.post("/o/ideas/settings", data=csrf | {"instruction": "Slowly.\r\nPlease."})
    assert host.poll("ideas").settings.instruction == "Slowly.\r\nPlease."  # a paragraph less is a change
    ruler.post("/o/ideas/settings", data=csrf | {"instruction": OTHER["instruction"]})
    # As a browser sends what it shows: line ends of its own, and all that is there.
    shown = {name: one.written(getattr(told, name)).replace("\n", "\r\n") for name, one in described().items()}
    before = host.poll("ideas").log.state.sequence
    assert ruler.post("/o/ideas/settings", data=csrf | shown).status_code == 200
    assert host.poll("ideas").settings == told
    assert host.poll("ideas").log.state.sequence == before


def test_what_answers_mean_cannot_be_changed_in_the_form_either(tmp_path):
    with made(tmp_path, name="ideas") as poll:
        poll.tell("ann", poll.ask("ann")[0].shown, "skip")
        token = poll.token
    with served(str(tmp_path / "poll.db")) as (address, host):
        ruler = browser(address)
        ruler.post("/o/ideas/sign-in", data={"token": token})
        page = ruler.get("/o/ideas/settings").text
        off = set(re.findall(r'name="(\w+)"[^>]* disabled', page))
        assert off == {"kind", "size", "criteria", "ties"}
        said = fields(page, "/settings")
        assert "ties" not in said
        assert ruler.post("/o/ideas/settings", data=said | {"limit": "12"}).status_code == 200
        assert ruler.post("/o/ideas/settings", data=said | {"kind": "best"}).status_code == 400
        assert (host.poll("ideas").settings.limit, host.poll("ideas").settings.ties) == (12, True)


def test_the_api_changes_settings_and_describes_them(place):
    address, host, _, token = place
    headers = {"authorization": f"Bearer {token}"}
    where = f"{address}/api/polls/ideas/settings"
    assert httpx.get(where, headers=headers).json() == json.loads(json.dumps(Settings(question="Which drink?").to_dict()
                                                                              | {"strategy": "random"}))  # fmt: skip
    assert httpx.put(where, json={"limit": 7, "criteria": ["x", "y"]}, headers=headers).status_code == 204
    assert (host.poll("ideas").settings.limit, host.poll("ideas").settings.criteria) == (7, ("x", "y"))
    for wrong, said in (
        ({"limit": "7"}, "whole number"),
        ({"limits": 7}, 'mean \\"limit\\"'),
        ({"kind": None}, "one of"),
    ):
        answer = httpx.put(where, json=wrong, headers=headers)
        assert (answer.status_code, said in answer.text) == (400, True), answer.text
    told = httpx.get(f"{address}/api/openapi.json").json()["paths"]["/api/polls/{poll}/settings"]["put"]
    shape = told["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert shape["limit"]["maximum"] == 10_000
    assert shape["kind"]["enum"] == ["pair", "best", "best-worst", "order"]
    assert shape.keys() == OTHER.keys()


def test_the_command_lists_settings_and_makes_a_draft(tmp_path):
    (tmp_path / "ideas.txt").write_text("tea\nmilk\njuice\n", encoding="utf-8")
    file = tmp_path / "poll.db"
    made_it = run("poll", "new", file, tmp_path / "ideas.txt", "--question", "Which?", "--draft", "--set", "limit=12")
    assert made_it.exit_code == 0, made_it.output
    for words, limit in (([], "0"), ([file], "12")):
        told = json.loads(run("poll", "settings", *words, "--format", "json").stdout)["settings"]
        assert {row["setting"] for row in told} == OTHER.keys()
        assert next(row["value"] for row in told if row["setting"] == "limit") == limit
    assert read_settings({"criteria": "a,b", "images": "x.example y.example"}, ",") == {
        "criteria": ["a", "b"], "images": ["x.example", "y.example"],
    }  # fmt: skip
    with Poll.open(file, background=False) as poll:
        assert poll.status == "draft"
    assert run("poll", "open", file).exit_code == 0
    with Poll.open(file, background=False) as poll:
        assert poll.status == "open"


def test_nobody_takes_part_in_a_draft_which_organisers_see(place):
    address, host, ruler, _ = place
    visitor = browser(address)
    page = visitor.get("/p/ideas").text
    assert "has not begun" in page
    assert "/join" not in page
    assert visitor.post("/p/ideas/join", data={"agreed": "yes"}).status_code == 409
    assert httpx.post(f"{address}/api/polls/ideas/participants", json={"consent": True}).status_code == 409
    seen = ruler.get("/o/ideas/preview").text
    assert 'class="question pair"' in seen
    assert "<fieldset disabled>" in seen
    assert host.poll("ideas").log.state.sequence == 2  # nothing of it is kept
    assert visitor.get("/o/ideas/preview").status_code == 403
    csrf = fields(ruler.get("/o/ideas/settings").text, "/settings")
    ruler.post("/o/ideas/status", data=csrf | {"status": "open"})
    joined(address, "ideas")
    assert len(host.poll("ideas").log.state.people) == 1
    assert ruler.post("/o/ideas/status", data=csrf | {"status": "draft"}).status_code == 422
    with pytest.raises(DataError, match="open, paused, closed"):
        host.poll("ideas").act("set_status", "draft")


class Clock:
    """The time that everything in this process takes for now."""

    def __init__(self, monkeypatch):
        self._now, self.ahead = time.time, 0.0
        monkeypatch.setattr("time.time", lambda: self._now() + self.ahead)

    def turn(self, text):
        self.ahead = seconds_of(text) - self._now() + 1.0


def test_a_poll_opens_and_closes_by_itself_and_stays_as_it_is_put_then(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    times = {"opens": "2090-03-01 09:00 Europe/Berlin", "closes": "2090-03-02 09:00 Europe/Berlin"}
    with made(tmp_path, **times) as poll, Poll.open(tmp_path / "poll.db", background=False) as other:
        assert poll.status == "draft"
        with pytest.raises(Refused, match="has not begun"):
            poll.ask("ann")
        clock.turn(times["opens"])
        shown = poll.ask("ann")[0].shown
        assert poll.status == "open"
        other.look()
        assert other.status == "open"
        poll.pause()
        assert poll.ask("ann") == []  # it opens once
        poll.resume()
        clock.turn(times["closes"])
        with pytest.raises(Refused, match="the poll is closed"):
            poll.tell("ann", shown, "skip")
        assert poll.log.state.closed_at == pytest.approx(time.time(), abs=60)
        poll.resume()
        poll.tell("ann", shown, "skip")  # and closes once
        assert [(row["act"], row["what"]) for row in poll.export("trail").to_dicts()][2:] == [
            ("open", f"opens {times['opens']}"), ("paused", ""), ("open", ""),
            ("closed", f"closes {times['closes']}"), ("open", ""),
        ]  # fmt: skip
        for name in times:
            with pytest.raises(DataError, match="is over already"):
                poll.change(**{"opens": "", "closes": "", name: "2080-01-01 00:00 UTC"})
        with pytest.raises(Refused, match="Pause it first"):
            poll.change(opens="2095-01-01 00:00 UTC", closes="")
    with Poll.open(tmp_path / "poll.db", background=False) as again:
        assert again.status == "open"
    clock.ahead = 0.0
    with made(tmp_path / "late.db", **times) as late:
        late.disconnect()
        clock.turn(times["closes"])  # nobody served it meanwhile
        with Poll.open(tmp_path / "late.db", background=False) as again:
            assert again.status == "closed"


def test_a_time_that_cannot_be_taken_in_stops_nobody(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    with made(tmp_path, closes="2090-03-02 09:00 UTC") as poll:
        shown = poll.ask("ann")[0].shown
        clock.turn("2090-03-02 09:00 UTC")
        fail_once(monkeypatch, "state")
        before = poll.log.state.sequence
        with pytest.raises(Refused, match="the poll is closed"):  # by the second try
            poll.tell("ann", shown, "skip")
        assert poll.log.state.sequence == before + 2


def test_times_are_said_in_words_with_their_zone(tmp_path):
    with made(tmp_path, name="ideas", opens="2090-03-01 9:00 Europe/Berlin") as poll:
        assert poll.settings.opens == "2090-03-01 09:00 Europe/Berlin"
    with served(str(tmp_path / "poll.db")) as (address, _):
        for language, said in (
            ("en", r"It opens on Wednesday,? 1 March 2090.* 09:00 \(Europe/Berlin\)\."),
            ("de", r"Sie öffnet am Mittwoch, 1\. März 2090.* 09:00 \(Europe/Berlin\)\."),
        ):
            assert re.search(said, html.unescape(browser(address).get(f"/p/ideas?lang={language}").text))
    assert Speech("en").moment("") == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("tomorrow", "a time with its zone, such as"), ("2090-13-01 09:00 UTC", "a time with its zone"),
        ("2090-03-01 09:00", "a time with its zone"), ("2090-03-01 09:00 Mars/Base", "no zone 'Mars/Base'"),
        ("2027-03-28 02:30 Europe/Berlin", "put forward"), ("2090-03-01 09:00 /etc/passwd", "no zone"), (3, "such as"),
    ],
)  # fmt: skip
def test_what_is_no_time(wrong, said):
    with pytest.raises(DataError, match=said):
        moment("opens", wrong)
