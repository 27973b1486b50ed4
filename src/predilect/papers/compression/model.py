"""``CompressedModel``: a fitted model reduced to the items that matter to each person."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_choice, check_count
from predilect._base.estimator import Parameters, check_is_fitted, clone
from predilect._base.json import plain
from predilect._base.progress import Watcher
from predilect._base.stored import PART
from predilect._base.types import BoolArray, FloatArray
from predilect.data import Comparisons, ItemFeatures, PersonFeatures
from predilect.data.features import FeatureSpace
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.models.boards import RankingEstimator
from predilect.models.checks import check_flags
from predilect.models.estimator import Constructed, Saving
from predilect.models.reading import PairQueries, read_queries
from predilect.papers.compression.criteria import Criterion, Score, criterion_for, said_of
from predilect.papers.compression.losses import Loss, expected_loss, find_loss
from predilect.papers.compression.sparsify import people_of_model, sparsify
from predilect.papers.compression.storage import (
    PRECISIONS,
    all_fields_of,
    document_of,
    from_document,
    rounded,
    stored_bytes,
    stored_posterior,
)

_MOST_PEOPLE, _MOST_KEPT = 100, 7  # whose answers are compared with the full model's, and kept items of each


@dataclass(eq=False, repr=False)
class CompressedModel(RankingEstimator, Saving, Constructed, Parameters):
    """A model of which each person keeps a few items: small, quick to predict with, and exact for the items kept.

    Made by the method ``compress`` of a fitted model, or from answers: :meth:`fit` fits ``estimator`` and compresses.

    Parameters
    ----------
    estimator : estimator
        The model to fit; not used by ``compress``, and not saved.
    keep : int, float, str or None, default "20%"
        Items that each person keeps: a number, or a share, rounded up. None where ``budget`` is given.
    loss : str or callable, default "regret"
        Use of the compressed model: "regret", "recommendation", "zero_one", "log", or a function; see
        :mod:`predilect.papers.compression.losses`. The report has the expected loss of compressing.
    criterion : str, criterion or callable, default "auto"
        "voi", value of information; "ucb", exponential utility; "pairs", the items that tell most of the others;
        "ivm", those of least variance; "answers", those of the most informative answers; one of
        :mod:`predilect.compression` where it has settings, such as ``UCB(beta=3, taylor=True, raw=True)``, the
        paper's; or a function of a person's code and utilities that scores the items, the larger the better. "auto":
        "voi" for regret, "ucb" for recommendation and for a function, "pairs" for the others, with more than 500 items
        or a budget "ivm".
    budget : int, optional
        Items of all people together, instead of ``keep``.
    local : bool, default True
        Whether moments are kept person by person. False, for a joint process: the covariance of all kept utilities, so
        that new people, new items and dropped items are predicted from all people's kept ones.
    precision : {"half", "single", "double"}, default "half"
        Of the kept moments. "half": means to 7 digits and the variance of any difference to 3; "single": all
        to 7 digits, in up to twice the bytes; "double": 16 digits, in twice as many again.
    random_state : int or None, default 0
        Of the draws behind the expected loss, and of those behind rank intervals.

    Attributes
    ----------
    posterior_ : SubsetPosterior, or with ``local=False`` the full model's, restricted
    items_, users_, personal_, tie_threshold_, n_answers_, results_by_item_
        As those of the full model.
    report_ : dict
        ``of``, the kind of the full model; ``compressed``, what was kept and how, and of a GaSPK by how much
        probabilities of kept pairs have ``moved`` from the full model's (mean, 95 % quantile); ``loss``, the expected
        loss.

    Notes
    -----
    vvm.md 3 and docs/papers/vvm.md. A pair of kept items has the full model's prediction; of a GaSPK, which
    evaluates trade-offs, their difference of scores, and ``report_`` says how far off that is. A dropped item is
    predicted from the person's kept ones by the population's covariance of utilities, with a warning; a new person is
    an unseen user (features of new people and items are used with ``local=False`` only). Of a pooled model the crowd is
    the one person: its boards and its predictions of all items stay the full model's, and ``keep`` is what may be
    recommended.

    Examples
    --------
    >>> import predilect
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "milk"], "right": ["milk", "tea"], "winner": ["tea", "tea"]}
    >>> small = predilect.Population().fit(answers).compress(keep=1)
    >>> small.kept("bob")
    ['milk']
    """

    posterior_: Any = field(init=False)
    covariates_: Annotated[CovariateEffects | None, PART] = field(init=False)

    estimator: Any = None
    keep: Any = "20%"
    loss: str | Loss = "regret"
    criterion: str | Criterion | Score = "auto"
    budget: int | None = None
    local: bool = True
    precision: str = "half"
    random_state: int | None = 0

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        items: Any = None,
        people: Any = None,
        columns: Mapping[str, Any] | None = None,
        reading: Mapping[str, Any] | None = None,
        watch: Watcher | None = None,
    ) -> Self:
        """Fit a copy of ``estimator`` to answers, and compress it; parameters as its own ``fit`` takes them.

        Raises
        ------
        DataError
            If there is no estimator, or the answers or a parameter cannot be used.
        """
        if self.estimator is None:
            raise DataError("there is no estimator to fit: CompressedModel(Population()), or model.compress()")
        return self._compress(
            clone(self.estimator).fit(X, y, items=items, people=people, columns=columns, reading=reading, watch=watch)
        )

    def _compress(self, model: Any) -> Self:
        check_flags(self)
        check_count("random_state", self.random_state, 0, None)
        self._draw_seed()
        check_choice("precision", self.precision, PRECISIONS)
        name, _ = find_loss(self.loss)
        if not hasattr(model, "posterior_"):
            raise DataError(f"this {type(model).__name__} is not fitted: call fit() first")
        model = copy.copy(model)  # other threads may update it meanwhile
        if hasattr(model, "_consolidate"):
            model._consolidate()  # people lie in the order of users_ then
        usual = criterion_for(name, len(model.items_), has_budget=self.budget is not None)
        criterion = usual if isinstance(self.criterion, str) and self.criterion == "auto" else self.criterion
        people = people_of_model(model)
        found = sparsify(model, self.keep, criterion, budget=self.budget, local=self.local, people=people)
        # The whole covariance is not rounded: it is multiplied by the inverse of the prior's.
        self.posterior_ = rounded(found, self.precision) if self.local else found
        self.items_, self.personal_ = model.items_, model.personal_
        self.users_ = model.users_ if model.personal_ else None
        self._added_users: dict[Any, int] = {}
        self._likelihood, self._is_binary = model._likelihood, model._is_binary
        effects = model._covariate_effects()
        self.covariates_ = None if effects is None else effects.of_anybody()
        self.tie_threshold_, self.n_answers_ = model.tie_threshold_, model.n_answers_
        self.results_by_item_, self._backend = model.results_by_item_, model._backend
        self.features_: ItemFeatures | None = None
        self.user_features_: PersonFeatures | None = None
        self._space = FeatureSpace.empty(len(self.items_))
        if not self.local:
            self.features_, self.user_features_, self._space = model.features_, model.user_features_, model._space
        of = model.report_["model"]
        self._begin(None)
        self.origin_ = getattr(model, "origin_", of)
        cost = expected_loss(model, self.posterior_, self.loss, random_state=self.seed_, people=people)
        self.report_: dict[str, Any] = plain({
            "model": "compressed", "of": of,
            "compressed": {
                "keep": None if self.keep is None else str(self.keep), "budget": self.budget,
                "criterion": said_of(criterion),
                "local": self.local, "n_kept": self.posterior_.n_kept,
                "n_cells": len(self.items_) * (len(self.users_) if self.personal_ and self.users_ is not None else 1),
                "bytes": stored_bytes(self), "bytes_full": stored_bytes(model),
            },
            "loss": cost.to_dict(), "features": [],
            **{name: model.report_[name] for name in ("fit", "timing", "intake") if name in model.report_},
        })  # fmt: skip
        if not model.posterior_.by_utilities:
            self.report_["compressed"]["moved"] = self._moved_from(model)
        return self

    def _moved_from(self, model: Any) -> dict[str, float] | None:
        """Differences from the full model's probabilities over the pairs of 7 kept items of 100 people."""
        rng, asked = np.random.default_rng(self.seed_), list[tuple[int, int, int]]()
        for user in rng.permutation(len(self.users_ or ()))[:_MOST_PEOPLE].tolist():
            some = np.sort(rng.permutation(self.posterior_.kept(user))[:_MOST_KEPT])
            asked += [(user, *pair) for pair in combinations(some.tolist(), 2)]
        if self.users_ is None or not asked:
            return None
        user, left, right = np.array(asked).T
        labels = {
            "user": self.users_.labels(user),
            "left": self.items_.labels(left),
            "right": self.items_.labels(right),
        }
        moved = np.abs(self.predict_proba(labels) - model.predict_proba(labels)).max(axis=1)
        return {"mean": float(moved.mean()), "quantile": float(np.quantile(moved, 0.95))}

    def kept(self, user: Any = None) -> list[Any]:
        """Ids of the items that a person keeps; without a person those of a pooled model.

        Raises
        ------
        DataError
            If the person is not known.
        """
        check_is_fitted(self)
        code = self._user_code(user) if self.personal_ else 0
        if code < 0:
            raise DataError("whose items? Name a person: kept(user)")
        return list(self.items_.labels(self.posterior_.kept(code)))

    def recommend(self, user: Any = None) -> Any:
        """Id of the kept item with the largest mean utility to a person; parameters as :meth:`kept`.

        A dropped item is never recommended, whatever is predicted of it from the kept ones: it was dropped for its
        own answers.
        """
        code = self._user_code(user) if self.personal_ else 0
        items = self.items_.codes(self.kept(user))
        return self.items_.ids[int(items[self.posterior_.utilities(code)[0][items].argmax()])]

    def is_kept(self, X: Any) -> BoolArray:
        """Whether each pair's person keeps both items, so that its prediction is the full model's; shape (n,).

        Of a pooled model, whose crowd is kept, that of every pair of known items.
        """
        check_is_fitted(self)
        return self._are_kept(read_queries(X, self.items_, self.users_ if self.personal_ else None))

    def _are_kept(self, queries: PairQueries) -> BoolArray:
        n = len(self.items_)
        sides = [np.where(side < n, side, -1).astype(np.int64) for side in (queries.left, queries.right)]
        if not self.personal_:
            return np.asarray((sides[0] >= 0) & (sides[1] >= 0))
        held = [self.posterior_.holds(queries.users, np.maximum(side, 0)) & (side >= 0) for side in sides]
        return np.asarray(held[0] & held[1])

    def _covariate_effects(self) -> CovariateEffects | None:
        return self.covariates_

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        posterior = self.posterior_
        n = len(self.items_)
        dropped = (queries.users >= 0) & (queries.left < n) & (queries.right < n) & ~self._are_kept(queries)
        if dropped.any():
            warnings.warn(
                f"{int(dropped.sum())} of {len(dropped)} pairs hold an item that was dropped for the person (first: "
                f"row {int(np.argmax(dropped)) + 1}): predicted from the kept items through the prior covariance",
                DataWarning, stacklevel=4,
            )  # fmt: skip
        if not self.local:
            found: tuple[FloatArray, FloatArray] = posterior.predict(self, queries, items, people)
            return found
        if queries.new_items:
            warnings.warn(
                f"{len(queries.new_items)} of the items asked about are not known to the model (first: "
                f"{queries.new_items[0]!r}): each is taken for any item; a compressed model holds no features",
                DataWarning, stacklevel=4,
            )  # fmt: skip
            posterior = posterior.with_items(len(queries.new_items))
        return posterior.margins(queries.users, queries.left, queries.right)

    def _relation(self) -> str:
        """As of the full model; see :meth:`describe` for what people keep."""
        if not self.personal_ or self.users_ is None:
            return ""
        return f"Each of {len(self.users_)} people keeps some items; the board is the full model's"

    def _begin(self, answers: Comparisons | None) -> None:
        """Take the answers of the fit, which questions need to know; None: they are not there."""
        self.comparisons_ = answers

    def _results_of(self, user: int) -> FloatArray:
        n = self._answers_of_people(user, user + 1)[0] if user >= 0 else np.zeros(len(self.items_))
        return n[:, None]  # of a person the number of answers is kept, and not how they came out

    def _answers_of_people(self, start: int, stop: int) -> FloatArray:
        """Answer counts of people on kept items, shape (stop - start, n_items); none with ``local=False``."""
        counts: FloatArray = self.posterior_.answer_counts(start, stop)
        return counts

    def _stored_arrays(self) -> dict[str, Any]:
        """See :meth:`~predilect.models.boards.RankingEstimator._stored_arrays`."""
        return stored_posterior(self.posterior_, self.precision)[1]

    def describe(self) -> list[str]:
        """What was kept, its cost and its gain, in sentences."""
        check_is_fitted(self)
        how, cost = self.report_["compressed"], self.report_["loss"]
        share = how["n_kept"] / how["n_cells"]
        ratio = how["bytes_full"] / how["bytes"]
        size = f"{ratio:.1f} times smaller than" if ratio > 1.05 else "not smaller than"
        error = "" if isinstance(cost["error"], str) else f" (standard error {cost['error']:.2g})"
        who = f"over {cost['n_people']} {'person' if cost['n_people'] == 1 else 'people'}"
        moved = how.get("moved")
        by_scores = [] if moved is None else [
            "Answers are differences of scores, where the full model evaluates trade-offs: probabilities of kept "
            f"pairs differ by {moved['mean']:.2g} on average, one in twenty by {moved['quantile']:.2g} or more."
        ]  # fmt: skip
        by = f"chosen by {how['criterion']}."
        if not self.personal_:
            by += " The crowd is kept: the board and all predictions are the full model's."
        return [
            f"{how['n_kept']} of {how['n_cells']} utilities are kept ({share:.0%}), {by}",
            f"Expected {cost['loss']} loss {cost['compressed']:.4g}, of the full model {cost['full']:.4g}: compressing "
            f"costs {cost['excess']:.2g}{error}, {who if self.personal_ else 'for the crowd'}.",
            *by_scores,
            f"Its numbers take {how['bytes']} bytes, {size} the full model's {how['bytes_full']}.",
        ]

    _document = document_of
    _all_fields = classmethod(all_fields_of)
    _from_document = classmethod(from_document)
