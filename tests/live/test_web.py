"""Pages and API without a browser: who may do what, forms, headers, what is refused."""

from __future__ import annotations

import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import httpx
import pytest
from starlette.requests import Request

from live.polls import DRINKS, answered, fail_once, made
from live.served import browser, fields, joined, served
from predilect.errors import DataError, OutputError
from predilect.live import Poll
from predilect.live.given import Refused
from predilect.live.web import pages
from predilect.live.web.access import address_of
from predilect.live.web.limits import Rate

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server with one poll of every kind, and their organisers' tokens."""
    folder = tmp_path_factory.mktemp("served")
    tokens = {}
    for kind in ("pair", "best", "best-worst", "order"):
        told = {"name": kind, "kind": kind, "proposals": True, "public": kind == "pair", "consent": "Agreed, then."}
        with made(folder / f"{kind}.db", [*DRINKS, SCRIPT, "שלום"], **told) as poll:
            tokens[kind] = poll.token
            answered(poll, ["ann"], 1)
    with served(str(folder)) as (address, host):
        yield address, host, tokens


@pytest.fixture
def address(place):
    return place[0]


def test_somebody_agrees_answers_takes_back_and_leaves(place):
    address, host, _ = place
    client = browser(address)
    page = client.get("/p/pair?lang=en").text
    assert "Agreed, then." in page
    assert page.index("What is kept") < page.index("Take part")
    assert client.post("/p/pair/join", data=fields(page, "/join")).status_code == 400  # without agreeing
    answer = client.post("/p/pair/join", data=fields(page, "/join") | {"agreed": "yes"})
    poll = host.poll("pair")
    form = fields(answer.text, "/answer")
    for _ in range(2):  # twice, as a browser does that is told to load the page again
        answer = client.post("/p/pair/answer", data=form | {"answer": "left"})
        assert answer.status_code == 200
        assert "Answered: 1" in answer.text
    kept = client.get("/p/pair/me.json").json()
    assert [one["kind"] for one in kept["answers"]] == ["pair"]
    answer = client.post("/p/pair/undo", data=fields(answer.text, "/undo"))
    assert "Answered: 0" in answer.text
    assert client.post("/p/pair/answer", data=form | {"answer": "tie"}).status_code == 200
    n_people = len(poll.log.state.people)
    client.post("/p/pair/erase", data=fields(client.get("/p/pair/me").text, "/erase") | {"sure": "yes"})
    assert len(poll.log.state.people) == n_people - 1
    assert "Take part" in client.get("/p/pair").text


def test_of_two_clicks_on_a_page_the_first_counts_and_who_goes_back_answers_anew(place, monkeypatch):
    address, host, _ = place
    poll, client = host.poll("pair"), joined(address, "pair")

    def values():
        return [name for one in client.get("/p/pair/me.json").json()["answers"] for name in one["answer"]]

    form = fields(client.get("/p/pair").text, "/answer")
    for answer in ("left", "right", "skip"):
        assert client.post("/p/pair/answer", data=form | {"answer": answer}).status_code == 200
    left, right = (
        poll.items[number - 1].name for number in max(poll.log.state.people.items())[1].shown[int(form["shown"])].items
    )
    assert values() == [left]
    monkeypatch.setattr(pages, "_A_MOMENT", -1.0)
    client.post("/p/pair/answer", data=form | {"answer": "right"})
    assert values() == [right]
    monkeypatch.undo()
    form = fields(client.get("/p/pair").text, "/answer")
    with ThreadPoolExecutor() as threads:  # at once: each may find that there is no answer yet
        sent = [
            threads.submit(client.post, "/p/pair/answer", data=form | {"answer": answer})
            for answer in ("left", "right", "tie", "skip")
        ]
        assert [one.result().status_code for one in sent] == [200] * 4
    assert len(client.get("/p/pair/me.json").json()["answers"]) == 2


def test_a_page_takes_back_one_answer_however_often_it_is_sent(address):
    client = joined(address, "pair")
    for _ in range(3):
        page = client.post(
            "/p/pair/answer", data=fields(client.get("/p/pair").text, "/answer") | {"answer": "left"}
        ).text
    form = fields(page, "/undo")
    for _ in range(2):
        assert "Answered: 2" in client.post("/p/pair/undo", data=form).text


