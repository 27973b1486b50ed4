"""How many source files a stranger reads to follow a fit, or an update: those that are entered on the way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import predilect
from predilect import Population
from simulate_updates import AT_FIT, LATER, columns, fitted, one

ROOT = Path(predilect.__file__).parent
BELOW = ("_base", "data")  # what stands below everything, and answers as they are read


def entered(call: Callable[[], Any]) -> list[str]:
    """Files of which a function is called, compiled or not, but for those of ``BELOW``."""
    files = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name != "<module>":  # what is imported on the way is not entered
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = [Path(name).relative_to(ROOT) for name in files if name.startswith(str(ROOT))]
    return sorted(path.as_posix() for path in inside if path.parts[0] not in BELOW)


CALLS = {
    "update": (lambda model: model.update(**one(LATER[0])), 8),
    "update, somebody new": (lambda model: model.update(**one(LATER[0]) | {"user": "zoe"}), 8),
    "forget": (lambda model: model.forget(**one(AT_FIT[0])), 8),
    "update, a table": (lambda model: model.update(columns(LATER)), 11),
    "forget, a person": (lambda model: model.forget(user=model.users_.ids[0]), 12),
    "fit": (lambda _: Population(n_jobs=1).fit(columns(AT_FIT)), 45),
}


@pytest.mark.parametrize("what", CALLS)
def test_few_files_are_entered(what):
    call, most = CALLS[what]
    call(fitted("items"))  # compiles, and imports
    model = fitted("items")
    files = entered(lambda: call(model))
    assert "models/population/" + ("updating.py" if what != "fit" else "fit.py") in files
    assert len(files) <= most, files
