"""Fits of factor models, which have several optima, do not depend on what items and people are called."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import CollaborativeGP, CrowdGPPL

SMALL = 1e-3  # of a probability


def chances(kind, seed: int, renamed: bool, with_features: bool):
    rng = np.random.default_rng(seed)
    n_users, n_items, n = 6, 5, 60
    f = rng.standard_normal((n_users, n_items))
    user, left = rng.integers(n_users, size=n), rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    y = np.where(f[user, left] - f[user, right] + rng.standard_normal(n) > 0.0, 1, -1)
    order = np.random.default_rng(seed + 99)
    items, people = (
        [f"{letter}{k}" for k in (order.permutation(size) if renamed else range(size))]
        for letter, size in (("i", n_items), ("u", n_users))
    )
    named = {
        "user": [people[k] for k in user], "left": [items[k] for k in left], "right": [items[k] for k in right],
    }  # fmt: skip
    features = {"item": items, "x": rng.standard_normal(n_items), "z": rng.standard_normal(n_items)}
    model = kind(random_state=0, n_jobs=1) if "n_jobs" in kind().get_params() else kind(random_state=0)
    model.fit(named, y, items=features if with_features else None)
    asked = {"user": [people[k] for k in range(n_users)], "left": [items[0]] * n_users, "right": [items[1]] * n_users}
    return model.predict_proba(asked)[:, 0]


@pytest.mark.filterwarnings("ignore::predilect.errors.ConvergenceWarning")
@pytest.mark.parametrize("with_features", [False, True])
@pytest.mark.parametrize("kind", [CrowdGPPL, CollaborativeGP])
def test_names_make_no_difference(kind, with_features):
    for seed in range(2):
        plain, renamed = (chances(kind, seed, names, with_features) for names in (False, True))
        np.testing.assert_allclose(renamed, plain, atol=SMALL)
