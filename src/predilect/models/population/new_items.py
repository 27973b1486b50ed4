"""Items that join a fitted population: exchangeable with the others, or predicted from their features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from predilect._base.text import amount, either, quoted
from predilect._base.types import FloatArray, IntArray
from predilect.data import ItemFeatures, Vocabulary
from predilect.data.features import FeatureSpace
from predilect.data.frames import is_list
from predilect.data.keyed_rows import MOST_ITEMS, keys_of, sides_of
from predilect.errors import DataError
from predilect.inference.gaussian.dense import symmetrise
from predilect.inference.people.law import Effects
from predilect.inference.people.person import Overlay, Person
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.batches import AnswerLog
from predilect.models.population.train import MOST_ITEMS_PERSONAL, extend
from predilect.models.reading import new_item_space


def joining(model: Any, items: Any) -> list[Any]:
    """Ids of items in a list, or in the table of their features, that the model does not know; sorted."""
    ids = items if is_list(items) else ItemFeatures.from_frame(items).ids
    known, found = model.items_, Vocabulary(ids)
    own = [known.own(one) for one in found.ids]
    if None in own:
        kind = "whole numbers" if known.is_integer else "text"
        raise DataError(f"the items of the model have ids that are {kind}, but one of the new ids is "
                        f"{quoted(found.ids[own.index(None)])}")  # fmt: skip
    return sorted(one for one in own if known.code(one) < 0)


def with_new_items(model: Any, new: list[Any], items: Any) -> dict[str, Any]:
    """What changes in a model of people when items join; ``items``: the table of their features, or a list.

    population.md section 4, "Without answers", and section 6. O(people and answers, n_items²).
    """
    if not model.personal_:
        raise DataError(
            "items join a model of people only, and this one is pooled. Fit it anew on all answers, with items=..., or "
            f"ask for personal rankings ({either('--personal yes', 'personal=True')})"
        )
    posterior, n = model.posterior_, len(model.items_) + len(new)
    most = MOST_ITEMS_PERSONAL if posterior.basis is None else MOST_ITEMS
    if n > most:
        raise DataError(f"with {len(new)} items more there would be {amount(n)}, and there may be {amount(most)}")
    columns = model._space.matrix.shape[1]
    added = new_item_space(new, model.features_, None if is_list(items) else items, columns)
    if model.features_ is None:
        posterior = exchangeable(posterior, len(new))
    else:
        posterior = extend(posterior, model.hyperparameters_, model._space, added, model._functions)
    known = model.items_.extend(new)
    # Where the items, those that join last, lie in the new order; ascending for those that were there.
    place = known.codes([*model.items_.ids, *new]).astype(np.int64)
    order = np.argsort(place)
    log, results = model._log.comparisons, np.vstack([model.results_by_item_, np.zeros((len(new), 3))])
    space = FeatureSpace(np.vstack([model._space.matrix, added.matrix]), np.append(model._space.known, added.known))
    return {
        "_asked": None,
        "posterior_": _reordered(posterior, place, order),
        "items_": known,
        "results_by_item_": results[order],
        "_space": FeatureSpace(space.matrix[order], space.known[order]),
        "_log": AnswerLog(None if log is None else log.with_items(new)),
        "provisional_items_": sorted([*model.provisional_items_, *new]),
    }


def exchangeable(posterior: PopulationPosterior, n_new: int) -> PopulationPosterior:
    """With items of which nothing is known but that they are of the kind of the others.

    population.md section 4, "Without answers". Σ_*o = 1ᵀΣ / I; new items differ from each other and from the others
    by what these differ by on average, over people, and in the consensus by what the fit says of these, their
    uncertainty included. Joining one after the other, or at once, is the same.
    """
    m, C_m = posterior.m, posterior.C_m
    spread = _spread(C_m) + float(np.sum((m - m.mean()) ** 2)) / (len(m) - 1)
    effects, since = posterior.effects, posterior.since
    if effects is not None:
        B = effects.B
        of_effects = float(((B - B.mean(axis=0)) ** 2).sum(axis=0).mean()) / (len(m) - 1)
        stack = np.array([_extended(one, _spread(one) + of_effects, n_new) for one in effects.stack])
        B = np.vstack([B, np.tile(B.mean(axis=0), (n_new, 1))])
        effects = Effects(B, stack[0] if effects.covariance.ndim == 2 else stack)
    people = replace(posterior.people, n_items=len(m) + n_new)
    alone, d = posterior.C_answers, posterior.newcomer_shift
    return replace(
        posterior, m=_with_means(m, n_new), C_m=_extended(C_m, spread, n_new),
        Sigma=_extended(posterior.Sigma, _spread(posterior.Sigma), n_new), people=people, effects=effects,
        newcomer_shift=None if d is None else _with_means(d, n_new),
        C_answers=None if alone is None else _extended(alone, spread, n_new),
        since=None if since is None else since.with_items(n_new),
    )  # fmt: skip


def _with_means(values: FloatArray, n_new: int) -> FloatArray:
    return np.append(values, np.full(n_new, values.mean()))


def _spread(covariance: FloatArray) -> float:
    """V = tr(HΣH) / (I - 1): half the mean variance of a difference of two items."""
    return float(np.trace(covariance) - covariance.mean() * len(covariance)) / (len(covariance) - 1)


def _extended(covariance: FloatArray, spread: float, n_new: int) -> FloatArray:
    """Covariance with items whose differences from the mean of the others have variance v (1 + 1 / I)."""
    n = len(covariance)
    cross = np.tile(covariance.mean(axis=0), (n_new, 1))
    block = np.full((n_new, n_new), covariance.mean() + spread / n) + spread * np.eye(n_new)
    return symmetrise(np.block([[covariance, cross.T], [cross, block]]))


def _at_places(person: Person, place: IntArray) -> Person:
    """The person's answers where item i is at ``place[i]``."""
    left, right, outcome, variant = sides_of(person.rows.key)
    return person._replace(rows=person.rows._replace(key=keys_of(place[left], place[right], outcome, variant)))


