"""Updates of a fitted population model by answers added or removed, with the population held fixed."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from predilect._base.progress import Report
from predilect._base.shards import workers
from predilect._base.text import setting
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.keyed_rows import Rows, contents, sides_of
from predilect.data.vocabulary import EVERYONE
from predilect.errors import DataError
from predilect.inference.latent.pooled import PooledState
from predilect.inference.people.engaged import shares_of
from predilect.inference.people.layout import OF_PEOPLE
from predilect.inference.people.moved import share_left
from predilect.inference.people.person import Person, TaskRows, person_of
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.update import LOOSE_TOLERANCE, MOST_SETTLING_SWEEPS, is_quick, settled, with_engagement
from predilect.models.estimator import Turn
from predilect.models.population.batches import AnswerLog, Batch
from predilect.models.population.pooled import PooledRows, pooled_rows, refitted_pooled
from predilect.models.reading import rows_of_features

# All people are merged into one layout once so many, and such a share of all, have changed outside it.
_MOST_BESIDE, _SHARE_BESIDE = 1000, 0.05


def begin_updates(model: Any, comparisons: Comparisons | None) -> None:
    """Set what updates need on a model that was just fitted or loaded."""
    model._turn = Turn()
    model._log = AnswerLog(comparisons)
    model._added_users = {}
    model._pooled_rows = None
    model._pooled_prior = None
    model.left_out_ = []
    if comparisons is not None:
        model.provisional_items_ = []


def change(model: Any, batch: Batch, sign: int, people: Any = None) -> None:
    """Add answers (sign 1) or remove them (sign -1), all of them or, if anything is wrong, none.

    Changes the model in place, in one step; the caller holds ``_turn``. Raises DataError if a tie is impossible in the
    model, a weight is below 1, or an answer to remove is not held.
    """
    if not len(batch.every_key):
        model.left_out_ = list(batch.left_out)
        return
    if sign > 0 and model.tie_threshold_ == 0.0:
        _refuse_ties(model, batch)
    counts = counts_after(model, batch, sign)
    if model.personal_:
        small = batch.weight < 1.0
        if sign > 0 and small.any():
            raise DataError(
                f"{int(small.sum())} of the answers have a weight below 1 (first: "
                f"{batch.describe(model, int(np.argmax(small)))}, weight {batch.weight[np.argmax(small)]:g}). A weight "
                "counts identical answers of one person; personal rankings need weights of at least 1"
            )
        persons = _changed_people(model, batch, sign, people)
        posterior = model.posterior_.with_people(persons, len(batch.new), batch.effects)
        changed: dict[str, Any] = {"posterior_": posterior}
    else:
        held, state = _changed_crowd(model, batch, sign)
        posterior = replace(model.posterior_, covariates=batch.effects)
        posterior = posterior.moved(state.mode, state.covariance(), _share_of_fit(counts))
        changed = {"posterior_": posterior, "_pooled_rows": held}
    if batch.new:
        n = len(model.users_) + len(model._added_users)
        changed["_added_users"] = model._added_users | {user: code for code, user in enumerate(batch.new, n)}
    who = [] if batch.orders is None else [_name_of(model, batch, code) for code in batch.orders.users.tolist()]
    changed |= {"left_out_": list(batch.left_out)}
    changed |= {"_log": model._log.plus(batch, sign, who), "verdict_": None, **counts}
    vars(model).update(changed)
    if model.personal_:
        beside = len(model.posterior_.overlay)
        # The first people of all say whether ids are text or numbers.
        if beside > _MOST_BESIDE + _SHARE_BESIDE * model.posterior_.people.n_users or not len(model.users_):
            consolidate(model)


def _name_of(model: Any, batch: Batch, code: int) -> Any:
    """Id of a person by code."""
    if model.users_ is None:
        return EVERYONE
    n = len(model.users_)
    return model.users_.ids[code] if code < n else [*model._added_users, *batch.new][code - n]


def _refuse_ties(model: Any, batch: Batch) -> None:
    tie = sides_of(batch.key)[2] == 0
    if tie.any():
        raise DataError(
            f"{int(tie.sum())} of the answers are ties (first: {batch.describe(model, int(np.argmax(tie)))}), but the "
            "model was fitted without ties and holds them impossible. "
            f"Fit again on answers with ties, or with {setting('ties', True)}, or leave them out"
        )


def _changed_people(model: Any, batch: Batch, sign: int, people: Any) -> dict[int, Person]:
    """The people touched, after EP on their new answers."""
    posterior, spread, effects = model.posterior_, model.hyperparameters_.tie_spread, batch.effects
    thresholds = posterior.people.thresholds
    delta = model.tie_threshold_ if thresholds is None else thresholds.scale
    largest_state, n_known = posterior.people.largest_state, posterior.n_users
    traits = _new_traits(model, batch.new, people)
    persons: dict[int, Person] = {}
    offsets, sways = (np.zeros(1), np.zeros((1, 0))) if effects is None else (effects.offsets, effects.sways)
    cuts = (np.flatnonzero(batch.users[1:] != batch.users[:-1]) + 1).tolist()
    parts = {batch.users[start].item(): (start, stop) for start, stop in pairwise([0, *cuts, len(batch.users)]) if stop}
    if batch.orders is not None:
        parts |= {code: (0, 0) for code in np.unique(batch.orders.users).tolist() if code not in parts}
    for code, (start, stop) in parts.items():
        person = posterior.answers_of(code) if code < n_known else _newcomer(model, traits[code - n_known])
        rows, tasks = person.rows(), person.tasks()
        if stop:
            rows = _changed_rows(model, batch.rows(start, stop), sign, rows)
        if batch.orders is not None:
            own = batch.orders.users == code
            key, copies, task = (column[own] for column in batch.orders[1:])
            tasks = _changed_tasks(model, tasks, key, copies, task, sign)
        of_person = {name: getattr(person, name) for name in OF_PEOPLE}
        persons[code] = Person.of(rows, person.traits, offsets, tasks, thresholds, sways, **of_person)
    likelihood = posterior.people.likelihood
    settle = partial(settled, delta=delta, largest_state=largest_state, spread=spread, likelihood=likelihood)
    # Threads of BLAS are held back only where there is work for them: even that takes as long as an update.
    quick = all(is_quick(person, posterior.law) for person in persons.values())
    laws = [posterior.law_of(code) for code in persons]
    with nullcontext() if quick else workers(model.n_jobs) as executor:
        done = list((executor.map if executor else map)(settle, persons.values(), laws))
    h = model.hyperparameters_
    if h.click_rate:
        shares = np.array(h.click_shares) if h.click_shares else shares_of(np.zeros(2))  # before the first answer
        which = {"largest_state": largest_state, "likelihood": likelihood}
        done = [
            (with_engagement(person, law, delta, h.click_rate, shares, **which), change)
            for (person, change), law in zip(done, laws, strict=True)
        ]
    residual = max([change for _, change in done])
    if not residual <= LOOSE_TOLERANCE:
        _say_not_converged(model, residual)
    return {code: _as_before(posterior, code, person) for code, (person, _) in zip(persons, done, strict=True)}


def _newcomer(model: Any, traits: FloatArray) -> Person:
    h = model.hyperparameters_
    consistency, sd = np.array([1.0 / h.unit]), np.array([h.consistency_spread])
    return Person.without_answers(traits[None])._replace(consistency=consistency, consistency_sd=sd)


def _as_before(posterior: PopulationPosterior, code: int, person: Person) -> Person:
    """The person as in the layout if the answers are those again, so that what came and went leaves no rounding."""
    people = posterior.people
    if code >= people.n_users or len(person.outcome) != people.answer_ptr[code + 1] - people.answer_ptr[code]:
        return person
    before = person_of(people, posterior.sites, code)
    arrays: Any = zip(before[:7], person[:7], strict=True)  # all but the sites
    same = all(old.tobytes() == new.tobytes() for old, new in arrays)
    return before if same else person


def _say_not_converged(model: Any, residual: float) -> None:
    Report(
        method="update by EP", iterations=MOST_SETTLING_SWEEPS, residual=residual, tolerance=LOOSE_TOLERANCE,
        converged=False, jitter=0.0, seconds=0.0, unit="noise units of the largest margin",
        advice="look for extreme weights",
    ).require(model.strict)  # fmt: skip


def _changed_rows(model: Any, batch: Batch, sign: int, rows: Rows) -> Rows:
    """Rows with, or without, the answers of a batch of distinct keys; DataError where one is not held."""
    if sign > 0:
        return rows.plus(batch.key, batch.weight)
    wanted, held = batch.weight, rows.held(batch.key)
    left, dust = held - wanted, 1e-9 * wanted
    short = left < -dust
    if short.any():
        row = int(np.argmax(short))
        there = f"holds it with weight {held[row]:g} only" if held[row] else "holds no such answer"
        raise DataError(
            f"cannot take back {batch.describe(model, row)} (weight {wanted[row]:g}): the model {there}. Was it taken "
            "back already? Nothing was changed"
        )
    part = (left > dust) & (left < 1.0)
    if model.personal_ and part.any():
        row = int(np.argmax(part))
        raise DataError(
            f"taking back {batch.describe(model, row)} with weight {wanted[row]:g} of {held[row]:g} would leave "
            f"{left[row]:g}: less than one answer. Nothing was changed"
        )
    return rows.plus(batch.key, -wanted)


def _changed_tasks(
    model: Any, held: TaskRows, key: IntArray, copies: IntArray, task: IntArray, sign: int
) -> TaskRows:  # fmt: skip
    """A person's tasks with, or without, more, of rows (n,); DataError where one is not held."""
    if sign > 0:
        above = int(held.task.max(initial=-1)) + 1 - int(task.min(initial=0))
        flat = np.zeros(len(key))
        more = key, copies, task + above, flat, flat
        return TaskRows._make(np.concatenate(pair) for pair in zip(held, more, strict=True))
    keep = np.ones(len(held.key), dtype=bool)
    for number in np.unique(task).tolist():
        mine = task == number
        wanted = contents(key[mine], copies[mine])
        for other in np.unique(held.task[keep]).tolist():
            same = keep & (held.task == other)
            if contents(held.key[same], held.copies[same]) == wanted:
                keep[same] = False
                break
        else:
            left, right, outcome, _ = sides_of(key[mine][:1])
            pair = [repr(model.items_.ids[int(side[0])]) for side in (left, right)]
            first, second = pair if outcome[0] > 0 else pair[::-1]
            raise DataError(
                f"cannot take back an answer about several alternatives, {first} over {second} among them: the model "
                "holds no such answer of this person. Was it taken back already? Nothing was changed"
            )
    return TaskRows._make(column[keep] for column in held)


