"""The lowest versions that are tested are those that pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Needed by the linter, the type checker and the site, or by the referees of single tests; not run with lowest versions.
TOOLS = {"furo", "mypy", "myst-parser", "ruff", "scipy-stubs", "sphinx", "statsmodels", "xlogit"}


def test_every_lower_bound_is_the_version_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *(line for extra in extras.values() for line in extra)]
    lowest = dict(line for line in (re.split("==", text) for text in pins()) if len(line) == 2)
    bounds = dict(found.groups() for line in named if (found := re.fullmatch(r"([\w-]+)>=([\d.]+)", line)))
    assert set(bounds) - TOOLS <= set(lowest)
    for name in set(bounds) - TOOLS:
        parts = [int(part) for part in bounds[name].split(".")]
        tested = [int(part) for part in lowest[name].split(".")]
        assert tested[: len(parts)] == parts, f"{name}>={bounds[name]} is tested with {lowest[name]}"
        assert not any(tested[len(parts) :]), f"{name}: a lower {bounds[name]} is allowed"


def test_the_citation_is_of_this_version():
    said = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert said == [project["version"]]


def pins() -> list[str]:
    text = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
