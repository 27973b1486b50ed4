"""Which languages the pages speak: English, and each that has a file, here or in a folder of the server's owner."""

from __future__ import annotations

import os
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from predilect._base.text import one_line
from predilect.errors import DataError

FOLDER = files("predilect.live.web") / "texts"
OF_THE_CODE = "en"  # in which refusals are written
_OWN_FOLDER = "PREDILECT_LANGUAGES"


def _found() -> dict[str, Traversable]:
    """Catalogues by their languages; one of the owner's goes before ours."""
    own = os.environ.get(_OWN_FOLDER)
    if own and not Path(own).is_dir():
        raise DataError(f"{_OWN_FOLDER} is a folder of catalogues; there is no folder {one_line(own)}")
    there = [*FOLDER.iterdir(), *(Path(own).iterdir() if own else ())]
    return {one.name[:-3].replace("_", "-"): one for one in there if one.name.endswith(".po")}


CATALOGUES = _found()
LANGUAGES = (OF_THE_CODE, *sorted(CATALOGUES.keys() - {OF_THE_CODE}))
