"""Mixed logit."""

from predilect.choice.mixed_logit.model import MixedLogit

__all__ = ["MixedLogit"]
