"""Random and damaged input: each case ends with an exit code and a message, or with a result."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cases import MORE
from cli import fuzzing
from cli.fuzzing import ESCAPES, Case, fuzz, make_models


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("command", "n_cases"), [("check", 1740), ("rank", 180), ("predict", 80)])
def test_no_input_ends_in_a_traceback_a_death_a_hang_or_a_raw_escape(models, command, n_cases):
    n_cases *= MORE
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
