"""Puts ``tests/`` on the path, so that tests can import ``tolerances``, ``simulate`` and ``referees``."""
