"""``update`` and ``forget`` of a fitted population model: lay out whom they touch, converge, add.

The population is held fixed. People whose answers changed lie beside the layout of all, until they are merged into it.
"""

from __future__ import annotations

import copy
import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from predilect._base.estimator import Lock, check_is_fitted
from predilect._base.progress import Report
from predilect._base.shards import workers
from predilect._base.text import amount, did_you_mean, quoted, setting
from predilect._base.types import FloatArray
from predilect.data import Comparisons
from predilect.data.comparisons import without_person
from predilect.data.keyed_rows import DUST, Rows, keys_of, sides_of
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.posterior import Utilities
from predilect.inference.people.engaged import shares_of, with_clicks
from predilect.inference.people.expectation import LOOSE_TOLERANCE, MOST_SWEEPS, SITE_TOLERANCE, converge
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People
from predilect.inference.people.moved import share_left
from predilect.inference.people.person import Person, side_by_side
from predilect.models.population.batches import AnswerLog, Batch, keyed, names_of, read_batch
from predilect.models.population.pooled import pooled_rows, refitted_pooled
from predilect.models.reading import Said, rows_of_features

# All people are merged into one layout once so many, and such a share of all, have changed outside it.
_MOST_BESIDE, _SHARE_BESIDE = 1000, 0.05
_QUICK = 2.0**18  # multiply-adds of one product of matrices, below which BLAS keeps to one thread by itself
# When a refit is due: a share of the answers of the fit; after the prior; and steps of an item from the mean of the
# items, in standard deviations at the fit
_SHARE = 0.1
_FIRST_ANSWERS, _FIRST_PEOPLE = 10.0, 2
_LARGEST_STEP = 1.0


def _said(columns: Said = None, reading: Said = None, **other: Any) -> tuple[Said, Said]:
    """Columns of a frame, and how they are read; TypeError for another argument."""
    if other:
        raise TypeError(
            f"update() has no argument {next(iter(other))}: one answer is user=, left=, right= and winner= or "
            "outcome=, whatever the columns of the fit were called. A data frame may have these columns"
        )
    return columns, reading


