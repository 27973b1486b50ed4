"""The simulated likelihood against a likelihood written once more, and its gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from simulate_choices import choices

from predilect import MixedLogit
from predilect.choice.mixed_logit.attributes import TRIANGULAR, columns_of
from predilect.choice.mixed_logit.problem import problem_of, triangular
from predilect.choice.mixed_logit.simulated import Simulated, halton
from predilect.data import ItemFeatures
from predilect.data.choices import choices_of
from predilect.data.features import FeatureSpace
from tolerances import CONVERGED, ITERATIVE

DATA = choices(0, n_users=12, n_tasks=5)
CASES = {
    "normal": {}, "log-normal": {"distributions": {"price": "negative log-normal", "speed": "log-normal"}},
    "willingness": {"price": "price"}, "some fixed": {"distributions": {"speed": "fixed"}},
    "triangular": {"distributions": {"size": "triangular"}}, "fixed price": {"price": "price", "distributions": {
        "price": "fixed", "speed": "log-normal"}},
}  # fmt: skip


def problem(distributions="normal", price=None, n_traits=0):
    features = ItemFeatures.from_frame(DATA.items)
    answers = DATA.answers.with_items(features.ids)
    found = choices_of(answers)
    space = FeatureSpace(*features.align(answers.items))
    columns = columns_of(
        answers, found, features, space, distributions=distributions, price=price, personal=True
    )  # fmt: skip
    traits = np.column_stack(
        [np.ones(answers.n_users), np.random.default_rng(1).normal(size=(answers.n_users, n_traits))]
    )
    return problem_of(found, columns, traits, answers.n_users), columns, found, traits


def by_hand(case, columns, found, traits, theta, likelihood):
    """Simulated log-likelihood, choice by choice and draw by draw, in the units of the attributes."""
    p = likelihood.problem
    B, L = likelihood.unpacked(theta)
    total = 0.0
    for place, user in enumerate(p.people):
        z = np.array([traits[user] @ B + np.append(L @ e, np.zeros(len(B[0]) - len(e)))
                      for e in likelihood.draws[place]])  # fmt: skip
        c = z.copy()
        for k, kind in enumerate(columns.kind):
            c[:, k] = {0: z[:, k], 1: np.exp(z[:, k]), -1: -np.exp(z[:, k]), 2: z[:, k]}[int(kind)]
        if columns.price >= 0:
            others = np.arange(c.shape[1]) != columns.price
            c[:, others] *= -c[:, [columns.price]]
        original = c @ columns.report.T
        attributes = np.array([DATA.items[name] for name, _ in columns.levels])
        names = DATA.items["item"]
        log_p = np.zeros(len(c))
        for t in np.flatnonzero(found.user == user):
            shown = [
                names.index(name) for name in DATA.answers.items.labels(found.item[found.ptr[t] : found.ptr[t + 1]])
            ]
            V = original @ attributes[:, shown]
            log_p += V[:, 0] - logsumexp(V, axis=1)
        total += logsumexp(log_p) - np.log(len(log_p))
    return total


@pytest.mark.slow
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_the_likelihood_is_that_of_choices_one_by_one_and_its_gradient_that_of_differences(case, diagonal):
    p, columns, found, traits = problem(**CASES[case], n_traits=2)
    likelihood = Simulated(p, halton(p, 30), diagonal)
    rng = np.random.default_rng(2)
    G, d, n = 3, p.n_coefficients, p.n_random
    theta = 0.4 * rng.normal(size=d + (G - 1) * n + (n if diagonal else n * (n + 1) // 2))
    values, slopes, _ = likelihood.of_people(theta)
    assert abs(values.sum() - by_hand(case, columns, found, traits, theta, likelihood)) < CONVERGED
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-5
        up, down = (likelihood.of_people(theta + sign * step)[0].sum() for sign in (1, -1))
        assert abs((up - down) / 2e-5 - slopes[:, k].sum()) < ITERATIVE
    value, slope = likelihood.objective(theta)
    assert abs(-value * len(found.user) - values.sum()) < 1e-2  # a ridge that is next to nothing
    np.testing.assert_allclose(-slope * len(found.user), slopes.sum(axis=0), atol=1e-3)


def test_draws_have_the_distributions_that_are_asked_for():
    p = problem({"speed": "triangular"})[0]
    draws = halton(p, 1000).reshape(-1, 3)
    k = int(np.flatnonzero(p.kind == TRIANGULAR)[0])
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=5e-3)
    np.testing.assert_allclose(draws.std(axis=0), 1.0, atol=5e-3)
    assert np.abs(draws[:, k]).max() < np.sqrt(6.0)
    # Triangular: P(t < x) = ½ (1 + x / √6)² below 0.
    x = np.array([-2.0, -1.0, -0.3])
    np.testing.assert_allclose(triangular(norm.ppf(0.5 * (1.0 + x / np.sqrt(6.0)) ** 2)), x, atol=1e-12)


@pytest.mark.slow
def test_the_maximum_has_no_slope_and_is_above_the_truth():
    data = choices(3, n_users=60)
    model = MixedLogit(method="simulated", covariance="diagonal", n_draws=60, n_jobs=1).fit(
        data.answers, items=data.items
    )  # fmt: skip
    assert model.report_["fit"]["converged"]
    wider = MixedLogit(method="simulated", n_draws=60, n_jobs=1).fit(data.answers, items=data.items)
    assert wider.log_evidence_ > model.log_evidence_  # the full covariance has the diagonal one as a special case
    mean = np.array(wider.worth.coefficients()["mean"])
    sd = np.array(wider.worth.coefficients()["sd"])
    assert (np.abs(mean - [-0.5, 1.0, 0.3]) < 4.0 * sd).all()
    noise = model.report_["prior"]
    assert 0.0 < noise["log_likelihood_sd"] < 5.0
    assert 1.0 <= noise["effective_draws_least"] <= noise["effective_draws_median"] <= 60.0


def test_estimates_that_answers_hardly_tell_are_saved(tmp_path):
    """Five choices, of which two numbers of people are estimated: variances are beyond what utilities may be."""
    tasks = (("ann", "tea juice"), ("bob", "milk juice tea"), ("cas", "juice milk tea"), ("dan", "juice milk tea"),
             ("eve", "tea milk"))  # fmt: skip
    rows = [(user, item, int(not k)) for user, shown in tasks for k, item in enumerate(shown.split())]
    frame = dict(zip(("user", "item", "chosen"), map(list, zip(*rows, strict=True)), strict=True))
    people = {
        "user": ["ann", "bob", "cas", "dan", "eve"], "age": [20.0, 55.0, 90.0, 48.0, 83.0],
        "group": ["out", "in", "out", "in", "out"],
    }  # fmt: skip
    model = MixedLogit(method="simulated", n_draws=40, n_jobs=1)
    model.fit(frame | {"task": frame["user"]}, people=people)
    model.save(tmp_path / "model")
    assert MixedLogit.load(tmp_path / "model").rank().equals(model.rank())
