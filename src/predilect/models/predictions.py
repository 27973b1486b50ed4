"""Estimator methods that predict answers."""

from __future__ import annotations

import copy
import math
import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from predilect._types import FloatArray, IntArray
from predilect.data import ItemFeatures, Vocabulary
from predilect.data.features import FeatureSpace
from predilect.decisions.ranking import refuse_unsound
from predilect.errors import DataWarning
from predilect.gaussian.posterior import Posterior
from predilect.models.reading import Queries, new_item_space, read_answers, read_queries


class Predicting(ABC):
    """Base of estimators: predictions from the margins of their posterior.

    ``personal_``: whether people are told apart; ``added_users_``: codes of people who came after the fit; ``space_``:
    the features of the items; ``features_``: how they are encoded.
    """

    posterior_: Posterior
    items_: Vocabulary
    users_: Vocabulary | None
    personal_: bool
    added_users_: dict[Any, int]
    tie_threshold_: float
    features_: ItemFeatures | None
    space_: FeatureSpace

    @abstractmethod
    def _margins(self, queries: Queries, items: Any, users: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the margins; ``items`` and ``users`` as :meth:`predict_margin` takes them."""

    @property
    def classes_(self) -> IntArray:
        """What :meth:`predict` returns, in the order of the columns of :meth:`predict_proba`: left, tie, right."""
        return np.array([1, 0, -1])

    def predict_margin(self, X: Any, *, items: Any = None, users: Any = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right) for each pair.

        Parameters
        ----------
        X : Comparisons or data frame
            Columns left, right and perhaps user, in any order of rows; an unseen user gets the population's prediction.
            (Comparisons are in their canonical order.)
        items : data frame, optional
            Features of items that the model does not know. Without them such an item gets the prior, with a warning.
        users : data frame, optional
            Features of unseen users; used if the model uses features of people.

        Returns
        -------
        mean, variance : arrays of float, shape (n,)
            In units of the noise of one answer, which is not included.

        Raises
        ------
        DataError
            If a column or an id is missing, or a pair compares an item with itself.

        Notes
        -----
        Microseconds a pair.
        """
        return self._asked(X, items, users)[1:3]

    def predict_proba(self, X: Any, *, items: Any = None, users: Any = None) -> FloatArray:
        """Probabilities of left, tie and right for each pair; shape (n, 3). Parameters as :meth:`predict_margin`."""
        now, mean, var, queries = self._asked(X, items, users)
        return now._chances(mean, var, queries)

    def predict_margin_and_proba(
        self, X: Any, *, items: Any = None, users: Any = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Results of :meth:`predict_margin` and :meth:`predict_proba`, at the cost of one."""
        now, mean, var, queries = self._asked(X, items, users)
        return mean, var, now._chances(mean, var, queries)

    def predict_log_proba(self, X: Any, *, items: Any = None, users: Any = None) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, accurate however small a probability is; shape (n, 3)."""
        now, mean, var, queries = self._asked(X, items, users)
        return now._log_chances(mean, var, queries)

    def predict(self, X: Any, *, items: Any = None, users: Any = None) -> IntArray:
        """The likeliest outcome of each pair: 1 left, 0 tie, -1 right; shape (n,)."""
        return self.classes_[np.argmax(self.predict_proba(X, items=items, users=users), axis=1)]

    def score(self, X: Any, y: npt.ArrayLike | None = None, *, items: Any = None, users: Any = None) -> float:
        """Mean log-likelihood of answers, in nats an answer (higher is better; log loss is its negative)."""
        check_is_fitted(self, "posterior_")
        answers = read_answers(X, y, with_ties=self.tie_threshold_ > 0.0)
        if self.tie_threshold_ == 0.0 and answers.has_ties:
            warnings.warn(
                "the model was fitted without ties and gives them probability 0, but some answers are ties: the score "
                "is minus infinity. Fit on answers with ties, or leave them out", DataWarning, stacklevel=2,
            )  # fmt: skip
            return -math.inf
        log_proba = self.predict_log_proba(answers, items=items, users=users)
        log_p = log_proba[np.arange(answers.n_rows), 1 - answers.outcome]
        return float(np.average(log_p, weights=answers.weight))

    def _asked(self, X: Any, items: Any, users: Any) -> tuple[Self, FloatArray, FloatArray, Queries]:
        """Snapshot of the model, whatever other threads do; mean and variance of the margins, and their pairs."""
        now = copy.copy(self)
        check_is_fitted(now, "posterior_")
        queries = read_queries(X, now.items_, now.users_ if now.personal_ else None, now.added_users_)
        if queries.n_unknown_users:
            warnings.warn(
                f"{queries.n_unknown_users} of {len(queries.users)} pairs name someone without answers in this model: "
                "the population's prediction is given", DataWarning, stacklevel=3,
            )  # fmt: skip
        mean, var = now._margins(queries, items, users)
        refuse_unsound(mean, var)
        return now, mean, np.maximum(var, 0.0), queries  # rounding may leave -1e-17

    def _chances(self, mean: FloatArray, var: FloatArray, queries: Queries) -> FloatArray:
        """Probabilities of the answers at margins with this mean and variance."""
        pairs = queries.users, queries.left, queries.right
        return self.posterior_.outcome_proba(mean, var, *pairs, self.tie_threshold_)

    def _log_chances(self, mean: FloatArray, var: FloatArray, queries: Queries) -> FloatArray:
        """Their logarithms."""
        pairs = queries.users, queries.left, queries.right
        return self.posterior_.outcome_log_proba(mean, var, *pairs, self.tie_threshold_)

    def _new_items(self, queries: Queries, items: Any) -> FeatureSpace | None:
        """Feature space of the items that the model does not know; None if it knows them all."""
        if not queries.new_items:
            return None
        new = new_item_space(queries.new_items, self.features_, items, self.space_.matrix.shape[1])
        if not new.known.all():
            lost = [item for item, known in zip(queries.new_items, new.known, strict=True) if not known]
            warnings.warn(
                f"{len(lost)} of the items asked about are not known to the model and come without features (first: "
                f"{lost[0]!r}): they get the prior. Give their features (--items FILE, items=...)",
                DataWarning,
                stacklevel=5,
            )
        return new
