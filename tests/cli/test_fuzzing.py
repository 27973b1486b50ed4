"""Random and damaged input: each case ends with an exit code and a message, or with a result."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from cli import fuzzing
from cli.fuzzing import ESCAPES, Case, fuzz, make_models


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("command", "n_cases"), [("check", 1740), ("rank", 180), ("predict", 80)])
def test_no_input_ends_in_a_traceback_a_death_a_hang_or_a_raw_escape(models, command, n_cases):
    verdicts = fuzz(command, range(n_cases), models)
    assert len(verdicts) == n_cases
    assert {number: verdict for number, verdict in verdicts.items() if not verdict.startswith("ok")} == {}
    # Cases that get through are what makes the others worth something.
    assert sum(verdict.startswith("ok 0") for verdict in verdicts.values()) > n_cases / 20


def test_a_case_is_made_from_its_number_alone(tmp_path):
    made = []
    for _ in range(2):
        case = Case("rank", 7, tmp_path, [tmp_path])
        made.append((case.arguments, {file.name: file.read_bytes() for file in sorted(tmp_path.iterdir())}))
    assert made[0] == made[1]
    assert made[0][1]


CHILD = """
import json, os, sys, time
_, first, last = sys.argv[2].split(":")
for number in range(int(first), int(last)):
    print(number, flush=True)
    if number == 2:
        os.abort()
    if number == 4:
        time.sleep(60)
    print(json.dumps("ok 0"), flush=True)
"""


def test_a_child_that_dies_or_hangs_is_noticed_and_the_cases_after_it_run(tmp_path, monkeypatch):
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.setattr("cli.fuzzing.LONGEST_SECONDS", 1)
    verdicts = fuzz("check", range(6), [], str(tmp_path / "child.py"))
    assert sorted(verdicts) == list(range(6))
    assert verdicts.pop(2) == f"died: {-signal.SIGABRT}"
    assert verdicts.pop(4) == "hang: more than 1 s"
    assert set(verdicts.values()) == {"ok 0"}


@pytest.mark.parametrize(
    ("exception", "code", "out", "error", "verdict"),
    [
        (KeyError("x"), 1, "", "", "traceback: KeyError"),
        (None, 0, f"Read {ESCAPES}", "", "raw escape on stdout"),
        (None, 2, "", "Error: \x9b31m", "raw escape on stderr"),
        (None, 1, "", "Aborted.", "exit code 1"),
        (None, 2, "", " ", "exit code 2 without a word"),
        (None, 2, "", "Error: no", "ok 2"),
        (SystemExit(0), 0, "Read é", "", "ok 0"),
    ],
)
def test_what_goes_wrong_has_a_name(exception, code, out, error, verdict):
    try:
        raise exception or SystemExit
    except BaseException as raised:  # noqa: BLE001  as the runner keeps it
        kept = raised
    result = SimpleNamespace(exception=kept, exit_code=code, stdout=out, stderr=error)
    assert fuzzing._verdict(["check"], result, "").startswith(verdict)
    assert fuzzing._verdict(["check"], result, "\x1b[2J").split(":")[0] != "ok"
