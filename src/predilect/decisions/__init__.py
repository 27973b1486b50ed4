"""Decisions from a posterior: rankings, tiers, the probability of being best, the next question; act, ask or defer.

Fitted models have them as methods: ``suggest``, ``suggest_set``, ``decide``, ``versus``, ``scores`` ...
"""

from predilect.decisions.designs import Design, design

__all__ = ["Design", "design"]
