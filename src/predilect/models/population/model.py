"""The default model: one ranking for the crowd and one for every person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from predilect._base.arguments import check_count, check_path
from predilect._base.estimator import check_is_fitted
from predilect._base.json import plain
from predilect._base.progress import Watcher
from predilect._base.shards import workers
from predilect._base.stored import PART, PLAIN
from predilect._base.text import amount, either, shown
from predilect._base.types import FloatArray
from predilect.data import Comparisons, PersonFeatures
from predilect.data.attributes import Coding, identified_columns
from predilect.data.features import Traits
from predilect.data.orders import as_orders
from predilect.data.terms import Terms
from predilect.errors import DataError
from predilect.inference.gaussian.covariates import CovariateEffects, unit_of
from predilect.inference.gaussian.posterior import GaussianPosterior
from predilect.inference.likelihoods.calibration import Calibration, restored_calibration
from predilect.inference.people.layout import patterns_of
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.checks import check_flags, given_threshold
from predilect.models.estimator import AnswerCounts, Learned
from predilect.models.population.drift import check_drift, name_times, refuse_drift
from predilect.models.population.over_time import OverTime
from predilect.models.population.pooled import Believed, PooledColumns, PooledPosterior, pooled_rows
from predilect.models.population.prior import (
    ONE_MIND,
    Functions,
    Hyperparameters,
    check_settings,
    given_hyperparameters,
    restored_hyperparameters,
    threshold_and_spreads,
)
from predilect.models.population.search.plan import Plan
from predilect.models.population.storage import restore_population
from predilect.models.population.tables import (
    Tables,
    describe_alike,
    describe_clickers,
    describe_consistency,
    describe_covariates,
    describe_thresholds,
    independence_lines,
)
from predilect.models.population.updating import n_people
from predilect.models.reading import PairQueries, Training, feature_space

if TYPE_CHECKING:
    from predilect.evaluation.verdict import Verdict
    from predilect.models.population.in_parts import PopulationInParts
    from predilect.models.population.segments import Segments


@dataclass(eq=False, repr=False)
class Population(OverTime, Tables):  # type: ignore[override]  # answers come after the fit
    """Hierarchical probit model: a consensus, the population covariance, and the utilities of every person.

    Person u's utilities are f_u ~ N(m, Σ); an answer to "left or right?" is left with probability
    Φ(f_u(left) - f_u(right)), so a utility is measured in units of the noise of one answer. The consensus m, the
    population covariance Σ and, where there are ties, their threshold are learned; a person with few answers stays near
    the consensus, along the directions in which people are seen to differ.

    Parameters
    ----------
    personal : bool, default True
        False gives the pooled model: one utility function for everybody. It is used anyway where the data name fewer
        than two people.
    strength, variance, consensus_variance, feature_weight, length_scale : float or "auto"
        Prior: ν₀ (people's worth of belief in the prior covariance), s₀ and s_t (prior variance of a person's utility
        about the consensus, and of the consensus), w (share of these variances that item features explain, 0 to 1) and
        ℓ (length scale of the features' kernel, in standard deviations). ``feature_weight`` may be a pair: the share
        of how people differ, w, and of the consensus, w_t. "auto", the default, takes s₀, s_t, w and ℓ from the
        evidence with the population covariance at its prior mean, w_t from the pooled model's evidence, and then ν₀
        and s₀ from held-out answers; the pooled model takes s_t and w from its evidence. ``consensus_variance=inf`` is
        a flat prior (variance 1e8). With more than 300 items of no basis and too few answers for their covariances,
        held-out answers choose a few directions in which people differ, or none, in place of ν₀.
    calibration : "auto", None or Calibration, default "auto"
        How probabilities of answers follow from margins: "auto" is chosen on held-out answers, and none for the pooled
        model; None is as the posterior has them; or a :class:`~predilect.Calibration`.
    attributes : list of str, optional
        Terms of the linear function of attributes, by default all attributes: words as of
        :class:`~predilect.MixedLogit`, products such as "price:quality" and "price[bus]" beside what they are products
        of. They are features of the items from then on, for every basis. Of covariates of people utilities depend as
        ``user_features`` says, by no term.
    basis : {"auto", "items", "attributes", "inducing", "attributes+inducing"}, default "auto"
        Basis of the utilities. "items": one function an item, at most 3 000. "attributes": linear in the item features,
        a hierarchical probit. "inducing": a kernel of the features through inducing points, and an item-specific
        residual. "auto": without item features the items; with them what held-out answers prefer among the items (from
        301 items on the inducing points), and, where they are fewer than the items and at most 200, the attributes,
        beyond 300 items also both together.
    n_inducing : int or "auto", default "auto"
        Inducing points, if there are any; "auto" is the square root of the number of answers, from 50 to 150.
    user_features : bool or "auto", default "auto"
        Whether features of people shift their prior mean; "auto" is chosen on held-out answers.
    tie_threshold : float, "auto", or a tuple of two or three, default "auto"
        δ, everybody's; "auto" learns it if there are ties, and is 0 otherwise. A pair (δ, σ_δ) gives people thresholds
        of their own: the logarithm of a person's is N(log δ, σ_δ²), and is learned with everything else. With a third
        number (δ, σ_δ, σ_ψ) thresholds depend on the items too: about l and r it is e^((ψ_l + ψ_r) / 2) times as large,
        ψ is N(0, σ_ψ²). "auto" is ("auto", "auto", "auto"): thresholds depend on people, and on items, where held-out
        answers gain by it (pooled: the evidence), with the spread of largest evidence.
    ties : bool, default False
        Ties may come, even if no answer is one yet: the threshold is then such that the mean probability of a tie is
        1 / (10 + number of answers).
    consistency : float or "auto", default "auto"
        σ_a: people differ in how consistently they answer. The noise of person u's answers is 1 / a_u times the
        crowd's, log a_u is N(0, σ_a²), and is learned with everything else; thresholds of ties are in units of the
        person's own noise. "auto" is chosen on held-out answers from 0, .25, .5, 1 and 2. :meth:`people` says
        who.
    clickers : float or "auto", default "auto"
        π, the share of people who click at random, whatever they are shown: a component of the population beside those
        whose answers follow their utilities. "auto" is the mean given the answers where the evidence wants some and
        held-out answers do not speak against it. :meth:`people` says who, as a probability.
    drift : "auto", bool, or a pair of numbers, default "auto"
        Whether items move with time, where answers have times (``columns={"time": ...}``) and there is one ranking for
        all (``personal=False``): True, False, or "auto", if the evidence and forecasts of later answers gain by it. A
        pair is the variance of what moves and the length of memory, in days where times are dates; otherwise both are
        of the largest evidence. The board is then that of the last answers: :meth:`history`, ``rank(at=...)``.
    tol : float or "auto", default "auto"
        Stop when the objective rises by less, in nats an answer, over five iterations. "auto" is 1e-5, and
        with the root of their number more for more than 5 000 answers.
    max_iter : int, default 300
        Most passes over the answers.
    n_jobs : int, optional
        Threads; by default all cores. Results have the same bits for any number.
    random_state : int or None, default 0
        Seed of the folds that choose the prior, and of the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : PopulationPosterior or PooledPosterior
    items_, users_ : Vocabulary
        ``users_`` is None where users are not identified. People who came with :meth:`update` join it
        when the model is saved, or when more than a few percent of the people have changed.
    personal_ : bool
    hyperparameters_ : Hyperparameters
    tie_threshold_ : float
    log_evidence_ : float
        Σ_u log Z_u of the answers of the fit given m and Σ (pooled: Laplace's evidence), in nats.
    report_ : dict
        Convergence, the choice of the prior, what was read and left out, what became of the features; ``side``, where
        answers have sides: the test of whether they matter; ``contexts``: how many there are, and
        ``between_contexts``: the chance that two answers of one person are on different ones.
    n_answers_ : float
    comparisons_ : Comparisons or None
        The answers; None after :meth:`load`.
    provisional_items_ : list
        Items that joined by :meth:`update`, until the next fit.
    left_out_ : list of dict
        Rows that the last :meth:`update` left out: ``row`` in the table, ``why`` ("item" or "tie") and ``what``.
    drift_ : Drift or None
        How items move; None where they do not.
    verdict_ : Verdict or None
        Of :meth:`verdict`, once it was asked for; None again after :meth:`update` and :meth:`forget`.
    classes_ : array
        1, 0, -1, after a fit with a ``y`` of booleans False and True: what :meth:`predict` returns, in the order of
        the columns of :meth:`predict_proba`.

    Notes
    -----
    population.md. Linear in people and answers; where the items are the basis n_items³ besides and 50 n_items²
    floats of memory (at most 3 000 items, 10 000 pooled), with a basis of M functions 50 M².

    Examples
    --------
    >>> import predilect
    >>> answers = {
    ...     "user": ["ann", "ann", "bob", "bob", "cas", "cas"],
    ...     "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
    ...     "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
    ...     "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
    ... }
    >>> model = predilect.Population().fit(answers)
    >>> model.rank()["item"].to_list()
    ['tea', 'milk', 'juice']
    """

    _hyperparameters_type: ClassVar[Any] = Hyperparameters
    _of_one_mind: ClassVar[dict[str, float]] = ONE_MIND  # arguments by which all people have the same utilities

    posterior_: Annotated[PopulationPosterior | PooledPosterior, PART] = field(init=False)
    counts_: Annotated[AnswerCounts, None] = field(init=False)  # not stored, or set: the posterior holds the answers
    _functions: Annotated[Functions | None, PART] = field(init=False)
    _traits: Annotated[Traits | None, PART] = field(init=False)
    provisional_items_: Annotated[list[str | int], PLAIN] = field(init=False)

    personal: bool = True
    strength: Auto = "auto"
    variance: Auto = "auto"
    consensus_variance: Auto = "auto"
    feature_weight: Auto | tuple[Auto, Auto] = "auto"
    length_scale: Auto = "auto"
    calibration: Calibration | str | None = "auto"
    attributes: Sequence[str] | None = None
    basis: str = "auto"
    n_inducing: int | str = "auto"
    user_features: bool | str = "auto"
    tie_threshold: Auto | tuple[Auto, Auto] | tuple[Auto, Auto, Auto] = "auto"
    ties: bool = False
    consistency: Auto = "auto"
    clickers: Auto = "auto"
    drift: Any = "auto"
    tol: Auto = "auto"
    max_iter: int = 300
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    def _given_threshold(self) -> float | None:
        return given_threshold(threshold_and_spreads(self)[0])

    def _check(self) -> None:
        check_settings(self)
        given_hyperparameters(self)
        check_drift(self.drift)

    def _without_answers(self) -> dict[str, bool]:
        return {"has_prior": bool(self.personal), "ties": bool(self.ties)}

    def _prepared(self, training: Training) -> Training:
        from predilect.data.checks import check_answers
        from predilect.inference.latent.sides import test_of_side

        self._all_ties = None
        if self.attributes is not None:
            training = _specified(training, self.attributes)
        if self.ties and self.personal and training.comparisons.n_rows and not np.any(training.comparisons.outcome):
            self._all_ties = training.comparisons
            training = replace(training, comparisons=Comparisons.nothing(training.comparisons.items))
        answers = training.comparisons.with_used_grades()
        if answers.time is None and self.drift not in ("auto", False):
            raise DataError(
                "drift is of answers with times, and these have none. Name the column of times "
                f"({name_times()}), or leave drift out"
            )
        if self.drift is False:
            answers = answers.without_times()
        elif answers.time is not None:
            refuse_drift(answers, bool(self.personal) and training.personal, self.basis)
        check_answers(answers)
        joint = answers.joint and self._likelihood.has_normal_noise
        answers = as_orders(answers) if joint else answers.by_pairs()
        self._side_test = test_of_side(answers, self._likelihood, self._given_threshold())
        if self._side_test is not None and self._side_test.found:
            answers = answers.with_side()
        else:
            answers = replace(answers, sides=None)
        return replace(training, comparisons=answers)

    def _keep(self, training: Training, learned: Learned) -> None:
        if self.drift_ is None:
            training = replace(training, comparisons=training.comparisons.without_times())
        super()._keep(training, learned)
        if self.features_ is not None:
            kept = identified_columns(training.comparisons, self._space, Coding.of(self.features_))
            self.report_["attributes"] = {"columns": kept}
        if self._side_test is not None:
            self.report_["side"] = plain(self._side_test._asdict())
        if self._of_drift is not None:
            self.report_["drift"] = plain(self._of_drift)
        if (context := training.comparisons.context) is not None:
            from predilect.inference.people.contexts import share_between_contexts

            self.report_["contexts"] = len(np.unique(context[context >= 0]))
            self.report_["between_contexts"] = share_between_contexts(training.comparisons)
        answers = training.comparisons
        if self.ties and self._given_threshold() is None and not answers.has_ties and not answers.grades:
            self.report_["awaited_ties"] = self.tie_threshold_
        if self._all_ties is not None:  # nothing to learn hyper-parameters from
            ties, self._all_ties = self._all_ties, None
            self.update(ties)

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        from predilect.models.population.segments import joint_traits
        from predilect.models.population.train import train_personal, train_pooled

        begins = not training.comparisons.n_rows
        training = replace(training, people=None if begins else training.people)  # nobody to take features from
        people, personal = training.people, bool(self.personal) and (training.personal or begins)
        with workers(self.n_jobs) as executor:
            plan, traits, rms = self._plan(training, personal, delta, executor, watch)
            untimed = replace(plan, answers=plan.answers.without_times())
            trained = train_personal(untimed) if personal else train_pooled(untimed)
            self.drift_, self._of_drift = None, None
            if plan.answers.time is not None:
                from predilect.models.population.search.drift import with_drift

                trained, self.drift_, self._of_drift = with_drift(plan, trained, self.drift)
        self._functions, self.verdict_ = trained.functions, None
        posterior = trained.posterior
        if posterior.covariates is not None:
            named = replace(
                posterior.covariates, names=plan.answers.covariate_names, rms=rms,
                patterns=patterns_of(plan.answers)["patterns"],
            )  # fmt: skip
            posterior = replace(posterior, covariates=named)
        self._traits = traits if trained.hyperparameters.trait_scale > 0.0 else None
        if people is not None and plan.segments is not None:
            self._traits = joint_traits(people, self._traits)
        return Learned(
            posterior, trained.hyperparameters, personal, trained.delta, trained.log_evidence, trained.fit,
            trained.selection,
        )  # fmt: skip

    def _plan(
        self, training: Training, personal: bool, delta: float | None, executor: ThreadPoolExecutor | None,
        watch: Watcher | None,
    ) -> tuple[Plan, Traits | None, FloatArray]:  # fmt: skip
        """What the fit learns from, the map to traits of people, and the size of each covariate, (n_covariates,)."""
        from predilect.models.population.segments import other_columns

        comparisons, features, people, space = training.comparisons, training.features, training.people, training.space
        rms = np.zeros(0)
        if comparisons.covariates is not None:
            rms = np.sqrt(np.average(comparisons.covariates**2, axis=0, weights=comparisons.weight))
            comparisons = replace(comparisons, covariates=comparisons.covariates / unit_of(rms))
        given = given_hyperparameters(self)
        length_scale = math.sqrt(features.n_columns_before_constants or 1) if features is not None else 1.0
        traits, traits_of_users = None, None
        segments = None if people is None or not people.segments else self._segments(people, training)
        if people is not None and personal and self.user_features is not False:
            matrix, known = people.align(comparisons.users)
            matrix = matrix[:, other_columns(people)]
            traits = Traits.of(matrix, known)
            traits_of_users = traits.transform(matrix, known)
        plan = Plan(
            comparisons, space, traits_of_users, self.user_features is True, segments, given, length_scale,
            self.basis, None if isinstance(self.n_inducing, str) else self.n_inducing, delta,
            None if isinstance(self.tol, str) else float(self.tol), self.max_iter, self.seed_, executor, watch,
            self._likelihood, self.ties, 0.0 if self._all_ties is None else self._all_ties.n_answers,
        )  # fmt: skip
        return plan, traits, rms

    def _segments(self, people: PersonFeatures, training: Training) -> Segments:
        from predilect.models.population.segments import Segments

        if self.personal and training.personal:
            return Segments.of(people, training.comparisons.users)
        why = "the pooled model tells nobody apart" if not self.personal else "the answers do not tell people apart"
        raise DataError(
            f"segments are groups of people, and {why}. Ask for personal rankings "
            f"({either('--personal yes', 'personal=True')}), of answers with a column that says who gave them, or give "
            f"each segment a fit of its own{either(' (--by COLUMN)', '')}"
        )

    def _name(self) -> str:
        return "population" if self.personal_ else "pooled"

    def _begin(self, answers: Comparisons | None) -> None:
        from predilect.models.population.updating import begin_updates

        begin_updates(self, answers)

    @property
    def _choices(self) -> dict[str, Any]:
        """Basis, n_inducing, user_features, calibration and pairs that were chosen, as parameters."""
        check_is_fitted(self)
        functions, h = self._functions, self.hyperparameters_
        return {
            "basis": "items" if functions is None else functions.kind,
            "n_inducing": "auto" if functions is None or not len(functions.points) else len(functions.points),
            "user_features": h.trait_scale > 0.0,
            "calibration": h.calibration,
            "feature_weight": (h.feature_weight, h.consensus_weight),
            "tie_threshold": (threshold_and_spreads(self)[0], h.tie_spread, *filter(None, [h.item_tie_spread])),
            "consistency": h.consistency_spread,
            "clickers": h.click_rate,
        }

    @property
    def grades_(self) -> tuple[str, ...]:
        thresholds = self.posterior_.thresholds
        return () if thresholds is None else thresholds.names

    def _covariate_effects(self) -> CovariateEffects | None:
        found: CovariateEffects | None = self.posterior_.covariates
        return found

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        from predilect.models.people_models import traits_of_new_users
        from predilect.models.population.train import extend

        posterior: PopulationPosterior | GaussianPosterior = self.posterior_
        if (new := self._new_items(queries, items)) is not None:  # population.md section 6
            posterior = extend(posterior, self.hyperparameters_, self._space, new, self._functions)
        if isinstance(posterior, GaussianPosterior):
            return posterior.margins(queries.users, queries.left, queries.right)
        traits, effects = traits_of_new_users(self, queries, people), posterior.covariates
        x = None if effects is None else queries.covariates / effects.scale
        with workers(self.n_jobs) as executor:
            mean, var = posterior.margins(
                queries.users,
                queries.left,
                queries.right,
                traits=traits,
                covariates=x,
                executor=executor,
                if_engaged=True,
            )
        return mean, var

    def _results_of(self, user: int) -> FloatArray:
        assert isinstance(self.posterior_, PopulationPosterior)
        return self.posterior_.answers_of(user).rows.results(len(self.items_))

    def _answers_of_people(self, start: int, stop: int) -> FloatArray:
        posterior = self._snapshot().posterior_  # people lie in the order of users_ then
        assert isinstance(posterior, PopulationPosterior)
        return posterior.people.answers_by_item(start, stop)

    def fit_parts(
        self,
        parts: Any,
        *,
        items: Any = None,
        pool: Any = None,
        work: str | Path | None = None,
        start: PopulationInParts | str | Path | None = None,
        most_people: int = 20_000,
        watch: Watcher | None = None,
    ) -> PopulationInParts:
        """Fit the model to answers in parts, which need not fit in memory, on one machine or several.

        Hyper-parameters, basis, calibration, the test of sides and cuts of grades are chosen by :meth:`fit`'s rules on
        the answers of a sample of people; the population is then that of all, to the tolerance of the fit. With the
        same hyper-parameters it is the one that :meth:`fit` finds.

        Parameters
        ----------
        parts : path or Parts
            What :func:`predilect.parts.partition` made.
        items : data frame or ItemFeatures, optional
            Features of items, as of :meth:`fit`.
        pool : optional
            Who works: None (threads), "processes", any ``concurrent.futures.Executor``, "ray" (this machine, or the
            cluster that it belongs to), or the address of a cluster of Ray. The result has the same bits for any.
        work : path, optional
            Folder for the laid-out answers, their state and every pass so far, some 110 bytes a row; by default
            beside the parts, called after them with ``.fit``. A fit that was stopped goes on there. Workers on other
            machines use the same path, on a disk of their own or shared.
        start : PopulationInParts or path, optional
            An earlier fit, or the folder that it was saved to, such as that of yesterday's answers: its
            hyper-parameters are taken, and where items are the same, its population is where the search begins.
        most_people : int, default 20 000
            People in the sample, with at most a million rows: those of least hash.
        watch : callable, optional
            Called with progress: ``watch(stage, done)``.

        Returns
        -------
        PopulationInParts
            The model, without answers: for those, it reads a part.

        Raises
        ------
        DataError
            If a part is missing, damaged or not the manifest's, or fails twice; if answers have contexts; if the pool
            is none, or died.
        OutputError
            If the folder of the work cannot be written.

        Notes
        -----
        population.md section 4. Memory: one part for each thread, the sample, and about 12 M² floats for M items or
        functions. Consistency and thresholds of people are maximised by the workers, and are no coordinates of the
        search; so where these differ between people, results agree with :meth:`fit` to its tolerance.
        """
        from predilect.models.population.in_parts import PopulationInParts, fit_in_parts

        check_flags(self)
        check_count("random_state", self.random_state, 0, None)
        check_count("most_people", most_people, 2)
        check_path("work", work, None)
        if not isinstance(start, PopulationInParts):
            check_path("start", start, None)
        self._check()
        self._draw_seed()
        return fit_in_parts(self, parts, items, pool, work, start, most_people, watch)

    def verdict(
        self,
        *,
        n_folds: int = 5,
        max_people: int = 2000,
        n_bootstrap: int = 2000,
        random_state: int | None = None,
        watch: Watcher | None = None,
    ) -> Verdict:
        """Whether personal rankings, item features, ties and covariates improve predictions of held-out answers.

        Parameters
        ----------
        n_folds, max_people, n_bootstrap
            As in :func:`~predilect.evaluation.judge`, which says how answers are held out and what is compared.
        random_state : int, optional
            By default the model's.
        watch : callable, optional
            Called with progress: ``watch(stage, done)``.

        Returns
        -------
        verdict : Verdict
            Kept in ``verdict_`` and saved with the model; asked again with the same settings, it comes at once.

        Raises
        ------
        DataError
            If a setting is out of range, there are no answers, or the model was loaded and holds no such verdict.
        """
        from predilect.evaluation.judging import verdict_of

        check_is_fitted(self)
        if not self.n_answers_:
            raise DataError("the model holds no answers yet that could show whether personal rankings predict better")
        seed = self.seed_ if random_state is None else random_state
        return verdict_of(
            self, n_folds=n_folds, max_people=max_people, n_bootstrap=n_bootstrap, random_state=seed, watch=watch
        )

    def _keep_verdict(self, verdict: Verdict) -> None:
        """Keep a verdict in the model, and in its report, which is saved."""
        vars(self).update({"verdict_": verdict, "report_": self.report_ | {"verdict": plain(verdict.to_dict())}})

    @property
    def _n_people(self) -> int | None:
        is_known = self.users_ is not None and self.personal_ and "parts" not in self.report_
        return n_people(self) if is_known else super()._n_people

    def _relation(self) -> str:
        if not self.personal_ or self.users_ is None:
            return ""
        return (
            f"Each of {self._n_people} people has an equal voice, however much they answered: the board is the "
            "average person's"
        )

    def describe(self) -> list[str]:
        from predilect.models.population.coefficients import describe_attributes
        from predilect.models.population.segments import segment_columns

        lines = self.posterior_.calibration.describe(self.tie_threshold_)
        lines.append(_prior_line(self))
        lines += independence_lines(self)
        lines += self._describe_drift()
        if self.features_ is not None:
            names = dict.fromkeys(one.source for one in self.features_.outputs)
            lines.append(f"Item features: {', '.join(names) or 'none of use'}; {_use_of_features(self)}.")
        lines += describe_attributes(self)
        people, h = self.user_features_, self.hyperparameters_
        lines += describe_covariates(self)
        lines += describe_alike(self)
        lines += describe_thresholds(self)
        lines += describe_clickers(self)
        lines += describe_consistency(self)
        if people is not None and self.personal_:
            used = "used" if h.trait_scale > 0.0 else "not used, as held-out answers do not gain by them"
            others = [source for source in people.sources if source not in people.segments]
            if others or not people.segments:
                lines.append(f"Features of people: {', '.join(others) or 'none of use'}; {used}.")
            for name, columns, start in segment_columns(people):
                sd = math.sqrt(h.in_unit().segment_variances[start])
                lines.append(
                    f'Segments by "{name}": {len(columns)}, whose utilities lie about {sd:.2f} from the average '
                    "person's (standard deviation)."
                )
        return lines

    @property
    def _pooled_columns(self) -> Annotated[PooledColumns | None, PART]:
        """All answers of a pooled model; people hold those of the others."""
        return None if self.personal_ else PooledColumns.of(pooled_rows(self))

    def _given(self) -> dict[str, Any]:
        believed = Believed(self.hyperparameters_, self._space, getattr(self, "_functions", None))
        return super()._given() | {"believed": believed}

    _restored = restore_population

    @classmethod
    def _parameters(cls, values: dict[str, Any]) -> dict[str, Any]:
        given = super()._parameters(values)
        if isinstance(given["calibration"], dict):
            given["calibration"] = restored_calibration(given["calibration"])
        return given

    _hyperparameters = staticmethod(restored_hyperparameters)


def _specified(training: Training, attributes: Sequence[str]) -> Training:
    """With the terms that are asked for as the features of the items; DataError for those that cannot be."""
    other = either("--model mixed-logit or logit", "MixedLogit")
    terms = Terms.of(attributes, training.features, training.people, wants=other)
    if terms.by_people:
        raise DataError(
            f'"{shown(terms.by_people[0].name)}": in Population all that people prefer depends on the features of '
            f"people that are given ({either('--people FILE', 'people=...')}) where held-out answers gain by them, and "
            f"not one coefficient. Leave it out, or take {other}, where it is a coefficient with an error"
        )
    assert training.features is not None
    features = terms.features_of(training.features)
    return replace(training, features=features, space=feature_space(features, training.comparisons.items))


def _use_of_features(model: Any) -> str:
    h, functions = model.hyperparameters_, model._functions
    if functions is None:
        return (
            f"they explain {100 * h.feature_weight:.0f} % of the prior variance between people and "
            f"{100 * h.consensus_weight:.0f} % of the crowd's, going by the evidence"
        )
    parts = [f"{functions.n_attributes} attributes"] if functions.n_attributes else []
    parts += [f"a kernel through {len(functions.points)} inducing points"] if len(functions.points) else []
    own = ", and what each item has to itself" if functions.own or not functions.n_attributes else ""
    return f"the basis of utilities is {' and '.join(parts)}{own}"


def _prior_line(model: Any) -> str:
    prior, chosen = model.report_["prior"], model.hyperparameters_.in_unit()
    if not model.n_fitted_:
        return (
            f"There were no answers at the fit: all items are alike before there are some (variance "
            f"{chosen.consensus_variance:.2g}, and {chosen.variance:.2g} between people)."
        )
    n_trials = len(prior.get("trials", []))
    if n_trials == 0:
        return "The prior is by evidence, as there are too few answers to try it on held-out ones."
    if not model.personal_:
        return f"Prior variance {chosen.consensus_variance:.2g}, the likeliest of {n_trials} settings tried."
    shape = f"worth {chosen.strength:.0f} people"
    if chosen.directions is not None:  # answers are too few to tell how each pair of many items goes together
        shape = f"in {chosen.directions} directions" if chosen.directions else "in no direction beyond the prior's"
    return (
        f"Prior variance of a person about the crowd {chosen.variance:.2g}, {shape}, chosen "
        f"among {n_trials} settings by {amount(prior.get('n_held_out', 0))} held-out answers."
    )


Auto = float | str
