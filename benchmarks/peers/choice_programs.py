"""Programs of choice research, one a process: ``python choice_programs.py PROGRAM TASK FILE.npz``.

It runs in the environment of the peers, and so imports none of Predilect but for itself. FILE holds choices: attributes
(T, k, d) with their ``names``, ``available`` (T, k), ``best`` (T,), ``person`` (T,) and ``has`` (k, d), which
alternatives have an attribute. It prints a line of JSON: log likelihood, estimates and user seconds of the fit; or what
is not installed, or not in the program.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib.metadata import version
from typing import Any

import numpy as np

N_DRAWS = 500
NOISE = "standard deviation of the log likelihood between sets of draws"
NEST = (0, 2)  # of the alternatives, in the task "nested"; the others are alone


class NotThere(Exception):
    """The program has no such model."""


def predilect(task: str, data: Any) -> tuple[float, dict[str, float], float]:
    """As users call it, from a table with empty cells."""
    import polars as pl

    import predilect as ours

    T, k, _ = data["X"].shape
    rows = data["available"].ravel()
    table: dict[str, Any] = {
        "person": np.repeat(data["person"], k), "task": np.repeat(np.arange(T), k),
        "alternative": [f"a{a}" for _ in range(T) for a in range(k)],
        "nest": ["in" if a in NEST else "out" for _ in range(T) for a in range(k)],
        "chosen": (np.arange(k) == data["best"][:, None]).astype(int).ravel(),
    }  # fmt: skip
    for j, name in enumerate(data["names"]):
        column = np.where(data["has"][:, j], data["X"][:, :, j], np.nan).ravel()
        table[name] = pl.Series(column).fill_nan(None)
    frame = pl.DataFrame(table).filter(pl.Series(rows))
    terms = [*data["names"].tolist()] if task == "mixed" else ["alternative", *data["names"].tolist()]
    given: dict[str, Any] = {"distributions": "fixed"}
    if task == "nested":
        given["nests"] = "nest"
    if task == "mixed":
        given = {"method": "simulated", "covariance": "diagonal", "n_draws": N_DRAWS}
    unused = {"logit": ["nest"], "nested": [], "mixed": ["nest", "alternative"]}[task]
    answers = ours.read(frame.drop(unused), columns={"user": "person", "task": "task"})
    begin = os.times().user
    model = ours.MixedLogit(attributes=terms, n_jobs=1, **given).fit(answers)
    seconds = os.times().user - begin
    found = {}
    for row in pl.DataFrame(model.summary().table).to_dicts():
        name = row["attribute"].partition("[")[0]
        if name in data["names"] or name == "dissimilarity":
            found[name if row["what"] != "sd" else f"sd {name}"] = row["estimate"]
    if task == "mixed":
        found[NOISE] = model.report_["prior"]["log_likelihood_sd"]
    return model.log_evidence_, found, seconds


def xlogit(task: str, data: Any) -> tuple[float, dict[str, float], float]:
    """Its long format, with dummies times attributes by hand."""
    import xlogit as peer

    if task == "nested":
        raise NotThere
    X, names = _with_constants(data, constants=task != "mixed")
    T, k, d = X.shape
    rest = {"alts": np.tile(np.arange(k), T), "ids": np.repeat(np.arange(T), k), "verbose": 0,
            "avail": data["available"].ravel().astype(int)}  # fmt: skip
    y = (np.arange(k) == data["best"][:, None]).astype(int).ravel()
    begin = os.times().user
    if task == "mixed":
        model = peer.MixedLogit()
        del rest["avail"]
        model.fit(X.reshape(-1, d), y, varnames=names, panels=np.repeat(data["person"], k), n_draws=N_DRAWS,
                  randvars=dict.fromkeys(names, "n"), skip_std_errs=False, **rest)  # fmt: skip
    else:
        model = peer.MultinomialLogit()
        model.fit(X.reshape(-1, d), y, varnames=names, **rest)
    seconds = os.times().user - begin
    found = {name.removeprefix("sd.") if not name.startswith("sd.") else f"sd {name[3:]}": float(value)
             for name, value in zip(model.coeff_names, model.coeff_, strict=True)}  # fmt: skip
    return float(model.loglikelihood), found, seconds


def biogeme(task: str, data: Any) -> tuple[float, dict[str, float], float]:
    """Its expressions; utilities of alternatives have only what these have."""
    import pandas as pd
    import tomlkit.items

    # Biogeme 3.3.2 writes comments of several lines, which tomlkit refuses now.
    comment = tomlkit.items.Item.comment
    tomlkit.items.Item.comment = lambda self, text: comment(self, text.replace("\n", " "))  # type: ignore[method-assign]
    import biogeme.biogeme as program
    import biogeme.database as tables
    from biogeme import models
    from biogeme.expressions import Beta, Draws, MonteCarlo, PanelLikelihoodTrajectory, Variable, log
    from biogeme.nests import NestsForNestedLogit, OneNestForNestedLogit

    k, names = data["X"].shape[1], data["names"].tolist()
    frame = pd.DataFrame({f"{name}_{a}": data["X"][:, a, j] for j, name in enumerate(names) for a in range(k)})
    frame = frame.assign(person=data["person"], best=data["best"] + 1)
    frame = frame.assign(**{f"available_{a}": data["available"][:, a].astype(int) for a in range(k)})
    table = tables.Database("choices", frame)
    of = {name: Beta(name, 0, None, None, 0) for name in names}
    if task == "mixed":
        of = {name: of[name] + Beta(f"sd {name}", 0.5, None, None, 0) * Draws(f"draw_{name}", "NORMAL_HALTON2")
              for name in names}  # fmt: skip
        table.panel("person")
    V = {}
    for a in range(k):
        terms = [] if a == 0 or task == "mixed" else [Beta(f"constant {a}", 0, None, None, 0)]
        terms += [of[name] * Variable(f"{name}_{a}") for j, name in enumerate(names) if data["has"][a, j]]
        V[a + 1] = sum(terms[1:], terms[0])
    there = {a + 1: Variable(f"available_{a}") for a in range(k)}
    if task == "nested":
        mu = Beta("mu", 1.5, 0.1, 10, 0)
        nest = OneNestForNestedLogit(nest_param=mu, list_of_alternatives=[a + 1 for a in NEST], name="in")
        of_nests = NestsForNestedLogit(choice_set=list(V), tuple_of_nests=(nest,))
        value = models.lognested(V, there, of_nests, Variable("best"))
    elif task == "mixed":
        value = log(MonteCarlo(PanelLikelihoodTrajectory(models.logit(V, None, Variable("best")))))
    else:
        value = models.loglogit(V, there, Variable("best"))
    begin = os.times().user
    settings = {"number_of_draws": N_DRAWS} if task == "mixed" else {}
    model = program.BIOGEME(table, value, generate_html=False, generate_yaml=False, save_iterations=False, **settings)
    model.model_name = task
    result = model.estimate()
    seconds = os.times().user - begin
    found = {name: float(one) for name, one in result.get_beta_values().items()}
    if "mu" in found:
        found["dissimilarity"] = 1.0 / found.pop("mu")
    return float(result.final_log_likelihood), found, seconds


def choice_learn(task: str, data: Any) -> tuple[float, dict[str, float], float]:
    """Its conditional and nested logit, by L-BFGS."""
    if task == "mixed":
        raise NotThere
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from choice_learn.data import ChoiceDataset
    from choice_learn.models import ConditionalLogit, NestedLogit

    names, k = data["names"].tolist(), data["X"].shape[1]
    table = ChoiceDataset(
        choices=data["best"], items_features_by_choice=(data["X"].astype(np.float32),),
        items_features_by_choice_names=(names,), available_items_by_choice=data["available"].astype(np.float32),
    )  # fmt: skip
    begin = os.times().user
    settings = {"optimizer": "lbfgs", "epochs": 500, "lbfgs_tolerance": 1e-8}
    if task == "nested":
        alone = [[a] for a in range(k) if a not in NEST]
        model = NestedLogit(items_nests=[list(NEST), *alone], **settings)
    else:
        model = ConditionalLogit(**settings)
    for j, name in enumerate(names):
        model.add_shared_coefficient(name, items_indexes=np.flatnonzero(data["has"][:, j]).tolist())
    model.add_coefficients("intercept", items_indexes=list(range(1, k)))
    model.fit(table, get_report=False)
    seconds = os.times().user - begin
    found = {weight.name.partition(":")[0]: weight.numpy().ravel() for weight in model.trainable_weights}
    estimates = {name: float(value[0]) for one, value in found.items() for name in names if name in one}
    gammas = [float(value[0]) for one, value in found.items() if "gamma" in one]
    estimates |= {"dissimilarity": gammas[0]} if gammas else {}
    return -float(model.evaluate(table)) * len(data["best"]), estimates, seconds


PROGRAMS = {"predilect": predilect, "xlogit": xlogit, "biogeme": biogeme, "choice-learn": choice_learn}


def _with_constants(data: Any, constants: bool) -> tuple[Any, list[str]]:
    """Attributes, 0 where an alternative has none, and constants of all but the first alternative."""
    X, names = data["X"] * data["has"], data["names"].tolist()
    if not constants:
        return X, names
    k = X.shape[1]
    dummies = np.broadcast_to(np.eye(k)[:, 1:], (len(X), k, k - 1))
    return np.concatenate([X, dummies], axis=2), [*names, *(f"constant {a}" for a in range(1, k))]


def main(program: str, task: str, file: str) -> None:
    """Print what the program finds."""
    with np.load(file) as loaded:
        data = dict(loaded)
    os.chdir(tempfile.mkdtemp())  # where programs leave their files
    try:
        log_likelihood, estimates, seconds = PROGRAMS[program](task, data)
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": error.name}))
    except NotThere:
        print(json.dumps({"missing": "model"}))
    else:
        found = {"log_likelihood": log_likelihood, "estimates": estimates, "seconds": seconds}
        print(json.dumps(found | {"version": "" if program == "predilect" else version(program)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