def test_the_time_on_the_screen_comes_with_an_answer(place, monkeypatch):
    address, _, _ = place
    told = []

    def noted(real):
        def tell(*args, **more):
            told.append(more["shown_ms"])
            return real(*args, **more)

        return tell

    for name in ("tell", "tell_and_ask"):
        monkeypatch.setattr(Poll, name, noted(getattr(Poll, name)))
    client = joined(address, "pair")
    for ms in ("", "1234"):
        form = fields(client.get("/p/pair").text, "/answer")
        assert client.post("/p/pair/answer", data=form | {"answer": "left", "shown_ms": ms}).status_code == 200
    form = fields(client.get("/p/pair").text, "/answer")
    said = {"shown": int(form["shown"]), "answer": "left"}
    for more in ({"shown_ms": -1}, {"shown_ms": 777}, {}):
        client.post("/api/polls/pair/answers", json=said | more, headers={"x-form-token": form["csrf"]})
    assert told == [None, 1234, 777, None]


def test_who_is_done_may_propose_and_see_results(tmp_path):
    for proposals in (True, False):
        with made(tmp_path, name=f"x{int(proposals)}", limit=1, own_ranking=0, proposals=proposals, public=proposals):
            pass
    with served(str(tmp_path / "poll.db")) as (address, _):
        for proposals in (True, False):
            client = joined(address, name := f"x{int(proposals)}")
            page = client.post(
                f"/p/{name}/answer", data=fields(client.get(f"/p/{name}").text, "/answer") | {"answer": "left"}
            ).text
            assert "That was the last question." in page
            assert (f'href="/p/{name}/results"' in page) == proposals
            assert (f'action="/p/{name}/propose"' in page) == proposals


def test_a_ranking_of_ones_own_is_promised_only_where_it_can_come(tmp_path):
    with made(tmp_path, name="x", limit=3, own_ranking=2):
        pass
    with served(str(tmp_path / "poll.db")) as (address, _):
        for answers, promised in ((["left", "left"], True), (["skip", "left"], True), (["skip", "skip"], False)):
            client = joined(address, "x")
            said = []
            for answer in answers:
                page = client.get("/p/x").text
                said.append("ranking is shown after 2 answers" in page)
                client.post("/p/x/answer", data=fields(page, "/answer") | {"answer": answer})
            page = client.get("/p/x").text
            assert said == [True, True]
            assert ("ranking is shown after" in page or 'href="/p/x/mine"' in page) == promised
            assert ("table" in client.get("/p/x/mine").text) == (answers == ["left", "left"])
            assert ('href="/p/x/mine"' in page) == (answers == ["left", "left"])


def test_closing_asks_first_and_a_retired_item_is_asked_again(place):
    address, host, tokens = place
    ruler = browser(address)
    page = ruler.post("/o/best/sign-in", data={"token": tokens["best"]}).text
    closing = page[page.index("<details>") :]
    assert "Yes, close the poll" in closing[: closing.index("</details>")]
    assert page.count('value="closed"') == 1
    host.poll("best").retire(DRINKS[0])
    page = ruler.get("/o/best/items").text
    assert f'Ask again<span class="hidden">: {DRINKS[0]}' in page
    host.poll("best").moderate(DRINKS[0], True)


@pytest.mark.parametrize("kind", ["best", "best-worst", "order"])
def test_sets_are_answered_by_their_forms(place, kind):
    address, host, _ = place
    client = joined(address, kind)
    page = client.get(f"/p/{kind}").text
    form = fields(page, "/answer")
    names_of = {"best": 'answer" value="', "best-worst": 'best" value="', "order": "place"}
    numbers = list(dict.fromkeys(re.findall(rf'name="{names_of[kind]}(\d+)"', page.split("<template")[0])))
    assert len(numbers) == 4
    if kind == "best":
        said, wrong = {"answer": numbers[2]}, {"answer": "999"}
    elif kind == "best-worst":
        said, wrong = {"best": numbers[0], "worst": numbers[3]}, {"best": numbers[0], "worst": numbers[0]}
    else:
        said = {f"place{number}": str(place) for place, number in enumerate(numbers, 1)}
        wrong = said | {f"place{numbers[0]}": "2"}
    refused = client.post(f"/p/{kind}/answer", data=form | wrong)
    assert refused.status_code == 400
    assert client.post(f"/p/{kind}/answer", data=form | said).status_code == 200
    row = host.poll(kind).export("answers").tail(1).to_dicts()[0]
    names = {str(item.number): item.name for item in host.poll(kind).items}
    expected = [names[number] for number in numbers]
    told = {
        "best": lambda: row["best"] == expected[2],
        "best-worst": lambda: (row["best"], row["worst"]) == (expected[0], expected[3]),
        "order": lambda: [row[f"rank{place}"] for place in range(1, 5)] == expected,
    }
    assert told[kind]()


