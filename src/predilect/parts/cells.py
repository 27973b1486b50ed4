"""What a worker does with one part: lay its answers out once, sweep its sites, and send back sums over its people.

A worker keeps nothing between calls but files of its scratch folder: the laid-out answers of a part, which are
memory-mapped, and its state after some pass, two numbers a row (the sites) and up to four a person. The state is a
cache: a pass reads that of the pass before, by its name, and writes its own. The name is a digest of all passes so far,
so a stale state is never used. Where the state is not there, the part was lost: it is read again and swept to
convergence at the parameters of the pass.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.replace import write_whole
from predilect._base.shards import workers
from predilect._base.stored import DAMAGE
from predilect._base.types import FloatArray
from predilect.data import Comparisons, Vocabulary
from predilect.data.comparisons import SIDE
from predilect.data.keyed_rows import results_of
from predilect.data.orders import as_orders
from predilect.errors import DataError, OutputError
from predilect.inference.gaussian.dense import mirror, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.inference.people.covariates import CovariateInformation, covariate_information
from predilect.inference.people.empirical_bayes import (
    consistency_step,
    information_of_consistency,
    of_utilities,
    ties_step,
)
from predilect.inference.people.engaged import consistency_of_others, counts_of_answers, with_clicks
from predilect.inference.people.expectation import Expectation, converge, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, lay_out, with_own
from predilect.inference.people.sandwich import Scores, scores_of_people
from predilect.parts.manifest import Parts

_LAID_OUT = "laid-out.json"
START = "start"  # name of the state before the first pass, in which nothing is known
_LOST_SWEEPS, _LOST_TOLERANCE = 100, 1e-6  # of the sites of a part that is read again
_MOST_OWN_STEPS = 3  # of people's own coordinates in one pass
_MOST_FINAL_STEPS = 40


@dataclass(frozen=True)
class Spec:
    """What a worker needs to know of a fit, whatever the pass; sent along with each call."""

    parts: Path
    checksum: str  # of the manifest
    scratch: Path
    items: Vocabulary  # of all parts, and those that only features name
    n_basis: int | None = None
    likelihood: type[PairLikelihood] = Probit
    thresholds: Thresholds | None = None
    with_side: bool = False
    grades: tuple[str, ...] = ()
    joint: bool = False
    unit: FloatArray = field(default_factory=lambda: np.zeros(0))  # of covariates
    tie_spread: float = 0.0
    consistency_spread: float = 0.0
    covariate_spread: tuple[float, ...] = ()
    click_rate: float = 0.0
    click_shares: FloatArray = field(default_factory=lambda: np.zeros(0))  # of all parts, once they are counted

    def open(self) -> Parts:
        """The parts; DataError if they are others than when the fit began."""
        parts = Parts.open(self.parts)
        if parts.checksum != self.checksum:
            raise DataError(f"{self.parts} was changed while a model was fitted to it. Fit again")
        return parts

    def answers(self, part: int, parts: Parts | None = None) -> Comparisons:
        """Answers of a part, as the fit takes them."""
        return self.taken((parts or self.open()).answers(part))

    def taken(self, answers: Comparisons) -> Comparisons:
        """Answers of some of the people, as the fit takes them."""
        if self.grades != answers.grades:
            answers = answers.with_grades(self.grades)
        answers = replace(answers.with_items(self.items), joint=self.joint)
        answers = as_orders(answers) if self.joint else answers
        splits = self.with_side and SIDE not in answers.covariate_names  # which those read with side=yes have
        answers = answers.with_side() if splits else replace(answers, sides=None)
        if answers.covariates is not None:
            answers = replace(answers, covariates=answers.covariates / self.unit)
        return answers

    def laid_out(self, answers: Comparisons) -> People:
        """Layout of the answers of a part."""
        return lay_out(answers, n_basis=self.n_basis, likelihood=self.likelihood, thresholds=self.thresholds)


class Pass(NamedTuple):
    """Parameters of one pass over the parts; states are read by the name ``before``, and written by that ``after``."""

    law: Law
    delta: float
    gamma: FloatArray
    n_sweeps: int
    tolerance: float
    before: str
    after: str
    keep: tuple[str, ...] = ()  # passes whose states are not removed
    own_gain: float = 0.0  # nats that a step in people's own coordinates must promise


class Counts(NamedTuple):
    """Counts of laid-out parts; sums."""

    n_users: int
    n_active: int
    n_rows: int
    n_pairs: int
    n_answers: float
    results: FloatArray  # wins, ties and losses of each item, (n_items, 3)
    ties: float
    of_grades: FloatArray  # ties, decided answers without a grade, and those of each grade, tasks left aside


class PartState(NamedTuple):
    """State of a part: its sites, and logarithms of people's own thresholds and consistency, (n_users,) or empty."""

    sites: Sites
    log_tie_factor: FloatArray
    log_consistency: FloatArray
    # of its logarithm, and the probability that a person does not click at random; known at the end
    consistency_sd: FloatArray = np.zeros(0)
    engaged: FloatArray = np.zeros(0)


