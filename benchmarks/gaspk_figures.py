"""Figures of GaSPK: learning curves, training time on random planes, and pictures of ``docs/papers/gaspk.md``.

python -m benchmarks.gaspk_figures              # the pictures, of simulated people: about a minute
python -m benchmarks.gaspk_figures --plane DIR  # Fig. 4, from Sushi, of one person, and so not part of the project
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import predilect
from benchmarks.gaspk_runs import LABELS, MEASURES, Point, curve, grouped, point_of, tasks_of
from benchmarks.parts import find_loader
from benchmarks.simulation_figure import save
from benchmarks.store import Record, Store
from benchmarks.task import Task
from predilect.show.charts.trade_offs import plot_characteristics, plot_indifference

__all__ = ["SUSHI_ATTRIBUTES", "curves_figure", "phone_plans", "pictures", "planes_figure", "principal_plane"]

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
N_PEOPLE, N_CHOICES = 80, 30
# The four, probably, of the published trade-offs between sushi.
SUSHI_ATTRIBUTES = ("oiliness", "freq_eaten", "price", "freq_sold")
_PRICE = "price (EUR)"
_DOTS = 80  # an inch


def curves_figure(store: Store, path: Path) -> None:
    """Accuracy, log loss and seconds against the training share, a column a task."""
    from matplotlib.figure import Figure

    tasks = tasks_of(store)
    if not tasks:
        return
    drawing = Figure(figsize=(3.6 * len(tasks), 8.2), layout="constrained")
    grid = drawing.subplots(len(MEASURES), len(tasks), squeeze=False)
    for column, task in enumerate(tasks):
        for row, (heading, (section, measure, _)) in enumerate(MEASURES.items()):
            axes = grid[row, column]
            for k, (model, label) in enumerate(LABELS.items()):
                found = curve(store, task, model)
                points = [(share, point_of([r[section][measure] for r in runs])) for share, runs in found.items()]
                line = [(share, p.mean, 0.0 if math.isnan(p.half) else p.half) for share, p in points if p]
                if line:
                    x, y, half = np.array(line).T
                    # Beside each other, so that intervals can be told apart.
                    axes.errorbar(x + 0.5 * (k - 2.5), y, yerr=half, label=label, color=f"C{k}", marker="os*^vD"[k % 6],
                                  markersize=4, linewidth=1.3, capsize=2)  # fmt: skip
            if row == 2:
                axes.set(yscale="log", xlabel="answers for training, %")
            axes.set(title=task if row == 0 else "", ylabel=heading if column == 0 else "", xlim=(4, 86))
            axes.grid(alpha=0.3)
    drawn = {label: line for axes in grid[0] for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    shown = [label for label in LABELS.values() if label in drawn]
    drawing.legend([drawn[label] for label in shown], shown, loc="outside lower center", ncols=3, fontsize=8)
    save(drawing, path)


def planes_figure(scaling: Sequence[Record], path: Path) -> None:
    """Training time against levels, a line for each number of dimensions, and against people."""
    from matplotlib.figure import Figure

    found = grouped(scaling, "planes", lambda r: (r["own"], r["dimensions"], r["levels"], r["people"]))
    if not found:
        return
    means = {key: point_of([r["fit_cpu_s"] for r in runs]) for key, runs in found.items()}
    drawing = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = drawing.subplots(1, 2)

    def line(axes: Any, points: list[tuple[int, Point | None]], label: str, colour: str, style: str) -> None:
        drawn = sorted((x, p.mean, 0.0 if math.isnan(p.half) else p.half) for x, p in points if p)
        if drawn:
            x, y, half = np.array(drawn).T
            axes.errorbar(x, y, yerr=half, label=label, color=colour, linestyle=style, marker="o", markersize=4,
                          capsize=2)  # fmt: skip

    for k, d in enumerate(sorted({key[1] for key in means})):
        for own, style in ((False, "-"), (True, "--")):
            line(left, [(key[2], p) for key, p in means.items() if key[:2] == (own, d) and key[3] == 50],
                 f"{d} dimensions{', own instances' if own else ''}", f"C{k}", style)  # fmt: skip
    for own, style in ((False, "-"), (True, "--")):
        line(right, [(key[3], p) for key, p in means.items() if key[0] == own and key[1:3] == (8, 5)],
             "8 dimensions, 5 levels", "C1", style)  # fmt: skip
    left.set(
        xlabel="levels of a continuous dimension", ylabel="CPU seconds of the fit", title="50 people", yscale="log"
    )
    right.set(xlabel="people (105 pairs each)", title="8 dimensions, 5 levels")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    save(drawing, path)


def phone_plans(seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Choices of simulated people between phone plans, and the plans: the data of the pictures.

    Half of the people mind the price, half want data; a contract is disliked by all; of colour and shops nobody takes
    notice.
    """
    rng = np.random.default_rng(seed)
    n = 40
    plans = pl.DataFrame({
        "item": np.arange(n), "price": 5.0 * rng.integers(2, 9, n), "data": rng.choice([2.0, 5, 10, 20, 40], n),
        "contract": rng.integers(0, 2, n), "colour": rng.integers(1, 5, n), "shops": rng.integers(10, 60, n),
    })  # fmt: skip
    price, data, contract = (plans[name].to_numpy() for name in ("price", "data", "contract"))
    thrifty = np.arange(N_PEOPLE) < N_PEOPLE // 2
    per_euro, per_gigabyte = np.where(thrifty, 0.22, 0.06), np.where(thrifty, 0.03, 0.12)
    utility = -np.outer(per_euro, price) + np.outer(per_gigabyte, data) - 0.7 * contract
    user = np.repeat(np.arange(N_PEOPLE), N_CHOICES)
    left = rng.integers(0, n, len(user))
    right = (left + rng.integers(1, n, len(user))) % n
    won = utility[user, left] - utility[user, right] + rng.standard_normal(len(user)) > 0.0
    choices = {"user": user, "left": left, "right": right, "winner": np.where(won, left, right)}
    return pl.DataFrame(choices), plans


