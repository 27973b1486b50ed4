"""People's answers as arrays and back, for posteriors that hold a layout of people."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from predilect._types import FloatArray
from predilect.data.features import FeatureSpace
from predilect.gaussian.design import Sites
from predilect.gaussian.posterior import GaussianPosterior
from predilect.gaussian.projection import Projection
from predilect.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.models.fields import Fields, amounts, codes, covariance, numbers, outcomes, pointer, positive
from predilect.models.reading import Queries
from predilect.people.layout import Basis, Effects, People
from predilect.people.posterior import PopulationPosterior
from predilect.shards import workers

_ARRAYS = ("traits", "tie_factor", "answer_ptr", "item_ptr", "item_idx", "left", "right", "outcome", "weight")

# U people with T traits, R rows of answers, K own items of all of them.
PEOPLE_ARRAYS: Fields = {
    "traits": numbers("U T"), "tie_factor": positive("U"), "answer_ptr": pointer("U+1", "R"),
    "item_ptr": pointer("U+1", "K"), "item_idx": codes("K", "I"), "left": codes("R", "I"), "right": codes("R", "I"),
    "outcome": outcomes("R"), "weight": positive("R"), "site_precision": amounts("R"), "site_linear": numbers("R"),
    "shards": amounts("S 2", "int64"),
}  # fmt: skip


def pack_people(people: People) -> dict[str, Any]:
    """Arrays of a layout, without those of the sites."""
    return {name: getattr(people, name) for name in _ARRAYS} | {"shards": np.array(people.shards, dtype=np.int64)}


def unpack_people(arrays: dict[str, Any], n_items: int) -> People:
    """The layout that :func:`pack_people` packed; ValueError if the arrays do not fit each other."""
    shards = [(int(start), int(stop)) for start, stop in arrays["shards"]]
    people = People(**{name: arrays[name] for name in _ARRAYS}, n_items=n_items, shards=shards)
    owner = np.repeat(np.arange(people.n_users), np.diff(people.item_ptr))
    if (np.diff(owner * n_items + people.item_idx) <= 0).any():
        raise ValueError("the own items of a person do not ascend")
    n_own = np.repeat(np.diff(people.item_ptr), np.diff(people.answer_ptr))
    if (people.left >= people.right).any() or (people.right >= n_own).any():
        raise ValueError("an answer compares what is not two of the person's own items")
    edges = [0, *(stop for _, stop in shards)]
    if shards != list(pairwise(edges)) or edges != sorted(edges) or edges[-1] != people.n_users:
        raise ValueError("the shards do not hold every person once, in order")
    return people


CROWD_ARRAYS: Fields = PEOPLE_ARRAYS | {"m": numbers("I"), "C_m": covariance("I I"), "Sigma": covariance("I I")}


def crowd_margins(model: Any, queries: Queries, posterior: PopulationPosterior) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the queried margins, (n,)."""
    with workers(model.n_jobs) as executor:
        return posterior.margins(queries.users, queries.left, queries.right, executor=executor)


def with_new_items(
    posterior: PopulationPosterior, prior: Projection, new: FeatureSpace, *, spread: float, consensus_spread: float
) -> PopulationPosterior:
    """With items appended that have no answers, f_new = A f + r given all users' utilities f of the others.

    A = K_*o K_oo⁻¹; the covariance of r is K_** - A K_o* times ``spread``, for the consensus ``consensus_spread``.
    """
    n = posterior.n_items
    everything = prior.with_items(new.matrix, new.known)
    assert everything.A is not None
    A, R = everything.A[n:], everything.residual()[n:, n:]
    consensus = GaussianPosterior(posterior.m, posterior.C_m).extended(A, R, consensus_variance=consensus_spread)
    # ``extended`` takes the spread apart as scale (strength + trace) / (strength + n).
    return posterior.extended(A, R, consensus=consensus, scale=spread, strength=0.0, trace=float(n))


def pack_crowd(posterior: PopulationPosterior) -> dict[str, Any]:
    """Arrays of a posterior, but for those of a basis or of effects."""
    people, sites = posterior.people, posterior.sites
    later = {} if posterior.newcomers is None else {"newcomers": posterior.newcomers}
    return pack_people(people) | later | {
        "m": posterior.m, "C_m": posterior.C_m, "Sigma": posterior.Sigma, "site_precision": sites.precision,
        "site_linear": sites.linear,
    }  # fmt: skip


def unpack_crowd(
    arrays: dict[str, Any],
    n_items: int,
    basis: Basis | None = None,
    effects: Effects | None = None,
    calibration: Calibration = UNCALIBRATED,
) -> PopulationPosterior:
    """The posterior that :func:`pack_crowd` packed; ValueError if the arrays do not fit each other."""
    m, C_m, Sigma = arrays["m"], arrays["C_m"], arrays["Sigma"]
    sites = Sites(arrays["site_precision"], arrays["site_linear"])
    people = unpack_people(arrays, n_items)
    return PopulationPosterior(
        m, C_m, Sigma, people, sites, basis, effects, calibration=calibration, newcomers=arrays.get("newcomers")
    )
