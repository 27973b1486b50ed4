"""What organisers may do: one table of verbs, which Python, the API, the pages and the command share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, get_args

from predilect._base.text import did_you_mean, quoted
from predilect.live import verbs
from predilect.live.erasing import erase
from predilect.live.given import Refused, Unfit, read_called
from predilect.live.log import New, Writing
from predilect.live.state import OWNER, Organiser, PollState, Role

ROLES = get_args(Role)
_MOST_ORGANISERS = 100


class Act(NamedTuple):
    """What an organiser may do: who may at least, and what it writes in a state."""

    role: Role
    decide: Callable[..., Writing]


def may(who: Organiser, role: Role) -> bool:
    """Whether somebody may do what is for a role."""
    return ROLES.index(who.role) >= ROLES.index(role)


def check_role(who: Organiser, role: Role) -> None:
    """Refused for whoever may not do what is for a role."""
    if not may(who, role):
        raise Refused(f"this is not for a {who.role} of the poll", 403)


def role_of_export(kind: str, show_pids: bool) -> Role:
    """Who may have an export at least: outer references, and the log as it is, are for organisers."""
    return "organiser" if show_pids or kind == "events" else "reader"


def acted(state: PollState, verb: str, said: tuple[Any, ...], by: int) -> Writing:
    """What an act of an organiser writes, with who did it."""
    act = ACTS.get(verb)
    if act is None:
        raise Unfit(f"there is nothing like {quoted(verb)} to do.{did_you_mean(verb, ACTS)}")
    who = state.organisers.get(by)
    if who is None:
        raise Refused("this link was taken back", 403)
    check_role(who, act.role)
    plan = act.decide(state, *said)
    return replace(plan, events=[one._replace(payload={**one.payload, "by": by}) for one in plan.events])


def _invite(state: PollState, name: str, role: str, keep: Callable[[Any, int], None]) -> Writing:
    """Let somebody look after the poll; ``keep`` writes down what they show."""
    name = read_called(name)
    if role not in ROLES:
        raise Unfit(f"the role of an organiser is one of {', '.join(ROLES)}; got {quoted(role)}")
    if any(one.name == name for one in state.organisers.values()):
        raise Refused(f"there is an organiser {quoted(name)} already. Take their link back first")
    if len(state.organisers) > _MOST_ORGANISERS:
        raise Refused(f"a poll has at most {_MOST_ORGANISERS} organisers")
    return Writing(
        lambda numbers: numbers[0], [New("organiser", {"name": name, "role": role})],
        lambda connection, numbers: keep(connection, numbers[0]),
    )  # fmt: skip


def _revoke(state: PollState, who: str | int, forget: Callable[[Any, int], None]) -> Writing:
    """Take a link back."""
    found = next((one for one in state.organisers.values() if who in (one.number, one.name)), OWNER)
    if found is OWNER:
        raise Refused(f"there is no organiser {quoted(who)}", 404)
    return Writing(
        lambda _: None, [New("organiser", {"number": found.number, "role": None})],
        lambda connection, _: forget(connection, found.number),
    )  # fmt: skip


ACTS: Mapping[str, Act] = {
    "add": Act("moderator", verbs.add),
    "moderate": Act("moderator", verbs.moderate),
    "edit": Act("moderator", verbs.edit),
    "merge": Act("moderator", verbs.merge),
    "part": Act("moderator", verbs.part),
    "retire": Act("moderator", verbs.retire),
    "set_status": Act("organiser", verbs.set_status),
    "change": Act("organiser", verbs.change),
    "erase": Act("organiser", erase),
    "invite": Act("organiser", _invite),
    "revoke": Act("organiser", _revoke),
}
