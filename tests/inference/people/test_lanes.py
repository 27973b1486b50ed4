"""People in lanes against one after the other: the same sweeps, so that after each of them only rounding differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.likelihoods.logit import Logit
from predilect.inference.likelihoods.probit import tilted_in_lanes
from predilect.inference.likelihoods.special import FROM, TO, log_ndtr, mills_ratio
from predilect.inference.people.engaged import with_clicks
from predilect.inference.people.expectation import expectation
from predilect.inference.people.lanes import LANES
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, lay_out_columns, with_own
from simulate import laid_out, random_covariance
from simulate_people import differing
from tolerances import EXACT

N_ITEMS, N_USERS, DELTA = 14, 6 * LANES + 11, 0.4
SUMS = ("evidence", "H", "D", "r", "r_items", "r_traits", "own_H", "own_D", "slope_delta", "curvature_delta")
OF_PEOPLE = ("own_slopes", "r_covariates", "engaged", "evidences")


def crowd(seed: int = 0, ties: bool = True, **more) -> People:
    """People of 0 to 60 rows, with copies, traits and care of their own."""
    rng = np.random.default_rng(seed)
    rows = rng.choice([2, 5, 6, 17, 18, 32, 33], size=N_USERS)
    rows[:3] = 0, 1, 60
    user = np.repeat(np.arange(N_USERS), rows)
    left = rng.integers(N_ITEMS - 1, size=len(user))
    right = left + 1 + rng.integers(N_ITEMS, size=len(user)) % (N_ITEMS - 1 - left)
    outcome = rng.choice([1, -1, 0], size=len(user), p=[0.5, 0.3, 0.2] if ties else [0.6, 0.4, 0.0]).astype(np.int8)
    return lay_out_columns(
        user, left, right, outcome, rng.choice([1.0, 1.0, 1.0, 2.0, 9.0], size=len(user)), n_items=N_ITEMS,
        traits=rng.standard_normal((N_USERS, 1)), tie_factor=np.exp(0.3 * rng.standard_normal(N_USERS)),
        consistency=np.exp(0.3 * rng.standard_normal(N_USERS)), **more,
    )  # fmt: skip


def covariates() -> People:
    people = crowd()
    rng, none = np.random.default_rng(7), np.zeros(0)
    people = replace(
        people, patterns=rng.standard_normal((5, 2)), variant=rng.integers(5, size=people.n_rows).astype(np.int64)
    )
    return with_own(people, none, none, np.array([0.5, -0.8]))


KINDS = {
    "ties": crowd, "strict": lambda: crowd(ties=False), "covariates": covariates,
    "clickers": lambda: with_clicks(crowd(), 0.1), "logistic": lambda: crowd(likelihood=Logit),
    "thresholds of items": lambda: crowd().with_thresholds(
        Thresholds(np.array([DELTA]), np.linspace(-0.5, 0.5, N_ITEMS))
    ),
}  # fmt: skip


def laws() -> dict[str, Law]:
    rng = np.random.default_rng(1)
    mean, shift = np.linspace(-1.0, 1.0, N_ITEMS), 0.3 * rng.standard_normal((N_ITEMS, 1))
    Phi = rng.standard_normal((N_ITEMS, 3))
    few = Law(random_covariance(rng, 3), mean, Phi, rng.uniform(0.1, 0.8, N_ITEMS), shift)
    return {"items": Law(random_covariance(rng, N_ITEMS, 1.5), mean, shift=shift), "basis": few}


def one_after_the_other(people: People) -> People:
    alone = with_own(people, np.zeros(0), np.zeros(0), np.zeros(0), engaged=people.engaged)  # a copy
    object.__setattr__(alone, "kind", np.zeros_like(people.kind))
    return alone


@pytest.fixture(autouse=True)
def _on_the_basis(monkeypatch):
    """So few items are otherwise worked on with their covariance."""
    monkeypatch.setattr("predilect.inference.people.expectation.is_quicker_by_items", lambda *_: False)


@pytest.mark.parametrize("where", ["items", pytest.param("basis", marks=pytest.mark.slow)])
@pytest.mark.parametrize(  # others compile the loops anew
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if kind in ("logistic", "thresholds of items") else kind
        for kind in KINDS
    ],
)
def test_each_pass_is_that_of_one_after_the_other(kind, where):
    people, law = KINDS[kind](), laws()[where]
    assert people.kind.min() == 0 < people.kind.max()
    assert set(people.by_item[people.kind > 0]) == {False, True}
    in_lanes, alone = Sites.flat(people.n_rows), Sites.flat(people.n_rows)
    # With all of a group, with some who are swept again together, and with none
    for n_sweeps, tolerance in ((1, 0.0), (3, 0.0), (4, 0.02), (2, 1e-3), (2, 1e-3), (2, 10.0), (30, 1e-13)):
        how = {"n_sweeps": n_sweeps, "tolerance": tolerance}
        one = expectation(people, in_lanes, law, DELTA, **how)
        other = expectation(one_after_the_other(people), alone, law, DELTA, **how)
        assert one.largest_change == pytest.approx(other.largest_change, rel=1e-6, abs=1e-11)
        for name in SUMS + OF_PEOPLE:
            a, b = (np.asarray(getattr(found, name)) for found in (one, other))
            np.testing.assert_allclose(a, b, rtol=EXACT, atol=EXACT * (1.0 + np.abs(b).max(initial=0.0)), err_msg=name)
        np.testing.assert_allclose(in_lanes.precision, alone.precision, rtol=EXACT, atol=EXACT)
        np.testing.assert_allclose(in_lanes.linear, alone.linear, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("n_sweeps", [2, 3, 5])
def test_who_is_put_aside_has_as_many_sweeps_as_everybody(n_sweeps, monkeypatch):
    monkeypatch.setattr("predilect.inference.people.layout._LEAST_SAVED", 0.0)
    rng, n = np.random.default_rng(5), 12
    outcome = rng.choice(np.array([-1, 1], dtype=np.int8), (LANES, n))
    left, right = (np.tile([0, 1, 0], (LANES, n // 3)), np.tile([1, 2, 2], (LANES, n // 3)))
    left[1:], right[1:] = left[1:] + 3, right[1:] + 3  # all but the first are of items on which hardly anybody differs
    people = lay_out_columns(
        np.repeat(np.arange(LANES), n), left.ravel(), right.ravel(), outcome.ravel(), np.ones(LANES * n), n_items=6,
        traits=np.zeros((LANES, 0)),
    )  # fmt: skip
    assert (people.kind > 0).all()
    law = Law(np.diag([400.0] * 3 + [0.01] * 3), np.zeros(6))
    in_lanes, alone = Sites.flat(people.n_rows), Sites.flat(people.n_rows)
    how = {"n_sweeps": n_sweeps, "tolerance": 1e-3}
    one = expectation(people, in_lanes, law, 0.0, **how)
    other = expectation(one_after_the_other(people), alone, law, 0.0, **how)
    assert one.largest_change == pytest.approx(other.largest_change, rel=1e-6) != 0.0
    np.testing.assert_allclose(in_lanes.linear, alone.linear, rtol=EXACT, atol=EXACT)


def test_sums_of_evidence_alone_are_the_same():
    people, law = crowd(), laws()["items"]
    sites = Sites.flat(people.n_rows)
    assert expectation(people, sites, law, DELTA, n_sweeps=0).evidence == pytest.approx(
        expectation(one_after_the_other(people), sites, law, DELTA, n_sweeps=0).evidence, rel=EXACT
    )


def test_what_is_not_a_number_has_not_converged():
    people, law = crowd(), laws()["items"]
    mean = law.mean.copy()
    mean[3] = np.nan
    found = expectation(people, Sites.flat(people.n_rows), replace(law, mean=mean), DELTA, n_sweeps=2)
    assert found.largest_change == np.inf
    assert not found.is_sound


def test_lanes_take_all_people_of_a_shard_once_and_like_ones_together():
    people = crowd()
    n, k = np.diff(people.answer_ptr), np.diff(people.item_ptr)
    for start, stop in people.shards:
        queue = people.queue[start:stop]
        assert sorted(queue) == list(range(start, stop))
        kinds = people.kind[queue]
        assert (np.diff(np.where(kinds, kinds, 10**9)) >= 0).all()
        for kind in set(kinds) - {0}:
            mine = queue[kinds == kind]
            assert n[mine].max() <= 1.2 * n[mine].min() + 1
            assert k[mine].max() <= 1.2 * k[mine].min() + 1 or not people.by_item[mine].any()


def test_a_few_unlike_people_are_worked_on_one_after_the_other():
    assert not laid_out(differing("ties", 0, 8, [1, 4, 9, 25, 90, 3, 0, 12], 0.0)).kind.any()


def test_the_table_of_log_phi_is_right_to_ten_to_the_minus_thirteen():
    z = np.linspace(FROM, TO, 4001)
    n, none = len(z), np.zeros(len(z))
    out = np.empty((5, n))
    tilted_in_lanes.py_func(none, np.arange(n), none + 1.0, z, none, none, n, out)
    np.testing.assert_allclose(out[0], log_ndtr(z), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(out[1], mills_ratio(z), rtol=1e-13, atol=1e-13)
    rho = mills_ratio(z)
    np.testing.assert_allclose(out[2], rho * (rho + z), rtol=1e-13, atol=1e-12)
