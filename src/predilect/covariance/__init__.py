"""Covariances: kernels, structured operators, conjugate gradients, and dense factorisations."""
