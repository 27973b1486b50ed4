"""Spreads near zero, where samplers of a covariance given people stick, and the posterior by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from predilect.choice.mixed_logit.diagnosis import effective_size, r_hat
from predilect.choice.mixed_logit.problem import ChoiceProblem
from predilect.choice.mixed_logit.sampler import Sample, sample


def study(n_users: int, mean, spread, seed: int = 0, n_tasks: int = 8, n_options: int = 4) -> ChoiceProblem:
    """Choices by uncorrelated coefficients of normal attributes."""
    rng = np.random.default_rng(seed)
    n, T = len(mean), n_users * n_tasks
    c = np.asarray(mean) + rng.standard_normal((n_users, n)) * spread
    X = rng.standard_normal((n_users, n_tasks, n_options, n))
    best = (np.einsum("utak,uk->uta", X, c) + rng.gumbel(size=X.shape[:3])).argmax(2)
    D = X - np.take_along_axis(X, best[..., None, None], 2)
    return ChoiceProblem(
        np.ascontiguousarray(D[np.arange(n_options) != best[..., None]]), np.ones(T), np.arange(T), np.ones(T),
        np.arange(T + 1) * (n_options - 1), np.arange(n_users + 1) * n_tasks, np.ones((n_users, 1)), np.arange(n_users),
        np.zeros(n, dtype=np.int8), n, -1,
    )  # fmt: skip


def drawn(problem: ChoiceProblem, n_sweeps: int) -> Sample:
    return sample(
        problem, n_classes=1, diagonal=False, n_sweeps=n_sweeps, n_chains=2, tolerance=1.05, fewest=50, random_state=0,
        executor=None, watch=None,
    )  # fmt: skip


@pytest.mark.slow  # thousands of draws
@pytest.mark.parametrize("spread", [0.0, 0.8])
def test_one_coefficient_has_the_posterior_of_a_quadrature(spread):
    problem = study(50, [0.7], spread, n_tasks=4)
    law = drawn(problem, 6000).law
    found = np.column_stack([law.B[:, 0, 0, 0], np.sqrt(law.Omega[:, 0, 0, 0])])
    b, s = np.linspace(0.2, 1.5, 53)[:, None, None], np.linspace(0.005, 2.5, 200)[None, :, None]
    node, weight = np.polynomial.hermite_e.hermegauss(40)
    coefficient = b + s * node
    log_p = np.zeros(coefficient.shape[:2])
    for rows in problem.D.reshape(50, 4, 3):
        value = -sum(np.log1p(np.exp(coefficient[..., None] * row).sum(-1)) for row in rows)
        log_p += logsumexp(value, b=weight, axis=-1)
    log_p += -0.005 * b[..., 0] ** 2 - 1.5 * np.log1p((s[..., 0] / 10.0) ** 2 / 2.0)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    for k, (grid, axis) in enumerate(((b[:, 0, 0], 1), (s[0, :, 0], 0))):
        margin = p.sum(axis=axis)
        mean = grid @ margin
        sd = np.sqrt((grid - mean) ** 2 @ margin)
        size = effective_size(found[:, k].reshape(2, -1))
        assert size > 400
        assert abs(found[:, k].mean() - mean) < 4.0 * sd / np.sqrt(size)
        assert abs(found[:, k].std() / sd - 1.0) < 4.0 / np.sqrt(size)


@pytest.mark.slow
def test_spreads_near_zero_are_no_trap():
    law = drawn(study(300, [0.8, -0.5, 0.4, 0.6], [0.0, 0.2, 0.6, 1.2]), 6000).law
    sd = np.sqrt(np.diagonal(law.Omega[:, 0], axis1=1, axis2=2)).reshape(2, -1, 4)
    both = np.concatenate([law.B[:, 0, 0].reshape(2, -1, 4), sd], axis=2)
    assert r_hat(both).max() <= 1.02
    assert effective_size(both).min() >= 200
    assert np.quantile(sd[..., 0], 0.95) < 0.35
