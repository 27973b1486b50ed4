"""Likelihoods of one answer, in log space, as scalar functions that arrays and compiled loops share."""
