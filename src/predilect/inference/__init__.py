"""Mathematics without ids: likelihoods, Gaussians, one latent function, many people, factors.

May import ``_base`` and ``data``. Open first: ``people/expectation.py``, the E step of the default.
"""
