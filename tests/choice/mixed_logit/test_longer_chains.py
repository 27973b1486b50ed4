"""Chains that do not agree by default run longer, and what is left of it stands first in what the model says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from predilect import MixedLogit
from predilect.choice.mixed_logit import training
from predilect.errors import ConvergenceWarning


def fitted(n_people: int, n_choices: int, **settings):
    rng = np.random.default_rng(0)
    items = {"item": [f"i{k}" for k in range(12)]} | {f"x{k}": rng.standard_normal(12).tolist() for k in range(3)}
    rows = []
    for u in range(n_people):
        for t in range(n_choices):
            shown = rng.choice(12, 3, replace=False)
            best = max(shown, key=lambda i: items["x0"][i] + rng.gumbel())
            rows += [(f"u{u:02d}", t, f"i{i}", int(i == best)) for i in shown]
    frame = dict(zip(("user", "task", "item", "choice"), map(list, zip(*rows, strict=True)), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MixedLogit(random_state=0, n_jobs=1, **settings).fit(frame, items=items)


def test_chains_that_do_not_agree_run_longer_and_it_is_said(monkeypatch):
    monkeypatch.setattr(training, "_SWEEPS", 40)
    model = fitted(12, 1)
    prior = model.report_["prior"]
    assert prior["draws"] == 160
    said = model.describe()[0]
    assert max(prior["r_hat_means"]) < 1.05 or said.startswith(("Not usable", "To be read with care"))
    assert fitted(12, 1, n_draws=50).report_["prior"]["draws"] == 50


@pytest.mark.slow
def test_chains_that_agree_do_not_run_longer():
    prior = fitted(12, 1).report_["prior"]
    assert prior["draws"] == 6000
    assert max(prior["r_hat_means"]) < 1.05
