"""The pages of a poll in a real browser: whole paths by keyboard, on a phone, without script; accessibility."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs predilect[live]")
pytest.importorskip("sqlalchemy", reason="needs predilect[live]")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

from live.polls import answered, made  # noqa: E402
from live.served import served  # noqa: E402
from outside.looked import check  # noqa: E402

pytestmark = pytest.mark.slow
ITEMS = [
    "A library that is open on Sundays", "<img src=x onerror=alert(1)>", "פארק חדש ליד הנהר", "More buses after ten",
    {"name": "Trees in every street", "attributes": {"cost": "2 million", "begins": "2027"}},
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server with a poll of each kind; address, host and organisers' tokens."""
    folder, tokens = tmp_path_factory.mktemp("browser"), {}
    for kind in ("pair", "best", "best-worst", "order"):
        told = {"name": kind, "kind": kind, "proposals": True, "public": True, "own_ranking": 2,
                "question": "Which idea?",
                "consent": "We ask for a study.", "instruction": "There is no wrong answer."}  # fmt: skip
        with made(folder / f"{kind}.db", ITEMS, **told) as poll:
            tokens[kind] = poll.token
            answered(poll, [f"p{k}" for k in range(4)], 3)
    told = {"at_once": True, "limit": 3, "proposals": True, "public": True, "own_ranking": 2}
    with made(folder / "once.db", ITEMS, name="once", question="Which idea?", consent="For a *study*.", **told) as poll:
        tokens["once"] = poll.token
        poll.edit_item(
            ITEMS[0], description="Why:\n\n- *books*\n- <b onclick=alert(3)>b</b>", link="https://a.example/b"
        )
        answered(poll, [f"p{k}" for k in range(6)], 3)
    with served(str(folder)) as (address, host):
        yield address, host, tokens


@pytest.fixture
def opened(browser, place):
    """A page of somebody new, as a function of width, colours and script; what it asked for is kept."""
    contexts = []

    def open_page(width=1280, colours="light", script=True, language="en"):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=colours, java_script_enabled=script,
            locale=language, base_url=place[0],
        )  # fmt: skip
        contexts.append(context)
        context.set_default_timeout(60_000)  # the first board may compile loops
        page = context.new_page()
        page.asked, page.wrong = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("dialog", lambda dialog: page.wrong.append(dialog.message))
        page.on("console", lambda said: page.wrong.append(said.text) if said.type == "error" else None)
        return page

    yield open_page
    for context in contexts:
        context.close()


A_GLANCE = 450  # milliseconds after which a question may be answered


def tab_to(page, selector):
    """Move the focus by Tab until it is on an element."""
    for _ in range(60):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def join(page, kind):
    page.goto(f"/p/{kind}")
    tab_to(page, "input[name=agreed]")
    page.keyboard.press("Space")
    tab_to(page, "button.main")
    page.keyboard.press("Enter")
    page.wait_for_selector("form.question")


