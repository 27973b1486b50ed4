"""Gaussian sites, and the posteriors that they and the prior make."""
