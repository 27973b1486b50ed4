"""People beside the layout, rows that change, and layouts taken apart and put together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.data.keyed_rows import MOST_ITEMS, MOST_VARIANTS, Rows, keys_of, sides_of
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import SITE_TOLERANCE, converge
from predilect.inference.people.law import Basis, Effects
from predilect.inference.people.layout import lay_out
from predilect.inference.people.moved import Since, changed_since
from predilect.inference.people.person import Overlay, joined, part_of, person_of, side_by_side
from predilect.inference.people.posterior import PopulationPosterior
from simulate import comparisons, crowd, random_covariance
from tolerances import CONVERGED, EXACT

N_ITEMS, DELTA = 7, 0.3
ROWS = crowd(4, 9, N_ITEMS, [4, 30, 1, 9, 12, 80, 6, 2, 5], delta=DELTA)
PEOPLE_ARRAYS = ("answer_ptr", "item_ptr", "item_idx", "left", "right", "outcome", "weight", "traits", "tie_factor")
KINDS = ["items", "traits", "basis", "own parts"]


def posterior_of(kind: str, largest_state: int = 600) -> PopulationPosterior:
    rng = np.random.default_rng(0)
    M = N_ITEMS if kind in ("items", "traits") else 3
    traits = rng.standard_normal((9, 2)) if kind in ("traits", "own parts") else None
    people = lay_out(comparisons(ROWS), traits=traits, largest_state=largest_state)
    people = replace(people, tie_factor=rng.uniform(0.5, 2.0, 9))
    basis = effects = None
    if M == 3:
        own = rng.uniform(0.1, 0.5, N_ITEMS) if kind == "own parts" else np.zeros(0)
        basis = Basis(rng.standard_normal((N_ITEMS, M)), own, 0.3 * own, 0.1 * own, 0.2)
    if traits is not None:
        effects = Effects(0.3 * rng.standard_normal((M, 2)), random_covariance(rng, M, 0.05))
    empty = PopulationPosterior(
        rng.standard_normal(M), random_covariance(rng, M, 0.1), random_covariance(rng, M, 1.5), people,
        Sites.flat(people.n_rows), basis, effects,
    )  # fmt: skip
    converge(people, empty.sites, empty.law, DELTA, tolerance=1e-13)
    return empty


def all_beside(posterior: PopulationPosterior) -> PopulationPosterior:
    """The same with half of the people in the overlay."""
    persons = {user: person_of(posterior.people, posterior.sites, user) for user in range(1, 9, 2)}
    nobody = replace(posterior.sites, precision=posterior.sites.precision * 0.0)  # what must not be looked at
    where = np.isin(np.repeat(np.arange(9), np.diff(posterior.people.answer_ptr)), list(persons))
    sites = Sites(np.where(where, nobody.precision, posterior.sites.precision), posterior.sites.linear)
    beside = replace(posterior, sites=sites, overlay=Overlay().plus(persons, 0))
    # Only the crowd looks at them, to take off what they told: here nothing, so that it stays where it is.
    return replace(beside, since=Since.nothing(len(posterior.m)).plus(changed_since(beside), -1.0))


def queries(n_users: int = 9):
    a, b = np.nonzero(~np.eye(N_ITEMS, dtype=bool))
    users = np.repeat(np.arange(-1, n_users), len(a))
    return users, np.tile(a, n_users + 1), np.tile(b, n_users + 1)


def test_keys_say_what_they_stand_for_and_sort_like_answers():
    rng = np.random.default_rng(1)
    left, right = rng.integers(MOST_ITEMS, size=(2, 50))
    outcome, variant = rng.integers(-1, 2, size=50), rng.integers(MOST_VARIANTS, size=50)
    key = keys_of(left, right, outcome.astype(np.int8), variant)
    for found, expected in zip(sides_of(key), (left, right, outcome, variant), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.argsort(key), np.lexsort((outcome, variant, right, left)))


def rows_of(keys, weight, users=None) -> Rows:
    """Answers by themselves."""
    keys = np.asarray(keys, dtype=np.int64)
    users = np.zeros_like(keys) if users is None else np.asarray(users, dtype=np.int64)
    return Rows.new(users, keys, np.asarray(weight, dtype=float))


def told(rows: Rows) -> dict[tuple[int, int], float]:
    """Weights of answers by themselves."""
    return dict(zip(zip(rows.user.tolist(), rows.key.tolist(), strict=True), rows.weight.tolist(), strict=True))


def test_rows_come_and_go_like_counts():
    rng = np.random.default_rng(2)
    rows, held = rows_of([], []), {}
    for _ in range(200):
        pairs = rng.choice(24, size=int(rng.integers(1, 4)), replace=False)
        more = rows_of(pairs % 12, rng.integers(1, 4, size=len(pairs)), pairs // 12).merged()
        if rng.random() < 0.55:
            rows = rows.plus(more)
            held = held | {what: held.get(what, 0.0) + weight for what, weight in told(more).items()}
        else:
            place = rows.places(more)
            assert [what in held for what in told(more)] == (place >= 0).tolist()
            place = place[place >= 0]
            gone = told(rows.at(place))
            rows = rows.less(place, np.ones(len(place)))
            held = {what: weight - (what in gone) for what, weight in held.items() if weight - (what in gone) > 0}
        assert told(rows) == held
        assert list(held) == [] or sorted(held) == list(told(rows))


def test_sites_of_rows_stay_with_them_and_new_rows_have_none():
    given = rows_of([7, 3, 3], [1.0, 1.0, 3.0])._replace(precision=np.array([0.7, 0.2, 0.4]))
    rows = given.merged()
    np.testing.assert_array_equal(rows.key, [3, 7])
    np.testing.assert_array_equal(rows.weight, [4.0, 1.0])
    np.testing.assert_allclose(rows.precision, [0.35, 0.7])
    more = rows.plus(rows_of([9, 5, 7], [1.0, 1.0, 1.0]))
    np.testing.assert_array_equal(more.key, [3, 5, 7, 9])
    np.testing.assert_array_equal(more.weight, [4.0, 1.0, 2.0, 1.0])
    np.testing.assert_allclose(more.precision, [0.35, 0.0, 0.7, 0.0])
    np.testing.assert_allclose(more.less(np.array([0]), np.array([4.0])).precision, [0.0, 0.7, 0.0])


def test_weights_that_are_not_whole_leave_no_dust():
    rows = rows_of([1], [0.1]).plus(rows_of([1], [0.2]))
    assert not len(rows.less(np.array([0]), np.array([0.3])).key)


def test_tasks_come_and_go_as_a_whole_whatever_their_numbers_are():
    def task(number, keys, copies=(0, 0)):
        n = np.zeros(len(keys), dtype=np.int64)
        return Rows.new(n, np.array(keys), np.ones(len(keys)), np.array(copies), n + number)

    rows = rows_of([3, 5], [1.0, 2.0]).plus(Rows.stacked([task(0, (3, 5)), task(1, (3, 9))])).plus(task(0, (3, 5)))
    assert len(rows.key) == 8
    assert [len(parts) for parts in rows.tasks().values()] == [2, 1]
    assert (rows.places(task(7, (5, 9))) == -1).all()
    assert (rows.places(task(7, (3, 5), (0, 1))) == -1).all()  # of another copy of the item
    gone = Rows.stacked([task(4, (5, 3)), task(6, (3, 5))])
    place = rows.places(gone)
    assert len(set(place.tolist())) == 4
    rest = rows.less(place, np.ones(4))
    assert sorted(rest.key[rest.task >= 0].tolist()) == [3, 9]
    assert told(rest.at(rest.task < 0)) == {(0, 3): 1.0, (0, 5): 2.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest_state", [600, 0, 40])
def test_a_person_beside_the_layout_is_the_person_in_it(kind, largest_state):
    posterior = posterior_of(kind, largest_state)
    beside = all_beside(posterior)
    for found, expected in zip(beside.margins(*queries()), posterior.margins(*queries()), strict=True):
        np.testing.assert_allclose(found, expected, atol=EXACT)
    users = np.array([3, 0, 8, 1, 3])
    for found, expected in zip(beside.centred_utilities(users), posterior.centred_utilities(users), strict=True):
        np.testing.assert_allclose(found, expected, atol=EXACT)
    for user in range(-1, 9):
        for found, expected in zip(beside.utilities(user), posterior.utilities(user), strict=True):
            np.testing.assert_allclose(found, expected, atol=EXACT)
    again = beside.consolidated()
    for name in PEOPLE_ARRAYS:
        np.testing.assert_array_equal(getattr(again.people, name), getattr(posterior.people, name))
        assert getattr(again.people, name).dtype == getattr(posterior.people, name).dtype
    np.testing.assert_array_equal(again.sites.precision, posterior.sites.precision)
    assert again.people.shards == posterior.people.shards


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest_state", [600, 0])
def test_one_person_settles_where_everybody_does(kind, largest_state):
    posterior = posterior_of(kind, largest_state)
    for user in range(9):
        person = person_of(posterior.people, Sites.flat(posterior.people.n_rows), user)
        people, sites = posterior.side_by_side([person])
        found = converge(people, sites, posterior.law, DELTA, tolerance=SITE_TOLERANCE, sums=False)
        assert found.largest_change <= SITE_TOLERANCE
        assert not found.H.size
        assert not person.rows.precision.any()  # who is given is not altered
        expected = person_of(posterior.people, posterior.sites, user).rows
        np.testing.assert_allclose(sites.precision, expected.precision, atol=CONVERGED)
        np.testing.assert_allclose(sites.linear, expected.linear, atol=CONVERGED)


def test_layouts_taken_apart_and_put_together():
    posterior = posterior_of("traits")
    people, sites = posterior.people, posterior.sites
    persons = [person_of(people, sites, user) for user in range(9)]
    order = [5, 2, 8, 0]
    some, of_some = side_by_side([persons[user] for user in order], people)
    taken, of_taken = part_of(people, sites, np.array(order))
    for name in PEOPLE_ARRAYS:
        np.testing.assert_array_equal(getattr(some, name), getattr(taken, name))
    np.testing.assert_array_equal(of_some.linear, of_taken.linear)
    rest = side_by_side([persons[user] for user in (1, 3, 4, 6, 7)], people)
    back = np.array([3, 4, 1, 5, 6, 0, 7, 8, 2])
    whole, of_whole = joined(some, of_some, rest, back)
    for name in PEOPLE_ARRAYS:
        np.testing.assert_array_equal(getattr(whole, name), getattr(people, name))
    np.testing.assert_array_equal(of_whole.linear, sites.linear)
    without, its = joined(some, of_some, rest, np.array([8, 0]))  # whoever is not named is left out
    for place, user in enumerate((7, 5)):
        for one, other in zip(person_of(without, its, place).rows, persons[user].rows, strict=True):
            np.testing.assert_array_equal(one, other)


def test_new_items_see_the_people_beside_the_layout():
    posterior = posterior_of("own parts")
    beside = all_beside(posterior)
    Phi, share = np.full((1, 3), 0.4), np.array([0.2])
    asked = np.arange(9), np.full(9, N_ITEMS), np.zeros(9, dtype=int)
    for found, expected in zip(
        beside.with_items(Phi, share, 4.0).margins(*asked), posterior.with_items(Phi, share, 4.0).margins(*asked),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, atol=EXACT)
