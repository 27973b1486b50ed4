"""Crowds drawn from crowdGPPL's own model: the simulations of its Fig. 1, in two readings (protocols.md P2).

A person's utilities over a grid of items are F_ju = t_j + Σ_c v_cj w_cu with t ~ N(0, K / s_t), v_c ~ N(0, K / s_c) and
w_c ~ N(0, L), where K and L are Matérn 3/2 kernels of the places of items and of the features of people. An answer is
left with probability Φ(F_left - F_right): the unit of a utility is the noise of one answer, as everywhere in predilect.

=========== =========================================================== ================================================
            "code": what the authors' scripts do                         "preprint"
=========== =========================================================== ================================================
items       20 x 20 grid                                                 10 x 10 grid
people      20, two features uniform on 0..9 plus noise of sd .01        25, the same
pairs       400; half of the items are test items, only pairs inside     500, all for training; the test is about all
            one half are kept: about 100 for training                    items
kernels     length-scale 4                                               length-scale 4
noise       variance 1 an item: utilities are divided by √2              variance 1/2 an item
a           consensus against noise: s_c = .1, 1, .5, 10, 3; s_t varies  one person alone; s_t varies
b           personal against noise: s_t = 5, five equal s_c vary         consensus: three s_c = .001; s_t varies
c           personal against pairs, 160 to 2 560: C = 1, 3, 10, 20;      personal: s_t = 10; three equal s_c vary
            all scales 1
d           recovery of the components: as (c)                           recovery: C = 1, 3, 10, 20; s_t = 1, s_c = .2
=========== =========================================================== ================================================

The preprint shows its axes in figures only: the values of what varies are ours. The code draws items and people of a
pair uniformly. The article's table speaks of 25 people and 100 items, its text of 20 and of the grid of 400.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import log_ndtr

from benchmarks.task import HeldOut, Task, read_answers, split_rows
from predilect.data import Vocabulary

__all__ = ["SIMULATIONS", "Crowd", "Setting", "draw", "task_of"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a simulated crowd is drawn with.

    Attributes
    ----------
    n_side : int
        Items are n_side x n_side places of a grid.
    n_people, n_pairs : int
        ``n_pairs`` are drawn; ``halves`` keeps those whose items are both training or both test items.
    s_t : float
        Inverse variance of the consensus.
    s_c : tuple of float
        Inverse variance of each component.
    noise_var : float
        Variance of the noise of one item in the reading; 1/2 is predilect's.
    """

    n_side: int = 20
    n_people: int = 20
    n_pairs: int = 400
    s_t: float = 1.0
    s_c: tuple[float, ...] = (1.0,)
    halves: bool = True
    noise_var: float = 1.0
    length_scale: float = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """A draw. ``consensus`` (items,), ``components`` (C, items), ``weights`` (C, people), in predilect's unit."""

    setting: Setting
    places: FloatArray
    traits: FloatArray
    consensus: FloatArray
    components: FloatArray
    weights: FloatArray
    user: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    outcome: npt.NDArray[np.int64]
    test_items: npt.NDArray[np.bool_]

    @property
    def for_training(self) -> npt.NDArray[np.bool_]:
        """Which pairs a model learns from, shape (pairs,): all, or those of the training items."""
        return ~self.test_items[self.left] if self.setting.halves else np.ones(len(self.left), dtype=bool)

    @property
    def utilities(self) -> FloatArray:
        """F, shape (people, items)."""
        return self.consensus + self.weights.T @ self.components

    @property
    def margins(self) -> FloatArray:
        """True margin of each pair, shape (pairs,)."""
        f = self.utilities
        return f[self.user, self.left] - f[self.user, self.right]

    @property
    def noise_rate(self) -> float:
        """Share of the training answers that go against the person's true utilities."""
        kept = self.for_training
        return float(np.mean(self.outcome[kept] * self.margins[kept] < 0))


_CODE = Setting()
_PREPRINT = Setting(n_side=10, n_people=25, n_pairs=500, halves=False, noise_var=0.5)
_PAIRS = (160, 320, 640, 1280, 2560)
_COUNTS = (1, 3, 10, 20)

# Reading: simulation: name on the axis: setting.
SIMULATIONS: dict[str, dict[str, dict[str, Setting]]] = {
    "code": {
        "a": {f"s_t={s:g}": replace(_CODE, s_t=s, s_c=(0.1, 1.0, 0.5, 10.0, 3.0))
              for s in (0.005, 0.015, 0.025, 0.05, 0.1)},
        "b": {f"s_c={s:g}": replace(_CODE, s_t=5.0, s_c=(s,) * 5) for s in (0.02, 0.2, 0.5, 1.0, 3.0, 6.0)},
        "c": {f"C={c} P={p}": replace(_CODE, n_pairs=p, s_c=(1.0,) * c) for c in _COUNTS for p in _PAIRS},
        "d": {f"C={c}": replace(_CODE, n_pairs=2560, s_c=(1.0,) * c) for c in _COUNTS},
    },
    "preprint": {
        "a": {f"s_t={s:g}": replace(_PREPRINT, n_people=1, s_t=s, s_c=()) for s in (0.001, 0.01, 0.1, 0.5, 1.0)},
        "b": {f"s_t={s:g}": replace(_PREPRINT, s_t=s, s_c=(0.001,) * 3) for s in (0.0001, 0.001, 0.01, 0.1, 1.0)},
        "c": {f"s_c={s:g}": replace(_PREPRINT, s_t=10.0, s_c=(s,) * 3) for s in (0.001, 0.01, 0.1, 1.0, 10.0)},
        "d": {f"C={c}": replace(_PREPRINT, s_t=1.0, s_c=(0.2,) * c) for c in _COUNTS},
    },
}  # fmt: skip