def cell(spec: Spec, part: int) -> tuple[People, Path]:
    """A part, laid out, with its folder; the first call reads and checks it. DataError, OutputError."""
    folder = spec.scratch / f"part-{part:04d}"
    try:
        return _kept_cell(spec, folder), folder
    except DAMAGE:  # it is not there, or cannot be read
        people = spec.laid_out(spec.answers(part))
    document: dict[str, Any] = {"n_items": people.n_items, "shards": people.shards, "state": people.largest_state}
    _write(folder, {one.name: array for one in fields(People) if one.init
                    and isinstance(array := getattr(people, one.name), np.ndarray)})  # fmt: skip
    keep(folder / _LAID_OUT, lambda file: file.write_text(json.dumps(document), encoding="utf-8"))
    return _kept_cell(spec, folder), folder


def _kept_cell(spec: Spec, folder: Path) -> People:
    """A part as it was laid out before; an error of DAMAGE if it is not there, or cannot be read."""
    document = json.loads((folder / _LAID_OUT).read_text(encoding="utf-8"))
    # Copies on write, of which no page is ever written: to compiled loops read-only arrays would be of another type.
    arrays = {file.stem: np.asarray(np.load(file, mmap_mode="c")) for file in folder.glob("*.npy")
              if not file.stem.startswith(("state-", "."))}  # fmt: skip
    return People(
        **arrays, n_items=document["n_items"], shards=[(a, b) for a, b in document["shards"]],
        largest_state=document["state"], likelihood=spec.likelihood, thresholds=spec.thresholds,
    )  # fmt: skip


def counts(spec: Spec, part: int) -> Counts:
    """Lay a part out, and count."""
    people, _ = cell(spec, part)
    ties = float(people.weight[people.outcome == 0].sum())
    first = np.repeat(people.item_ptr[:-1], np.diff(people.answer_ptr))
    left, right = (people.item_idx[first + side] for side in (people.left, people.right))
    results = results_of(left, right, people.outcome, people.weight, people.n_items)
    return Counts(
        people.n_users, people.n_active, people.n_rows, len(people.item_idx), people.n_answers, results, ties,
        counts_of_answers(people, len(spec.grades)),
    )  # fmt: skip


def sweep(spec: Spec, part: int, one: Pass) -> tuple[Expectation, int]:
    """One pass over a part: its sums, with the log prior of people's own coordinates; and whether it had been lost."""
    people, folder = cell(spec, part)
    state, lost = _state(spec, people, folder, one)
    found, state = _swept(spec, people, state, one)
    _keep(folder, state, one)
    return found, lost


class Finished(NamedTuple):
    """Sums over a part at the end of a fit."""

    expectation: Expectation
    covariates: CovariateInformation | None
    log_prior: float  # of people's own coordinates
    change: float  # of people's own coordinates in the last step