@pytest.mark.parametrize(("width", "colours"), [(360, "light"), (1280, "dark")])
def test_a_participant_goes_the_whole_way_by_keyboard(opened, place, width, colours):
    address, host, _ = place
    page = opened(width, colours)
    page.goto("/p/pair")
    assert page.locator("h1").inner_text() == "Which idea?"
    check(page, address, width)
    join(page, "pair")
    check(page, address, width)
    progress = page.locator("#progress")
    # Arrow keys answer at once: what comes next was in the page.
    for n, key in enumerate(("ArrowLeft", "ArrowRight", "ArrowDown"), 1):
        before = page.locator("#now form").get_attribute("data-shown")
        page.wait_for_timeout(A_GLANCE)
        page.keyboard.press(key)
        page.wait_for_selector(f"#now form:not([data-shown='{before}'])")
        page.wait_for_selector(f"text=Answered: {n}")
    page.keyboard.press("Backspace")
    page.wait_for_selector("text=Answered: 2")
    # And by Tab alone.
    tab_to(page, "button[value=skip]")
    page.wait_for_timeout(A_GLANCE)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Answered: 3")
    assert progress.inner_text().startswith("Answered: 3")
    tab_to(page, "a[href$='/mine']")
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.bars")
    assert page.locator("ol.bars li").count() == 5
    check(page, address, width)
    page.goto("/p/pair/results")
    check(page, address, width)
    for summary in page.locator("main summary").all():  # numbers, and how to share
        summary.press("Enter")
    check(page, address, width)
    for cell in page.locator(
        "ol.bars :is(li, svg, p), table.board tbody :is(td, th, svg)"
    ).all():  # whole, on a phone too
        box = cell.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
    page.goto("/p/pair/me")
    check(page, address, width)
    link = page.locator(".link a").get_attribute("href")
    other = opened(width, colours)
    other.goto(link)
    other.wait_for_selector("form.question")
    assert "/r/" not in other.url
    page.goto("/p/pair")
    n_people = len(host.poll("pair").log.state.people)
    tab_to(page, "details:has(#text) summary")
    page.keyboard.press("Enter")
    tab_to(page, "#text")
    page.keyboard.type("<script>alert(2)</script>")
    tab_to(page, "form[action$='/propose'] button")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Thank you")
    page.goto("/p/pair/me")
    tab_to(page, "input[name=sure]")
    page.keyboard.press("Space")
    tab_to(page, "form[action$='/erase'] button")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Nothing of yours is kept")
    assert len(host.poll("pair").log.state.people) == n_people - 1


@pytest.mark.parametrize("kind", ["best", "best-worst", "order"])
@pytest.mark.parametrize("script", [True, False])
def test_sets_are_answered(opened, place, kind, script):
    address, host, _ = place
    page = opened(360, script=script)
    page.goto(f"/p/{kind}")
    page.locator("input[name=agreed]").check()
    page.locator("button.main").click()
    page.wait_for_selector("form.question")
    if script:
        check(page, address, 360)
    n = host.poll(kind).log.state.n_events
    page.wait_for_timeout(A_GLANCE)
    if kind == "best":
        page.locator("#now button.card").nth(1).click()
    elif kind == "best-worst":
        page.locator("#now input[name=best]").nth(0).check()
        page.locator("#now input[name=worst]").nth(3).check()
        page.locator("#now button.main").click()
    else:
        for place_of, one in enumerate(page.locator("#now select").all(), 1):
            one.select_option(str(place_of))
        page.locator("#now button.main").click()
    page.wait_for_selector("text=Answered: 1")
    assert host.poll(kind).log.state.n_events == n + 1


def test_a_participant_needs_no_script(opened, place):
    page = opened(360, script=False, language="de-DE")
    page.goto("/p/pair")
    page.locator("input[name=agreed]").check()
    page.get_by_role("button", name="Teilnehmen").click()
    for n in range(1, 3):
        page.locator("button.card").first.click()
        assert page.locator("#progress").inner_text() == f"Beantwortet: {n}"
    page.get_by_role("button", name="Letzte Antwort zurücknehmen").click()
    assert page.locator("#progress").inner_text() == "Beantwortet: 1"
    page.get_by_role("link", name="English").click()
    page.goto("/p/pair")
    assert page.locator("#progress").inner_text() == "Answered: 1"


def hold(page, key):
    for _ in range(15):
        page.keyboard.down(key)  # all but the first are repeats
        page.wait_for_timeout(33)
    page.keyboard.up(key)


def click_twice(page, pause):
    box = page.locator("#now button.card").first.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    for count in (1, 2):
        page.mouse.down(click_count=count)
        page.mouse.up(click_count=count)
        page.wait_for_timeout(pause)


