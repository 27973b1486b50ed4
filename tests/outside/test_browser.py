"""The page of a report in a real browser: its script, its accessibility, and that it asks for nothing else."""

from __future__ import annotations

from importlib.resources import files

import pytest

from cli.running import run

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """The report of the bundled votes."""
    example, place = files("predilect") / "examples" / "llmfao", tmp_path_factory.mktemp("browser")
    votes = (example / "comparisons.csv.gz", "--map", f"{example / 'items.csv'}:model")
    ran = run("rank", *votes, "--personal", "yes", "-o", place / "out")
    assert ran.exit_code == 0, ran.output
    assert run("report", place / "out", "-o", place / "board.html").exit_code == 0
    return place / "board.html"


@pytest.fixture
def opened(browser, page_file):
    """The page as a function of width and colours, with what it asked for and what it said of errors."""
    contexts = []

    def open_page(width=1400, colours="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.wrong = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("console", lambda said: page.wrong.append(said.text) if said.type == "error" else None)
        page.goto(page_file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_the_page_is_accessible_at_every_width_and_asks_for_nothing(opened, page_file, width, colours):
    page = opened(width, colours)
    assert page.asked == [page_file.as_uri()]
    assert page.wrong == []
    # Nothing is wider than the screen, but for tables that scroll within themselves.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.Axe().run(page).response["violations"]
    told = [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300]) for one in found]
    assert told == []


def test_every_chart_is_whole_on_a_phone_and_can_be_read(opened):
    page = opened(390)
    charts = page.locator("svg.chart:visible")
    assert charts.count() >= 4
    for box in (one.bounding_box() for one in charts.all()):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.evaluate(
        "[...document.querySelectorAll('figure .scroll')].every(one => one.scrollWidth <= one.clientWidth)"
    )
    board = charts.first
    assert board.evaluate("one => one.getBoundingClientRect().width / one.viewBox.baseVal.width") > 0.9
    assert board.get_attribute("aria-label") == opened().locator("svg.chart:visible").first.get_attribute("aria-label")


def test_the_colours_follow_the_reader(opened):
    colour = "getComputedStyle(document.body).backgroundColor"
    assert opened(colours="dark").evaluate(colour) != opened(colours="light").evaluate(colour)


def test_the_board_is_sorted_and_searched(opened):
    page = opened()
    board = page.locator("table.sortable").first
    heads = [text.strip() for text in board.locator("thead th").all_inner_texts()]
    score = heads.index("Score")

    def scores():
        cells = board.locator(f"tbody tr:visible >> css=:is(td,th):nth-child({score + 1})")
        return [float(text.replace("−", "-")) for text in cells.all_inner_texts()]

    before = scores()
    assert before == sorted(before, reverse=True)
    button = board.get_by_role("button", name="Score", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    once = scores()
    page.keyboard.press("Enter")
    twice = scores()
    assert sorted([once, twice]) == sorted([before, before[::-1]])
    assert board.locator("th[aria-sort]").count() == 1
    search = page.get_by_label("Search items").first
    search.fill("gpt")
    names = board.locator("tbody tr:visible th").all_inner_texts()
    assert names
    assert all("gpt" in name.lower() for name in names)
    assert page.get_by_role("status").first.inner_text() == f"{len(names)} of {len(before)} items"
    search.fill("")
    assert len(scores()) == len(before)


def test_all_of_it_is_there_without_a_script(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("table.sortable tbody tr").first.is_visible()
    assert page.get_by_role("button").count() == 0
    context.close()
