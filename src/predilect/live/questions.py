"""Which items come next: drawn for a participant, with the probability of the draw."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

from predilect.live.answers import user_of
from predilect.live.belief import Belief
from predilect.live.log import New
from predilect.live.settings import Settings
from predilect.live.state import Item, Participant, PollState

_RETEST_AFTER = 5  # questions
_FEW_SETS = 2000  # that are listed; of more, some are drawn until one is new


class Drawn(NamedTuple):
    """Items to show, in the order on the screen; the probability is that of the items, in whatever order."""

    items: tuple[int, ...]
    probability: float | None
    retest: bool = False

    def event(self, number: int) -> New:
        """What the log keeps of it, of the participant of this number."""
        said = {"items": list(self.items), "p": self.probability}
        return New("shown", said | ({"retest": True} if self.retest else {}), number)


class AskedParticipant(NamedTuple):
    """What draws need to know of a participant, taken while nobody writes to the state."""

    number: int
    settings: Settings
    active: list[int]
    keys: dict[int, str]
    by_key: Mapping[str, Item]  # all items, those that come meanwhile too
    seen: set[tuple[int, ...]]  # sorted, with each item that was merged as the one that it counts for
    again: list[tuple[int, ...]]  # pairs answered at least five questions ago, as they were shown

    @classmethod
    def of(cls, state: PollState, person: Participant) -> AskedParticipant:
        """What is known of a participant now."""
        assert state.settings is not None
        items = state.active()
        order = sorted(person.shown)
        late = set(order[-_RETEST_AFTER:])
        active = {item.number for item in items}
        again = {
            shown.items: None
            for answer in person.answers.values()
            if answer.value is not None and answer.shown not in late
            and not (shown := person.shown[answer.shown]).retest and active.issuperset(shown.items)
        }  # fmt: skip
        repeated = {tuple(sorted(one.items)) for one in person.shown.values() if one.retest}
        return cls(
            person.number, state.settings, sorted(active), {item.number: item.key for item in items},
            state.by_key, {tuple(sorted({*map(state.root, one.items)})) for one in person.shown.values()},
            [pair for pair in again if tuple(sorted(pair)) not in repeated],
        )  # fmt: skip


def draw(asked: AskedParticipant, n: int, belief: Callable[[], Belief], source: random.Random) -> list[Drawn]:
    """Up to ``n`` different questions for one participant; fewer if no more are left."""
    settings, found = asked.settings, list[Drawn]()
    seen = set(asked.seen)
    again = list(asked.again) if settings.kind == "pair" else []
    while len(found) < n:
        if again and source.random() < settings.retest:
            pair = again.pop(source.randrange(len(again)))
            found.append(Drawn(pair[::-1], None, True))
            continue
        if settings.strategy == "random":
            one = _at_random(asked, seen, source)
        else:
            one = _by_model(asked, seen, belief(), source)
        if one is None:
            break
        seen.add(tuple(sorted(one.items)))
        found.append(one)
    return found


def _at_random(asked: AskedParticipant, seen: set[tuple[int, ...]], source: random.Random) -> Drawn | None:
    """Any set that the participant has not seen, each as likely as any other, in any order."""
    size, active = asked.settings.n_shown, asked.active
    known = set(active)
    n_left = math.comb(len(active), size) - sum(len(one) == size and known.issuperset(one) for one in seen)
    if n_left <= 0:
        return None
    if n_left <= _FEW_SETS and math.comb(len(active), size) <= 20 * _FEW_SETS:
        chosen = source.choice([one for one in combinations(active, size) if one not in seen])
    else:
        while (chosen := tuple(sorted(source.sample(active, size)))) in seen:
            pass
    items = list(chosen)
    source.shuffle(items)
    return Drawn(tuple(items), 1.0 / n_left)


def _by_model(
    asked: AskedParticipant, seen: set[tuple[int, ...]], belief: Belief, source: random.Random
) -> Drawn | None:
    """The set that the poll's strategy takes, as the model has it."""
    settings, user = asked.settings, user_of(asked.number)
    left_out = [tuple(asked.keys[number] for number in one) for one in seen
                if len(one) == settings.n_shown and all(k in asked.keys for k in one)]  # fmt: skip
    if settings.strategy == "person":
        return _for_person(asked, belief, user, left_out, source)
    seed = source.getrandbits(64)
    if settings.kind == "pair":
        for asker in belief.asker():
            for left, right, probability in asker.draw(user, 1, exclude=left_out, random_state=seed):
                return Drawn((asked.by_key[left].number, asked.by_key[right].number), probability)
        return None
    size = min(settings.size, len(asked.active))
    chosen = belief.asker()[-1].ask_set(user, size, exclude=left_out, random_state=seed)
    if chosen is None:
        return None
    return Drawn(tuple(asked.by_key[key].number for key in chosen.items), chosen.probability)


def _for_person(
    asked: AskedParticipant, belief: Belief, user: str, left_out: list[tuple[str, ...]], source: random.Random
) -> Drawn | None:
    """What tells most about the participant; the draw among equals has no probability that could be told."""
    model, settings = belief.catch_up(), asked.settings
    known = user if belief.knows(user) else None
    keys = list(asked.keys.values())
    if settings.kind == "pair":
        exclude = {"left": [one[0] for one in left_out], "right": [one[1] for one in left_out]}
        table = model.suggest(known, 1, candidates=keys, exclude=exclude if left_out else None, random_state=None)
        chosen = [] if not len(table) else [table["left"][0], table["right"][0]]
    else:
        table = model.suggest_set(known, settings.size, keys, exclude=[list(one) for one in left_out] or None)
        chosen = list(table["item"])
    source.shuffle(chosen)
    return Drawn(tuple(asked.by_key[key].number for key in chosen), None) if chosen else None
