"""Answers, ids and features: everything between a file or data frame and the models.

>>> from predilect.data import Comparisons
>>> answers = Comparisons.from_frame(
...     {
...         "user": ["ann", "ann", "bob"],
...         "left": ["tea", "milk", "tea"],
...         "right": ["milk", "juice", "milk"],
...         "winner": ["tea", "tie", "milk"],
...     }
... )
>>> answers
Comparisons(2 users, 3 items, 3 rows, 3 answers)
>>> answers.items.ids
['juice', 'milk', 'tea']
"""

from typing import TYPE_CHECKING, Any

from predilect.data.checks import Finding, check
from predilect.data.comparisons import Comparisons
from predilect.data.features import ItemFeatures, PersonFeatures
from predilect.data.frames import build_frame
from predilect.data.intake import Intake
from predilect.data.splits import k_folds_answers
from predilect.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from predilect.data.read.readers import read as read
    from predilect.data.read.readers import read_frame as read_frame
    from predilect.data.read.readers import read_item_map as read_item_map

__all__ = [
    "Comparisons",
    "Finding",
    "Intake",
    "ItemFeatures",
    "PersonFeatures",
    "Vocabulary",
    "build_frame",
    "check",
    "k_folds_answers",
    "read",
    "read_frame",
    "read_item_map",
]


def __getattr__(name: str) -> Any:
    # Who fits to a frame needs no readers of files.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from predilect.data.read import readers

    return getattr(readers, name)


globals().pop("read", None)  # the folder of that name, for the function
