"""Posterior of the characteristics."""
