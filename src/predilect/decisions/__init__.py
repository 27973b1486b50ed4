"""Decisions from a posterior: rankings, tiers, the probability of being best, and the next question."""

from predilect.decisions.queries import STRATEGIES, suggest, suggest_each

__all__ = ["STRATEGIES", "suggest", "suggest_each"]
