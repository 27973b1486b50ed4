"""The baselines and the joint process: what is not in their contract, which takes long; and a little that is."""

from __future__ import annotations

import numpy as np
import pytest

import predilect
from contracts.votes import PAIRS, item_ids, questions, swapped, user_ids, votes
from predilect import JointGP
from predilect.errors import ConvergenceWarning
from predilect.papers.baselines import GPVU, BonillaGP, GPClassifier, HierarchicalGP, SingleUserGP
from simulate import crowd
from tolerances import CONVERGED, EXACT

FAST = {
    "joint": lambda **c: JointGP(**({"n_tuning": 0} | c)),
    "bonilla": lambda **c: BonillaGP(**({"n_tuning": 0} | c)),
    "hierarchical": lambda **c: HierarchicalGP(**({"n_jobs": 1, "tol": 1e-3} | c)),
    "gpvu": lambda **c: GPVU(**({"n_jobs": 1, "tol": 1e-3, "n_components": 2} | c)),
    "single": lambda **c: SingleUserGP(**({"n_jobs": 1, "tol": 1e-3} | c)),
    "classifier": GPClassifier,
}
ROWS = crowd(1, 8, 5, 8, delta=0.3)
DELTA = {"tie_threshold": 0.3}
AGES = {"user": user_ids(range(8)), "age": [20.0, 60.0, 31.0, 30.0, 55.0, 44.0, 27.0, 70.0]}
SIZES = {"item": item_ids(range(5)), "size": [1.0, 4.0, 2.0, 8.0, 5.0]}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "classifier" else n for n in FAST])
def test_a_small_contract(name, tmp_path):
    """The same bits whatever the order and the side, from a folder, and probabilities that are some."""
    columns, y = votes(ROWS)
    known = {"items": SIZES, "people": AGES}
    model = FAST[name]().fit(columns, y, **known)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = {key: [column[i] for i in order] for key, column in columns.items()}
    asked = questions(8, PAIRS[(PAIRS < 5).all(axis=1)])
    proba = model.predict_proba(asked)
    np.testing.assert_array_equal(FAST[name]().fit(swapped(shuffled), -y[order], **known).predict_proba(asked), proba)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=EXACT)
    np.testing.assert_allclose(model.predict_proba(swapped(asked)), proba[:, ::-1], atol=EXACT)
    assert model.score(columns, y) > np.log(1 / 3)
    model.save(tmp_path / "model")
    again = predilect.load(tmp_path / "model")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(asked), proba)
    assert again.rank("person 0003").equals(model.rank("person 0003"))
    new = {"item": ["new"], "size": [3.0]}
    pair = {"user": ["person 0001"], "left": ["new"], "right": ["item 0"]}
    for a, b in zip(model.predict_margin(pair, items=new), again.predict_margin(pair, items=new), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.describe() == model.describe()


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("named", [False, True])
def test_one_observation_in_all(name, named):
    columns = {"left": ["tea"], "right": ["milk"], "winner": ["tea"]} | ({"user": ["ann"]} if named else {})
    model = FAST[name]().fit(columns)
    pair = {key: columns[key] for key in columns if key != "winner"}
    left, _, right = model.predict_proba(pair)[0]
    assert 0.5 < left < 1.0
    assert left + right == pytest.approx(1.0, abs=EXACT)
    assert list(model.rank()["item"]) == ["tea", "milk"]


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (BonillaGP, {"user_nugget": 0.0}, "user_nugget must be"),
        (BonillaGP, {"variance": "big"}, "variance must be"),
        (HierarchicalGP, {"preset": "old"}, "preset must be one of"),
        (HierarchicalGP, {"strength": -1.0}, "strength must be"),
        (HierarchicalGP, {"own_share": 2.0}, "own_share must be 'auto' or a number from 0 to 1"),
        (HierarchicalGP, {"length_scale": "optimise"}, "length_scale must be"),
        (GPVU, {"n_components": 0}, "n_components must be"),
        (GPVU, {"variance": 0.0}, "variance must be"),
        (SingleUserGP, {"scale_prior": (1.0,)}, "scale_prior must be"),
        (GPClassifier, {"inference": "sampling"}, "inference must be one of"),
    ],
)
def test_arguments_out_of_range(make, change, message):
    with pytest.raises(ValueError, match=message):
        make(**change).fit(*votes(ROWS))


def test_bonilla_is_a_setting_of_the_joint_process():
    """(k_u + σ_u²) ⊗ (k_x / s + σ_x²) is a process with shares σ_u² / (1 + σ_u²) and σ_x² / (1/s + σ_x²)."""
    columns, y = votes(ROWS)
    asked, known = questions(8, np.array([(0, 1), (2, 4)])), {"items": SIZES, "people": AGES}
    one = BonillaGP(**DELTA, n_tuning=0, user_nugget=0.5, item_nugget=0.25, variance=0.5).fit(columns, y, **known)
    whole = 1.5 * 0.75
    other = JointGP(
        tie_threshold=0.3, n_tuning=0, user_share=0.5 / 1.5, item_share=0.25 / 0.75, noise=1.0, variance=whole
    )
    other.fit(columns, y, **known)
    for a, b in zip(one.predict_margin(asked), other.predict_margin(asked), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)
    assert abs(one.log_evidence_ - other.log_evidence_) < CONVERGED


def test_the_paper_preset_of_the_hierarchical_process():
    columns, y = votes(ROWS)
    with pytest.warns(ConvergenceWarning):
        model = HierarchicalGP(preset="paper", max_iter=3, tol=1e-9, n_jobs=1).fit(columns, y, items=SIZES)
    h = model.hyperparameters_
    assert (h.variance, h.strength, h.consensus_strength) == (1.0, 0.0, 0.0)
    same_scale = [value for name, value in h.to_dict().items() if "length_scale" in name]
    assert same_scale == [1.0]


def test_more_factors_than_differences():
    model = GPVU(n_components=30, n_jobs=1, tol=1e-3).fit(*votes(ROWS))
    assert model.factors_.shape == (5, 4)
