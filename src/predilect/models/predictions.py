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
from predilect.likelihoods.probit import outcome_log_probabilities, outcome_probabilities
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
        return self._asked(X, items, users)[:2]

    def predict_proba(self, X: Any, *, items: Any = None, users: Any = None) -> FloatArray:
        """Probabilities of left, tie and right for each pair; shape (n, 3). Parameters as :meth:`predict_margin`.

        Notes
        -----
        Where people have tie thresholds of their own, one without answers may have any: their probabilities are
        averaged over the spread of thresholds.
        """
        return self._chances(*self._asked(X, items, users))

    def predict_margin_and_proba(
        self, X: Any, *, items: Any = None, users: Any = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What :meth:`predict_margin` and :meth:`predict_proba` return, at the cost of one."""
        asked = self._asked(X, items, users)
        return asked[0], asked[1], self._chances(*asked)

    def predict_log_proba(self, X: Any, *, items: Any = None, users: Any = None) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, right however small a probability is; shape (n, 3)."""
        mean, var, queries = self._asked(X, items, users)
        var = self._factors(queries) * var
        log_p = outcome_log_probabilities(mean, var, self._thresholds(queries.users))
        if (open_ := self._open(queries.users)).any():
            log_p[open_] = self._averaged(mean[open_], var[open_])
        return log_p

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
        log_p = self.predict_log_proba(answers, items=items)[np.arange(answers.n_rows), 1 - answers.outcome]
        return float(np.average(log_p, weights=answers.weight))

    def _asked(self, X: Any, items: Any, users: Any) -> tuple[FloatArray, FloatArray, Queries]:
        """Margins, and the pairs they are of."""
        check_is_fitted(self, "posterior_")
        queries = read_queries(X, self.items_, self.users_ if self.personal_ else None, self.added_users_)
        posterior = self._extended(queries, items)
        if isinstance(posterior, GaussianPosterior):
            return *posterior.margins(queries.users, queries.left, queries.right), queries
        traits = self._traits_of_new(queries, users)
        warm_up()
        with workers(self.n_jobs) as executor:
            margins = posterior.margins(queries.users, queries.left, queries.right, traits=traits, executor=executor)
        return *margins, queries

    def _chances(self, mean: FloatArray, var: FloatArray, queries: Queries) -> FloatArray:
        var = self._factors(queries) * var
        chances = outcome_probabilities(mean, var, self._thresholds(queries.users))
        if (open_ := self._open(queries.users)).any():
            chances[open_] = np.exp(self._averaged(mean[open_], var[open_]))
        return chances

    def _factors(self, queries: Queries) -> FloatArray | float:
        """What probabilities take a margin's variance times, row by row where it matters what people answered on."""
        h = self.hyperparameters_
        if isinstance(self.posterior_, GaussianPosterior) or h.unseen_factor == h.variance_factor:
            return h.variance_factor
        n_unseen = self.posterior_.n_unseen(queries.users, queries.left, queries.right)
        steps = np.linspace(math.log(h.variance_factor), math.log(h.unseen_factor), 3)
        return np.asarray(np.exp(steps)[n_unseen])

    def _thresholds(self, users: npt.NDArray[np.integer]) -> FloatArray | float:
        """Tie thresholds, row by row where people have their own."""
        if isinstance(self.posterior_, GaussianPosterior) or not self.hyperparameters_.tie_spread:
            return self.tie_threshold_
        return self.tie_threshold_ * self.posterior_.tie_factors(users)

    def _open(self, users: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Which rows are of someone whose own tie threshold nothing is known of."""
        if isinstance(self.posterior_, GaussianPosterior) or not self.hyperparameters_.tie_spread:
            return np.zeros(len(users), dtype=bool)
        return self.posterior_.are_silent(users)

    def _averaged(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return outcome_log_probabilities(mean, var, self.tie_threshold_, self.hyperparameters_.tie_spread)

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
