"""Covariances: kernels, conjugate gradients, and dense factorisations."""
