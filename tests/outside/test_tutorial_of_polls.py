"""The tutorial of polls, followed to the letter: from its commands to answers of a telephone, and what they come to."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "live.md"
AT_MOST = 5  # commands until somebody can answer


def commands(text: str) -> list[str]:
    """What is to be typed."""
    return [
        line for block in re.findall(r"^```bash\n(.*?)^```$", text, flags=re.M | re.S) for line in block.splitlines()
    ]


def typed(command: str) -> list[str]:
    """A command of ours, as this interpreter has it."""
    program, *told = shlex.split(command)
    assert program == "predilect"
    return [sys.executable, "-m", "predilect", *told]


def wait_for(port: int) -> None:
    """A server listens a moment after it said where."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("it does not listen")


@contextmanager
def serving(command: str, environment: dict[str, str]):
    """Lines of the server that a command starts, with another port, for as long as the block lasts."""
    asked = [*typed(command), "--port", "0", "--stop-after", "300"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            yield server.stdout
        finally:
            server.terminate()


@pytest.mark.slow
def test_five_commands_lead_to_the_first_answer_of_a_telephone(browser, tmp_path, monkeypatch):
    text = TUTORIAL.read_text(encoding="utf-8")
    before, answering, rest = re.split(r"^## (?:Answer it|Watch it)$", text, flags=re.M)
    install, own = commands(before)[:3], commands(before)[3:]
    assert [line.split()[0] for line in install] == ["python3", ".", "pip"]
    assert 'pip install "predilect[live]"' in install
    assert len(install) + len(own) <= AT_MOST
    assert not commands(answering)

    monkeypatch.chdir(tmp_path)
    ideas = re.search(r"`(\S+)`, one a line:\n\n((?: {4}.*\n)+)", before)
    assert ideas is not None
    Path(ideas[1]).write_text(re.sub("^ {4}", "", ideas[2], flags=re.M), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    *making, serve = own
    for command in making:
        subprocess.run(typed(command), check=True, env=environment)
    with serving(serve, environment) as lines:
        address = re.search(r"participants (\S+/p/\w+)", lines.readline())
        assert address is not None
        phone = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
        phone.set_default_timeout(120_000)
        page, wrong = phone.new_page(), []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        wait_for(int(urlsplit(address[1]).port))
        page.goto(address[1])
        page.locator("input[name=agreed]").tap()
        page.locator("button.main").tap()
        page.wait_for_selector("form.question")
        for n in (1, 2, 3):
            page.wait_for_timeout(450)
            page.locator("#now button[value=left]").tap()
            page.wait_for_selector(f"text=Answered: {n}")
        page.get_by_text("My ranking").tap()
        page.wait_for_selector("ol.bars")
        assert page.locator("ol.bars li").count() == len(ideas[2].splitlines())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert not wrong
        for command in commands(rest):
            subprocess.run(typed(command), check=True, env=environment)
        phone.close()
    assert Path("results/leaderboard.csv").exists()
