"""Draws of people's utilities with the consensus that they share, against the posterior of each."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import Population
from predilect.inference.people.combinations import Combinations, ConsensusDraws
from predilect.inference.people.queries import offset_variance
from simulate_updates import AT_FIT, FIXED, ITEMS, LATER, N_ITEMS, USERS, columns, fitted
from tolerances import EXACT

KINDS = ["items", "items with traits", "attributes", "inducing"]
A = np.random.default_rng(8).standard_normal((3, N_ITEMS))


def model_of(kind):
    if not kind.startswith("items"):
        return fitted(kind)
    features = {"items": ITEMS} | ({"people": USERS} if "traits" in kind else {})
    return Population(**FIXED, basis="items", user_features="traits" in kind).fit(columns(AT_FIT), **features)


@pytest.mark.parametrize("kind", KINDS)
def test_with_the_consensus_integrated_out_they_are_the_persons_own(kind):
    model = model_of(kind)
    model.update(columns(LATER))  # people whose answers changed, and two that came later
    posterior = model.posterior_
    M, own = len(posterior.m), offset_variance(posterior)
    one_by_one = ConsensusDraws(np.vstack([np.eye(M), np.zeros((len(own), M))]), np.eye(M + len(own), len(own), -M))
    asked = Combinations.of(posterior, A, one_by_one)
    for user in (-1, 0, 5, posterior.n_users - 1):
        given = posterior.combined(user, asked)
        C = posterior.C_m if user >= 0 else posterior.now.C  # whoever has not answered is of the crowd as it is now
        each = given.moved[:M].T @ C @ given.moved[:M] + (given.moved[M:].T * own) @ given.moved[M:]
        mean, covariance = posterior.person(user).combined(A)
        np.testing.assert_allclose(given.mean, mean, atol=EXACT)
        np.testing.assert_allclose(given.covariance + each, covariance, atol=EXACT)
    assert len(own) == (0 if kind.startswith("items") else N_ITEMS)
    assert (posterior.effects is None) == (kind in {"items", "inducing"})


@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_the_consensus_have_its_covariance(kind):
    moved = model_of(kind).update(columns(LATER)).posterior_
    asked = Combinations.of(moved, A, ConsensusDraws.of(moved, 40_000, np.random.default_rng(0)))
    _, covariance = moved.crowd().combined(A)
    found = moved.combined(-1, asked).moved
    np.testing.assert_allclose(np.cov(found.T), covariance, atol=0.04 * covariance.max())
    posterior = model_of(kind).posterior_
    draws = ConsensusDraws.of(posterior, 40_000, np.random.default_rng(0))
    found = Combinations.of(posterior, A, draws).moved
    _, covariance = posterior.crowd().combined(A)
    np.testing.assert_allclose(np.cov(found.T), covariance, atol=0.04 * covariance.max())