class Updating:
    """Base of estimators that take answers after the fit."""

    _log: AnswerLog
    _lock: Lock
    personal_: bool
    drift_: Any
    n_answers_: float
    report_: dict[str, Any]

    @property
    def _delta(self: Any) -> float:
        """δ, or the scale of the thresholds of grades, as passes over answers take it."""
        thresholds = self.posterior_.thresholds
        return float(self.tie_threshold_ if thresholds is None else thresholds.scale)

    def update(
        self,
        more: Any = None,
        y: npt.ArrayLike | None = None,
        *,
        user: Any = None,
        left: Any = None,
        right: Any = None,
        outcome: int | None = None,
        winner: Any = None,
        weight: float = 1.0,
        people: Any = None,
        items: Any = None,
        **read: Said,
    ) -> Self:
        """Add answers, and items, without a refit.

        The utilities of the people who answered are updated at once, with the population as it was fitted, and the
        crowd's board, which newcomers begin from, moves by one Newton step of the fit. How people differ, thresholds,
        effects and the calibration stay until a refit, ``fit`` on all answers; :attr:`needs_refit_` says when.

        Parameters
        ----------
        more : Comparisons or data frame, optional
            As :meth:`fit` takes them. Rows about an item that the model does not know, and ties in a model that holds
            them impossible, are left out, with a warning and in ``left_out_``; after an error nothing is taken in.
            Covariates of the model that they lack are equal on both sides, as those of an answer given by name.
        y : array of int, shape (n,), optional
            Outcomes of the rows of a frame.
        user, left, right : id, optional
            One answer instead of a frame, within a millisecond: who, and the two items.
        outcome : {1, 0, -1} or a grade, optional
            Of that one answer: left is better, a tie, right is better; of a model with grades their number, from 1 for
            the slightest, negative where right is better.
        winner : id or "tie", optional
            Instead of ``outcome``: the better item, or the word tie; nothing is said of the grade then.
        weight : float, default 1
            How many identical answers the one stands for.
        people : data frame, optional
            Features of new people, if the model uses them; without them a new person is taken for an average one.
        items : list of ids or data frame, optional
            Items that join, perhaps with their features: those that the model knows already count for nothing. Without
            features an item is taken for one of the kind of the others. Not of the pooled model.
        columns, reading : dict, optional
            As of :meth:`fit`, of a frame.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If an item of the one answer is not known, or a tie is impossible in this model, or anything is missing.
            Nothing is changed.
        DataWarning
            If rows were left out.

        Notes
        -----
        population.md section 4, "Update": expectation propagation of the people touched, run to convergence. So the
        result is that of a person with all these answers, in whatever order they came; the same answer twice is one of
        weight 2. Where rows of a task are one answer, it comes, or goes, as a whole. O(n_u min(n_u, k_u)²) for a person
        with n_u answers on k_u items, however many answers the model holds; the pooled model O(pairs with answers +
        n_items³). The board's step is computed when it is asked for, O(answers of the people touched + n_items³): sums
        over people, which do not depend on the order of answers.

        Threads may share a model: of ``update``, ``forget`` and ``_consolidate`` one runs at a time; predictions,
        boards, questions and ``verdict`` wait for none, ``save`` only before it begins, and all see the model as it was
        when they began. ``fit`` must not run beside any of them.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, -1])
        >>> model.update(user="dan", left="milk", right="juice", outcome=1).n_answers_
        4.0
        >>> model.forget(user="dan", left="milk", right="juice", outcome=1).n_answers_
        3.0
        """
        answer = {"user": user, "left": left, "right": right, "outcome": outcome, "winner": winner}
        self._change(1, more, y, weight, answer, _said(**read), people, items)
        return self

    def forget(
        self,
        answers: Any = None,
        y: npt.ArrayLike | None = None,
        *,
        user: Any = None,
        left: Any = None,
        right: Any = None,
        outcome: int | None = None,
        winner: Any = None,
        weight: float = 1.0,
        columns: Said = None,
        reading: Said = None,
    ) -> Self:
        """Remove answers, as if they had never been given, or all that is known of a person.

        The fitted population is held fixed. With ``user`` alone the person is erased: the answers, the id, the
        features and all that was found out about the person are gone, from the model and from what it saves; a saved
        folder, a table or a page that was written before has to be written anew. Predictions for the id are then those
        for somebody unknown, and for everybody else they are the same to the bit. The crowd's board is without them.
        What the answers had told of the population stays until the next :meth:`fit`: the consensus that others' own
        boards begin from, how people differ, effects of features and covariates, thresholds, the prior, the
        calibration, and how features are scaled. None of it has a part for this person alone; in a crowd of a few, it
        can still tell of one. Whoever came by :meth:`update` has told the population nothing.

        Of answers: somebody who has the answers of the fit (or of ``_consolidate``) again is as before to the bit;
        otherwise utilities agree to the tolerance of the iteration, some 1e-10, since it goes on from where it stands.
        Boards come back as they were, with tied items in the order of the ids. Someone whose last answer is removed
        stays known, with the population's prediction.

        Parameters
        ----------
        answers, y, user, left, right, outcome, winner, weight, columns, reading
            As in :meth:`update`. Each must be held, with at least its weight, whichever item was on the left. ``user``
            alone: erase this person.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If one of them is not held, or was taken back already; the message names the first. If there is no such
            person, or nobody else. Nothing is changed.
        DataWarning
            If the model is pooled and was loaded: it holds who is in it, and the answers, but not who gave which. The
            id is gone then, and the answers are not.

        Notes
        -----
        The pooled model holds answers, and not who gave them. To erase takes O(answers), as ``_consolidate``, after
        which codes of people are others.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, -1])
        >>> model.forget(user="bob").users_
        Vocabulary(2 ids: "ann", "cas")
        """
        answer = {"user": user, "left": left, "right": right, "outcome": outcome, "winner": winner}
        rest = (answers, y, left, right, outcome, winner, columns, reading)
        if user is None or weight != 1.0 or any(value is not None for value in rest):
            self._change(-1, answers, y, weight, answer, (columns, reading))
            return self
        check_is_fitted(self)
        with self._lock:
            erase(self, user)
        return self

    def _consolidate(self) -> Self:
        """Merge changed and new people into one layout and into ``users_``.

        Predictions do not change; codes of people (positions in ``users_``) do if there are new ones. It runs by itself
        before saving, and when more than a few percent of the people changed. O(answers).
        """
        check_is_fitted(self)
        with self._lock:
            consolidate(self)
        return self

    @property
    def n_fitted_(self) -> float:
        """Number of answers that the population was fitted to; 0: it is the prior."""
        since = self.report_.get("updates", {})
        came, went = since.get("answers_added", 0.0), since.get("answers_taken_back", 0.0)
        return max(self.n_answers_ - came + went, 0.0)

    @property
    def needs_refit_(self) -> str | None:
        """Why a refit, ``fit`` on all answers, is due; None if it is not.

        The board moves with updates by one Newton step, and how people differ, thresholds and the calibration stay:
        that is good for small changes. A refit is due after a tenth as many answers as the fit had (after the prior: 10
        answers of two people), when an item moved by more than its standard deviation, after a first tie, and when
        there are answers on items that joined.
        """
        check_is_fitted(self)
        return reason_to_refit(copy.copy(self))

    @property
    def comparisons_(self) -> Comparisons | None:
        """The answers; None after :meth:`load`. New pairs have no task."""
        return self._log.comparisons

    def _change(
        self, sign: int, more: Any, y: Any, weight: float, answer: dict[str, Any], said: tuple[Said, Said],
        people: Any = None, items: Any = None,
    ) -> None:  # fmt: skip
        from predilect.models.population.new_items import joining, with_new_items

        check_is_fitted(self)
        if self.drift_ is not None:
            raise DataError(
                "ratings over time are not changed answer by answer, as each has a time. Fit again on all answers"
            )
        with self._lock:
            new = [] if items is None else joining(self, items)
            now = copy.copy(self) if new else self
            if new:
                vars(now).update(with_new_items(self, new, items))
            if items is None or more is not None or any(value is not None for value in answer.values()):
                batch = read_batch(now, more, y, said, weight=weight, may_add=sign > 0, **answer)
                change(now, batch, sign, people)
            if new:
                vars(self).update(vars(now))

    def _snapshot(self) -> Self:
        """Snapshot of the model with everybody in one layout."""
        return copy.copy(self._consolidate())._consolidate()


