"""Polls on the pages of other sites: frames, cookies in them, and calls of the API."""

from __future__ import annotations

import html
import re

import httpx
import pytest

from live.polls import made
from live.served import browser, fields, served
from predilect.errors import DataError
from predilect.live import Poll, Settings

CITY, OTHER = "https://city.example", "https://other.example"


@pytest.fixture(scope="module", params=["", "/polls"])
def place(request, tmp_path_factory):
    """A server behind TLS, below a path or not; a poll that a city may show, and one for nobody else."""
    folder, tokens = tmp_path_factory.mktemp("elsewhere"), {}
    for name, origins in (("city", [CITY]), ("plain", [])):
        with made(folder / f"{name}.db", name=name, origins=origins, question='Which "drink"?', proposals=True) as poll:
            tokens[name] = poll.token
    with served(str(folder), is_secure=True, root=request.param) as (address, host):
        yield address + request.param, host, tokens


def ancestors(answer):
    return re.search(r"frame-ancestors ([^;]*)$", answer.headers["content-security-policy"])[1]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([CITY, "http://LOCALHOST:8080/"], (CITY, "http://localhost:8080")),
        (["https://city.example:443", CITY, "http://xn--bcher-kva.example:80"], (CITY, "http://xn--bcher-kva.example")),
    ],
)
def test_sites_are_named_as_browsers_do(given, kept):
    assert Settings(question="Which?", origins=given).origins == kept


@pytest.mark.parametrize(
    "wrong",
    ["city.example", "ftp://city.example", "https://city.example/page", "https://*", "*", "https://a b", "https://",
     "https://city.example; script-src *", "https://a.example:99999", "https://user@a.example", "https://a'.example",
     "null", "https://a.example\nx", "https://büch.example"],
)  # fmt: skip
def test_what_is_no_site(wrong):
    with pytest.raises(DataError, match="origins are sites without a path"):
        Settings(question="Which?", origins=["https://b.example", wrong])


def test_pages_of_participants_alone_may_be_shown_where_the_poll_says_so(place):
    address, _, tokens = place
    for path in ("/p/city", "/p/city/results", "/p/city/me", "/p/city/nowhere"):
        told = httpx.get(address + path, headers={"accept": "text/html"})
        assert ancestors(told) in (CITY, "'none'")
        assert ancestors(told) == CITY or told.status_code in (403, 404)
    for path in ("/p/plain", "/o/city", "/new", "/p/nobody", "/health", "/api/polls/city"):
        assert ancestors(httpx.get(address + path, headers={"accept": "text/html"})) == "'none'"
    ruler = {"cookie": f"organiser-city={tokens['city']}", "accept": "text/html"}
    for path in ("", "/items", "/settings", "/people"):
        told = httpx.get(f"{address}/o/city{path}", headers=ruler, timeout=120)  # the first board may compile loops
        assert (told.status_code, ancestors(told)) == (200, "'none'")


def test_a_cookie_is_kept_in_frames_where_they_are_allowed_and_nowhere_else(place):
    address, _, tokens = place
    for name, way in (("city", "SameSite=none; Secure; Partitioned"), ("plain", "SameSite=lax; Secure")):
        form = fields(httpx.get(f"{address}/p/{name}").text, "/join") | {"agreed": "yes"}
        for cookie in httpx.post(f"{address}/p/{name}/join", data=form).headers.get_list("set-cookie"):
            assert cookie.endswith(way)
        (language,) = httpx.get(f"{address}/p/{name}?lang=de").headers.get_list("set-cookie")
        assert language.endswith(way)
        signed_in = httpx.post(f"{address}/o/{name}/sign-in", data={"token": tokens[name]})
        assert all(one.endswith("SameSite=lax; Secure") for one in signed_in.headers.get_list("set-cookie"))


def test_without_tls_frames_keep_no_cookies(tmp_path):
    with made(tmp_path, name="x", origins=[CITY]):
        pass
    with served(str(tmp_path / "poll.db")) as (address, _):
        form = fields(httpx.get(f"{address}/p/x").text, "/join") | {"agreed": "yes"}
        told = httpx.post(f"{address}/p/x/join", data=form)
        assert all(one.endswith("SameSite=lax") for one in told.headers.get_list("set-cookie"))
        assert told.headers["location"] == "/p/x?joined=1"


