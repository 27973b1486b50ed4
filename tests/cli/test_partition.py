"""``predilect partition``, and ``check``, ``rank`` and the others on answers in parts."""

import json
import re
import shlex

import numpy as np
import polars as pl
import pytest
from running import run

from simulate_parts import votes

SETTINGS = "population,strength=10,variance=1,consensus_variance=2,calibration=null,consistency=0,clickers=0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with votes, their parts, and the results of both."""
    place = tmp_path_factory.mktemp("parts")
    votes().write_csv(place / "votes.csv")
    run("partition", place / "votes.csv", "-o", place / "parts", "--parts", 3)
    run("rank", place / "parts", "-o", place / "results", "--model", SETTINGS)
    run("rank", place / "votes.csv", "-o", place / "one", "--model", SETTINGS, "--personal", "yes")
    return place


@pytest.mark.slow
def test_the_board_is_that_of_the_file(folder):
    one, many = (pl.read_csv(folder / name / "leaderboard.csv") for name in ("one", "results"))
    assert many["item"].to_list() == one["item"].to_list()
    np.testing.assert_allclose(many["mean"], one["mean"], atol=1e-8)
    document = json.loads((folder / "results" / "leaderboard.json").read_text())
    assert document["model"]["n_users"] == 60
    assert {entry.name for entry in (folder / "results").iterdir()} >= {"model", "states", "parts.json"}


@pytest.mark.parametrize(
    "question", [("show",), ("show", "--user", "p7"), ("ask", "p7", "-n", "2"), ("ask", "--target", "board")]
)
def test_a_person_is_asked_of_the_part_that_holds_them(folder, question):
    command, *rest = question
    one, many = (run(command, folder / name, *rest, "--format", "csv").stdout for name in ("one", "results"))
    for mine, theirs in zip(many.splitlines(), one.splitlines(), strict=True):
        for a, b in zip(mine.split(","), theirs.split(","), strict=True):
            assert a == b or float(a) == pytest.approx(float(b), abs=1e-6)


@pytest.mark.slow
def test_predictions_are_those_of_the_file(folder):
    one, many = (run("predict", folder / name, folder / "votes.csv", "-o", folder / f"{name}.csv") for name in
                 ("one", "results"))  # fmt: skip
    assert "log loss" in many.stderr
    tables = [pl.read_csv(folder / f"{name}.csv") for name in ("one", "results")]
    np.testing.assert_allclose(tables[1]["p_left"], tables[0]["p_left"], atol=1e-8)
    assert one.exit_code == many.exit_code == 0


@pytest.mark.slow
def test_averages_are_of_the_people_of_one_part(folder):
    items = folder / "items.csv"
    pl.DataFrame({"item": [f"item {k}" for k in range(6)], "size": range(6)}).write_csv(items)
    pl.DataFrame({"scenario": ["s"] * 2, "item": ["item 0", "item 1"], "size": [0, 1]}).write_csv(folder / "sets.csv")
    made = run("rank", folder / "parts", "--items", items, "-o", folder / "with items", "--model", SETTINGS)
    assert made.exit_code == 0, made.output
    asked = [
        ("worth",),
        ("worth", "--user", "p7"),
        ("simulate", folder / "sets.csv"),
        ("report", "-o", folder / "p.md"),
    ]
    for command, *rest in asked:
        told = run(command, folder / "with items", *rest)
        assert told.exit_code == 0, told.output
        assert ("of the largest part" in told.output) == ("--user" not in rest)
    assert "60 people" in (folder / "p.md").read_text()


def test_check_reads_every_part(folder):
    said = run("check", folder / "parts").stdout
    assert "no person is in two" in said
    file = next((folder / "parts").glob("part-0001*"))
    kept = file.read_bytes()
    file.write_bytes(kept[:-1] + b"?")
    assert run("check", folder / "parts").stderr.count("checksum") == 1
    file.write_bytes(kept)


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--by", "user"], "--by"), (["--personal", "no"], "--personal no"), (["-c", "who=user"], "say it to predilect"),
     (["--model", "gaspk"], "population"), (["--model", "population,pool=3"], "a pool is null")],
)  # fmt: skip
def test_what_parts_do_not_know_is_refused(folder, options, said):
    assert said in run("rank", folder / "parts", *options).stderr.replace("\n", " ")


@pytest.mark.slow
def test_results_whose_parts_have_changed_say_which_command_ranks_them_anew(tmp_path):
    votes().head(200).write_csv(tmp_path / "votes.csv")
    dealt = ("partition", tmp_path / "votes.csv", "-o", tmp_path / "parts")
    run(*dealt, "--parts", 2)
    run("rank", tmp_path / "parts", "-o", tmp_path / "results", "--model", SETTINGS)
    assert run(*dealt, "--add").exit_code == 0
    result = run("ask", tmp_path / "results", "p7")
    assert result.exit_code == 2
    command = re.search(r"predilect (rank \S+ -o) DIR", " ".join(result.stderr.split()))
    assert run(*shlex.split(command[1]), tmp_path / "again", "--model", SETTINGS).exit_code == 0


