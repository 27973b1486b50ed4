"""What is drawn of populations: around the estimate, as sure as the delta method says."""

from __future__ import annotations

import numpy as np
import pytest
from simulate_choices import MEAN, OMEGA, choices

from predilect import MixedLogit
from predilect.choice.mixed_logit import simulated
from predilect.choice.mixed_logit.attributes import NORMAL
from predilect.choice.mixed_logit.problem import ChoiceProblem
from predilect.inference.gaussian.dense import moments
from tolerances import CONVERGED, ITERATIVE, STATISTICAL

DATA = choices(5, n_users=40, n_tasks=5)


def likelihood_of(n, diagonal=False):
    """A likelihood of which only sizes matter, and its parameters."""
    nothing = np.zeros(0, dtype=np.int64)
    p = ChoiceProblem(
        np.zeros((0, n)), np.ones(1), nothing, np.ones(1), nothing, nothing, np.ones((1, 1)), nothing,
        np.full(n, NORMAL, dtype=np.int8), n, -1,
    )  # fmt: skip
    return simulated.Simulated(p, np.zeros((1, 1, n)), diagonal)


def random_estimate(n, sharpness, diagonal=False):
    """A likelihood, its maximum, and a curvature there."""
    rng = np.random.default_rng(n)
    likelihood = likelihood_of(n, diagonal)
    L = np.tril(rng.normal(size=(n, n))) + 2.0 * np.diag(rng.choice([-1.0, 1.0], n))
    theta = likelihood.packed(rng.normal(size=(1, n)), np.diag(np.diagonal(L)) if diagonal else L)
    root = rng.normal(size=(len(theta), 2 * len(theta)))
    return likelihood, theta, sharpness * root @ root.T / len(theta)


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("sharpness", [1000.0, 1.0, 0.0])
def test_populations_have_the_estimate_for_a_mean_however_little_is_known(sharpness, diagonal):
    likelihood, theta, H = random_estimate(4, sharpness, diagonal)
    law = simulated.populations(likelihood, theta, H, np.random.default_rng(0))
    B, L = likelihood.unpacked(theta)
    np.testing.assert_allclose(law.B.mean(axis=(0, 1)), B, atol=CONVERGED)
    np.testing.assert_allclose(law.Omega.mean(axis=(0, 1)), L @ L.T, atol=CONVERGED)
    assert np.linalg.eigvalsh(law.Omega).min() > 0.0


def test_populations_vary_as_the_delta_method_says_where_much_is_known():
    likelihood, theta, H = random_estimate(3, 3000.0)
    law = simulated.populations(likelihood, theta, H, np.random.default_rng(0))
    rows, columns = np.tril_indices(3)

    def quantities(parameters):
        B, L = likelihood.unpacked(parameters)
        return np.concatenate([B[0], (L @ L.T)[rows, columns]])

    J = differences(quantities, theta)
    expected = J @ np.linalg.inv(H) @ J.T
    drawn = np.column_stack([law.B[:, 0, 0], law.Omega[:, 0][:, rows, columns]])
    sd = np.sqrt(np.diagonal(expected))
    error = np.sqrt((1.0 + (expected / np.outer(sd, sd)) ** 2) / len(drawn))  # of a covariance over its sds
    assert (np.abs((np.cov(drawn.T) - expected) / np.outer(sd, sd)) < STATISTICAL * error).all()


def differences(function, at):
    """Jacobian by central differences."""
    steps = 1e-5 * np.eye(len(at))
    return np.stack([(function(at + step) - function(at - step)) / 2e-5 for step in steps], axis=1)


def test_what_is_known_of_the_root_is_the_same_in_any_order_of_columns():
    likelihood, theta, H = random_estimate(4, 1.0)
    place = np.array([2, 0, 3, 1])
    _, L = likelihood.unpacked(theta)
    turned = np.linalg.cholesky((L @ L.T)[np.ix_(place, place)])
    rows, columns = likelihood.entries
    back = np.argsort(place)

    def factor(entries):
        """The first factor as a function of the entries of the other, with the signs of its diagonal."""
        other = np.zeros((4, 4))
        other[rows, columns] = entries
        found = np.linalg.cholesky((other @ other.T)[np.ix_(back, back)])
        return (found * np.sign(np.diagonal(L)))[rows, columns]

    J = differences(factor, turned[rows, columns])
    H = H[4:, 4:]
    change = np.random.default_rng(0).normal(size=(4, 4))
    change = change + change.T
    values = []
    for one, curvature, dR in ((L, H, change), (turned, J.T @ H @ J, change[np.ix_(place, place)])):
        R, basis, into = simulated._root(one, likelihood.entries)
        np.testing.assert_allclose(R @ R, one @ one.T, atol=CONVERGED)
        step = into @ np.einsum("kij,ij->k", basis, dR)
        values.append(step @ curvature @ step)
    assert abs(values[0] / values[1] - 1.0) < ITERATIVE


def test_somebody_unknown_varies_as_the_estimate_says_where_answers_are_few(monkeypatch):
    kept = {}
    whole = simulated.populations

    def watched(likelihood, theta, H, rng):
        kept["L"] = likelihood.unpacked(theta)[1]
        return whole(likelihood, theta, H, rng)

    monkeypatch.setattr(simulated, "populations", watched)
    model = MixedLogit(method="simulated", n_draws=60, n_jobs=1).fit(DATA.answers, items=DATA.items)
    law, L = model.posterior_.law, kept["L"]
    expected = L @ L.T + np.cov(law.B[:, 0, 0].T)
    variance, found = np.diagonal(expected), np.diagonal(moments(model.posterior_.unseen)[1])
    draws = model.posterior_.unseen
    error = np.sqrt(((draws - draws.mean(axis=0)) ** 2).var(axis=0) / len(draws))
    assert (np.abs(found - variance) < STATISTICAL * error).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n_users", "n_tasks"), [(40, 5), (100, 8), (300, 10)])
def test_populations_cover_the_true_one(n_users, n_tasks):
    means, variances = [], []
    for seed in range(200, 224):
        data = choices(seed, n_users=n_users, n_tasks=n_tasks)
        model = MixedLogit(method="simulated", n_draws=100, n_jobs=1).fit(data.answers, items=data.items)
        law, back = model.posterior_.law, model.columns_.report
        mean = law.B[:, 0, 0] @ back.T
        variance = np.einsum("ld,sde,le->sl", back, law.Omega[:, 0], back)
        for kept, draws, truth in ((means, mean, MEAN), (variances, variance, np.diagonal(OMEGA))):
            lower, upper = np.quantile(draws, [0.025, 0.975], axis=0)
            kept.append((lower < truth) & (truth < upper))
    assert 0.88 <= np.mean(means) <= 1.0
    assert 0.85 <= np.mean(variances) <= 1.0
