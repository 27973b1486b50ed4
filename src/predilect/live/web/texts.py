"""What the pages say, in the languages that there are: one file each, in ``texts``."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from predilect.live.moments import parsed

_FOLDER = files("predilect.live.web") / "texts"
_OF_THE_CODE = "en"  # in which refusals are written
LANGUAGES = tuple(
    sorted((one.name[:-5] for one in _FOLDER.iterdir() if one.name.endswith(".toml")),
           key=lambda language: (language != _OF_THE_CODE, language))
)  # fmt: skip


@cache
def texts(language: str) -> dict[str, Any]:
    """All texts of a language, by their keys; in ``refused`` by what the code says, with {} for what differs."""
    return tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


@cache
def _patterns(language: str) -> list[tuple[str, str]]:
    """Patterns of refusals, and what this language says of each."""
    return [(re.escape(said).replace(r"\{\}", "(.*)"), told) for said, told in texts(language)["refused"].items()]


class Speech:
    """Texts of one language: ``say("key", n=3)``."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, key: str, **values: Any) -> str:
        return str(texts(self.language)[key]).format(**values)

    def refused(self, said: str, status: int) -> str:
        """A refusal in this language; one that it has no words for is told by its kind alone."""
        known = texts(self.language)
        if said and self.language != _OF_THE_CODE:
            found = ((re.fullmatch(pattern, said), told) for pattern, told in _patterns(self.language))
            said = next((told.format(*match.groups()) for match, told in found if match is not None), "")
        if not said:
            return str(known["kinds"].get(str(status), known["kinds"]["400"]))
        return said[0].upper() + said[1:] + ("" if said[-1] in ".!?" else ".")

    def number(self, value: float, digits: int = 2) -> str:
        """A number with so many decimals, as the language writes it."""
        said = f"{value:.{digits}f}".replace("-", "\u2212")
        return said.replace(".", self("decimal_mark"))

    def moment(self, text: str) -> str:
        """A time of the settings in words, with its zone."""
        found = parsed(text)
        if found is None:
            return ""
        days, months = self("weekdays").split(), self("months").split()
        return self(
            "moment", weekday=days[found.weekday()], day=found.day, month=months[found.month - 1], year=found.year,
            time=f"{found:%H:%M}", zone=text.rpartition(" ")[2].replace("_", " "),
        )  # fmt: skip

    def percent(self, share: float) -> str:
        """A probability, never shown as 0 or 1."""
        told = "< 1" if share < 0.005 else "> 99" if share >= 0.995 else f"{100 * share:.0f}"
        return f"{told}\u00a0%"


def preferred(accepted: str, default: str) -> str:
    """The language that a browser asks for first, of those that there are."""
    wishes: list[tuple[float, int, str]] = []
    for place, one in enumerate(accepted[:500].split(",")):
        tag, _, weight = one.strip().partition(";q=")
        try:
            wishes.append((-float(weight or 1.0), place, tag.strip().lower()[:2]))
        except ValueError:
            continue
    return next((tag for weight, _, tag in sorted(wishes) if tag in LANGUAGES and weight < 0.0), default)
