"""Answers by person, as the compiled loops take them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from predilect._base.shards import Shard, cut
from predilect._base.stored import PART, PLAIN, amounts, codes, numbers, outcomes, pointer, positive, unless
from predilect._base.text import either
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.comparisons import joint_rows
from predilect.data.orders import implied_rows
from predilect.data.read.options import option
from predilect.errors import DataError
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.grades import Intervals, Thresholds
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.inference.people.dense import CountedPerson, DensePerson
from predilect.inference.people.ep import Columns, are_better_among_items, person_sums
from predilect.inference.people.lanes import AT_A_TIME
from predilect.inference.people.law import Law

# Nanoseconds of work below which a thread costs more than it saves; and so for each entry of a shard's sums, items x
# items, that are made and added, which takes some five.
_COST_PER_SHARD = 1e6
_COST_PER_ENTRY = 50.0
_MOST_SHARDS = 16
# With so few items, in all and a function, it is quicker to work with their covariance and project the sums than to
# form people's own from Φ.
_FEW_ITEMS, _FEW_PER_FUNCTION = 600, 16
LARGEST_STATE = 600
# Lanes gain where the states of 32 people stay near the processor and people of like size fill them. They are of the
# margins up to so many an item.
_LARGEST_IN_LANES, _MOST_ROWS, _ROWS_PER_ITEM = 32, 128, 1.5
_ALIKE, _CLASSES, _LAST = 1.2, 32, 10**6
# Of what a person takes alone, as measured; and the share of a pass, and nanoseconds, that have to be saved: compiling
# lanes takes as long as some 50 000 passes that save so little.
_COST_IN_LANES, _WORTH_IT, _LEAST_SAVED = 0.5, 0.2, 2e5
NOISY = 0.5  # consistency of somebody with twice the usual noise
# A number for each user, and its default
OF_PEOPLE = {"tie_factor": 1.0, "consistency": 1.0, "consistency_sd": 0.0, "engaged": 1.0}


@dataclass(frozen=True, slots=True)
class People:
    """Answers sorted by user, with each user's own list of items.

    ``largest_state``: users with min(answers, items) above half of it, or above an eighth of it and with more than
    twice as many answers as items, are *heavy*: dense factorisations are quicker than rank-one updates. So are those
    with a row of more copies than a sixth of it (and than 100), whose digits the updates would lose. 0 makes all users
    heavy.
    """

    # start of each user's answers and items, (n_users + 1,)
    answer_ptr: Annotated[IntArray, pointer("U+1", "R")]
    item_ptr: Annotated[IntArray, pointer("U+1", "K")]
    # each user's own items, ascending global codes; one that several alternatives of a task are, as often
    item_idx: Annotated[npt.NDArray[np.int32], codes("K", "I")]
    left: Annotated[npt.NDArray[np.int32], codes("R", "K")]  # positions in the user's own items, (n_rows,)
    right: Annotated[npt.NDArray[np.int32], codes("R", "K")]
    outcome: Annotated[npt.NDArray[np.int8], outcomes("R", "grades")]  # +1, 0 or -1, or with a grade ±(1 + g)
    weight: Annotated[FloatArray, positive("R")]  # number of identical answers in a row; 1 in a task
    n_items: int
    shards: Annotated[list[Shard], PLAIN]  # ranges of users, cut by work
    largest_state: int = LARGEST_STATE
    traits: Annotated[FloatArray, numbers("U T")] = field(default_factory=lambda: np.zeros((0, 0)))
    # multiplies the tie threshold, (n_users,)
    tie_factor: Annotated[FloatArray, unless(1.0, positive("U"))] = field(default_factory=lambda: np.zeros(0))
    # a_u, (n_users,): the noise of the user's answers has standard deviation 1 / a_u
    consistency: Annotated[FloatArray, unless(1.0, positive("U"))] = field(default_factory=lambda: np.zeros(0))
    # posterior standard deviation of log a_u, (n_users,)
    consistency_sd: Annotated[FloatArray, unless(0.0, amounts("U"))] = field(default_factory=lambda: np.zeros(0))
    # probability that the user does not click at random, (n_users,)
    engaged: Annotated[FloatArray, unless(1.0, amounts("U"))] = field(default_factory=lambda: np.zeros(0))
    # Log odds of a random clicker before the evidence of the model, (n_users,); -inf where ``engaged`` is held
    clicks: FloatArray = field(default_factory=lambda: np.zeros(0))
    # Rows of a person with one number, from 0, are one answer, and share the noise of their items; -1 for the others
    task: Annotated[IntArray, unless(-1, numbers("R", "int64"))] = field(
        default_factory=lambda: np.zeros(0, dtype=np.int64)
    )
    # Covariates of answers: distinct ones, (V, n_covariates), which of them each row has, and x γ, (n_rows,)
    patterns: FloatArray = field(default_factory=lambda: np.zeros((1, 0)))
    variant: Annotated[IntArray, unless(0, codes("R", "V", "int64"))] = field(
        default_factory=lambda: np.zeros(0, dtype=np.int64)
    )
    offset: FloatArray = field(default_factory=lambda: np.zeros(0))
    # Covariates times the spreads of their effects over people, (n_rows, n_effects): a user's own effects, in these
    # units, are N(0, I); no columns where all people have the same
    slope_columns: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    likelihood: type[PairLikelihood] = Probit  # of one answer
    # Where there are grades, or items tie more or less than others; with the ends of the intervals of answers, (n_rows,
    # 2), in units of the scale of these thresholds
    thresholds: Annotated[Thresholds | None, PART] = None
    ends: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))
    is_heavy: BoolArray = field(init=False)
    heavy: IntArray = field(init=False)  # codes of heavy users
    # 1 where tasks of some are worked on among the items, otherwise None: as the compiled loops take it
    among_items: int | None = field(init=False)
    # Who is worked on in lanes, and beside whom, (n_users,): people of one kind, 0 alone; whether with a state of the
    # items, not of the margins; and all users in the order in which lanes take those of a shard
    kind: IntArray = field(init=False)
    by_item: BoolArray = field(init=False)
    queue: IntArray = field(init=False)

    def __post_init__(self) -> None:
        if not self.traits.shape[1]:
            object.__setattr__(self, "traits", np.zeros((self.n_users, 0)))
        for name, default in (OF_PEOPLE | {"clicks": -np.inf}).items():
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(self.n_users, default))
        if not len(self.task):
            object.__setattr__(self, "task", np.full(self.n_rows, -1, dtype=np.int64))
        if not len(self.variant):
            object.__setattr__(self, "variant", np.zeros(self.n_rows, dtype=np.int64))
        if not len(self.offset):
            object.__setattr__(self, "offset", np.zeros(self.n_rows))
        if not self.slope_columns.shape[1]:
            object.__setattr__(self, "slope_columns", np.zeros((self.n_rows, 0)))
        has_tasks = _have_tasks(self.answer_ptr, self.task)
        is_heavy = _are_heavy(self.answer_ptr, self.item_ptr, self.weight, has_tasks, self.largest_state)
        object.__setattr__(self, "is_heavy", is_heavy)
        object.__setattr__(self, "heavy", np.flatnonzero(is_heavy))
        n, k = np.diff(self.answer_ptr), np.diff(self.item_ptr)
        among_items = has_tasks & are_better_among_items.py_func(n, k) & ~is_heavy
        object.__setattr__(self, "among_items", 1 if among_items.any() else None)
        shard = np.repeat(np.arange(len(self.shards)), [stop - start for start, stop in self.shards])
        kind, by_item = _kinds(n, k, is_heavy | has_tasks, shard)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "by_item", by_item)
        object.__setattr__(self, "queue", np.lexsort((n, np.where(kind, kind, _LAST), shard)))

    @property
    def answers(self) -> npt.NDArray[Any]:
        """What was answered, as the compiled loops take it."""
        return self.ends if len(self.ends) else self.outcome

    def columns(self, sites: Sites) -> Columns:
        """Answers as the compiled loops take them, with their sites."""
        return Columns(
            self.answer_ptr, self.item_ptr, self.item_idx, self.left, self.right, self.answers, self.task, self.weight,
            self.offset, self.slope_columns, self.traits, self.tie_factor, self.consistency, self.clicks, self.engaged,
            self.is_heavy, sites.precision, sites.linear,
        )  # fmt: skip

    def lanes(self, has_basis: bool, finds_thresholds: bool = False) -> tuple[IntArray, BoolArray]:
        """Kind of each user in lanes, and who is worked on alone, (n_users,) each.

        Lanes have no place for own effects of covariates, nor for thresholds that are found with the sites, nor on a
        basis for states of the items.
        """
        kind = self.kind
        if self.slope_columns.shape[1] or finds_thresholds:
            kind = np.zeros_like(kind)
        elif has_basis:
            kind = np.where(self.by_item, 0, kind)
        return kind, (kind == 0) & ~self.is_heavy & (np.diff(self.answer_ptr) > 0)

    def compiled(self, loop: Any) -> Any:
        """A compiled loop for what was answered."""
        return (Intervals if len(self.ends) else self.likelihood).compiled(loop)

    def with_thresholds(self, thresholds: Thresholds | None) -> People:
        """With the intervals that answers have by these thresholds."""
        if thresholds is None:
            return self
        first = np.repeat(self.item_ptr[:-1], np.diff(self.answer_ptr))
        left, right = self.item_idx[first + self.left], self.item_idx[first + self.right]
        return replace(self, thresholds=thresholds, ends=thresholds.ends(self.outcome, left, right))

    def scale_of_thresholds(self, delta: float | None) -> tuple[float, bool]:
        """Where δ, or the first positive cut, begins, and whether it is learned; ``delta``: the tie threshold given."""
        if self.thresholds is None:
            return starting_threshold(self.outcome, self.weight, delta), delta is None and bool(
                (self.outcome == 0).any()
            )
        return self.thresholds.scale, not (delta and self.thresholds.tie_threshold)

    def tie_threshold(self, delta: float) -> float:
        """The tie threshold: δ, or 0 with grades and without ties."""
        return delta if self.thresholds is None else self.thresholds.tie_threshold

    @property
    def n_rows(self) -> int:
        """Number of rows (identical answers of a user count once)."""
        return len(self.outcome)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.answer_ptr) - 1

    @property
    def n_active(self) -> int:
        """Number of users with at least one answer."""
        return int(np.count_nonzero(np.diff(self.answer_ptr)))

    @property
    def n_answers(self) -> float:
        """Number of answers: the sum of the weights."""
        return float(self.weight.sum())

    @property
    def n_shared(self) -> float:
        """Sum over people of their squared numbers of answers: how much answers say of how people differ."""
        owner = np.repeat(np.arange(self.n_users), np.diff(self.answer_ptr))
        return float(np.square(np.bincount(owner, self.weight)).sum())

    def of_covariates(self, of_rows: FloatArray) -> FloatArray:
        """Xᵀ times numbers of the rows, (n_covariates,)."""
        return np.asarray(self.patterns.T @ np.bincount(self.variant, of_rows, len(self.patterns)))

    def dense(self, user: int, law: Law) -> tuple[npt.NDArray[np.int32], DensePerson | CountedPerson]:
        """A user's own items, and the user in dense form, with utilities times the consistency."""
        items = self.item_idx[self.item_ptr[user] : self.item_ptr[user + 1]]
        rows = slice(self.answer_ptr[user], self.answer_ptr[user + 1])
        a = float(self.consistency[user])
        mean = a * law.person_mean(items, self.traits[user])
        noise, slope_columns = self.noise(user), self.slope_columns[rows]
        if noise is not None:
            noise = a * a * noise
        in_pair_space = noise is not None or rows.stop - rows.start <= len(items)
        has_effects = bool(slope_columns.shape[1]) and not in_pair_space
        if noise is None and (has_effects or has_many_copies(self.weight[rows], self.largest_state)):
            prior = a * a * law.covariance(items)
            return items, CountedPerson(self.left[rows], self.right[rows], prior, mean, slope_columns, a * a)
        left, right = self.left[rows], self.right[rows]
        if in_pair_space and not law.has_basis:
            return items, DensePerson(left, right, law.Sigma, mean, items, a, noise, slope_columns, a * a)
        prior = a * a * law.covariance(items) if in_pair_space else a * law.root(items)
        return items, DensePerson(
            left, right, prior, mean, noise=noise, slope_columns=slope_columns, effect_variance=a * a
        )

    def noise(self, user: int) -> FloatArray | None:
        """Covariance of the noise that rows of a user's tasks share, in units of utilities, (n, n); None without."""
        rows = slice(self.answer_ptr[user], self.answer_ptr[user + 1])
        task, left, right = self.task[rows], self.left[rows], self.right[rows]
        if not (task >= 0).any():
            return None
        one, other = np.equal.outer(left, left).astype(float), np.equal.outer(left, right)
        N = 0.5 * (one + np.equal.outer(right, right) - other - other.T)
        N[~np.equal.outer(task, task) | (task < 0)] = 0.0
        return np.asarray(N / self.consistency[user] ** 2)

    def sums(self, user: int, sites: Sites, law: Law) -> tuple[npt.NDArray[np.int32], FloatArray, FloatArray]:
        """A user's own items (k), each once, and x = Xᵀ α and Q = Xᵀ Q_u X on them, and then on own effects."""
        if self.is_heavy[user]:
            rows = slice(self.answer_ptr[user], self.answer_ptr[user + 1])
            w = self.weight[rows]
            items, person = self.dense(user, law)
            x, Q = person.sums(person.condition(w * sites.precision[rows], w * sites.linear[rows]))
            return each_once(items, self.consistency[user] * x, self.consistency[user] ** 2 * Q)
        items = self.item_idx[self.item_ptr[user] : self.item_ptr[user + 1]]
        x, Q = person_sums(user, self.columns(sites), self.among_items, law.prior, law.functions)
        return each_once(items, x, Q)

    def believed_sums(self, user: int, sites: Sites, law: Law) -> tuple[npt.NDArray[np.int32], FloatArray, FloatArray]:
        """:meth:`sums` of moments: of somebody who may click at random x and Q are w x and w Q - w (1 - w) x xᵀ.

        With these the mean and the covariance of utilities are those of the mixture of the person's posterior and, with
        probability 1 - w, of the population.
        """
        items, x, Q = self.sums(user, sites, law)
        w = float(self.engaged[user])
        return (items, x, Q) if w == 1.0 else (items, w * x, w * Q - w * (1.0 - w) * np.outer(x, x))

    def answers_by_item(self, start: int, stop: int) -> FloatArray:
        """Number of answers on each item of users ``start`` to ``stop``; (stop - start, n_items)."""
        rows = slice(self.answer_ptr[start], self.answer_ptr[stop])
        who = np.repeat(np.arange(start, stop), np.diff(self.answer_ptr[start : stop + 1]))
        counts = np.zeros((stop - start) * self.n_items)
        for side in (self.left, self.right):
            cell = (who - start) * self.n_items + self.item_idx[self.item_ptr[who] + side[rows]]
            counts += np.bincount(cell, self.weight[rows], minlength=len(counts))
        return counts.reshape(stop - start, self.n_items)

    def checked(self) -> None:
        """ValueError unless answers are of the person's own items, tasks agree with themselves, and shards hold all."""
        owner = np.repeat(np.arange(self.n_users), np.diff(self.item_ptr))
        if (np.diff(owner * self.n_items + self.item_idx) < 0).any():
            raise ValueError("the own items of a person do not ascend")
        n_own = np.repeat(np.diff(self.item_ptr), np.diff(self.answer_ptr))
        if (self.left >= self.right).any() or (self.right >= n_own).any():
            raise ValueError("an answer compares what is not two of the person's own items")
        edges = [0, *(stop for _, stop in self.shards)]
        if self.shards != list(pairwise(edges)) or edges != sorted(edges) or edges[-1] != self.n_users:
            raise ValueError("the shards do not hold every person once, in order")
        rows = np.flatnonzero(self.task >= 0)
        if not len(rows):
            return
        if (self.weight[rows] != 1.0).any() or (self.outcome[rows] == 0).any():
            raise ValueError("a task holds a tie, or an answer counted more than once")
        owner = np.repeat(np.arange(self.n_users), np.diff(self.answer_ptr))[rows]
        order = np.lexsort((self.task[rows], owner))
        rows, owner = rows[order], owner[order]
        group = np.cumsum(np.append(0, (np.diff(self.task[rows]) != 0) | (np.diff(owner) != 0)))
        if implied_rows(group, self.left[rows], self.right[rows], self.outcome[rows])[1] >= 0:
            raise ValueError("a task contradicts itself")