def _reordered(posterior: PopulationPosterior, place: IntArray, order: IntArray) -> PopulationPosterior:
    """With items in another order, in which those that have answers follow each other as before: item i goes to
    ``place[i]``, and ``order`` is the inverse.
    """
    people, basis, effects, since = posterior.people, posterior.basis, posterior.effects, posterior.since
    thresholds = people.thresholds
    people = replace(people, item_idx=place[people.item_idx].astype(np.int32))
    if thresholds is not None and len(thresholds.of_items):  # new items tie as most do
        ties = np.pad(thresholds.of_items, (0, len(order) - len(thresholds.of_items)))[order]
        people = replace(people, thresholds=replace(thresholds, of_items=ties))
    beside = {user: _at_places(person, place) for user, person in posterior.overlay.items()}
    changed: dict[str, Any] = {"people": people, "overlay": Overlay().plus(beside, posterior.overlay.n_added)}
    if basis is not None:
        of_items = {name: getattr(basis, name) for name in ("Phi", "rho", "offset", "offset_variance")}
        changed["basis"] = replace(basis, **{name: one[order] if len(one) else one for name, one in of_items.items()})
        return replace(posterior, **changed)
    both = np.ix_(order, order)
    changed |= {"m": posterior.m[order], "C_m": posterior.C_m[both], "Sigma": posterior.Sigma[both]}
    if effects is not None:
        covariance = effects.covariance[..., order, :][..., order]
        changed["effects"] = Effects(effects.B[order], covariance)
    if posterior.newcomer_shift is not None:
        changed["newcomer_shift"] = posterior.newcomer_shift[order]
    if posterior.C_answers is not None:
        changed["C_answers"] = posterior.C_answers[both]
    if since is not None:
        changed["since"] = replace(since, H=since.H[both], r=since.r[order])
    return replace(posterior, **changed)
