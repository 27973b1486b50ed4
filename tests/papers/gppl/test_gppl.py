"""What GPPL is beyond the contract of estimators: its three kinds, its inferences, its kernels, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import predilect
from predilect import GPPL, Population
from predilect.errors import ConvergenceWarning, DataError, DataWarning
from predilect.inference.gaussian.kernels import Selected, matern
from simulate import named, probit_answers
from tolerances import CONVERGED, ITERATIVE

RNG = np.random.default_rng(3)
N_USERS, N_ITEMS = 30, 12
AGE = np.linspace(-1.0, 1.0, N_USERS)
X = RNG.normal(size=(N_ITEMS, 2))
# The young like a large x, the old a small one; everybody likes a large z.
UTILITIES = np.outer(-1.5 * AGE, X[:, 0]) + X[:, 1]
ITEMS = {"item": [f"i{k}" for k in range(N_ITEMS)], "x": X[:, 0], "z": X[:, 1]}
USERS = {"user": [f"u{k}" for k in range(N_USERS)], "age": AGE}


def answers(seed: int, n: int, users: Any = None) -> tuple[dict[str, list[str]], np.ndarray]:
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(N_USERS) if users is None else users, n)
    left, right, outcome = probit_answers(rng, UTILITIES, user)
    return named(user, left, right), outcome


TRAIN, TEST = answers(0, 10), answers(1, 20)


def score(model: Any, **features: Any) -> float:
    return float(model.fit(*TRAIN, items=ITEMS, **features).score(*TEST))


def test_the_preset_of_the_paper_is_its_settings_and_gives_way_to_others():
    told = {"sites": "linearised", "surrogate": "2020", "inference": "stochastic", "scale_prior": (1.0, 100.0)}
    paper = GPPL(preset="paper").fit(*TRAIN, items=ITEMS)
    for name, value in told.items():
        assert getattr(paper, name) == "auto", (name, value)
    np.testing.assert_array_equal(
        paper.predict_margin(TEST[0])[0],
        GPPL(median="code", **told).fit(*TRAIN, items=ITEMS).predict_margin(TEST[0])[0],
    )
    other = GPPL(preset="paper", scale_prior=(2.0, 200.0), sites="expected").fit(*TRAIN, items=ITEMS)
    assert abs(other.predict_margin(TEST[0])[0] - paper.predict_margin(TEST[0])[0]).max() > ITERATIVE
    with pytest.raises(DataError, match="preset must be one of 'modern', 'paper'"):
        GPPL(preset="old").fit(*TRAIN, items=ITEMS)


@pytest.mark.slow
def test_what_differs_between_people_is_found_by_those_who_are_told_apart():
    pooled, separate = score(GPPL()), score(GPPL(users="separate"))
    joint = score(GPPL(users="joint"), people=USERS)
    assert joint > max(pooled, separate) + 0.05
    assert min(pooled, separate) > -np.log(2.0)
    many = answers(2, 60)
    alone, together = (GPPL(users=users).fit(*many, items=ITEMS).score(*TEST) for users in ("separate", "pooled"))
    assert alone > together + 0.05


def test_features_of_people_speak_for_strangers():
    some = answers(4, 25, np.arange(0, N_USERS, 2))
    model = GPPL(users="joint").fit(*some, items=ITEMS, people=USERS)
    young = {"user": ["new"], "left": [f"i{X[:, 0].argmax()}"], "right": [f"i{X[:, 0].argmin()}"]}
    with pytest.warns(DataWarning, match="without answers"):
        by_age = [model.predict_margin(young, people={"user": ["new"], "age": [age]})[0][0] for age in (-1.0, 1.0)]
    assert by_age[0] > 1.0 > -1.0 > by_age[1]
    assert model.rank("u0").height == N_ITEMS
    assert len(model.rank()) == N_ITEMS


def test_joint_models_are_saved_whole(tmp_path):
    model = GPPL(users="joint", n_inducing=40).fit(*TRAIN, items=ITEMS, people=USERS)
    model.save(tmp_path / "model")
    again = predilect.load(tmp_path / "model")
    assert isinstance(again, GPPL)
    for a, b in zip(model.predict_margin(TEST[0]), again.predict_margin(TEST[0]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.rank().equals(model.rank())


def test_inferences_agree():
    """The same model by four approximations; Laplace's mode lies nearer to zero than the others' means."""
    found = {
        how: GPPL(inference=how, variance=1.0).fit(*TRAIN, items=ITEMS).predict_margin(TEST[0])
        for how in ("variational", "stochastic", "ep", "laplace")
    }
    for how, (mean, var) in found.items():
        np.testing.assert_allclose(mean, found["ep"][0], atol=0.05, rtol=0.1 * (how == "laplace"), err_msg=how)
        np.testing.assert_allclose(np.sqrt(var), np.sqrt(found["ep"][1]), rtol=0.1, err_msg=how)


def test_separate_is_the_population_model_without_a_population():
    """One process a person is the pooled expectation propagation of that person alone."""
    columns, y = TRAIN
    model = GPPL(users="separate", variance=2.0).fit(columns, y, items=ITEMS)
    own = np.flatnonzero(np.array(columns["user"]) == "u7")
    alone = GPPL(inference="ep", variance=2.0).fit(
        {name: [column[i] for i in own] for name, column in columns.items()}, y[own], items=ITEMS
    )
    asked = {"user": ["u7"] * 3, "left": ["i0", "i1", "i5"], "right": ["i4", "i2", "i11"]}
    for a, b in zip(model.predict_margin(asked), alone.predict_margin(asked), strict=True):
        np.testing.assert_allclose(a, b, atol=ITERATIVE)


@pytest.mark.parametrize("users", ["pooled", "separate"])
def test_length_scales_are_optimised(users):
    plain = GPPL(users=users).fit(*TRAIN, items=ITEMS)
    best = GPPL(users=users, length_scale="optimise").fit(*TRAIN, items=ITEMS)
    assert best.log_evidence_ > plain.log_evidence_ + 1.0
    assert not np.allclose(best.hyperparameters_.kernel.theta, plain.hyperparameters_.kernel.theta)


@pytest.mark.parametrize("n_inducing", [None, 6])
def test_a_kernel_of_ones_own_is_kept_learned_and_saved(n_inducing, tmp_path):
    kernel = Selected(matern([1.0]), (0,)) + Selected(matern([1.0]), (1,))
    model = GPPL(kernel=kernel, length_scale="optimise", n_inducing=n_inducing).fit(*TRAIN, items=ITEMS)
    assert model.get_params()["kernel"] is kernel
    learned = model.hyperparameters_.kernel
    assert learned.names == kernel.names
    assert not np.allclose(learned.theta, kernel.theta)
    model.save(tmp_path / "model")
    again = GPPL.load(tmp_path / "model")
    np.testing.assert_array_equal(again.hyperparameters_.kernel.theta, learned.theta)
    np.testing.assert_array_equal(again.predict_proba(TEST[0]), model.predict_proba(TEST[0]))


def test_inducing_points_at_all_items_change_nothing():
    model, exact = (GPPL(n_inducing=n, variance=1.0).fit(*TRAIN, items=ITEMS) for n in (N_ITEMS, None))
    np.testing.assert_allclose(model.predict_proba(TEST[0]), exact.predict_proba(TEST[0]), atol=CONVERGED)
    more = GPPL(n_inducing=500, variance=1.0).fit(*TRAIN, items=ITEMS)  # more points than items: the items
    np.testing.assert_allclose(more.predict_proba(TEST[0]), exact.predict_proba(TEST[0]), atol=CONVERGED)


def test_units_do_not_matter():
    other = ITEMS | {"x": 1000.0 * X[:, 0] + 3.0}
    model, scaled = (GPPL().fit(*TRAIN, items=items) for items in (ITEMS, other))
    np.testing.assert_allclose(model.predict_proba(TEST[0]), scaled.predict_proba(TEST[0]), atol=CONVERGED)


# Bad input


def test_without_features_items_are_alike_to_no_other():
    model = GPPL().fit(*TRAIN)
    assert -np.log(2.0) < model.score(*TEST) < 0.0
    assert "Item features" not in " ".join(model.describe())


def test_some_items_without_features():
    some = {name: values[:8] for name, values in ITEMS.items()}
    for n_inducing in (None, 4):
        with pytest.warns(DataWarning, match="no features of 4 of the 12 items with answers"):
            model = GPPL(n_inducing=n_inducing).fit(*TRAIN, items=some)
        assert model.score(*TEST) > -np.log(2.0)
        assert any("have no features" in line for line in model.report_["features"])


@pytest.mark.slow
def test_some_people_without_features():
    some = {name: values[:20] for name, values in USERS.items()}
    with pytest.warns(DataWarning, match="10 of 30 people have no features: the mean"):
        model = GPPL(users="joint").fit(*TRAIN, items=ITEMS, people=some)
    assert model.score(*TEST) > -np.log(2.0)


@pytest.mark.parametrize("missing", ["items", "people"])
def test_joint_needs_features_of_both(missing):
    given = {"items": ITEMS, "people": USERS} | {missing: None}
    with pytest.raises(DataError, match="needs features of the"):
        GPPL(users="joint").fit(*TRAIN, **given)


def test_features_that_say_nothing():
    """Constant columns are dropped, collinear ones harmless, and items alike in all features one and the same."""
    items = ITEMS | {"constant": [1.0] * N_ITEMS, "again": 2.0 * X[:, 0], "x": np.repeat(X[:4, 0], 3)}
    with pytest.warns(DataWarning, match="only 4 items differ in their features"):
        few = GPPL(n_inducing=5).fit(*TRAIN, items={name: items[name] for name in ("item", "x")})
    assert few.report_["prior"]["n_inducing"] == 4
    model = GPPL(n_inducing=5).fit(*TRAIN, items=items)
    assert np.isfinite(model.predict_proba(TEST[0])).all()
    alike = GPPL().fit(*TRAIN, items={"item": ITEMS["item"], "x": [0.0] * 6 + [1.0] * 6})
    assert alike.predict_margin({"left": ["i0"], "right": ["i1"]})[0][0] == pytest.approx(0.0, abs=1e-3)


def test_one_answer_in_all():
    for how in ({}, {"inference": "ep"}, {"inference": "laplace"}, {"n_inducing": 1}):
        model = GPPL(**how).fit({"left": ["i0"], "right": ["i1"]}, [1], items=ITEMS)
        assert model.predict_proba({"left": ["i0"], "right": ["i1"]})[0, 0] > 0.5


def test_very_many_equal_answers_stay_finite():
    model = GPPL().fit({"left": ["a", "b"], "right": ["b", "c"], "weight": [1e5, 1e5]}, [1, 1])
    assert np.isfinite(model.predict_margin({"left": ["a"], "right": ["c"]})[0]).all()


def test_too_many_items_are_refused_with_advice():
    n = 6001
    frame = pl.DataFrame({"left": np.arange(n - 1), "right": np.arange(1, n)})
    with pytest.raises(DataError, match=r"6001 items would each be a point.*n_inducing=500"):
        GPPL().fit(frame, np.ones(n - 1, dtype=int))
    with pytest.raises(DataError, match="too many"):
        GPPL(users="separate").fit(frame.with_columns(user=pl.Series(np.arange(n - 1) % 3)), np.ones(n - 1, dtype=int))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("users", "alone"), ("kernel", "rbf"), ("kernel_form", "both"), ("length_scale", "guess"),
        ("length_scale", [1.0, -1.0]), ("median", "mean"), ("n_inducing", 0), ("n_inducing", 2.5),
        ("inference", "mcmc"), ("sites", "x"), ("surrogate", "2021"), ("variance", 0.0), ("scale_prior", (1.0,)),
        ("scale_prior", (1.0, -1.0)), ("noise_variance", 0), ("batch_size", 0), ("forgetting_rate", -1.0),
        ("tol", "small"), ("max_iter", 0), ("random_state", -1),
    ],
)  # fmt: skip
def test_settings_out_of_range(name, value):
    with pytest.raises(ValueError, match=name.replace("_", ".")):
        GPPL(**{name: value}).fit(*TRAIN, items=ITEMS)


def test_length_scales_of_another_number():
    with pytest.raises(ValueError, match=r"3 numbers, but the features make 2 columns"):
        GPPL(length_scale=[1.0, 2.0, 3.0]).fit(*TRAIN, items=ITEMS)


def test_another_models_folder_is_refused(tmp_path):
    Population(personal=False).fit(*TRAIN).save(tmp_path / "model")
    with pytest.raises(DataError, match=r"holds a model called 'pooled', not 'gppl'.*load"):
        GPPL.load(tmp_path / "model")


@pytest.mark.slow
def test_a_length_scale_at_its_bound_is_told():
    noise = {"item": ITEMS["item"], "x": X[:, 0], "noise": RNG.normal(size=N_ITEMS)}
    model = GPPL(length_scale="optimise", inference="ep").fit(*TRAIN, items=noise)
    assert all(isinstance(text, str) for text in model.report_["prior"]["at_bound"])


def test_the_papers_linearisation_predicts_too():
    for surrogate in ("corrected", "2020"):
        model = GPPL(sites="linearised", surrogate=surrogate, scale_prior=(1.0, 10.0), max_iter=1000)
        assert model.fit(*TRAIN, items=ITEMS).score(*TEST) > -np.log(2.0)


def test_too_few_batches_are_told():
    with pytest.warns(ConvergenceWarning, match="sparse variational inference"):
        GPPL(max_iter=1).fit(*TRAIN, items=ITEMS)
