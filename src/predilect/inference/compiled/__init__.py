"""Compiled loops of the inference."""
