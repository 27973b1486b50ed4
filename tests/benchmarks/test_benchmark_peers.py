"""Peers on simulated crowds, and the link and the search they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.models import NEEDS, PEERS, build
from benchmarks.peers.link import Link, fit_link
from benchmarks.peers.tuning import tune
from benchmarks.task import Task, split_rows

from benchmarks import __main__ as command
from benchmarks import models
from predilect.data import Comparisons
from predilect.errors import DataError
from predilect.evaluation import accuracy, log_loss
from tolerances import EXACT

# Population says so when somebody is unknown.
# Every peer on toy crowds takes half a minute: for continuous integration.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*name someone without answers:predilect.errors.DataWarning"),
]

# Who follows each person's own answers, rather than the crowd's.
PERSONAL = {"choix-ep-person", "openskill", "ridge", "ridge-attributes", "matrix-factorisation", "per-person"}


def crowd(seed: int = 0, ties: bool = False) -> Task:
    """Sixteen people with a taste for one attribute or against it, and a consensus about another one."""
    rng = np.random.default_rng(seed)
    n_people, n_items, n = 16, 5, 480
    user, left = rng.integers(n_people, size=n), rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    taste = np.where(np.arange(n_people) % 2, 1.5, -1.5)
    shared, own = np.array([2.0, 1.0, 0.0, -1.0, -2.0]), np.array([-1.0, 1.0, 0.0, 1.0, -1.0])
    z = shared[left] - shared[right] + taste[user] * (own[left] - own[right])
    noisy = z + rng.logistic(size=n)
    outcome = np.where(np.abs(noisy) < (1.0 if ties else 0.0), 0, np.where(noisy > 0, 1, -1))
    frame = pl.DataFrame({"user": user, "left": left, "right": right})
    items = pl.DataFrame({"item": np.arange(n_items), "shared": shared, "own": own})
    test = (rng.random(n) < 0.3) | (user == n_people - 1)  # the last person is only in the test
    return split_rows("crowd", seed, frame, outcome, test, items=items)


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed; it is in the extra [bench]")
    return name


@pytest.mark.parametrize("peer", list(PEERS), indirect=True)
@pytest.mark.parametrize("ties", [False, True])
def test_every_peer_learns(peer: str, ties: bool) -> None:
    task = crowd(ties=ties)
    log_proba = build(peer)(task).log_proba(task.test)
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1.0, atol=1e-9)
    y, w = task.test.outcome, task.test.weight
    chance = log_loss(y, build("tie-share")(task).log_proba(task.test), w)
    assert log_loss(y, log_proba, w) < chance - (0.1 if peer in PERSONAL else 0.01)
    assert accuracy(y, log_proba, w) > (0.5 if ties else 0.55)
    assert np.isneginf(log_proba[:, 1]).all() == (not ties)


@pytest.mark.parametrize("peer", list(PEERS), indirect=True)
def test_the_seed_decides(peer: str) -> None:
    task = crowd(ties=True)
    peer += {"openskill": "@beta=0.5@shared=1", "choix-ep-person": "@alpha=0.5"}.get(peer, "")  # the slowest
    first, second = (build(peer)(task) for _ in range(2))
    np.testing.assert_array_equal(first.log_proba(task.test), second.log_proba(task.test))
    assert first.report() == second.report()


@pytest.mark.parametrize("peer", list(PEERS), indirect=True)
def test_somebody_unknown_is_given_the_shared_part(peer: str) -> None:
    task = crowd()
    fitted = build(peer)(task)
    unknown = task.test.take(task.test.users.labels(task.test.user) == 15)
    coin = np.allclose(fitted.log_proba(unknown)[:, 0], np.log(0.5), atol=1e-4)
    assert coin == (peer in {"choix-ep-person", "per-person"})
    entries = pl.DataFrame({"user": [15] * 5, "item": range(5)})
    if peer != "per-person":
        scores = fitted.scores(entries)
        assert scores is not None
        assert len(np.unique(scores)) == (1 if peer == "choix-ep-person" else 5)


@pytest.mark.parametrize("normal", [False, True])
def test_the_link_recovers_its_scale_and_threshold(normal: bool) -> None:
    rng = np.random.default_rng(0)
    z = 5.0 * rng.standard_normal(60_000)
    true = Link(0.3, 0.5, normal)
    log_proba = true.log_proba(z)
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1.0, atol=EXACT)
    share = np.exp(log_proba)
    draw = rng.random(len(z))
    outcome = np.where(draw < share[:, 0], 1, np.where(draw < share[:, 0] + share[:, 1], 0, -1))
    found, loss = fit_link(z, outcome, np.ones(len(z)), normal=normal, ties=True)
    # Four standard errors: 1 / sqrt(information a row x rows), from finite differences of the mean loss.
    for name, at, got in (("scale", 0.3, found.scale), ("threshold", 0.5, found.threshold)):
        step = 1e-3
        losses = [
            log_loss(outcome, Link(**{"scale": 0.3, "threshold": 0.5, "normal": normal} | {name: at + s}).log_proba(z))
            for s in (-step, 0.0, step)
        ]
        information = (losses[0] - 2.0 * losses[1] + losses[2]) / step**2
        assert abs(got - at) < 4.0 * 1.5 / np.sqrt(information * len(z))
    assert loss <= log_loss(outcome, log_proba)


def test_a_margin_that_is_worth_nothing_becomes_a_coin() -> None:
    z = np.tile([1.0, -1.0], 50)
    link, loss = fit_link(z, -z, np.ones(100))
    np.testing.assert_allclose(np.exp(link.log_proba(z))[:, 0], 0.5, atol=1e-6)
    assert abs(loss - np.log(2)) < 1e-6


@pytest.mark.parametrize("normal", [False, True])
def test_far_margins_keep_finite_log_probabilities(normal: bool) -> None:
    log_proba = Link(1.0, 0.5, normal).log_proba(np.array([-40.0, 0.0, 40.0]))
    assert np.isfinite(log_proba).all()
    np.testing.assert_allclose(log_proba, log_proba[::-1, ::-1], atol=EXACT)


def test_settings_may_be_fixed() -> None:
    task = crowd()
    fitted = build("ridge@C=0.5@r=1")(task)
    assert fitted.report()["setting"] == {"C": 0.5, "r": 1.0}
    assert fitted.report()["tuning"]["settings_tried"] == 1
    with pytest.raises(ValueError, match="no setting is called D; there are C, r"):
        build("ridge@D=1")(task)


@dataclass(frozen=True)
class Noisy:
    """A method whose margins are right but for noise, the least of it at a = 3, b = 1."""

    axes: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"a": (0, 1, 2, 3, 4), "b": (0, 1, 2)})
    start: Mapping[str, float] = field(default_factory=lambda: {"a": 0, "b": 2})
    normal: bool = False
    most_rows: int = 100
    n_folds: int = 5

    def fit(self, rows: Comparisons, setting: Mapping[str, float], seed: int) -> NoisyFit:
        assert rows.n_rows < 100  # a sample, and one fold less
        return NoisyFit(abs(setting["a"] - 3) + abs(setting["b"] - 1))


@dataclass(frozen=True)
class NoisyFit:
    noise: float

    def margin(self, user: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        sign = np.where(user % 2, 1.0, -1.0)
        own = np.array([-1.0, 1.0, 0.0, 1.0, -1.0])
        noise = np.random.default_rng(1).standard_normal(len(user))
        return 1.5 * sign * (own[left] - own[right]) + right - left + 3.0 * self.noise * noise

    def utility(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def report(self) -> dict[str, Any]:
        return {}


def test_the_search_walks_to_the_best_settings() -> None:
    task = crowd()
    found = tune(Noisy(), task.train, 0)
    assert found.setting == {"a": 3, "b": 1}
    assert found.report["validation_people"] < 15
    assert found.link.scale > 0.3


def test_attributes_are_asked_for_by_name() -> None:
    task = crowd()
    bare = split_rows("bare", 0, pl.DataFrame({"user": [1], "left": [1], "right": [2]}), [1], np.array([False]))
    assert bare.items is None
    with pytest.raises(DataError, match="items of bare have no attributes"):
        build("ridge-attributes")(bare)
    assert task.items is not None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    build("population")
    with pytest.raises(ModuleNotFoundError, match=r"evalica needs evalica.*\[bench\]"):
        build("evalica")
    assert command.main(["--tasks", "generator-10k", "--models", "peers"]) == 2
    assert "[bench]" in capsys.readouterr().err
