"""The browser that pages are looked at with."""

from __future__ import annotations

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser():
    """Chromium; tests that need it are skipped where it, or Playwright, is not there."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e .[outside]")
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        # No sandbox: the tests may run as root, on pages of their own. Cookies of third parties are blocked.
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--test-third-party-cookie-phaseout"]
        )
        yield chromium
        chromium.close()
