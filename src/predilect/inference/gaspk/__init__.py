"""GaSPK: people's evaluations of trade-offs as mixtures of a few Gaussian processes."""
