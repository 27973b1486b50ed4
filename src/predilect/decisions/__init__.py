"""Decisions from a posterior: rankings, tiers, the probability of being best, the next question; act, ask or defer.

Fitted models have them as methods: ``suggest``, ``suggest_set``, ``decide``, ``versus``, ``scores`` ... ``design``
opens ``predilect.choice`` when it is first used.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["Design", "design"]

if TYPE_CHECKING:
    from predilect.choice.designs import Design as Design
    from predilect.choice.designs import design as design


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from predilect.choice import designs

    return getattr(designs, name)
