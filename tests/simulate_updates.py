"""A crowd of whose answers some come after the fit, and populations fitted to the others."""

from __future__ import annotations

import copy
import functools
import pickle

import numpy as np

from contracts.votes import item_ids, user_ids
from predilect import Population
from simulate import crowd

FIXED = {
    "consistency": 0.0,
    "strength": 10.0, "variance": 2.0, "consensus_variance": 4.0, "feature_weight": 0.5,
    "length_scale": 1.0, "tie_threshold": 0.4, "max_iter": 30, "tol": 1e-3,
    "n_jobs": 1,
}  # fmt: skip
N_USERS, N_ITEMS = 14, 6
ROWS = crowd(5, N_USERS, N_ITEMS, 12, delta=0.4)
RNG = np.random.default_rng(3)
ITEMS = {"item": item_ids(range(N_ITEMS)), "x": RNG.standard_normal(N_ITEMS), "z": RNG.standard_normal(N_ITEMS)}
USERS = {"user": user_ids(range(N_USERS)), "age": RNG.standard_normal(N_USERS)}
KINDS = {
    "items": {},
    "traits": {"user_features": True},
    "attributes": {"basis": "attributes", "user_features": True},
    "inducing": {"basis": "attributes+inducing", "n_inducing": 4},
    "pooled": {"personal": False},
}
PERSONAL = [kind for kind in KINDS if kind != "pooled"]
# People 0 to 11 are there at the fit, each with the first nine answers; the others come later.
AT_FIT = np.flatnonzero((ROWS.user < 12) & (np.arange(ROWS.n_rows) % 12 < 9))
LATER = np.setdiff1d(np.arange(ROWS.n_rows), AT_FIT)


def columns(index) -> dict[str, list]:
    return {
        "user": user_ids(ROWS.user[index]), "left": item_ids(ROWS.left[index]), "right": item_ids(ROWS.right[index]),
        "winner": [{1: "left", 0: "tie", -1: "right"}[outcome] for outcome in ROWS.outcome[index].tolist()],
    }  # fmt: skip


def one(index: int) -> dict:
    """An answer as ``update`` takes it, by its outcome."""
    answer = {name: column[0] for name, column in columns([index]).items() if name != "winner"}
    return answer | {"outcome": int(ROWS.outcome[index])}


def fitted(kind: str) -> Population:
    """A population fitted to the answers that are there at the fit; the caller's to change."""
    return copy.deepcopy(_fitted(kind))


@functools.cache
def _fitted(kind: str) -> Population:
    features = {"items": ITEMS} | ({"people": USERS} if KINDS[kind].get("user_features") else {})
    return Population(**FIXED, **KINDS[kind]).fit(columns(AT_FIT), **features)


def state(model: Population) -> bytes:
    """All that a model holds, with the lists of ids that a vocabulary makes when asked."""
    for ids in (model.items_, model.users_):
        assert ids is None or len(ids.ids)
    held = {name: value for name, value in vars(model).items() if name != "_pooled_prior"}
    return pickle.dumps(held)
