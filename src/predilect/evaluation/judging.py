"""Verdict by held-out answers within people: which of two models predicts better.

The estimator is used by its interface (``fit``, ``predict_margin``, ``hyperparameters_``, ``tie_threshold_``,
parameters ``personal``, ``tolerance`` and ``strict``), since models stand above evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from predilect.data import Comparisons, ItemFeatures, k_folds_answers
from predilect.errors import DataError
from predilect.evaluation.held_out import BUSY, FEWEST_BUSY, FEWEST_PEOPLE, Trial, Watch, drawn_people
from predilect.evaluation.metrics import accuracy, answer_losses
from predilect.evaluation.paired import paired_difference
from predilect.evaluation.verdict import Contest, Verdict, outcome_of
from predilect.evaluation.wording import judged, not_judged
from predilect.inference.held_out import with_moderate_counts

__all__ = ["judge"]

FloatArray = npt.NDArray[np.float64]

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
    watch: Watch | None = None,
) -> Verdict:
    """Whether personal rankings, item features and the tie threshold improve predictions of held-out answers.

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
    nats an answer on 720 answers of crowds that agree. Some n_folds fits of each model, of which one searches the
    prior.
    """
    settings = {"n_folds": n_folds, "max_people": max_people, "n_bootstrap": n_bootstrap, "random_state": random_state}
    _check(settings)
    seeds = np.random.SeedSequence(random_state).spawn(3)
    has_features = features is not None and features.matrix.shape[1] > 0
    questions = ["personal", *["features"] * has_features, *["ties"] * comparisons.has_ties]
    some, fold = comparisons, np.full(comparisons.n_rows, -1, dtype=np.int8)
    if comparisons.has_users and comparisons.n_users > 1:
        fold = k_folds_answers(comparisons, n_folds, random_state=seeds[0])
        some, fold = drawn_people(comparisons, fold, max_people, np.random.default_rng(seeds[1]))

    def verdict(contests: dict[str, Contest], notes: tuple[str, ...] = ()) -> Verdict:
        return Verdict(
            contests["personal"], contests.get("features"), contests.get("ties"), settings, comparisons.n_users,
            some.n_users, notes,
        )  # fmt: skip

    if why := _too_little(comparisons, some, fold):
        return verdict({q: not_judged(q, why if q == "personal" else _SAME) for q in questions})

    trial = Trial(some, fold, tie_threshold, watch)
    given = estimator.tolerance
    tolerance = _TOLERANCE if isinstance(given, str) else max(given, _TOLERANCE)
    base = clone(estimator).set_params(strict=False, tolerance=tolerance)
    seed = int(seeds[2].generate_state(1)[0])
    contests: dict[str, Contest] = {}

    def hold(question: str, model: FloatArray, baseline: FloatArray) -> None:
        contests[question] = judged(
            _contest(question, trial, model, baseline, n_bootstrap, seed), comparisons.n_users, some.n_users
        )

    favoured: FloatArray | None = None
    islands = trial.islands() if has_features else None
    try:
        # Personal first: if it fails, on thousands of items say, it should do so before the other is fitted.
        personal = trial.run("personal rankings", clone(base).set_params(personal=True), features)
        all_as_one = clone(base).set_params(personal=False)
        if islands is not None:
            # With the basis of the personal rankings: its own choice would be the items, which take long to fit, and
            # of which there is nothing to learn where each is one person's.
            chosen = trial.chosen["personal rankings"]
            all_as_one.set_params(**{name: chosen[name] for name in ("basis", "n_inducing") if name in chosen})
        pooled = trial.run("one ranking for all", all_as_one, features)
        hold("personal", personal, pooled)
        favoured = personal if contests["personal"].outcome == "better" else pooled
    except DataError as error:
        contests["personal"] = not_judged("personal", _untried(error))
    for question in questions[1:]:
        n_ties = int((trial.asked.outcome == 0).sum())
        try:
            if favoured is None:
                contests[question] = not_judged(question, _SAME)
            elif question == "features":
                plain = clone(base).set_params(personal=contests["personal"].outcome == "better")
                if "basis" in plain.get_params():  # one of attributes cannot do without them
                    plain.set_params(basis="auto")
                if islands is not None:
                    plain.set_params(personal=False)
                hold(question, favoured, trial.run("no item features", plain, None, islands))
            elif n_ties < _FEWEST_TIES:
                contests[question] = not_judged(
                    question, f"{n_ties} of the held-out answers are ties, and it takes {_FEWEST_TIES}"
                )
            else:
                hold(question, favoured, trial.tied_at_random(favoured))
        except DataError as error:
            contests[question] = not_judged(question, _untried(error))
    return verdict(contests, tuple(trial.notes))


def _contest(
    question: str, trial: Trial, model: FloatArray, baseline: FloatArray, n_bootstrap: int, seed: int
) -> Contest:
    asked = trial.asked
    y, w = asked.outcome, with_moderate_counts(asked).weight  # whoever repeats an answer decides nothing alone
    ours, theirs = answer_losses(y, model), answer_losses(y, baseline)
    gain = paired_difference(theirs, ours, asked.user, seed, weight=w, n_resamples=n_bootstrap)
    return Contest(
        question,
        outcome_of(gain.mean, gain.lower, gain.upper),
        "",
        log_loss=float(np.average(ours, weights=w)),
        baseline_log_loss=float(np.average(theirs, weights=w)),
        accuracy=accuracy(y, model, w),
        baseline_accuracy=accuracy(y, baseline, w),
        gain=gain.mean,
        lower=gain.lower,
        upper=gain.upper,
        n_people=gain.n_groups,
        n_answers=asked.n_answers,
        n_folds=len(trial.masks),
    )


def _too_little(comparisons: Comparisons, some: Comparisons, fold: npt.NDArray[np.int8]) -> str:
    """Why nothing can be judged, and what would help; empty if it can."""
    if not comparisons.has_users:
        return "no column says who answered. Name it (--user NAME, user=...)"
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
        value = settings[name]
        if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
            raise DataError(f"{name} of the verdict must be a whole number from {low} to {high}, not {value!r}")
