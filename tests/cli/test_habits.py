"""What people expect of a command: pipes, formats, bars, 80 columns, and that it answers at once."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from itertools import pairwise
from pathlib import Path
from time import sleep

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from cli.running import ITEMS, QUICK, run
from predilect._base.progress import tell_parts
from predilect.cli.main import app
from predilect.cli.session import Common, Talk
from predilect.cli.share import END, Share
from predilect.decisions.scales import scale_of
from predilect.show.report.sections import board_table
from predilect.show.report.text import terminal


def test_the_board_comes_first_and_the_rest_when_it_is_asked_for(few_votes):
    brief, long = (run("rank", few_votes, *options).stdout.splitlines() for options in ([], ["--explain"]))
    head = next(number for number, line in enumerate(brief) if line.split()[:1] == ["Rank"])
    assert head <= 7  # what was read, one answer as a sentence, what was not used
    assert len(brief) <= head + 16
    assert sum(line.startswith("Verdict: ") for line in brief) == 1
    assert any(line.startswith("Score: noise of one answer = 1; 0 is the mean of the items.") for line in brief)
    assert not any(line.startswith(("Read ", "Columns: ", "Fit: ")) for line in brief)
    assert all(any(line.startswith(start) for line in long) for start in ("Read ", "Fit: ", "Returned: "))


def test_what_was_left_out_is_said_without_being_asked_for(few_votes):
    text = few_votes.read_text()
    few_votes.write_text(text + "p01,apple,banana,nobody,en\n")
    told = run("rank", few_votes, *QUICK, "--read", "drop=unknown").stdout
    assert "Left out 1 row: unknown winner." in told


@pytest.mark.parametrize("base", [0.0, -12345.0])
def test_no_column_is_lost_at_80_columns(base):
    name = "a model with a very long name that says everything about how it was made"
    board = pl.DataFrame({
        "item": [name, "b"], "mean": [base, base - 1.0], "lower": [base - 2.0] * 2, "upper": [base + 2.0] * 2,
        "rank": [1, 2], "rank_low": [1, 1], "rank_high": [1000, 1000], "p_best": [0.6, 0.4], "tier": [1, 1],
        "n": [1234567, 12],
    })  # fmt: skip
    console = Console(width=80, file=io.StringIO())
    console.print(terminal(board_table(board, scale_of("elo", "probit", base), 2), console.width))
    lines = [line for line in console.file.getvalue().splitlines() if line.strip()]
    assert lines[0].split()[-1] == "Answers"
    assert all(lines[2].count(value) for value in ("1–1000", "a model", "60 %", "1234567"))
    assert max(map(len, lines)) <= 80


def test_formats_of_the_board(few_votes):
    as_csv = run("rank", few_votes, *QUICK, "--format", "csv")
    board = pl.DataFrame(json.loads(run("rank", few_votes, *QUICK, "--format", "json").stdout)["board"])
    assert pl.read_csv(io.StringIO(as_csv.stdout)).equals(board)
    assert "Rank" not in as_csv.stdout


def test_formats_of_other_tables(results, tmp_path):
    (tmp_path / "pairs.csv").write_text("left,right\napple,[bold]date[/]\n")
    for command in (["predict", results, tmp_path / "pairs.csv"], ["ask", results, "p01"],
                    ["decide", results, "p01", "apple", "cherry"]):  # fmt: skip
        plain, md, as_json = (run(*command, *more).stdout for more in ([], ["--format", "md"], ["--format", "json"]))
        lines = md.splitlines()
        assert lines[0].replace("\\", "") == f"| {' | '.join(plain.splitlines()[0].split(','))} |"
        assert len(lines) == len(plain.splitlines()) + 1
        assert json.loads(as_json)["version"] == 1


def test_formats_of_what_check_finds(few_votes):
    found = json.loads(run("check", few_votes, "--format", "json").stdout)["findings"]
    assert found
    as_csv = pl.read_csv(io.StringIO(run("check", few_votes, "--format", "csv").stdout))
    assert as_csv.to_dicts() == [{key: one[key] for key in ("severity", "code", "count", "message")} for one in found]
    md = run("check", few_votes, "--format", "md").stdout.splitlines()
    assert md[0] == "| severity | code | count | message |"
    assert len(md) == len(found) + 2


def test_a_terminal_is_given_few_digits_and_a_file_all(monkeypatch, capsys):
    table = pl.DataFrame({"left": ["tea"], "n": [1234567], "p_left": [1.0 / 3.0]})
    Talk(Common()).table(table)
    assert capsys.readouterr().out == f"left,n,p_left\ntea,1234567,{1.0 / 3.0!r}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    Talk(Common()).table(table)
    assert capsys.readouterr().out == "left,n,p_left\ntea,1234567,0.3333\n"


@pytest.mark.parametrize(
    "words",
    ["check --read kind=best-worst --read answer-is=item", "check --read kind=best_worst --read answer_is=item"],
)
def test_a_hyphen_and_an_underscore_are_the_same_in_words_of_the_command(words, tmp_path):
    (tmp_path / "sets.csv").write_text("user,item1,item2,item3,best,worst\nu1,tea,milk,juice,milk,tea\n")
    command, *options = words.split()
    ran = run(command, tmp_path / "sets.csv", *options)
    assert ran.exit_code == 0, ran.output
    assert "1 choice of the best and the worst of 3" in ran.output


def test_paragraphs_of_help_are_as_wide_as_the_terminal():
    lines = CliRunner().invoke(app, ["decide", "--help"], env={"COLUMNS": "80"}).stdout.splitlines()
    said = [line.strip() for line in lines[: next(k for k, line in enumerate(lines) if "Example" in line)]]
    rest = [line for line, after in pairwise(said) if line and after]  # not the last of a paragraph
    assert len(rest) > 3
    assert min(map(len, rest)) > 60


def test_standard_input_of_any_kind(few_votes, tmp_path):
    frame = pl.read_csv(few_votes)
    expected = run("check", few_votes).stdout.splitlines()[:3]
    kinds = {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "json": frame.write_json, "parquet": None}
    for write in kinds.values():
        held = io.BytesIO()
        frame.write_parquet(held) if write is None else held.write(write().encode())
        ran = CliRunner().invoke(app, ["check", "-"], input=held.getvalue())
        assert ran.stdout.splitlines()[:3] == expected
    ran = CliRunner().invoke(app, ["rank", "-", *QUICK, "--format", "json"], input=few_votes.read_bytes())
    assert json.loads(ran.stdout)["provenance"]["inputs"]["votes"]["name"] == "standard-input.csv"
    twice = CliRunner().invoke(app, ["check", "-", "--items", "-"], input=few_votes.read_bytes())
    assert twice.exit_code == 2
    assert "can be read but once" in twice.output
    empty = CliRunner().invoke(app, ["check", "-"], input=b"")
    assert empty.exit_code == 2
    assert "Error: standard-input.csv is empty" in empty.output
    told = CliRunner().invoke(app, ["check", "-"], input=b"left, right, winner\nx, y, x\n").output
    assert "Warning: standard-input.csv: blanks beside" in told
    assert "Next: predilect rank - -o DIR" in told


@pytest.mark.parametrize("what", ["mkdtemp", "write_bytes"])
def test_standard_input_that_cannot_be_kept_is_an_input_that_cannot_be_used(monkeypatch, what):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*((tempfile, "mkdtemp") if what == "mkdtemp" else (Path, "write_bytes")), full)
    ran = CliRunner().invoke(app, ["check", "-"], input=b"left,right,winner\nx,y,x\n")
    assert ran.exit_code == 2
    assert "Error: standard-input comes out of a pipe and cannot be kept meanwhile: No space left" in ran.output
    assert "TMPDIR" in ran.output


def test_the_next_command_may_be_typed_as_it_is_said(few_votes, tmp_path):
    named = few_votes.rename(tmp_path / "my votes.csv")
    assert f"Next: predilect rank '{named}' -o DIR" in run("check", named).stdout
    ran = run("rank", named, *QUICK, "--out", tmp_path / "my results")
    assert f"Next: predilect report '{tmp_path / 'my results'}' -o board.html" in ran.stdout
    named.write_text("user,left,right,winner\nann,x,y,tie\nbob,x,y,tie\n")
    said = run("check", named).stdout
    assert "predilect rank" not in said
    assert "Next: collect answers that prefer an item" in said


@pytest.mark.parametrize(("last", "said"), [(2, "predilect worth"), (1, "predilect show")])
def test_the_next_command_is_about_attributes_where_items_differ_in_them(few_votes, tmp_path, last, said):
    table = pl.DataFrame({"item": ITEMS, "price": [1] * (len(ITEMS) - 1) + [last]})
    table.write_csv(tmp_path / "items.csv")
    told = run("rank", few_votes, "--personal", "no", "--items", tmp_path / "items.csv", "-o", tmp_path / "out").stdout
    assert f"to send on; {said}" in " ".join(told.split())


def test_what_a_pipe_without_a_name_holds_is_read(few_votes):
    reads, writes = os.pipe()  # as of <(gzip -c votes.csv)

    def write():
        with os.fdopen(writes, "wb") as pipe:
            pipe.write(gzip.compress(few_votes.read_bytes()))

    writer = threading.Thread(target=write)
    writer.start()
    ran = run("check", f"/dev/fd/{reads}")
    writer.join()
    os.close(reads)
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines()[:3] == run("check", few_votes).stdout.splitlines()[:3]


@pytest.mark.slow
def test_ids_of_people_and_items_keep_the_type_they_have_for_others(tmp_path):
    rows = [(k % 4, 10 + k % 3, 10 + (k + 1) % 3, 10 + k % 3) for k in range(36)]
    frame = pl.DataFrame(rows, schema=["user", "left", "right", "winner"], orient="row")
    frame.write_csv(tmp_path / "votes.csv")
    options = (*QUICK, "--read", "answer-is=item")
    ran = run("rank", tmp_path / "votes.csv", *options, "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    people = pl.read_parquet(tmp_path / "out" / "users.parquet")
    assert people.schema["user"] == people.schema["item"] == pl.Int64
    assert len(people.join(frame.select("user").unique(), on="user")) == len(people) == 12
    frame.cast(pl.String).write_parquet(tmp_path / "text.parquet")
    run("rank", tmp_path / "text.parquet", *options, "--out", tmp_path / "text")
    assert pl.read_parquet(tmp_path / "text" / "users.parquet").schema["user"] == pl.String
    for source, dtype in (("votes.csv", pl.Int64), ("text.parquet", pl.String)):
        run("predict", tmp_path / "out", tmp_path / source, "--out", tmp_path / "p.parquet", "--force")
        assert pl.read_parquet(tmp_path / "p.parquet").schema["left"] == dtype


def test_answers_with_a_winner_are_scored(results, tmp_path):
    from predilect import load
    from predilect import read as read_file

    votes = results.parent / "votes.csv"
    ran = run("predict", results, votes, "--format", "json")
    score = json.loads(ran.stdout)["score"]
    model, answers = load(results), read_file(votes)
    assert score["log_loss"] == pytest.approx(-model.score(answers))
    hit = model.predict(answers) == answers.outcome
    assert model._score_and_accuracy(answers) == (model.score(answers), pytest.approx(score["accuracy"]))
    assert score["accuracy"] == pytest.approx((hit * answers.weight).sum() / answers.weight.sum())
    assert f"log loss {score['log_loss']:.3f} nats an answer (240 answers)" in " ".join(ran.stderr.split())
    (tmp_path / "odd.csv").write_text("left,right,winner\napple,banana,neither of them\n")
    odd = run("predict", results, tmp_path / "odd.csv", "--format", "json")
    assert odd.exit_code == 0
    assert json.loads(odd.stdout)["score"] is None
    assert "The answers are not scored: " in odd.stderr


COMMANDS = """
import sys
import tempfile
from predilect.cli.main import app
for arguments in {commands}:
    try:
        app(arguments)
    except SystemExit:
        pass
