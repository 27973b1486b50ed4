"""A second likelihood, registered here and nowhere else: logistic noise for the default model and for GPPL."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_expit, ndtr
from scipy.stats import norm

from predilect import GPPL, Population
from predilect.errors import DataError
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.logit import Logit
from predilect.inference.likelihoods.registry import LIKELIHOODS
from predilect.inference.people.expectation import SITE_TOLERANCE, converge
from predilect.models.registry import load
from tolerances import CONVERGED, EXACT, ITERATIVE

ITEMS = ["ale", "bun", "cod"]
FIXED = {
    "strength": 10.0, "variance": 1.5, "consensus_variance": 2.0, "calibration": None, "consistency": 0.0,
    "n_jobs": 1, "tol": 1e-9,
}  # fmt: skip
HELD = 1e-9  # variance of a consensus that is as good as known
CLOSE, CLOSE_VARIANCE = 5e-4, 1e-2  # of EP to the exact posterior of three answers, from which the probit's is far


class LogitPopulation(Population):
    """The default model with another likelihood."""

    _likelihood = Logit


class LogitGPPL(GPPL):
    """A process with another likelihood."""

    _likelihood = Logit


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(LIKELIHOODS, "logit", Logit)


def answers(n=60, n_users=8, seed=0, delta=0.0):
    rng = np.random.default_rng(seed)
    user, left = rng.integers(n_users, size=n), rng.integers(3, size=n)
    right = (left + rng.integers(1, 3, size=n)) % 3
    f = np.array([1.0, 0.0, -0.8]) + rng.standard_normal((n_users, 3))
    z = f[user, left] - f[user, right] + rng.logistic(size=n)
    outcome = np.where(np.abs(z) < delta, 0, np.sign(z)).astype(int)
    columns = {
        "user": [f"u{k}" for k in user], "left": [ITEMS[k] for k in left], "right": [ITEMS[k] for k in right],
    }  # fmt: skip
    return columns, outcome


COLUMNS, OUTCOME = answers()
PAIRS = {"left": ["ale", "ale", "bun"], "right": ["bun", "cod", "cod"]}


def one_person(*rows):
    """Columns and outcomes of Zoe's answers, each (left, right, outcome)."""
    left, right, outcome = zip(*rows, strict=True)
    return {"user": ["zoe"] * len(rows), "left": [*left], "right": [*right]}, [*outcome]


THREE = one_person(("ale", "bun", 1), ("bun", "cod", -1), ("ale", "cod", 1))


@pytest.fixture(scope="module")
def fitted():
    return LogitPopulation(**FIXED).fit(COLUMNS, OUTCOME)


def exact_margins(mean, covariance, columns, outcome):
    """Mean and variance of the margins of PAIRS given answers, by a grid over two differences of utilities."""
    contrast = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    m, S = contrast @ mean, contrast @ covariance @ contrast.T
    x = np.linspace(-8.0, 8.0, 401)
    u, v = (part.ravel() for part in np.meshgrid(x, x))
    first, second = m[:, None] + np.linalg.cholesky(S) @ np.array([u, v])
    f = np.array([first + second, second, np.zeros_like(u)])
    log_p = -0.5 * (u * u + v * v)
    for left, right, y in zip(columns["left"], columns["right"], outcome, strict=True):
        log_p += log_expit(y * (f[ITEMS.index(left)] - f[ITEMS.index(right)]))
    weight = np.exp(log_p - log_p.max())
    z = np.array([first, first + second, second])
    mean = z @ weight / weight.sum()
    return mean, (z - mean[:, None]) ** 2 @ weight / weight.sum()


def item_margins(model, user):
    """Margins of PAIRS by name of user, or of all."""
    return model.predict_margin({"user": [user] * 3, **PAIRS})


def coefficients():
    """Utilities of statsmodels' logit, of COLUMNS, with the last item at 0."""
    left, right = (np.array([ITEMS.index(name) for name in COLUMNS[side]]) for side in ("left", "right"))
    X = np.eye(3)[left] - np.eye(3)[right]
    return sm.Logit((OUTCOME > 0).astype(float), X[:, :2]).fit(disp=0, method="newton", tol=1e-12)


