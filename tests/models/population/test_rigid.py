"""The evidence of the rigid population, on items and on functions of them: gradient, what it leaves alone, scales."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from predilect import Comparisons
from predilect.data import ItemFeatures
from predilect.data.features import FeatureSpace
from predilect.inference.gaussian.dense import factorise
from predilect.inference.people.layout import lay_out
from predilect.models.population.prior import (
    Candidate,
    Functions,
    Hyperparameters,
    PopulationPrior,
    inducing_points,
    is_consensus_costly,
    log_prior_of_variances,
)
from predilect.models.population.search import evidence as rigid
from predilect.models.population.search.evidence import rigid_hyperparameters
from referees.dense_basis import Truth
from simulate import answers, comparisons, crowd, probit_answers, random_pairs
from simulate_features import featured_crowd
from slopes import at_rest, slope_along
from tolerances import ITERATIVE

START = Hyperparameters(100.0, 2.0, 3.0, 0.6, 1.2)
DEFAULTS_OF_SCALES = Hyperparameters(30.0, 1.0, 1.0, 0.0, 1.0)
# What each kind of population can search for, and a place away from the start along each. The length scale belongs to
# the functions of a basis: the walk moves it, not the evidence.
X = {
    "items": {"variance": 0.3, "feature_weight": -0.4, "length_scale": 0.2},
    "attributes": {"variance": 0.3},
    "inducing": {"variance": 0.3, "feature_weight": -0.4},
    "attributes+inducing": {"variance": 0.3, "feature_weight": -0.4},
}
BASES = [kind for kind in X if kind != "items"]
ALL = [*X["items"], "consensus_variance"]
CROWDS = {"strict": crowd(1, 30, 8, 8), "ties": crowd(2, 30, 8, 8, delta=0.5)}
each_kind = pytest.mark.parametrize("kind", ["items", *(pytest.param(kind, marks=pytest.mark.slow) for kind in BASES)])


def space_of(n_items: int = 8) -> FeatureSpace:
    """Items on a plane, one of them without features, and two at the same place."""
    matrix = np.random.default_rng(0).standard_normal((n_items, 2))
    matrix[1] = matrix[2]
    known = np.ones(n_items, dtype=bool)
    matrix[0], known[0] = 0.0, False
    return FeatureSpace(matrix, known)


def candidate_of(kind: str) -> Candidate:
    if kind == "items":
        return Candidate(None, None)
    where = space_of()
    return Candidate.of(Functions.of(kind, where, inducing_points(where, 3, 0), 1.2), where)


def search_at(rows, kind: str = "items") -> rigid._Rigid:
    search = rigid._Rigid(lay_out(comparisons(rows)), space_of(), START, candidate_of(kind), None)
    has_ties = bool((rows.outcome == 0).any())
    search.delta, search.learn_delta = 0.4 * has_ties, has_ties
    search.start_round()
    return search


@each_kind
@pytest.mark.parametrize("held", [True, False], ids=["consensus held", "consensus at its best"])
@pytest.mark.parametrize("name", CROWDS)
def test_the_gradient(kind, held, name, monkeypatch):
    search, names, x = search_at(CROWDS[name], kind), [*X[kind]], np.array([*X[kind].values()])
    evaluate = partial(search.evaluate, names)
    if held:
        at_rest(evaluate, x)
    m, delta = search.m.copy(), search.delta
    # Every consensus is good enough, so it stays, and so does δ; or none is, and both move to their best with each
    # call, where the evidence is flat in them (the envelope theorem).
    monkeypatch.setattr(rigid, "_STILL", math.inf if held else -1.0)
    _, gradient = at_rest(evaluate, x)
    slopes = [slope_along(lambda z: at_rest(evaluate, z)[0], x, direction) for direction in np.eye(len(names))]
    assert np.all(np.abs(gradient) > 0.01)
    np.testing.assert_allclose(
        slopes, gradient, atol=ITERATIVE * (1 if held and kind == "items" else 10), rtol=ITERATIVE
    )
    assert (np.abs(search.m - m).max() < 0.1) == held
    assert (abs(search.delta - delta) > 0.01) == (name == "ties" and not held)
    if not held:
        assert np.abs(search.current.r - search.precision @ search.m).max() < ITERATIVE * (1 if kind == "items" else 10)
        assert name != "ties" or abs(search.current.slope_delta) < ITERATIVE * 10
    if not held and kind != "items":
        rest = search.current.r_items - search.offset_precision * search.offset
        own = search._prior(rigid._hyperparameters(names, START, x)).own_share
        assert np.abs(rest * np.sqrt(own)).max() < ITERATIVE * 100


@each_kind
def test_the_evidence_is_that_of_the_people_less_the_penalty_of_the_consensus(kind):
    rows, names = CROWDS["ties"], [*X[kind]]
    x = np.array([*X[kind].values()]) * (kind != "items")
    search = search_at(rows, kind)
    value, _ = at_rest(partial(search.evaluate, names), x)
    fixed = search._prior(START)  # the prior of the consensus is held within a round
    penalty = search.m @ np.linalg.solve(3.0 * fixed.K, search.m)
    evidence = search.current.evidence
    if kind != "items":
        prior = search._prior(rigid._hyperparameters(names, START, x))
        truth = Truth(prior.Phi, prior.variance * prior.K, search.m, prior.own_share, prior.variance, search.offset,
                      np.zeros((prior.n_functions, 0)), np.zeros((30, 0)), search.delta)  # fmt: skip
        evidence = sum(person.evidence for person in truth.people(rows))
        penalty += np.sum(search.offset**2 / (3.0 * fixed.own_share))
    assert abs(value - (evidence - 0.5 * penalty)) < ITERATIVE


@pytest.mark.parametrize("kind", X)
@pytest.mark.parametrize("free", [[], ["variance"], ["feature_weight"], ["consensus_variance"], ALL])
def test_what_is_not_free_stays(kind, free):
    people = lay_out(comparisons(CROWDS["ties"]))
    found = rigid_hyperparameters(people, space_of(), START, free, candidate=candidate_of(kind))
    for name in ("strength", *ALL):
        moves = name in free and name in (*X[kind], "consensus_variance")
        assert (getattr(found, name) == getattr(START, name)) == (not moves), name


def test_a_feature_weight_at_its_end_is_proper():
    people = lay_out(comparisons(CROWDS["strict"]))
    for weight in (0.0, 1.0):
        for kind in BASES:
            start = replace(START, feature_weight=weight)
            found = rigid_hyperparameters(people, space_of(), start, ["variance"], candidate=candidate_of(kind))
            assert np.isfinite(found.variance)


def test_the_search_neither_leaps_to_its_bounds_nor_lingers_at_the_top(monkeypatch):
    # Far from the top sites and consensus settle elsewhere; coming back, the evidence was too rough for line searches.
    truth = featured_crowd(1, 120, 16, scale=8.0, feature_weight=0.8, delta=0.3)
    columns, outcome = truth.answers(12)
    space = FeatureSpace(ItemFeatures.from_frame(truth.items).matrix, np.ones(16, dtype=bool))
    wide, evaluate = [], rigid._Rigid.evaluate

    def watched(self, names, x):
        wide.append(np.abs(x).max())
        return evaluate(self, names, x)

    monkeypatch.setattr(rigid._Rigid, "evaluate", watched)
    rigid_hyperparameters(lay_out(Comparisons.from_frame(columns, outcome=outcome)), space, START, ALL)
    assert max(wide) < 3.0
    assert len(wide) <= 25


def test_a_handful_of_answers_moves_little():
    people = lay_out(comparisons(crowd(4, 3, 4, 2)))
    found = rigid_hyperparameters(people, space_of(4), START, ["variance", "feature_weight", "length_scale"])
    assert abs(math.log(found.variance / START.variance)) < 2.0
    assert 0.2 < found.feature_weight < 0.9
    assert abs(math.log(found.length_scale / START.length_scale)) < 1.0


@pytest.mark.parametrize(
    ("scale", "weight"),
    [(1.0, 0.9), (25.0, 0.1), *(pytest.param(*truth, marks=pytest.mark.slow) for truth in [(1.0, 0.1), (25.0, 0.9)])],
)
def test_scale_and_weight_are_found_from_far_away(scale, weight):
    truth = featured_crowd(1, 300, 20, scale=scale, feature_weight=weight, strength=1e4)  # Σ is its prior mean
    columns, outcome = truth.answers(15)
    space = FeatureSpace(ItemFeatures.from_frame(truth.items).matrix, np.ones(20, dtype=bool))
    start = Hyperparameters(100.0, 4.0, 4.0, 0.5, 2.5)
    people = lay_out(Comparisons.from_frame(columns, outcome=outcome))
    found = rigid_hyperparameters(people, space, start, ALL)

    # Only differences are seen, so that a kernel with a long length looks like a smaller scale and a smaller weight.
    def contrast(h: Hyperparameters) -> float:
        return h.variance * (1.0 - space.covariance(h.feature_weight, h.length_scale)[np.triu_indices(20, 1)].mean())

    ratio = contrast(found) / contrast(Hyperparameters(**truth.true))
    # EP's evidence falls short where people are decided (.14 nats a person at s0 = 16), and so does the scale;
    # what it predicts is none the worse (test_selection).
    assert (0.7 < ratio < 1.4) if scale == 1.0 else (0.2 < ratio < 1.0)
    assert (found.feature_weight > 0.75) == (weight == 0.9)


def test_scales_and_threshold_that_must_rise_or_fall_together_are_found():
    # Few people, many items, ties: whoever moves alone is held back by the other two, and once stopped at a thirtieth.
    rng = np.random.default_rng(0)
    n_people, n_items, per_person, sd, delta = 10, 40, 80, 3.0, 1.5
    utilities = sd * rng.standard_normal(n_items) + sd * rng.standard_normal((n_people, n_items))
    user = np.repeat(np.arange(n_people), per_person)
    rows = answers(user, *probit_answers(rng, utilities, user, delta), n_items=n_items)
    people, space = lay_out(comparisons(rows)), FeatureSpace.empty(n_items)

    def evidence(setting: Hyperparameters) -> float:
        search = rigid._Rigid(people, space, setting, Candidate(None, None), None)
        search.delta, search.learn_delta = delta, True
        search.start_round()
        for _ in range(8):
            value, _ = search.evaluate([], np.zeros(0))
        current = search.current
        return value - search._log_det_of_consensus(factorise(search.precision + current.H), current)

    starts = [Hyperparameters(100.0, start, start, 0.0, 1.0) for start in (0.05, 100.0)]
    below, above = (rigid_hyperparameters(people, space, start, ["variance", "consensus_variance"]) for start in starts)
    assert below.variance == pytest.approx(above.variance, rel=0.2)
    assert below.consensus_variance == pytest.approx(above.consensus_variance, rel=0.2)
    truth = evidence(Hyperparameters(100.0, sd**2, sd**2, 0.0, 1.0))
    assert min(evidence(below), evidence(above)) > truth - 0.5  # of the weak prior
    assert sd**2 / 2.5 < below.variance < 2.5 * sd**2


@pytest.mark.parametrize(
    ("n_items", "n_people", "n_each"), [pytest.param(20, 100, 6, marks=pytest.mark.slow), (8, 150, 3)]
)
def test_people_of_few_answers_are_found_to_differ_as_much_as_they_do(n_items, n_people, n_each):
    """What the consensus costs is as much as such answers say of how people differ."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng([seed, n_items])
        f = rng.standard_normal(n_items) + np.sqrt(0.5) * rng.standard_normal((n_people, n_items))
        user = np.repeat(np.arange(n_people), n_each)
        left, right = random_pairs(rng, len(user), n_items)
        better = f[user, left] - f[user, right] + rng.standard_normal(len(user)) > 0.0
        columns = {"user": user, "left": left, "right": right, "winner": np.where(better, left, right)}
        people = lay_out(Comparisons.from_frame({name: column.tolist() for name, column in columns.items()}))
        space = FeatureSpace(np.zeros((n_items, 0)), np.zeros(n_items, dtype=bool))
        setting = rigid_hyperparameters(people, space, DEFAULTS_OF_SCALES, ["variance", "consensus_variance"])
        found.append(np.log(setting.variance))
    assert abs(np.mean(found) - np.log(0.5)) < 3.0 * np.std(found, ddof=1) / np.sqrt(len(found))


