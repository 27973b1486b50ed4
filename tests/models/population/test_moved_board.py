"""The crowd's board after updates: one Newton step of the fit, from sums over people, however answers came."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest

from contracts.votes import user_ids
from predilect import Population
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import lay_out
from simulate_updates import AT_FIT, FIXED, ITEMS, LATER, N_ITEMS, PERSONAL, ROWS, columns, fitted, one
from tolerances import CONVERGED, EXACT, ITERATIVE


@functools.cache
def _of_items() -> Population:
    settings = FIXED | {"tol": 1e-10, "max_iter": 500}
    return Population(**settings, basis="items").fit(columns(AT_FIT), items=ITEMS)


def of_items() -> Population:
    """A fit whose gradient in the consensus is 0."""
    return copy.deepcopy(_of_items())


def dense_step(model: Population) -> tuple[np.ndarray, np.ndarray]:
    """A⁻¹ b and A⁻¹ by dense algebra: A = P + Σ_u H_u, b = Σ_u (r_u + H_u m), with every inverse formed."""
    posterior, h = model.posterior_, model.hyperparameters_
    S = model._space.covariance(h.consensus_weight, h.length_scale)
    A, b = np.linalg.inv(h.consensus_variance * S), np.zeros(N_ITEMS)
    answers = model.comparisons_
    people = lay_out(answers)
    sites = Sites.flat(people.n_rows)
    converge(people, sites, posterior.law, model.tie_threshold_, tolerance=1e-13)
    for user in range(people.n_users):
        rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
        items = people.item_idx[people.item_ptr[user] : people.item_ptr[user + 1]]
        X = np.zeros((rows.stop - rows.start, N_ITEMS))
        X[np.arange(len(X)), items[people.left[rows]]] = 1.0
        X[np.arange(len(X)), items[people.right[rows]]] -= 1.0
        precision = people.weight[rows] * sites.precision[rows]
        Q = np.linalg.inv(np.diag(1.0 / precision) + X @ posterior.Sigma @ X.T)
        H = X.T @ Q @ X
        A += H
        b += X.T @ Q @ (sites.linear[rows] / sites.precision[rows] - X @ posterior.m) + H @ posterior.m
    return np.linalg.solve(A, b), np.linalg.inv(A)


@pytest.mark.parametrize("way", ["one call", "one by one", "merged", "forgotten", "erased"])
def test_the_moved_board_is_that_of_dense_algebra(way):
    model = of_items()
    if way == "one by one":
        for index in LATER[::-1].tolist():
            model.update(**one(index))
    else:
        model.update(columns(LATER))
    if way == "merged":
        model._consolidate()
    if way == "forgotten":
        model.forget(columns(AT_FIT[::4]))
    if way == "erased":
        model.forget(user=user_ids([3])[0]).forget(user=user_ids([13])[0])
    m, C = dense_step(model)
    found, covariance = model.posterior_.crowd().dense()
    assert np.abs(found - model.posterior_.m).max() > 0.01
    np.testing.assert_allclose(covariance, C, atol=ITERATIVE)
    np.testing.assert_allclose(found, m, atol=ITERATIVE)


@pytest.mark.parametrize("kind", PERSONAL)
def test_the_board_does_not_depend_on_the_order_of_answers(kind, tmp_path):
    models = [fitted(kind) for _ in range(4)]
    models[0].update(columns(LATER))
    for index in LATER[::-1].tolist():
        models[1].update(**one(index))
    models[2].update(columns(LATER[::2]))._consolidate().update(columns(LATER[1::2]))
    models[3].update(columns(LATER)).save(tmp_path / "model")
    models.append(Population.load(tmp_path / "model"))
    boards = [model.posterior_.crowd().dense() for model in models]
    for board in boards[1:]:
        for a, b in zip(board, boards[0], strict=True):
            np.testing.assert_allclose(a, b, atol=CONVERGED)


@pytest.mark.parametrize("kind", PERSONAL)
def test_what_is_taken_back_leaves_the_board_of_the_fit(kind):
    model, before = fitted(kind), fitted(kind).posterior_.crowd().dense()
    for merge in (False, True):
        model.update(columns(LATER))
        if merge:
            model._consolidate()
        model.forget(columns(LATER))
        for a, b in zip(model.posterior_.crowd().dense(), before, strict=True):
            np.testing.assert_allclose(a, b, atol=EXACT if not merge else CONVERGED)


def test_a_person_of_the_fit_is_predicted_as_before_and_a_stranger_by_the_moved_crowd():
    model, asked = fitted("items"), {"user": user_ids([1]), "left": ["item 1"], "right": ["item 2"]}
    own, stranger = model.predict_margin(asked), model.posterior_.person(-1)
    model.update(columns(LATER[ROWS.user[LATER] != 1]))
    for a, b in zip(model.predict_margin(asked), own, strict=True):
        np.testing.assert_array_equal(a, b)
    moved, crowd = model.posterior_.person(-1), model.posterior_.crowd()
    assert np.abs(moved.mean - stranger.mean).max() > 0.01
    np.testing.assert_array_equal(moved.mean, crowd.mean)
    np.testing.assert_allclose(moved.covariance, crowd.covariance + model.posterior_.Sigma, atol=EXACT)


def test_one_erased_is_nearly_as_if_the_consensus_had_been_fitted_without_them():
    """One Newton step, against steps until the gradient is 0 at the fitted hyper-parameters."""
    model = of_items().forget(user=user_ids([4])[0])
    posterior, h = model.posterior_, model.hyperparameters_
    precision = np.linalg.inv(h.consensus_variance * model._space.covariance(h.consensus_weight, h.length_scale))
    m = posterior.m
    for _ in range(30):
        law = posterior.law.moved(m - posterior.m)
        sites = posterior.sites.copy()
        found = converge(posterior.people, sites, law, model.tie_threshold_, tolerance=1e-12)
        m = np.linalg.solve(precision + found.H, found.r + found.H @ m)
    step = np.abs(m - posterior.m).max()
    assert step > 0.01
    assert np.abs(posterior.now.m - m).max() < 0.1 * step
