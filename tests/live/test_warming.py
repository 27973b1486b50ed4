"""What a poll's pages need is compiled in another process before anybody waits for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PLAYED = """
import sys
from predilect._base import compile as _compile
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, one):
        if _compile._is_ours(one):
            compiled.append(one.data["dispatcher"].__name__)
    def on_end(self, one):
        pass
event.register("numba:compile", Listener())
from predilect.live import Poll, belief, warming
belief._SECONDS_OF_AN_ASKER = 0.0  # as where each page takes long: somebody's own information is asked for
assert warming.begin() is None
with Poll.create(sys.argv[1], question="Which?", items=list("abcdefghi"), background=False) as poll:
    for who in ("ann", "bob", "carl", "dora"):
        for place in range(4):
            (question,) = poll.ask(who)
            poll.tell(who, question.shown, ("left", "tie", "right")[place % 3])
        poll.mine(who), poll.board(), poll.outlook(), poll.refit()
print(*compiled)
"""


@pytest.mark.slow  # compiles everything
@pytest.mark.timeout(600)
def test_pages_compile_nothing_once_it_has_been_done(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(program: str) -> str:
        command = [sys.executable, "-c", program, str(tmp_path / "poll.db")]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("from predilect.live import warming; print(warming.begin().wait())") == "0\n"
    assert run(PLAYED) == "\n"
