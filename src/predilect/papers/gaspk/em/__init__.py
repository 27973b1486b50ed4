"""Alternating estimation of characteristics and weights."""
