"""Actors of Ray as workers: the same bits as threads, also when actors are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

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


_LEADS = """
import os, signal, sys
from pathlib import Path
import predilect, ray

ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)

def kill(stage, done):
    if stage != "fitting" or done != 3:
        return
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words, parent = one.read_bytes(), (one.parent / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if words.startswith(b"ray::") or (parent == str(os.getpid()) and b"/ray/" in words):
            os.kill(int(one.parent.name), signal.SIGKILL)

predilect.Population(n_jobs=1, **eval(sys.argv[1])).fit_parts(sys.argv[2], work=sys.argv[3], pool="ray", watch=kill)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_machine_whose_processes_of_ray_died_ends_in_words(crowd, tmp_path):
    command = [sys.executable, "-c", _LEADS, repr(GIVEN), str(crowd.path), str(tmp_path / "work")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode != 0
    assert (
        "Ray's own processes on this machine have died, and the fit with them. What was done so far is kept"
        in ran.stderr
    )
    again = fitted(crowd, tmp_path / "work", **GIVEN)
    assert again.population.report_["parts"]["passes_known"] > 0
