"""The models that are measured, by name. A peer is one more entry of ``MODELS``.

A model is a function of a task that returns something fitted; the runner times it, and then asks for predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.metrics import tie_share_log_proba
from benchmarks.predilect_model import PredilectModel
from benchmarks.task import Task
from benchmarks.text_scales import TextModel
from predilect.data import Comparisons, Vocabulary
from predilect.models.registry import COMMANDS, estimator

__all__ = [
    "BASELINES",
    "CROWDS",
    "GROUPS",
    "MODELS",
    "NEEDS",
    "OWN",
    "PEERS",
    "REFERENCE",
    "TABLE3",
    "TRADE_OFFS",
    "VARIANTS",
    "Fitted",
    "build",
]

REFERENCE = "population"  # the one that the table is about, and whose predictions are stored

FloatArray = npt.NDArray[np.float64]


class Fitted(Protocol):
    """A fitted model."""

    def log_proba(self, test: Comparisons) -> FloatArray:
        """Log-probabilities of left, tie and right for the rows of ``test``, shape (n_rows, 3)."""
        ...

    def scores(self, entries: pl.DataFrame) -> FloatArray | None:
        """How much each user likes each item (columns of ``entries``), up to a constant a user; None if unknown."""
        ...

    def report(self) -> dict[str, Any]:
        """What is worth keeping: choices made, convergence; plain values that do not depend on the machine."""
        ...


class TieShare:
    """Knows the share of ties and nothing else: every pair gets the same probabilities."""

    def __init__(self, task: Task) -> None:
        self.shares = tie_share_log_proba(task.train.outcome, task.train.weight)

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`Fitted`."""
        return np.tile(self.shares, (test.n_rows, 1))

    def scores(self, entries: pl.DataFrame) -> None:
        """None."""

    def report(self) -> dict[str, Any]:
        """Share of ties."""
        return {"tie_share": float(np.exp(self.shares[1]))}


