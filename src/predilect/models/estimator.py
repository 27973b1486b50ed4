"""The base of all estimators: one ``fit``, saving and loading, and all that a fitted model has."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self, get_type_hints

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import coo_array

from predilect._base.arguments import check_arguments, check_count
from predilect._base.estimator import check_is_fitted
from predilect._base.json import plain
from predilect._base.progress import Report, Watcher
from predilect._base.stored import (
    PART,
    Fields,
    amounts,
    codes,
    fields_of,
    number_within,
    pack,
    pointer,
    within,
)
from predilect._base.text import did_you_mean, either, quoted
from predilect._base.types import FloatArray, IntArray, Table
from predilect.data import Comparisons, ItemFeatures, PersonFeatures
from predilect.data.frames import to_series
from predilect.errors import DataError
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.kernels.stored import kernel_from_dict, kernel_to_dict
from predilect.models.boards import RankingEstimator
from predilect.models.checks import LARGEST, check_flags, given_threshold
from predilect.models.reading import Training, feature_lines, read_training, results_by_item
from predilect.models.registry import entry_of
from predilect.models.saving import number, read_model, restore, sizes_of, write_model
from predilect.models.shown import ShownEstimator


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Weighted answers by person and item in CSR form: ``ptr`` (n_users + 1,), ``item`` (n_entries,), ``count``."""

    ptr: Annotated[IntArray, pointer("U+1", "Z")]
    item: Annotated[npt.NDArray[np.int32], codes("Z", "I")]
    count: Annotated[FloatArray, amounts("Z 3")]  # wins, ties and losses
    n_items: int

    @classmethod
    def of(cls, comparisons: Comparisons) -> AnswerCounts:
        """Count the answers. O(answers)."""
        user = np.concatenate([comparisons.user, comparisons.user])
        item = np.concatenate([comparisons.left, comparisons.right])
        left = np.equal.outer(comparisons.outcome, (1, 0, -1)) * comparisons.weight[:, None]
        results = np.concatenate([left, left[:, ::-1]])
        return cls.summed(user, item, results, comparisons.n_users, comparisons.n_items)

    @classmethod
    def summed(cls, user: IntArray, item: IntArray, results: FloatArray, n_users: int, n_items: int) -> AnswerCounts:
        """Add up rows of wins, ties and losses (n, 3) by codes of people and items."""
        tables = [coo_array((one, (user, item)), shape=(n_users, n_items)).tocsr() for one in results.T]
        first, count = tables[0], np.stack([one.data for one in tables], axis=1)
        return cls(first.indptr.astype(np.int64), first.indices.astype(np.int32), count, n_items)

    def of_person(self, user: int) -> FloatArray:
        """Wins, ties and losses of each item for one person, (n_items, 3); zeros for -1, an unseen user."""
        return self._of(user, user + 1)[0] if user >= 0 else np.zeros((self.n_items, 3))

    def of_people(self, start: int, stop: int) -> FloatArray:
        """Answers of the people from ``start`` to before ``stop``, shape (stop - start, n_items)."""
        return np.asarray(self._of(start, stop).sum(axis=2))

    def _of(self, start: int, stop: int) -> FloatArray:
        counts = np.zeros((stop - start, self.n_items, 3))
        entries = slice(self.ptr[start], self.ptr[stop])
        who = np.repeat(np.arange(stop - start), np.diff(self.ptr[start : stop + 1]))
        counts[who, self.item[entries]] = self.count[entries]
        return counts


class Learned(NamedTuple):
    """Result of learning that an estimator keeps.

    ``personal``: whether users are identified; ``delta``: tie threshold; ``fit``: report of the iteration; ``prior``:
    plain values on the choice of the prior.
    """

    posterior: Any
    hyperparameters: Any
    personal: bool
    delta: float
    evidence: float
    fit: Report
    prior: dict[str, Any]


class _Constructor:
    """The signature of a class as that of its ``__init__``, for tools that would show that of ``__new__``."""

    def __get__(self, model: Any, kind: type[Any]) -> Signature:
        of_init = signature(kind.__init__)
        return of_init.replace(parameters=list(of_init.parameters.values())[1:])  # without self


class Constructed:
    """Base of models whose constructor names a near miss among its parameters, as Python does from 3.13 on."""

    __signature__ = _Constructor()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        known = cls.__signature__.parameters if kwargs else {}  # of a copy, which each prediction makes, there are none
        open_ended = any(one.kind is one.VAR_KEYWORD for one in known.values())
        for name in [] if open_ended else sorted(kwargs.keys() - known.keys()):
            meant = did_you_mean(name, known) or f" It has {', '.join(known)}"
            raise TypeError(f'{cls.__name__} has no parameter "{name}".{meant}')
        return super().__new__(cls)