def test_averages_are_of_people_where_the_first_parts_have_none(tmp_path):
    rows = [("b", f"item {k % 3}", f"item {(k + 1) % 3}", "left") for k in range(9)]
    rows += [("a", right, left, "left") for _, left, right, _ in rows]
    pl.DataFrame(rows, ["user", "left", "right", "winner"], orient="row").write_csv(tmp_path / "votes.csv")
    assert run("partition", tmp_path / "votes.csv", "--parts", "8", "-o", tmp_path / "parts").exit_code == 0
    made = run("rank", tmp_path / "parts", "-o", tmp_path / "out", "--model", SETTINGS)
    assert made.exit_code == 0, made.output
    told = run("report", tmp_path / "out", "-o", tmp_path / "p.md")
    assert told.exit_code == 0, told.output
    assert "of the largest part" in told.output


def test_of_one_person_no_fit_is_advised(tmp_path):
    pl.DataFrame({"user": "p", "left": ["a", "b"], "right": ["b", "c"], "winner": "left"}).write_csv(tmp_path / "v.csv")
    for told in (run("partition", tmp_path / "v.csv", "-o", tmp_path / "parts"), run("check", tmp_path / "parts")):
        assert told.exit_code == 0
        assert "predilect rank" not in told.output
        assert "two people or more" in told.output


def test_parts_of_which_some_know_the_sides_are_read_together(tmp_path, monkeypatch):
    from predilect.parts import Parts, manifest

    run("partition", _votes(tmp_path), "--parts", "2", "-o", tmp_path / "parts")
    parts = Parts.open(tmp_path / "parts")
    whole = parts.sample(100, 10_000)
    frame_of = manifest.frame_of

    def without_sides_of_one(rows):
        known = frame_of(rows)
        return known.drop("shown_left", "shown_right") if "0" in known["user"].cast(pl.String) else known

    monkeypatch.setattr(manifest, "frame_of", without_sides_of_one)
    some = parts.sample(100, 10_000)
    assert some.n_answers == whole.n_answers
    assert 0.0 < some.sides.sum() < whole.sides.sum()


def _votes(folder):
    rng = np.random.default_rng(0)
    left = rng.integers(0, 5, 40)
    side = rng.choice(["left", "right"], 40)
    frame = {"user": rng.integers(0, 6, 40), "left": left, "right": (left + rng.integers(1, 5, 40)) % 5, "winner": side}
    pl.DataFrame(frame).write_csv(folder / "votes.csv")
    return folder / "votes.csv"


@pytest.mark.slow
def test_answers_that_do_not_fit_into_memory_are_better_dealt_out(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("predilect.cli.reading.free_memory", lambda: 1e5)
    votes = folder / "votes.csv"
    for command in ("check", "rank"):
        ran = run(command, votes, *(["--model", SETTINGS, "--personal", "yes"] if command == "rank" else []))
        told = " ".join(ran.stderr.split())
        assert "GB of memory, and 0.0 GB are free" in told
        advised, then = re.search(
            r"predilect (partition .*?) -o PARTS.*; then predilect (rank PARTS -o DIR)", told
        ).groups()
    monkeypatch.chdir(tmp_path)
    assert run(*shlex.split(advised), "-o", "PARTS").exit_code == 0
    ran = run(*shlex.split(then), "--model", SETTINGS)
    assert ran.exit_code == 0, ran.output
    assert "GB of memory" not in run("rank", votes, "--personal", "no").stderr
    monkeypatch.setattr("predilect.cli.reading.free_memory", lambda: 1e9)
    assert "GB of memory" not in run("check", votes).stderr


@pytest.mark.slow
def test_a_table_of_everybody_with_very_many_rows_is_written_if_asked_for(tmp_path, monkeypatch):
    # A segment is of the personal model, whatever the verdict.
    part = pl.col("user").str.slice(1).cast(pl.Int64) % 2
    votes().with_columns(part=part).write_csv(tmp_path / "votes.csv")
    given = ("rank", tmp_path / "votes.csv", "--segment", "part", "--model", SETTINGS)
    monkeypatch.setattr("predilect.show.report.folder.MOST_ROWS_UNASKED", 359)
    ran = run(*given, "-o", tmp_path / "auto")
    assert not (tmp_path / "auto" / "users.parquet").exists()
    told = " ".join(ran.stdout.split())
    show = re.search(r"would have 360 rows: predilect (show .*?) --user ID", told)[1]
    assert "rank with --personal yes writes all" in told
    assert run(*shlex.split(show), "--user", "p7").exit_code == 0
    for place, more, most in (("yes", ("--personal", "yes"), 359), ("few", (), 360)):
        monkeypatch.setattr("predilect.show.report.folder.MOST_ROWS_UNASKED", most)
        ran = run(*given, *more, "-o", tmp_path / place)
        assert (tmp_path / place / "users.parquet").exists()
        assert "would have" not in ran.stdout
