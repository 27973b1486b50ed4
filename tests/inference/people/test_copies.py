"""Alternatives of a task that are one item: each has noise of its own, and all have the item's utility."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import ndtr

from predilect import Comparisons
from predilect.data.orders import as_orders
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import lay_out
from predilect.inference.people.person import part_of, person_of, side_by_side
from tolerances import EXACT, ITERATIVE

PRICES = (1.0, 2.0, 3.0, 4.0)
MEAN = np.array([0.6, 0.1, -0.2, -0.7])
OWN = 0.2


def study(shown, chosen, who=None):
    """Answers of choices of the best, by the prices that were shown and the place of the one that was chosen."""
    task = np.repeat(np.arange(len(shown)), [len(one) for one in shown])
    frame = {
        "person": task * 0 if who is None else np.asarray(who)[task], "task": task, "price": np.concatenate(shown),
        "chosen": np.concatenate([np.arange(len(one)) == best for one, best in zip(shown, chosen, strict=True)]) * 1,
    }  # fmt: skip
    return Comparisons.from_frame(frame | {"alt": np.concatenate([1 + np.arange(len(one)) for one in shown])})


def law(basis):
    Phi = np.array([[price, price == 2.0] for price in PRICES], dtype=float)
    Sigma = np.array([[0.2, 0.1], [0.1, 0.6]])
    if basis:
        return Law(Sigma, MEAN, Phi=Phi, rho=np.full(len(PRICES), OWN))
    return Law(Phi @ Sigma @ Phi.T + OWN * np.eye(len(PRICES)), MEAN)


def everything(seed=0, n_people=3, n_tasks=40):
    """A crowd that meets every price, some of them several times in a task."""
    rng = np.random.default_rng(seed)
    shown = [rng.choice(PRICES, 3) for _ in range(n_people * n_tasks)]
    chosen = [int(rng.integers(3)) for _ in shown]
    return as_orders(study(shown, chosen, np.repeat(np.arange(n_people), n_tasks)))


@pytest.mark.parametrize("n_tasks", [4, 40])
@pytest.mark.parametrize("basis", [False, True])
def test_all_routes_through_a_person_agree(basis, n_tasks):
    answers = everything(n_tasks=n_tasks)
    assert answers.n_items == len(PRICES)
    found = []
    for largest_state in (10_000, 1):  # among the items or the rows, and dense
        people = lay_out(answers, largest_state=largest_state)
        assert (len(people.heavy) == people.n_users) == (largest_state == 1)
        sites = Sites.flat(people.n_rows)
        one = expectation(people, sites, law(basis), 0.0, n_sweeps=200, tolerance=1e-12)
        found.append((one, [people.sums(user, sites, law(basis)) for user in range(people.n_users)]))
    (one, mine), (other, theirs) = found
    assert one.evidence == pytest.approx(other.evidence, abs=ITERATIVE)
    for name in ("H", "D", "r", "own_H", "own_D"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=ITERATIVE)
    for (items, x, Q), (same, y, R) in zip(mine, theirs, strict=True):
        assert (items == same).all()
        assert (np.diff(items) > 0).all()
        np.testing.assert_allclose(x, y, atol=ITERATIVE)
        np.testing.assert_allclose(Q, R, atol=ITERATIVE)


def chance(best, others, mean, S):
    """Probability of one alternative of the item ``best`` to beat one of each of ``others``, by quadrature over its
    noise and over utilities, which are normal.
    """
    items = sorted({best, *others})
    root = np.linalg.cholesky(S[np.ix_(items, items)])
    nodes, weights = hermegauss(40)
    grid = np.stack(np.meshgrid(*[nodes] * (1 + len(items)), indexing="ij"), axis=-1).reshape(-1, 1 + len(items))
    weight = np.prod(np.stack(np.meshgrid(*[weights] * (1 + len(items)), indexing="ij"), axis=-1), axis=-1).ravel()
    u = mean[items] + grid[:, 1:] @ root.T
    u_best = u[:, items.index(best)] + np.sqrt(0.5) * grid[:, 0]
    beaten = [ndtr((u_best - u[:, items.index(one)]) / np.sqrt(0.5)) for one in others]
    return float(weight @ np.prod(beaten, axis=0) / weight.sum())


@pytest.mark.parametrize(
    ("shown", "chosen"),
    [((1.0, 2.0, 2.0), 0), ((1.0, 2.0, 2.0), 1), ((1.0, 1.0, 1.0, 4.0), 0), ((3.0, 3.0, 3.0, 4.0), 3),
     ((1.0, 1.0, 4.0, 4.0), 2)],
)  # fmt: skip
@pytest.mark.parametrize("basis", [False, True])
def test_the_evidence_of_a_choice_is_that_of_quadrature(shown, chosen, basis):
    whole = study([shown, PRICES], [chosen, 0], [0, 1])
    answers = as_orders(whole.take(whole.user == 0))
    where = law(basis)
    people = lay_out(answers)
    found = expectation(people, Sites.flat(people.n_rows), where, 0.0, n_sweeps=200, tolerance=1e-12).evidence
    place = [PRICES.index(one) for one in shown]
    others = [one for k, one in enumerate(place) if k != chosen]
    expected = chance(place[chosen], others, MEAN, where.covariance(np.arange(len(PRICES))))
    assert np.exp(found) == pytest.approx(expected, abs=0.01)  # the error of expectation propagation
    # The chances of all alternatives sum to 1: those that are alike are as many.
    total = 0.0
    for best in range(len(shown)):
        whole = study([shown, PRICES], [best, 0], [0, 1])
        people = lay_out(as_orders(whole.take(whole.user == 0)))
        total += np.exp(expectation(people, Sites.flat(people.n_rows), where, 0.0, n_sweeps=200).evidence)
    assert total == pytest.approx(1.0, abs=0.02)


def test_a_person_is_the_same_put_together_of_rows():
    people = lay_out(everything(n_tasks=6))
    sites = Sites(np.linspace(0.1, 1.0, people.n_rows), np.linspace(-1.0, 1.0, people.n_rows))
    for user in range(people.n_users):
        one, own = part_of(people, sites, np.array([user]))
        again, same = side_by_side([person_of(people, sites, user)], people)
        assert again.item_idx.tolist() == one.item_idx.tolist()
        np.testing.assert_allclose(
            law(True).covariance(again.item_idx), law(False).covariance(one.item_idx), atol=EXACT
        )  # copies have one utility
        mine, theirs = (
            list(zip(p.task.tolist(), p.left.tolist(), p.right.tolist(), s.precision.tolist(), strict=True))
            for p, s in ((one, own), (again, same))
        )
        assert mine == theirs
