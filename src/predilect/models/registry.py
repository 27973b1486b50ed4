"""Loading of a saved model of any kind."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from predilect.errors import DataError
from predilect.models.saving import model_folder, read_document

# What "model" says in model.json, and the name of the estimator.
_ESTIMATORS = {
    "population": "Population", "pooled": "Population", "gppl": "GPPL", "crowd-gppl": "CrowdGPPL", "gaspk": "GaSPK",
    "collaborative": "CollaborativeGP", "single-user-gp": "SingleUserGP", "gp-classifier": "GPClassifier",
    "hierarchical-gp": "HierarchicalGP", "gpvu": "GPVU", "bonilla-gp": "BonillaGP", "joint": "JointGP",
    "compressed": "CompressedModel",
}  # fmt: skip


def load_model(path: str | Path) -> Any:
    """Read a model that an estimator's ``save`` or ``predilect rank --out`` wrote, as that estimator.

    Raises
    ------
    DataError
        If the folder holds no model, a damaged one, or one of a later format.

    Examples
    --------
    >>> import tempfile, predilect
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "milk"], "right": ["milk", "tea"], "winner": ["tea", "tea"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predilect.Population().fit(answers).save(f"{folder}/model")
    ...     type(predilect.load_model(f"{folder}/model")).__name__
    'Population'
    """
    path = model_folder(Path(path))
    kind = read_document(path).get("model")
    if not isinstance(kind, str) or kind not in _ESTIMATORS:
        raise DataError(
            f"{path} holds a model called {kind!r:.100}, which this Predilect does not know. Install a newer Predilect"
        )
    return estimator_of(kind).load(path)


def estimator_of(kind: str) -> Any:
    """Class of the estimator that writes models of this kind; KeyError if there is none."""
    return getattr(import_module("predilect"), _ESTIMATORS[kind])
