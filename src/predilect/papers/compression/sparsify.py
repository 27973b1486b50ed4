"""Sparsification of a posterior to the items that matter for a decision (the valuable vector machine)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.gaussian.dense import pack_triangle, symmetrise
from predilect.inference.gaussian.posterior import Utilities
from predilect.inference.people.queries import IMPLIED, NEWCOMER
from predilect.papers.compression.criteria import (
    Criterion,
    InformativeAnswers,
    Pairs,
    Score,
    find_criterion,
    in_order,
    items_a_person,
    items_in_all,
    representative,
    scores_of,
)
from predilect.papers.compression.posterior import ItemSelection, SubsetPosterior, covariance_between

People = Callable[[IntArray], Iterator[Utilities]]

_MOST_REMEMBERED = 30_000_000  # numbers of people's covariances cached between choosing and cutting
_MOST_IN_LAW = 1000  # people, evenly spaced, whose utilities make the population distribution


def sparsify(
    model: Any,
    keep: Any = None,
    criterion: str | Criterion | Score = "ucb",
    *,
    budget: int | None = None,
    local: bool = True,
    people: People | None = None,
) -> Any:
    """Sparsified posterior of a fitted model; of a pooled model, of its one function.

    ``keep`` is a number or a share ("20%") of items a person, ``budget`` instead a number of all people together (the
    best scores, at least one a person). ``criterion`` is a name, one of :mod:`predilect.compression` with its
    settings, or a function that gives a person's items scores. Equal scores: the item with the smaller id. ``local``
    keeps moments person by person; False, for a joint process, the whole covariance of all kept utilities. ``people``
    comes from :func:`people_of_model`: who keeps several shares computes them once. Raises DataError for anything that
    cannot be used.

    vvm.md 3. ``local``: the covariances of all people, n_users n_items log n_items for the choice. Otherwise see
    :meth:`Posterior.restricted <predilect.inference.gaussian.posterior.Posterior.restricted>`.
    """
    _check(model)
    criterion = find_criterion(criterion)
    if isinstance(criterion, InformativeAnswers):
        r, model = _items_a_person(model, keep, budget), copy.copy(model)
        model.posterior_, kept = _informative(model, r, criterion)
        return restrict(model, ItemSelection.of(kept), local=local)
    people = people_of_model(model) if people is None else people
    return restrict(model, select(model, keep, criterion, budget=budget, people=people), local=local, people=people)


def select(
    model: Any,
    keep: Any = None,
    criterion: str | Criterion | Score = "ucb",
    *,
    budget: int | None = None,
    people: People | None = None,
) -> ItemSelection:
    """Items that people keep; parameters as :func:`sparsify`."""
    criterion = find_criterion(criterion)
    _check(model)
    people = people_of_model(model) if people is None else people
    if isinstance(criterion, InformativeAnswers):
        return ItemSelection.of(_informative(model, _items_a_person(model, keep, budget), criterion)[1])
    if isinstance(criterion, Pairs):
        r = _items_a_person(model, keep, budget)
        mean, C = _laws(model, people)[0].dense()
        return ItemSelection.of([representative(one.mean - mean, C, r) for one in people(_everybody(model))])
    _refuse_both(keep, budget)
    scores = (scores_of(criterion, user, one) for user, one in enumerate(people(_everybody(model))))
    if budget is None:
        r = items_a_person(keep, len(model.items_))
        return ItemSelection.of([np.sort(in_order(of_person)[:r]) for of_person in scores])
    total = items_in_all(budget, _n_people(model), len(model.items_))
    return ItemSelection.of(_shared_out(np.array(list(scores)), total))


def _informative(model: Any, r: int, criterion: InformativeAnswers) -> tuple[Any, list[IntArray]]:
    if not hasattr(model, "_informative"):
        raise DataError(
            f'criterion "answers" takes the answers of a joint process one by one, and this is a '
            f"{type(model).__name__}: fit a JointGP, or take another criterion"
        )
    found: tuple[Any, list[IntArray]] = model._informative(r, criterion.active_only)
    return found


def _refuse_both(keep: Any, budget: Any) -> None:
    if (keep is None) == (budget is None):
        raise DataError("give keep, the items of each person (10, 0.2 or '20%'), or budget, those of all together")


def _items_a_person(model: Any, keep: Any, budget: Any) -> int:
    """Number of items of a criterion that chooses those of each person together."""
    _refuse_both(keep, budget)
    if keep is None:
        raise DataError("this criterion chooses the items of each person together: give keep, not budget")
    return items_a_person(keep, len(model.items_))


def restrict(model: Any, selection: ItemSelection, *, local: bool = True, people: People | None = None) -> Any:
    """Posterior of what people keep; other parameters as :func:`sparsify`."""
    people = people_of_model(model) if people is None else people
    posterior = model.posterior_
    if not local:
        together = posterior.restricted(selection.users, selection.items)
        if together is None:
            raise DataError(
                f"local=False needs one process of people and items, and this is a "
                f"{type(posterior).__name__}: its "
                f"people are apart given the crowd. Leave local=True"
            )
        return together
    means, triangles = [], []
    for user, utilities in enumerate(people(_everybody(model))):
        S = selection.items[selection.ptr[user] : selection.ptr[user + 1]]
        means.append(utilities.mean[S])
        triangles.append(pack_triangle(covariance_between(utilities, S, S)))
    law, whole, unseen = _laws(model, people)
    return SubsetPosterior(
        selection.ptr, selection.items, np.concatenate(means), np.concatenate(triangles), law, whole,
        _answers_on(model, selection), _tie_factors(model, len(selection.ptr) - 1), unseen,
        _implied(model, selection), posterior.calibration, _newcomers(model),
        posterior.newcomers_mean(),
        _consistency(model, len(selection.ptr) - 1), _item_ties(model), not model.personal_,
    )  # fmt: skip


def people_of_model(model: Any) -> People:
    """Iterator over utilities by codes of people, cached for few people; person 0 of a pooled model is its function."""
    posterior = model.posterior_
    everybody = _everybody(model)

    def make(users: IntArray) -> Iterator[Utilities]:
        if not model.personal_:
            return iter([posterior.crowd()] * len(users))
        found: Iterator[Utilities] = posterior.persons(users)
        return found

    if len(everybody) * len(model.items_) ** 2 > _MOST_REMEMBERED:
        return make
    remembered: list[Utilities] = []

    def recall(users: IntArray) -> Iterator[Utilities]:
        if not remembered:
            remembered.extend(make(everybody))
        return (remembered[user] for user in users.tolist())

    return recall


def _everybody(model: Any) -> IntArray:
    return np.arange(_n_people(model))


def _check(model: Any) -> None:
    posterior = getattr(model, "posterior_", None)
    if posterior is None:
        raise DataError(f"this {type(model).__name__} is not fitted: call fit() first")
    if posterior.is_compressed:
        raise DataError("this model is compressed already: compress the full model again with another keep")
    if not _n_people(model):
        raise DataError("this model knows nobody of whom items could be kept: fit it to answers, or update it, first")


def _n_people(model: Any) -> int:
    if not model.personal_:
        return 1
    return len(model.users_) + len(model._added_users)


def _shared_out(scores: FloatArray, total: int) -> list[IntArray]:
    """The best of each person, and of all others the best in all; equal ones by person, then item."""
    n_users = len(scores)
    chosen = np.zeros(scores.shape, dtype=bool)
    chosen[np.arange(n_users), [in_order(row)[0] for row in scores]] = True
    rest = np.where(chosen, -np.inf, scores).ravel()
    order = in_order(rest)
    order = order[~chosen.ravel()[order]]
    chosen.ravel()[order[: total - n_users]] = True
    return [np.flatnonzero(row) for row in chosen]


def _laws(model: Any, people: People) -> tuple[Utilities, Utilities, Utilities | None]:
    """The population distribution, the crowd, and an unseen user where that is another distribution.

    Of a pooled model its prior, and its function. A joint process has another prior for each person, by features: here
    the mean and the spread of people in the posterior.
    """
    posterior = model.posterior_
    prior = posterior.prior()
    if model.personal_:
        if prior is None:
            return _law_of_people(model, people), posterior.crowd(), posterior.person(-1)
        differs = posterior.shifts_newcomers or posterior.has_moved
        return prior, posterior.crowd(), posterior.person(-1) if differs else None
    if prior is None or not posterior.is_pooled:
        raise DataError(f"the prior of a {type(posterior).__name__} is not known here; compress a personal model")
    return prior, posterior.crowd(), None


def _law_of_people(model: Any, people: People) -> Utilities:
    """Population distribution in the posterior: mean, and covariance within and between people."""
    n = _n_people(model)
    users = np.arange(0, n, 1 + n // _MOST_IN_LAW)
    first, within = np.zeros(len(model.items_)), np.zeros((len(model.items_), len(model.items_)))
    between = np.zeros_like(within)
    for utilities in people(users):
        mean, covariance = utilities.dense()
        first += mean / len(users)
        within += covariance / len(users)
        between += np.outer(mean, mean) / len(users)
    return Utilities.of(first, symmetrise(within + between - np.outer(first, first)))


def _answers_on(model: Any, selection: ItemSelection) -> FloatArray:
    """Answers of each person on the items they keep, shape (n_kept,)."""
    if not model.personal_:
        return np.asarray(model.n_by_item_[selection.items], dtype=np.float64)
    out = np.empty(len(selection.items))
    n_users, step = len(selection.ptr) - 1, 1000
    for start in range(0, n_users, step):
        stop = min(start + step, n_users)
        counts = model._answers_of_people(start, stop)
        some = slice(selection.ptr[start], selection.ptr[stop])
        out[some] = counts[selection.users[some] - start, selection.items[some]]
    return out


def _tie_factors(model: Any, n_users: int) -> FloatArray:
    if not model.personal_:
        return np.ones(n_users)
    factors: FloatArray = model.posterior_.tie_factors(np.arange(n_users))
    return factors


def _item_ties(model: Any) -> FloatArray:
    thresholds = model.posterior_.thresholds
    return np.zeros(0) if thresholds is None else np.asarray(thresholds.of_items)


def _consistency(model: Any, n_users: int) -> FloatArray | None:
    if not model.personal_ or not model.posterior_.calibration.consistency_spread:
        return None
    return np.column_stack(model.posterior_.consistencies(np.arange(n_users)))


def _implied(model: Any, selection: ItemSelection) -> npt.NDArray[np.uint8]:
    """Pairs of kept items implied by a person's answers, packed as in ``SubsetPosterior``."""
    posterior, nothing = model.posterior_, np.zeros(0, dtype=np.uint8)
    if not model.personal_ or posterior.calibration.unseen_ratio == 1.0:
        return nothing
    marks = []
    for user in range(len(selection.ptr) - 1):
        S = selection.items[selection.ptr[user] : selection.ptr[user + 1]]
        left, right = (S[side] for side in np.tril_indices(len(S)))
        marks.append(posterior.pair_kinds(np.full(len(left), user), left, right) % NEWCOMER == IMPLIED)
    return np.packbits(np.concatenate(marks))


def _newcomers(model: Any) -> BoolArray | None:
    """Who is predicted as a newcomer; None if that makes no difference."""
    posterior = model.posterior_
    if not model.personal_ or (posterior.calibration.newcomer_factor == 1.0 and not posterior.shifts_newcomers):
        return None
    later: BoolArray = posterior.are_newcomers(np.arange(posterior.n_users))
    return later
