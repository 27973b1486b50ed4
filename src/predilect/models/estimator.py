"""Fitted attributes, saving and loading of estimators on Gaussian processes."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, get_type_hints

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from predilect._json import plain, typed
from predilect.data import Comparisons, ItemFeatures, PersonFeatures, Vocabulary
from predilect.data.space import FeatureSpace
from predilect.gaussian.kernels import Kernel
from predilect.models.checks import check_flags, given_threshold
from predilect.models.counts import AnswerCounts
from predilect.models.fields import LARGEST, Fields, amounts, codes, pointer
from predilect.models.kernels import kernel_from_dict, kernel_to_dict
from predilect.models.reading import Training, answers_by_item, feature_lines, read_training
from predilect.models.saving import SHARED_ARRAYS, number, number_within, read_model, restore, sizes_of, write_model
from predilect.progress import Report, Watcher

FloatArray = npt.NDArray[np.float64]

_COUNTS: Fields = {"count_ptr": pointer("U+1", "Z"), "count_item": codes("Z", "I"), "count": amounts("Z")}


class Keeping(ABC):
    """Base of estimators that pack their posterior into arrays; ``model_name`` is "model" in model.json."""

    model_name: ClassVar[str]
    hyperparameters_type: ClassVar[Any]
    hyperparameters_: Any
    counts_: AnswerCounts
    items_: Vocabulary
    users_: Vocabulary | None
    personal_: bool
    features_: ItemFeatures | None
    user_features_: PersonFeatures | None
    space_: FeatureSpace
    report_: dict[str, Any]

    @abstractmethod
    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain values, and arrays, that make the posterior."""

    @classmethod
    @abstractmethod
    def _fields(cls, document: dict[str, Any]) -> Fields:
        """Specification of the arrays that :meth:`_pack` packed."""

    @abstractmethod
    def _check(self) -> None:
        """ValueError if an argument of the constructor is out of its range."""

    @abstractmethod
    def describe(self) -> list[str]:
        """What was learned, in sentences."""

    @abstractmethod
    def _unpack(self, values: dict[str, Any], arrays: dict[str, Any]) -> Any:
        """The posterior that :meth:`_pack` packed; everything else is there already."""

    def _keep(
        self,
        training: Training,
        *,
        posterior: Any,
        hyperparameters: Any,
        personal: bool,
        delta: float,
        evidence: float,
        fit: Report,
        prior: dict[str, Any],
    ) -> None:
        """Set the attributes that every fitted model has."""
        answers, features, space = training.comparisons, training.features, training.space
        self.posterior_ = posterior
        self.hyperparameters_ = hyperparameters
        self.personal_ = personal
        self.tie_threshold_ = delta
        self.log_evidence_ = evidence
        self.items_ = answers.items
        self.users_ = answers.users if answers.has_users else None
        self.added_users_: dict[Any, int] = {}
        self.features_, self.user_features_, self.space_ = features, training.people, space
        self.backend_ = answers.backend
        self.n_answers_ = answers.n_answers
        self.n_by_item_ = answers_by_item(answers)
        self.counts_ = AnswerCounts.of(answers)
        self.comparisons_: Comparisons | None = answers
        self.report_ = plain(
            {
                "model": self.model_name,
                "fit": fit.to_dict(),
                "timing": {"fit_seconds": fit.seconds},
                "prior": prior,
                "intake": answers.intake.describe(),
                "features": [] if features is None else feature_lines(features, space),
            }
        )

    def _answers_of(self, user: int) -> FloatArray:
        return self.counts_.of_person(user)

    def answers_of_people(self, start: int, stop: int) -> FloatArray:
        """See :meth:`Ranking.answers_of_people <predilect.models.boards.Ranking.answers_of_people>`."""
        return self.counts_.of_people(start, stop)

    def stored_arrays(self) -> dict[str, Any]:
        """See :meth:`Ranking.stored_arrays <predilect.models.boards.Ranking.stored_arrays>`."""
        counts = self.counts_
        return {**self._pack()[1], "ptr": counts.ptr, "item": counts.item, "count": counts.count}

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
            If the path exists and ``overwrite`` is False.
        """
        check_is_fitted(self, "posterior_")
        now: Any = copy.copy(self)  # as it is now, whatever other threads do
        values, arrays = now._pack()
        counts, people = now.counts_, now.user_features_
        shared = {
            "n_by_item": now.n_by_item_, "feature_matrix": now.space_.matrix, "feature_known": now.space_.known,
            "count_ptr": counts.ptr, "count_item": counts.item, "count": counts.count,
        }  # fmt: skip
        parameters = now.get_params()
        document = {
            "model": now.model_name,
            "personal": now.personal_,
            "parameters": {name: _plain(value) for name, value in parameters.items()},
            "hyperparameters": {name: _plain(getattr(now.hyperparameters_, name)) for name in now._names()},
            "posterior": plain(values),
            "tie_threshold": now.tie_threshold_,
            "log_evidence": now.log_evidence_,
            "n_answers": now.n_answers_,
            "frame_kind": now.backend_,
            "items": now.items_.ids,
            "users": None if now.users_ is None else now.users_.ids,
            "item_features": None if now.features_ is None else now.features_.to_dict(),
            "user_features": None if people is None else people.to_dict(),
            "report": {key: value for key, value in now.report_.items() if key != "timing"},
        }
        write_model(Path(path), document, {**shared, **arrays}, overwrite=overwrite)

    @classmethod
    def _names(cls) -> list[str]:
        return [field.name for field in fields(cls.hyperparameters_type)]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        DataError
            If the folder holds no such model, a damaged one, or one of a later format.
        """
        model: Self = read_model(Path(path), (cls.model_name,), cls._all_fields, cls._from_document)
        return model

    @classmethod
    def _all_fields(cls, document: dict[str, Any]) -> tuple[Fields, dict[str, int]]:
        return SHARED_ARRAYS | _COUNTS | cls._fields(document), sizes_of(document)

    @classmethod
    def _from_document(cls, document: dict[str, Any], arrays: dict[str, Any]) -> Self:
        model = cls(**{name: _parameter(value) for name, value in document["parameters"].items()})
        model.hyperparameters_ = cls.hyperparameters_type(
            **{name: _parameter(value) for name, value in document["hyperparameters"].items()}
        )
        for name, hint in get_type_hints(cls.hyperparameters_type).items():
            value = getattr(model.hyperparameters_, name)
            if hint in (int, float):
                number_within(name, value, 0.0, math.inf)
            elif hint is Kernel and not isinstance(value, Kernel):
                raise ValueError(f"{name} must be a kernel, not {value!r:.100}")
        model._check()
        restore(model, document, arrays)
        model.personal_ = typed(bool, document["personal"], "personal")
        model.log_evidence_ = number_within("log_evidence", document["log_evidence"], -LARGEST, LARGEST)
        model.counts_ = AnswerCounts(arrays["count_ptr"], arrays["count_item"], arrays["count"], len(model.items_))
        model.comparisons_ = None
        model.posterior_ = model._unpack(document["posterior"], arrays)
        model.describe()  # what the report lacks is found here, and not when somebody asks
        return model