def pictures(folder: Path) -> None:
    """Draw what a fitted model says: the map of characteristics, indifference, willingness, segments, attributes."""
    from matplotlib.figure import Figure

    choices, plans = phone_plans()
    used = ["price", "data", "contract"]
    model = predilect.GaSPK(attributes=used, n_components=2, units={"price": "EUR", "data": "GB"})
    model.fit(choices, items=plans)
    for name, drawn in {
        "gaspk-characteristics.png": plot_characteristics(model, "price", "data"),
        "gaspk-indifference.png": plot_indifference(model, "data", "price"),
    }.items():
        drawn.set_dpi(_DOTS)
        save(drawn, folder / name)

    drawing = Figure(figsize=(9.6, 3.2), layout="constrained", dpi=_DOTS)
    left, middle, right = drawing.subplots(1, 3)
    paid = pl.DataFrame(model.willingness("price", "data", 5.0, user="all")).sort(_PRICE)
    amount, lower, upper = (paid[name].to_numpy() for name in (_PRICE, "lower", "upper"))
    low, high = min(0.0, float(amount.min())) - 1.0, 30.0  # beyond the prices that were compared nothing is known
    left.vlines(range(len(amount)), lower.clip(low, high), upper.clip(low, high), color="0.8", linewidth=1.2)
    left.plot(range(len(amount)), amount, "C0o", markersize=2.5)
    left.set(title="pays for 5 GB more, EUR", xlabel="people, by what they pay; 95 % intervals", ylim=(low, high))
    weights = model.segments().select(pl.selectors.starts_with("characteristic")).to_numpy()
    bottom = np.zeros(len(weights))
    for c in range(weights.shape[1]):
        middle.bar(np.arange(len(weights)), weights[:, c], 1.0, bottom, color=f"C{c}", label=f"characteristic {c + 1}")
        bottom += weights[:, c]
    middle.set(title="segments: weights", xlabel=f"people; the first {N_PEOPLE // 2} mind the price")
    middle.legend(fontsize=7, loc="lower right")

    def cheap(chosen: list[str]) -> predilect.GaSPK:
        return predilect.GaSPK(attributes=chosen, n_components=1, variance=10.0)

    found = predilect.evaluation.select_attributes(cheap, choices, plans)
    path = found.path
    error = [1.96 * step.accuracy_error for step in path]
    right.errorbar(range(len(path)), [step.accuracy for step in path], error, fmt="C0o-", capsize=2, markersize=4)
    right.axvline(len(found.attributes) - 1, color="0.7", linestyle="--", linewidth=1.0)
    right.set_xticks(range(len(path)), [f"+ {step.attribute}" for step in path], rotation=30)
    right.set(title="accuracy as attributes are added")
    for axes in (left, middle, right):
        axes.title.set_fontsize(9.5)
        axes.xaxis.label.set_fontsize(8.5)
        axes.tick_params(labelsize=8)
    save(drawing, folder / "gaspk-people.png")