print(sorted(set({heavy}) & set(sys.modules)))
"""


def imported(commands, heavy, folder):
    code = COMMANDS.format(commands=commands, heavy=heavy)
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, check=False, capture_output=True, text=True)
    return ran.stdout.splitlines()[-1], ran.stderr


@pytest.mark.slow
def test_a_missing_file_is_told_before_anything_is_imported_that_takes_long(tmp_path):
    commands = [["rank", "no.csv"], ["check", "no.csv"], ["predict", "m", "no.csv"], ["simulate", "m", "no.csv"]]
    found, told = imported(commands, ["polars", "numpy", "scipy", "numba", "sklearn"], tmp_path)
    assert found == "[]"
    assert told.count("there is no file no.csv") == 4


@pytest.mark.slow
def test_a_check_does_without_the_models(few_votes):
    found, told = imported([["check", few_votes.name]], ["sklearn", "numba", "scipy.optimize"], few_votes.parent)
    assert found == "[]", told


@pytest.mark.slow
def test_a_board_does_without_libraries_that_others_bring(few_votes):
    last = "atexit.register(lambda: print({'pandas', 'scipy.stats', 'sklearn'} & set(sys.modules)))"
    code = f"import atexit, sys\nfrom predilect.__main__ import main\n{last}\nmain()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "rank", few_votes.name], cwd=few_votes.parent, check=False, capture_output=True,
        text=True,
    )  # fmt: skip
    assert "Verdict" in ran.stdout, ran.stderr
    assert ran.stdout.splitlines()[-1] == "set()"


def screen(told):
    """What is on a terminal of so many columns after each refresh, without the moves of the cursor."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told)
    return [line.rstrip() for line in re.split(r"[\r\n]+", plain) if line.strip()]