def test_a_link_lets_a_participant_come_back_elsewhere(address):
    client = joined(address, "pair")
    link = re.search(r'href="([^"]*/r/[^"]+)"', client.get("/p/pair/me").text)[1]
    other = browser(address)
    answer = other.get(link)
    assert [one.status_code for one in answer.history] == [303]
    assert str(answer.url).endswith("/p/pair")
    assert other.get("/p/pair/me.json").json() == client.get("/p/pair/me.json").json()
    assert browser(address).get("/p/pair/r/nobody").status_code == 403


def test_nobody_becomes_another_unasked(address):
    ann, bob = joined(address, "pair"), joined(address, "pair")
    link = re.search(r'href="([^"]*/r/[^"]+)"', ann.get("/p/pair/me").text)[1]
    assert [one.status_code for one in ann.get(link).history] == [303]  # one's own
    before, of_ann = bob.get("/p/pair/me.json").json(), ann.get("/p/pair/me.json").json()
    page = bob.get(link)
    assert page.history == []
    assert "This link is of another participant" in page.text
    assert bob.get("/p/pair/me.json").json() == before
    form = fields(page.text, link.removeprefix(address))
    assert bob.post(link, data={"csrf": "0" * 64}).status_code == 403
    assert bob.post(link, data=form).status_code == 200
    assert bob.get("/p/pair/me.json").json() == of_ann


def test_nobody_sends_forms_for_another(address):
    ann, bob = joined(address, "pair"), joined(address, "pair")
    of_ann = fields(ann.get("/p/pair").text, "/answer")
    of_bob = fields(bob.get("/p/pair").text, "/answer")
    # A page from elsewhere knows no token; that of somebody else is of no use.
    for csrf in ("", "0" * 64, of_bob["csrf"]):
        for path, more in (
            ("answer", {"answer": "left"}),
            ("undo", {}),
            ("erase", {"sure": "yes"}),
            ("propose", {"text": "x"}),
        ):
            assert ann.post(f"/p/pair/{path}", data=of_ann | more | {"csrf": csrf}).status_code == 403
    assert ann.post("/p/pair/answer", data=of_ann | {"shown": of_bob["shown"], "answer": "left"}).status_code == 404
    foreign = {"origin": "http://elsewhere.example", "sec-fetch-site": "cross-site"}
    assert browser(address).post("/p/pair/join", data={"agreed": "yes"}, headers=foreign).status_code == 403
    assert browser(address).post("/o/pair/sign-in", data={"token": "x"}, headers=foreign).status_code == 403


@pytest.mark.slow
def test_pages_of_the_organiser_are_the_organisers(place):
    address, host, tokens = place
    ann = joined(address, "pair")
    for path in ("items", "people", "settings", "report", "export/answers.csv"):
        assert ann.get(f"/o/pair/{path}").status_code == 403
    for token in (tokens["best"], "nothing", "ä"):
        assert ann.post("/o/pair/sign-in", data={"token": token}).status_code == 403
    ruler = browser(address)
    assert ruler.post("/o/pair/sign-in", data={"token": tokens["pair"]}).status_code == 200
    page = ruler.get("/o/pair/items").text
    assert SCRIPT not in page
    csrf = fields(page, "/o/pair/items")["csrf"]
    assert ruler.post("/o/pair/items", data={"names": "beer\n\n mate "}).status_code == 403  # without the form's token
    assert ruler.post("/o/pair/items", data={"names": "beer\n\n mate ", "csrf": csrf}).status_code == 200
    assert {"beer", "mate"} <= {item.name for item in host.poll("pair").items}
    proposed = "<b onclick=stop()>hot chocolate</b>"  # not much like any other, which would be asked about first
    ann.post("/p/pair/propose", data=fields(ann.get("/p/pair").text, "/propose") | {"text": proposed})
    number = next(item.number for item in host.poll("pair").items if item.name == proposed)
    assert ruler.post(f"/o/pair/items/{number}", data={"what": "refuse", "csrf": csrf}).status_code == 200
    assert ruler.get("/o/pair/people").status_code == 200
    table = ruler.get("/o/pair/export/answers.csv")
    assert table.text.startswith("user,criterion,left,right,winner")
    assert ruler.get("/o/pair/export/answers.parquet").content[:4] == b"PAR1"
    assert ruler.post("/o/pair/status", data={"status": "paused", "csrf": csrf}).status_code == 200
    assert "paused" in ann.get("/p/pair").text
    ruler.post("/o/pair/status", data={"status": "open", "csrf": csrf})
    told = fields(ruler.get("/o/pair/settings").text, "/settings")
    told |= {"question": "Which one?", "strategy": "random", "language": "de", "public": "yes", "ties": "yes",
             "undo": "yes", "skips": "yes", "proposals": "yes",
             "limit": "0", "own_ranking": "3", "retention_days": "7"}  # fmt: skip
    assert ruler.post("/o/pair/settings", data=told).status_code == 200
    assert host.poll("pair").settings.own_ranking == 3
    assert "7 Tage" in browser(address).get("/p/pair").text  # nobody asked for English
    ruler.post("/o/pair/sign-out", data={"csrf": csrf})
    assert ruler.get("/o/pair/items").status_code == 403


