"""Named tolerances of the whole suite (CONTRIBUTING.md). Never loosened to make a test pass."""

from __future__ import annotations

EXACT = 1e-10  # the same algebra by another route: only rounding differs
CONVERGED = 1e-8  # two iterations that were both run until their sites stood still
ITERATIVE = 1e-6  # an iteration against an independent optimiser, or against finite differences
STATISTICAL = 4.0  # standard errors, with a fixed seed
