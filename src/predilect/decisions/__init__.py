"""Decisions from a posterior: rankings, tiers, the probability of being best, the next question; act, ask or defer."""

from predilect.decisions.acting import Decision, decide
from predilect.decisions.queries import STRATEGIES, suggest, suggest_each
from predilect.decisions.scores import scores
from predilect.decisions.sets import suggest_set
from predilect.decisions.versus import versus

__all__ = ["STRATEGIES", "Decision", "decide", "scores", "suggest", "suggest_each", "suggest_set", "versus"]
