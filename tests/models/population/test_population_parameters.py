"""What the caller may fix or bring along: the tie threshold, features, and every parameter within its range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from predilect import Calibration, Comparisons, Population
from predilect.errors import DataError, DataWarning
from simulate import comparisons, crowd
from tolerances import EXACT, ITERATIVE

CROWD = comparisons(crowd(1, 20, 6, 12, delta=0.4))
STRICT = comparisons(crowd(2, 5, 4, 8))
# How much people differ in care is given as well: a search of it would take most of the time.
GIVEN = {"strength": 10.0, "variance": 2.0, "consensus_variance": 4.0, "consistency": 0.0}
both = pytest.mark.parametrize("personal", [True, False])


@pytest.fixture(scope="module")
def model():
    return Population(n_jobs=1, **GIVEN).fit(CROWD)


# Ties


def probabilities(mean, var, delta):
    """Of left, tie and right for one margin, in closed form."""
    edges = norm.cdf((np.array([-delta, delta]) - mean) / np.sqrt(1 + var))
    return [1 - edges[1], edges[1] - edges[0], edges[0]]


@both
def test_a_tie_threshold_that_is_given_is_kept(personal):
    model = Population(personal, n_jobs=1, tie_threshold=0.7, **GIVEN).fit(CROWD)
    assert model.tie_threshold_ == 0.7
    found = model.hyperparameters_.calibration
    factor = (
        found.variance_factor * found.unseen_ratio * found.newcomer_factor
    )  # of someone who has answered on nothing
    assert (found.variance_factor == 1.0) == (not personal)  # the pooled model has none to choose
    mean, var = model.predict_margin({"left": [0], "right": [1]})
    expected = probabilities(mean, factor * var, 0.7)
    np.testing.assert_allclose(model.predict_proba({"left": [0], "right": [1]})[0], expected, atol=EXACT)
    with pytest.raises(DataError, match="tie_threshold=0 says that ties cannot happen"):
        Population(personal, tie_threshold=0.0).fit(CROWD)


@both
@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_a_variance_factor_widens_probabilities_and_nothing_else(personal, factor):
    given = GIVEN | {"tie_threshold": 0.4, "n_jobs": 1}
    plain = Population(personal, calibration=None, **given).fit(CROWD)
    model = Population(personal, calibration=Calibration(factor), **given).fit(CROWD)
    assert plain.hyperparameters_.calibration == Calibration()
    assert model.hyperparameters_.calibration == Calibration(factor)
    pairs = {"user": [3, 4], "left": [0, 2], "right": [1, 3]}
    mean, var = model.predict_margin(pairs)
    for one, other in zip((mean, var), plain.predict_margin(pairs), strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.rank().equals(plain.rank())
    proba, log_proba = model.predict_proba(pairs), model.predict_log_proba(pairs)
    for i in range(2):
        np.testing.assert_allclose(proba[i], probabilities(mean[i], factor * var[i], 0.4), atol=EXACT)
    np.testing.assert_allclose(np.exp(log_proba), proba, atol=EXACT)
    score = model.score(pairs, [1, 0])
    assert abs(score - 0.5 * (log_proba[0, 0] + log_proba[1, 1])) < EXACT


@both
@pytest.mark.parametrize("delta", [0.0, 0.4])
def test_answers_have_the_noise_of_the_fit_but_for_lapses(personal, delta):
    given = GIVEN | {"tie_threshold": delta, "n_jobs": 1}
    careless = Calibration(0.7, lapse_rate=0.1)
    crowd = CROWD.take(np.flatnonzero(CROWD.outcome)) if delta == 0.0 else CROWD
    model = Population(personal, calibration=careless, **given).fit(crowd)
    pairs = {"user": [3, 4], "left": [0, 2], "right": [1, 3]}
    mean, var = model.predict_margin(pairs)
    proba = model.predict_proba(pairs)
    for i in range(2):
        looked = probabilities(mean[i], 0.7 * var[i], delta)
        lapsed = probabilities(mean[i], 0.7 * var[i] + 24.0, delta)
        np.testing.assert_allclose(proba[i], 0.9 * np.array(looked) + 0.1 * np.array(lapsed), atol=EXACT)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(pairs)), proba, atol=EXACT)


def test_log_probabilities_keep_their_digits_where_probabilities_vanish():
    # 60 standard deviations out, where Φ is 0 in double precision.
    rigid = {"strength": 1e4, "variance": 1e-8, "consensus_variance": 1e6, "tie_threshold": 0.0}
    frame = {"user": [0, 1] * 2, "left": list("xyxy"), "right": list("yzyz")}
    model = Population(n_jobs=1, calibration=Calibration(1e-8), **rigid).fit(frame, [1, 1, 1, 1])
    model.posterior_ = replace(model.posterior_, m=np.array([60.0, 0.0, -60.0]))
    pair = {"left": ["x"], "right": ["y"]}
    left, tie, right = model.predict_log_proba(pair)[0]
    mean, var = model.predict_margin(pair)
    x = mean[0] / np.sqrt(1.0 + 1e-8 * var[0])
    assert x > 59.0
    assert (left, tie) == (0.0, -np.inf)
    assert model.predict_proba(pair)[0, 2] == 0.0
    assert abs(right / norm.logsf(x) - 1.0) < EXACT


@both
def test_without_ties_there_are_none_to_come(personal):
    model = Population(personal, n_jobs=1).fit(STRICT)
    assert model.tie_threshold_ == 0.0
    assert np.all(model.predict_proba({"left": [0, 1], "right": [1, 2]})[:, 1] == 0.0)
    with pytest.warns(UserWarning, match="probability 0"):
        assert model.score({"user": [0], "left": [0], "right": [1], "winner": ["tie"]}) == -np.inf


# Features


@pytest.mark.slow
@both
def test_features_of_half_the_items(personal):
    with pytest.warns(DataWarning, match="no features of 3 of the 6 items"):
        model = Population(personal, n_jobs=1).fit(CROWD, items={"item": [0, 1, 2], "x": [1.0, 2.0, 3.0]})
    assert any("3 of 6 items have no features" in line for line in model.report_["features"])
    assert len(model.rank()) == 6


@both
def test_a_constant_feature_says_nothing(personal):
    model = Population(personal, n_jobs=1, **GIVEN).fit(CROWD, items={"item": range(6), "x": [1.0] * 6})
    assert any("constant" in line for line in model.report_["features"])
    assert model.rank().equals(Population(personal, n_jobs=1, **GIVEN).fit(CROWD).rank())


def test_an_infinite_feature_is_an_error():
    with pytest.raises(DataError, match='"x" is infinite in 1 row'):
        Population().fit(CROWD, items={"item": range(6), "x": [1, 2, 3, 4, 5, np.inf]})


def test_features_of_people_are_kept_and_not_used_where_told_so(model):
    other = Population(n_jobs=1, user_features=False, **GIVEN).fit(CROWD, people={"user": range(20), "age": range(20)})
    assert other.user_features_.columns == ["age"]
    assert other.rank().equals(model.rank())


@both
def test_something_new_without_features_has_the_variance_of_the_prior(personal):
    model = Population(personal, n_jobs=1, **GIVEN).fit(CROWD)
    with pytest.warns(UserWarning, match="not known"):
        _, var = model.predict_margin({"left": ["x"], "right": ["y"]})
    posterior = model.posterior_
    spread = 4.0
    if personal:  # population.md section 6 with K = I and A = 0
        spread += 2.0 * (10.0 + np.trace(posterior.Sigma) / 2.0) / (10.0 + 6)
    np.testing.assert_allclose(var, 2 * spread, atol=EXACT)


# Parameters

OUT_OF_RANGE = [
    ("strength", 0.0, "1e-06 to 1e"), ("variance", -1.0, "1e-08 to 1e"), ("consensus_variance", 0, "1e-08 to inf"),
    ("feature_weight", 1.5, "0 to 1"), ("feature_weight", (0.5, 2.0), "0 to 1"), ("feature_weight", (0.5,), "a pair"),
    ("tie_threshold", (1.0, -1.0), "0 to 10"), ("length_scale", 0.0, "1e-06 to 1e"), ("tie_threshold", -1.0, "0 to 1"),
    ("variance", "big", "1e-08 to 1e"), ("variance", float("nan"), "1e-08 to 1e"), ("variance", True, "1e-08 to 1e"),
    ("variance", None, "1e-08 to 1e"), ("tie_threshold", float("inf"), "0 to 1"), ("n_jobs", 0, "from 1 up"),
    ("max_iter", 0, "1 "), ("max_iter", 1.5, "1 "), ("tol", 0.0, "0"), ("tol", -1.0, "0"),
    ("random_state", "0", "0 "), ("random_state", -1, "0 "), ("calibration", 1.0, "Calibration"),
    ("calibration", "none", "Calibration"),
]  # fmt: skip
OUT_OF_RANGE_OF_CALIBRATION = [
    ("variance_factor", -1.0, "0 to 1"), ("variance_factor", "small", "0 to 1"), ("newcomer_weight", 1.5, "0 to 1"),
    ("lapse_rate", 0.6, "0 to 0.5"), ("unseen_ratio", 0.5, "1 to 1"),
    ("lapse_rate", None, "0 to 0.5"),
    ("newcomer_factor", -0.1, "0 to 1"),
    ("lapse_rate", True, "0 to 0.5"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("name", "value", "says"), OUT_OF_RANGE)
def test_a_parameter_out_of_range(personal, name, value, says):
    model = Population(personal, **{name: value})  # scikit-learn: the constructor checks nothing
    with pytest.raises(ValueError, match=f"{name} must .*{says}"):
        model.fit(CROWD)


@pytest.mark.parametrize(("name", "value", "says"), OUT_OF_RANGE_OF_CALIBRATION)
def test_a_number_of_a_calibration_out_of_range(name, value, says):
    with pytest.raises(ValueError, match=f"{name} must .*{says}"):
        Calibration(**{name: value})


SAVED = Calibration(0.7, 2.0, lapse_rate=0.1, newcomer_factor=3.0)


@both
@pytest.mark.parametrize("calibration", [None, SAVED])
def test_a_calibration_is_saved(personal, calibration, tmp_path):
    model = Population(personal, calibration=calibration, n_jobs=1, **GIVEN).fit(CROWD)
    model.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    assert again.calibration == calibration
    assert again.hyperparameters_.to_dict() == model.hyperparameters_.to_dict()
    assert again._choices["calibration"] == (calibration or Calibration())


@pytest.mark.parametrize("kind", [int, float, np.int64, np.float64, np.float32])
def test_a_parameter_may_be_any_kind_of_number(kind, model):
    given = {name: kind(value) for name, value in GIVEN.items()}
    assert Population(n_jobs=1, **given).fit(CROWD).rank().equals(model.rank())


@both
def test_a_flat_prior(personal):
    given = {"strength": 10.0, "variance": 2.0, "tie_threshold": 0.4, "tol": 1e-12, "n_jobs": 1}
    model = Population(personal, consensus_variance=np.inf, **given).fit(CROWD)
    assert model.hyperparameters_.consensus_variance == 1e8
    wide = Population(personal, consensus_variance=1e7, **given).fit(CROWD)
    for one, other in zip(model.utility_distribution(), wide.utility_distribution(), strict=True):
        np.testing.assert_allclose(one, other, atol=ITERATIVE)


def test_people_who_cannot_differ_are_the_pooled_model():
    rigid = Population(
        n_jobs=1,
        strength=1e4,
        variance=1e-8,
        consensus_variance=4.0,
        tie_threshold=("auto", 0.0),
        tol=1e-13,
        clickers=0.0,
    )
    rigid.fit(CROWD)
    # Where nobody is named: otherwise the pooled model sees that people differ all the same, and its intervals widen.
    frame = {name: getattr(CROWD, name) for name in ("left", "right", "weight")}
    unnamed = Comparisons.from_frame(frame, outcome=CROWD.outcome)
    pooled = Population(False, n_jobs=1, consensus_variance=4.0, tie_threshold=rigid.tie_threshold_).fit(unnamed)
    for one, other in zip(rigid.utility_distribution(), pooled.utility_distribution(), strict=True):
        np.testing.assert_allclose(one, other, atol=ITERATIVE)
    assert abs(rigid.score(CROWD) - pooled.score(unnamed)) < ITERATIVE
