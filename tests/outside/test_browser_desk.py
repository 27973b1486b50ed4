"""``predilect open`` in a real browser: a file is dropped, asked about, ranked and asked of, on a phone and a desk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs predilect[live]")
pytest.importorskip("sqlalchemy", reason="needs predilect[live]")
pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

from cli.desks import desk_served
from outside.looked import check
from predilect.examples import copy_into

pytestmark = pytest.mark.slow
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"  # written if PREDILECT_PICTURES is set
VOTES = "judge,x,y,z\n" + "".join(
    f"p{k},{a},{b},{a}\n"
    for k in range(12)
    for a, b in (("tea", "<b>milk</b>"), ("<b>milk</b>", "פרי"), ("tea", "פרי"))
)


@pytest.fixture(scope="module")
def address():
    with desk_served() as (address, _):
        yield address


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["desk", "phone"])
def opened(browser, address, request):
    """A page, its width, and what went wrong on it."""
    width, colours = request.param
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=colours)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.asked, page.wrong = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda said: page.wrong.append(said.text) if said.type == "error" else None)
    page.goto(f"{address}/")
    yield page, width
    context.close()


def ranked(page):
    page.get_by_role("button", name="Rank", exact=True).click()
    page.wait_for_url("**/results/**")


def test_votes(opened, address, tmp_path):
    page, width = opened
    check(page, address, width)
    (tmp_path / "votes.csv").write_text(VOTES)
    page.set_input_files("#new-file", tmp_path / "votes.csv")
    page.get_by_role("button", name="Open").click()
    check(page, address, width)
    while page.locator("a.way").count():  # by the keyboard alone
        page.locator("a.way").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_load_state()
    page.get_by_text("What each column is").click()
    check(page, address, width)
    page.get_by_role("button", name="Rank", exact=True).click()
    check(page, address, width)
    page.wait_for_url("**/results/**")
    check(page, address, width)
    page.get_by_label("One").fill("tea")
    page.get_by_label("Other").fill("<b>milk</b>")
    page.get_by_role("button", name="Compare").click()
    assert "tea is better than" in page.locator(".answer").inner_text()
    check(page, address, width)


def test_the_tutorial_shows_these_pages(opened, address, tmp_path):
    page, width = opened
    copy_into(tmp_path)
    page.set_input_files("#new-file", tmp_path / "survey.csv")
    page.get_by_role("button", name="Open").click()
    page.get_by_text("Row 1: Safety").first.wait_for()
    keep(page, "open-read")
    page.get_by_label("Rankings of people's own").select_option("yes")  # a verdict takes four times as long
    ranked(page)
    page.get_by_role("heading", name="What it says").wait_for()
    keep(page, "open-results")
    check(page, address, width)


def keep(page, name):
    """Write a picture of the docs, if it is asked for."""
    if os.environ.get("PREDILECT_PICTURES") and page.viewport_size["width"] > 1000:
        page.set_viewport_size({"width": 1001, "height": 720})
        page.screenshot(path=PICTURES / f"{name}.png")


def test_choices_and_sliders(opened, address, tmp_path):
    page, width = opened
    copy_into(tmp_path)
    page.set_input_files("#new-file", tmp_path / "choices.csv")
    page.get_by_role("button", name="Open").click()
    page.get_by_label("Rankings of people's own").select_option("yes")
    ranked(page)
    shares = page.locator(".scenario .answer")
    shares.get_by_text("%").first.wait_for()
    before = shares.inner_text()
    page.get_by_label("A.price", exact=True).press("Home")  # the slider, to its least
    for _ in range(100):
        if shares.inner_text() != before:
            break
        page.wait_for_timeout(100)
    assert shares.inner_text() != before
    check(page, address, width)
