"""The evidence of the rigid population on functions of the items: its gradient, and what it leaves alone."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from predilect.data.features import FeatureSpace
from predilect.models.population import evidence as rigid
from predilect.models.population.evidence import rigid_hyperparameters
from predilect.models.population.prior import Candidate, Functions, Hyperparameters, inducing_points
from predilect.people.layout import lay_out
from referees.dense_basis import Truth
from simulate import comparisons, crowd
from slopes import at_rest, slope_along
from tolerances import ITERATIVE

START = Hyperparameters(100.0, 2.0, 3.0, 0.6, 1.2)
X = {"attributes": [0.3], "inducing": [0.3, -0.4], "attributes+inducing": [0.3, -0.4]}  # away from the start
CROWDS = {"strict": crowd(1, 30, 8, 8), "ties": crowd(2, 30, 8, 8, delta=0.5)}


def space() -> FeatureSpace:
    """Items on a plane, one of them without features, and two at the same place."""
    matrix = np.random.default_rng(0).standard_normal((8, 2))
    matrix[1] = matrix[2]
    known = np.ones(8, dtype=bool)
    matrix[0], known[0] = 0.0, False
    return FeatureSpace(matrix, known)


def candidate_of(kind: str) -> Candidate:
    where = space()
    return Candidate.of(Functions.of(kind, where, inducing_points(where, 3, 0), 1.2), where)


def search_at(kind: str, rows) -> rigid._Rigid:
    search = rigid._Rigid(lay_out(comparisons(rows)), space(), START, candidate_of(kind), None)
    has_ties = bool((rows.outcome == 0).any())
    search.delta, search.learn_delta = 0.4 * has_ties, has_ties
    search.start_round()
    return search


def names_of(kind: str) -> list[str]:
    return ["variance", "feature_weight"][: len(X[kind])]


@pytest.mark.slow
@pytest.mark.parametrize("crowd_name", CROWDS)
@pytest.mark.parametrize("held", [True, False], ids=["consensus held", "consensus at its best"])
@pytest.mark.parametrize("kind", X)
def test_the_gradient(kind, held, crowd_name, monkeypatch):
    search, names, x = search_at(kind, CROWDS[crowd_name]), names_of(kind), np.array(X[kind])
    evaluate = partial(search.evaluate, names)
    if held:
        at_rest(evaluate, x)
    # Every consensus is good enough, so it stays, and so does δ; or none is, and both move to their best with each
    # call, where the evidence is flat in them (the envelope theorem).
    monkeypatch.setattr(rigid, "_STILL", math.inf if held else -1.0)
    _, gradient = at_rest(evaluate, x)
    slopes = [slope_along(lambda z: at_rest(evaluate, z)[0], x, direction) for direction in np.eye(len(names))]
    assert np.all(np.abs(gradient) > 0.01)
    np.testing.assert_allclose(slopes, gradient, atol=10 * ITERATIVE, rtol=ITERATIVE)
    if not held:
        assert np.abs(search.current.r - search.precision @ search.m).max() < ITERATIVE * 10
        rest = search.current.r_items - search.offset_precision * search.offset
        own = search._prior(rigid._hyperparameters(names, START, x)).own_share
        assert np.abs(rest * np.sqrt(own)).max() < ITERATIVE * 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", X)
def test_the_evidence_is_that_of_the_people_less_the_penalty_of_the_consensus(kind):
    rows, x = CROWDS["ties"], np.array(X[kind])
    search = search_at(kind, rows)
    value, _ = at_rest(partial(search.evaluate, names_of(kind)), x)
    prior = search._prior(rigid._hyperparameters(names_of(kind), START, x))
    truth = Truth(prior.Phi, prior.variance * prior.K, search.m, prior.own_share, prior.variance, search.offset,
                  np.zeros((prior.n_functions, 0)), np.zeros((30, 0)), search.delta)  # fmt: skip
    evidence = sum(person.evidence for person in truth.people(rows))
    fixed = search._prior(START)  # the prior of the consensus is held within a round
    penalty = search.m @ np.linalg.solve(3.0 * fixed.K, search.m) + np.sum(search.offset**2 / (3.0 * fixed.own_share))
    assert abs(value - (evidence - 0.5 * penalty)) < ITERATIVE


@pytest.mark.parametrize("kind", X)
@pytest.mark.parametrize(
    "free", [[], ["variance"], ["feature_weight"], ["variance", "feature_weight", "consensus_variance"]]
)
def test_what_is_not_free_stays(kind, free):
    people = lay_out(comparisons(CROWDS["ties"]))
    found = rigid_hyperparameters(people, space(), START, [*free, "length_scale"], candidate=candidate_of(kind))
    moves = [name for name in free if name != "feature_weight" or kind != "attributes"]
    for name in ("strength", "variance", "consensus_variance", "feature_weight", "length_scale"):
        # The length scale belongs to the functions: the walk moves it, not the evidence.
        assert (getattr(found, name) == getattr(START, name)) == (name not in moves), name


def test_a_feature_weight_at_its_end_is_proper():
    people = lay_out(comparisons(CROWDS["strict"]))
    for weight in (0.0, 1.0):
        for kind in X:
            start = replace(START, feature_weight=weight)
            found = rigid_hyperparameters(people, space(), start, ["variance"], candidate=candidate_of(kind))
            assert np.isfinite(found.variance)