def finish(spec: Spec, part: int, one: Pass, covariates: bool) -> Finished:
    """Sites and people's own coordinates run to convergence, as the fit of one machine does; they are kept."""
    people, folder = cell(spec, part)
    state, found, change = _settled(spec, people, _state(spec, people, folder, one)[0], one)
    with workers(1):
        information = (
            covariate_information(_held(spec, people, state, one), state.sites, one.law) if covariates else None
        )
    _keep(folder, state, one)
    return Finished(_of_all(found), information, _log_prior(spec, state), change)


def of_sample(spec: Spec, answers: Comparisons, one: Pass) -> tuple[People, Sites]:
    """Some of the people, whose answers are as the fit takes them, with their sites, as a fit leaves them."""
    people = spec.laid_out(answers)
    state, _, _ = _settled(spec, people, _again(spec, people, one), one)
    return _held(spec, people, state, one), state.sites


def _settled(spec: Spec, people: People, state: PartState, one: Pass) -> tuple[PartState, Expectation, float]:
    """Sites and people's own coordinates at convergence, their sums, and the last change of the coordinates."""
    spread, change, most = spec.consistency_spread, 0.0, _most_of_consistency(spec, people, one)
    with workers(1):
        for _ in range(_MOST_FINAL_STEPS if spread else 0):
            now = _people(spec, people, state, one)
            found = converge(now, state.sites, one.law, one.delta, tolerance=one.tolerance)
            moved = consistency_step(state.log_consistency, spread, found, most)
            change = float(np.abs(moved - state.log_consistency).max(initial=0.0))
            state = state._replace(log_consistency=moved)
            if change <= one.tolerance:
                break
        now = _people(spec, people, state, one)
        found = converge(now, state.sites, one.law, one.delta, spread=spec.tie_spread, tolerance=one.tolerance)
        if spec.tie_spread:
            state = state._replace(log_tie_factor=np.log(found.tie_factor))
        if spread:
            information = information_of_consistency(
                _people(spec, people, state, one), state.sites, one.law, one.delta, found.care[:, 0],
                tolerance=max(10.0 * one.tolerance, 1e-4), executor=None,
            )  # fmt: skip
            state = state._replace(consistency_sd=1.0 / np.sqrt(information + spread**-2))
    return (state._replace(engaged=found.engaged) if spec.click_rate else state), found, change


def clickers(spec: Spec, part: int, one: Pass, C: FloatArray) -> tuple[Scores, float, float]:
    """At the end of a fit with people who click at random: sums for the sandwich by person and for the unit."""
    people, folder = cell(spec, part)
    state, _ = _state(spec, people, folder, one)
    now = _held(spec, people, state, one)
    return scores_of_people(now, state.sites, one.law, C), *consistency_of_others(now, spec.consistency_spread)


def gamma_information(spec: Spec, part: int, one: Pass) -> FloatArray:
    """Bound on the information of the answers about the effects of covariates, (n_covariates, n_covariates)."""
    people, folder = cell(spec, part)
    state, _ = _state(spec, people, folder, one)
    now = _people(spec, people, state, one)
    a = np.repeat(now.consistency, np.diff(now.answer_ptr))
    of_patterns = np.bincount(now.variant, a * a * now.weight * state.sites.precision, len(now.patterns))[:, None]
    return symmetrise(now.patterns.T @ (of_patterns * now.patterns))


def _people(spec: Spec, people: People, state: PartState, one: Pass) -> People:
    own = with_own(people, state.log_tie_factor, state.log_consistency, one.gamma, spread=spec.covariate_spread)
    return with_clicks(own, spec.click_rate, spec.click_shares)


def _held(spec: Spec, people: People, state: PartState, one: Pass) -> People:
    """People as they were found at the end, who clicks at random held."""
    return with_own(
        people, *state[1:3], one.gamma, state.consistency_sd, spec.covariate_spread,
        state.engaged if spec.click_rate else None,
    )  # fmt: skip


