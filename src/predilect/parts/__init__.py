"""Answers in partitions: more than memory holds, by person, and what is computed over them by a pool of workers."""

from predilect.parts.manifest import Parts
from predilect.parts.partition import partition

__all__ = ["Parts", "partition"]
