"""The models that are measured, by name. A peer is one more entry of ``MODELS``.

A model is a function of a task that returns something fitted; the runner times it, and then asks for predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

import predilect
from benchmarks.task import Task
from predilect.data import Comparisons, Vocabulary
from predilect.evaluation import tie_share_log_proba
from predilect.likelihoods.probit import tilted

__all__ = ["MODELS", "Fitted", "build"]

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


class PredilectModel:
    """``predilect.Population``, personal or pooled."""

    def __init__(self, task: Task, **options: Any) -> None:
        self.model = predilect.Population(n_jobs=1, **options).fit(task.train, items=task.items)

    def log_proba(self, test: Comparisons) -> FloatArray:
        """See :class:`Fitted`."""
        mean, var = self.model.predict_margin(test)
        delta = self.model.tie_threshold_
        strict = [tilted(np.full(len(mean), y), mean, var, delta)[0] for y in (1, -1)]
        tie = tilted(np.zeros(len(mean)), mean, var, delta)[0] if delta > 0 else np.full(len(mean), -np.inf)
        return np.column_stack([strict[0], tie, strict[1]])

    def scores(self, entries: pl.DataFrame) -> FloatArray:
        """Margins over one item, the same for everybody."""
        reference = self.model.items_.ids[0]
        other = (entries["item"] != reference).to_numpy()
        pairs = entries.filter(pl.Series(other)).select("user", left="item", right=pl.lit(reference))
        scores = np.zeros(len(entries))
        scores[other] = self.model.predict_margin(pairs)[0]
        return scores

    def report(self) -> dict[str, Any]:
        """Hyper-parameters, how they were searched, and convergence; without seconds."""
        fit = {key: value for key, value in self.model.report_["fit"].items() if key != "seconds"}
        return {
            "hyperparameters": self.model.hyperparameters_.to_dict(),
            "tie_threshold": self.model.tie_threshold_,
            "log_evidence": self.model.log_evidence_,
            "fit": fit,
            "prior": self.model.report_["prior"],
        }


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


MODELS: dict[str, Callable[..., Fitted]] = {
    "population": PredilectModel,
    "pooled": lambda task, **options: PredilectModel(task, personal=False, **options),
    "tie-share": TieShare,
    "majority": Majority,
}


def build(name: str) -> Callable[[Task], Fitted]:
    """The model of a name; options may follow, as in ``population@strength=10@scale=4``.

    Raises
    ------
    KeyError
        If there is no such model.
    """
    base, *pairs = name.split("@")
    if base not in MODELS:
        raise KeyError(f"there is no model {base!r}; there are {', '.join(MODELS)}")
    options = {key: _value(value) for key, value in (pair.split("=", 1) for pair in pairs)}
    return lambda task: MODELS[base](task, **options)


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text)
    except ValueError:
        return text