def _swept(spec: Spec, people: People, state: PartState, one: Pass) -> tuple[Expectation, PartState]:
    """Sweeps of the sites, and steps of people's own coordinates while these promise to gain."""
    most = _most_of_consistency(spec, people, one)
    with workers(1):
        for left in reversed(range(_MOST_OWN_STEPS)):
            found = expectation(
                _people(spec, people, state, one), state.sites, one.law, one.delta, n_sweeps=one.n_sweeps,
                tolerance=one.tolerance,
            )  # fmt: skip
            moved, gain = _own_step(spec, state, found, most)
            if gain <= one.own_gain or not left:
                break
            state = moved
    return _with_prior(spec, found, state), state


def _most_of_consistency(spec: Spec, people: People, one: Pass) -> FloatArray:
    return of_utilities(one.law, people) if spec.consistency_spread else np.zeros(0)


def _own_step(spec: Spec, state: PartState, found: Expectation, most: FloatArray) -> tuple[PartState, float]:
    """A step of people's own thresholds and consistency, and what it promises to gain, in nats."""
    gain = 0.0
    if spec.tie_spread:
        theta = state.log_tie_factor
        new, _ = ties_step(theta, spec.tie_spread, found)
        gain += 0.5 * float((new - theta) @ (found.ties[:, 0] - theta / spec.tie_spread**2))
        state = state._replace(log_tie_factor=new)
    if spec.consistency_spread:
        theta = state.log_consistency
        new = consistency_step(theta, spec.consistency_spread, found, most)
        gain += 0.5 * float((new - theta) @ (found.care[:, 0] - theta / spec.consistency_spread**2))
        state = state._replace(log_consistency=new)
    return state, gain


def _with_prior(spec: Spec, found: Expectation, state: PartState) -> Expectation:
    """Sums with the log prior density of people's own coordinates, and without what is of each person."""
    return replace(_of_all(found), evidence=found.evidence + _log_prior(spec, state))


def _of_all(found: Expectation) -> Expectation:
    """Sums without what is of each person."""
    nothing = np.zeros(0)
    return replace(found, own_slopes=np.zeros((0, 4)), engaged=nothing, evidences=nothing, tie_factor=nothing)


def _log_prior(spec: Spec, state: PartState) -> float:
    value = 0.0
    for theta, spread in ((state.log_tie_factor, spec.tie_spread), (state.log_consistency, spec.consistency_spread)):
        if spread:
            value -= 0.5 * float(theta @ theta) / spread**2
    return value


def _state(spec: Spec, people: People, folder: Path, one: Pass) -> tuple[PartState, int]:
    """State after the pass before, and whether it had been lost; before the first pass nothing is known."""
    found = read_state(folder, one.before, people)
    if found is not None:
        return found, 0
    return (_unknown(spec, people), 0) if one.before == START else (_again(spec, people, one), 1)


def _unknown(spec: Spec, people: People) -> PartState:
    """State of which nothing is known."""
    own, nothing = np.zeros(people.n_users), np.zeros(0)
    return PartState(
        Sites.flat(people.n_rows), own if spec.tie_spread else nothing, own if spec.consistency_spread else nothing
    )


def _again(spec: Spec, people: People, one: Pass) -> PartState:
    """State found anew."""
    gently = one._replace(n_sweeps=_LOST_SWEEPS, tolerance=_LOST_TOLERANCE)
    return _swept(spec, people, _unknown(spec, people), gently)[1]


def read_state(folder: Path, name: str, people: People) -> PartState | None:
    """State of a part after a pass; None where it is not there, or of other answers."""
    try:
        sites, own = (np.load(folder / f"state-{what}-{name}.npy") for what in ("sites", "own"))
    except DAMAGE:
        return None
    if sites.shape != (2, people.n_rows) or own.shape[1] not in (0, people.n_users):
        return None
    return PartState(Sites(sites[0].copy(), sites[1].copy()), *(row[:0] if np.isnan(row).any() else row for row in own))


