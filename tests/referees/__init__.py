"""Slow, independent oracles, written from the formulas of the specification and never from the code."""
