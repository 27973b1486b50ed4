"""Actors of Ray as workers: the same bits as threads, also when actors are killed."""

import os
import signal

import pytest
from test_fit_parts import GIVEN, bits, fitted

import predilect
from predilect.parts.pools import OfRay
from simulate_parts import in_parts, votes

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'predilect[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray warns of what it may change


@pytest.fixture(scope="module")
def cluster():
    """Two processors of this machine."""
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    return in_parts(tmp_path_factory.mktemp("crowd"), votes(), n_parts=4)


def test_actors_do_not_change_a_bit(cluster, crowd, tmp_path):
    one = fitted(crowd, tmp_path / "threads", **GIVEN)
    assert bits(fitted(crowd, tmp_path / "ray", "ray", **GIVEN)) == bits(one)


@pytest.mark.parametrize("at", [1, 4, 9])
def test_actors_that_are_killed_are_started_again(cluster, crowd, tmp_path, at, monkeypatch):
    pools = []

    class Seen(OfRay):
        def __init__(self, address):
            super().__init__(address)
            pools.append(self)

    monkeypatch.setattr("predilect.parts.pools.OfRay", Seen)

    def kill(stage, done):
        if stage == "fitting" and done == at:
            os.kill(ray.get(pools[0].actors[0].__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)

    found = predilect.Population(n_jobs=1, **GIVEN).fit_parts(crowd, work=tmp_path / "ray", pool="ray", watch=kill)
    assert bits(found) == bits(fitted(crowd, tmp_path / "threads", **GIVEN))