def _new_traits(model: Any, new: list[Any], people: Any) -> FloatArray:
    """Traits of new people; zeros, those of the average person, where nothing is known."""
    traits = np.zeros((len(new), model.posterior_.people.traits.shape[1]))
    if new and people is not None and model._traits is not None and traits.shape[1]:
        order = sorted(range(len(new)), key=new.__getitem__)
        traits[order] = model._traits.transform(
            *rows_of_features([new[place] for place in order], model.user_features_, people)
        )
    return traits


def _changed_crowd(model: Any, batch: Batch, sign: int) -> tuple[PooledRows, PooledState]:
    """All answers of the pooled model, and its one utility function given them."""
    # Whoever gave or took back an answer, one row stands for all of it; one of them is named in messages.
    key, first, place = np.unique(batch.key, return_index=True, return_inverse=True)
    names = [batch.names[row] for row in first.tolist()] if batch.names else []
    weight = np.bincount(place, batch.weight).astype(np.float64)
    whole = batch._replace(users=batch.users[first], key=key, weight=weight, new=[], names=names)
    held = pooled_rows(model)
    held = held._replace(alone=_changed_rows(model, whole, sign, held.alone))
    if batch.orders is not None:
        flat = np.zeros(len(held.key))
        numbers = np.unique(np.stack([batch.orders.users, batch.orders.task]), axis=1, return_inverse=True)[1]
        tasks = TaskRows(held.key, held.copies, held.task, flat, flat)
        tasks = _changed_tasks(model, tasks, batch.orders.key, batch.orders.copies, numbers.reshape(-1), sign)
        held = held._replace(key=tasks.key, copies=tasks.copies, task=tasks.task)
    return held, refitted_pooled(model, held, batch.effects)


