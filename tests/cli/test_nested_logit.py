"""``rank --model nested-logit,nests=COLUMN`` and what is asked of its folder."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cli.running import run

KIND = {"car": "private", "bus": "public", "tram": "public"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Trips by car, bus or tram, and a fit to them. Not to be changed."""
    place, rng, rows = tmp_path_factory.mktemp("nested"), np.random.default_rng(0), []
    for person in range(80):
        common = rng.gumbel(size=2)
        for task in range(5):
            cost = rng.integers(1, 6, 3)
            noise = np.array([common[0] + rng.gumbel(), *(rng.gumbel() + 0.3 * rng.gumbel(size=2))])
            best = int(np.argmax(-0.6 * cost + noise))
            rows += [(person, task, mode, KIND[mode], int(cost[k]), int(k == best)) for k, mode in enumerate(KIND)]
    table = pl.DataFrame(rows, ["person", "task", "mode", "kind", "cost", "chosen"], orient="row")
    table.write_csv(place / "trips.csv")
    ran = run("rank", place / "trips.csv", "--model", "nested-logit,nests=kind", "-o", place / "out")
    assert ran.exit_code == 0, ran.stderr
    return place


@pytest.mark.slow
def test_worth_has_the_dissimilarity_and_takes_other_errors(folder):
    ran = run("worth", folder / "out", "--explain", "-o", folder / "tables")
    assert ran.exit_code == 0, ran.stderr
    assert "Dissimilarity of the nest" in " ".join(ran.stdout.split())
    table = pl.read_csv(folder / "tables" / "summary.csv")
    row = table.filter(attribute="dissimilarity").row(0, named=True)
    assert row["level"] == "public"
    assert 0.0 < row["lower"] < row["estimate"] < 1.0
    hessian = run("worth", folder / "out", "--errors", "hessian", "--explain")
    assert hessian.exit_code == 0, hessian.stderr


def test_shares_follow_the_nests(folder):
    header = "scenario,item,alternative,kind,cost\n"
    offers = [f"{scenario},{mode},{mode},{KIND[mode]},3" for scenario, modes in
              (("all", KIND), ("no tram", ["car", "bus"])) for mode in modes]  # fmt: skip
    (folder / "offers.csv").write_text(header + "\n".join(offers) + "\n", encoding="utf-8")
    ran = run("simulate", folder / "out", folder / "offers.csv", "--format", "csv")
    assert ran.exit_code == 0, ran.stderr
    table = pl.read_csv(ran.stdout.encode())
    share = {(row["scenario"], row["item"]): row["share"] for row in table.to_dicts()}
    before, after = ([share[one] for one in share if one[0] == which] for which in ("all", "no tram"))
    assert sum(before) == pytest.approx(1.0)
    assert sum(after) == pytest.approx(1.0)
    by_logit = before[1] / (before[0] + before[1])
    assert after[1] > by_logit + 0.03  # the bus takes more of the tram's than a logit would give it


def test_nests_have_to_be_named(folder):
    ran = run("rank", folder / "trips.csv", "--model", "nested-logit")
    assert ran.exit_code == 2
    assert "nested-logit,nests=COLUMN" in " ".join(ran.stderr.split())