def test_a_poll_is_made_by_pasting_a_list(place):
    address, host, _ = place
    client = browser(address)
    said = {"question": "Which?", "items": "a\nb\n\nc", "kind": "pair", "strategy": "random", "limit": "0",
            "own_ranking": "0", "retention_days": "0", "language": "en"}  # fmt: skip
    assert client.post("/new", data=said | {"code": "guess"}).status_code == 403
    twice = client.post("/new", data=said | {"code": "the-code", "items": "a\na"})
    assert twice.status_code == 400
    assert "twice" in twice.text
    page = client.post("/new", data=said | {"code": "the-code"}).text
    token, name = re.search(r'id="made-token">([^<]+)<', page)[1], re.search(r'href="/o/([^"]+)"', page)[1]
    assert host.poll(name).is_organiser(token)
    assert client.get(f"/o/{name}/items").status_code == 200  # signed in by making it
    assert Poll.open(host.folder / f"{name}.db", background=False).settings.question == "Which?"


def test_every_answer_keeps_to_itself(address):
    client = joined(address, "pair")
    for path in ("/p/pair", "/p/nothing", "/api/polls/pair", "/api/polls/pair/board?criterion=x", "/static/poll.js"):
        headers = client.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
    cookie = next(one for one in client.cookies.jar if one.name == "participant-pair")
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "lax"
    page = client.get("/p/pair").text
    assert SCRIPT not in page
    assert "http://" not in page.replace(address, "")
    assert not re.search(r"\son\w+=|style=|javascript:", page)


def test_secrets_and_tokens_of_the_api(place):
    address, host, tokens = place
    client = browser(address, headers={"accept": "application/json"})
    paths = "/api/polls/pair"
    assert client.post(f"{paths}/participants", json={"consent": False}).status_code == 422
    who = [
        {"authorization": "Bearer " + client.post(f"{paths}/participants", json={"consent": True}).json()["secret"]}
        for _ in range(2)
    ]
    (question,) = client.post(f"{paths}/questions", headers=who[0]).json()
    said = {"shown": question["shown"], "answer": question["items"][0]["number"], "key": "k", "ask": 1}
    for headers, status in ((who[1], 404), ({}, 403), ({"authorization": "Bearer x"}, 403)):
        assert client.post(f"{paths}/answers", json=said, headers=headers).status_code == status
    told = client.post(f"{paths}/answers", json=said, headers=who[0])
    assert told.status_code == 201
    assert len(told.json()["questions"]) == 1
    number = told.json()["answer"]
    assert client.put(f"{paths}/answers/{number}", json={"answer": "tie"}, headers=who[1]).status_code == 404
    assert client.put(f"{paths}/answers/{number}", json={"answer": "tie"}, headers=who[0]).status_code == 200
    for verb, path in (("GET", "people"), ("GET", "outlook"), ("GET", "export/answers"), ("PUT", "status")):
        for headers in ({}, who[0], {"authorization": f"Bearer {tokens['best']}"}):
            answer = client.request(
                verb, f"{paths}/{path}", headers=headers, json={"status": "closed"} if verb == "PUT" else None
            )
            assert answer.status_code == 403, path
    ruler = {"authorization": f"Bearer {tokens['pair']}"}
    assert client.get(f"{paths}/people", headers=ruler).status_code == 200
    in_tiers = client.get(f"{paths}/outlook", params={"claim": "tiers"}, headers=ruler)
    is_one = host.poll("pair").board()["tier"].n_unique() == 1  # others may have answered meanwhile
    assert (in_tiers.status_code, "all items are in one tier" in in_tiers.text) == (400 if is_one else 200, is_one)
    rows = client.get(f"{paths}/export/participants", headers=ruler).json()
    assert client.delete(f"{paths}/participants/{rows[-1]['user'][1:]}", headers=ruler).status_code == 204
    assert client.delete(f"{paths}/me", headers=who[0]).status_code == 204
    assert client.get(f"{paths}/me", headers=who[0]).status_code == 403
    assert client.get("/api/polls/nothing").status_code == 404
    assert client.get("/api/openapi.json").status_code == 200


