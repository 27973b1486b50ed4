"""Answers in partitions: more than memory holds, by person, and what is computed over them by a pool of workers."""

from predilect.parts.dealing import partition
from predilect.parts.manifest import Parts

__all__ = ["Parts", "partition"]
