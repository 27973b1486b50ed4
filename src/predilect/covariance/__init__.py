"""Covariances: kernels, and dense factorisations."""
