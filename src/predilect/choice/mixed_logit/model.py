"""``MixedLogit``: choices by coefficients of attributes that vary between people, the comparator of choice research."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect._base.arguments import check_choice, check_count, check_positive, check_text
from predilect._base.estimator import check_is_fitted
from predilect._base.json import typed
from predilect._base.progress import Watcher
from predilect._base.stored import PART, numbers
from predilect._base.text import either, setting, written
from predilect._base.types import FloatArray, IntArray, Table
from predilect.choice.mixed_logit import outputs
from predilect.choice.mixed_logit.attributes import DISTRIBUTIONS, ItemColumns, columns_of, labels_of
from predilect.choice.mixed_logit.diagnosis import caution, why_unusable, worst_of
from predilect.choice.mixed_logit.estimates import ENOUGH_PEOPLE, ERRORS, Estimates, covariate_effects
from predilect.choice.mixed_logit.nested import NestedChoices, Nests, nests_of
from predilect.choice.mixed_logit.outputs import ItemRows, LogitDraws
from predilect.choice.mixed_logit.posterior import MixedLogitPosterior, unseen_draws
from predilect.choice.mixed_logit.problem import problem_of
from predilect.choice.mixed_logit.shifts import Shifts
from predilect.choice.mixed_logit.training import Learning, is_logit, likelihood_of_constants
from predilect.data import Comparisons
from predilect.data.choices import choices_of
from predilect.data.comparisons import joint_rows
from predilect.data.features import Traits
from predilect.data.terms import Terms
from predilect.decisions.ranking import refuse_unsound
from predilect.errors import DataError
from predilect.inference.likelihoods.logit import Logit
from predilect.models.estimator import Estimator, Learned
from predilect.models.reading import PairQueries, Said, Training, read_answers, rows_of_features
from predilect.models.worth import OfAttributes

_STORED = 400  # populations that are kept
_NONE = np.ones((0, 0))
_LARGEST_TRAITS = 5  # people for each trait, at least
_ROWS_FOR_TIES = 2000


@dataclass(frozen=True, slots=True)
class MixedLogitHyperparameters:
    """Sizes of the model."""

    n_coefficients: int
    n_classes: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(eq=False, repr=False)
class MixedLogit(Estimator, OfAttributes):
    """Mixed logit: P(person u chooses item i of a set) ∝ exp(x_i c_u), coefficients c_u drawn from a population.

    Rows of answers that share a task are one choice: of the best of several, best-worst, or an order. Attributes are
    the features of items (``items=``); without them each item has a coefficient of its own. Features of people
    (``people=``) shift the means of their coefficients. Utilities are in logit units: of two items g apart, the
    better one is chosen with probability 1 / (1 + exp(-g)).

    Parameters
    ----------
    method : {"bayes", "simulated"}, default "bayes"
        Hierarchical Bayes, by Gibbs sampling; or maximum simulated likelihood with Halton draws. Where all coefficients
        are fixed, both are the maximum of the likelihood, by Newton's method.
    attributes : list of str, optional
        Terms of utility, by default all attributes: their names (constants of alternatives too); products such as
        "price:quality"; "price[bus]", the coefficient of price that the alternatives with the level bus have besides,
        and "price[bus,car]" those with either; and "price:income", how the coefficient of price depends on a covariate
        of people (``people=``). Terms are the names of attributes from then on. The last sort is the same for people of
        equal covariates. An attribute that only alternatives with some levels have, with empty cells elsewhere, is such
        a term by itself: "fee" is "fee[car]".
    distributions : str or mapping of attribute to str, default "normal"
        "normal", "log-normal" (positive), "negative log-normal", "triangular" (simulated likelihood, diagonal
        covariance), or "fixed" for all people. Attributes that are not named are normal.
    covariance : {"full", "diagonal"}, default "full"
        Of the normal coefficients, logarithms of the log-normal ones.
    price : str, optional
        Work in the space of willingness to pay for this attribute: the other coefficients are amounts of it, with the
        distributions above, times its own, minus a log-normal or (if "fixed") the same for all.
    n_classes : int, default 1
        The population is a mixture of so many normals ("bayes"). With fixed coefficients these are latent classes,
        each with coefficients of its own; features of people say how probable each class is.
    errors : {"auto", "clustered", "robust", "hessian"}, default "auto"
        Whose standard errors intervals are by where all coefficients are fixed, within classes too: robust and
        clustered by person; robust, each answer by itself; or of the Hessian. "auto" is clustered where somebody
        answered more than once and people are more than coefficients, and otherwise of the Hessian.
    nests : str, optional
        A nested logit: the attribute (a category) whose levels are nests of alternatives that are alike in what is not
        seen. Coefficients are the same for all; each nest has a dissimilarity λ, 1 for a logit, and of people who take
        what is best at most 1.
    n_draws : int or "auto", default "auto"
        Sweeps of a chain, of which the first third is left out (6 000, and 24 000 anew where chains do not agree on the
        means by then: a split R-hat of 1.05); or Halton draws of a person (500).
    n_chains : int, default 2
        Chains of "bayes".
    max_iter : int, default 200
        Steps of the maximisation ("simulated").
    tol : float or "auto", default "auto"
        Largest split R-hat of means and variances of the population (1.05, and then an effective sample size of 50 is
        asked for too); or largest slope of the log-likelihood, in nats a choice (1e-5).
    tie_threshold : float or "auto", default "auto"
        δ of predictions of pairs; "auto" learns it if there are ties, and is 0 otherwise. For the coefficients a tie is
        half an answer each way.
    n_jobs : int, optional
        Threads, one a chain; by default all cores. Results have the same bits for any number.
    random_state : int or None, default 0
        Seed of chains, of what is drawn for people without answers, and of the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : MixedLogitPosterior
    columns_ : Columns
        How items become numbers, and coefficients become those of the attributes in their own units.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`. ``log_evidence_`` is the simulated log-likelihood, at the posterior mean for
        "bayes"; ``report_["prior"]`` has R-hat and effective sizes, or the noise of the draws, and what was left out.
        Draws with a split R-hat above 1.1, or an effective sample size below 50, are not usable: the warning of the
        fit, :meth:`describe` and ``repr`` say so.

    Notes
    -----
    mixed-logit.md. Columns have size 1 within choices while the model is learned. Priors: a covariance is that of
    Huang and Wand (2013), with half-t standard deviations; a mean is normal around 0 with variance 100. A person is
    known by draws, of which predictions and boards are means, quantiles and shares. 6 000 sweeps of two chains take
    15 s for 400 people with 8 choices of four and 6 attributes. Memory: 200 draws a person.

    Examples
    --------
    >>> import predilect
    >>> answers = {"user": ["ann", "bob"] * 2, "left": ["a", "a", "b", "b"], "right": ["b", "b", "c", "c"],
    ...            "winner": ["a", "b", "b", "b"]}
    >>> cars = {"item": ["a", "b", "c"], "price": [30.0, 20.0, 25.0], "doors": [5, 3, 3]}
    >>> model = predilect.MixedLogit(covariance="diagonal").fit(answers, items=cars)
    >>> len(model.predict_choice({"task": [1, 1, 1], "item": ["a", "b", "c"]}))
    3
    """

    _hyperparameters_type: ClassVar[Any] = MixedLogitHyperparameters
    _each: ClassVar[str] = "{} people weigh attributes by coefficients of their own, drawn from one population"
    _likelihood = Logit
    posterior_: Annotated[MixedLogitPosterior, PART] = field(init=False)
    columns_: Annotated[ItemColumns, PART] = field(init=False)
    _traits: Annotated[Traits | None, PART] = field(init=False)
    _estimates: Annotated[Estimates | None, PART] = field(init=False)
    _member: Annotated[FloatArray | None, numbers("U K")] = field(init=False)  # of latent classes

    method: str = "bayes"
    attributes: Sequence[str] | None = None
    distributions: str | Mapping[str, str] = "normal"
    covariance: str = "full"
    price: str | None = None
    n_classes: int = 1
    errors: str = "auto"
    nests: str | None = None
    n_draws: int | str = "auto"
    n_chains: int = 2
    max_iter: int = 200
    tol: float | str = "auto"
    tie_threshold: float | str = "auto"
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    def _check(self) -> None:
        check_choice("method", self.method, ("bayes", "simulated"))
        check_choice("covariance", self.covariance, ("full", "diagonal"))
        check_choice("errors", self.errors, ("auto", *ERRORS))
        asked = self.distributions
        values = list(asked.values()) if isinstance(asked, Mapping) else [asked]
        for value in values:
            check_choice("distributions", value, DISTRIBUTIONS)
        if "triangular" in values and (self.method, self.covariance) != ("simulated", "diagonal"):
            needed = f"{setting('method', 'simulated')} and {setting('covariance', 'diagonal')}"
            raise DataError(f"{written('triangular')} needs {needed}")
        check_text("price", self.price, None, of="the name of an attribute")
        check_count("n_classes", self.n_classes, 1)
        check_text("nests", self.nests, None, of="the name of an attribute")
        if self.nests is not None and (set(values) != {"fixed"} or self.n_classes > 1 or self.price is not None):
            raise DataError(
                'nests are of a logit whose coefficients are the same for all: take distributions="fixed", one class '
                "and no price"
            )
        check_count("n_draws", self.n_draws, 20, "auto")
        check_count("n_chains", self.n_chains, 1)
        check_count("max_iter", self.max_iter, 1)
        check_positive("tol", self.tol, "auto")

    def _prepared(self, training: Training) -> Training:
        found = super()._prepared(training)
        return replace(found, comparisons=training.comparisons.without_covariates())

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        answers, personal = training.comparisons, training.personal
        choices, asked = choices_of(answers), self.attributes
        terms, features = None, training.features
        if features is not None:
            terms = Terms.of_all(features) if asked is None else Terms.of(asked, features, training.people)
            terms = terms.of_some_items(features)
        elif asked is not None:
            Terms.of(asked, None, training.people)  # which says why not
        columns = columns_of(
            answers, choices, training.features, training.space, distributions=self.distributions, price=self.price,
            personal=personal, terms=terms,
        )  # fmt: skip
        if self.n_classes > 1 and not personal:
            who = either("-c who=COLUMN", 'columns={"user": "COLUMN"}')
            why = f"the answers do not say who gave them. Name the column that does ({who})"
            if answers.has_users:
                why = "all answers are one person's. Ask more people"
            raise DataError(f"n_classes={self.n_classes} asks for classes of people, but {why}, or take one class")
        if self.n_classes > 1 and not is_logit(columns, self) and (self.method != "bayes" or not columns.n_random):
            raise DataError(
                f"n_classes={self.n_classes} with method={self.method!r}: classes whose coefficients vary within them "
                'need method="bayes", and classes in the space of willingness to pay coefficients that vary. Take '
                'distributions="fixed" without a price: willingness_to_pay says amounts too'
            )
        if self.errors != "auto" and not is_logit(columns, self):
            raise DataError(
                f"errors={self.errors!r} is for coefficients that are the same for all people, or a class of them, as "
                f"of {either('--model logit', 'distributions=' + repr('fixed'))}. Leave errors out"
            )
        self._traits, traits = _traits(training)
        reported, shifts, covariates = columns, None, covariate_effects(self._traits, training.people)
        if terms is not None and terms.by_people and training.people is not None:
            _refuse_shifts(terms, columns, training, int(self.n_classes))
            traits, covariates = traits[:, :1], ([], np.zeros((0, 0)))
            shifts = Shifts.of(
                terms, columns.sources, columns.report, columns.levels, training.people, answers.users
            )  # fmt: skip
        problem = problem_of(choices, columns, traits, answers.n_users)
        nests = None
        if self.nests is not None:
            if shifts is not None:
                raise DataError("nests do not go with terms about covariates of people. Leave one of them out")
            levels, of_items = nests_of(self.nests, training.features, training.space.matrix)
            nests = NestedChoices.of(choices, columns, of_items, len(levels), answers.n_users)
            reported = nests.reported(columns, levels)
        if shifts is not None:
            self._traits = shifts.traits
            shifts, problem, reported = shifts.extended(problem, columns)
        found = Learning(
            problem, reported, covariates,
            likelihood_of_constants(choices, labels_of(choices, training.features, training.space)),
            answers.n_users if personal else None, is_logit(columns, self), self, watch, nests,
        ).found()  # fmt: skip
        law, people = found.law.thinned(_STORED), found.people
        if shifts is not None:
            law, people = replace(law, B=shifts.folded(law.B)), shifts.of_each(people)
        self.columns_, self._estimates, self._member = columns, found.estimates, found.member
        apart = None
        if nests is not None and self.nests is not None:
            apart, law, people = nests.apart(
                law, people, Nests(self.nests, levels, _NONE, _NONE, of_items.astype("i4"))
            )
        posterior = MixedLogitPosterior.of(columns, people, law, self.seed_, apart)
        threshold = _tie_threshold(answers, posterior) if delta is None else delta
        notes = [*columns.notes, *found.diagnosis.pop("unbounded", [])]
        known = {"notes": notes, **found.diagnosis, "answers": choices.n_answers}
        h = MixedLogitHyperparameters(columns.X.shape[1], int(self.n_classes))
        return Learned(posterior, h, personal, threshold, found.evidence, found.report, known)

    def _predicted(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As :meth:`MixedLogitPosterior.predicted`."""
        posterior, new = self.posterior_, self._new_items(queries, items)
        X, own = posterior.X, np.zeros(len(posterior.X))
        if new is not None:
            rows = self.columns_.rows(new.matrix)
            known = new.known & (self.columns_.map is not None)
            X = np.concatenate([X, np.where(known[:, None], rows, 0.0)])
            own = np.concatenate([own, np.where(known, 0.0, outputs.spread_of_items(posterior))])
        who, more = queries.users, None
        if people is not None and queries.new_users and self._traits is not None and self.user_features_ is not None:
            traits = self._traits.transform(*rows_of_features(queries.new_users, self.user_features_, people))
            more = np.stack([unseen_draws(posterior.law, self.columns_, one, self.seed_) for one in traits])
            who = np.where(queries.unknown_users >= 0, len(posterior.people) + queries.unknown_users, who)
        within = None
        if posterior.nests is not None:
            nest = posterior.nests.of_items
            if new is not None:
                nest = np.append(nest, nests_of(posterior.nests.name, self.features_, new.matrix)[1])
            within = np.where(nest[queries.left] == nest[queries.right], nest[queries.left], -1)
        return posterior.predicted(
            who, X[queries.left] - X[queries.right], own[queries.left] + own[queries.right], more, self.tie_threshold_,
            within,
        )  # fmt: skip

    def _outcomes(
        self, X: Any, items: Any, people: Any, *, logarithms: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        now, queries = self._read(X, people)
        mean, var, log_p = now._predicted(queries, items, people)
        refuse_unsound(mean, var)
        return mean, var, log_p if logarithms else np.exp(log_p)

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        return self._predicted(queries, items, people)[:2]

    def _relation(self) -> str:
        n_classes = self.hyperparameters_.n_classes
        if not self.personal_ or not self._is_logit:
            return super()._relation()
        if n_classes > 1:
            return f"Each person is of one of {n_classes} classes; the board is that of their average"
        if self._by_people:
            return "The same coefficients for people of equal covariates; the board is that of their average"
        return "The same coefficients for all people; the board is everybody's"

    @property
    def _by_people(self) -> list[str]:
        """Terms that say how coefficients depend on covariates of people."""
        named = {attribute for attribute, _, _ in ([] if self._estimates is None else self._estimates.labels)}
        return (
            [] if self.attributes is None else [one for one in self.attributes if one in named - set(self.attributes_)]
        )

    def describe(self) -> list[str]:
        prior, columns = self.report_["prior"], self.columns_
        lines = [f"Attributes: {', '.join(columns.attributes)}.", *typed(list[str], prior["notes"], "notes")]
        if self._by_people:
            lines.append(
                f"Coefficients depend on covariates of people by {', '.join(self._by_people)}: those that are shown "
                f"are for the average of the people, and the effects stand in {either('summary.csv', 'summary()')}."
            )
        if "r_hat_means" in prior:
            largest, least = worst_of(prior)
            lines.append(
                f"{self.n_chains} chains of {prior['draws']} sweeps: the largest split R-hat is {largest:.3f}, the "
                f"smallest effective sample size {least:.0f}."
            )
            if said := caution(prior):
                lines.insert(0, said)
        elif self._is_logit and self.n_classes > 1:
            shares = outputs.shares_of(self)
            words = ", ".join(f"{one:.3g}" for one in shares)
            lines += [f"{self.n_classes} latent classes of people, with shares {words}.", *self._said_of_errors()]
        elif not columns.n_random:
            lines += [*outputs.said_of_nests(self), *self._said_of_errors()]
        else:
            lines.append(
                f"Other draws would move the log-likelihood by about {prior['log_likelihood_sd']:.1f} (standard "
                f"deviation), and {prior['draws']} draws make it {-prior['log_likelihood_bias']:.1f} too low."
            )
            if prior["people_on_few_draws"]:
                lines.append(
                    f"{prior['people_on_few_draws']} of {len(self.posterior_.people)} people rest on fewer than 10 "
                    f"draws: {either('in Python ', '')}ask for more (n_draws), or for method='bayes'."
                )
        return lines

    def _said_of_errors(self) -> list[str]:
        found = self._estimates
        if found is None:
            return []
        n_people = found.facts["people"]
        if found.errors == "hessian":
            return ["Standard errors are those of the Hessian of the log-likelihood at its maximum."]
        if found.errors == "robust":
            return ["Standard errors are robust to a wrong model, each answer by itself."]
        lines = [f"Standard errors are clustered by person ({n_people} people), and intervals are Student's."]
        if n_people < ENOUGH_PEOPLE:
            lines.append(
                f"Of fewer than {ENOUGH_PEOPLE} people clustered errors are uncertain themselves: intervals may hold "
                "less often than they say."
            )
        return lines

    def __repr__(self) -> str:
        words = super().__repr__()
        why = self._not_usable if hasattr(self, "posterior_") else ""
        return words.replace("(", f"(not usable: {why}; ", 1) if why else words

    @property
    def _not_usable(self) -> str:
        prior = self.report_["prior"]
        return why_unusable(*worst_of(prior)) if "r_hat_means" in prior else ""

    @property
    def _called(self) -> str:
        if not self._is_logit:
            return super()._called
        if self.nests is not None:
            return "nested-logit"
        return "logit" if self.n_classes == 1 else "latent-class"

    def _given(self) -> dict[str, Any]:
        return super()._given() | {"columns": getattr(self, "columns_", None), "seed": self.seed_}

    def _restored(self, parts: dict[str, Any]) -> None:
        law = self.posterior_.law
        if self.columns_.n_random != law.Omega.shape[-1]:
            raise ValueError(f"{self.columns_.n_random} columns that vary between people, but {law.Omega.shape[-1]}")
        if (self._traits is None) != (law.B.shape[2] == 1):
            raise ValueError("half of the traits")

    # What a choice researcher asks of a fitted model.
    @property
    def _is_logit(self) -> bool:
        return is_logit(self.columns_, self)

    classes = outputs.classes
    memberships = outputs.memberships
    summary = outputs.summary
    likelihood_ratio = outputs.likelihood_ratio

    @property
    def attributes_(self) -> list[str]:
        check_is_fitted(self)
        return self.columns_.attributes

    def _person_draws(self) -> LogitDraws:
        check_is_fitted(self)
        simulated = self.method == "simulated" and self.columns_.n_random > 0
        return LogitDraws.of(self.posterior_, self.columns_, simulated, self.features_, self._space.matrix)

    @property
    def _has_normal_coefficients(self) -> bool:
        return self._is_logit and self.n_classes == 1

    @property
    def _student(self) -> float:
        return 1.0 if self._estimates is None else self._estimates.student

    def _rows(self, codes: IntArray, described: FloatArray) -> ItemRows:
        encoded = np.concatenate([self._space.matrix, described])[codes]
        return ItemRows(outputs.rows_of(self, codes, described), encoded)

    def _moved(self, rows: ItemRows, place: int, change: FloatArray) -> ItemRows:
        X, encoded = rows.X.copy(), rows.encoded.copy()
        encoded[place] += change
        before, after = self.columns_.rows(np.stack([rows.encoded[place], encoded[place]]))
        X[place] += after - before
        return ItemRows(X, encoded)

    def predict_choice(
        self, X: Comparisons | Table, *, items: Table | None = None, people: Table | None = None
    ) -> FloatArray:
        """Probability of each alternative to be chosen, as the best of its set, (n_rows,).

        Parameters as of the other models; averaged over the draws of the coefficients. Somebody who is not known is
        anybody: features of new people (``people``) are for :meth:`predict_proba`.
        """
        check_is_fitted(self)
        if people is not None:
            raise DataError("predict_choice takes no features of new people in this model; leave users out")
        return outputs.predict_choice(copy.copy(self), X, items)

    def _score_and_accuracy(
        self, X: Any, y: npt.ArrayLike | None = None, *, items: Any = None, people: Any = None, columns: Said = None,
        reading: Said = None,
    ) -> tuple[float, float]:  # fmt: skip
        """Mean log-likelihood, a task of several rows being one answer, and share of answers that are the likeliest."""
        check_is_fitted(self)
        answers = read_answers(X, y, with_ties=self.tie_threshold_ > 0.0, columns=columns, reading=reading)
        of_pairs = super()._score_and_accuracy(answers, items=items, people=people)
        return (outputs.score_of_choices(self, answers, items), of_pairs[1]) if answers.joint else of_pairs


def _refuse_shifts(terms: Terms, columns: ItemColumns, training: Training, n_classes: int) -> None:
    """DataError where coefficients cannot depend on covariates of people."""
    name = terms.by_people[0].name
    if not training.personal:
        raise DataError(f'"{name}" needs to know who answered. Say which column does ({either("-c who=", "columns")})')
    if n_classes > 1:
        raise DataError(
            f'"{name}" with n_classes={n_classes}: covariates of people say which class they are of, and coefficients '
            "are those of the class. Leave the interaction out, or take one class"
        )
    asked = {one.attribute for one in terms.by_people}
    mine = [k for k, source in enumerate(columns.sources) if source in asked]
    if columns.price >= 0 or (columns.kind[mine] != 0).any():
        raise DataError(
            f'"{name}" is added to the coefficient of an attribute, which must be normal or fixed, and not in the '
            "space of willingness to pay. Take another distribution"
        )


def _traits(training: Training) -> tuple[Traits | None, FloatArray]:
    """Principal components of people's features, as many as people can tell of, beside the constant; (U, 1 + T)."""
    ones = np.ones((training.comparisons.n_users, 1))
    if training.people is None or not training.personal:
        return None, ones
    aligned = training.people.align(training.comparisons.users)
    if not aligned[1].any():
        raise DataError(
            f"none of the people who answered is in the table of people ({either('--people FILE', 'people=...')})"
        )
    traits = Traits.of(*aligned)
    most = training.comparisons.n_users // _LARGEST_TRAITS
    traits = Traits(traits.mean, traits.rotation[:, :most])
    if not traits.rotation.shape[1]:
        return None, ones
    return traits, np.column_stack([ones, traits.transform(*aligned)])


def _tie_threshold(answers: Comparisons, posterior: MixedLogitPosterior) -> float:
    """The δ with the highest likelihood of the answers to pairs, at the margins that were learned."""
    if not answers.has_ties:
        return 0.0
    alone = np.flatnonzero(joint_rows(answers) < 0)
    rows = alone[:: max(1, -(-len(alone) // _ROWS_FOR_TIES))]
    users, difference = answers.user[rows], posterior.X[answers.left[rows]] - posterior.X[answers.right[rows]]
    place, weight = 1 - answers.outcome[rows].astype(np.int64), answers.weight[rows]

    def loss(log_delta: float) -> float:
        log_p = posterior.predicted(users, difference, delta=float(np.exp(log_delta)))[2]
        return -float(weight @ log_p[np.arange(len(rows)), place])

    return float(np.exp(minimize_scalar(loss, bounds=(-6.0, 4.0), method="bounded").x))
