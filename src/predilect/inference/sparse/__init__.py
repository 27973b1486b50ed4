"""Inference for one latent function over many items, through inducing points: in batches, or all answers at once."""
