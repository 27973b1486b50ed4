"""Folds of answers within people, and held-out predictions of models on them."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_count
from predilect._base.estimator import clone
from predilect._base.progress import Watcher, tell_parts
from predilect._base.types import BoolArray, FloatArray
from predilect.data import Comparisons, ItemFeatures, k_folds_answers
from predilect.data.checks import connected_items
from predilect.data.comparisons import joint_rows
from predilect.data.content import Keys, keys_of_answers
from predilect.data.features import FeatureSpace
from predilect.data.orders import as_orders, weights_of_rows
from predilect.data.read.options import option
from predilect.data.splits import only_people_of, shuffled_people, with_items_of, with_moderate_counts
from predilect.errors import ConvergenceWarning, DataError, DataWarning
from predilect.evaluation.metrics import Reliability, accuracy, paired_difference, reliability
from predilect.evaluation.verdict import Contest, Verdict, judged, not_judged, outcome_of

# So few people are enough if they answered so much each: what each says of the difference is then known well.
FEWEST_PEOPLE, FEWEST_BUSY, BUSY = 10, 5, 20
_MOST_ROWS = 100_000
# Above, a fit is mostly items x items algebra: two of the folds are enough, as each holds out a share of everybody.
_MANY_ITEMS = 300
_FOLDS_MANY_ITEMS = 2
# Settings that are known are tried against a prior so much stronger, unless it is rigid already.
_STRONGER, _RIGID = math.sqrt(10.0), 1e4
_ANSWERS_ON_AN_ITEM = 4.0  # fewer say little of an item, and nothing of how people differ on it
_OWNERS = 1.5  # people an island of items, at most, for it to be one person's


@dataclass
class JudgingFolds:
    """Folds on which models are compared.

    ``fold``: where each row is held out, int8 of shape (n_rows,), -1 for never; ``tie_threshold``: for folds whose
    training answers hold no tie, though others do; ``notes``: what the reader of a verdict should know; ``asked``: the
    answers held out, in canonical order; ``chosen``: settings that the first fit of each model chose, by its name;
    ``n_runs``: about how many models are tried, ``begun`` their names so far.
    """

    comparisons: Comparisons
    fold: npt.NDArray[np.int8]
    tie_threshold: float
    watch: Watcher | None
    notes: list[str] = field(default_factory=list)
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)
    n_runs: int = 2
    begun: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers = [int(k) for k in np.unique(self.fold) if k >= 0]
        if self.comparisons.n_items > _MANY_ITEMS:
            numbers = numbers[:_FOLDS_MANY_ITEMS]
        self.masks = [self.fold == k for k in numbers]
        self.ever = np.logical_or.reduce(self.masks)
        self.asked = self.comparisons.take(self.ever)
        self.places = [mask[self.ever] for mask in self.masks]  # of each fold's answers among those asked

    def run(
        self, name: str, estimator: Any, features: ItemFeatures | None, parts: Sequence[BoolArray] | None = None,
        known: Mapping[str, Any] | None = None,
    ) -> FloatArray:  # fmt: skip
        """Held-out log-probabilities of (left, tie, right) of the rows asked, and of the answers as given, (n, 4).

        The last counts a task of several rows as a whole, at each of them.

        With ``parts``, masks of rows that share no item, each is fitted by itself and on its own items. Settings that
        are ``known`` are kept, unless a stronger prior does better on the first fold: then that chooses its own.
        """
        found = np.empty((self.asked.n_rows, 4))
        n_short = n_fits = 0
        self.begun.append(name)
        n_parts = max(self.n_runs, len(self.begun)) * len(self.masks)
        kept = known or {}
        for number, mask in enumerate(self.masks, 1):
            tell_parts(self.watch, (len(self.begun) - 1) * len(self.masks) + number - 1, n_parts)
            watch = self._watch(f"{name}, part {number} of {len(self.masks)}")
            for part in parts or [np.ones(self.comparisons.n_rows, dtype=bool)]:
                if not (mask & part).any():
                    continue
                own = self.comparisons if parts is None else _of_own_items(self.comparisons.take(part))
                train, test = own.take(~mask[part]), own.take(mask[part])
                if watch is not None:
                    watch("", n_fits)  # until the fit tells of itself, which may take a while
                model, converged = self._fitted(_with(estimator, kept), train, features, parts is not None, watch)
                if n_fits == 0 and kept.get("strength", _RIGID) < _RIGID:
                    stronger = _with(estimator, {**kept, "strength": _STRONGER * kept["strength"]})
                    if _is_better(self._fitted(stronger, train, features, parts is not None, watch)[0], model, test):
                        model, converged = self._fitted(estimator, train, features, parts is not None, watch)
                place = (mask & part)[self.ever]
                found[place, :3] = model.predict_log_proba(test)
                found[place, 3] = model._answer_log_proba(test)
                n_short += not converged
                n_fits += 1
                if n_fits == 1:
                    kept = self.chosen[name] = model.hyperparameters_.to_dict() | model._choices
        if n_short:
            self.notes.append(f"{n_short} of {n_fits} fits behind the verdict ({name}) did not converge.")
        return found

    def _fitted(
        self, estimator: Any, train: Comparisons, features: ItemFeatures | None, apart: bool, watch: Watcher | None
    ) -> tuple[Any, bool]:
        """A fit, and whether it converged; answers ``apart`` are some of those to be fitted."""
        model = clone(estimator)
        if self.comparisons.has_ties and (apart or not train.has_ties):
            given = model.tie_threshold  # a pair, where a spread of people's own was chosen
            spread = given[1:] if isinstance(given, tuple) else (0.0,)
            model.set_params(tie_threshold=(self.tie_threshold, *spread))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")  # fits that fall short are counted
            # What the data are like was said at the fit to all of them.
            warnings.simplefilter("ignore", DataWarning)
            model.fit(train, items=features, watch=watch)
        return model, not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)

    @property
    def items_are_new(self) -> bool:
        """Whether there are many items, and hardly an answer on each: without features nothing of a person's carries
        from one to another, and a model of all people on all items takes long to find that out.
        """
        rows = self.comparisons
        return rows.n_items > _MANY_ITEMS and 2.0 * rows.n_answers < _ANSWERS_ON_AN_ITEM * rows.n_items

    def islands(self) -> list[BoolArray] | None:
        """Rows cut where no item is shared, into parts of some 300 items at most; None for fewer or shared ones.

        Without features, answers on one island say nothing of another. Where each is hardly anybody's but one person's,
        that person's own model is the pooled one.
        """
        rows = self.comparisons
        if rows.n_items <= _MANY_ITEMS:
            return None
        island = connected_items(rows)
        of_row = island[rows.left]
        n_owned = len(np.unique(of_row.astype(np.int64) * rows.n_users + rows.user))
        if n_owned > _OWNERS * len(np.unique(of_row)):
            return None
        # About equal ones: of a last part with the few items that are over, all answers may be held out.
        number = (np.cumsum(np.bincount(island)) - 1) * -(-rows.n_items // _MANY_ITEMS) // rows.n_items
        return [number[of_row] == part for part in np.unique(number[of_row])]

    def tied_at_random(self, log_proba: FloatArray) -> FloatArray:
        """The same preferences, but with the training answers' share of ties for every pair."""
        result = log_proba.copy()
        for mask, place in zip(self.masks, self.places, strict=True):
            tied, weight = self.comparisons.outcome[~mask] == 0, self.comparisons.weight[~mask]
            # Half a tie and half a decided answer more: neither can be impossible.
            share = (float(weight[tied].sum()) + 0.5) / (float(weight.sum()) + 1.0)
            strict = np.logaddexp(log_proba[place, 0], log_proba[place, 2])
            result[place, :3] = log_proba[place, :3] - strict[:, None] + np.log1p(-share)
            result[place, 1] = np.log(share)
        alone, rows = joint_rows(self.asked) < 0, np.arange(len(result))
        result[alone, 3] = result[rows, 1 - self.asked.outcome][alone]
        return result

    def _watch(self, stage: str) -> Watcher | None:
        watch = self.watch
        return None if watch is None else lambda _, done: watch(f"held-out answers: {stage}", done)


