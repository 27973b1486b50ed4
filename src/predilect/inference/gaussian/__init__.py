"""Linear algebra of one Gaussian: factorisations, kernels, sites, conditioning, projection."""