def test_the_pooled_model_with_a_flat_prior_is_statsmodels_logit():
    model = LogitPopulation(personal=False, consensus_variance=float("inf"), n_jobs=1).fit(COLUMNS, OUTCOME)
    known = coefficients()
    mean, _ = model.predict_margin({"left": ["ale", "bun"], "right": ["cod", "cod"]})
    np.testing.assert_allclose(mean, known.params, rtol=ITERATIVE)
    # What the answers of one person have in common does not change the Laplace approximation itself.
    C = model.posterior_.covariance
    np.testing.assert_allclose([C[0, 0] + C[2, 2] - 2 * C[0, 2]], known.cov_params()[0, 0], rtol=1e-4)


def test_gppl_with_a_nearly_flat_prior_is_statsmodels_logit():
    model = LogitGPPL(inference="laplace", variance=1e7).fit(COLUMNS, OUTCOME)
    mean, var = model.predict_margin({"left": ["ale", "bun"], "right": ["cod", "cod"]})
    np.testing.assert_allclose(mean, coefficients().params, rtol=1e-5)
    np.testing.assert_allclose(var, np.diagonal(coefficients().cov_params()), rtol=1e-5)


@pytest.mark.slow
def test_gppl_finds_the_best_lower_bound_by_quadrature():
    model = LogitGPPL(variance=2.0, tol=1e-13).fit({"left": ["ale"] * 4, "right": ["bun"] * 4}, [1, 1, 1, -1])
    prior = 2.0 * model.hyperparameters_.variance

    def negative_bound(x):
        m, s = x[0], np.exp(x[1])
        expected = sum(
            k * quad(lambda t, y=y: norm.pdf(t) * log_expit(y * (m + s * t)), -10, 10, epsabs=1e-12)[0]
            for k, y in ((3, 1), (1, -1))
        )
        return 0.5 * (s * s / prior + m * m / prior - 1.0 - np.log(s * s / prior)) - expected

    best = minimize(negative_bound, [0.5, 0.0], method="BFGS", options={"gtol": 1e-8})
    mean, var = model.predict_margin({"left": ["ale"], "right": ["bun"]})
    np.testing.assert_allclose([mean[0], np.sqrt(var[0])], [best.x[0], np.exp(best.x[1])], rtol=1e-5)
    assert model.log_evidence_ == pytest.approx(-best.fun, abs=ITERATIVE)


@pytest.mark.slow  # compiles the loops over people once more
def test_gppl_for_each_person_alone_is_near_the_exact_posterior():
    columns, outcome = THREE
    others = {name: [*columns[name], *COLUMNS[name]] for name in columns}
    models = [
        kind(users="separate", variance=1.0, n_jobs=1).fit(others, [*outcome, *OUTCOME])
        for kind in (LogitGPPL, GPPL)
    ]  # fmt: skip
    exact = exact_margins(np.zeros(3), np.eye(3), columns, outcome)
    (mean, var), (other, _) = (item_margins(model, "zoe") for model in models)
    np.testing.assert_allclose(mean, exact[0], atol=CLOSE)
    np.testing.assert_allclose(var, exact[1], atol=CLOSE_VARIANCE)
    assert np.abs(other - exact[0]).max() > 0.1


def test_linearised_sites_are_refused():
    with pytest.raises(ValueError, match="linearised sites are for the probit"):
        LogitGPPL(sites="linearised").fit(COLUMNS, OUTCOME)


@pytest.mark.slow  # compiles the loops over people once more
def test_personal_predictions_are_near_the_exact_posterior(fitted):
    columns, outcome = THREE
    model = deepcopy(fitted).update(columns, outcome)
    held = replace(model.posterior_, C_m=HELD * np.eye(3))
    code, (left, right) = model._added_users["zoe"], np.array([[0, 0, 1], [1, 2, 2]])
    mean, var = held.margins(np.full(3, code), left, right)
    exact = exact_margins(held.law.mean, held.law.Sigma, columns, outcome)
    np.testing.assert_allclose(mean, exact[0], atol=CLOSE)
    np.testing.assert_allclose(var, exact[1], atol=CLOSE_VARIANCE)