class Majority:
    """What people answered on the same pair, with two more answers shared out as :class:`TieShare` has it."""

    PRIOR = 2.0

    def __init__(self, task: Task) -> None:
        rows = task.train.pooled()
        self.items = rows.items
        self.prior = np.exp(tie_share_log_proba(rows.outcome, rows.weight))
        self.keys, group = np.unique(self._key(rows, rows.items), return_inverse=True)
        self.counts = np.zeros((len(self.keys), 3))
        np.add.at(self.counts, (group, 1 - rows.outcome), rows.weight)

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`Fitted`."""
        key = self._key(test, self.items)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        counts = np.where((self.keys[place] == key)[:, None], self.counts[place], 0.0)
        share = (counts + self.PRIOR * self.prior) / (counts.sum(axis=1, keepdims=True) + self.PRIOR)
        with np.errstate(divide="ignore"):
            return np.log(share)

    def scores(self, entries: pl.DataFrame) -> None:
        """None."""

    def report(self) -> dict[str, Any]:
        """How many pairs were seen."""
        return {"pairs_seen": len(self.keys)}

    @staticmethod
    def _key(rows: Comparisons, items: Vocabulary) -> npt.NDArray[np.int64]:
        left, right = (items.codes(rows.items.labels(side)).astype(np.int64) for side in (rows.left, rows.right))
        return left * len(items) + right


def _peer(module: str, method: str = "method") -> Callable[..., Fitted]:
    """A peer of ``benchmarks.peers``, imported when it is fitted: the others work without the package it needs."""

    def fit(task: Task, **options: Any) -> Fitted:
        peer = import_module("benchmarks.peers.peer").Peer
        fitted: Fitted = peer(task, getattr(import_module(f"benchmarks.peers.{module}"), method), **options)
        return fitted

    return fit


def _per_person(task: Task) -> Fitted:
    fitted: Fitted = import_module("benchmarks.peers.per_person").PerPerson(task)
    return fitted


def _crowd_bt(task: Task, **options: Any) -> Fitted:
    fitted: Fitted = import_module("benchmarks.peers.crowd_bt").CrowdBTProcess(task, **options)
    return fitted


def _gp_person(task: Task, **options: Any) -> Fitted:
    fitted: Fitted = import_module("benchmarks.peers.gp_person").PersonClassifier(task, **options)
    return fitted


OWN: dict[str, Callable[..., Fitted]] = {
    "population": PredilectModel,
    "pooled": partial(PredilectModel, personal=False),
    "tie-share": TieShare,
    "majority": Majority,
}
# The models of "Scalable Bayesian preference learning for crowds"; "gppl" is one function for everybody.
CROWDS: dict[str, Callable[..., Fitted]] = {
    "gppl": partial(PredilectModel, name="gppl"),
    "crowd-gppl": partial(PredilectModel, name="crowd-gppl"),
    # With length-scales for features of texts.
    "gppl-texts": partial(TextModel, name="gppl"),
    "crowd-gppl-texts": partial(TextModel, name="crowd-gppl"),
    "crowd-bt-gp": _crowd_bt,  # what they compare with on arguments; without ties
}
# "A scalable preference model for autonomous decision-making".
TRADE_OFFS: dict[str, Callable[..., Fitted]] = {
    "gaspk": partial(PredilectModel, name="gaspk"),
    "gaspk-exact": partial(PredilectModel, name="gaspk", gamma="exact", concentration=0.0, n_components=10),
    "gaspk-heuristic": partial(PredilectModel, name="gaspk", gamma="heuristic", concentration=0.0, n_components=10),
    "gp-person": _gp_person,  # without ties
}
# What the papers compare with: "Collaborative Gaussian processes for preference learning" and the others.
BASELINES: dict[str, Callable[..., Fitted]] = {
    "cp": partial(PredilectModel, name="collaborative"),
    "su": partial(PredilectModel, name="single-user-gp"),
    "bi": partial(PredilectModel, name="hierarchical-gp"),
    "bo": partial(PredilectModel, name="bonilla-gp"),
    "gp-classifier": partial(PredilectModel, name="gp-classifier"),
    "gpvu": partial(PredilectModel, name="gpvu"),
    "joint": partial(PredilectModel, name="joint"),
}
# The published inference of GPPL, and its prior for Sushi, with the median rule that crowdGPPL's rows have.
_AS_PAPER = "@preset=paper@median=root"
# The rows of its Table 3, by their names there (a backslash is "without"; u: features of people, x: of items,
# t: consensus, induc: inducing points).
TABLE3 = {
    "crowdGPPL": "crowd-gppl@preset=paper@user_features=True@n_inducing_users=25",
    "crowdGPPL, M = 500": "crowd-gppl@preset=paper@user_features=True",
    "crowdGPPL\\induc": "crowd-gppl@preset=paper@user_features=True@n_inducing=None@n_inducing_users=None",
    "crowdGPPL\\u": "crowd-gppl@preset=paper",
    "crowdGPPL\\u\\x": "crowd-gppl@preset=paper@item_features=False",
    "crowdGPPL\\u,\\t": "crowd-gppl@preset=paper@with_consensus=False",
    "GPPL": f"gppl{_AS_PAPER}",
    "GPPL-per-user": f"gppl@users=separate{_AS_PAPER}",
    "collabGP": "cp@preset=paper@user_features=True",
    "collabGP\\u": "cp@preset=paper",
    "GPVU": "gpvu@n_components=20",
    "crowdGPPL modern": "crowd-gppl",
    "crowdGPPL modern, C = 30": "crowd-gppl@n_components=30",
    "crowdGPPL modern, u": "crowd-gppl@user_features=True",
    "crowdGPPL modern, \\x": "crowd-gppl@item_features=False",
    "crowdGPPL modern, \\t": "crowd-gppl@with_consensus=False",
    "GPPL modern": "gppl",
    "GPPL-per-user modern": "gppl@users=separate",
    "GPPL, people and items": "gppl@users=joint",
    "collabGP modern": "cp",
}
# Arguments: features in their hundreds, with length-scales of 20 √D medians and the priors of the authors, or ours.
_ARGUMENTS = "crowd-gppl@preset=paper@median=arguments@n_components=5@n_inducing=500@consensus_prior=2:200"
_ARGUMENTS += "@component_prior=2:200"
# As the authors' code has it: noise of variance 1, small batches, small first steps; it stops long before convergence.
_STEPS = "@noise_variance=1.0@delay=10@batch_size="
_TEXTS = "crowd-gppl-texts@n_components=5@n_restarts=1@max_iter=20"
VARIANTS = TABLE3 | {
    "crowdGPPL\\u, the code's steps": f"crowd-gppl@preset=paper{_STEPS}200",
    "crowdGPPL\\u, the code's steps (B)": f"crowd-gppl@preset=paper{_STEPS}1000",
    "crowdGPPL, the code's steps (B)": f"crowd-gppl@preset=paper@user_features=True{_STEPS}1000",
    "GPPL, arguments": "gppl@preset=paper@median=arguments@scale_prior=2:200",
    "GPPL modern, arguments": "gppl@median=arguments",
    "crowdGPPL\\u, arguments": _ARGUMENTS,
    "crowdGPPL\\u,\\t, arguments": f"{_ARGUMENTS}@with_consensus=False",
    "crowdBT-GP": "crowd-bt-gp",
    "crowdBT-GP, √D medians": "crowd-bt-gp@median=root",
    "GPPL, texts": "gppl-texts",
    "crowdGPPL, texts": _TEXTS,
    "crowdGPPL, opt.": "crowd-gppl@user_features=True@length_scale=optimise",
    "crowdGPPL\\u, opt.": "crowd-gppl@length_scale=optimise",
    "GPPL, opt.": "gppl@length_scale=optimise",
}
PEERS: dict[str, Callable[..., Fitted]] = {
    "choix": _peer("choix_pooled"),
    "choix-ep-person": _peer("choix_person"),
    "evalica": _peer("evalica_pooled"),
    "openskill": _peer("openskill_ratings", "of_people"),
    "openskill-pooled": _peer("openskill_ratings", "of_everybody"),
    "ridge": _peer("ridge", "on_items"),
    "ridge-attributes": _peer("ridge", "on_attributes"),
    "matrix-factorisation": _peer("factorisation"),
    "per-person": _per_person,
}
# Every estimator by its name in commands too.
ESTIMATORS: dict[str, Callable[..., Fitted]] = {name: partial(PredilectModel, name=name) for name in COMMANDS}
MODELS = ESTIMATORS | OWN | CROWDS | TRADE_OFFS | BASELINES | PEERS
# Names for several models at once.
GROUPS = {
    "own": list(OWN),
    "peers": list(PEERS),
    "crowds": list(CROWDS),
    "trade-offs": list(TRADE_OFFS),
    "baselines": list(BASELINES),
    "table3": list(TABLE3.values()),
}
# Packages of the extra "bench"; what the other models need is there with predilect.
NEEDS = {
    "choix": "choix", "choix-ep-person": "choix", "evalica": "evalica", "openskill": "openskill",
    "openskill-pooled": "openskill",
}  # fmt: skip


def build(name: str) -> Callable[[Task], Fitted]:
    """The model of a name; options may follow, as in ``population@strength=10@variance=4``.

    Raises
    ------
    KeyError
        If there is no such model.
    ValueError
        If an estimator of predilect has no such option, or does not take its value; a peer says so when it is fitted.
    ModuleNotFoundError
        If the model is of a package that is not installed.
    """
    base, *pairs = name.split("@")
    if base not in MODELS:
        raise KeyError(f"there is no model {base!r}; there are {', '.join(MODELS)}")
    if base in NEEDS and find_spec(NEEDS[base]) is None:
        raise ModuleNotFoundError(
            f"the model {base} needs {NEEDS[base]}: install predilect with the extra [bench], or name the models to "
            "run, as in --models own"
        )
    options = {key: _value(value) for key, value in (pair.split("=", 1) for pair in pairs)}
    _check(MODELS[base], base, options)
    return lambda task: MODELS[base](task, **options)


def _check(model: Callable[..., Fitted], name: str, options: dict[str, Any]) -> None:
    taken = signature(model).parameters
    if "name" not in taken:
        return
    fresh = estimator(taken["name"].default)()
    of_estimator = {key: value for key, value in options.items() if key not in taken}
    known = fresh.get_params()
    if unknown := of_estimator.keys() - known:
        raise ValueError(f"{name} has no option {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    fresh.set_params(**of_estimator)._check()


def _value(text: str) -> Any:
    """A number, a pair of numbers as in 1:100, True, False, None, or the text itself, also in single quotes.

    Names with + between them are a list.
    """
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    if text.isdigit():
        return int(text)
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if "+" in text:
        return text.split("+")
    parts = text.split(":")
    try:
        numbers = tuple(float(part) for part in parts)
    except ValueError:
        return text
    return numbers if len(numbers) > 1 else numbers[0]
