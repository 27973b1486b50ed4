"""Tests that every implementation of a concept inherits."""
