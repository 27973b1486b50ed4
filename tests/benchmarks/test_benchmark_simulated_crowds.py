"""Draws from crowdGPPL's model: their moments, what is held out, and the measures of the simulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.datasets.simulated_crowds import SIMULATIONS, Setting, draw, matern32, task_of
from benchmarks.simulation_figure import lines, markdown
from benchmarks.simulations import components, recovery, run

from tolerances import EXACT, STATISTICAL

SMALL = Setting(n_side=5, n_people=6, n_pairs=300, s_t=0.5, s_c=(0.2, 2.0), length_scale=2.0)


def test_draws_have_the_variances_of_the_setting() -> None:
    crowds = [draw(SMALL, seed) for seed in range(300)]
    unit = 0.5 / SMALL.noise_var
    for true, value in (
        (unit / 0.5, [c.consensus[7] for c in crowds]),
        (unit / 0.2, [c.components[0, 7] for c in crowds]),
        (unit / 2.0, [c.components[1, 24] for c in crowds]),
        (1.0, [c.weights[1, 3] for c in crowds]),
    ):
        assert abs(np.var(value) - true) < STATISTICAL * true * np.sqrt(2 / len(crowds))
    # Neighbours on the grid correlate as the kernel says.
    pair = np.array([(c.consensus[0], c.consensus[1]) for c in crowds])
    r = matern32(crowds[0].places, 2.0)[0, 1]
    assert abs(np.corrcoef(pair.T)[0, 1] - r) < STATISTICAL * (1 - r**2) / np.sqrt(len(crowds))


def test_kernel_is_a_product_over_features() -> None:
    x = np.random.default_rng(0).standard_normal((4, 2))
    one = [matern32(x[:, [k]], 0.7) for k in (0, 1)]
    np.testing.assert_allclose(matern32(x, 0.7), one[0] * one[1], atol=EXACT)
    r = np.sqrt(3) * abs(x[0, 0] - x[1, 0]) / 0.7
    assert one[0][0, 1] == pytest.approx((1 + r) * np.exp(-r), abs=EXACT)


def test_answers_follow_the_margins() -> None:
    crowd = draw(replace(SMALL, n_pairs=20_000, halves=False), 1)
    from scipy.special import ndtr

    p = ndtr(crowd.margins)
    won = crowd.outcome > 0
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        part = (p >= low) & (p < high)
        error = np.sqrt((p[part] * (1 - p[part])).sum()) / part.sum()
        assert abs(won[part].mean() - p[part].mean()) < STATISTICAL * error
    expected = np.minimum(p, 1 - p)
    assert abs(crowd.noise_rate - expected.mean()) < STATISTICAL * np.sqrt((expected * (1 - expected)).mean() / len(p))


def test_halves_keep_test_items_out_of_training() -> None:
    crowd = draw(SMALL, 2)
    task = task_of(crowd, seed=2)
    test_items = set(np.flatnonzero(crowd.test_items).tolist())
    assert len(test_items) == 12
    assert not ({*task.train.left.tolist(), *task.train.right.tolist()} & test_items)
    assert {*task.test.left.tolist(), *task.test.right.tolist()} <= test_items
    assert task.train.n_answers == crowd.for_training.sum()
    assert task.gold is not None
    assert set(task.gold["item"].to_list()) == test_items
    for user, item, score in list(task.gold.iter_rows())[::17]:
        assert score == pytest.approx(crowd.utilities[user, item], abs=EXACT)
    consensus = task.further["consensus"]
    assert not consensus.test.has_users
    assert consensus.gold is not None
    np.testing.assert_allclose(consensus.gold["score"], crowd.consensus[sorted(test_items)], atol=EXACT)
    truth = crowd.consensus[consensus.test.left] - crowd.consensus[consensus.test.right]
    assert (truth * consensus.test.outcome > 0).all()
    assert task.oracle_log_loss is not None
    assert 0 < task.oracle_log_loss < np.log(2)


def test_same_seed_same_crowd() -> None:
    first, second, other = (draw(SMALL, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.utilities, second.utilities)
    assert task_of(first).split_hash == task_of(second).split_hash != task_of(other).split_hash


def test_settings_are_those_of_the_papers() -> None:
    code, preprint = SIMULATIONS["code"], SIMULATIONS["preprint"]
    assert {s.s_c for s in code["a"].values()} == {(0.1, 1.0, 0.5, 10.0, 3.0)}
    assert [s.s_t for s in code["a"].values()] == [0.005, 0.015, 0.025, 0.05, 0.1]
    assert [s.s_c[0] for s in code["b"].values()] == [0.02, 0.2, 0.5, 1.0, 3.0, 6.0]
    assert {(len(s.s_c), s.n_pairs) for s in code["c"].values()} == {
        (c, p) for c in (1, 3, 10, 20) for p in (160, 320, 640, 1280, 2560)
    }
    assert {s.n_side**2 for part in preprint.values() for s in part.values()} == {100}
    assert [draw(s, 0).components.shape for s in preprint["a"].values()] == [(0, 100)] * 5


def test_recovery_by_hand() -> None:
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(np.column_stack([np.ones(20), rng.standard_normal((20, 4))]))
    v = q[:, 1:].T  # orthonormal, each of mean 0
    assert recovery(v[:3], -v[[2, 0, 1]]) == pytest.approx((1.0, 1.0), abs=EXACT)
    # The partner of the second comes fourth: the first two found do not hold it, the best assignment does.
    first, best = recovery(v[:2], v[[0, 2, 3, 1]])
    assert (first, best) == pytest.approx((0.5, 1.0), abs=EXACT)
    # Greedy takes the first one's best and leaves the second nothing; together they do better otherwise.
    a, b = (3 * v[0] + 2 * v[1]) / np.sqrt(13), v[2]
    first, best = recovery(np.array([v[0], a]), np.array([a, b]))
    assert first == pytest.approx(3 / np.sqrt(13) / 2, abs=EXACT)
    assert best == pytest.approx(0.5, abs=EXACT)
    assert recovery(v[:2], v[:1]) == pytest.approx((0.5, 0.5), abs=EXACT)
    assert recovery(v[:1], np.zeros((1, 20))) == (0.0, 0.0)


@pytest.mark.slow
def test_a_run_holds_what_the_figure_shows() -> None:
    crowd = draw(SMALL, 5)
    record = run(crowd, "population@max_iter=20", 5) | {"simulation": "b", "setting": "s_c=0.2"}
    assert "error" not in record
    for key in ("tau_person", "consensus_tau", "recovery", "recovery_first", "noise_rate"):
        assert -1 <= record[key] <= 1
    assert record["recovery"] >= record["recovery_first"] - 1e-9 or record["recovery_first"] <= 1
    drawn = lines([record, record | {"seed": 6, "tau_person": record["tau_person"] + 0.2}], "noise_rate", "tau_person")
    ((_, y, error),) = drawn["population@max_iter=20"]
    assert y == pytest.approx(record["tau_person"] + 0.1, abs=EXACT)
    assert error == pytest.approx(0.1, abs=EXACT)
    assert run(crowd, "population@variance=-1", 5)["error"].startswith("DataError")


def test_page_has_the_numbers_of_each_panel_in_order() -> None:
    record = {"simulation": "b", "model": "m", "noise_rate": 0.2}
    runs = [
        record | {"setting": setting, "seed": seed, "tau_person": tau}
        for setting, seed, tau in (("s_c=6", 0, 0.1), ("s_c=0.2", 0, 0.5), ("s_c=0.2", 1, 0.7))
    ]
    failed = record | {"setting": "s_c=6", "seed": 1, "error": "no"}
    other = record | {"setting": "s_c=6", "seed": 0, "model": "n", "tau_person": 0.3}
    page = markdown({"code": [*runs, failed, other]}).splitlines()
    rows = [line for line in page if line.startswith("| s_c")]
    assert rows == ["| s_c=0.2 | 0.20 | 0.600 ± 0.100 (2) | – |", "| s_c=6 | 0.20 | 0.100 (1) | 0.300 (1) |"]
    assert "![Simulations, code](figures/simulations-code.svg)" in page


def test_components_of_a_model_without_any_span_how_people_differ() -> None:
    crowd = draw(SMALL, 6)

    class Oracle:
        def scores(self, entries: object) -> np.ndarray:
            users, items = (entries[name].to_numpy() for name in ("user", "item"))
            return crowd.utilities[users, items]

    found = components(Oracle(), crowd)
    assert found is not None
    assert found.shape == (2, 25)
    true = crowd.components - crowd.components.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(true - true @ found.T @ found, 0.0, atol=1e-8)