def begin_updates(model: Any, comparisons: Comparisons | None) -> None:
    """Set what updates need on a model that was just fitted or loaded."""
    model._lock = Lock()
    model._log = AnswerLog(comparisons)
    model._added_users = {}
    model._pooled_rows = None
    model._pooled_prior = None
    model.left_out_ = []
    if comparisons is not None:
        model.provisional_items_ = []


def change(model: Any, batch: Batch, sign: int, people: Any = None) -> None:
    """Add answers (sign 1) or remove them (sign -1), all of them or, if anything is wrong, none.

    Changes the model in place, in one step; the caller holds ``_lock``. Raises DataError if a tie is impossible in the
    model, a weight is below 1, or an answer to remove is not held.
    """
    rows = batch.rows
    if not len(rows.key):
        model.left_out_ = list(batch.left_out)
        return
    if sign > 0:
        _refuse(model, batch)
    counts = _counts_after(model, batch, sign)
    if model.personal_:
        persons = _changed_people(model, batch, sign, people)
        changed: dict[str, Any] = {"posterior_": model.posterior_.with_people(persons, len(batch.new), batch.effects)}
    else:
        held = _changed(model, pooled_rows(model), _as_one(rows), sign, batch)
        state = refitted_pooled(model, held, batch.effects)
        posterior = replace(model.posterior_, covariates=batch.effects)
        posterior = posterior.moved(state.mode, state.covariance(), _share_of_fit(counts))
        changed = {"posterior_": posterior, "_pooled_rows": held}
    if batch.new:
        n = len(model.users_) + len(model._added_users)
        changed["_added_users"] = model._added_users | {user: code for code, user in enumerate(batch.new, n)}
    changed |= {"left_out_": list(batch.left_out), "_log": model._log.plus(batch, sign), "verdict_": None, **counts}
    vars(model).update(changed)
    if model.personal_:
        beside = len(model.posterior_.overlay)
        # The first people of all say whether ids are text or numbers.
        if beside > _MOST_BESIDE + _SHARE_BESIDE * model.posterior_.people.n_users or not len(model.users_):
            consolidate(model)