def principal_plane(task: Task, attributes: Sequence[str], path: Path, cells: int = 61) -> tuple[float, float]:
    """Fig. 4: utility of trade-offs on the plane of their first two principal components, of whoever answered most.

    Attributes are in standard deviations; off the plane a trade-off is taken as 0. Returns the share of the variance of
    trade-offs that the plane holds, and that of the person's answers that the fit agrees with.
    """
    from matplotlib.figure import Figure

    assert task.items is not None
    values = task.items.select(attributes).to_numpy().astype(float)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    items = pl.DataFrame({"item": task.items["item"], **dict(zip(attributes, values.T, strict=True))})
    model = predilect.GaSPK(preset="paper", n_components=10, attributes=list(attributes))
    model.fit(task.train, items=items)
    answers, place = pl.DataFrame(task.train.to_frame()), dict(zip(items["item"].to_list(), values, strict=True))
    trade_off = np.array([place[a] - place[b] for a, b in zip(answers["left"], answers["right"], strict=True)])
    variances, axes = np.linalg.eigh(trade_off.T @ trade_off)
    plane = axes[:, :-3:-1]
    user, n = answers["user"].value_counts(sort=True).row(0)
    own = (answers["user"] == user).to_numpy()
    seen = np.vstack([trade_off[own], -trade_off[own]]) @ plane
    won = np.concatenate([(answers["outcome"] == sign).to_numpy()[own] for sign in (1, -1)])
    reach = 1.1 * np.abs(seen).max()
    line = np.linspace(-reach, reach, cells)
    of_cells = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2) @ plane.T
    ends = pl.DataFrame(np.vstack([of_cells / 2, -of_cells / 2]), schema=list(attributes))
    ends = ends.with_columns(item=pl.Series(np.arange(len(ends)) + items["item"].max() + 1))
    pairs = pl.DataFrame({
        "user": [user] * len(of_cells), "left": ends["item"][: len(of_cells)], "right": ends["item"][len(of_cells) :],
    })  # fmt: skip
    utility = model.predict_margin(pairs, items=ends)[0]
    agrees = (model.predict_margin(answers.filter(pl.Series(own)))[0] > 0.0) == won[: own.sum()]
    drawing = Figure(figsize=(4.8, 4.2), layout="constrained")
    shown = drawing.subplots()
    mesh = shown.pcolormesh(line, line, utility.reshape(cells, cells), cmap="RdBu", shading="nearest")
    mesh.set_clim(-np.abs(utility).max(), np.abs(utility).max())
    drawing.colorbar(mesh, label="utility of a trade-off, noise of one answer = 1")
    for yes, marker in ((True, "k+"), (False, "kx")):
        shown.plot(*seen[won == yes].T, marker, label="taken" if yes else "not taken")
    shown.set(xlabel="first principal component", ylabel="second", title=f"one person of {task.name}, {n} answers")
    shown.legend(fontsize=8)
    save(drawing, path)
    return float(variances[-2:].sum() / variances.sum()), float(np.mean(agrees))


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaspk_figures", description=__doc__)
    parser.add_argument("--plane", type=Path, metavar="DIR", help="draw Fig. 4 alone, from Sushi, into a folder")
    given = parser.parse_args(arguments)
    if given.plane is None:
        pictures(PICTURES)
        return 0
    path = given.plane / "gaspk-plane.png"
    held, agreed = principal_plane(find_loader("sushi-a15")(0), SUSHI_ATTRIBUTES, path)
    print(f"{path}: the plane holds {held:.0%} of the variance; {agreed:.0%} of the person's answers are as fitted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