def each_once(
    items: npt.NDArray[np.int32], x: FloatArray, Q: FloatArray
) -> tuple[npt.NDArray[np.int32], FloatArray, FloatArray]:
    """Items (k) without copies, and sums x, Q over them, and over what follows them, that were over the copies."""
    place = np.flatnonzero(np.diff(items, prepend=-1))
    if len(place) == len(items):
        return items, x, Q
    start = np.append(place, np.arange(len(items), len(x)))
    return items[place], np.add.reduceat(x, start), np.add.reduceat(np.add.reduceat(Q, start, axis=0), start, axis=1)


def with_own(
    people: People,
    log_tie_factor: FloatArray,
    log_consistency: FloatArray,
    gamma: FloatArray,
    consistency_sd: FloatArray | None = None,
    spread: tuple[float, ...] = (),
    engaged: FloatArray | None = None,
) -> People:
    """People with their own tie thresholds and consistency, by their logarithms, (n_users,), and the effects γ of
    covariates, (n_covariates,), with their ``spread`` over people; empty leaves them. ``engaged``: (n_users,).
    """
    own: dict[str, Any] = {}
    if len(gamma):
        own["offset"] = (people.patterns @ gamma)[people.variant]
    if spread:
        own["slope_columns"] = (people.patterns * np.array(spread))[people.variant]
    if len(log_tie_factor):
        own["tie_factor"] = np.exp(log_tie_factor)
    if len(log_consistency):
        own["consistency"] = np.exp(log_consistency)
        if consistency_sd is not None:
            own["consistency_sd"] = consistency_sd
    if engaged is not None:
        own["engaged"] = engaged
    if not own:
        return people
    # Who is heavy stays as it is: to look again, as replace() does, takes longer than a pass over a small crowd, and
    # copy() is no quicker.
    other: People = object.__new__(People)
    for name in People.__slots__:
        object.__setattr__(other, name, own.get(name, getattr(people, name)))
    return other


