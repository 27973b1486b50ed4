"""Versions agree: of the package, of what it needs, of the Pythons and systems that workflows test."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import predilect
from predilect.models.saving import FORMAT_VERSION

ROOT = Path(__file__).parents[1]
# Needed by the linter, the type checker and the site, or by the referees of single tests; not run with lowest versions.
TOOLS = {
    "axe-playwright-python",
    "furo",
    "ipykernel",
    "mypy",
    "myst-parser",
    "nbclient",
    "playwright",
    "pyyaml",
    "ruff",
    "schemathesis",
    "scipy-stubs",
    "sphinx",
    "statsmodels",
    "xlogit",
}


def test_the_page_of_saved_models_is_of_their_format():
    page = (ROOT / "docs" / "model-format.md").read_text(encoding="utf-8")
    assert f"; {FORMAT_VERSION}, the version of this format" in page


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


def test_the_recipe_of_conda_needs_what_the_package_needs():
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    python = f"python{whole['project']['requires-python']}"
    spaced = [re.sub(r"(?=>=)", " ", one) for one in [python, *whole["project"]["dependencies"]]]
    assert recipe["requirements"]["run"] == spaced
    assert {re.sub(r"(?=>=)", " ", one) for one in whole["build-system"]["requires"]} <= {
        *recipe["requirements"]["host"]
    }
    assert recipe["context"]["version"] == predilect.__version__
    (command,) = (f"{name} = {place}" for name, place in whole["project"]["scripts"].items())
    assert recipe["build"]["python"]["entry_points"] == [command]


def test_the_version_of_the_package_is_written_once_and_the_citation_is_of_it():
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert whole["project"]["dynamic"] == ["version"]
    assert whole["tool"]["hatch"]["version"]["path"] == "src/predilect/_version.py"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == predilect.__version__
    assert f"## {predilect.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_workflows_test_the_pythons_and_systems_that_the_package_names():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    matrix = workflows()["tests.yml"]["jobs"]["unit"]["strategy"]["matrix"]
    pythons = [one.rsplit(" :: ", 1)[1] for one in classifiers if re.search(r":: 3\.\d+$", one)]
    assert matrix["python"] == pythons
    systems = {"MacOS": "macos-latest", "Windows": "windows-latest", "Linux": "ubuntu-latest"}
    named = [one.rsplit(" :: ", 1)[1] for one in classifiers if one.startswith("Operating System")]
    assert sorted(matrix["os"]) == sorted(systems[name] for name in named)


def test_workflows_call_targets_that_the_makefile_has():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    steps = [step for one in workflows().values() for job in one["jobs"].values() for step in job.get("steps", [])]
    called = {word for step in steps for line in re.findall(r"^make (.*)$", step.get("run", ""), flags=re.MULTILINE)
              for word in line.split() if "=" not in word}  # fmt: skip
    assert called == {"docs", "lint", "papers", "test", "test-lowest", "test-slow", "types", "wheel"}
    assert called <= targets


def test_workflows_pin_what_they_use():
    used = [step["uses"] for one in workflows().values() for job in one["jobs"].values()
            for step in job.get("steps", []) if "uses" in step]  # fmt: skip
    assert len(used) > 10
    assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one)] == []


def test_an_image_holds_what_the_package_is_built_of_and_no_more():
    copied = [
        word
        for line in re.findall(r"^COPY (.*) \S+$", (ROOT / "Dockerfile").read_text(), re.M)
        for word in line.split()
    ]
    everything, *allowed = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"
    ]
    assert everything == "*"
    assert {one[1:].split("/")[0] for one in allowed if one[0] == "!"} == set(copied)
    assert {"**/__pycache__", "**/*.db*"} < set(allowed)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {project["readme"], *project["license-files"], "pyproject.toml", "constraints.txt", "src"} == set(copied)
    assert all((ROOT / one).exists() for one in copied)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("lacks", ["venv", "ensurepip"])
def test_make_says_what_a_python_without_virtual_environments_lacks(tmp_path, lacks):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / f"{lacks}.py").write_text(f"raise ImportError('No module named {lacks!r}')\n")
    fake = tmp_path / "python3"
    fake.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path / "without"}" exec "{sys.executable}" "$@"\n')
    fake.chmod(0o755)
    folder = tmp_path / "environment"
    command = ["make", f"VENV={folder}", f"PYTHON={fake}", f"{folder}/.created"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode != 0
    assert f"{fake} cannot make a virtual environment" in told.stdout
    assert "apt install python3-venv" in told.stdout
    assert "make PYTHON=" in told.stdout
    assert not folder.exists()


def workflows() -> dict[str, Any]:
    folder = ROOT / ".github" / "workflows"
    return {file.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in folder.glob("*.yml")}


def pins() -> list[str]:
    text = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
