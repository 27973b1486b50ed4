"""Pieces of charts: text of any script, marks, axes, colours."""

from __future__ import annotations

import re

import numpy as np
import pytest

from drawings import SVG, WILD, contrast, mixed, palettes, picture, words
from predilect.charts.svg import (
    _DARKEST,
    Point,
    Row,
    against,
    curves,
    fitted,
    grid,
    intervals,
    isolated,
    mark,
    name_of,
    scatter,
    style,
    ticks,
    width_of,
)

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


def test_rows_stand_where_their_numbers_say():
    root = picture(intervals(ROWS, "Title", "Told", "axis"))
    dots = list(root.iter(f"{SVG}circle"))
    x = np.array([float(dot.get("cx")) for dot in dots])
    assert len(dots) == len(ROWS)
    assert np.allclose(np.diff(x), np.diff(x)[0], atol=0.11)  # means are evenly spaced, and so are the dots
    whiskers = [one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") == "whisker"]
    ends = np.array([[float(v.split(" ")[0]) for v in d[1:].split("L")] for d in whiskers])
    per_unit = np.diff(x)[0]
    assert np.allclose(ends[:, 1] - ends[:, 0], 1.5 * per_unit, atol=0.3)
    assert np.allclose(x - ends[:, 0], per_unit, atol=0.3)


def test_every_chart_is_sound_whatever_the_names_and_holds_them_whole():
    names = [name_of(name) for name in WILD]
    n = len(names)
    shade = np.linspace(-1.0, 1.0, n * n).reshape(n, n)
    shade[0, 0] = np.nan
    said = [[f"{value:+.2f}" for value in row] for row in shade]
    points = [Point(k / n, -k / n, k % 6, name) for k, name in enumerate(names)]
    for drawn in (
        intervals(ROWS, names[0], names[1], names[2]),
        grid(names, names, shade, said, names[0], names[1], names[2]),
        scatter(points, names[:6], names[0], names[1], (names[2], names[3])),
        against([(0.1, 0.2, 0.1, 0.3, names[0])], names[0], names[1], (names[2], names[1])),
        curves({name: [(1.0, 0.5), (2.0, 0.5)] for name in names}, names[0], names[1], (names[2], names[1])),
    ):
        picture(drawn)
    root = picture(intervals(ROWS, "a", "b", "c"))
    titles = [one.text for one in root.iter(f"{SVG}title")]
    assert all(any(name in (title or "") for title in titles) for name in names)
    assert not [one for one in words(root) if len(one) > 60]


def test_a_chart_of_nothing_says_so():
    assert "Nothing to show." in words(picture(intervals([], "a", "b", "c")))
    assert "Nothing to show." in words(picture(grid([], [], np.zeros((0, 0)), [], "a", "b", "c")))
    assert "Nothing to show." in words(picture(curves({"a": []}, "a", "b", ("c", "d"))))
    picture(scatter([], [], "a", "b", ("c", "d")))
    picture(against([], "a", "b", ("c", "d")))


def test_curves_stand_where_their_numbers_say_and_names_not_on_each_other():
    found = {"one": [(1.0, 3.0), (4.0, 2.0)], "other": [(2.0, 2.5), (4.0, 2.01)], "third": [(4.0, 2.0)]}
    root = picture(curves(found, "a", "b", ("c", "d")))
    paths = [one.get("d", "") for one in root.iter(f"{SVG}path") if one.get("class") in ("whisker", "dash")]
    (x, y), (x_last, y_last) = (map(float, point.split(" ")) for point in paths[0][1:].split("L"))
    (x_other, y_other), _ = (map(float, point.split(" ")) for point in paths[1][1:].split("L"))
    assert abs((x_other - x) - (x_last - x) / 3.0) < 0.11
    assert abs((y_other - y) - (y_last - y) / 2.0) < 0.11
    at = [float(one.get("y", "")) for one in root.iter(f"{SVG}text") if one.text in found]
    assert min(np.diff(sorted(at))) >= 18.9
    assert "<title>other: 2.5 at 2</title>" in curves(found, "a", "b", ("c", "d"))


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
    svg = grid(["a", "b"], ["a", "b"], np.zeros((2, 2)), [["1", "2"]] * 2, "t", "u", axis)
    assert float(re.search(r'viewBox="0 0 (\S+) ', svg)[1]) > width_of(axis, 11.0)
