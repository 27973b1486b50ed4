"""The consensus after a change about few of many items: as by all of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from predilect.inference.people import moved
from predilect.inference.people.law import Law
from predilect.inference.people.moved import Since
from tolerances import CONVERGED


def covariance(n, rng):
    root = rng.standard_normal((n, n + 2))
    return root @ root.T / n


@pytest.mark.parametrize("touched", [[3], [0, 4, 7], []])
def test_a_change_about_few_items_is_that_of_dense_algebra(touched, monkeypatch):
    rng, n = np.random.default_rng(1), 9
    C, D = covariance(n, rng), covariance(n, rng) - covariance(n, rng)
    H, r = np.zeros((n, n)), np.zeros(n)
    H[np.ix_(touched, touched)] = covariance(len(touched), rng)
    r[touched] = rng.standard_normal(len(touched))
    exact = np.linalg.inv(np.linalg.inv(C) + H)
    A = exact @ np.linalg.inv(C)
    for many in (1, 100):
        monkeypatch.setattr(moved, "_MANY", many)
        found = moved._narrowed(C, Since(H, r))
        np.testing.assert_allclose(found.C, exact, atol=CONVERGED)
        np.testing.assert_allclose(found.step, exact @ r, atol=CONVERGED)
        np.testing.assert_allclose(found.carried(D), A @ D @ A.T, atol=CONVERGED)
        assert (found.C == found.C.T).all()


@pytest.mark.parametrize("n", [-3.0, 5.0])
def test_what_contexts_add_is_of_as_large_a_share_as_is_left_of_the_answers(n):
    rng = np.random.default_rng(2)
    C, D, H, m, r = *(covariance(6, rng) for _ in range(3)), *rng.standard_normal((2, 6))
    law = Law(np.eye(6), m)
    posterior = SimpleNamespace(
        m=m, C_m=C + D, C_answers=C, C_predicted=C, law=law, newcomer_law=law, shifts_newcomers=False, basis=None,
        since=Since(H, r, n), overlay={}, people=SimpleNamespace(weight=np.ones(12)),
    )  # fmt: skip
    found, alone = moved.moved(posterior), np.linalg.inv(np.linalg.inv(C) + H)
    A, share = alone @ np.linalg.inv(C), min(12.0 / (12.0 - n), 1.0)
    np.testing.assert_allclose(found.C, alone + share * A @ D @ A.T, atol=CONVERGED)
    np.testing.assert_allclose(found.C_answers, alone, atol=CONVERGED)
    np.testing.assert_allclose(found.m, m + alone @ r, atol=CONVERGED)
    np.testing.assert_allclose(found.law.mean, m + alone @ r, atol=CONVERGED)