def test_the_cookie_alone_speaks_for_no_request_of_the_api(address):
    client = joined(address, "pair")
    assert client.post("/api/polls/pair/questions").status_code == 403
    csrf = fields(client.get("/p/pair").text, "/answer")["csrf"]
    assert client.post("/api/polls/pair/questions", headers={"x-form-token": csrf}).status_code == 200
    assert client.get("/api/polls/pair/me").status_code == 200
    for scheme in ("Basic x", "Bearer", "x", ""):
        refused = client.post("/api/polls/pair/questions", headers={"authorization": scheme})
        assert refused.status_code == 403, scheme


def test_the_cookie_of_the_organiser_does_not_last(place):
    address, _, tokens = place
    ruler = browser(address)
    set_by = ruler.post("/o/order/sign-in", data={"token": tokens["order"]}, follow_redirects=False).headers
    assert "max-age=604800" in set_by["set-cookie"].lower()


def test_signed_references_resume_and_open_ones_do_not(tmp_path):
    with made(tmp_path, pids="signed", name="signed") as poll:
        signature = poll.sign("panel 7")
    with made(tmp_path, pids="open", name="open"):
        pass
    with served(str(tmp_path / "poll.db")) as (address, host):

        def take_part(name, pid, sig=""):
            client = browser(address)
            page = client.get(f"/p/{name}", params={"pid": pid, "sig": sig}).text
            answer = client.post(f"/p/{name}/join", data=fields(page, "/join") | {"agreed": "yes"})
            return client, answer.status_code

        assert take_part("signed", "panel 7", "0" * 64)[1] == 403
        assert take_part("signed", "panel 8", signature)[1] == 403
        first, status = take_part("signed", "panel 7", signature)
        assert status == 200
        form = fields(first.get("/p/signed").text, "/answer")
        first.post("/p/signed/answer", data=form | {"answer": "left"})
        again, _ = take_part("signed", "panel 7", signature)
        assert len(again.get("/p/signed/me.json").json()["answers"]) == 1
        assert first.get("/p/signed/me.json").status_code == 403  # the secret before is worth nothing
        assert len(host.poll("signed").log.state.people) == 1
        take_part("open", "panel 7")
        take_part("open", "panel 7")
        assert len(host.poll("open").log.state.people) == 2
        hashed, plain = (
            host.poll("open").export("participants", show_pids=show)["pid"].to_list() for show in (False, True)
        )
        assert plain == ["panel 7"] * 2
        assert hashed[0] == hashed[1] != plain[0]


@pytest.mark.slow
def test_too_many_requests_are_refused(tmp_path):
    with made(tmp_path, name="x", items=[f"i{k}" for k in range(9)]):
        pass
    with served(str(tmp_path / "poll.db"), joins=3) as (address, _):
        client = joined(address, "x")
        statuses = [200]
        while statuses[-1] == 200 and len(statuses) < 36:  # the burst refills by two a second meanwhile
            form = fields(client.get("/p/x").text, "/answer")
            answer = client.post("/p/x/answer", data=form | {"answer": "left"})
            statuses.append(answer.status_code)
        assert statuses[1:11] == [200] * 10
        assert 429 in statuses
        for _ in range(2):
            joined(address, "x")
        page = browser(address).get("/p/x").text
        refused = browser(address).post("/p/x/join", data=fields(page, "/join") | {"agreed": "yes"})
        assert refused.status_code == 429
        assert refused.headers["retry-after"]


