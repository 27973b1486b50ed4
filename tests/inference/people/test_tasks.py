"""Answers about several alternatives: rows of a task share the noise of their items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Law
from simulate_people import N_ITEMS, TASKS, in_tasks
from tolerances import CONVERGED, EXACT


def law(basis=False, m=0.0, Sigma=0.0):
    rng = np.random.default_rng(4)
    root, mean = rng.normal(size=(N_ITEMS, N_ITEMS)), rng.normal(size=N_ITEMS)
    if not basis:
        return Law(root @ root.T / N_ITEMS + Sigma, mean + m)
    Phi, root = rng.normal(size=(N_ITEMS, 3)), root[:3, :3]
    return Law(root @ root.T + Sigma, mean + m, Phi, 0.2 * np.ones(N_ITEMS))


def evidence(at, where=None):
    return converge(at, Sites.flat(at.n_rows), where or law(), 0.4, tolerance=1e-11)


def exact(at, where, user):
    """Log probability of a person's answers by the orthant of all rows, each pair with noise of its own."""
    rows = slice(at.answer_ptr[user], at.answer_ptr[user + 1])
    items = at.item_idx[at.item_ptr[user] : at.item_ptr[user + 1]]
    n, a = rows.stop - rows.start, at.consistency[user]
    A = np.zeros((n, N_ITEMS))
    A[np.arange(n), items[at.left[rows]]] += at.outcome[rows]
    A[np.arange(n), items[at.right[rows]]] -= at.outcome[rows]
    same = np.equal.outer(at.task[rows], at.task[rows]) & (at.task[rows] >= 0)
    N = np.where(same, 0.5 * A @ A.T, np.eye(n))
    shift = np.where(at.task[rows] >= 0, 0.0, 0.4)  # thresholds are of pairs in which a tie was possible
    S = a * a * A @ where.covariance(np.arange(N_ITEMS)) @ A.T + N
    found = multivariate_normal(np.zeros(n), S, allow_singular=True, maxpts=4_000_000, abseps=1e-7, releps=1e-6, seed=0)
    return np.log(found.cdf(a * A @ where.mean - shift))


@pytest.mark.parametrize("user", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_evidence_is_the_orthants(user):
    rows = [row for row in TASKS if row[0] == user]
    at = in_tasks([(0, *row[1:]) for row in rows], consistency=(1.3,))
    assert evidence(at).evidence == pytest.approx(exact(at, law(), 0), abs=0.15 if user else 0.02)


@pytest.mark.parametrize("largest_state", [600, 0])
@pytest.mark.parametrize("basis", [False, True])
def test_a_task_of_one_pair_is_the_pair(basis, largest_state):
    # Only where no tie was possible: a choice of one of two offers none.
    pairs = [(user, winner, loser, -1) for user, winner, loser, _ in TASKS]
    tasks = [(user, winner, loser, place) for place, (user, winner, loser, _) in enumerate(pairs)]
    one, other = (in_tasks(rows, largest_state) for rows in (pairs, tasks))
    sites = Sites.flat(one.n_rows), Sites.flat(one.n_rows)
    found, same = (
        converge(at, at_sites, law(basis), 0.0, tolerance=1e-13)
        for at, at_sites in zip((one, other), sites, strict=True)
    )
    assert same.evidence == pytest.approx(found.evidence, abs=EXACT)
    for name in ("H", "D", "r", "r_items", "own_H", "own_D", "care"):
        # The information about care is a step's, by rows.
        np.testing.assert_allclose(
            getattr(same, name)[..., :1] if name == "care" else getattr(same, name),
            getattr(found, name)[..., :1] if name == "care" else getattr(found, name), atol=CONVERGED,
        )  # fmt: skip


@pytest.mark.parametrize("largest_state", [600, 0])
def test_gradients_are_those_of_finite_differences(largest_state):
    at, h = in_tasks(largest_state=largest_state), 1e-5
    found = evidence(at)
    rng = np.random.default_rng(0)
    along, square = rng.normal(size=N_ITEMS), rng.normal(size=(N_ITEMS, N_ITEMS))
    square = square + square.T
    slope = (evidence(at, law(m=h * along)).evidence - evidence(at, law(m=-h * along)).evidence) / (2 * h)
    assert found.r @ along == pytest.approx(slope, rel=1e-6)
    slope = (evidence(at, law(Sigma=h * square)).evidence - evidence(at, law(Sigma=-h * square)).evidence) / (2 * h)
    assert 0.5 * np.vdot(found.D, square) == pytest.approx(slope, rel=1e-6)


def test_a_choice_says_less_than_its_pairs():
    """What "all pairs apart" would count twice: the noise of the item that was chosen."""
    where = law()
    rows = [(0, 0, 1, 0), (0, 0, 2, 0), (0, 0, 3, 0)]
    told, apart = (
        evidence(in_tasks([(*row[:3], task) for row in rows], consistency=(1.0,)), where) for task in (0, -1)
    )
    assert np.linalg.eigvalsh(apart.H - told.H).min() > -EXACT
    assert np.trace(told.H) < np.trace(apart.H)
