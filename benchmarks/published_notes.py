"""What is to be said below the tables of ``results/published.md``: repetitions, reasons and findings."""

from __future__ import annotations

__all__ = ["FIGURES", "NOTES", "REPETITIONS", "WHY_NOT"]

# Repetitions behind the published numbers; of the original splits there are no more.
REPETITIONS = {
    "sushi-a-small": 25,
    "sushi-a": 25,
    "sushi-a15": 25,
    "sushi-b": 25,
    "sushi-original-a-small": 5,
    "sushi-original-a": 5,
    "sushi-original-a15": 5,
    "sushi-original-b": 2,
    "ukp-topics": 32,
}

# (Task, published method): why there is no run of ours.
WHY_NOT: dict[tuple[str, str], str] = {}

# Task, or task and further test: sentences below its table.
NOTES: dict[str, list[str]] = {}

FIGURES: list[str] = []