def counts_after(model: Any, batch: Batch, sign: int) -> dict[str, Any]:
    """The counts of a model, and its report without what was said of the answers before."""
    left, right, _, _ = sides_of(batch.every_key)
    weight = batch.every_weight
    n, total = len(model.n_by_item_), float(weight.sum())
    by_item = np.bincount(left, weight, n) + np.bincount(right, weight, n)
    counts = {"answers_added": 0.0, "answers_taken_back": 0.0, "people_added": 0} | model.report_.get("updates", {})
    counts["answers_added" if sign > 0 else "answers_taken_back"] += total
    counts["people_added"] += len(batch.new)
    report = model.report_ | {"updates": counts}
    report.pop("verdict", None)
    return {
        "_asked": None,
        "n_by_item_": model.n_by_item_ + sign * by_item,
        "n_answers_": model.n_answers_ + sign * total,
        "report_": report,
    }


def _share_of_fit(counts: dict[str, Any]) -> float:
    """The share of the answers at the fit that there is after an update."""
    now, moved = counts["n_answers_"], counts["report_"]["updates"]
    at_fit = now - moved["answers_added"] + moved["answers_taken_back"]
    return share_left(now, at_fit)


def consolidate(model: Any) -> None:
    """Merge everybody into one layout, and into ``users_``; predictions do not change, codes of people may."""
    users, added = model.users_, model._added_users
    order = None
    if added:
        known = users.extend(list(added))
        order = np.empty(len(known), dtype=np.int64)
        order[known.codes(users.series(), what="user")] = np.arange(len(users))
        order[known.codes(list(added), what="user")] = len(users) + np.arange(len(added))
        users = known
    posterior = model.posterior_
    if model.personal_ and posterior.overlay:
        posterior = posterior.consolidated(order)
    vars(model).update({"posterior_": posterior, "users_": users, "_added_users": {}})
