"""What the pages say, in the languages that there are: one file each, in ``texts``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "de")


@cache
def texts(language: str) -> dict[str, str]:
    """All texts of a language, by their keys."""
    return tomllib.loads((files("predilect.live.web") / "texts" / f"{language}.toml").read_text(encoding="utf-8"))


class Speech:
    """Texts of one language: ``say("key", n=3)``."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, key: str, **values: Any) -> str:
        return texts(self.language)[key].format(**values)

    def number(self, value: float, digits: int = 2) -> str:
        """A number with so many decimals, as the language writes it."""
        said = f"{value:.{digits}f}".replace("-", "\u2212")
        return said.replace(".", ",") if self.language == "de" else said

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
