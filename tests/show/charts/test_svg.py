"""Pieces of charts: text of any script, marks, axes, colours."""

from __future__ import annotations

import re

import numpy as np
import pytest

from drawings import SVG, WILD, contrast, mixed, palettes, picture, words
from predilect.show.charts.chart import Chart, Field, Grid, Panels, Plane, Row, Series, Whiskers, isolated, name_of
from predilect.show.charts.pictures import learning
from predilect.show.charts.svg import _DARKEST, PHONE, WIDE, fitted, mark, style, svg, ticks, width_of

ROWS = [
    Row(name_of(name), k - 5.0, k - 6.0, k - 4.5, f"{name_of(name)}: {k}", f"tier {k // 4}")
    for k, name in enumerate(WILD)
]


def test_wide_letters_count_as_squares_and_marks_on_letters_as_nothing():
    assert width_of("中中", 10.0) == 20.0
    assert width_of("😀", 10.0) == 10.0
    assert width_of("e\u0301", 10.0) == width_of("e", 10.0)
    assert width_of("MMMM", 10.0) > width_of("mmmm", 10.0)


def test_a_name_from_right_to_left_leaves_the_order_of_its_label_alone():
    assert isolated("مرحبا") == "\u2068مرحبا\u2069"
    assert width_of(isolated("مرحبا")) == width_of("مرحبا")
    assert isolated("tea 中文") == "tea 中文"


@pytest.mark.parametrize("text", [*WILD, "", "x", "中" * 300])
def test_a_text_is_cut_to_the_room_there_is_and_not_more(text):
    text = name_of(text)
    short = fitted(text, 120.0)
    assert width_of(short) <= 120.0
    assert short == text or ("…" in short and width_of(text) > 120.0)
    if short != text:
        assert width_of(short) > 80.0  # the room is used


def test_a_name_of_nothing_that_can_be_seen_is_shown_by_its_escapes():
    assert name_of("\u200b") == "\\u200b"
    assert name_of("") == "(no name)"
    assert name_of(7) == "7"


@pytest.mark.parametrize(("low", "high"), [(-0.9, 1.1), (0.0, 1e-6), (3.0, 4e5), (-1e4, 0.0), (0.0, 0.0)])
def test_ticks_are_round_and_inside(low, high):
    found = ticks(low, high)
    assert len(found) <= 8
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)
    if high > low:
        assert len(found) >= 2
        step = found[1] - found[0]
        assert np.allclose(np.diff(found), step)
        assert round(step / 10 ** np.floor(np.log10(step)), 6) in (1.0, 2.0, 2.5, 5.0, 10.0)


