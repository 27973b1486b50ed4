"""What scikit-learn does with an estimator besides what the contract of estimators asks for."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError as TheirNotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from contracts.votes import votes
from predilect import GPPL, Population
from predilect._base import estimator as ours
from predilect.errors import DataError, NotFittedError, PredilectError
from predilect.evaluation import neg_log_loss
from predilect.models import CompressedModel

OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6)  # without tags
new = pytest.mark.skipif(OLD, reason="it refuses what is not a classifier itself")
FOLDS = KFold(3)
POOLED = Population(personal=False)


@pytest.fixture(scope="module")
def answers():
    columns, y = votes()
    return pd.DataFrame(columns), y


@pytest.mark.slow
def test_the_score_beside_other_scorers_and_in_a_search(answers):
    both = cross_validate(
        POOLED, *answers, cv=FOLDS, scoring={"log": neg_log_loss, "accuracy": "accuracy"}, error_score="raise"
    )  # fmt: skip
    found = GridSearchCV(POOLED, {"tie_threshold": ["auto", 0.1]}, cv=FOLDS, error_score="raise").fit(*answers)
    usual = found.cv_results_["params"].index({"tie_threshold": "auto"})
    assert np.mean(both["test_log"]) == pytest.approx(found.cv_results_["mean_test_score"][usual])
    assert set(both["test_accuracy"]) <= set(np.arange(81) / 80)


@new
@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", {"one": "neg_log_loss", "two": "accuracy"}])
@pytest.mark.parametrize("inside", [False, True])
def test_scorers_that_take_sorted_columns_are_refused_wherever_the_model_stands(answers, scoring, inside):
    model = Pipeline([("model", POOLED)]) if inside else POOLED
    with pytest.raises(DataError, match="expect columns sorted by class"):
        cross_validate(model, *answers, cv=FOLDS, scoring=scoring, error_score="raise")
    with pytest.warns(UserWarning, match="predilect.evaluation.neg_log_loss"):
        found = cross_validate(model, *answers, cv=FOLDS, scoring="neg_log_loss")
    assert np.isnan(found["test_score"]).all()


def test_columns_are_left_tie_right_and_classes_say_so(answers):
    model = Pipeline([("model", Population(personal=False))]).fit(*answers)
    assert model.classes_.tolist() == [1, 0, -1]
    proba = model.predict_proba(answers[0])
    np.testing.assert_array_equal(model.predict(answers[0]), model.classes_[proba.argmax(axis=1)])


def test_each_fit_without_a_seed_draws_one(answers):
    one, other = (Population(personal=False, random_state=None).fit(*answers) for _ in range(2))
    assert one.seed_ != other.seed_
    assert one.rank().equals(one.rank())
    assert one.rank()["mean"].to_list() == pytest.approx(other.rank()["mean"].to_list())
    small = one.compress(keep=2, random_state=None)
    assert small.random_state is None
    assert small.rank().equals(small.rank())
    with pytest.raises(ValueError, match="random_state must be None or a whole number"):
        one.compress(keep=2, random_state=-1)


@pytest.fixture(scope="module")
def decided(answers):
    """Answers that are no ties, and whether the left item won."""
    frame, y = answers
    return frame[y != 0].reset_index(drop=True), y[y != 0] > 0


def test_after_booleans_classes_are_false_and_true(decided, tmp_path):
    frame, won = decided
    model = clone(POOLED).fit(frame, won)
    whole = clone(POOLED).fit(frame, np.where(won, 1, -1))
    assert model.classes_.tolist() == [False, True]
    proba, log_proba = model.predict_proba(frame), model.predict_log_proba(frame)
    left, tie, right = whole.predict_proba(frame).T
    np.testing.assert_allclose(proba, np.column_stack([right, left]) / (1.0 - tie)[:, None], atol=1e-12)
    np.testing.assert_allclose(np.exp(log_proba), proba, atol=1e-12)
    assert model.predict(frame).dtype == bool
    np.testing.assert_array_equal(model.predict(frame), left > right)
    assert model.score(frame, won) == whole.score(frame, np.where(won, 1, -1))
    assert model._score_and_accuracy(frame, won) == whole._score_and_accuracy(frame, np.where(won, 1, -1))
    assert model.versus([("item 0", "item 1")]).equals(whole.versus([("item 0", "item 1")]))
    assert model.suggest(n=2).equals(whole.suggest(n=2))
    model.save(tmp_path / "model")
    assert Population.load(tmp_path / "model").predict(frame).dtype == bool
    assert model.compress(2).predict(frame).dtype == bool
    assert model.fit(frame, np.where(won, 1, -1)).classes_.tolist() == [1, 0, -1]


@pytest.mark.parametrize("kind", [np.asarray, pd.Series, list])
def test_booleans_are_scored_by_accuracy(decided, kind):
    frame, won = decided
    found = cross_val_score(POOLED, frame, kind(won), cv=FOLDS, scoring="accuracy", error_score="raise")
    expected = [
        np.mean(clone(POOLED).fit(frame.iloc[train], won[train]).predict(frame.iloc[test]) == won[test])
        for train, test in FOLDS.split(won)
    ]
    assert found.tolist() == expected
    assert found.min() > 0.5
    searched = GridSearchCV(POOLED, {"tie_threshold": ["auto", 0.3]}, cv=FOLDS, scoring="accuracy", error_score="raise")
    assert searched.fit(frame, won).best_score_ >= found.mean()


@new
def test_of_booleans_the_log_loss_of_scikit_learn_is_right(decided):
    frame, won = decided
    model = clone(POOLED).fit(frame, won)
    loss = -np.mean(np.log(model.predict_proba(frame)[np.arange(len(won)), won.astype(int)]))
    assert get_scorer("neg_log_loss")(model, frame, won) == pytest.approx(-loss)


def test_ones_and_zeros_are_refused_and_told_how_to_say_it(decided):
    frame, won = decided
    with pytest.raises(DataError, match=r"0 could mean that the right item won, or a tie.*y\.astype\(bool\)"):
        clone(POOLED).fit(frame, won.astype(int))


def test_a_pipeline_predicts(answers):
    frame, y = answers
    pipeline = make_pipeline(FunctionTransformer(), clone(POOLED)).fit(frame, y)
    np.testing.assert_array_equal(pipeline.predict(frame), clone(POOLED).fit(frame, y).predict(frame))
    assert pipeline.set_params(population__tie_threshold=0.2).get_params()["population__tie_threshold"] == 0.2
    assert "Population" in repr(pipeline)
    assert "Population" in pipeline._repr_html_()
    assert clone(pipeline).fit(frame, y).named_steps["population"].tie_threshold_ == 0.2


def test_tags_are_those_of_an_estimator_that_needs_no_y():
    assert not is_classifier(POOLED)
    assert not is_regressor(POOLED)
    if not OLD:
        tags = sklearn.utils.get_tags(POOLED)
        assert not tags.target_tags.required
        assert tags.requires_fit


def test_parameters_are_those_of_an_estimator_within_too():
    model = CompressedModel(Population(personal=False), keep=2)
    assert model.get_params()["estimator__personal"] is False
    assert "estimator__personal" not in model.get_params(deep=False)
    model.set_params(estimator__personal=True, keep=3)
    assert (model.estimator.personal, model.keep) == (True, 3)
    model.set_params(estimator=GPPL(), estimator__random_state=5)
    assert repr(model) == "CompressedModel(estimator=GPPL(random_state=5), keep=3)"
    for name, told in (
        ("kep", r'"kep".*mean "keep"\?'),
        ("keep__x", '"keep__x"'),
        ("estimator__x", 'GPPL has no.*"x"'),
    ):
        with pytest.raises(DataError, match=told):
            model.set_params(**{name: 1})
    for copied in (clone(model), ours.clone(model)):
        assert repr(copied) == repr(model)
        assert copied.estimator is not model.estimator


def test_not_fitted_is_their_error_too():
    with pytest.raises(TheirNotFittedError) as caught:
        POOLED.rank()
    told = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, told):
        for kind in (NotFittedError, TheirNotFittedError, PredilectError, ValueError, AttributeError):
            assert isinstance(error, kind)
        assert str(error) == "this Population is not fitted yet. Call 'fit' first"
        assert type(error).__name__ == "NotFittedError"


WITHOUT = """
import sys

class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError(f"no module named {name}", name=name)

sys.meta_path.insert(0, Blocked)
import predilect
answers = {"user": ["ann", "bob", "cas"], "left": ["tea", "milk", "tea"], "right": ["milk", "juice", "juice"]}
items = {"item": ["tea", "milk", "juice", "water"], "warm": [1.0, 0.5, 0.0, 0.2]}
for name in ("Population", "GPPL", "CrowdGPPL"):
    model = getattr(predilect, name)()
    try:
        model.rank()
    except predilect.errors.NotFittedError as error:
        assert isinstance(error, ValueError)
    given = {} if name == "Population" else {"n_inducing": 2}
    model = model.set_params(**given).fit(answers, [True, True, True], items=items)
    assert model.classes_.tolist() == [False, True]
    assert model.rank()["item"][0] == "tea", model.rank()
    assert "svg" in model._repr_html_()
assert not [name for name in sys.modules if name.startswith("sklearn")]
"""


@pytest.mark.slow
def test_models_do_without_scikit_learn():
    ran = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False, env=os.environ)
    assert ran.returncode == 0, ran.stderr