def _refuse(model: Any, batch: Batch) -> None:
    """DataError for ties in a model that holds them impossible, and weights below 1 in one of people."""
    rows = batch.rows
    tie = sides_of(rows.key)[2] == 0
    if model.tie_threshold_ == 0.0 and tie.any():
        raise DataError(
            f"{int(tie.sum())} of the answers are ties (first: {batch.describe(model, int(np.argmax(tie)))}), but the "
            "model was fitted without ties and holds them impossible. "
            f"Fit again on answers with ties, or with {setting('ties', True)}, or leave them out"
        )
    small = rows.weight < 1.0
    if model.personal_ and small.any():
        row = int(np.argmax(small))
        raise DataError(
            f"{int(small.sum())} of the answers have a weight below 1 (first: {batch.describe(model, row)}, weight "
            f"{rows.weight[row]:g}). A weight counts identical answers of one person; personal rankings need weights "
            "of at least 1"
        )


def _changed(model: Any, held: Rows, rows: Rows, sign: int, batch: Batch) -> Rows:
    """Rows with, or without, others; DataError where one is not held. Messages name who in ``batch`` gave it."""
    if sign > 0:
        return held.plus(rows)
    place, wanted = held.places(rows), rows.weight
    there = np.where(place < 0, 0.0, held.weight[place]) if len(held.key) else np.zeros(len(wanted))
    left, dust = there - wanted, DUST * wanted
    short = left < -dust
    part = (left > dust) & (left < 1.0) & model.personal_
    if not short.any() and not part.any():
        return held.less(place, wanted)
    row = int(np.argmax(short if short.any() else part))
    which = batch.describe(model, int(np.argmax(batch.rows.key == rows.key[row])))
    if rows.task[row] >= 0:
        raise DataError(
            f"cannot take back an answer about several alternatives, {which}, among them: the model holds no such "
            "answer of this person. Was it taken back already? Nothing was changed"
        )
    if short.any():
        what = f"holds it with weight {there[row]:g} only" if there[row] else "holds no such answer"
        raise DataError(
            f"cannot take back {which} (weight {wanted[row]:g}): the model {what}. Was it taken back already? Nothing "
            "was changed"
        )
    raise DataError(
        f"taking back {which} with weight {wanted[row]:g} of {there[row]:g} would leave {left[row]:g}: less than one "
        "answer. Nothing was changed"
    )


def _as_one(rows: Rows) -> Rows:
    """Rows as if one person had given them: whoever gave or took back an answer, one row stands for all of it."""
    return rows._replace(user=np.zeros_like(rows.user), task=rows.task_numbers()).merged()


