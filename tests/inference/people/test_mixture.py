"""A mixture of one group is the population model; more are found by EM that never loses."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from predilect import Population
from predilect.inference.people.expectation import converge
from predilect.inference.people.mixture import (
    Crowd,
    GainsOfGroups,
    _at_scale,
    _AtPlaces,
    _begun,
    _climb,
    _OwnSites,
    _with_weights,
    whole,
)
from simulate import answers, comparisons
from simulate_camps import FIXED, agreeing, camps
from tolerances import EXACT, ITERATIVE


def crowd_of(rows):
    model = Population(**FIXED).fit(comparisons(rows))
    posterior = model._snapshot().posterior_
    return model, Crowd(posterior, model.tie_threshold_, np.arange(posterior.people.n_users))


def test_one_group_is_the_population():
    model, crowd = crowd_of(agreeing(0))
    A = crowd.directions(2)
    one = _begun(A, np.ones((len(crowd.order), 1)))
    (law,) = one.laws(crowd)
    np.testing.assert_allclose(law.Sigma, crowd.posterior.Sigma, atol=EXACT)
    np.testing.assert_allclose(law.mean, crowd.posterior.law.mean, atol=EXACT)
    sites = crowd.posterior.sites.copy()
    there = converge(crowd.posterior.people, sites, crowd.posterior.law, crowd.delta, sums=False).evidences
    np.testing.assert_allclose(crowd.evidences([law], [sites.copy()])[:, 0], there, atol=ITERATIVE)
    np.testing.assert_allclose(_OwnSites(crowd, A, 1).evidences(one)[:, 0], there, atol=ITERATIVE)
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


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_em_gains_with_every_iteration_until_it_rests(held):
    _, crowd = crowd_of(camps(2))
    A = crowd.directions(2)
    begun = _begun(A, np.eye(2)[np.arange(40) % 2] * 0.6 + 0.2)
    ways = [_AtPlaces(crowd.places(A)) if held else _OwnSites(crowd, A, 2) for _ in range(9)]
    reached = [_climb(way, begun, crowd.weight, n).objective for n, way in enumerate(ways, 1)]
    assert (np.diff(reached) > (-EXACT if held else -1e-2)).all()
    assert reached[-1] > reached[0]


@pytest.mark.parametrize("rows", [camps(4), agreeing(4)])
def test_along_the_directions_evidence_and_sums_are_those_of_everybodys_sites_held(rows):
    _, crowd = crowd_of(rows)
    A, rng = crowd.directions(2), np.random.default_rng(0)
    W = np.array([[0.4, 0.1], [0.1, 0.7]])
    groups = replace(_begun(A, np.full((len(crowd.order), 2), 0.5)), b=rng.standard_normal((2, 2)), W=W)
    near, full, weight = _AtPlaces(crowd.places(A)), _OwnSites(crowd, A, 2), rng.random((len(crowd.order), 2))
    for found, held in zip(near.sums(groups, weight), full.sums(groups, weight), strict=True):
        np.testing.assert_allclose(found, held, atol=ITERATIVE)
    # The gradient of the evidence in the mean of a group is r_k, and twice that in W is D.
    step = 1e-5
    for k, i in product(range(2), range(2)):
        sides = []
        for sign in (1.0, -1.0):
            b = groups.b.copy()
            b[k, i] += sign * step
            sides.append(near.evidences(replace(groups, b=b))[:, k])
        slope = weight[:, k] @ (sides[0] - sides[1]) / (2.0 * step)
        assert slope == pytest.approx(near.sums(groups, weight).r[k, i], rel=1e-6)
    turn = step * np.array([[1.0, 0.5], [0.5, -1.0]])
    above, below = (np.sum(weight * near.evidences(replace(groups, W=W + sign * turn))) for sign in (1.0, -1.0))
    assert (above - below) / 2.0 == pytest.approx(0.5 * np.sum(near.sums(groups, weight).D * turn), rel=1e-6)


def test_who_answered_very_often_has_a_place_without_variance():
    _, crowd = crowd_of(camps(6))
    A = crowd.directions(2)
    places = crowd.places(A)
    covariance = places.covariance.copy()
    covariance[0] = np.array([[0.0, 0.0], [0.0, -1e-17]])
    best = _climb(
        _AtPlaces(places._replace(covariance=covariance)), _begun(A, np.eye(2)[np.arange(40) % 2]), crowd.weight
    )
    assert np.isfinite(best.objective)
    assert np.isfinite(best.b).all()
    nobody = _climb(_AtPlaces(places._replace(mean=0.0 * places.mean)), _begun(A, np.ones((40, 1))), crowd.weight)
    assert not nobody.b.any()  # and there is an evidence, though all is as it begun
    assert nobody.evidence.shape == (40,)


def test_resampled_crowds_are_those_of_passes_over_people():
    _, crowd = crowd_of(camps(5))
    found = whole(crowd, 2, 0)
    weight = np.random.default_rng(0).integers(0, 3, (3, len(crowd.order))).astype(float)
    shares, means = _with_weights(crowd, found, weight, 1)
    prior, start = np.linalg.inv(crowd.posterior.Sigma), found.b @ found.A.T
    for share, mean, w in zip(shares, means, weight, strict=True):
        r = w[:, None] * found.belongs
        np.testing.assert_allclose(share, (r.sum(axis=0) + 2.0) / (w.sum() + 4.0), rtol=EXACT)
        for k, (law, sites) in enumerate(zip(found.laws(crowd), found.sites, strict=True)):
            sums = crowd.pass_over(law, sites, r[:, k])
            expected = np.linalg.solve(prior + sums.H, sums.r + sums.H @ start[k])
            np.testing.assert_allclose(mean[k] - crowd.posterior.m, expected, atol=ITERATIVE)
    one, others = _with_weights(crowd, found, weight, 3), [_with_weights(crowd, found, w[None], 3) for w in weight]
    for together, alone in zip(one, map(np.concatenate, zip(*others, strict=True)), strict=True):
        np.testing.assert_allclose(together, alone, rtol=EXACT)


def test_scales_within_groups_are_as_likely_as_by_quadrature():
    """Of two items, with two groups that hardly overlap: chances of so many wins of 20, over means and people."""
    wins = np.tile([19, 1, 17, 3], 10)
    user, outcome = np.repeat(np.arange(40), 20), (np.arange(20) < wins[:, None]) * 2 - 1
    _, crowd = crowd_of(answers(user, np.zeros(800, int), np.ones(800, int), outcome.ravel(), n_items=2, n_users=40))
    A = crowd.directions(1)
    start = _begun(A, np.eye(2)[np.arange(40) % 2])
    groups = replace(start, b=np.array([[1.0], [-1.0]]), W=np.array([[0.15]]), sites=[crowd.posterior.sites] * 2)
    within = groups.laws(crowd)[0].Sigma @ [1.0, -1.0] @ [1.0, -1.0]
    d, t = np.linspace(-5.0, 5.0, 201), np.linspace(-6.0, 6.0, 121)
    of_mean = norm.logpdf(d, 0.0, np.sqrt(crowd.posterior.Sigma @ [1.0, -1.0] @ [1.0, -1.0]))
    scales, gains = np.exp([-1.0, -0.5, 0.0]), []
    for scale in scales:
        p = norm.cdf(d[:, None] + np.sqrt(scale * within) * t)
        Z = {k: np.average(p**k * (1.0 - p) ** (20 - k), axis=1, weights=norm.pdf(t)) for k in set(wins.tolist())}
        log = sum(np.log(0.5 * Z[k][:, None] + 0.5 * Z[k]) for k in wins.tolist()) + of_mean[:, None] + of_mean
        gains.append(_at_scale(crowd, groups, scale)[1] - logsumexp(log))
    np.testing.assert_allclose(np.diff(gains), 0.0, atol=0.05)  # nats, of the 3 and 4 that they differ by


@pytest.mark.slow
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