@pytest.mark.slow
def test_a_bar_shows_the_stage_and_a_share_that_never_goes_back():
    talk = Talk()
    talk.err = Console(file=io.StringIO(), force_terminal=True, width=80)
    name = "held-out answers: one ranking for all, with consistency, part 2 of 5, and more of [it]"
    with talk.progress("Ranking", 0.3) as watch:
        for stage, parts in (("fitting", 0), (name, 5), ("", 5)):
            for done in range(max(parts, 1)):
                if parts:
                    tell_parts(watch, done, parts)
                watch(stage, 9 - done)  # a count that begins again
                sleep(0.3)
    lines = screen(talk.err.file.getvalue())
    shares = [int(one) for line in lines for one in re.findall(r"(\d+)%", line)]
    assert shares == sorted(shares)
    assert 5 < shares[-1] < 100
    assert all(len(line) <= 80 for line in lines)
    text = " ".join(lines).replace(" ", "")
    assert "andmoreof[it]" in text  # what does not fit goes on in the next line
    tell_parts(None, 1, 2)
    tell_parts(lambda stage, done: None, 1, 2)


@pytest.mark.slow
def test_without_a_terminal_progress_is_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr("predilect.cli.session._SECONDS_A_LINE", 0.05)
    talk = Talk()
    talk.err = Console(file=io.StringIO(), width=200)
    with talk.progress("Reading") as watch:
        sleep(0.2)
        watch("lines", 4)
        tell_parts(watch, 1, 2)
        sleep(0.2)
    lines = talk.err.file.getvalue().splitlines()
    assert re.fullmatch(r"Reading: about 0 %, \d s", lines[0])
    assert re.fullmatch(r"Reading: lines: about [45]\d %, \d s", lines[-1])
    quiet = Talk(Common(quiet=True))
    quiet.err = Console(file=io.StringIO(), width=200)
    with quiet.progress("Reading"):
        sleep(0.1)
    assert not quiet.err.file.getvalue()


@given(st.lists(st.integers(0, 30) | st.just(-1), max_size=60), st.floats(0.1, END), st.integers(1, 30))
def test_no_order_of_steps_and_parts_takes_the_share_back(told, first, total):
    share, before = Share("Doing", first), 0.0
    for one in told:
        if one < 0:
            share("a stage", 3)
        else:
            share.parts(min(one, total), total if one % 2 else total + 1)
        assert before <= share.now < 1.0
        before = share.now


@pytest.mark.slow
def test_the_verdict_tells_how_much_of_it_is_done(votes_frame):
    from predilect import Population

    parts: list[tuple[int, int]] = []

    def watch(stage, done):
        pass

    watch.parts = lambda done, total: parts.append((done, total))
    rows = votes_frame.head(60)
    Population(strength=5.0, variance=1.0).fit(rows).verdict(watch=watch, n_folds=2)
    shares = [done / total for done, total in parts]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert 0.5 <= shares[-1] < 1.0


def test_shells_can_complete():
    assert "--install-completion" in run("--help").stdout
