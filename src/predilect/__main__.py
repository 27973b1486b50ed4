"""``python -m predilect``, and the command ``predilect``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; 130 after Ctrl-C, also before a command takes over."""
    try:
        from predilect.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)  # cli.session.INTERRUPTED, which may not have been imported
    finally:
        # An interrupt within a piece of text that Python runs, as importing a dataclass does, counts as unhandled until
        # the next piece is run, whatever handled it: ``python -m`` would end by the signal, and not with our exit code.
        exec("")


if __name__ == "__main__":
    main()
