"""``python -m predilect``, and the command ``predilect``."""

from __future__ import annotations

import gc
import sys

_OBJECTS_PER_COLLECTION = 100_000  # 700 would go through all modules again and again while they are imported


def main() -> None:
    """Run the command line; 130 after Ctrl-C, also before a command takes over."""
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
