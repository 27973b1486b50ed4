"""Preference learning: answers to "which of these two?" become rankings, with honest uncertainty.

>>> import predilect
>>> answers = {
...     "user": ["ann", "ann", "bob", "bob", "cas", "cas"],
...     "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
...     "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
...     "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
... }
>>> model = predilect.Population().fit(answers)
>>> model.rank()["item"].to_list()
['tea', 'milk', 'juice']
"""

from predilect.data import Comparisons, ItemFeatures, PersonFeatures, check, read_comparisons
from predilect.errors import ConvergenceError, ConvergenceWarning, DataError, DataWarning, PredilectError
from predilect.models.population import Population

__version__ = "0.1.0"

__all__ = [
    "Comparisons",
    "ConvergenceError",
    "ConvergenceWarning",
    "DataError",
    "DataWarning",
    "ItemFeatures",
    "PersonFeatures",
    "Population",
    "PredilectError",
    "__version__",
    "check",
    "read_comparisons",
]
