"""Greedy forward selection of attributes by held-out answers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Watcher
from predilect._base.text import quoted
from predilect._base.types import FloatArray
from predilect.data import Comparisons, ItemFeatures
from predilect.data.content import keys_of_answers
from predilect.data.splits import masks_of_folds
from predilect.errors import ConvergenceWarning, DataError, DataWarning
from predilect.evaluation.metrics import answer_losses, credit_of, paired_difference

Criterion = Literal["accuracy", "log_loss"]

_ENOUGH_HELD_OUT = 1000.0  # answers: further folds are left out
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class AttributeStep:
    """One attribute more.

    Attributes
    ----------
    attribute : str
    accuracy, accuracy_error : float
        Share of the held-out answers that are predicted right with it and those before it, and its standard error
        (people are independent, answers of one person are not); equally likely answers share the credit.
    log_loss, log_loss_error : float
        In nats an answer, and its standard error.
    seconds : float
        Of CPU time for this step, all attributes that were tried counted.
    """

    attribute: str
    accuracy: float
    accuracy_error: float
    log_loss: float
    log_loss_error: float
    seconds: float


@dataclass(frozen=True, slots=True)
class AttributeSelection:
    """The path of a greedy forward selection.

    Attributes
    ----------
    attributes : tuple of str
        Those chosen, in the order in which they were added.
    path : tuple of AttributeStep
        All that were added while the search went on.
    left_out : mapping of str to str
        Attributes that no model could be fitted with, and why.
    rule : str
        Why so many are chosen, in words.
    n_held_out : float
        Answers that were held out; the same for every set of attributes.
    n_fits : int
    n_short : int
        Fits that did not converge.
    seconds : float
        Of CPU time.
    """

    attributes: tuple[str, ...]
    path: tuple[AttributeStep, ...]
    left_out: Mapping[str, str]
    rule: str
    n_held_out: float
    n_fits: int
    n_short: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Scores of the held-out answers under one set of attributes, shape (n,) each."""

    right: FloatArray
    loss: FloatArray


