"""The systems of the source papers and what they compare with; the core does without.

May import ``models`` and all below, and no other model. Open first: ``gaspk/model.py``; ``baselines`` is small.
"""
