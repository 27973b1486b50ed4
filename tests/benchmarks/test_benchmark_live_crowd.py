"""``python -m benchmarks.live_polls crowd``."""

from __future__ import annotations

import json
import sys

import pytest

live_crowd = pytest.importorskip("benchmarks.live_crowd")
live_polls = pytest.importorskip("benchmarks.live_polls")


@pytest.mark.slow  # starts a server three times
@pytest.mark.skipif(sys.platform != "linux", reason="reads what processes use from /proc")
def test_a_crowd_loses_no_answer_when_the_server_is_killed_and_the_page_tells(monkeypatch, capsys, tmp_path):
    for name, value in (("_COMING", 1.0), ("_THINKING", 0.6), ("_AGAIN", (0.2, 0.4))):
        monkeypatch.setattr(live_crowd, name, value)
    monkeypatch.setattr("sys.argv", ["live_polls", "crowd", "--people", "5", "--seconds", "30", "--out", str(tmp_path)])
    live_polls.main()
    found = json.loads(capsys.readouterr().out)
    assert found["answers"] > 10
    assert found["answers"] == found["kept"]
    assert [found[name] for name in ("lost", "doubled", "of_nobody", "errors", "exit_code")] == [0] * 5
    assert found["refused"] + found["broken_off"] > 0
    assert found["cpu_s"] > 0
    text = (tmp_path / "live_polls.md").read_text(encoding="utf-8")
    assert f"| answers that were acknowledged | {found['answers']}, " in text
    assert "`python -m benchmarks.live_polls crowd --people 5 --seconds 30`" in text
