"""Protocol B on real data: pools as the paper has them, and the table."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.active import DATA, estimator, main
from benchmarks.rounds import pools_of

from predilect import Population


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_users", "pairs"),
    [("sushi", 1000, (45, 45)), ("jura", 359, (21, 21)), ("uk-election-2010", 632, (18, 28)),
     ("movielens", 120, (20, 38)), ("synthetic", 1000, (45, 45)),
     ("synthetic-as-hard", 1000, (45, 45))],
)  # fmt: skip
def test_pools_are_those_of_the_protocol(name, n_users, pairs):
    data = DATA[name](0)
    n_rows = np.diff(data.answers.user_offsets)
    assert len(n_rows) == n_users
    assert (n_rows.min(), n_rows.max()) == pairs
    pools = pools_of(data.answers, data.n_start, data.n_test, 0)
    assert pools.pool.n_rows == data.answers.n_rows - n_users * (data.n_start + data.n_test)
    assert not pools.pool.has_ties


def test_synthetic_people_are_drawn_anew_and_their_features_tell_of_them():
    data, same, other = DATA["synthetic"](3), DATA["synthetic"](3), DATA["synthetic"](4)
    assert data.answers == same.answers
    assert data.answers != other.answers
    x = data.users.drop("user").to_numpy()
    table = data.answers.outcome.reshape(len(x), -1)  # everybody's pairs in the same order
    nearest = np.array([np.argsort(((x - row) ** 2).sum(axis=1))[1] for row in x])
    assert np.mean(table == table[nearest]) > np.mean(table == table[::-1]) + 0.05


@pytest.mark.data
@pytest.mark.slow
def test_the_table_is_made_and_runs_are_kept(tmp_path, capsys):
    given = ["--data", "jura", "--models", "Population+update", "--strategies", "bald", "--repetitions", "2"]
    assert main([*given, "--out", str(tmp_path)]) == 0
    table = (tmp_path / "active.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith("| Population+update | bald"))
    before, after = (float(cell.split("±")[0]) for cell in row.split("|")[4:6])
    assert after < before - 0.08
    assert "CP (published) | bald | 25 | | 0.138" in table
    drawn = (tmp_path / "figures" / "active.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    capsys.readouterr()
    assert main([*given, "--out", str(tmp_path)]) == 0
    assert not capsys.readouterr().err
    assert (tmp_path / "figures" / "active.png").read_bytes() == drawn


def test_models_are_named_with_options():
    assert estimator("Population@strength=3.5@basis=items")().get_params()["strength"] == 3.5
    assert isinstance(estimator("Population")(), Population)
    for name in ("Comparisons", "NoSuch", "load"):
        with pytest.raises(ValueError, match="no estimator"):
            estimator(name)
    with pytest.raises(SystemExit):
        main(["--data", "nowhere"])
