"""The table of estimators: all that is said of a model outside its own folder. Loading of a saved model of any kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from predilect.errors import DataError


@dataclass(frozen=True, slots=True)
class Wanted:
    """Personal rankings asked for, and features of items and of people given."""

    personal: bool
    items: bool
    people: bool


def _user_features(asked: Wanted) -> dict[str, Any]:
    return {"user_features": asked.people}


_FOR_ALL = "ranks for everybody and for the crowd; without people it is --model gppl. Say that,"


@dataclass(frozen=True, slots=True)
class Entry:
    """One estimator.

    ``name``: "model" in a saved model, and ``--model`` of the command if there is an ``about``, half a sentence of its
    help; ``module``: of the package; ``rankings``: "each" (person has an own one), "one" (for all), "either", as asked
    for, or "judged", by the verdict; ``instead``: what to ask for where the rankings that are wanted cannot be had;
    ``arguments``: of the constructor, for what is asked for; ``also``: further names in saved models; ``in_front``:
    whether it is a name of ``predilect`` too, and not of ``predilect.models`` alone.
    """

    name: str
    estimator: str
    module: str
    about: str = ""
    rankings: str = "each"
    instead: str = _FOR_ALL
    arguments: Callable[[Wanted], dict[str, Any]] = lambda _: {}
    also: tuple[str, ...] = ()
    in_front: bool = False


ENTRIES = (
    Entry(
        "population", "Population", "models.population", "the default, for nearly everything", "judged",
        arguments=lambda asked: {"personal": asked.personal}, also=("pooled",), in_front=True,
    ),
    Entry(
        "gppl", "GPPL", "papers.gppl",
        "items with many features, such as texts, also unseen ones: one smooth function for all (one for each with "
        "--personal yes)", "either",
        arguments=lambda asked: {
            "users": "pooled" if not asked.personal else "joint" if asked.items and asked.people else "separate"
        }, in_front=True,
    ),
    Entry(
        "crowd-gppl", "CrowdGPPL", "papers.crowd", "what the crowd agrees on, and along which components people differ",
        arguments=_user_features, in_front=True,
    ),
    Entry(
        "gaspk", "GaSPK", "papers.gaspk",
        "what people would give up of one attribute for another, from choices between items of few attributes",
        instead="ranks for everybody and for their average, by what they have in common. Say -c who= for one "
        "function of all answers,", in_front=True,
    ),
    Entry(
        "mixed-logit", "MixedLogit", "choice.mixed_logit",
        "choices of one item out of several, by coefficients of attributes that vary between people",
        instead="is for people who differ. Say -c who= for one set of coefficients,", in_front=True,
    ),
    Entry(
        "collaborative", "CollaborativeGP", "papers.collaborative",
        "few questions a person, chosen by predilect ask: functions that people share and weigh",
        arguments=_user_features, in_front=True,
    ),
    Entry(
        "joint", "JointGP", "papers.joint", "people and items by the features of both, for some thousand answers",
        in_front=True,
    ),
    Entry("single-user-gp", "SingleUserGP", "papers.baselines", "a baseline, a function for each person alone"),
    Entry("hierarchical-gp", "HierarchicalGP", "papers.baselines", "a baseline, people as draws from one Gaussian"),
    Entry("bonilla-gp", "BonillaGP", "papers.baselines", "a baseline, as joint"),
    Entry(
        "gp-classifier", "GPClassifier", "papers.baselines", "a baseline, one ranking for all", "one",
        "is one ranking for all; one for each person is --model single-user-gp. Say that,",
    ),
    Entry("gpvu", "GPVU", "papers.baselines", "a baseline, factors and a function of each person's own"),
    Entry("compressed", "CompressedModel", "papers.compression.model"),
)  # fmt: skip
# Settings of an estimator that have a name of their own in commands; saved models have that of the estimator.
VARIANTS = (
    Entry(
        "logit",
        "MixedLogit",
        "choice.mixed_logit",
        "conditional logit: the same coefficients for all",
        instead="is for answers of which some are one person's. Say -c who= for answers of nobody in particular,",
        arguments=lambda _: {"distributions": "fixed"},
    ),
    Entry(
        "nested-logit",
        "MixedLogit",
        "choice.mixed_logit",
        "a logit of alternatives in nests, of which those in one are alike; nests=COLUMN names them",
        instead="is for answers of which some are one person's. Say -c who= for answers of nobody in particular,",
        arguments=lambda _: {"distributions": "fixed", "nests": ""},
    ),
    Entry(
        "latent-class",
        "MixedLogit",
        "choice.mixed_logit",
        "classes of people with coefficients of their own, two or n_classes of them",
        instead="is for people who differ. Say --model logit,",
        arguments=lambda _: {"distributions": "fixed", "n_classes": 2},
    ),
)
COMMANDS: Mapping[str, Entry] = {entry.name: entry for entry in (*ENTRIES, *VARIANTS) if entry.about}
_SAVED = {name: entry for entry in ENTRIES for name in (entry.name, *entry.also)}


def estimator(name: str) -> Any:
    """The class of an estimator, by its name in commands and saved models."""
    entry = _SAVED.get(name) or COMMANDS[name]
    return getattr(import_module(f"predilect.{entry.module}"), entry.estimator)


def entry_of(kind: type) -> Entry:
    """The entry of an estimator, or of the one that it is a subclass of."""
    found = {entry.estimator: entry for entry in ENTRIES}
    return next(found[base.__name__] for base in kind.__mro__ if base.__name__ in found)


def load(path: str | Path) -> Any:
    """Read a model that an estimator's ``save`` or ``predilect rank --out`` wrote, as that estimator.

    Raises
    ------
    DataError
        If the folder holds no model, a damaged one, or one of another format.

    Examples
    --------
    >>> import tempfile, predilect
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "milk"], "right": ["milk", "tea"], "winner": ["tea", "tea"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predilect.Population().fit(answers).save(f"{folder}/model")
    ...     type(predilect.load(f"{folder}/model")).__name__
    'Population'
    """
    from predilect._base.arguments import check_arguments
    from predilect.models.saving import settled

    check_arguments(path=path)
    return settled(Path(path), _load)


def _load(path: Path) -> Any:
    from predilect.models.saving import model_folder, read_document

    path = model_folder(path)
    kind = read_document(path).get("model")
    if not isinstance(kind, str) or kind not in _SAVED:
        raise DataError(
            f"{path} holds a model called {kind!r:.100}, which this Predilect does not know. Install a newer Predilect"
        )
    return estimator(kind).load(path)