def press_often(page):
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(30)


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(
    "by_accident",
    [
        lambda page: click_twice(page, 10),
        lambda page: click_twice(page, 200),
        lambda page: page.locator("#now button.card").first.dblclick(),
        lambda page: hold(page, "ArrowLeft"),
        lambda page: hold(page, "Enter"),
        press_often,
    ],
    ids=["two clicks", "two clicks with a pause", "double click", "arrow held", "Enter held", "many arrows"],
)
def test_nobody_answers_what_they_have_not_seen(opened, place, script, by_accident):
    """A double click, a key that is held, or the next click on the same place answers one question."""
    _, host, _ = place
    page = opened(script=script)
    page.goto("/p/pair")
    page.locator("input[name=agreed]").check()
    page.locator("button.main").click()
    page.wait_for_selector("form.question")
    page.wait_for_timeout(A_GLANCE)
    page.locator("#now button.card").first.focus()
    n = host.poll("pair").log.state.n_events
    by_accident(page)
    page.wait_for_timeout(A_GLANCE)
    page.wait_for_load_state()
    assert host.poll("pair").log.state.n_events - n <= 1
    page.locator("#now button.card").first.click()  # and the next one is there to be answered
    page.wait_for_load_state()
    page.wait_for_timeout(A_GLANCE)
    assert 1 <= host.poll("pair").log.state.n_events - n <= 2


def test_the_time_on_the_screen_is_counted_from_the_swap(opened, place):
    page = opened()
    join(page, "pair")
    sent = []
    page.on("request", lambda request: sent.append(request.post_data) if request.url.endswith("/answer") else None)
    for pause in (900, 500):
        page.wait_for_timeout(pause)
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(50)
    times = [int(re.search(r"shown_ms=(\d+)", one)[1]) for one in sent]
    assert len(times) == 2
    assert times[0] >= 900
    assert 500 <= times[1] < times[0] + 400


def test_an_answer_that_cannot_be_sent_is_shown_again(opened, place):
    page = opened()
    join(page, "pair")
    shown = page.locator("#now form").get_attribute("data-shown")
    page.route("**/answer", lambda route: route.abort())
    page.wait_for_timeout(A_GLANCE)
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#wrong:not(:empty)")
    assert page.locator("#now form").get_attribute("data-shown") == shown
    page.unroute("**/answer")
    page.wait_for_timeout(A_GLANCE)
    page.locator("#now button[value=left]").click()
    page.wait_for_selector("text=Answered: 1")


@pytest.mark.parametrize(("width", "colours"), [(360, "dark"), (1280, "light")])
def test_an_organiser_goes_the_whole_way_by_keyboard(opened, place, width, colours):
    address, host, tokens = place
    page = opened(width, colours)
    page.goto("/o/best")
    check(page, address, width)
    tab_to(page, "#token")
    page.keyboard.type(tokens["best"])
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.bars")
    check(page, address, width)
    assert page.locator("ol.bars li").count() == len(host.poll("best").log.state.active())
    tab_to(page, "a[href$='/items']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#names")
    check(page, address, width)
    tab_to(page, "#names")
    name = f"Benches in the park, {width}"
    page.keyboard.type(name)
    tab_to(page, "form[action$='/items'] button")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text={name}")
    for path in ("people", "settings", ""):
        page.goto(f"/o/best/{path}".rstrip("/"))
        check(page, address, width)
    tab_to(page, "button[name=status][value=paused]")
    page.keyboard.press("Enter")
    page.wait_for_selector("button[name=status][value=open]")
    assert host.poll("best").status == "paused"
    tab_to(page, "button[name=status][value=open]")
    page.keyboard.press("Enter")
    page.wait_for_selector("button[name=status][value=paused]")
    page.goto("/o/best/report")
    assert page.locator("h1").inner_text() == "Which idea?"
    assert page.wrong == []
    assert page.locator("table.sortable thead button").count() > 0  # its script runs, and its style is there
    assert page.evaluate("getComputedStyle(document.body).margin") == "0px"


