"""Graded answers in the E step: compiled loops against dense algebra, and gradients of the evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect import Comparisons
from predilect.gaussian.design import Sites
from predilect.likelihoods.grades import Thresholds
from predilect.people.law import Law
from predilect.people.layout import People, lay_out
from predilect.people.person import person_of
from predilect.people.update import settle, settled
from simulate import random_covariance
from tolerances import CONVERGED

N_ITEMS = 5
CASES = [Thresholds(np.array([0.3, 0.9, 1.8])), Thresholds(np.array([0.0, 0.7, 1.5]))]


def setup(thresholds: Thresholds, **options) -> tuple[People, Law]:
    rng = np.random.default_rng(2)
    ties = int(thresholds.cuts[0] > 0.0)
    user, left = rng.integers(6, size=90), rng.integers(N_ITEMS, size=90)
    right = (left + rng.integers(1, N_ITEMS, size=90)) % N_ITEMS
    outcome = rng.choice([-3, -2, -1, 1, 2, 3] + [0] * ties, size=90)
    frame = {"user": user, "left": left, "right": right, "n": rng.integers(1, 4, size=90)}
    answers = Comparisons.from_frame(
        frame, outcome=outcome, columns={"weights": "n"}, reading={"grades": ["1", "2", "3"], "side": False}
    )
    law = Law(random_covariance(rng, N_ITEMS, 1.0), rng.normal(size=N_ITEMS))
    return lay_out(answers, thresholds=thresholds, **options), law


@pytest.mark.parametrize("of_items", [np.zeros(0), np.linspace(-0.5, 0.5, N_ITEMS)])
@pytest.mark.parametrize("thresholds", CASES)
def test_dense_and_compiled_loops_agree(thresholds, of_items):
    thresholds = replace(thresholds, of_items=of_items)
    found = []
    for largest_state in (600, 0):
        people, law = setup(thresholds, largest_state=largest_state)
        people = replace(people, tie_factor=np.linspace(0.6, 1.5, 6), consistency=np.linspace(1.3, 0.7, 6))
        sites = Sites.flat(people.n_rows)
        found.append((settle(people, sites, law, thresholds.scale, tolerance=1e-12), sites))
    (one, sites), (other, dense) = found
    assert people.is_heavy.all()
    assert one.evidence == pytest.approx(other.evidence, rel=CONVERGED)
    np.testing.assert_allclose(sites.precision, dense.precision, atol=CONVERGED)
    np.testing.assert_allclose(one.own_slopes[:, 0], other.own_slopes[:, 0], atol=1e-7)
    np.testing.assert_allclose(one.D, other.D, atol=1e-7)


@pytest.mark.parametrize("thresholds", CASES)
def test_the_gradient_in_the_scale_of_all_cuts_is_that_of_finite_differences(thresholds):
    people, law = setup(thresholds)

    def evidence(scale):
        return settle(people, Sites.flat(people.n_rows), law, scale, tolerance=1e-13)

    at, step = thresholds.scale, 1e-4
    slope = (evidence(at + step).evidence - evidence(at - step).evidence) / (2.0 * step)
    assert evidence(at).slope_delta == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("spread", [0.0, 0.7])
@pytest.mark.parametrize("thresholds", CASES)
def test_one_person_at_rest_is_that_of_all_people(thresholds, spread):
    people, law = setup(thresholds)
    sites = Sites.flat(people.n_rows)
    settle(people, sites, law, thresholds.scale, tolerance=1e-12)
    flat = Sites.flat(people.n_rows)
    person, change = settled(person_of(people, flat, 3), law, thresholds.scale, largest_state=600, spread=spread)
    assert change < 1e-9
    if not spread:
        rows = slice(people.answer_ptr[3], people.answer_ptr[4])
        np.testing.assert_allclose(person.precision, sites.precision[rows], atol=CONVERGED)
        np.testing.assert_allclose(person.linear, sites.linear[rows], atol=CONVERGED)
    heavy, _ = settled(person_of(people, flat, 3), law, thresholds.scale, largest_state=0, spread=spread)
    np.testing.assert_allclose(heavy.precision, person.precision, atol=1e-7)
    np.testing.assert_allclose(heavy.tie_factor, person.tie_factor, rtol=1e-7)
