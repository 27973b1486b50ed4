"""``python -m benchmarks.choice_peers``: what our part finds, and peers that are not there."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest
from benchmarks.peers import choice_programs

from benchmarks import choice_peers
from referees import latent_class as referee
from tolerances import ITERATIVE


def choices(T=300, seed=0):
    """Choices of three alternatives by cost, and by a fee that the second alone has; the third is not always there."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 3.0, (T, 3, 2)).round(2)
    has = np.array([[True, False], [True, True], [True, False]])
    X *= has
    available = np.ones((T, 3), bool)
    available[::3, 2] = False
    V = X @ [-1.0, -0.5] + [0.0, 0.5, 0.2] + rng.gumbel(size=(T, 3))
    best = np.where(available, V, -np.inf).argmax(axis=1)
    return {"X": X, "names": np.array(["cost", "fee"]), "has": has, "available": available, "best": best,
            "person": np.arange(T) // 6}  # fmt: skip


def test_our_part_is_the_logit_of_the_referee():
    data = choices()
    some = data["available"].all(axis=1)
    data = {name: one[some] if len(one) == len(some) else one for name, one in data.items()}
    log_likelihood, estimates, seconds = choice_programs.predilect("logit", data)
    X, names = choice_programs._with_constants(data, constants=True)
    order = np.argsort(np.arange(3) != data["best"][:, None], axis=1, kind="stable")
    X = np.take_along_axis(X, order[:, :, None], axis=1)
    b = referee.logit(X)
    assert names == ["cost", "fee", "constant 1", "constant 2"]
    assert log_likelihood == pytest.approx(referee.log_chances(X, b).sum(), abs=1e-8)
    assert estimates == pytest.approx({"cost": b[0], "fee": b[1]}, rel=ITERATIVE)
    assert seconds >= 0.0


def test_what_is_not_installed_is_left_out_and_said():
    missing = {"xlogit": {"missing": "model"}, "biogeme": {"missing": "biogeme"}, "choice-learn": {"missing": "time"}}
    ours = {"log_likelihood": -1.0, "estimates": {"cost": -1.0, "sd cost": -0.5}, "seconds": 0.1}
    found = {"predilect": ours, "apollo": ours | {"version": "0.3"}, **missing}
    text = "\n".join(choice_peers.section("mixed", ["cost"], found))
    assert "| | predilect | apollo 0.3 |" in text
    assert "| sd cost | 0.5000 | 0.5000 |" in text
    assert "Not there: xlogit (no such model), biogeme (not installed), choice-learn (not done in" in text


@pytest.mark.slow
def test_a_program_runs_in_a_process_of_its_own():
    found = choice_peers.asked("predilect", "nested", choices(), sys.executable)
    assert found["estimates"]["dissimilarity"] > 0.0
    assert set(found["estimates"]) == {"cost", "fee", "dissimilarity"}
    missing = choice_peers.asked("biogeme", "logit", choices(), sys.executable)  # no peer of the tests' environment
    assert missing["missing"] in ("biogeme", "tomlkit") or missing["log_likelihood"] < 0.0


def test_swissmetro_has_what_its_columns_say():
    table = pl.DataFrame({
        "CHOICE": [1, 0, 3], "ID": [1, 2, 3], **{f"{mode}_AV": [1, 1, 1] for mode in ("TRAIN", "SM", "CAR")},
        "TRAIN_TT": [100, 2, 3], "SM_TT": [1, 2, 3], "CAR_TT": [1, 2, 3], "TRAIN_CO": [1, 2, 3], "SM_CO": [1, 2, 3],
        "CAR_CO": [1, 2, 3], "TRAIN_HE": [1, 2, 3], "SM_HE": [1, 2, 3], "SM_SEATS": [0, 1, 1],
    })  # fmt: skip
    data = choice_peers.swissmetro(table)
    assert data["has"].tolist() == [[True, True, True, False], [True, True, True, True], [True, True, False, False]]
    assert data["best"].tolist() == [0, 2]
    assert data["X"][0, 0, 0] == 1.0