def test_a_poll_is_made_on_the_pages_and_its_board_is_live(opened, place):
    _, host, _ = place
    page = opened()
    page.goto("/new")
    page.locator("#code").fill("the-code")
    page.locator("#question").fill("Which drink?")
    page.locator("#items").fill("tea\nmilk\n\njuice\n")
    page.locator("#strategy").select_option("random")
    page.get_by_role("button", name="Create").click()
    token = page.locator("#made-token").inner_text()
    name = re.search(r"/o/(\w+)", page.get_by_role("link", name="Organiser").get_attribute("href"))[1]
    assert host.poll(name).is_organiser(token)
    page.get_by_role("link", name="Organiser").click()
    page.wait_for_selector("text=0 answers of 0 people")
    answered(host.poll(name), ["ann"], 1)
    page.wait_for_selector("text=1 answer of 1 person", timeout=15_000)


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(("width", "colours"), [(390, "dark"), (1280, "light")])
def test_a_draft_is_previewed_set_and_opened_by_somebody_invited(opened, place, width, colours, script):
    address, host, _ = place
    page = opened(width, colours, script)

    def look(page):
        if script:  # which axe needs
            check(page, address, width)

    page.goto("/new")
    page.locator("#code").fill("the-code")
    page.locator("#question").fill("Which drink?")
    page.locator("#items").fill("tea\nmilk\njuice\n")
    page.get_by_label("Begin as a draft").check()
    for summary in page.locator("summary").all():
        summary.click()
    page.locator("#opens").fill("2090-03-01 09:00 Europe/Berlin")
    look(page)
    page.get_by_role("button", name="Create").click()
    name = re.search(r"/o/(\w+)", page.get_by_role("link", name="Organiser").get_attribute("href"))[1]
    page.goto(f"/o/{name}")
    assert re.search(r"Wednesday, 1 March 2090.* 09:00 \(Europe/Berlin\)", page.locator("main").inner_text())
    page.get_by_role("link", name="Preview").click()
    look(page)
    assert page.locator("form.question button.card").first.is_disabled()
    page.goto(f"/o/{name}/settings")
    look(page)
    page.get_by_label("Everybody may see the board").check()
    page.get_by_label("Offer “I cannot say”").uncheck()
    page.locator("#criteria").fill("cheap\ngood")
    page.get_by_role("button", name="Save").click()
    told = host.poll(name).settings
    assert (told.public, told.skips, told.criteria, told.ties) == (True, False, ("cheap", "good"), True)
    page.goto(f"/o/{name}/organisers")
    page.locator("#name").fill("Zoë")
    page.locator("#role").select_option("organiser")
    page.get_by_role("button", name="Make a link").click()
    look(page)
    link = page.locator("#made-link").inner_text()
    zoe = opened(width, colours, script)
    zoe.goto(f"/p/{name}")
    assert "has not begun" in zoe.locator("main").inner_text()
    look(zoe)
    zoe.goto(link)
    look(zoe)
    zoe.get_by_role("button", name="Sign in").click()
    zoe.get_by_role("button", name="Open", exact=True).click()
    zoe.wait_for_selector("button[name=status][value=paused]")
    assert host.poll(name).status == "open"
    zoe.goto(f"/o/{name}/organisers")
    look(zoe)
    assert "Zoë" in zoe.locator("tr", has_text="opened").inner_text()
    page.goto(f"/o/{name}/organisers")
    page.get_by_role("button", name="Take the link back").click()
    assert zoe.goto(f"/o/{name}/items").status == 403


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(("width", "colours"), [(390, "light"), (1280, "dark")])
def test_somebody_answers_at_once_says_why_and_is_thanked(opened, place, width, colours, script):
    address, host, _ = place
    page = opened(width, colours, script)

    def look():
        if script:
            check(page, address, width)

    page.goto("/p/once")
    look()
    people = host.poll("once").log.state.people
    n = len(people)
    page.wait_for_timeout(A_GLANCE)
    page.locator("#now button.card").first.click()
    page.wait_for_selector("text=Answered: 1 of 3")
    assert len(people) == n + 1
    look()
    page.wait_for_timeout(A_GLANCE)
    page.locator("#now button.card").last.click()
    page.wait_for_selector("text=Answered: 2 of 3")
    page.wait_for_timeout(A_GLANCE)
    page.locator("#now summary").click()
    look()
    page.locator("button[value='skip:neither']").click()
    page.wait_for_selector("text=You answered 3 questions")
    assert [one.reason for one in people[max(people)].answers.values()] == ["", "", "neither"]
    look()
    page.locator("#text").fill("A libary that opens on sundays")
    page.locator("form[action$='/propose'] button").click()
    page.wait_for_selector(f"text={ITEMS[0]}")
    look()
    page.locator("form[action$='/propose'] button").click()
    page.wait_for_selector("text=Thank you")
    page.goto("/p/once/results")
    assert page.locator(".beside").count() == 5
    look()


