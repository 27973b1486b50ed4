"""The ``fit`` of estimators that learn from all answers at once."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy.typing as npt

from predilect.inference.report import Report
from predilect.inference.training import Watcher
from predilect.models.inputs import Training, read_training
from predilect.models.keeping import Keeping
from predilect.models.parameters import check_flags, given_threshold

__all__ = ["Fitting", "Learned"]


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