def _changed_people(model: Any, batch: Batch, sign: int, people: Any) -> dict[int, Person]:
    """The people touched, after EP on their new answers."""
    posterior, n_known = model.posterior_, model.posterior_.n_users
    traits = _new_traits(model, batch.new, people)
    codes, user = np.unique(batch.rows.user, return_inverse=True)
    before = {
        code: posterior.answers_of(code) if code < n_known else _newcomer(model, traits[code - n_known])
        for code in codes.tolist()
    }
    held = Rows.stacked([one.rows.of_user(place) for place, one in enumerate(before.values())]).merged()
    rows = _changed(model, held, batch.rows._replace(user=user.reshape(-1)), sign, batch)
    bounds = rows.user.searchsorted(np.arange(len(codes) + 1))
    persons = {
        code: one._replace(rows=rows.at(slice(bounds[place], bounds[place + 1])).of_user(0))
        for place, (code, one) in enumerate(before.items())
    }
    changes = []
    for law, some in posterior.by_law(list(persons)):
        done, change = _converged(model, law, [persons[code] for code in some], batch)
        persons |= dict(zip(some, done, strict=True))
        changes.append(change)
    if not max(changes) <= LOOSE_TOLERANCE:
        _say_not_converged(model, max(changes))
    return {code: _as_before(posterior, code, person) for code, person in persons.items()}


def _converged(model: Any, law: Law, persons: list[Person], batch: Batch) -> tuple[list[Person], float]:
    """People, draws of one law, after EP on their answers, and the last change of a margin."""
    posterior, h = model.posterior_, model.hyperparameters_
    delta = model._delta
    people, sites = side_by_side(persons, posterior.people, batch.effects, n_basis=posterior.n_basis)
    if h.click_rate:
        shares = np.array(h.click_shares) if h.click_shares else shares_of(np.zeros(2))  # before the first answer
        people = with_clicks(people, h.click_rate, shares)
    # Threads of BLAS are held back only where there is work for them: even that takes as long as an update.
    with nullcontext() if _is_quick(people, law) else workers(model.n_jobs) as executor:
        found = converge(
            people, sites, law, delta, spread=h.tie_spread, tolerance=SITE_TOLERANCE, sums=False, executor=executor
        )
    bounds = people.answer_ptr.tolist()
    done = []
    for place, one in enumerate(persons):
        mine = slice(bounds[place], bounds[place + 1])
        rows = one.rows._replace(precision=sites.precision[mine], linear=sites.linear[mine])
        own = {name: getattr(found, name)[place : place + 1] for name in ("tie_factor", "engaged")}
        done.append(one._replace(rows=rows, **own))
    return done, found.largest_change


def _is_quick(people: People, law: Law) -> bool:
    """Whether there is one shard, and no matrix product large enough for BLAS to start threads."""
    size = np.minimum(np.diff(people.answer_ptr), np.diff(people.item_ptr)).max()
    return len(people.shards) == 1 and size < 64 and size**2 * law.Phi.shape[1] < _QUICK


def _newcomer(model: Any, traits: FloatArray) -> Person:
    h = model.hyperparameters_
    consistency, sd = np.array([1.0 / h.unit]), np.array([h.consistency_spread])
    return Person.without_answers(traits[None], consistency=consistency, consistency_sd=sd)


def _as_before(posterior: Any, code: int, person: Person) -> Person:
    """The person as in the layout if the answers are those again, so that what came and went leaves no rounding."""
    people = posterior.people
    if code >= people.n_users or len(person.rows.key) != people.answer_ptr[code + 1] - people.answer_ptr[code]:
        return person
    before = posterior.laid_out(code)
    rows = before.rows.merged()
    return before if all(map(np.array_equal, rows[:5], person.rows[:5])) else person


def _say_not_converged(model: Any, residual: float) -> None:
    Report(
        method="update by EP", iterations=MOST_SWEEPS, residual=residual, tolerance=LOOSE_TOLERANCE,
        converged=False, jitter=0.0, seconds=0.0, unit="noise units of the largest margin",
        advice="look for extreme weights",
    ).require(model.strict)  # fmt: skip


