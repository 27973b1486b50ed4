"""Answers in very many copies: variances stay positive and right, whatever the counts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr

from predilect import Comparisons, Population
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import converge, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, lay_out_columns
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population import fit as population
from predilect.models.population.fit import PopulationPrior, fit_population
from referees.person_in_decimals import margins_in_decimals
from simulate import random_covariance
from tolerances import ITERATIVE

NEVER = 10**12  # as largest_state: rank-one updates for everybody


def person(left, right, outcome, copies, n_items: int) -> People:
    """One person's answers."""
    columns = [np.array(side, dtype=np.int32) for side in (left, right)]
    return lay_out_columns(
        np.zeros(len(left), dtype=np.int32), *columns, np.array(outcome, dtype=np.int8), np.array(copies, dtype=float),
        n_items=n_items, traits=np.zeros((1, 0)),
    )  # fmt: skip


def random_person(seed: int, largest: float) -> tuple[People, Law, float]:
    """Up to eight answers on up to six items, half of them in many copies, and a population of any size."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 9)), int(rng.integers(2, 7))
    a = rng.integers(0, k, n)
    b = (a + rng.integers(1, k, n)) % k
    ties = rng.random() < 0.3
    rows = np.unique(np.stack([np.minimum(a, b), np.maximum(a, b), rng.integers(-1, 2, n)], axis=1), axis=0)
    if not ties:
        rows = rows[rows[:, 2] != 0]
    copies = np.where(rng.random(len(rows)) < 0.5, largest, 1.0)
    scale = 10.0 ** rng.uniform(-2.0, 2.0)
    law = Law(random_covariance(rng, k, scale), math.sqrt(scale) * rng.standard_normal(k))
    return person(*rows.T, copies, k), law, 0.5 if ties else 0.0


def pairs_of(n_items: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(n_items) for b in range(a + 1, n_items)]


def posterior_of(people: People, sites: Sites, law: Law) -> PopulationPosterior:
    """The person, with a consensus that is known."""
    k = people.n_items
    return PopulationPosterior(law.mean, np.zeros((k, k)), law.Sigma, people, sites)


def _margins_of(people: People, sites: Sites, law: Law) -> tuple[np.ndarray, np.ndarray]:
    left, right = np.array(pairs_of(people.n_items)).T
    return posterior_of(people, sites, law).margins(np.zeros(len(left), dtype=int), left, right)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1.0, 10.0, 1e3, 1e4, 1e5, 1e6])
def test_margins_after_many_copies_are_those_of_sixty_digits(largest):
    for seed in range(25):
        people, law, delta = random_person(seed, largest)
        if not people.n_rows:
            continue
        sites = Sites.flat(people.n_rows)
        converge(people, sites, law, delta)
        mean, var = _margins_of(people, sites, law)
        rows = (people.item_idx[people.left], people.item_idx[people.right], people.weight)
        answers = list(zip(*(column.tolist() for column in (*rows, sites.precision, sites.linear)), strict=True))
        exact_mean, exact_var = margins_in_decimals(law.Sigma, law.mean, answers, pairs_of(people.n_items))
        assert (var > 0.0).all()
        np.testing.assert_allclose(var, exact_var, rtol=ITERATIVE)
        assert np.abs(mean - exact_mean).max() < 10 * ITERATIVE


@pytest.mark.parametrize("copies", [(1e3, 1e3), (1e6, 1e6), (1e6, 1.0), (3e5, 1e6)])
def test_one_margin_is_that_of_quadrature(copies):
    people = person([0, 0], [1, 1], [1, -1], copies, 2)
    law, sites = Law(np.diag([2.0, 3.0]), np.array([0.5, 0.0])), Sites.flat(2)
    assert converge(people, sites, law, 0.0).is_sound
    mean, var = _margins_of(people, sites, law)

    def log_density(z: float) -> float:
        return float(copies[0] * log_ndtr(z) + copies[1] * log_ndtr(-z) - 0.1 * (z - 0.5) ** 2)

    at, width = mean[0], math.sqrt(var[0])
    peak = log_density(at)
    moments = [
        quad(lambda t, k=k: t**k * math.exp(log_density(at + width * t) - peak), -12.0, 12.0, limit=200)[0]
        for k in range(3)
    ]
    shift = moments[1] / moments[0]
    # EP errs by what the posterior's skewness is worth, in standard deviations: much where all copies say the same.
    skewed = 0.02 if min(copies) > 1.0 else 0.2
    assert abs(shift) < skewed
    assert moments[2] / moments[0] - shift**2 == pytest.approx(1.0, abs=2 * skewed)


def test_people_with_many_copies_settle_where_rank_one_updates_do():
    for seed in range(40):
        people, law, delta = random_person(seed, 200.0)
        if not people.n_rows or law.Sigma.max() > 3.0:  # beyond, the updates lose digits
            continue
        light = replace(people, largest_state=NEVER)
        assert people.is_heavy.any() == (people.weight.max() > 100.0)
        assert not light.is_heavy.any()
        sites, light_sites = Sites.flat(people.n_rows), Sites.flat(people.n_rows)
        one = expectation(people, sites, law, delta, n_sweeps=500, tolerance=1e-11)
        other = expectation(light, light_sites, law, delta, n_sweeps=500, tolerance=1e-11)
        for name in ("evidence", "H", "D", "r", "slope_delta", "curvature_delta"):
            np.testing.assert_allclose(
                getattr(one, name), getattr(other, name), rtol=ITERATIVE, atol=ITERATIVE, err_msg=f"{seed} {name}"
            )


def small_crowd(seed: int) -> tuple[dict[str, list], list[int]]:
    """Up to eight answers of up to three people on up to six items, half of them in 10² to 10⁶ copies."""
    rng = np.random.default_rng(seed)
    n, n_items = int(rng.integers(2, 9)), int(rng.integers(2, 7))
    user, a = rng.integers(0, rng.integers(1, 4), n), rng.integers(0, n_items, n)
    b = (a + rng.integers(1, n_items, n)) % n_items
    outcome = [1, *rng.choice([-1, 0, 1] if rng.random() < 0.3 else [-1, 1], n - 1).tolist()]
    copies = np.where(rng.random(n) < 0.5, 10.0 ** rng.integers(2, 7), 1.0)
    names = {"user": "u", "left": "i", "right": "i"}
    columns = dict(zip(names, (user, a, b), strict=True))
    frame = {name: [f"{names[name]}{code}" for code in codes] for name, codes in columns.items()}
    return {**frame, "weight": copies.tolist()}, outcome


def assert_variances(model: Population) -> None:
    left, right = np.array(pairs_of(len(model.items_))).T
    for user in range(len(model.users_) if model.personal_ else 1):
        mean, var = model.posterior_.margins(np.full(len(left), user), left, right)
        assert np.isfinite(mean).all()
        assert (var >= 0.0).all()


def check_a_fit(seed: int, n_jobs: int | None = None) -> None:
    columns, outcome = small_crowd(seed)
    model = Population(n_jobs=n_jobs).fit(Comparisons.from_frame(columns, outcome=outcome, reading={"tie": "0"}))
    assert_variances(model)
    first = {name: values[:1] for name, values in columns.items() if name != "weight"}
    assert_variances(model.update(first, [-outcome[0]]))
    assert_variances(model.forget(first, [-outcome[0]]))


@pytest.mark.filterwarnings("ignore::predilect.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "seed", [19, 20, 70, 1370, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (62, 76, 98))]
)
def test_no_variance_is_negative_after_fit_update_and_forget(seed):
    check_a_fit(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::predilect.errors.ConvergenceWarning")
def test_no_variance_is_negative_in_many_small_crowds():
    for seed in range(1000, 1500):
        check_a_fit(seed, n_jobs=1)


# All pairs of three items in 10⁷ copies each way: more than rank-one updates can carry.
TORN = person([0, 0, 1] * 2, [1, 2, 2] * 2, [1, 1, 1, -1, -1, -1], [1e7] * 6, 3)


def test_variances_below_zero_are_noticed():
    law = Law(50.0 * np.eye(3), np.zeros(3))
    assert converge(TORN, Sites.flat(6), law, 0.0).is_sound
    assert not converge(replace(TORN, largest_state=NEVER), Sites.flat(6), law, 0.0).is_sound


def test_a_fit_that_ran_out_of_digits_has_not_converged(monkeypatch):
    prior = PopulationPrior(np.eye(3), 5.0, 50.0, 4.0)
    assert fit_population(TORN, prior).report.converged

    def out_of_digits(*arguments, **options):
        return replace(converge(*arguments, **options), largest_change=math.inf)

    monkeypatch.setattr(population, "converge", out_of_digits)
    assert not fit_population(TORN, prior).report.converged
