"""Decisions from a posterior: rankings, tiers, the probability of being best, and the next question.

>>> import predilect
>>> from predilect.decisions import suggest
>>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
>>> model = predilect.Population().fit(answers, [1, 1, -1])
>>> suggest(model, "ann")["right"][0]
'milk'
"""

from predilect.decisions.queries import STRATEGIES, suggest, suggest_each

__all__ = ["STRATEGIES", "suggest", "suggest_each"]
