"""Files that pages are about: those that were named, read where they are, and copies of those that were dropped."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from predilect.errors import DataError

_CHUNK = 1 << 20
_LONGEST_NAME = 100


class Shelf(Mapping[str, Path]):
    """Paths by keys that stand in addresses; ``folder`` goes with all that lies in it when the shelf is closed."""

    def __init__(self) -> None:
        self._held = TemporaryDirectory(prefix="predilect-")
        self.folder = Path(self._held.name)
        self._paths: dict[str, Path] = {}
        self._lock = threading.Lock()

    def __getitem__(self, key: str) -> Path:
        path = self._paths.get(key)
        if path is None:
            raise DataError("the file of this page is not open any more. Open it again")
        return path

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._paths))

    def __len__(self) -> int:
        return len(self._paths)

    def put(self, path: Path) -> str:
        """The key of a file on this machine."""
        whole = path.resolve()
        key = hashlib.sha256(str(whole).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        with self._lock:
            self._paths[key] = whole
        return key

    def keep(self, name: str, content: BinaryIO) -> str:
        """The key of a file that came over, of which a copy is kept; the same content under one name is one file."""
        plain = re.sub(r"[^\w.() -]", "_", Path(name.replace("\\", "/")).name).strip(". ") or "table"
        digest = hashlib.sha256()
        part = self.folder / f"coming-{threading.get_ident()}"
        with part.open("wb") as file:
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
        folder = self.folder / digest.hexdigest()[:16]
        folder.mkdir(exist_ok=True)
        path = folder / plain[-_LONGEST_NAME:]
        if path.exists():
            part.unlink()
        else:
            part.replace(path)
        return self.put(path)

    def close(self) -> None:
        """Remove the copies and all results."""
        self._held.cleanup()
