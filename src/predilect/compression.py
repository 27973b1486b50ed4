"""Criteria by which ``model.compress`` keeps items, with their settings: those of the valuable vector machine."""

from predilect.papers.compression import IVM, UCB, VOI, InformativeAnswers, Pairs

__all__ = ["IVM", "UCB", "VOI", "InformativeAnswers", "Pairs"]
