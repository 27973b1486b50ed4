"""Live polls: what is asked of whom, the log that keeps every answer, refits; ``web`` has HTTP and pages."""

try:
    import sqlalchemy as _  # noqa: F401
except ImportError as error:
    raise ImportError("predilect.live needs more libraries: pip install 'predilect[live]'") from error

from predilect.live.poll import Poll
from predilect.live.settings import Settings

__all__ = ["Poll", "Settings"]
