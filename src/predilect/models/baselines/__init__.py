"""Baselines of the papers: separate and pooled Gaussian processes, and three models between the two.

>>> from predilect.models.baselines import HierarchicalGP
>>> answers = {
...     "user": ["ann", "ann", "bob", "bob", "cas", "cas"],
...     "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
...     "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
...     "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
... }
>>> HierarchicalGP().fit(answers).rank()["item"].to_list()
['tea', 'milk', 'juice']
"""

from predilect.models.baselines.bonilla import BonillaGP
from predilect.models.baselines.classifier import GPClassifier
from predilect.models.baselines.hierarchical import HierarchicalGP
from predilect.models.baselines.khan import GPVU
from predilect.models.baselines.single_user import SingleUserGP

__all__ = ["GPVU", "BonillaGP", "GPClassifier", "HierarchicalGP", "SingleUserGP"]
