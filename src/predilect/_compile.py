"""How Predilect compiles its few numerical loops: Numba, cached on disk, and announced when it takes long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba

__all__ = ["announced", "inner_kernel", "kernel", "ufunc"]

_ANNOUNCE_AFTER_SECONDS = 0.7


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a scalar function or a loop with ``numba.njit``, without the GIL and cached on disk.

    Where neither the installation nor the user's cache folder can be written (a read-only container, say), the function
    is compiled anew by each process instead of failing. The wrapper for C, which nothing calls, is left out: each takes
    time to compile.
    """
    return _njit(function, no_cfunc_wrapper=True)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that only other kernels call: it does without the wrapper for Python, which is slow to compile."""
    return _njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _njit(function: Callable[..., Any], **options: Any) -> Any:
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    except RuntimeError:  # Numba found no folder that it may write its cache to
        return numba.njit(nogil=True, error_model="numpy", **options)(function)


def ufunc(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Turn a scalar function into a NumPy universal function, so that arrays and loops share one formula."""

    def decorate(function: Callable[..., Any]) -> Any:
        vectorize: Any = numba.vectorize  # which has no types
        try:
            return vectorize([signature], cache=True, nopython=True)(function)
        except RuntimeError:
            return vectorize([signature], nopython=True)(function)

    return decorate


@contextmanager
def announced() -> Iterator[None]:
    """Say on the terminal that loops are being compiled, if the block takes long enough to be noticed."""

    def say() -> None:
        # Without any logging set up, Python prints a warning to the terminal, which is what is wanted here.
        logging.getLogger("predilect").warning("predilect: compiling its numerical loops, once per installation ...")

    timer = threading.Timer(_ANNOUNCE_AFTER_SECONDS, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
