"""Answers predicted from all others of their person, against people refitted one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.data.features import FeatureSpace
from predilect.inference.gaussian.design import Sites
from predilect.inference.people import layout
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import lay_out
from predilect.models.population.fit import PopulationPrior, fit_population
from predilect.models.population.prior import Hyperparameters
from predilect.models.population.search import held_out as alone
from predilect.models.population.search.held_out import HeldOut, predict_alone
from simulate import comparisons, crowd
from tolerances import ITERATIVE

CROWD = comparisons(crowd(3, 25, 6, 9, delta=0.4))
SETTING = Hyperparameters(20.0, 2.0, 2.0, 0.0, 1.0, tie_spread=0.5)
DELTA = 0.4


@pytest.fixture(scope="module")
def held_out():
    """A fit to four fifths of the answers, and which rows it has not seen."""
    test = np.arange(CROWD.n_rows) % 5 == 2
    prior = PopulationPrior.of(SETTING, FeatureSpace.empty(CROWD.n_items))
    people = lay_out(CROWD.take(~test))
    state = fit_population(people, prior, delta=DELTA)
    return test, state.posterior(people, prior)


def predicted(held_out, rows=CROWD, most_work=1e9) -> HeldOut:
    test, posterior = held_out
    return predict_alone(rows, test, posterior, DELTA, most_work=most_work, rng=np.random.default_rng(0))


def refitted(posterior, rows, row, left_out):
    """Margin of one row by a person with all answers but some."""
    keep = (rows.user == rows.user[row]) & ~left_out
    people = replace(lay_out(rows.take(keep)), tie_factor=posterior.people.tie_factor)
    sites = Sites.flat(people.n_rows)
    converge(people, sites, posterior.law, DELTA, tolerance=1e-12)
    who, a, b = rows.user[row : row + 1], rows.left[row : row + 1], rows.right[row : row + 1]
    one = replace(posterior, people=people, sites=sites)
    return *(float(x[0]) for x in one.margins(who, a, b)), int(one.pair_kinds(who, a, b)[0])


@pytest.mark.parametrize("tasks", [False, True])
def test_each_is_predicted_from_all_others(held_out, tasks, monkeypatch):
    monkeypatch.setattr(alone, "_SITE_TOLERANCE", 1e-12)
    # Tasks of two neighbouring rows of a person.
    rows = replace(CROWD, task=(np.arange(CROWD.n_rows) // 2).astype(np.int32)) if tasks else CROWD
    test, posterior = held_out
    found = predicted(held_out, rows)
    at = np.flatnonzero(test)
    assert len(found.mean) == len(at)
    np.testing.assert_array_equal(found.outcome, rows.outcome[at])
    assert {0, 1, 3} <= set(found.kind.tolist())
    assert len(set(found.delta.tolist())) > 10
    for place, row in enumerate(at.tolist()):
        same = (rows.left == rows.left[row]) & (rows.right == rows.right[row])
        if tasks:
            same = rows.task == rows.task[row]
        mean, var, kind = refitted(posterior, rows, row, same)
        assert abs(found.mean[place] - mean) < ITERATIVE
        assert abs(found.var[place] - var) < ITERATIVE
        assert found.kind[place] == kind
        assert found.delta[place] == DELTA * posterior.people.tie_factor[rows.user[row]]


def test_work_is_bounded_and_the_rest_is_predicted_as_the_fold_does(held_out, monkeypatch):
    # Bits tell whose numbers are whose; in lanes the last ones depend on who else is there.
    monkeypatch.setattr(layout, "_WORTH_IT", 2.0)
    test, posterior = held_out
    whole, some, none = predicted(held_out), predicted(held_out, most_work=5000.0), predicted(held_out, most_work=1.0)
    at = np.flatnonzero(test)
    mean, var = posterior.margins(CROWD.user[at], CROWD.left[at], CROWD.right[at])
    np.testing.assert_allclose(none.mean, mean, atol=ITERATIVE)
    np.testing.assert_allclose(none.var, var, atol=ITERATIVE)
    np.testing.assert_array_equal(none.delta, DELTA * posterior.people.tie_factor[CROWD.user[at]])
    n_alone = len(set(some.mean.tolist()) & set(whole.mean.tolist()))
    assert 0 < n_alone < len(at)
    assert len(some.mean) == len(at)
    # Of whom one answer is held out, the fold may have found the same bits.
    rest = set(some.mean.tolist()) - set(whole.mean.tolist())
    assert len(rest) == len(at) - n_alone
    assert rest <= set(none.mean.tolist())
    assert some.weight.sum() == none.weight.sum() == whole.weight.sum()
