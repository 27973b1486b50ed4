"""A notebook is run: what it shows of a model, and of an error."""

from __future__ import annotations

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install -e .[outside]")
nbformat = pytest.importorskip("nbformat", reason="needs nbclient: pip install -e .[outside]")
pytest.importorskip("ipykernel", reason="needs a kernel: pip install -e .[outside]")
pytestmark = pytest.mark.slow

CELLS = [
    "import predilect\n"
    "answers = {'user': ['ann', 'bob', 'cas'], 'left': ['tea', 'milk', 'tea'], 'right': ['milk', 'tea', 'juice'],\n"
    "           'winner': ['tea', 'tea', 'juice']}\n"
    "model = predilect.Population().fit(answers)",
    "model",
    "model.verdict()",
    "model.suggest('ann')",
    "model.plot.board().figure",
    "predilect.Comparisons.from_frame(answers).reading",
]


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages, about each other
def test_a_notebook_shows_the_board_the_verdict_and_a_picture():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    _, model, verdict, question, picture, reading = (cell["outputs"] for cell in notebook["cells"])
    board = model[-1]["data"]["text/html"]
    assert "<svg" in board
    assert all(name in board for name in ("tea", "milk", "juice"))
    assert "text/html" in verdict[-1]["data"]
    assert "score" in question[-1]["data"]["text/plain"]
    assert "image/png" in picture[-1]["data"]
    assert "Read: pairs" in "".join(output["data"]["text/plain"] for output in reading)
