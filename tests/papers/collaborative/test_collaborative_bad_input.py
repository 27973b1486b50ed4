"""CollaborativeGP on answers that say little: one in all, more functions than anything else, items that are alike."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import CollaborativeGP
from predilect.errors import DataWarning
from tolerances import EXACT

QUICK = {"max_iter": 500, "tie_threshold": 0.0}
PRESETS = ["modern", "paper"]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("named", [False, True])
def test_one_observation_in_all(preset, named):
    columns = {"left": ["tea"], "right": ["milk"], "winner": ["tea"]} | ({"user": ["ann"]} if named else {})
    model = CollaborativeGP(preset=preset, **QUICK).fit(columns)
    pair = {key: columns[key] for key in columns if key != "winner"}
    left, tie, right = model.predict_proba(pair)[0]
    assert tie == 0.0
    assert left + right == pytest.approx(1.0, abs=EXACT)
    assert left >= 0.5
    assert np.isfinite(model.log_evidence_)
    assert len(model.component_importances_) == 1  # one person's taste is one function
    if preset == "modern":  # its functions have no sign to choose: what was answered is the likelier answer
        assert left > 0.5
        assert list(model.rank()["item"]) == ["tea", "milk"]


@pytest.mark.parametrize("preset", PRESETS)
def test_more_functions_than_people_or_pairs_and_a_person_without_answers(preset):
    rows = {"user": ["ann", "ann", "bob", "bob"], "left": ["p", "q", "p", "q"], "right": ["q", "r", "r", "r"]}
    model = CollaborativeGP(preset=preset, n_components=20, **QUICK).fit(rows | {"winner": ["p", "q", "p", "q"]})
    assert model.component_importances_.shape == (20,)
    assert np.isfinite(model.component_importances_).all()
    pair = {"left": ["p"], "right": ["r"]}
    assert np.isfinite(model.predict_margin(pair)).all()
    with pytest.warns(DataWarning, match="without answers"):
        stranger = model.predict_proba(pair | {"user": ["cas"]})
    np.testing.assert_allclose(stranger, model.predict_proba(pair), atol=EXACT)
    with pytest.warns(DataWarning, match="does not know 'cas'"):
        assert len(model.suggest("cas", n=9)) == 3


@pytest.mark.parametrize("preset", PRESETS)
def test_items_that_are_alike_in_everything_are_a_draw_and_are_asked_about_last(preset):
    answers = {"user": ["ann", "ann", "bob"], "left": ["a", "b", "a"], "right": ["b", "c", "c"]}
    features = {"item": ["a", "b", "c"], "x": [1.0, 1.0, 3.0]}
    model = CollaborativeGP(preset=preset, n_components=2, own_share=0.0, **QUICK)
    model.fit(answers | {"winner": ["a", "c", "c"]}, items=features)
    left, _, right = model.predict_proba({"user": ["ann"], "left": ["a"], "right": ["b"]})[0]
    assert left == pytest.approx(0.5, abs=1e-6)
    assert right == pytest.approx(0.5, abs=1e-6)
    questions = model.suggest("ann", n=9, repeat=True)
    last = {questions["left"][2], questions["right"][2]}
    assert last == {"a", "b"}
    assert questions["score"][2] == pytest.approx(0.0, abs=1e-6)
