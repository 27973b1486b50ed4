"""Removal of all that a fitted population model holds of one person."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from predilect._base.text import did_you_mean, quoted
from predilect.data import Comparisons
from predilect.data.comparisons import without_person
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.models.population.batches import AnswerLog, Batch, read_batch
from predilect.models.population.updates import change, consolidate, counts_after
from predilect.models.reading import covariates_of


def erase(model: Any, user: Any) -> None:
    """Remove a person from a model, in place; the caller holds ``_turn``.

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
    changed: dict[str, Any] = {}
    if code >= 0 and model.personal_:
        changed = _without_answers_of(model, code)
    elif code >= 0:
        changed = _without_counts_of(model, code, answers)
    if described:
        changed["user_features_"] = features.without(user)
    if answers is not None:
        changed["_log"] = AnswerLog(without_person(answers, user))
    if code >= 0:
        changed["users_"] = Vocabulary(users.series().filter(np.arange(len(users)) != code))
    vars(model).update(changed)


def _without_answers_of(model: Any, code: int) -> dict[str, Any]:
    """What changes in a model of people: the layout and all that counts answers."""
    posterior = model.posterior_
    person = posterior.answers_of(code)
    theirs = Batch(np.full(len(person.weight), code), person.keys(), person.weight, [], [])
    posterior = posterior.without(code)
    effects = posterior.covariates
    if effects is not None:
        used, variant = np.unique(posterior.people.variant, return_inverse=True)
        people = replace(posterior.people, variant=variant.reshape(-1))
        effects = replace(effects, patterns=effects.patterns[used])
        posterior = replace(posterior, people=people, covariates=effects)
    return {"posterior_": posterior, "verdict_": None, **counts_after(model, theirs, -1)}


def _without_counts_of(model: Any, code: int, answers: Comparisons | None) -> dict[str, Any]:
    """What changes in a pooled model, once their answers are taken back: only names and patterns."""
    if answers is None:
        warnings.warn(
            "this pooled model was loaded, and does not hold who gave which answer: the id is gone, and the answers "
            "still count. Take them back as a table before, forget(answers), or fit again without them", DataWarning,
            stacklevel=5,
        )  # fmt: skip
        return {}
    theirs = answers.take(answers.user == answers.users.code(model.users_.ids[code]))
    if theirs.n_rows:
        change(model, read_batch(model, theirs, None, weight=1.0, may_add=False), -1)
    effects: CovariateEffects | None = model.posterior_.covariates
    if effects is None:
        return {}
    rest = model._log.comparisons
    assert rest is not None
    bare = replace(effects, patterns=effects.patterns[:0])
    effects, _ = bare.with_patterns(covariates_of(rest, effects.names) / effects.scale)
    # Keys of rows are made anew of the answers, by the patterns that are left.
    return {"posterior_": replace(model.posterior_, covariates=effects), "_pooled_rows": None}
