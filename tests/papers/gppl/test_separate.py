"""A Gaussian process a person, against one inference a person and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.answers import GammaPrior
from predilect.inference.gaussian.kernels import Scaled, matern
from predilect.inference.gaussian.projection import Projection, item_covariance
from predilect.inference.latent.ep import ep
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gppl.separate import fit_separate
from simulate import crowd, laid_out
from tolerances import CONVERGED, ITERATIVE

ROWS = crowd(5, 12, 7, [1, 3, 8, 8, 8, 8, 8, 8, 8, 8, 20, 30], delta=0.4)
RNG = np.random.default_rng(2)
X = RNG.normal(size=(7, 2))
KNOWN = np.array([True] * 6 + [False])
X[~KNOWN] = 0.0
KERNEL = matern([1.2, 0.8])
SCALE, DELTA = 0.4, 0.45
K = item_covariance(KERNEL, X, KNOWN)


def fit(kernel=KERNEL, **changes):
    given = {"prior": GammaPrior(2.0, 3.0), "scale": SCALE, "delta": DELTA} | changes
    return fit_separate(laid_out(ROWS), kernel, X, KNOWN, **given)


def alone(user, scale=SCALE):
    """The same person by expectation propagation over all items."""
    own = ROWS.user == user
    columns = (ROWS.left[own], ROWS.right[own], ROWS.outcome[own], ROWS.weight[own])
    return ep(Problem.of(K / scale, *columns, Probit(DELTA)), tolerance=1e-12)


@pytest.fixture(scope="module")
def fitted():
    return fit()


def test_everybody_is_what_they_are_alone(fitted):
    evidence = 0.0
    for user in range(ROWS.n_users):
        found = alone(user)
        mean, covariance = fitted.posterior.utilities(user)
        np.testing.assert_allclose(mean, found.mean, atol=CONVERGED)
        np.testing.assert_allclose(covariance, found.covariance(), atol=CONVERGED)
        evidence += found.evidence
    assert fitted.evidence == pytest.approx(evidence, abs=ITERATIVE)


def test_the_average_and_the_spread_of_those_who_answered(fitted):
    everybody = [fitted.posterior.utilities(user) for user in range(ROWS.n_users)]
    means, covariances = (np.array(part) for part in zip(*everybody, strict=True))
    n = ROWS.n_users
    mean, covariance = fitted.posterior.crowd().dense()
    np.testing.assert_allclose(mean, means.mean(axis=0), atol=CONVERGED)
    np.testing.assert_allclose(covariance, covariances.sum(axis=0) / n**2, atol=CONVERGED)
    stranger_mean, stranger = fitted.posterior.utilities(-1)
    np.testing.assert_allclose(stranger_mean, means.mean(axis=0), atol=CONVERGED)
    spread = covariances.mean(axis=0) + np.cov(means.T, bias=True)
    np.testing.assert_allclose(stranger, spread, atol=CONVERGED)


def test_margins_of_people_and_strangers(fitted):
    users, left, right = np.array([3, -1, 10]), np.array([0, 1, 6]), np.array([2, 5, 3])
    mean, var = fitted.posterior.margins(users, left, right)
    for row, user in enumerate(users.tolist()):
        m, C = fitted.posterior.utilities(user)
        a, b = left[row], right[row]
        assert mean[row] == pytest.approx(m[a] - m[b], abs=CONVERGED)
        assert var[row] == pytest.approx(C[a, a] + C[b, b] - 2 * C[a, b], abs=CONVERGED)


def test_new_items_are_as_if_they_had_been_there(fitted):
    new, known = RNG.normal(size=(2, 2)), np.array([True, False])
    everything = Projection.of(KERNEL, X, KNOWN, None).with_items(new, known)
    more = fitted.posterior.with_items(everything, SCALE)
    there = fit_separate(
        laid_out(ROWS.__class__(**(vars(ROWS) | {"n_items": 9}))), KERNEL, np.vstack([X, new]),
        np.concatenate([KNOWN, known]), prior=GammaPrior(2.0, 3.0), scale=SCALE, delta=DELTA,
    )  # fmt: skip
    for user in (-1, 0, 10):
        for a, b in zip(more.utilities(user), there.posterior.utilities(user), strict=True):
            np.testing.assert_allclose(a, b, atol=ITERATIVE)
    for a, b in zip(more.crowd().dense(), there.posterior.crowd().dense(), strict=True):
        np.testing.assert_allclose(a, b, atol=ITERATIVE)


def test_the_scale_and_the_threshold_are_the_likeliest():
    found = fit(scale=None, delta=None, tolerance=1e-10)

    def objective(log_variance, log_delta):
        at = fit(scale=float(np.exp(-log_variance)), delta=float(np.exp(log_delta)))
        return at.evidence - 2.0 * log_variance - 3.0 * np.exp(-log_variance)

    x = np.array([-np.log(found.scale), np.log(found.delta)])
    for step in 1e-3 * np.eye(2):
        slope = (objective(*(x + step)) - objective(*(x - step))) / 2e-3
        assert abs(slope) < 1e-3
    assert found.report.converged


@pytest.mark.parametrize("kernel", [KERNEL, Scaled(KERNEL, 1.3)], ids=["length-scales", "variance"])
def test_the_kernel_is_learned(kernel):
    # With a variance, the prior of the item without features hangs on it too.
    found = fit(kernel, learn_kernel=True, tolerance=1e-10)
    assert found.evidence > fit(kernel).evidence
    for d, step in enumerate(1e-3 * np.eye(len(kernel.theta))):
        up, down = (
            fit_separate(
                laid_out(ROWS), found.kernel.with_theta(found.kernel.theta + sign * step), X, KNOWN,
                prior=GammaPrior(2.0, 3.0), scale=SCALE, delta=DELTA,
            ).evidence
            for sign in (1, -1)
        )  # fmt: skip
        at_bound = abs(found.kernel.theta[d] - kernel.theta[d]) > np.log(999.0)
        assert at_bound or abs(up - down) / 2e-3 < 1e-3
