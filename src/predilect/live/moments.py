"""Times with a zone, as organisers write them and pages say them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from predilect._base.text import one_line, quoted
from predilect.errors import DataError

_FORM = re.compile(r"(\d{4}-\d{2}-\d{2})[T ]+(\d{1,2}:\d{2})\s+(\S+)")
_SUCH_AS = "2027-03-01 09:00 Europe/Berlin"


def moment(name: str, value: Any) -> str:
    """A time as settings keep it: date, time and zone; "" for none; DataError for what is no time, or none there."""
    if not isinstance(value, str):
        raise DataError(f"{name} is a time with its zone, such as {_SUCH_AS}; got {quoted(value)}")
    text = value.strip()
    if not text:
        return ""
    found = _FORM.fullmatch(text)
    try:
        local = None if found is None else datetime.strptime(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M")
    except ValueError:
        local = None
    if found is None or local is None or local.year < 1971 or local.year > 9000:
        raise DataError(f"{name} is a time with its zone, such as {_SUCH_AS}; got {quoted(one_line(value))}")
    zone = _zone(name, found[3])
    there = local.replace(tzinfo=zone)
    if there.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local:
        raise DataError(f"{name}: clocks of {found[3]} are put forward then, and never show {found[1]} {found[2]}")
    return f"{local:%Y-%m-%d %H:%M} {found[3]}"


def _zone(name: str, called: str) -> tzinfo:
    try:
        return ZoneInfo(called)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise DataError(
            f"{name}: there is no zone {quoted(called)}. It is called such as Europe/Berlin, or UTC"
        ) from error


@lru_cache(maxsize=64)
def parsed(text: str) -> datetime | None:
    """A time that :func:`moment` made, with its zone; None for ""."""
    if not text:
        return None
    day, time, zone = text.split(" ")
    return datetime.fromisoformat(f"{day} {time}").replace(tzinfo=ZoneInfo(zone))


def seconds_of(text: str) -> float | None:
    """The same in seconds since 1970."""
    found = parsed(text)
    return None if found is None else found.timestamp()