def _keep(folder: Path, state: PartState, one: Pass) -> None:
    """Write a state; states of passes that nobody needs any more are removed."""
    own = np.full((len(state) - 1, max(map(len, state[1:]))), np.nan)
    for row, values in zip(own, state[1:], strict=True):
        row[: len(values)] = values
    # Sites last: a state is there once they are.
    _write(folder, {f"state-own-{one.after}": own, f"state-sites-{one.after}": np.stack(
        [state.sites.precision, state.sites.linear])})  # fmt: skip
    wanted = {one.before, one.after, *one.keep}
    for file in folder.glob("state-*-*.npy"):
        if file.stem.rsplit("-", 1)[1] not in wanted:
            file.unlink(missing_ok=True)


def _write(folder: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write arrays, each whole or not at all; OutputError."""
    for name, array in arrays.items():
        keep(folder / f"{name}.npy", partial(np.save, arr=array))


def keep(file: Path, write: Callable[[Path], Any]) -> None:
    """Write a file of the scratch folder whole or not at all; OutputError."""
    try:
        write_whole(file, write)
    except OSError as error:
        raise OutputError(
            f"{file} could not be written: {error.strerror}. Make room, or keep the state of the fit elsewhere "
            "(work=FOLDER); what was written so far is used when the fit is started again"
        ) from error


def groups_of(n_parts: int, n_floats: int) -> list[list[int]]:
    """Consecutive parts whose sums a worker adds up before it sends them: a matter of the parts, not of the workers.

    At most 32, and fewer where the ``n_floats`` of one group are many, so that a pass sends at most some 256 MB.
    """
    n = int(np.clip(_MOST_SENT // max(n_floats, 1), 4, 32))
    return [part.tolist() for part in np.array_split(np.arange(n_parts), min(n, n_parts))]


_MOST_SENT = 1 << 25  # numbers


def over_group(work: Callable[..., Any], spec: Spec, group: Sequence[int], *args: Any) -> Any:
    """The sum of what ``work`` finds in the parts of a group, in order; DataError names the part that fails."""
    total: Any = None
    for part in group:
        for attempt in (1, 2):
            try:
                found = work(spec, part, *args)
                break
            except DataError:
                raise
            except Exception as error:  # of whatever kind: it is tried again, and then told
                if attempt == 2:
                    if isinstance(error, OutputError):
                        raise
                    raise DataError(
                        f"part {part} of {spec.parts} failed twice ({type(error).__name__}: {error}). Look at the part "
                        "and at the machine that read it; the fit goes on where it was when it is started again"
                    ) from error
        total = found if total is None else added(total, found)
    return packed(total)


def packed(sums: Any) -> Any:
    """Sums with the lower triangles of symmetric matrices alone, as vectors."""
    if isinstance(sums, Finished):
        return sums._replace(expectation=packed(sums.expectation))
    if type(sums) is tuple:
        return tuple(map(packed, sums))
    if not isinstance(sums, Expectation):
        return sums
    below = np.tri(len(sums.H), dtype=bool)
    return replace(sums, H=sums.H[below], D=sums.D[below])


def unpacked(sums: Expectation) -> Expectation:
    """What :func:`packed` is of."""
    M = math.isqrt(2 * len(sums.H))
    below = np.tri(M, dtype=bool)

    def whole(vector: FloatArray) -> FloatArray:
        matrix = np.zeros((M, M))
        matrix[below] = vector
        mirror(matrix)
        return matrix

    return replace(sums, H=whole(sums.H), D=whole(sums.D))


def added(one: Any, other: Any) -> Any:
    """Sums over more people: of numbers, arrays, and what is made of them."""
    if one is None or isinstance(one, int | float | np.ndarray):
        return one if one is None else one + other
    if isinstance(one, Expectation):
        values = {part.name: added(getattr(one, part.name), getattr(other, part.name)) for part in fields(one)}
        values["largest_change"] = max(one.largest_change, other.largest_change)
        values["own_slopes"] = one.own_slopes
        return Expectation(**values)
    if isinstance(one, Finished):
        return Finished._make([*map(added, one[:3], other[:3]), max(one.change, other.change)])
    return type(one)(*map(added, one, other)) if hasattr(one, "_fields") else tuple(map(added, one, other))