def _with(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """An estimator with those of the settings that it has."""
    names = estimator.get_params()
    return clone(estimator).set_params(**{name: value for name, value in settings.items() if name in names})


def _is_better(model: Any, other: Any, test: Comparisons) -> bool:
    """Whether held-out answers are likelier by half a standard error, as a search asks of a setting."""
    weight = weights_of_rows(with_moderate_counts(test))
    weight = weight / weight.sum()
    gain = model._answer_log_proba(test) - other._answer_log_proba(test)
    mean = float(weight @ gain)
    return mean > 0.5 * float(np.sqrt(weight**2 @ (gain - mean) ** 2))


def _of_own_items(comparisons: Comparisons) -> Comparisons:
    return with_items_of(comparisons, FeatureSpace.empty(comparisons.n_items))[0]


def drawn_people(
    comparisons: Comparisons, fold: npt.NDArray[np.int8], max_people: int, rng: np.random.Generator, keys: Keys
) -> tuple[Comparisons, npt.NDArray[np.int8]]:
    """At most ``max_people`` people with answers held out, and their share of the others: comparisons and folds.

    Fewer if their answers fill more than 100 000 rows; people are renumbered. Who is drawn follows ``keys``.
    """
    rows = np.bincount(comparisons.user, minlength=comparisons.n_users)
    able = np.zeros(comparisons.n_users, dtype=bool)
    able[comparisons.user[fold >= 0]] = True
    everybody = np.argsort(shuffled_people(comparisons, rng, keys))
    order = everybody[able[everybody]]
    n = min(max_people, max(int(np.searchsorted(np.cumsum(rows[order]), _MOST_ROWS, "right")), FEWEST_PEOPLE))
    others = everybody[(~able & (rows > 0))[everybody]]
    share = min(1.0, n / max(len(order), 1))
    keep = np.zeros(comparisons.n_users, dtype=bool)
    keep[order[:n]] = True
    keep[others[: min(max_people, round(share * len(others)))]] = True
    if keep.all():
        return comparisons, fold
    mask = keep[comparisons.user]
    return only_people_of(comparisons, mask)[0], fold[mask]


_FEWEST_HELD_OUT = 20
_FEWEST_TIES = 20
_TOLERANCE = 1e-4  # nats an answer: models are compared, not kept; a tenth of it moved no gain by .0001
_SAME = "the reason is the same as for personal rankings"


def judge(
    estimator: Any,
    comparisons: Comparisons,
    features: ItemFeatures | None = None,
    *,
    n_folds: int = 5,
    max_people: int = 2000,
    n_bootstrap: int = 2000,
    random_state: int = 0,
    tie_threshold: float = 0.0,
    known: Mapping[str, Any] | None = None,
    watch: Watcher | None = None,
) -> Verdict:
    """Whether personal rankings, item features, ties and covariates of answers improve predictions of held-out answers.

    Parameters
    ----------
    estimator : estimator
        Like :class:`~predilect.Population`; it is cloned, and what it fixes stays fixed.
    comparisons : Comparisons
    features : ItemFeatures, optional
    n_folds : int, default 5
        Each answer of a person is held out once. With more than 300 items only two of the folds are fitted.
    max_people : int, default 2000
        Most people that take part, drawn at random; fewer if their answers fill more than 100 000 rows.
    n_bootstrap : int, default 2000
        Resamples of the people, for the intervals.
    random_state : int, default 0
        Draws the people, the folds and the resamples.
    tie_threshold : float, default 0
        For folds whose training answers happen to hold no tie.
    known : mapping, optional
        Settings of personal rankings, as a fit to all answers chose them: kept in the folds, unless a stronger prior
        does better on the first.
    watch : callable, optional
        Called with progress: ``watch(stage, done)``.

    Returns
    -------
    Verdict
        Too little data gives the outcome "unknown" and not an error.

    Raises
    ------
    DataError
        If a setting is out of range.

    Notes
    -----
    All answers of a person to one pair share a fold; people with one pair are always in training, and nobody is ever
    without answers there. Each model chooses its own hyper-parameters on the training part of the first fold and keeps
    them in the others. Choosing anew in every fold takes three to four times as long and moved the difference by .001
    nats an answer on 720 answers of crowds that agree. With more than 300 items, and fewer than two answers for each,
    the model without features ignores who answered. Some n_folds fits of each model, of which one searches the
    prior.
    """
    settings = {"n_folds": n_folds, "max_people": max_people, "n_bootstrap": n_bootstrap, "random_state": random_state}
    _check(settings)
    if comparisons.time is not None:  # people have no ratings over time, and so both are of ratings that stay
        comparisons, estimator = comparisons.without_times(), clone(estimator).set_params(drift=False)
    comparisons = replace(as_orders(comparisons), item_table=None)  # features are those given
    seeds = np.random.SeedSequence(random_state).spawn(3)
    has_features = features is not None and features.matrix.shape[1] > 0
    questions = ["personal", *["features"] * has_features, *["ties"] * comparisons.has_ties]
    questions += ["covariates"] * (comparisons.covariates is not None)
    some, fold = comparisons, np.full(comparisons.n_rows, -1, dtype=np.int8)
    if comparisons.has_users and comparisons.n_users > 1:
        keys = keys_of_answers(comparisons)
        fold = k_folds_answers(comparisons, n_folds, random_state=seeds[0], keys=keys)
        some, fold = drawn_people(comparisons, fold, max_people, np.random.default_rng(seeds[1]), keys)

    def verdict(
        contests: dict[str, Contest], notes: tuple[str, ...] = (), shares: tuple[Reliability, ...] = ()
    ) -> Verdict:
        return Verdict(
            contests["personal"], contests.get("features"), contests.get("ties"), settings, comparisons.n_users,
            some.n_users, notes, contests.get("consistency"), contests.get("covariates"), shares,
        )  # fmt: skip

    if why := _too_little(comparisons, some, fold):
        return verdict({q: not_judged(q, why if q == "personal" else _SAME) for q in questions})
    n_runs = 2 + len({"features", "covariates"}.intersection(questions))
    n_runs += estimator.get_params().get("consistency", 0.0) != 0.0
    trial = JudgingFolds(some, fold, tie_threshold, watch, n_runs=n_runs)
    tolerance = _TOLERANCE if isinstance(estimator.tol, str) else max(estimator.tol, _TOLERANCE)
    judging = _Judging(
        trial, clone(estimator).set_params(strict=False, tol=tolerance), features,
        trial.islands() if has_features else None, known, comparisons.n_users, n_bootstrap,
        int(seeds[2].generate_state(1)[0]),
    )  # fmt: skip
    for question in questions:
        judging.ask(question)
    return verdict(judging.contests, tuple(trial.notes), judging.shares())


@dataclass
class _Judging:
    """One question after the other, by fits to the folds: personal rankings first, which the others build on."""

    trial: JudgingFolds
    base: Any  # estimator
    features: ItemFeatures | None
    islands: list[BoolArray] | None  # of the trial, where features are a question
    known: Mapping[str, Any] | None
    n_users: int  # of all answers: the trial may have fewer
    n_bootstrap: int
    seed: int
    contests: dict[str, Contest] = field(default_factory=dict)
    favoured: FloatArray | None = None  # predictions of personal rankings or of one for all, whichever are better

    def ask(self, question: str) -> None:
        """One question, or why it has no answer."""
        others = {"features": self._features, "ties": self._ties, "covariates": self._covariates}
        try:
            if question == "personal":
                self._personal()
            elif self.favoured is None:
                self.contests[question] = not_judged(question, _SAME)
            else:
                others[question](self.favoured)
        except DataError as error:
            self.contests[question] = not_judged(question, _untried(error))

    def shares(self) -> tuple[Reliability, ...]:
        """How often what is said with some probability happens; of a choice only pairs with the chosen one are rows."""
        held = self.trial.asked
        if self.favoured is None or held.joint:
            return ()
        return reliability(held.outcome, self.favoured[:, :3], held.user, with_moderate_counts(held).weight)

    def _hold(self, question: str, model: FloatArray, baseline: FloatArray) -> None:
        contest = _contest(question, self.trial, model, baseline, self.n_bootstrap, self.seed)
        self.contests[question] = judged(contest, self.n_users, self.trial.comparisons.n_users)

    def _with(self, **settings: Any) -> Any:
        return clone(self.base).set_params(**settings)

    def _personal(self) -> None:
        trial, contests = self.trial, self.contests
        # Personal first: if it fails, on thousands of items say, it should do so before the other is fitted.
        personal = trial.run("personal rankings", self._with(personal=True), self.features, known=self.known)
        chosen, all_as_one = trial.chosen["personal rankings"], self._with(personal=False)
        if self.islands is not None:
            # With the basis of the personal rankings: its own choice would be the items, which take long to fit, and
            # of which there is nothing to learn where each is one person's.
            all_as_one.set_params(**{name: chosen[name] for name in ("basis", "n_inducing") if name in chosen})
        pooled = trial.run("one ranking for all", all_as_one, self.features)
        self._hold("personal", personal, pooled)
        baseline = pooled
        differs = bool(chosen.get("consistency", 0.0) or chosen.get("clickers", 0.0))
        asked = [self.base.get_params().get(name, 0.0) for name in ("consistency", "clickers")]
        # Or consistency would be called taste. What people's consistency, and who clicks at random, are to personal
        # rankings they are to one ranking too; else it finds its own.
        if asked != [0.0, 0.0] and (differs or contests["personal"].outcome == "better"):
            alike = self._with(
                personal=True, user_features=False, tie_threshold=chosen["tie_threshold"], **self.base._of_one_mind
            )
            if differs:
                alike.set_params(**{name: chosen[name] for name in ("consistency", "clickers")})
            careful = trial.run("one ranking for all, with consistency", alike, self.features)
            self._hold("consistency", careful, pooled)
            if contests["consistency"].outcome == "better":
                of_all = contests["personal"]
                self._hold("personal", personal, careful)
                if {of_all.outcome, contests["personal"].outcome} == {"better"} and not differs:
                    # Tastes agree with the crowd's more or less, which one ranking takes for consistency.
                    contests["personal"] = of_all
                    del contests["consistency"]
                else:
                    baseline = careful
        self.favoured = personal if contests["personal"].outcome == "better" else baseline

    def _features(self, favoured: FloatArray) -> None:
        plain = self._with(personal=self.contests["personal"].outcome == "better")
        if "basis" in plain.get_params():  # one of attributes cannot do without them, nor can terms
            plain.set_params(basis="auto", attributes=None)
        if self.islands is not None or self.trial.items_are_new:
            plain.set_params(personal=False)
        self._hold("features", favoured, self.trial.run("no item features", plain, None, self.islands))

    def _covariates(self, favoured: FloatArray) -> None:
        some = replace(self.trial.comparisons, covariates=None, covariate_names=())
        same = self._with(personal=self.contests["personal"].outcome == "better")
        without = replace(self.trial, comparisons=some)
        self._hold("covariates", favoured, without.run("without covariates of answers", same, self.features))

    def _ties(self, favoured: FloatArray) -> None:
        n = int((self.trial.asked.outcome == 0).sum())
        if n < _FEWEST_TIES:
            why = f"{n} of the held-out answers are ties, and it takes {_FEWEST_TIES}"
            self.contests["ties"] = not_judged("ties", why)
        else:
            self._hold("ties", favoured, self.trial.tied_at_random(favoured))


def _contest(
    question: str, trial: JudgingFolds, model: FloatArray, baseline: FloatArray, n_bootstrap: int, seed: int
) -> Contest:
    asked = trial.asked
    y, w = asked.outcome, weights_of_rows(with_moderate_counts(asked))
    ours, theirs = -model[:, 3], -baseline[:, 3]
    gain = paired_difference(theirs, ours, asked.user, seed, weight=w, n_resamples=n_bootstrap)
    n_people = gain.n_groups
    if asked.context is not None:  # people are not the only ones whose answers hang together
        other = paired_difference(theirs, ours, asked.context_groups, seed, weight=w, n_resamples=n_bootstrap)
        gain = max(gain, other, key=lambda one: one.upper - one.lower)
    return Contest(
        question,
        outcome_of(gain.mean, gain.lower, gain.upper),
        "",
        log_loss=float(np.average(ours, weights=w)),
        baseline_log_loss=float(np.average(theirs, weights=w)),
        accuracy=accuracy(y, model[:, :3], w),
        baseline_accuracy=accuracy(y, baseline[:, :3], w),
        gain=gain.mean,
        lower=gain.lower,
        upper=gain.upper,
        n_people=n_people,
        n_answers=float(weights_of_rows(asked).sum()),
        n_folds=len(trial.masks),
    )


def _too_little(comparisons: Comparisons, some: Comparisons, fold: npt.NDArray[np.int8]) -> str:
    """Why nothing can be judged, and what would help; empty if it can."""
    if not comparisons.has_users:
        return f"no column says who answered. Name it ({option('user', 'NAME')}), if there is one"
    if comparisons.n_users == 1:
        return "all answers are one person's, so that the one ranking is that person's own. Ask more people"
    answers_of = np.bincount(some.user[fold >= 0], some.weight[fold >= 0])
    n_people = int(np.count_nonzero(answers_of))
    if n_people < FEWEST_PEOPLE and np.count_nonzero(answers_of >= BUSY) < FEWEST_BUSY:
        who = {0: "nobody", 1: "only 1 person"}.get(n_people, f"only {n_people} people")
        return (
            f"{who} answered two different questions or more, and it takes {FEWEST_PEOPLE}, or {FEWEST_BUSY} who "
            f"answered {BUSY} each. Ask more people, several questions each"
        )
    n_held_out = int((fold >= 0).sum())
    if n_held_out < _FEWEST_HELD_OUT:
        return f"only {n_held_out} answers can be held out, and it takes {_FEWEST_HELD_OUT}. Ask more questions"
    return ""


def _untried(error: DataError) -> str:
    return f"the models could not be tried on a part of the answers ({str(error).rstrip('.')})"


def _check(settings: Mapping[str, object]) -> None:
    for name, (low, high) in {
        "n_folds": (2, 127), "max_people": (FEWEST_PEOPLE, 10**9), "n_bootstrap": (100, 10**6),
        "random_state": (0, 2**63),
    }.items():  # fmt: skip
        check_count(f"{name} of the verdict", settings[name], low, most=high)


def verdict_of(model: Any, *, watch: Watcher | None, **settings: int) -> Verdict:
    """The verdict that the model holds, or a new one, kept unless answers changed meanwhile; raises DataError."""
    now = copy.copy(model)
    held: Verdict | None = now.verdict_
    if held is not None and held.settings == settings:
        return held
    if now.comparisons_ is None:
        why = f"it holds one for other settings ({held.settings}) in verdict_" if held is not None else "it holds none"
        raise DataError(
            f"a loaded model has no answers to hold out, and {why}. Fit again on the answers and call verdict() before "
            "save()"
        )
    known = now.hyperparameters_.to_dict() | now._choices if now.personal_ else None
    verdict = judge(
        now, now.comparisons_, now.features_, tie_threshold=now.tie_threshold_, known=known, watch=watch, **settings
    )
    with model._lock:
        if model._log is now._log:  # no answer came or went meanwhile
            model._keep_verdict(verdict)
    return verdict