def lay_out(
    comparisons: Comparisons, *, traits: FloatArray | None = None, thresholds: Thresholds | None = None, **options: Any
) -> People:  # fmt: skip
    """Layout of answers by user, O(n log n) time; ``options`` as of :func:`lay_out_columns`.

    DataError if a weight is below 1.
    """
    if n_small := int(np.count_nonzero(comparisons.weight < 1.0)):
        raise DataError(
            f"{n_small} rows have a weight below 1. A weight counts identical answers of one person; personal rankings "
            f"need weights of at least 1. Multiply them all, leave them out with {option('weight', False)}, or rank "
            f"the crowd alone ({either('--personal no', 'personal=False')})."
        )
    found = lay_out_columns(
        comparisons.user,
        comparisons.left,
        comparisons.right,
        comparisons.outcome if thresholds is None else comparisons.code,
        comparisons.weight,
        n_items=comparisons.n_items,
        traits=np.zeros((comparisons.n_users, 0)) if traits is None else traits,
        task=joint_rows(comparisons),
        copies=comparisons.copies,
        **patterns_of(comparisons),
        **options,
    )
    return found.with_thresholds(thresholds)


def patterns_of(comparisons: Comparisons) -> dict[str, Any]:
    """Distinct covariates of answers, and which of them each row has, as of :class:`People`; O(n log n)."""
    if comparisons.covariates is None:
        return {}
    patterns, variant = np.unique(comparisons.covariates, axis=0, return_inverse=True)
    return {"patterns": patterns, "variant": variant.reshape(-1)}


