"""Whether plots can be drawn."""

from __future__ import annotations

from importlib.util import find_spec


def can_plot() -> bool:
    """Whether Matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None