def test_whose_browser_keeps_no_cookie_is_shown_a_way_out(place):
    address, host, _ = place
    page = httpx.get(f"{address}/p/city?joined=1")
    assert "keeps no cookie in this frame" in page.text
    assert re.search(r'<a class="main" href="[^"]*/p/city" target="_blank"', page.text)
    alone = {"sec-fetch-dest": "document"}  # who was sent the address of a page
    assert "keeps no cookie" not in httpx.get(f"{address}/p/city?joined=1", headers=alone).text
    form = fields(httpx.get(f"{address}/p/city").text, "/join") | {"agreed": "yes"}
    told = httpx.post(f"{address}/p/city/join", data=form, headers=alone)
    assert told.headers["location"].endswith("/p/city")
    secret = host.poll("city").join(secret="one who came back") and "one who came back"
    page = httpx.get(f"{address}/p/city?joined=1", headers={"cookie": f"participant-city={secret}"})
    assert "question" in page.text
    assert "keeps no cookie" not in page.text


def test_scripts_of_named_sites_may_call_what_participants_do(place):
    address, _, _ = place
    api = f"{address}/api/polls/city"
    asking = {
        "origin": CITY,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
    }
    told = httpx.options(f"{api}/answers", headers=asking)
    assert told.status_code == 204
    assert told.headers["access-control-allow-methods"] == "POST"
    assert told.headers["access-control-allow-headers"] == "Authorization, Content-Type"
    assert httpx.options(f"{api}/me", headers=asking).headers["access-control-allow-methods"] == "DELETE, GET"
    joining = httpx.post(f"{api}/participants", json={"consent": True}, headers={"origin": CITY})
    secret = {"authorization": f"Bearer {joining.json()['secret']}"}
    for answer in (
        joining, httpx.post(f"{api}/questions", headers={"origin": CITY, **secret}),
        httpx.post(f"{api}/questions", headers={"origin": CITY}),  # refused, and readable
        httpx.post(f"{api}/answers", json={"shown": "x"}, headers={"origin": CITY, **secret}),
    ):  # fmt: skip
        assert answer.headers["access-control-allow-origin"] == CITY
        assert "access-control-allow-credentials" not in answer.headers
        assert answer.headers["vary"] == "Origin"
    assert [answer.status_code for answer in (joining, answer)] == [201, 422]


def test_nobody_else_may_and_nothing_of_the_organiser(place):
    address, _, tokens = place
    ruler = {"authorization": f"Bearer {tokens['city']}"}
    calls = [("GET", "/api/polls/city/people", CITY, 200), ("GET", "/api/polls/city", OTHER, 200),
             ("GET", "/api/polls/plain", CITY, 200), ("GET", "/api/polls/nobody", CITY, 404),
             ("GET", "/p/city", CITY, 200), ("GET", "/api/polls/city", "null", 200),
             ("OPTIONS", "/api/polls/city/status", CITY, 405), ("OPTIONS", "/api/polls/city", OTHER, 405),
             ("OPTIONS", "/api/polls/city/nowhere", CITY, 404)]  # fmt: skip
    for method, path, origin, status in calls:
        headers = {"origin": origin} | (ruler if path.endswith("/people") else {})
        answer = httpx.request(method, address + path, headers=headers)
        assert answer.status_code == status, path
        assert "access-control-allow-origin" not in answer.headers


def test_the_organiser_names_sites_and_copies_what_they_write(place):
    address, host, tokens = place
    ruler = browser(address, follow_redirects=False)
    headers = {"cookie": f"organiser-plain={tokens['plain']}", "accept": "text/html"}  # cookies are for TLS alone
    page = ruler.get("/o/plain/settings", headers=headers).text
    assert 'id="snippet"' not in page
    said = fields(page, "/settings") | {"question": 'Which "drink"?', "limit": "0", "own_ranking": "3",
                                        "retention_days": "0", "strategy": "random"}  # fmt: skip
    wrong = ruler.post("/o/plain/settings", data=said | {"origins": "city.example"}, headers=headers)
    assert wrong.status_code == 400
    assert 'value="city.example"' in wrong.text
    told = ruler.post("/o/plain/settings", data=said | {"origins": f"{CITY}, {OTHER}"}, headers=headers)
    assert told.status_code == 303
    assert host.poll("plain").settings.origins == (CITY, OTHER)
    page = ruler.get("/o/plain/settings", headers=headers).text
    snippet = html.unescape(re.search(r'<code id="snippet">(.*?)</code>', page)[1])
    assert snippet.startswith(f'<iframe src="{address}/p/plain" title="Which &quot;drink&quot;?" ')
    assert f'value="{CITY} {OTHER}"' in page
    ruler.post("/o/plain/settings", data=said | {"origins": " "}, headers=headers)
    assert host.poll("plain").settings.origins == ()


def test_settings_that_were_written_before_there_were_sites_are_read(tmp_path):
    told = Settings(question="Which?").to_dict()
    del told["origins"]
    assert Settings.of(told).origins == ()
    with made(tmp_path, origins=[CITY]):
        pass
    with Poll.open(tmp_path / "poll.db", background=False) as again:
        assert again.settings.origins == (CITY,)