def _plain(value: Any) -> Any:
    return kernel_to_dict(value) if isinstance(value, Kernel) else plain(value)


def _parameter(value: Any) -> Any:
    if isinstance(value, list):  # JSON has no tuples
        return tuple(_parameter(part) for part in value)
    return kernel_from_dict(value) if isinstance(value, dict) and "type" in value else number(value)


class Learned(NamedTuple):
    """Result of learning that an estimator keeps.

    ``personal``: whether people are told apart; ``delta``: tie threshold; ``fit``: report of the iteration; ``prior``:
    plain values on the choice of the prior.
    """

    posterior: Any
    hyperparameters: Any
    personal: bool
    delta: float
    evidence: float
    fit: Report
    prior: dict[str, Any]


class Fitting(Keeping):
    """Base of estimators that say how they check their arguments, and how they learn."""

    tie_threshold: float | str
    strict: bool

    @abstractmethod
    def _check(self) -> None:
        """ValueError if an argument of the constructor is out of its range."""

    @abstractmethod
    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        """Learn from answers and features; ``delta`` is the tie threshold, or None to learn it."""

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        items: Any = None,
        users: Any = None,
        watch: Watcher | None = None,
    ) -> Self:
        """Fit the model to answers.

        Parameters
        ----------
        X, y, items, watch
            As :meth:`Population.fit <predilect.Population.fit>` takes them.
        users : data frame or PersonFeatures, optional
            Features of people, one row a person; kept, and used as the description of the class says.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the input cannot be used, or is more than the model can hold.
        """
        check_flags(self)
        self._check()
        delta = given_threshold(self.tie_threshold)
        training = read_training(X, y, items, users, delta)
        learned = self._learn(training, delta, watch)
        self._keep(training, **learned._asdict())
        learned.fit.require(self.strict)
        return self
