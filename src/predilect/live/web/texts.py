"""What the pages say in a language: its texts, numbers and dates; what it has no words for is said in English."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Literal

from babel import Locale
from babel.dates import format_date, format_time
from babel.numbers import format_decimal, format_percent

from predilect.live.moments import parsed
from predilect.live.web.catalogues import REFUSED, forms, template, translations
from predilect.live.web.languages import LANGUAGES, OF_THE_CODE

_WRITTEN_AS = {OF_THE_CODE: "en-GB"}  # as it is spelt
_PERCENT = {OF_THE_CODE: "0\u00a0%"}  # where we write it as other units, and not as Babel does


@cache
def english() -> dict[str, tuple[str, ...]]:
    """What the pages say in English, by its keys; two forms where a number is said."""
    return {str(one.context): forms(one.id) for one in template() if one.context != REFUSED}


@cache
def _refusals() -> list[tuple[re.Pattern[str], str]]:
    """Patterns of refusals, and what the code says of each; first those that say most of it themselves."""
    said = [str(one.id) for one in template() if one.context == REFUSED]
    said.sort(key=lambda one: -len(one.replace("{}", "")))
    return [(re.compile(re.escape(one).replace(r"\{\}", "(.*)")), one) for one in said]


class Speech:
    """Texts of one language: ``say("key", n=3)``; of a text with forms for a number ``n`` says which."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._told = translations(language)
        self.locale = _locale(language)

    def __call__(self, key: str, **values: Any) -> str:
        one, *many = english()[key]
        told = self._told.npgettext(key, one, many[0], values["n"]) if many else self._told.pgettext(key, one)
        said = {name: self.number(value, 0) if isinstance(value, int) else value for name, value in values.items()}
        return told.format(**said)

    @property
    def name(self) -> str:
        """What the language calls itself."""
        name = str(Locale.parse(self.language, sep="-").get_display_name())
        return name[0].upper() + name[1:]

    def counts(self, answers: int, people: int) -> str:
        """How many answers there are of how many people."""
        return self("counts", answers=self("count_answers", n=answers), people=self("count_people", n=people))

    def refused(self, said: str, status: int) -> str:
        """A refusal in this language; one that it has no words for is told by its kind alone."""
        if said and self.language != OF_THE_CODE:
            found = ((pattern.fullmatch(said), known) for pattern, known in _refusals())
            said = next((self._filled(known, match.groups()) for match, known in found if match is not None), "")
        if not said:
            return self(f"wrong_{status}" if f"wrong_{status}" in english() else "wrong_400")
        return said[0].upper() + said[1:] + ("" if said[-1] in ".!?" else ".")

    def _filled(self, known: str, values: tuple[str, ...]) -> str:
        told = self._told.pgettext(REFUSED, known)
        return "" if told == known else told.format(*values)

    def number(self, value: float, digits: int = 2) -> str:
        """A number with so many decimals, as the language writes it."""
        return _number(f"{value:.{digits}f}", self.language)

    def percent(self, share: float) -> str:
        """A probability, never shown as 0 or 1."""
        told = "< " if share < 0.005 else "> " if share >= 0.995 else ""
        return told + _percent(min(max(round(100.0 * share), 1), 99), self.language)

    def time(self, said: str) -> str:
        """A day and the time on it, from what ISO 8601 says."""
        return self._time(datetime.fromisoformat(said), "medium")

    def moment(self, text: str) -> str:
        """A time of the settings in words, with its zone; "" for none."""
        found = parsed(text)
        if found is None:
            return ""
        return f"{self._time(found.replace(tzinfo=None), 'full')} ({text.rpartition(' ')[2].replace('_', ' ')})"

    def _time(self, when: datetime, form: Literal["medium", "full"]) -> str:
        both = str(self.locale.datetime_formats[form]).replace("'", "")
        return both.format(format_time(when, "short", locale=self.locale), format_date(when, form, self.locale))


def _locale(language: str) -> Locale:
    return Locale.parse(_WRITTEN_AS.get(language, language), sep="-")


@lru_cache(10_000)
def _number(value: str, language: str) -> str:
    decimals = value.partition(".")[2]
    form = f"#,##0.{'0' * len(decimals)}" if decimals else None
    return format_decimal(value, form, _locale(language)).replace("-", "\u2212")


@cache
def _percent(value: int, language: str) -> str:
    return format_percent(value / 100, _PERCENT.get(language), _locale(language))


def preferred(accepted: str, default: str) -> str:
    """The language that a browser asks for first, of those that there are."""
    wishes: list[tuple[float, int, str]] = []
    for place, one in enumerate(accepted[:500].split(",")):
        tag, _, weight = one.strip().partition(";q=")
        try:
            wishes.append((-float(weight or 1.0), place, tag.strip().lower()))
        except ValueError:
            continue
    known = {language.lower(): language for language in LANGUAGES}
    tags = (tag for weight, _, whole in sorted(wishes) if weight < 0.0 for tag in (whole, whole.partition("-")[0]))
    return next((known[tag] for tag in tags if tag in known), default)
