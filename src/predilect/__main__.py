"""``python -m predilect``: the command line."""

from predilect.cli.main import run

if __name__ == "__main__":
    run()
