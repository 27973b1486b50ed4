"""What CrowdGPPL is beyond the contract of estimators: its presets and variants, strangers, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import predilect
from predilect import GPPL, CrowdGPPL
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.kernels import matern
from simulate import named, probit_answers
from tolerances import CONVERGED, EXACT

RNG = np.random.default_rng(7)
N_USERS, N_ITEMS = 40, 10
X = RNG.normal(size=(N_ITEMS, 2))
SIDE = np.where(np.arange(N_USERS) % 2, 1.0, -1.0)
# A consensus in one feature, and two camps about the other.
UTILITIES = X[:, 1] + np.outer(2.0 * SIDE, X[:, 0])
ITEMS = {"item": [f"i{k}" for k in range(N_ITEMS)], "x": X[:, 0], "z": X[:, 1]}
USERS = {"user": [f"u{k}" for k in range(N_USERS)], "side": SIDE, "noise": RNG.normal(size=N_USERS)}
QUICK: dict[str, Any] = {"n_components": 3, "component_prior": (1.0, 10.0), "n_restarts": 1}

# Where points are few the scales of the linearised model drift for ever, and with them its bound.
STOPPED: dict[str, Any] = {"preset": "paper", "max_iter": 30, "tol": 0.1}


def answers(seed: int, n: int, users: Any = None) -> tuple[dict[str, list[str]], np.ndarray]:
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(N_USERS) if users is None else users, n)
    left, right, outcome = probit_answers(rng, UTILITIES, user)
    return named(user, left, right), outcome


TRAIN, TEST = answers(0, 8), answers(1, 15)


def fitted(**changes: Any) -> CrowdGPPL:
    users = USERS if changes.get("user_features") else None
    return CrowdGPPL(**(QUICK | changes)).fit(*TRAIN, items=ITEMS, people=users)


@pytest.fixture(scope="module")
def modern() -> CrowdGPPL:
    return fitted()


VARIANTS = [
    {},
    {"preset": "paper"},
    {"preset": "paper", "noise_variance": 1.0},
    {"user_features": True},
    {"preset": "paper", "user_features": True},
    {"item_features": False},
    {"preset": "paper", "item_features": False},
    {"with_consensus": False},
    {"preset": "paper", "with_consensus": False},
    {"n_inducing": 5},
    {"n_inducing": 5, **STOPPED},
    {"n_components": 0},
    pytest.param({"n_components": 60}, marks=pytest.mark.slow),
    {"preset": "paper", "batch_size": 60},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_variant_beats_chance_and_comes_back(changes, tmp_path):
    model = fitted(**changes)
    assert model.score(*TEST) > -np.log(2.0) + 0.02
    model.save(tmp_path / "model")
    again = predilect.load(tmp_path / "model")
    assert isinstance(again, CrowdGPPL)
    np.testing.assert_array_equal(again.predict_proba(TEST[0]), model.predict_proba(TEST[0]))
    assert again.rank("u3").equals(model.rank("u3"))
    np.testing.assert_array_equal(again.component_importances_, model.component_importances_)
    assert again.get_params() == model.get_params()


def test_people_who_differ_are_told_apart(modern):
    pooled = GPPL().fit(*TRAIN, items=ITEMS).score(*TEST)
    assert modern.score(*TEST) > pooled + 0.15
    best, worst = f"i{X[:, 0].argmax()}", f"i{X[:, 0].argmin()}"
    pair = {"left": [best] * 2, "right": [worst] * 2, "user": ["u1", "u0"]}
    likes, dislikes = modern.predict_margin(pair)[0]
    assert likes > 1.0 > -1.0 > dislikes


def test_the_consensus_is_what_the_camps_agree_on(modern):
    board = modern.utilities()
    assert np.corrcoef(board["mean"], X[:, 1])[0, 1] > 0.8


def test_a_consensus_of_nobody_is_the_average_person():
    model = fitted(with_consensus=False)
    everybody = np.mean([model.utility_distribution(f"u{k}")[0] for k in range(N_USERS)], axis=0)
    np.testing.assert_allclose(model.utility_distribution()[0], everybody, atol=CONVERGED)
    assert model.hyperparameters_.consensus_variance == 0.0


def test_components_that_matter_are_few():
    importances = np.sort(fitted(n_components=6, component_prior=(1.0, 1.0)).component_importances_)
    assert importances.shape == (6,)
    assert importances[-1] > 2.0 * importances[2]


def test_no_components_are_the_pooled_model():
    """With t alone and the same s, CrowdGPPL is GPPL."""
    given: dict[str, Any] = {"length_scale": 1.0, "tol": 1e-12, "max_iter": 500}
    crowd = CrowdGPPL(n_components=0, own_share=0.0, consensus_prior=(1e7, 2e7), **given).fit(*TRAIN, items=ITEMS)
    pooled = GPPL(variance=crowd.hyperparameters_.consensus_variance, **given).fit(*TRAIN, items=ITEMS)
    for a, b in zip(crowd.predict_margin(TEST[0]), pooled.predict_margin(TEST[0]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)  # two stop rules on a flat bound


@pytest.mark.parametrize(("n_inducing_users", "n_points"), [("auto", N_USERS), (None, N_USERS), (5, 5)])
def test_weights_follow_features_through_as_many_users_as_asked_for(n_inducing_users, n_points):
    model = fitted(preset="paper", user_features=True, n_inducing_users=n_inducing_users)
    assert model.posterior_.weights.projection.n_points == n_points


@pytest.mark.parametrize("preset", ["modern", "paper"])
def test_features_speak_for_strangers(preset):
    some = answers(4, 12, np.arange(0, N_USERS - 10))
    model = CrowdGPPL(preset=preset, user_features=True, **QUICK).fit(*some, items=ITEMS, people=USERS)
    asked = {
        "user": ["new", "newer"], "left": [f"i{X[:, 0].argmax()}"] * 2, "right": [f"i{X[:, 0].argmin()}"] * 2,
    }  # fmt: skip
    with pytest.warns(DataWarning, match="2 of 2 pairs name someone without answers"):
        mean, var = model.predict_margin(
            asked, people={"user": ["new", "newer"], "side": [1.0, -1.0], "noise": [0.0] * 2}
        )
    with pytest.warns(DataWarning, match="2 of 2 pairs"):
        nobody_mean, nobody_var = model.predict_margin(asked)
    assert mean[0] > nobody_mean[0] > mean[1]
    assert mean[0] - mean[1] > 1.0
    assert nobody_mean[0] == nobody_mean[1]
    assert np.all(var > 0.0)
    assert np.all(nobody_var > 0.0)


def test_new_items_by_features_and_far_from_everything(modern):
    new = {"item": ["like i0", "far"], "x": [X[0, 0], 1e6], "z": [X[0, 1], 1e6]}
    mean, var = modern.predict_margin({"left": ["like i0", "i0"], "right": ["i1", "i1"], "user": ["u1"] * 2}, items=new)
    assert 0.0 < mean[0] / mean[1] < 1.0  # half of a utility is an item's own
    assert var[0] > var[1]
    pair, swapped = {"left": ["far"], "right": ["i1"]}, {"left": ["i1"], "right": ["far"]}
    np.testing.assert_allclose(
        modern.predict_proba(pair, items=new), modern.predict_proba(swapped, items=new)[:, ::-1], atol=EXACT
    )


def test_how_much_components_may_matter_is_chosen_by_held_out_answers():
    model = CrowdGPPL(n_components=3, n_restarts=1).fit(*TRAIN, items=ITEMS)
    trials = model.report_["prior"]["trials"]
    assert [(trial["shape"], trial["rate"]) for trial in trials] == [(10.0, 100.0), (10.0, 10.0), (10.0, 1.0)]
    best = min(trials, key=lambda trial: trial["log_loss"])
    chosen = CrowdGPPL(n_components=3, n_restarts=1, component_prior=(best["shape"], best["rate"]))
    chosen.fit(*TRAIN, items=ITEMS)
    np.testing.assert_array_equal(chosen.predict_proba(TEST[0]), model.predict_proba(TEST[0]))


@pytest.mark.slow
def test_length_scales_are_optimised(modern):
    best = fitted(length_scale="optimise")
    assert best.log_evidence_ > modern.log_evidence_
    assert not np.allclose(best.hyperparameters_.kernel.theta, modern.hyperparameters_.kernel.theta)
    with pytest.raises(ValueError, match="length_scale"):
        fitted(preset="paper", length_scale="optimise")


# Bad input


def test_one_person_has_a_consensus_only():
    columns, y = answers(3, 30, np.array([4]))
    for given in (columns, {name: columns[name] for name in ("left", "right")}):
        model = CrowdGPPL(**QUICK).fit(given, y, items=ITEMS)
        assert not model.personal_
        assert model.score(given, y) > -0.6


def test_people_without_features_count_as_the_average():
    some = {name: values[:25] for name, values in USERS.items()}
    model = CrowdGPPL(user_features=True, **QUICK).fit(*TRAIN, items=ITEMS, people=some)
    assert model.score(*TEST) > -0.65


def test_features_of_people_that_did_not_come():
    with pytest.raises(DataError, match="user_features=True needs features of people"):
        CrowdGPPL(user_features=True).fit(*TRAIN, items=ITEMS)


def test_some_items_without_features():
    some = {name: values[:7] for name, values in ITEMS.items()}
    for changes in ({}, {"n_inducing": 4}, {"preset": "paper", "n_inducing": 4}):
        with pytest.warns(DataWarning, match="no features of 3 of the 10 items with answers"):
            model = CrowdGPPL(**(QUICK | changes)).fit(*TRAIN, items=some)
        assert model.score(*TEST) > -0.65


def test_own_shares_and_inducing_points_contradict_each_other():
    with pytest.raises(DataError, match=r"own_share=0\.3 needs every item as an inducing point"):
        fitted(own_share=0.3, n_inducing=4)


def test_one_answer_in_all():
    for preset in ("modern", "paper"):
        model = CrowdGPPL(preset=preset, n_components=2)
        model.fit({"user": ["a"], "left": ["i0"], "right": ["i1"]}, [1], items=ITEMS)
        assert model.predict_proba({"left": ["i0"], "right": ["i1"]})[0, 0] > 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("preset", "new"), ("n_components", -1), ("n_components", 2.5), ("user_features", "auto"),
        ("with_consensus", 1),
        ("item_features", None), ("n_inducing", 0), ("n_inducing_users", 0), ("own_share", 1.0), ("own_share", "half"),
        ("kernel", "rbf"),
        ("consensus_prior", (1.0, 0.0)), ("component_prior", "vague"), ("noise_variance", -1.0),
        ("batch_size", 0), ("n_restarts", 0), ("tol", 0.0), ("max_iter", 0),
    ],
)  # fmt: skip
def test_settings_out_of_range(name, value):
    with pytest.raises(ValueError, match=name.replace("_", ".")):
        CrowdGPPL(**{name: value}).fit(*TRAIN, items=ITEMS)


def test_nothing_to_learn():
    with pytest.raises(ValueError, match="n_components"):
        CrowdGPPL(n_components=0, with_consensus=False).fit(*TRAIN, items=ITEMS)


def test_a_kernel_of_ones_own_is_taken_as_it_is():
    kernel = matern([0.7], order=2.5)
    model = fitted(kernel=kernel)
    assert model.hyperparameters_.kernel is kernel


def test_the_argument_with_consensus_and_the_method_consensus():
    model = CrowdGPPL(with_consensus=False)
    assert model.get_params()["with_consensus"] is False
    assert model.set_params(with_consensus=True, n_components=4).get_params()["with_consensus"] is True
    assert model.n_components == 4
    assert "with_consensus=False" in repr(CrowdGPPL(with_consensus=False))
