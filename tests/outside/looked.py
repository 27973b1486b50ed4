"""What holds of every page in a browser."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

__all__ = ["check"]

WIDE = """width => [...document.querySelectorAll("main *, header *")].filter(one => !one.closest(".scroll *")
  && one.getBoundingClientRect().right > width).map(one => one.outerHTML.slice(0, 200))"""


def check(page, address, width):
    """The page asks nothing of anybody else, fits the screen, and has no fault that axe finds."""
    page.wait_for_load_state()
    assert [url for url in page.asked if not url.startswith(address)] == []
    assert page.wrong == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.evaluate(WIDE, width)
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300]) for one in found] == []