@pytest.mark.parametrize("start", ["", "/polls"])  # a proxy may take the path off, or leave it
def test_a_poll_below_a_path_of_the_site(tmp_path, start):
    with made(tmp_path, name="x"):
        pass
    with served(str(tmp_path / "poll.db"), root="/polls", is_secure=True) as (address, _):
        client = browser(address, follow_redirects=False)
        page = client.get(f"{start}/p/x").text
        assert 'action="/polls/p/x/join"' in page
        assert 'href="?lang=de"' in page
        answer = client.post(f"{start}/p/x/join", data=fields(page, "/join") | {"agreed": "yes"})
        assert answer.headers["location"] == "/polls/p/x"
        assert "path=/polls/p/x;" in answer.headers["set-cookie"].lower()
        assert "secure" in answer.headers["set-cookie"].lower()
        assert client.get(f"{start}/static/poll.css").status_code == 200


def test_rates_by_the_clock():
    now = [0.0]
    rate = Rate(2.0, 10.0, clock=lambda: now[0])
    for _ in range(10):
        rate.take("a")
    with pytest.raises(Refused):
        rate.take("a")
    rate.take("b")
    now[0] = 0.5
    rate.take("a")
    with pytest.raises(Refused):
        rate.take("a")


GERMAN = {"accept-language": "de"}


@pytest.mark.parametrize("error", [DataError("item THE SECRET is not known"), RuntimeError("THE SECRET")])
def test_a_mistake_of_the_server_is_told_to_its_log_alone(place, monkeypatch, caplog, error):
    address, _, _ = place
    client = joined(address, "pair")
    secret = re.search(r"/r/([\w-]+)", client.get("/p/pair/me").text)[1]

    def fails(*_args, **_more):
        raise error

    for name in ("ask", "tell_and_ask", "board"):
        monkeypatch.setattr(Poll, name, fails)
    with caplog.at_level(logging.ERROR):
        page = client.get("/p/pair", headers=GERMAN)
        called = client.post("/api/polls/pair/questions", headers={"authorization": f"Bearer {secret}"})
        assert client.get("/p/pair/results").status_code == 500
        assert client.get("/api/polls/pair/board").status_code == 500
    assert [page.status_code, called.status_code] == [500, 500]
    assert "Bei uns ist etwas schiefgegangen" in page.text
    assert 'href="/p/pair"' in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "SECRET" not in page.text + called.text
    lines = [record.getMessage() for record in caplog.records if record.name == "predilect.live"]
    assert len(lines) == 4
    assert all("THE SECRET" in line and "test_web.py" in line and "\n" not in line for line in lines)
    assert not any(secret in line for line in lines)


