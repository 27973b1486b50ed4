"""Peers: other packages, and simple models that are hard to beat, tuned with care on training answers only."""
