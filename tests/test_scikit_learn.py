"""What scikit-learn does with an estimator besides what the contract of estimators asks for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline

from contracts.votes import votes
from predilect import Population
from predilect.errors import DataError
from predilect.evaluation import neg_log_loss

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