@pytest.mark.parametrize(("width", "colours"), [(390, "dark"), (1280, "light"), (1920, "dark")])
def test_the_room_follows_by_itself_and_what_is_open_stays_so(opened, place, width, colours):
    address, host, tokens = place
    page = opened(width, colours)
    page.goto("/p/once/room")
    check(page, address, width)
    assert page.locator("img.code").evaluate("one => one.naturalWidth") > 100
    n = page.locator("#live [role=status]").inner_text()
    answered(host.poll("once"), [f"{width} new"], 2)
    page.wait_for_function("n => document.querySelector('#live [role=status]').innerText !== n", arg=n)
    page.goto("/o/once")
    page.locator("#token").fill(tokens["once"])
    page.keyboard.press("Enter")
    page.locator("#live summary").press("Enter")
    answered(host.poll("once"), [f"{width} newer"], 2)
    n = page.locator("#live [role=status]").inner_text()
    page.wait_for_function("n => document.querySelector('#live [role=status]').innerText !== n", arg=n)
    assert page.locator("#live details").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.matches('#live summary')")
    check(page, address, width)


@pytest.mark.parametrize(("width", "script"), [(390, True), (1280, True), (390, False)])
def test_an_organiser_mends_and_merges_items(opened, place, width, script):
    address, host, tokens = place
    poll = host.poll("once")
    page = opened(width, script=script)
    page.goto("/o/once")
    page.locator("#token").fill(tokens["once"])
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.bars")
    (number,) = poll.add_items([f"<i>More</i> busses after {width} {script}"])
    page.goto("/o/once/items")
    page.locator(f"a[href$='/items/{number}']").click()
    page.wait_for_selector("#description")
    if script:
        check(page, address, width)
    page.locator("#name").fill(f"More buses after {width} {script}")
    page.locator("#description").fill("*Why* <script>alert(4)</script>")
    page.get_by_role("button", name="Save").click()
    page.wait_for_selector(f"text=More buses after {width} {script}")
    page.goto(f"/o/once/items/{number}")
    page.locator("form:has(input[name=number][value='4']) button").click()
    page.wait_for_selector("text=merged into")
    assert poll.items[number - 1].into == 4
    if script:
        check(page, address, width)
    page.locator(f"form[action$='/items/{number}'] button[value=part]").click()
    page.wait_for_load_state()
    assert poll.items[number - 1].into is None
    poll.retire(number)
    poll.change(limit=0)
    for _ in range(14):
        for one in poll.ask(f"hasty {width} {script}"):
            poll.tell(f"hasty {width} {script}", one.shown, "left", shown_ms=200)
    poll.change(limit=3)
    page.goto("/o/once/people")
    assert page.locator("ol.bars .beside").count() == len(poll.log.state.active())
    if script:
        check(page, address, width)


