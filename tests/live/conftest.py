"""Tests of live polls need the extra; those of PostgreSQL a server of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

collect_ignore_glob: list[str] = []
try:
    import fastapi  # noqa: F401
    import sqlalchemy  # noqa: F401
except ImportError:
    collect_ignore_glob.append("test_*.py")

_PLACES = [Path(one) for one in ("/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt")]


def _programs() -> Path | None:
    """Folder of initdb and postgres, which Debian keeps out of the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = [path.parent for place in _PLACES if place.is_dir() for path in place.glob("*/bin/initdb")]
    return max(
        versions, default=None, key=lambda path: float(path.parent.name) if path.parent.name.isdecimal() else 0.0
    )


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a PostgreSQL that was started for the tests, reached by a socket in a folder of its own."""
    programs = _programs()
    if programs is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    # Not among pytest's folders, which are for their owner alone, whereas PostgreSQL does not run as root.
    place = Path(tempfile.mkdtemp(prefix="predilect-pg-"))
    data, log = place / "data", place / "log"
    run = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if run:
        if shutil.which("setpriv") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no setpriv")
        shutil.chown(place, "postgres", "postgres")
    kept: dict[str, Any] = {"cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 120}
    subprocess.run(
        [*run, programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N"], check=True, **kept
    )
    options = f"-c listen_addresses='' -c unix_socket_directories='{place}' -c shared_buffers=32MB -c fsync=off"
    control = [*run, programs / "pg_ctl", "-D", data, "-l", log, "-w"]
    subprocess.run([*control, "-o", options, "start"], check=True, **kept)
    try:
        yield f"postgresql://postgres@/postgres?host={place}"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, **kept)
        shutil.rmtree(place)