@pytest.mark.parametrize(
    ("n_items", "n_people", "n_each", "costly"),
    [(20, 100, 6, True), (20, 100, 30, False), (20, 13, 6, False), (20, 9, 6, True), (400, 1000, 6, False)],
    ids=["few each", "many each", "fewer than four an item", "few people", "many functions"],
)
def test_the_consensus_is_integrated_out_where_answers_are_few_and_say_something(n_items, n_people, n_each, costly):
    people = SimpleNamespace(n_active=n_people, n_answers=n_people * n_each, n_shared=n_people * n_each**2)
    assert is_consensus_costly(people, PopulationPrior(np.eye(n_items), 30.0, 1.0, 1.0)) == costly


def test_many_answers_of_somebody_say_more_than_one_of_many():
    rows = crowd(3, 30, 8, 8)
    people = lay_out(comparisons(rows))
    assert people.n_shared == sum(rows.weight[rows.user == u].sum() ** 2 for u in range(30))


def test_the_weak_prior_of_the_scales_is_highest_where_people_differ_half_as_much_as_items():
    assert log_prior_of_variances(3.0, 0.7) < log_prior_of_variances(0.2, 0.8) == 0.0


@pytest.mark.parametrize("name", CROWDS)
def test_a_point_of_a_line_is_the_evidence_with_the_consensus_integrated_out(name):
    search = search_at(CROWDS[name])
    value, _ = at_rest(partial(search.evaluate, []), np.zeros(0))
    dense = factorise(search.precision + search.current.H).log_det() - factorise(search.precision).log_det()
    variances = (START.variance, START.consensus_variance)
    expected = value - 0.5 * dense + log_prior_of_variances(*variances)
    # Neither from there nor from nothing, and no better known than a fraction of a nat.
    assert search._profile(expected) == pytest.approx(expected, abs=0.05)
    fresh = search_at(CROWDS[name])
    assert fresh._profile(expected) == pytest.approx(expected, abs=0.1)
