"""Predictions, rankings and utilities of every fitted model."""

from __future__ import annotations

import copy
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from predilect._base.arguments import check_arguments
from predilect._base.estimator import check_is_fitted
from predilect._base.stored import DESCRIBED, PART, PLAIN, amounts, within
from predilect._base.text import did_you_mean, either, quoted
from predilect._base.types import BoolArray, FloatArray, IntArray, Table
from predilect.data import Comparisons, ItemFeatures, PersonFeatures, Vocabulary, build_frame
from predilect.data.features import FeatureSpace
from predilect.data.orders import as_orders, weights_of_rows
from predilect.decisions.ranking import (
    Board,
    board_columns,
    rank_utilities,
    refuse_unsound,
    score_columns,
    separation_reliability,
)
from predilect.decisions.scales import Scale, scale_of
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.posterior import Posterior, Utilities, centre
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.models.asking import Asking
from predilect.models.checks import refuse_scorer
from predilect.models.choices import ChoiceSets, answer_log_proba, choice_proba
from predilect.models.reading import PairQueries, Said, new_item_space, read_answers, read_queries
from predilect.models.saving import IDS, LIKELIHOOD, REPORT
from predilect.show.charts.chart import Chart

if TYPE_CHECKING:
    from predilect.decisions.groups import Groups

OUTCOMES = np.array([1, 0, -1])  # left, tie, right


