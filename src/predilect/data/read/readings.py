"""Ways to read a table: layouts offer them, one is taken, and several that say different things are asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from predilect._base.text import LONGEST_MESSAGE, shortened
from predilect.data.read.assemble import Assembled, Unclear
from predilect.data.read.options import OPTIONS, ReadOptions, option
from predilect.errors import DataError

# How surely a table is to be read in a way: its columns are called so; its values fit hardly anything else; it is
# possible, and taken only if it is said.
SURE, LIKELY, OPEN = 2, 1, 0
_COLUMNS = frozenset(one.key for one in OPTIONS if one.is_column)
_MOST_WAYS = 6  # that a question shows
_FRAME, _LEAST = 200, 40  # characters of a question beside its ways, and of the least that is shown of an answer


@dataclass(frozen=True)
class Reading:
    """One way to read a table.

    ``sentence``: what it takes for what, such as 'who won by "vote"'; ``say``: the options that choose it; ``make``
    returns its answers, and raises DataError where rows mean nothing under it. ``ask``: it is asked about even if
    no other way says anything else.
    """

    sentence: str
    say: ReadOptions
    make: Callable[[], Assembled]
    sure: int = SURE
    ask: bool = False


def refused(error: DataError, sure: int) -> Reading:
    """A reading that fails."""

    def make() -> Assembled:
        raise error

    return Reading("", {}, make, sure)


def or_refused(readings: Iterable[Reading], sure: int) -> Iterator[Reading]:
    """Readings, and one that fails where no more of them can be made."""
    try:
        yield from readings
    except DataError as error:
        yield refused(error, sure)


class Question(DataError):
    """Several ways fit a table and say different things, or one that nothing tells of."""

    def __init__(self, ways: Sequence[tuple[Reading, Assembled]]) -> None:
        self.ways = _offered(ways)
        self.is_open = ways[0][0].sure == OPEN
        options = [f"({way.sentence}): {said(way.say)}" for way, _ in self.ways]
        most = max((LONGEST_MESSAGE - _FRAME - len("".join(options))) // len(options), _LEAST)
        sentence = "; or ".join(
            f"{shortened(made.intake.example[0].rstrip('.'), most)} {one}"
            for one, (_, made) in zip(options, self.ways, strict=True)
        )
        how = f"in {len(ways)} ways" if len(ways) > 1 else "so, but nothing tells that it must be"
        super().__init__(f"the table can be read {how}. Say which is meant. {sentence}.")


def said(options: ReadOptions) -> str:
    """How to say some options, columns first."""
    (key, value), *more = sorted(options.items(), key=lambda one: one[0] not in _COLUMNS)
    return option(key, value, **dict(more))


def _offered(ways: Sequence[tuple[Reading, Assembled]]) -> list[tuple[Reading, Assembled]]:
    """Ways with what tells them apart alone; where they are many, the first of those that one option has in common."""
    says = [dict(way.say) for way, _ in ways]
    common = [key for key in says[0] if all(key in say and say[key] == says[0][key] for say in says)]
    of_pairs = ("kind",) if "kind" in common and says[0]["kind"] == "pairs" else ()
    for key in common if all(way.sure > OPEN for way, _ in ways) else of_pairs:
        if all(len(say) > 1 for say in says):
            for say in says:
                del say[key]
    if len(ways) > _MOST_WAYS:
        key = next((key for key in says[0] if key not in common), next(iter(says[0])))
        together = {"left": ("left", "right"), "won": ("won", "lost")}.get(key, (key,))
        kept = (*(common if ways[0][0].sure == OPEN else ()), *together)
        says = [{key: say[key] for key in kept if key in say} or say for say in says]
    found: dict[str, tuple[Reading, Assembled]] = {}
    for (way, made), say in zip(ways, says, strict=True):
        found.setdefault(repr(say), (replace(way, say=say), made))  # type: ignore[arg-type]
    return list(found.values())[:_MOST_WAYS]


def settle(readings: Iterable[Reading]) -> Assembled | None:
    """The answers of the surest reading; None without any.

    Raises Question if several are as sure and say different things, or if the only one is merely possible; the error of
    the first if none of the surest can be read. Those that are less sure are not even tried where one is surer.
    """
    ranked = sorted(readings, key=lambda one: -one.sure)  # stable: in the order in which layouts offer them
    errors: list[DataError] = []
    for level in (SURE, LIKELY, OPEN):
        ways: list[tuple[Reading, Assembled]] = []
        for way in (one for one in ranked if one.sure == level):
            try:
                made = way.make()
            except Question:
                raise  # asks about what else is open
            except DataError as error:
                errors.append(error)
                continue
            if not any(same(made, other) for _, other in ways):
                ways.append((way, made))
        if len(ways) == 1 and level > OPEN and not ways[0][0].ask:
            return ways[0][1]
        if ways:
            raise Question(ways)
        if errors and level == SURE:
            break
    if errors:
        raise errors[0]
    return None


def tried(error: Question, read: Callable[[ReadOptions], Assembled]) -> DataError:
    """The question with the ways alone of which ``read`` makes something of their options, or one more question.

    What was said when the first of them was tried, if it makes nothing of any.
    """
    kept, refused = [], list[DataError]()
    for way in error.ways:
        try:
            read(way[0].say)
        except Question:
            pass  # asks about what else is open
        except DataError as other:
            refused.append(other)
            continue
        kept.append(way)
    return Question(kept) if kept else refused[0]


def helped(error: Unclear, read: Callable[[ReadOptions], Assembled]) -> DataError:
    """The error with those of its options alone with which ``read`` makes something of the table, or asks further."""
    helps = []
    for sentence, options in error.helps:
        try:
            read(options)
        except (Question, Unclear):
            pass  # asks about what else is open
        except DataError:
            continue
        helps.append((sentence, options))
    return Unclear(" ".join([str(error), *(sentence for sentence, _ in helps)]), helps)


def same(one: Assembled, other: Assembled) -> bool:
    """Whether two readings say the same of the same people and items."""
    if (one.users, one.items, one.grades, one.contexts, one.clock) != (
        other.users,
        other.items,
        other.grades,
        other.contexts,
        other.clock,
    ):
        return False
    pairs = zip(one.answers, other.answers, strict=True)
    return all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs)
