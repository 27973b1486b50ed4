"""``python -m predilect``, and the command ``predilect``."""

from __future__ import annotations

import gc
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any

# What others import and hardly a command needs: run if something of it is asked for.
_LATER = ("asyncio", "numpy.ctypeslib", "numpy.f2py", "numpy.testing", "scipy.spatial", "scipy.spatial.transform")
# A thread of OpenBLAS that waits for work spins for a tenth of a second after each product: 2^4 cycles are enough.
_BLAS_WAITS = ("OPENBLAS_THREAD_TIMEOUT", "4")
_OBJECTS_PER_COLLECTION = 100_000  # 700 would go through all modules again and again while they are imported


class _Later:
    """Finder of modules that are run when an attribute is first asked for."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The usual place, with a loader that waits."""
        found = PathFinder.find_spec(name, path, target) if name in _LATER else None
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found


def main() -> None:
    """Run the command line; 130 after Ctrl-C, also before a command takes over."""
    sys.meta_path.insert(0, _Later)
    os.environ.setdefault(*_BLAS_WAITS)
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    try:
        from predilect.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)  # cli.session.INTERRUPTED, which may not have been imported
    finally:
        # An interrupt within a piece of text that Python runs, as importing a dataclass does, counts as unhandled until
        # the next piece is run, whatever handled it: ``python -m`` would end by the signal, and not with our exit code.
        exec("")
        gc.freeze()  # the process ends, which frees all: looking for garbage before would take a third of a second


if __name__ == "__main__":
    main()