@pytest.mark.parametrize("room", [WIDE, PHONE])
def test_rows_stand_where_their_numbers_say(room):
    drawn = svg(Chart(Whiskers(ROWS), "Title", "Told", ("axis", "")), room)
    assert float(re.search(r'viewBox="0 0 (\S+) ', drawn)[1]) <= room.label + room.group + room.marks + 40.0
    root = picture(drawn)
    dots = list(root.iter(f"{SVG}circle"))
    x = np.array([float(dot.get("cx")) for dot in dots])
    assert len(dots) == len(ROWS)
    assert np.allclose(np.diff(x), np.diff(x)[0], atol=0.11)  # means are evenly spaced, and so are the dots
    whiskers = [one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") == "whisker"]
    ends = np.array([[float(v.split(" ")[0]) for v in d[1:].split("L")] for d in whiskers])
    per_unit = np.diff(x)[0]
    assert np.allclose(ends[:, 1] - ends[:, 0], 1.5 * per_unit, atol=0.3)
    assert np.allclose(x - ends[:, 0], per_unit, atol=0.3)


@pytest.mark.parametrize("room", [WIDE, PHONE])
def test_every_chart_is_sound_whatever_the_names_and_holds_them_whole(room):
    names = [name_of(name) for name in WILD]
    n = len(names)
    shade = np.linspace(-1.0, 1.0, n * n).reshape(n, n)
    shade[0, 0] = np.nan
    said = [[f"{value:+.2f}" for value in row] for row in shade]
    at = [k / n for k in range(n)]
    series = [Series(name, at, at, names, at, at, line=k % 2 == 0) for k, name in enumerate(names)]
    for data in (
        Whiskers(ROWS),
        Grid(names, names, shade, said),
        Plane(series, (0.0, 1.0), (0.0, 1.0)),
        Plane(series, (-1.0, 1.0), (-1.0, 1.0), square=True),
        Plane(series, (0.0, 1.0), (0.0, 1.0), square=True, shares=True),
        Panels([[Chart(Plane(series, (0.0, 1.0), (0.0, 1.0)), name, name, (name, name)) for name in names[:3]]]),
    ):
        picture(svg(Chart(data, names[0], names[1], (names[2], names[3])), room))
    root = picture(svg(Chart(Whiskers(ROWS), "a", "b", ("c", "")), room))
    titles = [one.text for one in root.iter(f"{SVG}title")]
    assert all(any(name in (title or "") for title in titles) for name in names)
    assert not [one for one in words(root) if len(one) > 60]


def test_a_chart_of_nothing_says_so():
    for data in (Whiskers([]), Grid([], [], np.zeros((0, 0)), []), Plane([], (0.0, 1.0), (0.0, 1.0)),
                 Plane([Series("a", [], [], [])], (0.0, 1.0), (0.0, 1.0), square=True)):  # fmt: skip
        assert "Nothing to show." in words(picture(svg(Chart(data, "a", "b"))))


def test_curves_stand_where_their_numbers_say_and_names_not_on_each_other():
    found = {"one": [(1.0, 3.0), (4.0, 2.0)], "other": [(2.0, 2.5), (4.0, 2.01)], "third": [(4.0, 2.0)]}
    drawn = svg(learning(found))
    root = picture(drawn)
    paths = [one.get("d", "") for one in root.iter(f"{SVG}path") if one.get("class") in ("whisker", "dash")]
    (x, y), (x_last, y_last) = (map(float, point.split(" ")) for point in paths[0][1:].split("L"))
    (x_other, y_other), _ = (map(float, point.split(" ")) for point in paths[1][1:].split("L"))
    assert abs((x_other - x) - (x_last - x) / 3.0) < 0.11
    assert abs((y_other - y) - (y_last - y) / 2.0) < 0.11
    at = [float(one.get("y", "")) for one in root.iter(f"{SVG}text") if one.text in found]
    assert len(at) == 3
    assert min(np.diff(sorted(at))) >= 18.9
    assert "<title>other: 2.5 at 2</title>" in drawn


def test_shares_and_their_intervals_stand_where_they_say():
    bins = Series("", [0.25, 0.5], [0.5, 0.75], ["a", "b"], [0.25, 0.5], [0.75, 1.0])
    plane = Plane([bins], (0.0, 1.0), (0.0, 1.0), square=True, shares=True)
    root = picture(svg(Chart(plane, "a", "b")))
    (x, y), (x_other, y_other) = ((float(one.get("cx")), float(one.get("cy"))) for one in root.iter(f"{SVG}circle"))
    assert abs((x_other - x) + (y_other - y)) < 0.11  # one unit on both axes
    low, high = next(one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") == "whisker")[1:].split("L")
    assert abs(float(low.split(" ")[1]) - y - (x_other - x)) < 0.11
    assert abs(y - float(high.split(" ")[1]) - (x_other - x)) < 0.11


def test_a_field_is_as_dark_as_its_values_where_they_stand():
    field = Field(np.arange(3.0), np.arange(2.0), np.array([[0.0, 1.0, 1.0], [0.5, 0.0, 0.0]]), 0.0, 1.0, "shade")
    plane = Plane([], (0.0, 2.0), (0.0, 1.0), field=field, names=({0.0: "none", 1.0: "some", 2.0: "all"}, None))
    root = picture(svg(Chart(plane, "a", "b")))
    assert {"none", "some", "all"} <= set(words(root))
    cells = {one.get("class"): one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") in ("cell", "minus")}
    # One path of what is above the middle: half a cell and a whole one, of the lower row, which is drawn below.
    assert re.fullmatch(r"M(\S+) (\S+)h(\S+)v(\S+)h(\S+)z", cells["cell"])
    x, y, wide, tall, _ = map(float, re.findall(r"-?[\d.]+", cells["cell"]))
    left, bottom = (float(next(one for one in root.iter(f"{SVG}text") if one.text == "none").get(k)) for k in "xy")
    assert abs(x - left - 260.0 / 4) < 0.11
    assert abs(wide - 3 * 260.0 / 4) < 0.11
    assert abs(y - (bottom - 15.0)) < 0.11
    assert abs(tall + 110.0) < 0.11
    assert cells["minus"].count("M") == 2


def test_a_label_is_not_cut_while_there_is_room_beside_it():
    name = "Mother and child centre, building and holding"
    rows = [Row(name, 0.0, -1.0, 1.0, name)]
    for data in (Whiskers(rows), Grid([name], ["1"], np.ones((1, 1)), [["1"]]),
                 Plane([Series(name, [0.0], [0.0], [""])], (-1.0, 1.0), (-1.0, 1.0), square=True)):  # fmt: skip
        assert name in words(picture(svg(Chart(data, "a", "b"))))


def test_groups_differ_by_shape_or_fill_and_not_by_colour_alone():
    drawn = [mark(0.0, 0.0, group) for group in range(6)]
    sheet = style()
    looks = set()
    for one in drawn:
        kind = one.split('class="')[1].split('"')[0]
        hollow = f".chart .{kind}{{fill:var(--paper)" in sheet
        looks.add((one.split(' class="')[0], hollow))
    assert len(looks) == 6


def test_text_can_be_read_in_light_in_dark_and_in_print():
    assert len(palettes(style())) == 3
    for colours in palettes(style()):
        for text in ("ink", "soft", "mark", "other"):
            for ground in ("paper", "band"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground, colours)
        for cell in ("mark", "other"):  # numbers in the darkest cells
            assert contrast(colours["ink"], mixed(colours[cell], colours["paper"], _DARKEST)) >= 4.5


def test_the_words_of_a_narrow_table_are_not_cut():
    axis = "how likely the row is preferred to the column, %"
    drawn = svg(Chart(Grid(["a", "b"], ["a", "b"], np.zeros((2, 2)), [["1", "2"]] * 2), "t", "u", (axis, "")))
    assert float(re.search(r'viewBox="0 0 (\S+) ', drawn)[1]) > width_of(axis, 11.0)
