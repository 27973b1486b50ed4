"""Length-scales of CollaborativeGP by the evidence."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import CollaborativeGP, load
from predilect.papers.collaborative.training import best_factor
from tolerances import EXACT


def test_the_factor_with_the_most_evidence_is_found_between_powers_of_two():
    tried = []

    def evidence(factor):
        tried.append(factor)
        return -((np.log2(factor) - 1.3) ** 2)

    factor, trials = best_factor(evidence)
    assert abs(np.log2(factor) - 1.3) < 0.1
    assert [trial["factor"] for trial in trials] == tried
    assert max(trials, key=lambda trial: trial["log_evidence"])["factor"] == factor


def test_the_higher_of_two_maxima_is_taken_and_a_limit_where_the_evidence_rises_on():
    def two(factor):
        x = np.log2(factor)
        return max(1.0 - (x + 2.0) ** 2, 2.0 - (x - 2.0) ** 2)

    assert abs(np.log2(best_factor(two)[0]) - 2.0) < 0.1
    assert best_factor(np.log2)[0] == 8.0
    assert best_factor(lambda factor: -np.log2(factor))[0] == 0.125


@pytest.fixture(scope="module")
def answers():
    """Twelve items on a line; people's utilities are waves of it."""
    rng = np.random.default_rng(3)
    n_users, n_items, n = 12, 12, 360
    x = np.sort(rng.normal(size=n_items))
    f = 1.5 * np.stack([np.cos(4.0 * x), np.sin(4.0 * x)]).T @ rng.normal(size=(2, n_users))
    user, left = rng.integers(0, n_users, n), rng.integers(0, n_items, n)
    right = (left + rng.integers(1, n_items, n)) % n_items
    won = f[left, user] - f[right, user] + rng.normal(size=n) > 0.0
    frame = {"user": user, "left": left, "right": right, "winner": np.where(won, left, right)}
    return frame, {"item": np.arange(n_items), "x": x}


@pytest.mark.parametrize("preset", ["modern", "paper"])
def test_the_fit_is_the_one_at_the_length_scale_that_was_chosen(answers, preset, tmp_path):
    frame, items = answers
    given = {"preset": preset, "n_components": 3, "max_iter": 30, "tol": 10.0}
    start = CollaborativeGP(**given).fit(frame, items=items)
    model = CollaborativeGP(length_scale="optimise", **given).fit(frame, items=items)
    trials = model.report_["prior"]["trials"]
    best = max(trials, key=lambda trial: trial["log_evidence"])
    assert model.log_evidence_ == pytest.approx(best["log_evidence"], abs=EXACT)
    at_median = next(trial for trial in trials if trial["factor"] == 1.0)
    assert start.log_evidence_ == pytest.approx(at_median["log_evidence"], abs=EXACT)
    assert best["log_evidence"] > at_median["log_evidence"]
    scales = [
        np.exp([t for name, t in zip(k.names, k.theta, strict=True) if "length_scale" in name])
        for k in (start.hyperparameters_.kernel, model.hyperparameters_.kernel)
    ]
    np.testing.assert_allclose(scales[1], best["factor"] * scales[0], rtol=EXACT)
    assert any(f"{best['factor']:.2g} times the median's" in line for line in model.describe())
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").describe() == model.describe()


def test_without_features_there_is_nothing_to_search(answers):
    frame, _ = answers
    model = CollaborativeGP(length_scale="optimise", n_components=2, max_iter=30).fit(frame)
    assert model.report_["prior"]["trials"] == []
