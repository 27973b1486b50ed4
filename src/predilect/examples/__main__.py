"""``python -m predilect.examples [FOLDER]``: copies of the example files, here or in another folder."""

from __future__ import annotations

import sys
from pathlib import Path

from predilect.examples import FILES, copy_into


def main(folder: str = ".") -> None:
    """Write the files, and say what they are."""
    if not Path(folder).is_dir():
        sys.exit(f"There is no folder {folder}.")
    for name, written in copy_into(folder).items():
        print(f"{name}: {FILES[name] if written else 'is there already, and was left as it is'}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
