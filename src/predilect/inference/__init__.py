"""Inference: the loops that fit a model, and the choice of its hyper-parameters."""