def test_refusals_are_said_in_the_language_of_the_page_with_a_way_back(place):
    address, host, _ = place
    client = joined(address, "best")
    csrf = fields(client.get("/p/best").text, "/answer")["csrf"]
    client.headers.update(GERMAN)
    shown = fields(client.get("/p/best").text, "/answer")["shown"]
    refused = [
        (client.get("/p/best/results"), 403, "Die Ergebnisse dieser Umfrage sind nicht öffentlich."),
        (client.get("/p/best/nothing"), 404, "Unter dieser Adresse gibt es nichts."),
        (client.get("/p/best/answer"), 405, "Das passt so nicht."),
        (client.get("/p/best/mine?criterion=x"), 422, "Das passt so nicht."),
        (client.post("/p/best/propose", data={"csrf": csrf, "text": "tea"}), 409, "„tea“ gibt es schon."),
        (client.post("/p/best/propose", data={"csrf": csrf, "text": " "}), 400, "Ein Vorschlag braucht einen Text."),
        (client.post("/p/best/propose", data={"csrf": csrf, "text": "a\x00"}), 422, "Das passt so nicht."),
        (client.post("/p/best/answer", data={"csrf": csrf, "shown": shown, "answer": "a\x00"}), 400, "Das passt so"),
        (client.post("/p/best/answer", data={"csrf": csrf, "shown": shown, "answer": "999"}), 400, "Das passt so"),
        (client.post("/p/best/undo", data={"csrf": csrf}), 409, "Es gibt keine Antwort"),
        (browser(address, headers={"accept": "text/html"} | GERMAN).post("/p/best/join"), 400, "Zustimmung"),
    ]
    host.poll("best").pause()
    refused.append((client.post("/p/best/undo", data={"csrf": csrf}), 409, "Die Umfrage ist unterbrochen."))
    host.poll("best").resume()
    for answer, status, said in refused:
        assert answer.status_code == status, answer.text
        told = re.search(r'<p role="status">(.*)</p>', answer.text)[1]
        assert said in told
        assert told[0].isupper() or told[0] == "„"
        assert told[-1] == "."
        assert '<a class="main" href="/p/best">Zurück zu den Fragen</a>' in answer.text
        assert '<html lang="de" dir="ltr">' in answer.text
    for path in ("/", "/p/nowhere", "/p", "//elsewhere.example", "/%5Celsewhere.example/x"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert "Benutzen Sie den Link, den Sie bekommen haben." in answer.text
        assert not re.search(r'href="(/[/\\]|[^"]*elsewhere)', answer.text)
    assert "Use the link" in browser(address).get("/").text
    assert "The results of this poll are not public." in joined(address, "best").get("/p/best/results").text


def test_who_is_erased_is_told_so_though_a_long_reader_holds_the_file(place, monkeypatch, caplog):
    address, host, _ = place
    ann, bob, eve = (joined(address, "pair") for _ in range(3))
    for client in (ann, eve):
        client.headers["accept-language"] = "en"
    n_people, real = len(host.poll("pair").log.state.people), Poll.erase

    def erase(poll, number, **more):
        real(poll, number, **more)
        raise OutputError("pair.db is in use by a long reader")

    monkeypatch.setattr(Poll, "erase", erase)
    page = ann.post("/p/pair/erase", data=fields(ann.get("/p/pair/me").text, "/erase") | {"sure": "yes"})
    assert page.status_code == 200
    assert "You are erased" in page.text
    assert "nothing could be written" not in page.text
    csrf = fields(bob.get("/p/pair").text, "/answer")["csrf"]
    assert bob.delete("/api/polls/pair/me", headers={"x-form-token": csrf}).status_code == 202
    assert len(host.poll("pair").log.state.people) == n_people - 2
    assert caplog.text.count("long reader") == 2

    def fails(poll, number, **more):
        raise OutputError("the disk is full")

    monkeypatch.setattr(Poll, "erase", fails)
    page = eve.post("/p/pair/erase", data=fields(eve.get("/p/pair/me").text, "/erase") | {"sure": "yes"})
    assert page.status_code == 503
    assert "Nothing can be kept at the moment" in page.text


def test_the_organiser_is_told_in_the_form_what_a_setting_cannot_be(place):
    address, host, tokens = place
    ruler = browser(address)
    ruler.post("/o/order/sign-in", data={"token": tokens["order"]})
    told = fields(ruler.get("/o/order/settings").text, "/settings")
    told |= {"question": "Which one?", "limit": "a", "own_ranking": "3", "retention_days": "0", "consent": "Mine."}
    answer = ruler.post("/o/order/settings", data=told)
    assert answer.status_code == 400
    assert "limit is a whole number" in answer.text
    assert "Mine." in answer.text
    assert host.poll("order").settings.consent == "Agreed, then."


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("a socket", "a socket", True),
    ],
)
def test_a_household_is_one_address(one, other, is_one):
    found = [address_of(Request({"type": "http", "client": (host, 1)})) for host in (one, other)]
    assert (found[0] == found[1]) == is_one


def test_numbers_are_for_whoever_watches(place, tmp_path):
    address, host, tokens = place
    for headers in ({}, {"authorization": "Bearer x"}, {"authorization": "Basic the-code"}):
        assert browser(address).get("/metrics", headers=headers).status_code == 403
    for name in tokens:
        host.poll(name)
    for token, n in (("the-code", len(host.names())), (tokens["pair"], 1)):
        told = browser(address).get("/metrics", headers={"authorization": f"Bearer {token}"}).text
        assert int(re.search(r"^predilect_polls_open (\d+)$", told, re.M)[1]) <= n


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("is_folder", [True, False])
def test_health_notices_that_a_poll_is_gone(tmp_path, caplog, is_open, is_folder):
    for name in ("one", "other"):
        with made(tmp_path / f"{name}.db", name=name):
            pass
    with served(str(tmp_path if is_folder else tmp_path / "one.db")) as (address, _):
        client = browser(address)
        if is_open:
            assert client.get("/p/one").status_code == 200
        assert client.get("/health").text == "ok\n"
        for file in tmp_path.glob("one.db*"):
            file.rename(file.with_suffix(".moved"))
        sick = client.get("/health")
        assert sick.status_code == 503
        assert sick.text == f"1 of {1 + is_folder} polls cannot be read\n"
        assert "one" in caplog.text
        (tmp_path / "one.db").write_bytes(b"no database at all" * 100)
        assert client.get("/health").status_code == 503


