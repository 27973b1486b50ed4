"""Whose answers may be no answers: too fast, all on one side, others when a pair comes again. Signs, no proof."""

from __future__ import annotations

import math
from collections.abc import Iterator

from predilect.live.state import Participant, PollState

FAST = 1.0  # seconds in which hardly anybody reads two texts
_FEWEST_TIMED, _FEWEST_REPEATED = 5, 4
_BY_CHANCE = 1e-3  # probability that somebody who reads is flagged for the side
REASONS = ("fast", "one_side", "repeats")


def suspects(state: PollState) -> dict[int, tuple[str, ...]]:
    """Participants whose answers look like none, by number, each with why.

    "fast": of at least five answers that were timed half came within a second. "one_side": more pairs were
    answered on one side, or by the item in one place of a set, than chance leaves once in a thousand (sides are drawn).
    "repeats": of at least four pairs that were asked twice, at least half were answered otherwise.
    """
    found = {number: _why(person) for number, person in state.people.items()}
    return {number: why for number, why in sorted(found.items()) if why}


def _why(person: Participant) -> tuple[str, ...]:
    looks = {"fast": _is_fast(person), "one_side": _is_one_sided(person), "repeats": _differs_from_itself(person)}
    return tuple(why for why in REASONS if looks[why])


def seconds(person: Participant) -> Iterator[float]:
    """Seconds that answers took since their questions were on the screen, where that is known.

    A page says it. Otherwise a question was before its reader since it was drawn, unless it was drawn ahead, while
    another one was answered.
    """
    before = 0
    for answer in sorted(person.answers.values()):
        if answer.shown_ms is not None:
            yield answer.shown_ms / 1000.0
        elif before < answer.shown:
            yield answer.time - person.shown[answer.shown].time
        before = answer.sequence


def _is_fast(person: Participant) -> bool:
    took = list(seconds(person))
    return len(took) >= _FEWEST_TIMED and 2 * sum(one < FAST for one in took) >= len(took)


def _is_one_sided(person: Participant) -> bool:
    """Whether the place that was chosen most often was chosen too often, of places that are equally likely."""
    chosen = [(one.value[0], len(one.items)) for one in person.answers.values() if one.value]
    if not chosen:
        return False
    n, size = len(chosen), max(size for _, size in chosen)
    most = max(sum(place == one for place, _ in chosen) for one in range(size))
    tail = sum(math.comb(n, k) * (size - 1) ** (n - k) for k in range(most, n + 1)) / size**n
    return bool(size * tail < _BY_CHANCE)


def repeats(person: Participant) -> tuple[int, int]:
    """Pairs that were asked twice and answered both times, and how many of them otherwise."""
    first: dict[tuple[tuple[int, ...], int], int | None] = {}
    n = other = 0
    for answer in sorted(person.answers.values()):
        if answer.value is None or len(answer.items) != 2:
            continue
        asked = tuple(sorted(answer.items)), answer.criterion
        better = answer.items[answer.value[0]] if answer.value else None
        if asked in first:
            n, other = n + 1, other + (better != first[asked])
        else:
            first[asked] = better
    return n, other


def _differs_from_itself(person: Participant) -> bool:
    n, other = repeats(person)
    return n >= _FEWEST_REPEATED and 2 * other >= n
