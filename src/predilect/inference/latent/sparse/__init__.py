"""Sparse variational inference for one latent function."""
