"""The methods of an estimator that predict answers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from predilect.data import ItemFeatures, PersonFeatures, Vocabulary
from predilect.errors import DataWarning
from predilect.inference.basis import Functions
from predilect.inference.prior import FeatureSpace, Hyperparameters
from predilect.inference.training import extend
from predilect.inference.traits import Traits
from predilect.inference.warm_up import warm_up
from predilect.likelihoods.probit import outcome_probabilities, tilted
from predilect.models.inputs import read_answers
from predilect.models.queries import Queries, new_item_space, read_queries, rows_of_features
from predilect.posteriors.gaussian import GaussianPosterior
from predilect.posteriors.population import PopulationPosterior
from predilect.scale.shards import workers

__all__ = ["Predicting"]

FloatArray = npt.NDArray[np.float64]


class Predicting:
    """What :class:`~predilect.Population` inherits."""

    posterior_: PopulationPosterior | GaussianPosterior
    items_: Vocabulary
    users_: Vocabulary | None
    personal_: bool
    added_users_: dict[Any, int]
    hyperparameters_: Hyperparameters
    tie_threshold_: float
    features_: ItemFeatures | None
    user_features_: PersonFeatures | None
    space_: FeatureSpace
    functions_: Functions | None
    traits_: Traits | None
    n_jobs: int | None

    @property
    def classes_(self) -> list[str]:
        """Order of the columns of :meth:`predict_proba`."""
        return ["left", "tie", "right"]

    def predict_margin(self, X: Any, *, items: Any = None, users: Any = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right) for each pair.

        Parameters
        ----------
        X : Comparisons or data frame
            Columns left, right and perhaps user, in any order of rows; a person whom the model does not know gets the
            population's prediction. (Comparisons are in their canonical order.)
        items : data frame, optional
            Features of items that the model does not know. Without them such an item gets the prior, with a warning.
        users : data frame, optional
            Features of people whom the model does not know; used if the model uses features of people.

        Returns
        -------
        mean, variance : arrays of float, shape (n,)
            In units of the noise of one answer, which is not included.

        Notes
        -----
        population.md section 6 for new items. Microseconds a pair.
        """
        check_is_fitted(self, "posterior_")
        queries = read_queries(X, self.items_, self.users_ if self.personal_ else None, self.added_users_)
        posterior = self._extended(queries, items)
        if isinstance(posterior, GaussianPosterior):
            return posterior.margins(queries.users, queries.left, queries.right)
        traits = self._traits_of_new(queries, users)
        warm_up()
        with workers(self.n_jobs) as executor:
            return posterior.margins(queries.users, queries.left, queries.right, traits=traits, executor=executor)

    def predict_proba(self, X: Any, *, items: Any = None, users: Any = None) -> FloatArray:
        """Probabilities of left, tie and right for each pair; shape (n, 3). Parameters as :meth:`predict_margin`."""
        mean, var = self.predict_margin(X, items=items, users=users)
        return outcome_probabilities(mean, self.hyperparameters_.variance_factor * var, self.tie_threshold_)

    def predict_log_proba(self, X: Any, *, items: Any = None, users: Any = None) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, right however small a probability is; shape (n, 3)."""
        mean, var = self.predict_margin(X, items=items, users=users)
        var, delta = self.hyperparameters_.variance_factor * var, self.tie_threshold_
        left, right = (tilted(np.full(len(mean), y), mean, var, delta)[0] for y in (1, -1))
        tie = tilted(np.zeros(len(mean)), mean, var, delta)[0] if delta > 0.0 else np.full(len(mean), -np.inf)
        return np.column_stack([left, tie, right])

    def predict(self, X: Any, *, items: Any = None, users: Any = None) -> npt.NDArray[np.int64]:
        """The likeliest outcome of each pair: 1 left, 0 tie, -1 right; shape (n,)."""
        return np.array([1, 0, -1])[np.argmax(self.predict_proba(X, items=items, users=users), axis=1)]

    def score(self, X: Any, y: npt.ArrayLike | None = None, *, items: Any = None) -> float:
        """Mean log-likelihood of answers, in nats an answer (higher is better; log loss is its negative)."""
        check_is_fitted(self, "posterior_")
        answers = read_answers(X, y)
        if self.tie_threshold_ == 0.0 and answers.has_ties:
            warnings.warn(
                "the model was fitted without ties and gives them probability 0, but some answers are ties: the score "
                "is minus infinity. Fit on answers with ties, or leave them out", DataWarning, stacklevel=2,
            )  # fmt: skip
            return -math.inf
        mean, var = self.predict_margin(answers, items=items)
        log_p = tilted(answers.outcome, mean, self.hyperparameters_.variance_factor * var, self.tie_threshold_)[0]
        return float(np.average(log_p, weights=answers.weight))

    def _traits_of_new(self, queries: Queries, users: Any) -> FloatArray | None:
        """Traits of the people whom the model does not know, row by row of the queries; None if they do not matter."""
        people = self.user_features_
        if users is None or self.traits_ is None or people is None or not queries.new_users:
            return None
        traits = self.traits_.transform(*rows_of_features(queries.new_users, people, users))
        return np.where((queries.unknown_users >= 0)[:, None], traits[queries.unknown_users], 0.0)

    def _extended(self, queries: Queries, items: Any) -> PopulationPosterior | GaussianPosterior:
        """The posterior, with items that it does not know appended."""
        if queries.n_unknown_users:
            warnings.warn(
                f"{queries.n_unknown_users} of {len(queries.users)} pairs name someone without answers in this model: "
                "the population's prediction is given", DataWarning, stacklevel=4,
            )  # fmt: skip
        posterior: PopulationPosterior | GaussianPosterior = self.posterior_
        if not queries.new_items:
            return posterior
        new = new_item_space(queries.new_items, self.features_, items, self.space_.matrix.shape[1])
        if not new.known.all():
            lost = [item for item, known in zip(queries.new_items, new.known, strict=True) if not known]
            warnings.warn(
                f"{len(lost)} of the items asked about are not known to the model and come without features (first: "
                f"{lost[0]!r}): they get the prior. Give their features (--items FILE, items=...)",
                DataWarning,
                stacklevel=4,
            )
        return extend(posterior, self.hyperparameters_, self.space_, new, self.functions_)
