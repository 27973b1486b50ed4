"""A small fitted model of every kind, to be saved and tampered with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

N_USERS, N_ITEMS = 8, 5
ITEMS = {"item": [f"i{k}" for k in range(N_ITEMS)], "x": [0.3, -1.0, 2.0, 0.5, 1.1], "kind": list("aabba")}
PEOPLE = {
    "user": [f"u{k}" for k in range(N_USERS)],
    "age": [20.0, 30, 40, 50, 25, 35, 45, 55],
    "group": list("pqpqqpqp"),
}


def answers(ties: bool) -> tuple[dict[str, list[str]], list[int]]:
    rng = np.random.default_rng(7)
    columns: dict[str, list[str]] = {"user": [], "left": [], "right": []}
    outcomes = []
    utility = rng.normal(0.0, 1.0, (N_USERS, N_ITEMS)) + np.linspace(-1.0, 1.0, N_ITEMS)
    for user in range(N_USERS):
        for _ in range(7):
            a, b = rng.choice(N_ITEMS, 2, replace=False)
            z = utility[user, a] - utility[user, b] + rng.normal()
            columns["user"].append(f"u{user}")
            columns["left"].append(f"i{a}")
            columns["right"].append(f"i{b}")
            outcomes.append(0 if ties and abs(z) < 0.5 else 1 if z > 0 else -1)
    return columns, outcomes


def kinds() -> dict[str, Callable[[], Any]]:
    """How a small fitted model of each kind is made."""
    import predilect
    from predilect import GPPL, CollaborativeGP, CrowdGPPL, GaSPK, JointGP, MixedLogit, Population
    from predilect.papers.baselines import GPVU, BonillaGP, GPClassifier, HierarchicalGP, SingleUserGP

    given: dict[str, Any] = {
        "strength": 10.0,
        "variance": 2.0,
        "consensus_variance": 4.0,
        "calibration": None,
        "consistency": 0.0,
        "n_jobs": 1,
    }
    careless = given | {"calibration": predilect.Calibration(lapse_rate=0.05)}
    spk = {"n_components": 2, "n_restarts": 1, "variance": 4.0, "spread": 1.2, "n_jobs": 1}
    plain, features, both = {}, {"items": ITEMS}, {"items": ITEMS, "people": PEOPLE}  # type: ignore[var-annotated]

    def fit(make: Any, more: dict[str, Any], ties: bool = True, **settings: Any) -> Callable[[], Any]:
        return lambda: make(**settings).fit(*answers(ties), **more)

    def small(precision: str, **options: Any) -> Callable[[], Any]:
        def made() -> Any:
            full = Population(**given | {"consistency": 0.5}, tie_threshold=("auto", 0.3)).fit(*answers(True))
            return full.compress(3, precision=precision, **options)

        return made

    def small_of_joint() -> Any:
        full = JointGP(n_tuning=0).fit(*answers(True), **both)
        return full.compress(3, local=False)

    return {
        "population": fit(Population, plain, False, **given),
        "population, everything chosen": fit(Population, plain, n_jobs=1),
        "population, features": fit(Population, features, **given, feature_weight=(0.7, "auto")),
        "population, ties": fit(Population, plain, **careless, tie_threshold=("auto", 0.3)),
        "population, consistency": fit(Population, plain, **given | {"consistency": 0.5}),
        "population, traits": fit(Population, both, **given, user_features=True),
        "population, attributes": fit(Population, features, **given, basis="attributes"),
        "population, inducing": fit(Population, both, **given, basis="attributes+inducing", user_features=True),
        "pooled": fit(Population, plain, personal=False, n_jobs=1),
        "pooled, over time": lambda: Population(personal=False, drift=(0.5, 10.0), n_jobs=1).fit(
            answers(True)[0] | {"time": list(range(N_USERS * 7))}, answers(True)[1], columns={"time": "time"}
        ),
        "pooled, features": fit(Population, features, personal=False, n_jobs=1, basis="inducing", n_inducing=3),
        "gppl pooled": fit(GPPL, features, n_jobs=1, n_inducing=3),
        "gppl separate": fit(GPPL, features, users="separate", n_jobs=1),
        "gppl joint": fit(GPPL, both, users="joint", n_jobs=1),
        "crowd-gppl": fit(CrowdGPPL, both, n_components=2, user_features=True, n_jobs=1),
        "crowd-gppl, paper": fit(CrowdGPPL, both, preset="paper", n_components=2, user_features=True, n_jobs=1),
        "collaborative": fit(CollaborativeGP, both, n_components=2, user_features=True, n_jobs=1),
        "collaborative, paper": fit(CollaborativeGP, features, preset="paper", n_components=2, n_jobs=1),
        "gaspk": fit(GaSPK, features, **spk),
        "gaspk, items": fit(GaSPK, plain, **spk, gamma="exact"),
        "gaspk, grid": fit(GaSPK, features, **spk, levels=3, backend="grid"),
        "gaspk, paper": fit(GaSPK, features, n_components=2, n_restarts=1, preset="paper", n_jobs=1, levels=3),
        "gaspk, relative": fit(GaSPK, features, **spk, tau="relative"),
        "mixed-logit": fit(MixedLogit, both, n_draws=60, tol=100.0, n_jobs=1),
        "mixed-logit, simulated": fit(MixedLogit, plain, method="simulated", n_draws=20, n_jobs=1),
        "joint": fit(JointGP, both, n_tuning=0),
        "bonilla-gp": fit(BonillaGP, both, n_tuning=0, item_nugget=0.05, user_nugget=1.0),
        "single-user-gp": fit(SingleUserGP, features, n_jobs=1),
        "gp-classifier": fit(GPClassifier, features, n_jobs=1),
        "hierarchical-gp": fit(HierarchicalGP, plain, n_jobs=1),
        "gpvu": fit(GPVU, plain, n_jobs=1, n_components=2, own_share=0.5),
        "compressed, half": small("half"),
        "compressed, single": small("single"),
        "compressed, double": small("double"),
        "compressed, joint": small_of_joint,
    }
