"""Inference for the collaborative Gaussian process, f_u = Σ_d w_ud h_d, with shared functions h_d."""