@contextmanager
def another_site(folder):
    """Address of a site that serves a folder, which browsers take for another one than that of the polls."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join(30)


def given(poll):
    """Answers of a poll, by their participants."""
    poll.log.refresh()
    return {number: len(one.answers) for number, one in poll.log.state.people.items()}


@pytest.mark.parametrize("kind", ["pair", "best"])
def test_a_front_end_of_ones_own_is_what_the_documentation_shows(browser, tmp_path, kind):
    code = (Path(__file__).parents[2] / "docs/howto/own-poll.html").read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 80
    (site := tmp_path / "site").mkdir()
    with another_site(site) as origin:
        with made(tmp_path, ITEMS, name="x", kind=kind, origins=[origin], consent="For a study.", limit=4) as poll:
            pass
        with served(str(tmp_path / "poll.db")) as (address, host):
            own = code.replace("https://polls.example.org/api/polls/NAME", f"{address}/api/polls/x")
            (site / "index.html").write_text(own, encoding="utf-8")
            context = browser.new_context(viewport={"width": 360, "height": 800})
            context.set_default_timeout(60_000)
            page, wrong = context.new_page(), []
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("dialog", lambda dialog: wrong.append(dialog.message))
            page.goto(origin)
            page.wait_for_selector("text=For a study.")
            assert axe.Axe().run(page).response["violations"] == []
            page.get_by_role("button", name="I agree").click()
            poll, n = host.poll("x"), 2 if kind == "pair" else 4
            page.wait_for_selector(f"button:nth-child({n + 1})")
            page.locator("button:enabled").first.click()
            wait_for(page, lambda: list(given(poll).values()) == [1])
            page.get_by_role("button", name="I cannot say").click()
            wait_for(page, lambda: list(given(poll).values()) == [2])
            page.reload()  # as the same participant
            page.wait_for_selector("button:enabled")
            page.route("**/answers", lambda route: route.abort())
            page.locator("button:enabled").nth(1).click()
            page.wait_for_selector("text=Please try again")
            page.unroute("**/answers")
            page.locator("button:enabled").nth(1).dblclick()
            wait_for(page, lambda: list(given(poll).values()) == [3])
            page.wait_for_timeout(A_GLANCE)
            page.locator("button:enabled").first.click()
            page.wait_for_selector("text=Thank you!")
            assert list(given(poll).values()) == [4]
            (somebody,) = poll.log.state.people.values()
            assert all(one.shown_ms >= A_GLANCE - 100 for one in somebody.answers.values())
            assert wrong == []
            poll.change(origins=[])  # and whoever is named no more is kept out
            page.reload()
            page.wait_for_selector("#said:not(:empty)")
            assert page.locator("button").count() == 0
            context.close()


def wait_for(page, holds):
    for _ in range(600):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it does not come true")


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("is_secure", "is_named"), [(True, True), (False, True), (True, False)])
def test_a_poll_is_answered_in_a_frame_of_a_site_that_is_named(browser, tmp_path, is_secure, is_named, at_once):
    (site := tmp_path / "site").mkdir()
    with another_site(site) as origin:
        origins = [origin] if is_named else ["https://city.example"]
        with made(tmp_path, ITEMS, name="x", origins=origins, question="Which idea?", at_once=at_once):
            pass
        with served(str(tmp_path / "poll.db"), is_secure=is_secure) as (address, host):
            snippet = f'<iframe src="{address}/p/x" title="Which idea?" width="100%" height="800"></iframe>'
            (site / "index.html").write_text(f"<!DOCTYPE html><p>Our city</p>{snippet}", encoding="utf-8")
            context = browser.new_context(viewport={"width": 800, "height": 900})
            context.set_default_timeout(60_000)
            page, refused = context.new_page(), []
            page.on("console", lambda said: refused.append(said.text) if "frame-ancestors" in said.text else None)
            page.goto(origin)
            frame, poll = page.frame_locator("iframe"), host.poll("x")
            if not is_named:
                wait_for(page, lambda: refused)
                assert frame.locator("form").count() == 0
                context.close()
                return
            if at_once:
                page.wait_for_timeout(A_GLANCE)
                frame.locator("#now button.card").first.click()
            else:
                frame.locator("input[name=agreed]").check()
                frame.locator("button.main").click()
            if not is_secure:  # no browser keeps a cookie there; whoever comes is told, and can get out
                frame.get_by_text("keeps no cookie in this frame").wait_for()
                with context.expect_page() as alone:
                    frame.get_by_role("link", name="Open the poll").click()
                alone.value.wait_for_selector("input[name=agreed], #now button.card")
                context.close()
                return
            for n in range(1 if at_once else 0, 3):
                frame.get_by_text(f"Answered: {n}").wait_for()
                page.wait_for_timeout(A_GLANCE)
                frame.locator("#now button.card").first.click()
            frame.get_by_text("Answered: 3").wait_for()
            page.reload()
            frame.get_by_text("Answered: 3").wait_for()
            assert list(given(poll).values()) == [3]
            context.close()
