"""Puts ``tests/`` on the path, for ``tolerances``, ``simulate``, ``referees`` and ``contracts``."""

import pytest

pytest.register_assert_rewrite("contracts", "referees")
