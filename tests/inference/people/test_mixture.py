"""A mixture of one group is the population model; more are found by EM that never loses."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import Population
from predilect.inference.people.expectation import converge
from predilect.inference.people.mixture import Crowd, GainsOfGroups, _begun, _climb, whole
from simulate import comparisons
from simulate_camps import FIXED, agreeing, camps
from tolerances import EXACT, ITERATIVE


def crowd_of(rows):
    model = Population(**FIXED).fit(comparisons(rows))
    posterior = model._snapshot().posterior_
    return model, Crowd(posterior, model.tie_threshold_, np.arange(posterior.people.n_users))


def test_one_group_is_the_population():
    model, crowd = crowd_of(agreeing(0))
    A = crowd.directions(2)
    one = _begun(crowd, A, np.ones((len(crowd.order), 1)))
    (law,) = one.laws(crowd)
    np.testing.assert_allclose(law.Sigma, crowd.posterior.Sigma, atol=EXACT)
    np.testing.assert_allclose(law.mean, crowd.posterior.law.mean, atol=EXACT)
    sites = crowd.posterior.sites.copy()
    there = converge(crowd.posterior.people, sites, crowd.posterior.law, crowd.delta, sums=False).evidences
    np.testing.assert_allclose(crowd.evidences(law, one.sites[0]), there, atol=ITERATIVE)
    assert there.sum() == pytest.approx(model.log_evidence_, abs=ITERATIVE)


def test_directions_are_of_unit_variance_and_the_leading_ones():
    _, crowd = crowd_of(camps(1))
    A = crowd.directions(5)
    whitened = np.linalg.solve(np.linalg.cholesky(crowd.posterior.Sigma), A)
    np.testing.assert_allclose(whitened.T @ whitened, np.eye(5), atol=ITERATIVE)
    size = np.sum((A - A.mean(axis=0)) ** 2, axis=0)
    assert (np.diff(size) <= EXACT).all()
    taste = np.linspace(-1.0, 1.0, 6)
    assert abs(np.corrcoef(A[:, 0], taste)[0, 1]) > 0.9


def test_em_gains_with_every_iteration_until_it_rests():
    _, crowd = crowd_of(camps(2))
    begun = _begun(crowd, crowd.directions(2), np.eye(2)[np.arange(40) % 2] * 0.6 + 0.2)
    reached = [_climb(crowd, begun, crowd.weight, n).objective for n in range(1, 10)]
    assert (np.diff(reached) > -1e-2).all()
    assert reached[-1] > reached[0]


def test_camps_are_told_apart_and_held_out_people_say_so():
    _, crowd = crowd_of(camps(3))
    found = whole(crowd, 2, 0)
    assert set(np.bincount(found.belongs.argmax(axis=1))) == {20}
    own = found.belongs.argmax(axis=1).reshape(-1, 2)  # every other person is of the other camp
    assert (own[:, 0] != own[:, 1]).all()
    assert GainsOfGroups(crowd, 0).of(2).sum() > 3.0


def test_a_part_of_a_crowd_keeps_its_order():
    _, crowd = crowd_of(agreeing(1))
    part = Crowd(crowd.posterior, crowd.delta, crowd.order[::-1].copy()).part(np.array([3, 7, 20]))
    assert part.order.tolist() == [2, 1, 0]
    assert part.posterior.people.n_users == 3
