"""What the E step keeps whatever answers are about: pairs, grades or tasks, with own thresholds and own care."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect import Comparisons
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import People, lay_out, with_own
from predilect.inference.people.person import part_of
from simulate import laid_out
from simulate_people import DELTA, N_ITEMS, SPREAD, differing, in_tasks, laws, many_in_tasks, with_covariates
from tolerances import CONVERGED, ITERATIVE

# Their own thresholds and care of eight people or fewer.
TIES, CARE = np.linspace(0.6, 1.5, 8), np.linspace(1.3, 0.7, 8)


def graded(thresholds: Thresholds) -> People:
    rng = np.random.default_rng(2)
    ties = int(thresholds.cuts[0] > 0.0)
    user, left = rng.integers(6, size=90), rng.integers(N_ITEMS, size=90)
    right = (left + rng.integers(1, N_ITEMS, size=90)) % N_ITEMS
    outcome = rng.choice([-3, -2, -1, 1, 2, 3] + [0] * ties, size=90)
    frame = {"user": user, "left": left, "right": right, "n": rng.integers(1, 4, size=90)}
    answers = Comparisons.from_frame(
        frame, outcome=outcome, columns={"weights": "n"}, reading={"grades": ["1", "2", "3"], "side": False}
    )
    return lay_out(answers, thresholds=thresholds)


def with_effects(spread) -> People:
    none = np.zeros(0)
    return with_own(with_covariates(7, N_ITEMS), none, none, np.array([0.4, -0.7]), spread=spread)


def with_task_effects(found: People, spread) -> People:
    rng = np.random.default_rng(5)
    patterns = np.round(rng.normal(size=(found.n_rows, 2)), 1)
    found = replace(found, patterns=patterns, variant=np.arange(found.n_rows))
    none = np.zeros(0)
    return with_own(found, none, none, np.array([0.4, -0.7]), spread=spread)


CUTS, STRICT_CUTS, ITEMS = [0.3, 0.9, 1.8], [0.0, 0.7, 1.5], np.linspace(-0.5, 0.5, N_ITEMS)
KINDS = {
    "pairs": lambda: laid_out(differing("ties", 0, 8, [1, 4, 9, 25, 90, 3, 0, 12], SPREAD)),
    "covariates": lambda: with_effects(()), "covariates, own effects": lambda: with_effects((0.8, 0.3)),
    "tasks": in_tasks, "tasks, own effects": lambda: with_task_effects(in_tasks(), (0.8, 0.3)),
    "tasks among items": many_in_tasks,
    "tasks among items, own effects": lambda: with_task_effects(many_in_tasks(), (0.8, 0.3)),
    "grades": lambda: graded(Thresholds(np.array(CUTS))),
    "grades without ties": lambda: graded(Thresholds(np.array(STRICT_CUTS))),
    "grades, of items": lambda: graded(Thresholds(np.array(CUTS), ITEMS)),
    "grades without ties, of items": lambda: graded(Thresholds(np.array(STRICT_CUTS), ITEMS)),
}  # fmt: skip


# Loops of a basis are compiled for nothing else in the unit tests.
@pytest.fixture(scope="module", params=[0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3))])
def law(request):
    return laws()[request.param]


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.slow) if "items, own" in kind else kind for kind in KINDS],
)
def people(request, law) -> People:
    found = KINDS[request.param]()
    assert bool(found.among_items) == ("among items" in request.param)
    traits = np.linspace(-1.0, 1.0, found.n_users)[:, None] * np.ones(law.shift.shape[1])
    return replace(found, tie_factor=TIES[: found.n_users], consistency=CARE[: found.n_users], traits=traits)


def has_tasks(people: People) -> bool:
    return bool((people.task >= 0).any())


def at_rest(people, law):
    sites = Sites.flat(people.n_rows)
    delta = DELTA if people.thresholds is None else people.thresholds.scale
    return converge(people, sites, law, delta, tolerance=1e-12), sites


def test_dense_factorisations_say_what_updates_of_rank_one_say(people, law):
    heavy = replace(people, largest_state=0)
    assert heavy.is_heavy[np.diff(people.answer_ptr) > 0].all()
    assert not people.is_heavy.any()
    (one, sites), (other, dense) = at_rest(people, law), at_rest(heavy, law)
    assert one.evidence == pytest.approx(other.evidence, rel=CONVERGED, abs=CONVERGED)
    np.testing.assert_allclose(sites.precision, dense.precision, atol=CONVERGED)
    np.testing.assert_allclose(sites.linear, dense.linear, atol=CONVERGED)
    for name in ("H", "D", "r", "own_H", "own_D", "own_slopes"):
        a, b = getattr(one, name), getattr(other, name)
        if name == "own_slopes":  # all but the information about care, which is a step's, by rows
            a, b = (np.delete(slopes, 3, axis=1) for slopes in (a, b))
        np.testing.assert_allclose(a, b, atol=CONVERGED, err_msg=name)


@pytest.mark.parametrize("largest_state", [600, 0])
def test_a_person_alone_rests_where_the_person_does_among_all(people, law, largest_state):
    _, sites = at_rest(people, law)
    delta = DELTA if people.thresholds is None else people.thresholds.scale
    for user in range(people.n_users):
        person, expected = part_of(people, sites, np.array([user]))
        found = Sites.flat(person.n_rows)
        person = replace(person, largest_state=largest_state)
        assert converge(person, found, law, delta, sums=False).largest_change < 1e-9
        np.testing.assert_allclose(found.precision, expected.precision, atol=CONVERGED)
        np.testing.assert_allclose(found.linear, expected.linear, atol=CONVERGED)


def test_thresholds_of_their_own_are_the_same_by_dense_factorisations(people, law):
    delta = DELTA if people.thresholds is None else people.thresholds.scale
    light, dense = Sites.flat(people.n_rows), Sites.flat(people.n_rows)
    found = converge(people, light, law, delta, spread=SPREAD, tolerance=1e-10)
    heavy = converge(replace(people, largest_state=0), dense, law, delta, spread=SPREAD, tolerance=1e-10)
    np.testing.assert_allclose(dense.precision, light.precision, atol=1e-7)
    np.testing.assert_allclose(heavy.tie_factor, found.tie_factor, rtol=1e-7)


@pytest.mark.parametrize("largest_state", [600, 0])
@pytest.mark.parametrize(("own", "slopes"), [("consistency", "care"), ("tie_factor", "ties")])
def test_gradients_of_each_persons_evidence(people, law, largest_state, own, slopes):
    people, step = replace(people, largest_state=largest_state), 1e-5
    current, _ = at_rest(people, law)
    found = getattr(current, slopes)
    for user in range(people.n_users):
        factor = np.exp(step * (np.arange(people.n_users) == user))
        up, down = (
            at_rest(replace(people, **{own: getattr(people, own) * factor**sign}), law)[0].evidence for sign in (1, -1)
        )
        slope = (up - down) / (2.0 * step)
        assert found[user, 0] == pytest.approx(slope, rel=1e-5 if has_tasks(people) else ITERATIVE, abs=ITERATIVE)
    assert np.all(found[np.diff(people.answer_ptr) == 0] == 0.0)
    if own == "tie_factor":  # the common threshold moves everybody's
        delta = DELTA if people.thresholds is None else people.thresholds.scale
        assert abs(found[:, 0].sum() - delta * current.slope_delta) < CONVERGED
    else:
        assert np.all(found[:, 1] >= 0.0)
