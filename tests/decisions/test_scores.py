"""Scores from 0 to 100."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from predilect import Population
from predilect.data import Vocabulary
from predilect.decisions.scales import scores
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import GaussianPosterior
from predilect.inference.likelihoods.logit import Logit
from predilect.inference.likelihoods.views import Probit
from tolerances import CONVERGED

U = np.array([1.2, -0.4, 0.1, -0.9])


def known(likelihood, covariance=0.0):
    """A model that knows one utility function."""
    return SimpleNamespace(
        posterior_=GaussianPosterior(U, covariance * np.eye(4)), items_=Vocabulary(["a", "b", "c", "d"]), users_=None,
        personal_=False, _added_users={}, tie_threshold_=0.0, _backend="polars", _likelihood=likelihood,
    )  # fmt: skip


def test_scores_are_the_rescaled_exponentials_and_sum_to_100():
    table = scores(known(Logit), size=5)
    assert table["item"].to_list() == ["a", "c", "b", "d"]
    odds = np.exp(U - U.mean())
    p = odds / (odds + 4.0)
    np.testing.assert_allclose(table["score"], 100.0 * np.sort(p / p.sum())[::-1], atol=CONVERGED)
    np.testing.assert_allclose(table["lower"], table["score"], atol=CONVERGED)


def test_an_anchor_has_the_score_100():
    table = dict(scores(known(Logit), size=5, anchor="b").select("item", "score").iter_rows())
    odds = np.exp(U[0] - U[1])
    assert abs(table["b"] - 100.0) < CONVERGED
    assert abs(table["a"] - 500.0 * odds / (odds + 4.0)) < CONVERGED


def test_noise_of_the_population_model_is_normal():
    table = dict(scores(known(Probit), size=2, anchor="b").select("item", "score").iter_rows())
    assert abs(table["a"] - 200.0 * norm.cdf(U[0] - U[1])) < 1e-3


def test_uncertain_utilities_have_intervals():
    table = scores(known(Probit, 0.3))
    assert (table["lower"] < table["score"]).all()
    assert (table["score"] < table["upper"]).all()
    assert table.equals(scores(known(Probit, 0.3)))


def test_the_crowds_scores_are_the_mean_of_peoples():
    answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
    model = Population(variance=1.0, strength=20.0, n_jobs=1).fit(answers, [1, 1, -1])
    own = [dict(scores(model, 3, user=user).select("item", "score").iter_rows()) for user in ("ann", "bob", "cas")]
    crowd = dict(scores(model, 3).select("item", "score").iter_rows())
    for item in crowd:
        assert abs(crowd[item] - np.mean([one[item] for one in own])) < CONVERGED


@pytest.mark.parametrize(("settings", "message"), [({"size": 1}, "from 2 to 20"), ({"anchor": "z"}, "z")])
def test_what_has_no_score_is_refused(settings, message):
    with pytest.raises(DataError, match=message):
        scores(known(Probit), **settings)
