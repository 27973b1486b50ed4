"""Data sets x models x seeds, measured: ``python -m benchmarks --help`` from the root of the repository."""