def draw(setting: Setting, seed: int) -> Crowd:
    """A crowd and its answers; all that is random depends on ``seed`` alone. items³ time."""
    rng = np.random.default_rng(seed)
    side = np.arange(setting.n_side)
    places = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
    traits = rng.integers(10, size=(setting.n_people, 2)) + 0.01 * rng.standard_normal((setting.n_people, 2))
    items, people = (_root(matern32(x, setting.length_scale)) for x in (places, traits))
    n_items, n_components = len(places), len(setting.s_c)
    unit = np.sqrt(0.5 / setting.noise_var)
    consensus = unit / np.sqrt(setting.s_t) * (items @ rng.standard_normal(n_items))
    components = (
        unit / np.sqrt(np.array(setting.s_c))[:, None] * (rng.standard_normal((n_components, n_items)) @ items.T)
    )
    weights = rng.standard_normal((n_components, setting.n_people)) @ people.T
    test_items = rng.permutation(n_items) < n_items // 2
    user = rng.integers(setting.n_people, size=setting.n_pairs)
    left = rng.integers(n_items, size=setting.n_pairs)
    right = (left + rng.integers(1, n_items, size=setting.n_pairs)) % n_items
    if setting.halves:
        inside = test_items[left] == test_items[right]
        user, left, right = user[inside], left[inside], right[inside]
    f = consensus + weights.T @ components
    outcome = np.where(f[user, left] - f[user, right] + rng.standard_normal(len(user)) > 0, 1, -1)
    return Crowd(setting, places, traits, consensus, components, weights, user, left, right, outcome, test_items)


def task_of(crowd: Crowd, name: str = "simulated crowd", seed: int = 0, *, n_test: int = 2000) -> Task:
    """The crowd as a task.

    Test answers are ``n_test`` fresh ones among the test items (all items without halves), whose oracle is known. Gold
    utilities are the true ones of every person at those items; ``further["consensus"]`` has the true consensus.
    """
    rng = np.random.default_rng((seed, 1))
    kept = crowd.for_training
    asked = np.flatnonzero(crowd.test_items) if crowd.setting.halves else np.arange(len(crowd.places))
    user = rng.integers(crowd.setting.n_people, size=n_test)
    first = rng.integers(len(asked), size=n_test)
    second = (first + rng.integers(1, len(asked), size=n_test)) % len(asked)
    f = crowd.utilities
    z = f[user, asked[first]] - f[user, asked[second]]
    outcome = np.where(z + rng.standard_normal(n_test) > 0, 1, -1)
    frame = pl.DataFrame(
        {
            "user": np.concatenate([crowd.user[kept], user]),
            "left": np.concatenate([crowd.left[kept], asked[first]]),
            "right": np.concatenate([crowd.right[kept], asked[second]]),
        }
    )
    items = pl.DataFrame({"item": np.arange(len(crowd.places)), "x": crowd.places[:, 0], "y": crowd.places[:, 1]})
    users = pl.DataFrame({"user": np.arange(len(crowd.traits)), "p": crowd.traits[:, 0], "q": crowd.traits[:, 1]})
    n_people = crowd.setting.n_people
    gold = pl.DataFrame(
        {
            "user": np.repeat(np.arange(n_people), len(asked)),
            "item": np.tile(asked, n_people),
            "score": f[:, asked].ravel(),
        }
    )
    vocabulary = Vocabulary(items["item"])
    return split_rows(
        name, seed, frame, np.concatenate([crowd.outcome[kept], outcome]), np.arange(len(frame)) >= kept.sum(),
        vocabulary=vocabulary, items=items, users=users, gold=gold,
        oracle_log_loss=float(-log_ndtr(outcome * z).mean()),
        further={"consensus": _consensus(crowd, asked, vocabulary)},
    )  # fmt: skip


def _consensus(crowd: Crowd, asked: npt.NDArray[np.int64], vocabulary: Vocabulary) -> HeldOut:
    """Every pair of neighbours in a random order of the asked items, as the consensus has it."""
    order = np.random.default_rng(0).permutation(asked)
    columns: Mapping[str, Any] = {"user": np.zeros(len(order) - 1, dtype=int), "left": order[:-1], "right": order[1:]}
    outcome = np.where(crowd.consensus[order[:-1]] > crowd.consensus[order[1:]], 1, -1)
    answers = read_answers(pl.DataFrame(columns), outcome, vocabulary).pooled()
    return HeldOut(answers, pl.DataFrame({"item": asked, "score": crowd.consensus[asked]}))


def matern32(x: FloatArray, length_scale: float) -> FloatArray:
    """Product over the features of Matérn 3/2 kernels, as the papers write it; shape (n, n)."""
    r = np.sqrt(3.0) * np.abs(x[:, None] - x[None]) / length_scale
    kernel: FloatArray = ((1.0 + r) * np.exp(-r)).prod(axis=-1)
    return kernel


def _root(kernel: FloatArray) -> FloatArray:
    """B with B B' = kernel; through eigenvalues, since people may share features."""
    values, vectors = np.linalg.eigh(kernel)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
