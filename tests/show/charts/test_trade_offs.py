"""Pictures of a fitted ``GaSPK``: that they show the numbers they claim to."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import GaSPK
from predilect.errors import DataError
from predilect.show.charts import trade_offs as pictures
from predilect.show.charts import trade_offs as plot_axes
from predilect.show.charts.trade_offs import plot_characteristics, plot_indifference
from simulate_trade_offs import linear_choices
from tolerances import EXACT

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def model():
    answers, items = linear_choices(n_users=12)
    settings = {"n_components": 2, "variance": 10.0, "n_restarts": 1, "n_jobs": 1, "spread": 1.3}
    return GaSPK(**settings, units={"price": "EUR"}, max_iter=300).fit(answers, items=items)


def panels(figure):
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


@pytest.mark.slow
def test_maps_hold_evaluations_and_say_so(model):
    figure = plot_characteristics(model)
    shown = panels(figure)
    assert len(shown) == 2 * 3
    assert [axes.get_title(loc="left") for axes in shown[:3]] == list(pictures._PANELS)
    labels = {shown[3].get_xlabel(), shown[2].get_ylabel()}
    assert labels == {"change of price (EUR)", "change of comfort"}
    first = int(model.posterior_.gamma.mean(axis=0).argmax())
    assert f"characteristic {first + 1}" in shown[0].get_ylabel()
    mesh = shown[0].collections[0]
    x, y = mesh.get_coordinates()[7, 30]
    columns = {"change of price (EUR)": "price", "change of comfort": "comfort"}
    t = model.trade_offs_.from_units({columns[shown[3].get_xlabel()]: [x], columns[shown[2].get_ylabel()]: [y]})
    found = model.posterior_.at(t)
    values = [axes.collections[0].get_array().reshape(41, 41)[7, 30] for axes in shown[:3]]
    mean, sd = found.mean[0, first], np.sqrt(found.covariance[0, first, first])
    assert values[0] == pytest.approx(mean, abs=EXACT)
    assert values[1] == pytest.approx(sd, abs=EXACT)
    assert shown[0].collections[0].get_clim() == shown[3].collections[0].get_clim()  # one scale for all rows
    dots = shown[1].collections[1].get_offsets()
    assert len(dots) == 2 * len(model._choices.points)


def test_categories_and_single_attributes(model):
    figure = plot_characteristics(model, "price", "fuel", which=[2])
    shown = panels(figure)
    assert len(shown) == 3
    assert [tick.get_text() for tick in shown[0].get_yticklabels()] == ["oil", "same", "gas"]
    lines = panels(plot_characteristics(model, "comfort", ""))
    assert len(lines) == 6
    comfort, value = lines[2].lines[0].get_data()
    first = int(model.posterior_.gamma.mean(axis=0).argmax())
    found = model.posterior_.at(model.trade_offs_.from_units({"comfort": comfort}))
    assert np.all(np.diff(value) > 0.0)
    np.testing.assert_allclose(lines[0].lines[0].get_ydata(), found.mean[:, first], atol=EXACT)


@pytest.mark.slow
def test_files_have_the_same_bytes(model, tmp_path):
    for name in ("one.svg", "two.svg"):
        plot_characteristics(model, path=tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    plot_indifference(model, "comfort", "price", "p00", path=str(tmp_path / "curve.png"))
    assert (tmp_path / "curve.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_curve_is_that_of_the_table(model):
    panel = panels(plot_indifference(model, "comfort", "price", "p02", other={"fuel=gas": 1}))[0]
    comfort, price = panel.lines[-1].get_data()
    table = model.indifference("comfort", "price", comfort, "p02", other={"fuel=gas": 1})
    shown = np.isfinite(price)
    assert shown.any()
    np.testing.assert_allclose(price[shown], table["price (EUR)"].to_numpy()[shown], atol=EXACT)
    answers = model.answers_
    mine = answers.user == 2
    assert len(panel.collections[-2].get_offsets()) == int((answers.outcome[mine] == 1).sum())
    assert panel.get_legend() is not None
    average = panels(plot_indifference(model, "comfort", "price"))[0]
    assert average.get_legend() is None
    assert average.get_title(loc="left").startswith("The average of the people")


def test_errors(model, monkeypatch):
    with pytest.raises(DataError, match="characteristics 1 to 2"):
        plot_characteristics(model, which=[3])
    with pytest.raises(DataError, match="name two"):
        plot_characteristics(model, "price", "price")
    with pytest.raises(DataError, match="is a category"):
        plot_indifference(model, "fuel", "price")
    monkeypatch.setattr(plot_axes, "can_plot", lambda: False)
    with pytest.raises(ImportError, match=r"predilect\[plots\]"):
        plot_characteristics(model)