def _new_traits(model: Any, new: list[Any], people: Any) -> FloatArray:
    """Traits of new people; zeros, those of the average person, where nothing is known."""
    traits = np.zeros((len(new), model.posterior_.people.traits.shape[1]))
    if new and people is not None and model._traits is not None and traits.shape[1]:
        order = sorted(range(len(new)), key=new.__getitem__)
        traits[order] = model._traits.transform(
            *rows_of_features([new[place] for place in order], model.user_features_, people)
        )
    return traits


def _counts_after(model: Any, batch: Batch, sign: int) -> dict[str, Any]:
    """The counts of a model, and its report without what was said of the answers before."""
    total, results = float(batch.rows.weight.sum()), batch.rows.results(len(model.items_))
    counts = {"answers_added": 0.0, "answers_taken_back": 0.0, "people_added": 0} | model.report_.get("updates", {})
    counts["answers_added" if sign > 0 else "answers_taken_back"] += total
    counts["people_added"] += len(batch.new)
    report = model.report_ | {"updates": counts}
    report.pop("verdict", None)
    return {
        "_asked": None,
        "results_by_item_": model.results_by_item_ + sign * results,
        "n_answers_": model.n_answers_ + sign * total,
        "report_": report,
    }


def _share_of_fit(counts: dict[str, Any]) -> float:
    """The share of the answers at the fit that there is after an update."""
    now, moved = counts["n_answers_"], counts["report_"]["updates"]
    at_fit = now - moved["answers_added"] + moved["answers_taken_back"]
    return share_left(now, at_fit)


def consolidate(model: Any, gone: int | None = None) -> None:
    """Merge everybody into one layout, and into ``users_``; predictions do not change, codes of people may.

    ``gone``: the code of somebody who has no answers any more, and who is left out.
    """
    users, added, order = model.users_, model._added_users, None
    if added:
        known = users.extend(list(added))
        order = np.empty(len(known), dtype=np.int64)
        order[known.codes(users.series(), what="user")] = np.arange(len(users))
        order[known.codes(list(added), what="user")] = len(users) + np.arange(len(added))
        users = known
    if gone is not None:
        order = np.arange(len(users)) if order is None else order
        stays = order != gone
        order, users = order[stays], Vocabulary(users.series().filter(stays))
    posterior = model.posterior_
    if model.personal_ and (posterior.overlay or gone is not None):
        posterior = posterior.consolidated(order)
    vars(model).update({"posterior_": posterior, "users_": users, "_added_users": {}})


def erase(model: Any, user: Any) -> None:
    """Remove a person from a model, in place: the answers, as ``forget`` does, and then all else.

    Raises DataError, and changes nothing, if there is no such person, or nobody else.
    """
    if model.users_ is None:
        raise DataError("the model does not know who answered, and so holds nobody who could be erased")
    consolidate(model)
    users, features, answers = model.users_, model.user_features_, model._log.comparisons
    code = users.code(user)
    described = features is not None and features.ids.code(user) >= 0
    unused = () if answers is None else answers.intake.unused_users
    if code < 0 and not described and Vocabulary(unused).code(user) < 0:
        raise DataError(
            f"user {quoted(user)} is not one of the {len(users)} people of the model: there is nobody to erase."
            f"{did_you_mean(user, users)}"
        )
    if code >= 0 and len(users) == 1 and model.n_fitted_:
        raise DataError(f"there is nobody else in the model than {quoted(user)}: delete it, and its files")
    now = copy.copy(model)
    if code >= 0:
        change(now, _answers_of(now, code), -1)
        consolidate(now, code)
        vars(now).update(_without_unused_patterns(now))
    if described:
        now.user_features_ = features.without(user)
    if answers is not None:
        now._log = AnswerLog(without_person(now._log.comparisons, user))
    vars(model).update(vars(now))


