"""Sparse variational inference for one latent function, in batches or with all answers at once."""
