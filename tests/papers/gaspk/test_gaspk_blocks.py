"""The compiled sums over answers against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.papers.gaspk.posterior import sums as blocks_module
from predilect.papers.gaspk.posterior.sums import (
    gather,
    packed_blocks,
    packed_product,
    scatter,
    unpacked,
)
from tolerances import EXACT


def blocks(*args):
    return unpacked(packed_blocks(*args))


def columns(n, n_users, n_points, n_c, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, n_users, n), rng.integers(0, n_points, n), rng.random(n),
        rng.dirichlet(np.full(n_c, 0.3), n_users), rng.standard_normal((n_points, n_c)),
    )  # fmt: skip


@pytest.mark.parametrize(("n", "n_users", "n_points", "n_c"), [(200, 7, 30, 4), (50, 3, 80, 1), (0, 2, 3, 2)])
def test_sums_are_those_of_numpy(n, n_users, n_points, n_c):
    user, point, weights, gamma, F = columns(n, n_users, n_points, n_c)
    g = gamma[user]
    assert gather(user, point, gamma, F) == pytest.approx(np.einsum("ic,ic->i", g, F[point]), abs=EXACT)
    slope, curvature = np.zeros((n_points, n_c)), np.zeros((n_points, n_c, n_c))
    np.add.at(slope, point, weights[:, None] * g)
    np.add.at(curvature, point, weights[:, None, None] * g[:, :, None] * g[:, None, :])
    assert scatter(user, point, weights, gamma, n_points) == pytest.approx(slope, abs=EXACT)
    found = blocks(user, point, weights, gamma, n_points)
    assert found == pytest.approx(curvature, abs=EXACT)
    assert np.array_equal(found, found.transpose(0, 2, 1))


def test_blocks_are_semidefinite_and_of_the_rank_of_the_people_who_answered():
    user, point, weights, gamma, _ = columns(120, 5, 40, 6)
    weights += 0.1
    B = blocks(user, point, weights, gamma, 45)
    values = np.linalg.eigvalsh(B)
    assert values.min() > -1e-14
    people = np.array([len(np.unique(user[point == t])) for t in range(45)])
    assert (people == 0).any()
    assert (people == 1).any()  # the usual case, in which a plain Cholesky of W fails
    assert ((values > 1e-12).sum(axis=1) <= people).all()
    assert (values[people > 0, -1] > 1e-3).all()


def test_weights_laid_out_by_column_are_taken_too():
    user, point, weights, gamma, F = columns(60, 5, 9, 3)
    other = np.asfortranarray(gamma)
    assert np.array_equal(gather(user, point, other, np.asfortranarray(F)), gather(user, point, gamma, F))
    assert np.array_equal(scatter(user, point, weights, other, 9), scatter(user, point, weights, gamma, 9))
    assert np.array_equal(blocks(user, point, weights, other, 9), blocks(user, point, weights, gamma, 9))


@pytest.mark.parametrize("n_c", [1, 2, 5])
def test_triangles_are_those_of_the_blocks_and_multiply_as_they_do(n_c):
    user, point, weights, gamma, F = columns(150, 6, 20, n_c)
    gamma[2] = np.eye(n_c)[0]  # somebody with weights of 0
    B = blocks(user, point, weights, gamma, 20)
    packed = packed_blocks(user, point, weights, gamma, 20)
    assert np.array_equal(packed, B[:, *np.tril_indices(n_c)])
    assert np.array_equal(unpacked(packed), B)
    product = np.einsum("tcd,td->tc", B, F)
    assert packed_product(packed, F) == pytest.approx(product, abs=EXACT)


def test_squares_of_weights_made_beforehand_change_nothing(monkeypatch):
    user, point, weights, gamma, _ = columns(150, 6, 20, 4)
    gamma[2] = np.eye(4)[0]
    found = packed_blocks(user, point, weights, gamma, 20)
    monkeypatch.setattr(blocks_module, "_SQUARES", 59)  # not enough for 6 people
    assert packed_blocks(user, point, weights, gamma, 20) == pytest.approx(found, abs=1e-15)
