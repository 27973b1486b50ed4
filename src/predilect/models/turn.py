"""Sharing of a model by threads: one at a time changes it, and a reader takes a copy of its attributes first.

A change makes new values, never alters old ones, and replaces all of them in one step, ``vars(model).update(...)``. So
``copy.copy(model)`` is the model as it was before a change or as it is after, and readers wait for nobody.
"""

from __future__ import annotations

import threading


class Turn:
    """A lock for those who change a model; what is pickled or copied deep gets another one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()
