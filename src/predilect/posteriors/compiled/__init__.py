"""Compiled loops over the people of a posterior."""
