"""A small crowd in files, and the command run on them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cli.running import ITEMS, QUICK, run


@pytest.fixture(autouse=True)
def no_pictures(request, monkeypatch):
    """Pictures take a fifth of the time of these tests: they are drawn where a test, or its fixture, asks for them."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr("predilect.show.report.folder.can_plot", lambda: False)


@pytest.fixture
def pictures():
    """Asked for by tests of what has pictures."""


@pytest.fixture(scope="session")
def votes_frame():
    """240 answers of 12 people on 5 items, with ties and two languages; one row has no language.

    The people differ so much that the verdict favours personal rankings.
    """
    rng = np.random.default_rng(5)
    left = rng.integers(5, size=240)
    right = (left + rng.integers(1, 5, size=240)) % 5
    user = rng.integers(12, size=240)
    taste = np.linspace(1.5, -1.5, 5) + 4.0 * rng.standard_normal((12, 5))
    z = taste[user, left] - taste[user, right] + rng.standard_normal(240)
    names = np.array(ITEMS, dtype=object)
    language = np.where(rng.random(240) < 0.4, "de", "en").astype(object)
    language[7] = None
    return pl.DataFrame(
        {
            "judge": [f"p{u:02d}" for u in user],
            "model_a": names[left].tolist(),
            "model_b": names[right].tolist(),
            "winner": np.where(np.abs(z) < 0.4, "tie", np.where(z > 0, "model_a", "model_b")).tolist(),
            "language": language.tolist(),
        }
    )


@pytest.fixture
def votes(tmp_path, votes_frame):
    path = tmp_path / "votes.csv"
    votes_frame.write_csv(path)
    return path


@pytest.fixture
def few_votes(tmp_path, votes_frame):
    """So few that there is no prior to search for: where a test is not about numbers."""
    path = tmp_path / "votes.csv"
    votes_frame.head(20).write_csv(path)
    return path


@pytest.fixture(scope="session")
def results(tmp_path_factory, votes_frame):
    """What ``rank --out`` wrote, asked for personal rankings and no verdict; not to be changed."""
    folder = tmp_path_factory.mktemp("results")
    votes_frame.write_csv(folder / "votes.csv")
    ran = run("rank", folder / "votes.csv", *QUICK, "--out", folder / "out")
    assert ran.exit_code == 0, ran.output
    return folder / "out"
