"""Puts ``tests/`` on the path, for ``tolerances``, ``simulate``, ``referees`` and ``contracts``.

Hypothesis draws few examples with the unit tests; ``make test-slow`` draws many (``--hypothesis-profile thorough``).
"""

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=15, deadline=None)
settings.register_profile("thorough", max_examples=60, deadline=None)
settings.load_profile("quick")

pytest.register_assert_rewrite("contracts", "referees")
