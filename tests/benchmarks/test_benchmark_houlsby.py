"""Protocol A on real data: splits as the paper has them, and the table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.houlsby import MODELS, main, split
from benchmarks.models import BASELINES

import predilect


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "test"), [("sushi", (20, 20), (25, 25)), ("jura", (15, 15), (6, 6)),
                                ("uk-election-2010", (15, 20), (3, 8)), ("synthetic", (30, 30), (15, 15)),
                                ("movielens", (17, 20), (3, 18))],
)  # fmt: skip
def test_splits_are_those_of_the_protocol(name, train, test):
    training, held_out, known = split(name, 1)
    for answers, (fewest, most) in ((training, train), (held_out, test)):
        n_rows = np.diff(answers.user_offsets)
        assert len(n_rows) == 100
        assert fewest <= n_rows.min() <= n_rows.max() <= most
        assert not answers.has_ties
    rows = [set(zip(a.user.tolist(), a.left.tolist(), a.right.tolist(), strict=True)) for a in (training, held_out)]
    assert not rows[0] & rows[1]
    assert sorted(known["people"]["user"].to_list()) == list(training.users.ids)
    other = split(name, 2)[0]
    assert list(other.users.ids) != list(training.users.ids)


@pytest.mark.data
@pytest.mark.slow
def test_the_table_is_made_and_runs_are_kept(tmp_path, capsys):
    given = ["--data", "jura", "--models", "SU,GP classification", "--repetitions", "2", "--out", str(tmp_path)]
    assert main(given) == 0
    table = (tmp_path / "houlsby.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith("| SU"))
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[2] == "2"
    assert 0.1 < float(cells[3].split("±")[0]) < 0.25
    assert (cells[4], cells[7]) == ("0.181", "0.6")
    kept = [json.loads(line) for line in (tmp_path / "houlsby.jsonl").read_text().splitlines()]
    assert {record["case"]["seed"] for record in kept} == {0, 1}
    assert all(record["rounds"][0]["versions"]["predilect"] == predilect.__version__ for record in kept)
    assert kept[0]["rounds"][0]["command"].endswith('--data jura --models "SU,GP classification" --repetitions 2')
    capsys.readouterr()
    assert main(given) == 0
    assert not capsys.readouterr().err
    assert (tmp_path / "houlsby.md").read_text() == table


def test_models_are_there():
    for name in MODELS.values():
        kind = name.partition("@")[0]
        assert hasattr(predilect.models, kind)
    assert {"su", "bi", "bo", "gp-classifier", "gpvu"} <= set(BASELINES)
    with pytest.raises(SystemExit):
        main(["--models", "nobody"])