class Saving(ABC):
    """Base of models that are saved to a folder."""

    @abstractmethod
    def _document(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Document and arrays of a saved model."""

    @classmethod
    def _all_fields(cls, document: dict[str, Any]) -> tuple[Fields, dict[str, int]]:
        """Specification of the arrays, and the sizes that the document gives."""
        return fields_of(cls, document), sizes_of(document)

    @classmethod
    @abstractmethod
    def _from_document(cls, document: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """The model that :meth:`_document` is of; any error that damaged input leads to."""

    def _given(self) -> dict[str, Any]:
        """What the parts of a saved model take from the rest of it, by the names of their arguments."""
        return {}

    def _snapshot(self) -> Self:
        """Snapshot of the model as it is saved, whatever other threads do."""
        return copy.copy(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted model to a folder, whole or not at all: ``model.json`` and ``arrays.npz``.

        Parameters
        ----------
        path : str or Path
            The folder; docs/model-format.md describes what is in it.
        overwrite : bool, default False
            Replace what is there.

        Raises
        ------
        FileExistsError
            If the path exists and ``overwrite`` is False, or anything else than a model is there.
        OutputError
            If the folder cannot be written.
        """
        check_is_fitted(self)
        check_arguments(path=path, overwrite=overwrite)
        write_model(Path(path), *self._snapshot()._document(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        DataError
            If the folder holds no such model, a damaged one, or one of another format.
        """
        check_arguments(path=path)
        entry = entry_of(cls)
        model: Self = read_model(Path(path), (entry.name, *entry.also), cls._all_fields, cls._from_document)
        return model


class Estimator(RankingEstimator, Saving, ShownEstimator, Constructed):
    """Base of the estimators of the package; their names are in the table of :mod:`predilect.models.registry`.

    ``_each`` says what each of "{}" people has, for the first sentence of a description. Attributes that are annotated
    as :mod:`predilect._base.stored` describes are what is saved; subclasses add theirs.
    """

    _hyperparameters_type: ClassVar[Any]
    _each: ClassVar[str] = ""
    tie_threshold: Any
    strict: bool
    posterior_: Any
    hyperparameters_: Any
    log_evidence_: Annotated[float, within(-LARGEST)]
    counts_: Annotated[AnswerCounts, PART]

    # What an estimator says of itself.

    @abstractmethod
    def _check(self) -> None:
        """DataError if an argument of the constructor is out of its range."""

    def _given_threshold(self) -> float | None:
        """The tie threshold that is given, None to learn it; DataError if it is out of its range."""
        return given_threshold(self.tie_threshold)

    def _prepared(self, training: Training) -> Training:
        """The input without what the model does not take; DataError where that was asked for."""
        if training.comparisons.context is not None:
            raise DataError(
                f"{type(self).__name__} takes no contexts of answers: Population does. Read the answers without "
                f"a context, {either('or take --model population', 'or fit predilect.Population')}"
            )
        if training.comparisons.time is not None:
            raise DataError(
                f"{type(self).__name__} takes no times of answers: Population does, for one ranking for all. Read the "
                f"answers without times, {either('or take --model population', 'or fit predilect.Population')}"
            )
        if training.comparisons.covariates is not None:
            names = ", ".join(training.comparisons.covariate_names)
            raise DataError(
                f"{type(self).__name__} takes no covariates of answers ({names}): Population does. Read the answers "
                f"without covariates, {either('or take --model population', 'or fit predilect.Population')}"
            )
        answers = training.comparisons.by_pairs().without_covariates()
        return replace(training, comparisons=answers)

    @abstractmethod
    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        """Learn from answers and features; ``delta`` is the tie threshold, or None to learn it."""

    @abstractmethod
    def describe(self) -> list[str]:
        """What was learned, in sentences."""

    def _given(self) -> dict[str, Any]:
        h, space = self.hyperparameters_, self._space
        return {
            "n_items": len(self.items_), "likelihood": self._likelihood, "features": space.matrix, "known": space.known,
            "kernel": getattr(h, "kernel", None),
        }  # fmt: skip

    def _restored(self, parts: dict[str, Any]) -> None:
        """Set what follows from the stored ``parts``, by name; ValueError if they do not fit each other."""

    def _relation(self) -> str:
        """How people relate to each other, and whose the board is; empty where every answer counts once."""
        if not self.personal_ or self.users_ is None:
            return ""
        return f"{self._each.format(len(self.users_))}; the board is the average person's"

    def _name(self) -> str:
        """What the report and model.json call the model."""
        return entry_of(type(self)).name

    # Fitting.

    def fit(
        self,
        X: Comparisons | Table | None,
        y: npt.ArrayLike | None = None,
        *,
        items: Table | ItemFeatures | Sequence[Any] | None = None,
        people: Table | PersonFeatures | None = None,
        columns: Mapping[str, Any] | None = None,
        reading: Mapping[str, Any] | None = None,
        watch: Watcher | None = None,
    ) -> Self:
        """Fit the model to answers.

        Parameters
        ----------
        X : Comparisons, data frame or list of pairs (winner, loser)
            A frame needs columns for left, right and (unless ``y`` is given) the answer, and perhaps who gave it; they
            are found by common names, or named by ``columns``. ``Population`` also takes None, or a frame without rows,
            where ``items`` are given: the prior, by which all are alike.
        y : array of int, shape (n,), optional
            1 left, 0 tie, -1 right, or booleans (True: left), for the rows of a frame; not 1 and 0 alone, where 0 may
            be a tie. After booleans the classes are False and True: :attr:`classes_`.
        items : data frame, ItemFeatures, or list of ids, optional
            Features of items, one row an item, or the items alone. Items without answers are ranked too.
        people : data frame or PersonFeatures, optional
            Features of people, one row a person; kept, and used as the description of the class says.
        columns, reading : dict, optional
            How a frame is read, as for :meth:`Comparisons.from_frame <predilect.Comparisons.from_frame>`:
            ``columns={"left": "first_shown"}``, ``reading={"drop": "missing", "tie": "skipped"}``.
        watch : callable, optional
            Called with progress: ``watch(stage, done)``.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the input cannot be used, or is more than the model can hold.
        """
        check_flags(self)
        check_count("random_state", self.random_state, 0, None)
        self._check()
        self._draw_seed()
        delta = self._given_threshold()
        training = self._prepared(
            read_training(X, y, items, people, delta, columns, reading, **self._without_answers())
        )
        learned = self._learn(training, delta, watch)
        self._is_binary = y is not None and to_series(y).dtype == pl.Boolean
        self._keep(training, learned)
        learned.fit.require(self.strict)
        return self

    def _without_answers(self) -> dict[str, bool]:
        """Whether the model says something without answers, as :func:`read_training` takes it."""
        return {}

    def _keep(self, training: Training, learned: Learned) -> None:
        """Set the attributes that every fitted model has."""
        answers, features, space = training.comparisons, training.features, training.space
        self.posterior_ = learned.posterior
        self.hyperparameters_ = learned.hyperparameters
        self.personal_ = learned.personal
        self.tie_threshold_ = learned.delta
        self.log_evidence_ = learned.evidence
        self.items_ = answers.items
        self.users_ = answers.users if answers.has_users else None
        self._added_users: dict[Any, int] = {}
        self.features_, self.user_features_, self._space = features, training.people, space
        self._backend = answers.backend
        self.n_answers_ = answers.n_answers
        self.results_by_item_ = results_by_item(answers)
        self._begin(answers)
        self.report_ = plain(
            {
                "model": self._name(),
                "fit": learned.fit.to_dict(),
                "timing": {"fit_seconds": learned.fit.seconds},
                "prior": learned.prior,
                "intake": answers.intake.describe(),
                "features": [] if features is None else feature_lines(features, space),
            }
        )

    def _begin(self, answers: Comparisons | None) -> None:
        """Set what later answers and questions need of those of the fit; None: the model was loaded."""
        self.comparisons_ = answers
        if answers is not None:
            self.counts_ = AnswerCounts.of(answers)

    def _results_of(self, user: int) -> FloatArray:
        return self.counts_.of_person(user)

    def _answers_of_people(self, start: int, stop: int) -> FloatArray:
        """See :meth:`~predilect.models.boards.RankingEstimator._answers_of_people`."""
        return self.counts_.of_people(start, stop)

    def _stored_arrays(self) -> dict[str, Any]:
        """See :meth:`~predilect.models.boards.RankingEstimator._stored_arrays`."""
        return pack(self)[1]

    # Saving and loading.

    def _document(self) -> tuple[dict[str, Any], dict[str, Any]]:
        values, arrays = pack(self)
        h, parameters = self.hyperparameters_, self.get_params() | {"random_state": self.seed_}
        return {
            "model": self._name(),
            "parameters": {name: _plain(value) for name, value in parameters.items()},
            "hyperparameters": {field.name: _plain(getattr(h, field.name)) for field in fields(h)},
            **values,
        }, arrays

    @classmethod
    def _from_document(cls, document: dict[str, Any], arrays: dict[str, Any]) -> Self:
        model = cls(**cls._parameters(document["parameters"]))
        model.hyperparameters_ = cls._hyperparameters(document["hyperparameters"])
        model._check()
        model._given_threshold()
        parts = restore(model, document, arrays)
        if document["model"] != model._name():
            raise ValueError(f"a model called {document['model']!r} that is {model._name()!r}")
        model._begin(None)
        model._restored(parts)
        model.describe()  # what the report lacks is found here, and not when somebody asks
        return model

    @classmethod
    def _parameters(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the constructor from a saved model."""
        return {name: _parameter(value) for name, value in values.items()}

    @classmethod
    def _hyperparameters(cls, values: dict[str, Any]) -> Any:
        """Hyper-parameters of a saved model; ValueError if one is out of its range."""
        found = cls._hyperparameters_type(**{name: _parameter(value) for name, value in values.items()})
        for name, hint in get_type_hints(cls._hyperparameters_type).items():
            value = getattr(found, name)
            if hint in (int, float):
                number_within(name, value, 0.0, math.inf)
            elif hint is Kernel and not isinstance(value, Kernel):
                raise ValueError(f"{name} must be a kernel, not {quoted(value)}")
        return found


def _plain(value: Any) -> Any:
    return kernel_to_dict(value) if isinstance(value, Kernel) else plain(value)


def _parameter(value: Any) -> Any:
    if isinstance(value, list):  # JSON has no tuples
        return tuple(_parameter(part) for part in value)
    return kernel_from_dict(value) if isinstance(value, dict) and "type" in value else number(value)