@pytest.mark.parametrize("n", [0, 2, pytest.param(60, marks=pytest.mark.slow)])  # people
def test_the_outlook_on_every_claim(tmp_path, n):
    with made(tmp_path, name="one") as poll:
        answered(poll, [f"person {k}" for k in range(n)], min(n, 8))
        poll.refit()
        ruler = {"authorization": f"Bearer {poll.token}"}
    with served(str(tmp_path / "poll.db")) as (address, _):

        def asked(**query):
            return httpx.get(f"{address}/api/polls/one/outlook", params=query, headers=ruler)

        for claim in ("best", "top", "tiers"):
            answer = asked(claim=claim)
            told = answer.json()
            if claim == "tiers" and n < 60:
                assert (answer.status_code, "all items are in one tier" in told["error"]) == (400, True)
                continue
            assert (answer.status_code, told["claim"], told["level"]) == (200, claim, 0.95)
            assert told["enough"] == (told["probability"] >= 0.95)
            named = list(chain.from_iterable(told["items"])) if claim == "tiers" else told["items"]
            assert len(named) == {"best": 1, "top": 3, "tiers": 5}[claim]
        assert asked().json() == asked(claim="best").json()
        assert asked(claim="worst").status_code == 422
        assert asked(criterion=1).status_code == 404
        assert httpx.get(f"{address}/api/polls/one/outlook").status_code == 403


def test_an_answer_that_cannot_be_taken_in_stops_nobody(tmp_path, monkeypatch, caplog):
    """It was acknowledged and is in the log; the poll goes on, and everybody who has to know is told."""
    with made(tmp_path, name="one") as poll:
        ruler = {"authorization": f"Bearer {poll.token}"}
    with served(str(tmp_path / "poll.db")) as (address, _):
        people = []
        for _ in range(2):
            secret = httpx.post(f"{address}/api/polls/one/participants", json={"consent": True}).json()["secret"]
            people.append({"authorization": f"Bearer {secret}"})
        row = fail_once(monkeypatch, "answered")
        for k in range(3):
            for headers in people:
                (question,) = httpx.post(f"{address}/api/polls/one/questions", headers=headers).json()
                told = {"shown": question["shown"], "answer": "left", "key": str(k), "ask": 1}
                answer = httpx.post(f"{address}/api/polls/one/answers", headers=headers, json=told)
                assert answer.status_code == 201
                assert answer.json()["questions"]
        health = httpx.get(f"{address}/health")
        assert health.status_code == 200
        assert health.text == f"ok\nleft out, as the log of this server says: row {row[0]}\n"
        assert len([one for one in caplog.messages if f"row {row[0]}, answered: a mistake of ours" in one]) == 1
        assert "\npredilect_rows_left_out 1\n" in httpx.get(f"{address}/metrics", headers=ruler).text
        page = browser(address, cookies={"organiser-one": ruler["authorization"][7:]}).get("/o/one").text
        assert re.search(rf"which cannot be read: {row[0]}\.", page)
        assert len(httpx.get(f"{address}/api/polls/one/export/answers", headers=ruler).json()) == 5
    monkeypatch.undo()
    with Poll.open(tmp_path / "poll.db", background=False) as mended:
        assert len(mended.export("answers")) == 6


def test_what_machines_ask(address):
    client = browser(address)
    assert client.get("/health").text == "ok\n"
    told = client.get("/metrics", headers={"authorization": "Bearer the-code"}).text
    assert re.search(r"^predilect_answers \d+$", told, re.M)
    assert all(re.fullmatch(r"\w+(\{\w+=\"\w+\"\})? [\d.e+-]+", line) for line in told.splitlines())
    assert client.post("/p/pair/join", content=b"x" * 1_000_001).status_code == 413


def test_personal_data_are_all_there_is(address):
    client = joined(address, "pair")
    kept = json.loads(client.get("/p/pair/me.json").text)
    assert set(kept) == {"question", "joined", "language", "answers", "questions_without_answer", "proposals"}
