"""The gradient of the population model's objective against differences of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from predilect.inference.gaussian.design import Sites
from predilect.models.population.maximisation import Search, _Coordinates


def assert_slopes(people: Any, prior: Any, delta: float, places: Callable[[_Coordinates], Iterable[int]]) -> None:
    """The gradient that the objective says, along the coordinates at ``places``."""
    search = Search(people, prior, None, None, 5, True)
    search.sites = Sites.flat(people.n_rows)
    search.site_tolerance = 1e-13
    point, current = search.closed_form(search.first_point(delta), 2)
    coordinates = _Coordinates(search, point, current)
    x = 0.3 * np.random.default_rng(4).standard_normal(len(coordinates.reach))

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        for _ in range(60):
            found = coordinates.objective(x)
        return found

    gradient = objective(x)[1]
    for direction in np.eye(len(x))[list(places(coordinates))]:
        up, down = (objective(x + sign * 1e-4 * direction)[0] for sign in (1, -1))
        assert abs((up - down) / 2e-4 - gradient @ direction) < 1e-5 * (1.0 + abs(gradient @ direction))