def lay_out_columns(
    user: IntArray,
    left: IntArray,
    right: IntArray,
    outcome: npt.NDArray[np.int8],
    weight: FloatArray,
    *,
    n_items: int,
    traits: FloatArray,
    task: IntArray | None = None,
    copies: npt.NDArray[np.int16] | None = None,
    largest_state: int = LARGEST_STATE,
    n_basis: int | None = None,
    likelihood: type[PairLikelihood] = Probit,
    **more: Any,
) -> People:
    """:func:`lay_out` from columns of codes sorted by user; ``traits`` (n_users, n_traits) may have no columns.

    ``n_basis``: columns of the basis, by default the items; others, and ``more``, as in :class:`People`.
    """
    n_users, n = len(traits), len(user)
    task = np.full(n, -1, dtype=np.int64) if task is None or not likelihood.has_normal_noise else task.astype(np.int64)
    user = user.astype(np.int64)
    keys = np.concatenate([user * n_items + left, user * n_items + right])
    most = 1 if copies is None else int(copies.max(initial=0)) + 1
    unique, position = _distinct(keys if copies is None else keys * most + copies.T.ravel())
    unique //= most
    bounds = np.arange(n_users + 1)
    answer_ptr = np.searchsorted(user, bounds).astype(np.int64)
    item_ptr = np.searchsorted(unique // n_items, bounds).astype(np.int64)
    return People(
        answer_ptr=answer_ptr,
        item_ptr=item_ptr,
        item_idx=(unique % n_items).astype(np.int32),
        left=(position[:n] - item_ptr[user]).astype(np.int32),
        right=(position[n:] - item_ptr[user]).astype(np.int32),
        # Copies: the columns of comparisons are read-only, for which every loop would be compiled a second time.
        outcome=np.array(outcome),
        weight=np.array(weight),
        n_items=n_items,
        task=task,
        shards=shards_of(answer_ptr, item_ptr, weight, task, n_items, largest_state, n_basis),
        largest_state=largest_state,
        traits=np.ascontiguousarray(traits),
        likelihood=likelihood,
        **more,
    )


def _distinct(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct keys in order, (u,), and which of them each key is, (n,): half the memory of ``np.unique``."""
    order = np.argsort(keys)
    keys = keys[order]
    first = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    keys = keys[first]
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.cumsum(first, dtype=np.int32) - 1
    return keys, position


def shards_of(
    answer_ptr: IntArray,
    item_ptr: IntArray,
    weight: FloatArray,
    task: IntArray,
    n_items: int,
    largest_state: int,
    n_basis: int | None,
) -> list[Shard]:
    """Ranges of users with about equal work."""
    has_tasks = _have_tasks(answer_ptr, task)
    heavy = _are_heavy(answer_ptr, item_ptr, weight, has_tasks, largest_state)
    if n_basis and is_quicker_by_items(n_items, n_basis) and not heavy.any():
        n_basis = None
    return cut(
        _costs(
            np.diff(answer_ptr), _state_sizes(answer_ptr, item_ptr, has_tasks), np.diff(item_ptr), heavy, n_basis or 0
        ),
        max(_COST_PER_SHARD, _COST_PER_ENTRY * n_items * (n_basis or n_items)),
        _MOST_SHARDS,
    )


def is_quicker_by_items(n_items: int, n_basis: int) -> bool:
    """Whether people without dense factorisations are worked on with the covariance of the items, not on the basis."""
    return n_items <= min(_FEW_ITEMS, _FEW_PER_FUNCTION * n_basis)


def _costs(n: IntArray, size: IntArray, k: IntArray, heavy: BoolArray, n_basis: int) -> FloatArray:
    """Nanoseconds of one EM pass over a user with n answers on k items (a replay, a sweep, the statistics)."""
    d = size.astype(float)
    d[heavy] = 0.0  # not worked on in shards
    return np.asarray(1000.0 + n * (500.0 + 2.5 * d + 0.1 * d * d) + k * k + 0.3 * n_basis * d * (d + 8.0))


def has_many_copies(weight: FloatArray, largest_state: int = LARGEST_STATE) -> bool:
    """Whether rank-one updates would lose too many digits to a row of one user."""
    return bool(weight.max(initial=0.0) > _many_copies(largest_state))


def _many_copies(largest_state: int) -> int:
    # Updates lose the prior variance times the square of (that variance times the copies) ulps: at 100 about 1e-8.
    return max(largest_state, LARGEST_STATE) // 6


def _kinds(n: IntArray, k: IntArray, apart: BoolArray, shard: IntArray) -> tuple[IntArray, BoolArray]:
    """Kind of each user, and whose state is of the items: people of one kind differ by at most a fifth in the size of
    the state and in the number of rows; 0 for who is ``apart`` or has a larger one, and for all where lanes would save
    little. Kinds with a state of the margins are the lower ones.
    """
    by_item = n > _ROWS_PER_ITEM * k
    if len(n) <= _COST_IN_LANES * AT_A_TIME:  # which so few cannot save
        return np.zeros(len(n), dtype=np.int64), by_item
    size = np.where(by_item, k, n)
    of_size, of_rows = (np.floor(np.log(np.maximum(x, 1)) / math.log(_ALIKE)).astype(np.int64) for x in (size, n))
    kind = 1 + np.where(by_item, (of_size + 1) * _CLASSES + of_rows, of_size)
    kind[(n == 0) | (size > _LARGEST_IN_LANES) | (n > _MOST_ROWS) | apart] = 0
    _, which, count = np.unique(shard * _LAST + kind, return_inverse=True, return_counts=True)
    filled = count / (AT_A_TIME * np.ceil(count / AT_A_TIME))
    cost = _costs(n, size, k, apart, 0) * ~apart
    saved = cost * (kind > 0) * (1.0 - _COST_IN_LANES / filled[which])
    is_worth_it = saved.sum() > max(_WORTH_IT * cost.sum(), _LEAST_SAVED)
    return kind if is_worth_it else np.zeros_like(kind), by_item


def _are_heavy(
    answer_ptr: IntArray,
    item_ptr: IntArray,
    weight: FloatArray,
    has_tasks: BoolArray,
    largest_state: int,
) -> BoolArray:
    n, k = np.diff(answer_ptr), np.diff(item_ptr)
    size = _state_sizes(answer_ptr, item_ptr, has_tasks)
    # Of tasks the dense form is among the rows
    heavy = (size > largest_state // 2) | ((size > largest_state // 8) & (n > 2 * k) & ~has_tasks)
    if has_many_copies(weight, largest_state):
        many = np.concatenate(([0], np.cumsum(weight > _many_copies(largest_state))))
        heavy |= np.diff(many[answer_ptr]) > 0
    return heavy


def _state_sizes(answer_ptr: IntArray, item_ptr: IntArray, has_tasks: BoolArray) -> IntArray:
    """Size of each user's state, (n_users,): of the answers or the items, whichever are fewer; see
    :func:`~predilect.inference.people.ep.shape_of` for tasks.
    """
    n, k = np.diff(answer_ptr), np.diff(item_ptr)
    among_rows = has_tasks & ~are_better_among_items.py_func(n, k)
    return np.asarray(np.where(among_rows, n, np.minimum(n, k)))


def _have_tasks(answer_ptr: IntArray, task: IntArray) -> BoolArray:
    return np.asarray(np.diff(np.concatenate(([0], np.cumsum(task >= 0)))[answer_ptr]) > 0)
