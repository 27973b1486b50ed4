"""One latent function and many answers: Laplace, expectation propagation, variational inference."""