@pytest.mark.slow  # compiles the loops over people once more
def test_one_answer_gives_the_moments_of_the_posterior(fitted):
    model = deepcopy(fitted).update(user="zoe", left="ale", right="cod", outcome=-1)
    posterior = model.posterior_
    m, S = posterior.law.mean, posterior.law.Sigma
    m, v = m[0] - m[2], S[0, 0] + S[2, 2] - 2 * S[0, 2]
    moments = [quad(lambda t, k=k: t**k * norm.pdf(t, m, np.sqrt(v)) * expit(-t), -30, 30)[0] for k in range(3)]
    mean, square = moments[1] / moments[0], moments[2] / moments[0]
    person = posterior.answers_of(model._added_users["zoe"])
    precision = 1.0 / v + person.rows.precision[0]
    found = (m / v + person.rows.linear[0]) / precision
    np.testing.assert_allclose([found, 1.0 / precision], [mean, square - mean**2], rtol=1e-7)


@pytest.mark.slow  # compiles the loops over people once more
def test_probabilities_are_of_the_logistic(fitted):
    mean, var = item_margins(fitted, "u0")
    proba = fitted.predict_proba({"user": ["u0"] * 3, **PAIRS})
    z = zip(mean, np.sqrt(var), strict=True)
    left = [quad(lambda t, m=m, s=s: norm.pdf(t) * expit(m + s * t), -12, 12)[0] for m, s in z]
    np.testing.assert_allclose(proba, np.column_stack([left, np.zeros(3), 1.0 - np.array(left)]), atol=CONVERGED)
    assert np.abs(proba[:, 0] - ndtr(mean / np.sqrt(1.0 + var))).max() > 0.02


@pytest.mark.slow  # compiles the loops over people once more
def test_updates_are_a_refit_with_the_population_held(fitted):
    columns, outcome = THREE
    together, apart = deepcopy(fitted).update(columns, outcome), deepcopy(fitted)
    for k, y in enumerate(outcome):
        apart.update(user="zoe", left=columns["left"][k], right=columns["right"][k], outcome=y)
    posterior = apart.posterior_
    person = posterior.answers_of(apart._added_users["zoe"])
    people, _ = posterior.side_by_side([person])
    sites = Sites.flat(3)
    assert converge(people, sites, posterior.law, 0.0, tolerance=SITE_TOLERANCE).largest_change < EXACT
    np.testing.assert_allclose(sites.precision, person.rows.precision, atol=CONVERGED)
    for one, other in zip(item_margins(together, "zoe"), item_margins(apart, "zoe"), strict=True):
        np.testing.assert_allclose(one, other, atol=CONVERGED)
    apart.forget(columns, outcome)._consolidate()
    np.testing.assert_array_equal(item_margins(apart, "u0"), item_margins(fitted, "u0"))
    assert apart.posterior_.people.likelihood is Logit


def test_the_pooled_model_updates_to_what_a_fit_to_all_is():
    settings = {"personal": False, "consensus_variance": 2.0, "n_jobs": 1}
    first = {name: column[:40] for name, column in COLUMNS.items()}
    rest = {name: column[40:] for name, column in COLUMNS.items()}
    model = LogitPopulation(**settings).fit(first, OUTCOME[:40]).update(rest, OUTCOME[40:])
    whole = LogitPopulation(**settings).fit(COLUMNS, OUTCOME)
    np.testing.assert_allclose(model.predict_margin(PAIRS)[0], whole.predict_margin(PAIRS)[0], atol=CONVERGED)


@pytest.mark.parametrize("settings", [pytest.param(FIXED, marks=pytest.mark.slow), {"personal": False, "n_jobs": 1}])
def test_a_saved_model_knows_its_likelihood(settings, tmp_path, monkeypatch):
    model = LogitPopulation(**settings).fit(COLUMNS, OUTCOME)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for one in (model, again):
        one.update(user="u0", left="ale", right="bun", outcome=1)
    asked = {"user": ["u0"] * 3, **PAIRS}
    np.testing.assert_allclose(again.predict_proba(asked), model.predict_proba(asked), atol=CONVERGED)
    monkeypatch.delitem(LIKELIHOODS, "logit")
    with pytest.raises(DataError, match="a likelihood called 'logit'; known are probit"):
        load(tmp_path / "model")


@pytest.mark.slow
def test_the_whole_search_with_ties_and_calibration():
    columns, outcome = answers(900, 45, seed=3, delta=0.7)
    model = LogitPopulation(n_jobs=1).fit(columns, outcome)
    assert model.report_["fit"]["converged"]
    assert model.tie_threshold_ == pytest.approx(0.7, abs=0.25)
    assert model.rank()["item"].to_list() == ITEMS
    proba = model.predict_proba({name: column[:20] for name, column in columns.items()})
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=EXACT)
