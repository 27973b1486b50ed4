"""The table of moves: which proposals are tried, which moves follow, and none twice at the same setting."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from predilect import Calibration
from predilect.models.population.prior import Candidate, Hyperparameters
from predilect.models.population.search.climb import climb, one_way
from predilect.models.population.search.folds import Trial
from predilect.models.population.search.moves import MOVES, Chosen, HeldOutSearch, Move, Proposal, walk

START = Hyperparameters(30.0, 1.0, 1.0, 0.5, 1.0)


@pytest.mark.parametrize(("top", "seen"), [(-2, [-1, -2, -3]), (2, [-1, 1, 2, 3]), (0, [-1, 1]), (5, [-1, 1, 2, 3])])
def test_one_way_goes_on_as_long_as_it_gains_and_turns_only_at_the_start(top, seen):
    tried, best = [], 0

    def gains(k):
        nonlocal best
        tried.append(k)
        gained = abs(k - top) < abs(best - top)
        best = k if gained else best
        return gained

    climb(one_way((-1, 1), lambda side: best + side if abs(best) < 3 else None), gains)
    assert tried == seen
    assert best == max(min(top, 3), -3)


class Simulated(HeldOutSearch):
    """A search on one fold of many people whose held-out log loss is a function of the setting."""

    def __init__(self, loss, free=("strength", "variance")):
        people = SimpleNamespace(n_active=10_000, n_answers=1e5)
        self.folds = [SimpleNamespace(people=people, comparisons=SimpleNamespace(task=None))]
        self.space, self.free, self.trials, self._made, self.loss = None, free, [], {}, loss
        self.best = Chosen(CandidateOfOne(), START, self.run(CandidateOfOne(), START, None))

    def run(self, candidate, setting, warm, population=None, **how):
        self.trials.append(setting)
        return Trial(np.full(100, self.loss(setting)), np.ones(100), [], Calibration())


class CandidateOfOne(Candidate):
    """The items, of which there is one."""

    def __init__(self):
        super().__init__(None, None)

    def prior(self, setting, space):
        return SimpleNamespace(K=np.eye(1), variance=setting.variance, strength=setting.strength)


def test_the_walk_ends_at_the_best_setting_and_tries_none_twice():
    search = Simulated(lambda h: 0.1 * np.log(h.strength / 300.0) ** 2 + 0.1 * np.log(h.variance / 2.0) ** 2)
    search.make([Move("walk", walk())])
    assert search.best.setting == replace(START, strength=pytest.approx(300.0), variance=2.0)
    assert len({(h.strength, h.variance) for h in search.trials}) == len(search.trials) <= 10


def test_a_smaller_variance_must_clearly_gain_unless_it_is_walked_for_itself():
    # A gain of one standard error of the paired difference.
    noise = np.where(np.arange(100) % 2, 1.0, -1.0)

    def searched(*names):
        search = Simulated(lambda h: 1.0)
        search.run = lambda candidate, setting, warm, **how: Trial(
            1.0 - (0.1 + noise) * (setting.variance < 1.0), np.ones(100), [], Calibration()
        )
        search.make([Move("walk", walk(*names))])
        return search.best.setting.variance

    assert searched() == 1.0
    assert searched("variance") == 0.5


def test_a_move_is_made_once_at_a_setting_and_others_follow_where_it_gains():
    made = []

    def proposing(name, setting):
        def proposals(search):
            made.append(name)
            yield Proposal(replace(search.best.setting, **setting))

        return proposals

    search = Simulated(lambda h: h.tie_spread + h.click_rate - h.consistency_spread)
    worse = Move("worse", proposing("worse", {"tie_spread": 1.0}), then=(Move("never", proposing("never", {})),))
    better = Move("better", proposing("better", {"consistency_spread": 0.5}), then=(worse,))
    search.make([worse, worse, better, worse, Move("skipped", proposing("skipped", {}), when=lambda search: False)])
    assert made == ["worse", "better", "worse"]
    assert search.best.setting == replace(START, consistency_spread=0.5)


def test_moves_of_one_name_are_the_same_move():
    kinds = {}
    for move in MOVES:
        kinds.setdefault(move.name, set()).add(move.proposals)
    assert all(len(proposals) == 1 for proposals in kinds.values())