def select_attributes(
    make: Callable[[list[str]], Any],
    answers: Any,
    items: Any,
    *,
    n_attributes: int | None = None,
    candidates: Sequence[str] | None = None,
    criterion: Criterion = "accuracy",
    n_folds: int = 5,
    random_state: int = 0,
    watch: Watcher | None = None,
) -> AttributeSelection:
    """Add one attribute after another, each time the one with which held-out answers are predicted best.

    Parameters
    ----------
    make : callable
        Gives an estimator, not fitted, that uses the attributes (columns of the table of items) in a list:
        ``lambda chosen: GaSPK(attributes=chosen)``.
    answers : Comparisons or data frame
        With columns such as user, left, right and winner, as ``fit`` takes them.
    items : ItemFeatures or data frame
        With a column ``item``.
    n_attributes : int, optional
        How many to choose. By default the search ends when three attributes in a row brought no gain, and the smallest
        number is chosen that is within two standard errors (of the paired difference) of the best on the path.
    candidates : sequence of str, optional
        Attributes to choose from; by default all.
    criterion : {"accuracy", "log_loss"}, default "accuracy"
        What an attribute is judged by; where two are equal the other measure decides, and then their order.
    n_folds : int, default 5
        Each holds out a share of every person's answers; as many of them are used as make 1 000 held-out answers.
    random_state : int, default 0
        Of the folds, which all sets of attributes share.
    watch : callable, optional
        Told of progress: ``watch(stage, done)``, done in per cent of the fits that the search may take.

    Returns
    -------
    AttributeSelection

    Raises
    ------
    DataError
        If attributes are unknown or too few, no answers can be held out, or no model can be fitted with any attribute.

    Notes
    -----
    protocols.md P3: the eight of twenty dimensions of "Elections". Scores on the path are of the answers that chose
    it, and so a little too good; hold out others to say how good the chosen ones are. With d attributes and k steps
    about k (d - k / 2) sets, each fitted as many times as there are folds in use.

    Examples
    --------
    >>> import predilect
    >>> pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]  # each person: the cheaper one, whatever its colour
    >>> answers = {
    ...     "user": [user for user in "abcde" for _ in pairs],
    ...     "left": [left for left, _ in pairs] * 5,
    ...     "right": [right for _, right in pairs] * 5,
    ...     "winner": [min(pair) for pair in pairs] * 5,
    ... }
    >>> items = {"item": [0, 1, 2, 3], "price": [1.0, 2.0, 3.0, 4.0], "red": [1.0, 0.0, 0.0, 1.0]}
    >>> found = predilect.evaluation.select_attributes(
    ...     lambda chosen: predilect.GaSPK(1, attributes=chosen, variance=3.0, spread=1.0), answers, items
    ... )
    >>> found.attributes
    ('price',)
    """
    began = time.process_time()
    answers = answers if isinstance(answers, Comparisons) else Comparisons.from_frame(answers)
    items = items if isinstance(items, ItemFeatures) else ItemFeatures.from_frame(items)
    names = list(items.sources if candidates is None else candidates)
    _check(names, items, n_attributes, criterion)
    masks = masks_of_folds(answers, random_state, _ENOUGH_HELD_OUT, n_folds=n_folds, keys=keys_of_answers(answers))
    if not masks:
        raise DataError("no answers can be held out: everybody answered a single question. Ask people several.")
    out = np.logical_or.reduce(masks)
    user, weight = answers.user[out], answers.weight[out]
    most = len(names) if n_attributes is None else n_attributes
    n_sets = sum(len(names) - k for k in range(most))
    n_fits = n_short = 0
    left_out: dict[str, str] = {}

    def try_set(chosen: list[str], added: str) -> _Held | None:
        nonlocal n_fits, n_short
        right, loss = np.empty(len(user)), np.empty(len(user))
        for mask in masks:
            n_fits += 1
            rows, test = mask[out], answers.take(mask)
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")  # fits that fall short are counted
                    # What the data are like is said where a model is fitted to all of them.
                    warnings.simplefilter("ignore", DataWarning)
                    log_proba = make(chosen).fit(answers.take(~mask), items=items).predict_log_proba(test)
            except DataError as error:
                left_out[added] = str(error)
                return None
            n_short += any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
            right[rows] = credit_of(test.outcome.astype(np.int64), log_proba)
            loss[rows] = answer_losses(test.outcome, log_proba)
        if watch is not None:
            watch(
                f"choosing attributes, {len(chosen)} of at most {most}", min(100 * n_fits // (n_sets * len(masks)), 100)
            )
        return _Held(right, loss)

    path: list[AttributeStep] = []
    held: list[_Held] = []
    while len(path) < most:
        step_began = time.process_time()
        before = [step.attribute for step in path]
        found = {}
        for name in names:
            if name not in before and name not in left_out:
                scores = try_set([*before, name], name)
                if scores is not None:
                    found[name] = scores
        if not found:
            break
        best = max(found, key=lambda name: _rank(found[name], weight, criterion))
        held.append(found[best])
        path.append(_step(best, found[best], user, weight, random_state, time.process_time() - step_began))
        if n_attributes is None and _stalled(held, weight, criterion):
            break
    if not path:
        raise DataError(
            f"no model could be fitted with any of the attributes {', '.join(names)}: {next(iter(left_out.values()))}"
        )
    n_chosen, rule = _chosen(held, user, weight, criterion, n_attributes, random_state)
    return AttributeSelection(
        tuple(step.attribute for step in path[:n_chosen]), tuple(path), left_out, rule, float(weight.sum()), n_fits,
        n_short, time.process_time() - began,
    )  # fmt: skip


def _check(names: Sequence[str], items: ItemFeatures, n_attributes: int | None, criterion: str) -> None:
    known = items.sources
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise DataError(
            f"no usable attributes are called {', '.join(unknown) or '(none given)'}; there are "
            f"{', '.join(known) or 'none'}. Constant columns and free text are not used."
        )
    if len(set(names)) < len(names):
        raise DataError("an attribute is named twice among the candidates.")
    if n_attributes is not None and not 1 <= n_attributes <= len(names):
        raise DataError(
            f"n_attributes must lie between 1 and {len(names)}, the number of attributes; got {n_attributes}."
        )
    if criterion not in ("accuracy", "log_loss"):
        raise DataError(f'criterion must be "accuracy" or "log_loss", got {quoted(criterion)}.')


def _rank(scores: _Held, weight: FloatArray, criterion: Criterion) -> tuple[float, float]:
    accuracy = float(np.average(scores.right, weights=weight))
    log_loss = float(np.average(scores.loss, weights=weight))
    return (accuracy, -log_loss) if criterion == "accuracy" else (-log_loss, accuracy)


def _step(
    name: str, scores: _Held, user: npt.NDArray[Any], weight: FloatArray, random_state: int, seconds: float
) -> AttributeStep:
    nothing = np.zeros(len(user))
    right, loss = (
        paired_difference(values, nothing, user, random_state, weight=weight, n_resamples=1)
        for values in (scores.right, scores.loss)
    )
    return AttributeStep(name, right.mean, right.standard_error, loss.mean, loss.standard_error, seconds)


def _losses(scores: _Held, criterion: Criterion) -> FloatArray:
    return -scores.right if criterion == "accuracy" else scores.loss


def _means(held: Sequence[_Held], weight: FloatArray, criterion: Criterion) -> list[float]:
    return [float(np.average(_losses(scores, criterion), weights=weight)) for scores in held]


def _stalled(held: Sequence[_Held], weight: FloatArray, criterion: Criterion) -> bool:
    """Whether the last three attributes brought no gain."""
    means = _means(held, weight, criterion)
    return len(means) > _PATIENCE and min(means[-_PATIENCE:]) >= min(means[:-_PATIENCE])


def _chosen(
    held: Sequence[_Held], user: npt.NDArray[Any], weight: FloatArray, criterion: Criterion, wanted: int | None,
    random_state: int,
) -> tuple[int, str]:  # fmt: skip
    """How many attributes of the path, and why."""
    if wanted is not None:
        if len(held) < wanted:
            return len(held), f"{len(held)} were all that a model could be fitted with; {wanted} were asked for."
        return wanted, f"{wanted} were asked for."
    means = _means(held, weight, criterion)
    best = int(np.argmin(means))
    what = criterion.replace("_", " ")
    for number in range(best):
        behind = paired_difference(
            _losses(held[number], criterion), _losses(held[best], criterion), user, random_state, weight=weight,
            n_resamples=1,
        )  # fmt: skip
        # With one person there is no standard error: then the best it is.
        if behind.mean <= 2.0 * behind.standard_error:
            return number + 1, (
                f"the fewest whose {what} is within two standard errors, {2 * behind.standard_error:.4f}, of the best "
                f"on the path, that of {best + 1}: it is {behind.mean:.4f} behind."
            )
    return best + 1, f"the best {what} on the path; fewer are more than two standard errors behind."
