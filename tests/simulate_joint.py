"""A small crowd whose utilities follow from features of people and items, and models fitted to its answers."""

from __future__ import annotations

from functools import cache

import numpy as np

from predilect import GPPL, CollaborativeGP, CrowdGPPL, JointGP, Population

N_USERS, N_ITEMS, N_ANSWERS = 12, 8, 150


def ids(letter, codes):
    return [f"{letter}{code:02d}" for code in np.asarray(codes).tolist()]


def joint_crowd(seed=0):
    """Columns of answers, outcomes, features of people, features of items, and true utilities."""
    rng = np.random.default_rng(seed)
    x_u, x_i = rng.normal(size=(N_USERS, 2)), rng.normal(size=(N_ITEMS, 2))
    f = 1.5 * x_u @ rng.normal(size=(2, 2)) @ x_i.T + rng.normal(size=N_ITEMS)
    u, a = rng.integers(0, N_USERS, N_ANSWERS), rng.integers(0, N_ITEMS, N_ANSWERS)
    b = (a + rng.integers(1, N_ITEMS, N_ANSWERS)) % N_ITEMS
    y = np.where(f[u, a] - f[u, b] + rng.normal(size=N_ANSWERS) > 0, 1, -1)
    X = {"user": ids("u", u), "left": ids("i", a), "right": ids("i", b)}
    users = {"user": ids("u", range(N_USERS)), "p": x_u[:, 0], "q": x_u[:, 1]}
    items = {"item": ids("i", range(N_ITEMS)), "p": x_i[:, 0], "q": x_i[:, 1]}
    return X, y, users, items, f


@cache  # nothing changes a fitted model here
def joint_model():
    """A joint process."""
    X, y, users, items, _ = joint_crowd()
    given = {"n_tuning": 0, "length_scale": "median"}
    return JointGP(variance=20.0, **given).fit(X, y, people=users, items=items)


@cache
def other_models():
    """Fitted models of the other kinds, by name."""
    X, y, users, items, _ = joint_crowd()
    return {
        "population": Population(n_jobs=1).fit(X, y),
        "population-basis": Population(n_jobs=1, basis="inducing", n_inducing=4).fit(X, y, items=items),
        "crowd-gppl": CrowdGPPL(n_components=2, component_prior=(10.0, 10.0), n_jobs=1).fit(X, y),
        "collaborative": CollaborativeGP(n_components=2, n_jobs=1).fit(X, y, items=items),
        "gppl-separate": GPPL(users="separate", length_scale="median").fit(X, y, items=items),
        "gppl-joint": GPPL(users="joint", length_scale="median").fit(X, y, items=items, people=users),
        "gppl": GPPL(length_scale="median").fit(X, y, items=items),
        "pooled": Population(personal=False).fit(X, y),
    }


def everything(rng=None, n=300):
    """Codes of people and pairs of items, unknown people too."""
    rng = np.random.default_rng(5) if rng is None else rng
    a = rng.integers(0, N_ITEMS, n)
    return rng.integers(-1, N_USERS, n), a, (a + rng.integers(1, N_ITEMS, n)) % N_ITEMS