def _answers_of(model: Any, code: int) -> Batch:
    """All answers of one of the people in ``users_``; none, with a warning, if the model does not know which."""
    effects, answers = model.posterior_.covariates, model._log.comparisons
    if model.personal_:
        rows = model.posterior_.answers_of(code).rows.merged()
    elif answers is not None:
        theirs = answers.take(answers.user == answers.users.code(model.users_.ids[code]))
        rows = keyed(theirs, effects)[0].merged()
    else:
        warnings.warn(
            "this pooled model was loaded, and does not hold who gave which answer: the id is gone, and the answers "
            "still count. Take them back as a table before, forget(answers), or fit again without them", DataWarning,
            stacklevel=5,
        )  # fmt: skip
        rows = pooled_rows(model).at(slice(0))
    rows = rows.of_user(code)
    return Batch(rows, [], names_of(model, rows.user, []), effects, tuple(model.left_out_))


def _without_unused_patterns(model: Any) -> dict[str, Any]:
    """What changes where covariates that only answers no longer held had are let go."""
    posterior = model.posterior_
    effects = posterior.covariates
    if effects is None:
        return {}
    if not model.personal_:
        rows = pooled_rows(model)
        left, right, outcome, variant = sides_of(rows.key)
        effects, variant = effects.used_by(variant)
        rows = rows._replace(key=keys_of(left, right, outcome, variant))
        return {"posterior_": replace(posterior, covariates=effects), "_pooled_rows": rows}
    effects, variant = effects.used_by(posterior.people.variant)
    people = replace(posterior.people, variant=variant)
    return {"posterior_": replace(posterior, people=people, covariates=effects)}


def reason_to_refit(model: Any) -> str | None:
    """Why a refit is due, in a sentence; None if it is not."""
    counts = model.report_.get("updates", {})
    changed = counts.get("answers_added", 0.0) + counts.get("answers_taken_back", 0.0)
    if not changed:
        return None
    if not model.n_fitted_:
        if model.n_answers_ >= _FIRST_ANSWERS and n_people(model) >= _FIRST_PEOPLE:
            return f"the model is the prior with {amount(model.n_answers_)} answers added, and can be fitted to them"
        return None
    if changed >= _SHARE * model.n_fitted_:
        return f"{amount(changed)} answers came or were taken back since the fit to {amount(model.n_fitted_)}"
    if not model.personal_:
        return None
    posterior = model.posterior_
    counts_of_new = [model.n_by_item_[model.items_.code(item)] for item in model.provisional_items_]
    if np.any(np.array(counts_of_new) > 0.0):
        return f"{len(counts_of_new)} items joined since the fit, and there are answers about them"
    if "awaited_ties" in model.report_ and _has_ties(posterior):
        return "a first tie came, and the threshold of ties was set before there was one"
    step, worst = _largest_step(posterior)
    if step > _LARGEST_STEP:
        return f"the score of {model.items_.ids[worst]!r} moved by {step:.1f} standard deviations since the fit"
    return None


def n_people(model: Any) -> int:
    """People with answers."""
    posterior = model.posterior_
    return int((~posterior.without_answers(np.arange(posterior.n_users))).sum())


def _has_ties(posterior: Any) -> bool:
    later = (sides_of(person.rows.key)[2] for person in posterior.overlay.values())
    return bool((posterior.people.outcome == 0).any()) or any((outcome == 0).any() for outcome in later)


def _largest_step(posterior: Any) -> tuple[float, int]:
    """Largest step of an item from the mean of all since the fit, in its standard deviations at the fit; which item."""
    if not posterior.has_moved:
        return 0.0, 0
    now, law = posterior.crowd(), posterior.law
    step: FloatArray = now.mean - law.mean
    fitted = Utilities(law.mean, posterior.C_m, now.Phi, now.items, now.own)
    sd = np.sqrt(np.maximum(fitted.centred_marginals()[1], 0.0))
    step = np.abs(step - step.mean())
    ratio = np.divide(step, sd, out=np.zeros_like(step), where=sd > 0.0)
    worst = int(np.argmax(ratio))
    return float(ratio[worst]), worst
