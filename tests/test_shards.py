"""Shards: what they cover, how even they are, and that threads change nothing but the time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from predilect._base.shards import cut, map_shards, resolve_n_jobs, workers

COSTS = st.lists(st.floats(0.0, 1e6), max_size=60).map(lambda values: np.array(values, dtype=float))


@given(COSTS, st.floats(1.0, 1e6), st.integers(1, 20))
def test_shards_cover_everybody_once_and_in_order(costs, cost_per_shard, most):
    shards = cut(costs, cost_per_shard, most)
    assert [user for start, stop in shards for user in range(start, stop)] == list(range(len(costs)))
    assert len(shards) <= most
    assert all(start < stop for start, stop in shards)


@given(COSTS, st.floats(1.0, 1e6), st.integers(1, 20))
def test_no_shard_does_more_than_its_share_and_one_person(costs, cost_per_shard, most):
    shards = cut(costs, cost_per_shard, most)
    if not shards:
        return
    wanted = int(np.clip(costs.sum() // cost_per_shard, 1, max(1, min(most, len(costs)))))
    for start, stop in shards:
        assert costs[start:stop].sum() <= (costs.sum() / wanted + costs.max()) * (1 + 1e-9)


def test_equal_people_are_cut_evenly():
    assert cut(np.ones(12), 3.0, 16) == [(0, 3), (3, 6), (6, 9), (9, 12)]
    assert cut(np.ones(12), 3.0, 2) == [(0, 6), (6, 12)]
    assert cut(np.ones(12), 100.0, 16) == [(0, 12)]


def test_one_busy_person_has_a_shard_alone():
    shards = cut(np.array([1.0, 1.0, 100.0, 1.0, 1.0]), 10.0, 4)
    assert (2, 3) in shards or (0, 3) in shards
    assert shards[-1] == (3, 5)


def test_results_come_in_the_order_of_the_shards_whoever_finishes_first():
    shards = [(i, i + 1) for i in range(8)]

    def slow_first(shard):
        time.sleep(0.02 if shard[0] % 3 == 0 else 0.0)
        return shard[0]

    with ThreadPoolExecutor(4) as executor:
        for n_ahead in (1, 2, 20):
            assert list(map_shards(slow_first, shards, executor, n_ahead)) == list(range(8))
    assert list(map_shards(slow_first, shards, None)) == list(range(8))


def test_no_more_results_are_held_than_asked():
    # Memory: at most n_ahead shards have been started and not yet been taken.
    started, lock = [0], threading.Lock()

    def count(shard):
        with lock:
            started[0] += 1
        return shard

    with ThreadPoolExecutor(4) as executor:
        for taken, _ in enumerate(map_shards(count, [(i, i + 1) for i in range(20)], executor, n_ahead=3)):
            time.sleep(0.002)
            assert started[0] - taken <= 3 + 1


def test_an_error_in_a_shard_reaches_the_caller():
    def fail(shard):
        if shard[0] == 2:
            raise ZeroDivisionError
        return shard

    shards = [(i, i + 1) for i in range(5)]
    with ThreadPoolExecutor(2) as executor:
        for pool in (None, executor):
            with pytest.raises(ZeroDivisionError):
                list(map_shards(fail, shards, pool))


def test_number_of_threads():
    assert resolve_n_jobs(3) == 3
    assert resolve_n_jobs(None) == resolve_n_jobs(-1) >= 1
    for wrong in (0, -2):
        with pytest.raises(ValueError, match="n_jobs"):
            resolve_n_jobs(wrong)


@pytest.mark.parametrize("mine_ends_first", [True, False])
def test_blas_keeps_to_one_thread_until_the_last_one_has_done(mine_ends_first):
    def numbers():
        return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}

    inside, leave = threading.Event(), threading.Event()

    def work():
        with workers(1):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=work, daemon=True)
    scipy.linalg.det(np.eye(3))  # which brings a BLAS of its own
    limits = threadpool_limits(limits=2, user_api="blas")
    with threadpool_limits(limits=None, user_api="blas"):  # at its end threadpoolctl lets any thread set the number
        pass
    with workers(1):
        thread.start()
        inside.wait()
        assert numbers() == {1}
        if not mine_ends_first:
            leave.set()
            thread.join()
            assert numbers() == {1}
    if mine_ends_first:
        assert numbers() == {1}
        leave.set()
        thread.join()
    assert numbers() == {2}
    limits.restore_original_limits()
