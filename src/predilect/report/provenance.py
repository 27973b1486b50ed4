"""Provenance of a result: the files it was made of, and versions."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("numpy", "scipy", "numba", "polars")


def file_record(path: Path) -> dict[str, str | int]:
    """Name, size in bytes and SHA-256 of a file; the name without its folder, which differs between machines."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def input_records(paths: Mapping[str, Path | None]) -> dict[str, dict[str, str | int]]:
    """Records of the files that were given, by the role they play."""
    return {role: file_record(path) for role, path in paths.items() if path is not None}


def package_versions() -> dict[str, str]:
    """Versions of Predilect, of what computes its numbers, and of Python."""
    from predilect import __version__

    return {
        "predilect": __version__,
        **{name: version(name) for name in _PACKAGES},
        "python": platform.python_version(),
    }