class Predicting(ABC):
    """Base of estimators: predictions from the margins of their posterior.

    ``personal_``: whether users are identified; ``_added_users``: codes of people who came after the fit; ``_space``:
    the features of the items; ``features_``, ``user_features_``: how those of items and people are encoded.
    """

    posterior_: Posterior
    items_: Annotated[Vocabulary, IDS]
    users_: Annotated[Vocabulary | None, IDS]
    personal_: Annotated[bool, PLAIN]
    _added_users: dict[Any, int]
    # Whether the y of the fit was true and false: then so are the classes
    _is_binary: Annotated[bool, PLAIN] = False
    tie_threshold_: Annotated[float, within(0.0)]
    features_: Annotated[ItemFeatures | None, DESCRIBED]
    user_features_: Annotated[PersonFeatures | None, DESCRIBED]
    _space: Annotated[FeatureSpace, PART]
    # Population, GPPL, HierarchicalGP and GPVU take any
    _likelihood: Annotated[type[PairLikelihood], LIKELIHOOD] = Probit

    @abstractmethod
    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the margins; ``items`` and ``people`` as :meth:`predict_margin` takes them."""

    def _covariate_effects(self) -> CovariateEffects | None:
        """Effects of covariates of answers; None in models that know none."""
        return None

    def _covariate_names(self) -> tuple[str, ...]:
        """Names of the covariates of answers that predictions take, "side" for the side."""
        effects = self._covariate_effects()
        return () if effects is None else effects.names

    @property
    def grades_(self) -> tuple[str, ...]:
        """Names of the grades of answers that the model knows, from slight to strong."""
        return ()

    @property
    def classes_(self) -> IntArray | BoolArray:
        """What :meth:`predict` returns, in the order of the columns of :meth:`predict_proba`: left, tie, right.

        After a fit with a ``y`` of booleans False and True, whether the left item is preferred.
        """
        return np.array([False, True]) if self._is_binary else OUTCOMES

    def predict_margin(
        self, X: Comparisons | Table, *, items: Table | None = None, people: Table | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right) for each pair.

        Parameters
        ----------
        X : Comparisons or data frame
            Columns left, right and perhaps user, in any order of rows; an unseen user gets the population's prediction.
            (Comparisons are in their canonical order.) Covariates of the model that it lacks are equal on both sides.
        items : data frame, optional
            Features of items that the model does not know. Without them such an item gets the prior, with a warning.
        people : data frame, optional
            Features of unseen users; used if the model uses features of people.

        Returns
        -------
        mean, variance : arrays of float, shape (n,)
            In units of the noise of one answer, which is not included.

        Raises
        ------
        DataError
            If a column, an id or a part of a covariate is missing, or a pair compares an item with itself.

        Notes
        -----
        Microseconds a pair.
        """
        return self._margins_of(X, items, people)[1:3]

    def predict_proba(
        self, X: Comparisons | Table, *, items: Table | None = None, people: Table | None = None
    ) -> FloatArray:
        """Probabilities of left, tie and right for each pair; shape (n, 3). Parameters as :meth:`predict_margin`.

        The columns are in the order of :attr:`classes_`, and not sorted: DataError for scorers of scikit-learn that
        take them for sorted, such as "neg_log_loss", in place of which there is :meth:`score`.

        After a fit with a ``y`` of booleans there are two columns, right and left (False and True), of answers that
        are no ties.
        """
        if self._is_binary:
            return np.exp(self.predict_log_proba(X, items=items, people=people))
        refuse_scorer()
        return self._outcomes(X, items, people)[2]

    def _predict_margin_and_proba(
        self, X: Any, *, items: Any = None, people: Any = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Results of :meth:`predict_margin`, and probabilities of left, tie and right, (n, 3), at the cost of one."""
        return self._outcomes(X, items, people)

    def predict_log_proba(
        self, X: Comparisons | Table, *, items: Table | None = None, people: Table | None = None
    ) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, accurate however small a probability is; of the same shape."""
        if not self._is_binary:
            refuse_scorer()
            return self._log_proba(X, items, people)
        of_sides = self._log_proba(X, items, people)[:, [2, 0]]
        return np.asarray(of_sides - np.logaddexp.reduce(of_sides, axis=1, keepdims=True))

    def _log_proba(self, X: Any, items: Any, people: Any) -> FloatArray:
        """Logarithms of the probabilities of left, tie and right, (n, 3)."""
        return self._outcomes(X, items, people, logarithms=True)[2]

    def predict_choice(
        self, X: Comparisons | Table, *, items: Table | None = None, people: Table | None = None
    ) -> FloatArray:
        """Probability of each alternative to be chosen, as the best of its set, (n_rows,).

        Parameters
        ----------
        X : data frame
            A row for each alternative of each set: columns task, item (or alternative) and perhaps user. Rows of one
            user and task are a set; an alternative by itself is chosen for sure. An item that stands in a set several
            times is as many alternatives, each with noise of its own, and a row says how probable one of them is.
        items, people
            As in :meth:`predict_margin`.

        Raises
        ------
        DataError
            If a column or an id is missing.

        Notes
        -----
        Answers have normal noise (population.md section 7). For two alternatives the chances of :meth:`predict_proba`
        without ties; beyond, expectation propagation, right to about .01. Some k⁴ operations for a set of k.
        """
        sets = ChoiceSets.of(X)
        if not sets.differ.any():
            return np.repeat(1.0 / np.diff(sets.ptr), np.diff(sets.ptr))[np.argsort(sets.order)]
        now, mean, var, queries = self._margins_of(pl.DataFrame(sets.pairs), items, people, in_sets=True)
        omitted = 0.0 if now.tie_threshold_ else now.posterior_.calibration.omitted_ties
        return choice_proba(sets, now.posterior_, mean, var, queries, omitted)

    def predict(
        self, X: Comparisons | Table, *, items: Table | None = None, people: Table | None = None
    ) -> IntArray | BoolArray:
        """What is likeliest of each pair, (n,): 1 that the left item is preferred, -1 the right one, 0 that neither is.

        After a fit with a ``y`` of booleans True and False: whether the left item is preferred.

        Not the items themselves: ``np.where(model.predict(pairs) > 0, pairs["left"], pairs["right"])`` names them where
        no tie is likeliest.
        """
        return self.classes_[np.argmax(self.predict_proba(X, items=items, people=people), axis=1)]

    def score(
        self, X: Comparisons | Table, y: npt.ArrayLike | None = None, *, items: Table | None = None,
        people: Table | None = None, columns: Said = None,
        reading: Said = None,
    ) -> float:  # fmt: skip
        """Mean log-likelihood of answers, in nats an answer (higher is better; log loss is its negative).

        Where rows of a task are one answer (``Comparisons.joint``), it counts once, as a whole. ``columns`` and
        ``reading`` are as of ``fit``.
        """
        return self._score_and_accuracy(X, y, items=items, people=people, columns=columns, reading=reading)[0]

    def _score_and_accuracy(
        self, X: Any, y: npt.ArrayLike | None = None, *, items: Any = None, people: Any = None, columns: Said = None,
        reading: Said = None,
    ) -> tuple[float, float]:  # fmt: skip
        """:meth:`score`, and the share of answers that were what :meth:`predict` gives, at the cost of one."""
        check_is_fitted(self)
        answers = read_answers(
            X, y, with_ties=self.tie_threshold_ > 0.0, covariates=self._covariate_names(), grades=self.grades_,
            columns=columns, reading=reading,
        )  # fmt: skip
        answers = as_orders(answers)
        pairs = self._log_proba(answers, items, people)
        likeliest = OUTCOMES[np.argmax(pairs, axis=1)]
        weight = answers.weight * (answers.left < answers.right)  # which of two alike is better nobody can tell
        accuracy = float(np.average(likeliest == np.sign(answers.outcome), weights=weight))
        if self.tie_threshold_ == 0.0 and answers.has_ties:
            warnings.warn(
                "the model was fitted without ties and gives them probability 0, but some answers are ties: the score "
                "is minus infinity. Fit on answers with ties, or leave them out", DataWarning, stacklevel=3,
            )  # fmt: skip
            return -math.inf, accuracy
        log_p = answer_log_proba(self, answers, pairs, items, people)
        return float(np.average(log_p, weights=weights_of_rows(answers))), accuracy

    def _answer_log_proba(
        self, answers: Comparisons, *, items: Table | None = None, people: Table | None = None
    ) -> FloatArray:
        """Log probability of the answer of each row of comparisons, (n_rows,); of a task as a whole, at each row."""
        pairs = self._log_proba(answers, items, people)
        return answer_log_proba(self, answers, pairs, items, people)

    def _margins_of(
        self, X: Any, items: Any, people: Any, *, in_sets: bool = False
    ) -> tuple[Self, FloatArray, FloatArray, PairQueries]:
        """Snapshot of the model, whatever other threads do; mean and variance of the margins, and their pairs.

        Pairs within sets (``in_sets``) have no left side, and no other covariates.
        """
        check_arguments(items=items, people=people)
        now, queries = self._read(X, people)
        if in_sets:
            queries = replace(queries, covariates=np.zeros_like(queries.covariates))
        mean, var = now._margins(queries, items, people)
        effects = now._covariate_effects()
        if effects is not None:
            mean, var = effects.added(mean, var, queries.covariates / effects.scale)
        refuse_unsound(mean, var)
        return now, mean, np.maximum(var, 0.0), queries  # rounding may leave -1e-17

    def _outcomes(
        self, X: Any, items: Any, people: Any, *, logarithms: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and variance of the margins, and probabilities of left, tie and right, or their logarithms."""
        now, mean, var, queries = self._margins_of(X, items, people)
        return mean, var, (now._log_chances if logarithms else now._chances)(mean, var, queries)

    def _read(self, X: Any, people: Any) -> tuple[Self, PairQueries]:
        """Snapshot of the model, and the pairs that are asked about."""
        now = copy.copy(self)
        check_is_fitted(now)
        users_known = now.users_ if now.personal_ else None
        queries = read_queries(X, now.items_, users_known, now._added_users, now._covariate_names())
        if queries.n_unknown_users:
            by = "" if people is None else ", with what their features tell"
            if people is not None and now.user_features_ is None:
                by = ", as the model was fitted without features of people"
            warnings.warn(
                f"{queries.n_unknown_users} of {len(queries.users)} pairs name someone without answers in this model: "
                f"the population's prediction is given{by}", DataWarning, stacklevel=4,
            )  # fmt: skip
        return now, queries

    def _chances(self, mean: FloatArray, var: FloatArray, queries: PairQueries) -> FloatArray:
        """Probabilities of the answers at margins with this mean and variance."""
        pairs = queries.users, queries.left, queries.right
        return self.posterior_.outcome_proba(mean, var, *pairs, self.tie_threshold_, self._likelihood)

    def _log_chances(self, mean: FloatArray, var: FloatArray, queries: PairQueries) -> FloatArray:
        """Their logarithms."""
        pairs = queries.users, queries.left, queries.right
        return self.posterior_.outcome_log_proba(mean, var, *pairs, self.tie_threshold_, self._likelihood)

    def _new_items(self, queries: PairQueries, items: Any) -> FeatureSpace | None:
        """Feature space of the items that the model does not know; None if it knows them all."""
        if not queries.new_items:
            return None
        new = new_item_space(queries.new_items, self.features_, items, self._space.matrix.shape[1])
        if not new.known.all():
            lost = [item for item, known in zip(queries.new_items, new.known, strict=True) if not known]
            source = either("--items FILE", "items=...")
            how = f"Otherwise give their features, {source}"
            if self.features_ is None:
                how = f"Features would tell more, but the model was fitted without any ({source})"
            warnings.warn(
                f"{len(lost)} of the items asked about are not known to the model and come without features (first: "
                f"{lost[0]!r}): they get the prior.{did_you_mean(lost[0], self.items_)} {how}",
                DataWarning,
                stacklevel=5,
            )
        return new


class RankingEstimator(Asking, Predicting):
    """Base of estimators: boards and utilities from their posterior, and predictions."""

    _kept_posterior: ClassVar[Any] = None  # class of :meth:`Posterior.restricted`'s result, where there is one

    results_by_item_: Annotated[FloatArray, amounts("I 3")]  # wins, ties and losses of each item
    n_answers_: Annotated[float, within(0.0)]
    _backend: Annotated[str, PLAIN]
    report_: Annotated[dict[str, Any], REPORT]
    random_state: int | None
    _seed: int

    @abstractmethod
    def _results_of(self, user: int) -> FloatArray:
        """Wins, ties and losses of each item in the answers of one person, (n_items, 3); or how many, (n_items, 1)."""

    @abstractmethod
    def _answers_of_people(self, start: int, stop: int) -> FloatArray:
        """Number of answers on each item by people ``start`` to before ``stop``; shape (stop - start, n_items)."""

    @abstractmethod
    def _stored_arrays(self) -> dict[str, Any]:
        """Arrays that are saved of the posterior, and of the answers behind it."""

    @property
    def n_by_item_(self) -> FloatArray:
        """Number of answers on each item, (n_items,)."""
        return np.asarray(self.results_by_item_.sum(axis=1))

    @property
    def _own_scale(self) -> Scale:
        """The scale of utilities as they are."""
        return scale_of("probit", self._likelihood.name)

    @property
    def _n_people(self) -> int | None:
        """People who answered; None where they are not identified."""
        if self.users_ is None:
            return None
        n: int = self.report_.get("parts", {}).get("n_users", len(self.users_))
        return n + len(self._added_users)

    @property
    def _called(self) -> str:
        """What the model is called in words: its name in commands."""
        return str(self.report_["model"])

    @property
    def _not_usable(self) -> str:
        """Why nothing can be read from the fit, in words; empty where it can."""
        return ""

    @property
    def seed_(self) -> int:
        """The seed in use: ``random_state``, or where that is None the one drawn at the fit."""
        return self._seed if self.random_state is None else int(self.random_state)

    def _draw_seed(self) -> None:
        """Draw a seed for this fit, which is used if none is given."""
        self._seed = int(np.random.SeedSequence().generate_state(1)[0])

    def _now(self) -> Self:
        """Snapshot of the model, whatever other threads do."""
        check_is_fitted(self)
        return copy.copy(self)

    def _user_code(self, user: Any) -> int:
        if user is None or self.users_ is None:
            return -1
        code = self._added_users.get(self.users_.own(user), -1)
        return code if code >= 0 else int(self.users_.codes([user], what="user")[0])

    def _user_or_unseen(self, user: Any) -> int:
        """Code of a person; -1, with a warning, of somebody without answers in this model."""
        if self.users_ is None or self._added_users.get(self.users_.own(user), -1) >= 0:
            return self._user_code(user)
        code = int(self.users_.codes([user], unknown="minus_one", what="user")[0])
        if code < 0:
            warnings.warn(
                f"{quoted(user)} is someone without answers in this model: the utilities are those of an unseen user",
                DataWarning, stacklevel=3,
            )  # fmt: skip
        return code

    def rank(
        self,
        user: Any = None,
        *,
        at: Any = None,
        scale: str | Scale = "probit",
        base: float | None = None,
        anchor: Any = None,
    ) -> Any:
        """The board of the crowd, or of one person, best first.

        Parameters
        ----------
        user : id, optional
            A person; by default the consensus, in which every person has an equal voice (pooled: every answer). Where
            people are found hardly to differ (:meth:`describe` says so) a person's board is nearly the crowd's, with
            intervals that do not allow for people who differ more.
        at : date, timestamp, number or text, optional
            The time of the crowd's board, where ratings move: by default that of the last answers. Between times of
            answers it is interpolated; beyond them ratings return to each item's mean.
        scale : {"probit", "logit", "elo", "0-100", "share"}, default "probit"
            Of the scores: noise of one answer, log-odds, Elo points, from the last item to the first, Bradley-Terry
            shares in per cent; defined in docs/reference/outputs.md. "elo:1000" and "elo:1000:ITEM" say base and anchor
            too.
        base : float, optional
            Score of the mean of the items, or of the anchor; by default 0.
        anchor : item, optional
            The item that has the score ``base``; intervals are of the distance to it then.

        Returns
        -------
        board : data frame of the caller's kind
            Columns item, mean, sd, lower, upper (score with its 95 % interval; by default the utility centred over the
            items, in units of the noise of one answer), rank, rank_low, rank_high (95 % interval of the rank), p_best,
            tier, tied_with_leader (we are not 95 % sure that the first item is better), n (answers), wins, ties and
            losses (of these, without regard to whom the item met), win_share (wins and half of the ties, of n).

        Raises
        ------
        DataError
            If the user or the anchor is not known, the scale is none or has neither base nor anchor, or ``at`` is no
            time, or one of a model in which ratings do not move.
        """
        now = self._now()
        unit = scale_of(scale, now._likelihood.name, base, anchor)
        if at is not None and user is not None:
            raise DataError("ratings over time are the crowd's alone: give at, or user, and not both")
        if at is not None:
            utilities = now._at(at)
        elif user is None:
            utilities = now.posterior_.crowd()
        else:
            utilities = now.posterior_.calibrated(now._user_code(user))
        return now._frame(unit.of_board(now._board(utilities), utilities, now.items_), now._results_by_item(user))

    def _at(self, at: Any) -> Utilities:
        """The crowd's utilities at another time than the last; DataError for a model in which ratings do not move."""
        raise DataError(f"{type(self).__name__} has the same ratings at all times: leave at out, or fit Population")

    def utilities(self, user: Any = None, *, ranks: bool = True) -> Any:
        """Utilities of the crowd, or of one person: the frame of :meth:`rank`, in the order of :attr:`items_`.

        Parameters
        ----------
        user : id, optional
            A person; by default the crowd. A name that the model has no answers of is an unseen user, drawn from the
            population distribution; it comes with a warning.
        ranks : bool, default True
            False leaves out what joint draws are needed for (ranks, tiers, p_best), which take nearly all of the time:
            of 200 items a person's utilities take 1 ms in place of 45.
        """
        check_arguments(ranks=ranks)
        now = self._now()
        if user is None:
            found, results = now.posterior_.crowd(), now._results_by_item()
        else:
            code = now._user_or_unseen(user)
            found, is_unseen = now.posterior_.calibrated(code), code < 0 and now.personal_
            results = np.zeros((len(now.items_), 3)) if is_unseen else now._results_by_item(user)
        if ranks:
            return now._frame(now._board(found).by_item(), results)
        return build_frame(score_columns(found, now.items_, results), now._backend)

    def utility_distribution(self, user: Any = None) -> tuple[FloatArray, FloatArray]:
        """Joint law of the utilities of the crowd, or of one person, centred, over :attr:`items_`: that of their board.

        Parameters
        ----------
        user : id, optional
            As in :meth:`utilities`.

        Returns
        -------
        mean, covariance : arrays of float, shapes (n_items,) and (n_items, n_items)
            Of which orders follow. Of the crowd of a ``Population`` the variance of a score on the board has
            (``hyperparameters_.unit_sd`` times its mean)² more, since the unit in which all are told is not sure.
        """
        now = self._now()
        if user is None:
            return _centred(*now.posterior_.crowd().dense())
        return _centred(*now.posterior_.calibrated(now._user_or_unseen(user)).dense())

    @abstractmethod
    def describe(self) -> list[str]:
        """What was learned, in sentences."""

    def _further_tables(self) -> dict[str, Callable[[], Any]]:
        """Tables that ``predilect rank --out`` writes beside the board: by name, what makes the frame."""
        return {}

    def _further_charts(self) -> dict[str, Callable[[], Chart]]:
        """Charts of what only this kind of model knows, for reports and folders of results: by name, what makes one."""
        return {}

    @property
    def _has_segments(self) -> bool:
        """Whether there are boards of segments: see :meth:`Population.segments <predilect.Population.segments>`."""
        return False

    def _find_groups(self) -> Groups | None:
        """Groups of opinion, of a model that knows people: :meth:`Population.groups <predilect.Population.groups>`."""
        return None

    def separation_reliability(self) -> float:
        """Scale separation reliability (SSR) of the crowd's board, 0 to 1, as comparative judgement reports it.

        The share of the variance of the items' scores that is not error of measurement. The separation index is G =
        √(SSR / (1 - SSR)).

        Notes
        -----
        v / (v + e): v the variance over the items of the scores, e the mean of the squared standard errors. Of maximum
        likelihood it is 1 - e / v (Pollitt 2012), as its scores are not drawn together; both say the same to first
        order. Standard errors are the board's, which allow for people who differ: of ten judges who do not, SSR is .73
        for a squared correlation with the truth of .80. Where pairs were chosen by what was known of the items, SSR is
        too high (Bramley and Vitello 2019).
        """
        return separation_reliability(self._now().posterior_.crowd())

    def _rank_among(self, items: list[Any], user: Any = None) -> Any:
        """:meth:`rank` of some items alone."""
        now, codes = self._now(), np.sort(self.items_.codes(items).astype(np.int64))
        posterior = now.posterior_
        utilities = posterior.crowd() if user is None else posterior.calibrated(now._user_code(user))
        board = now._board(utilities.among(codes))
        return now._frame(replace(board, item=codes[board.item]), now._results_by_item(user))

    def _board(self, utilities: Utilities) -> Board:
        return rank_utilities(utilities, random_state=self.seed_)

    def _frame(self, board: Board, results: FloatArray) -> Any:
        return build_frame(board_columns(board, self.items_, results), self._backend)

    def _results_by_item(self, user: Any = None) -> FloatArray:
        """Wins, ties and losses of each item that a board rests on, of the crowd or of one person, (n_items, 3)."""
        now = self._now()
        if user is None or not now.personal_:
            return now.results_by_item_.copy()
        return now._results_of(now._user_code(user))


def _centred(mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, covariance = centre(mean, covariance)
    refuse_unsound(mean, np.diagonal(covariance))
    return mean, covariance
