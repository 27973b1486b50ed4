"""The valuable vector machine: a model reduced to the items that matter, and the criteria by which they are kept."""

from predilect.papers.compression.criteria import IVM, UCB, VOI, InformativeAnswers, Pairs

__all__ = ["IVM", "UCB", "VOI", "InformativeAnswers", "Pairs"]
