"""Outputs of a fitted ``GaSPK``: acceptance of trade-offs, segments of people, the characteristics."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl

from predilect._base.arguments import check_choice
from predilect._base.types import FloatArray
from predilect.data.frames import column_names, open_frame, to_columns
from predilect.errors import DataError, DataWarning
from predilect.inference.likelihoods.probit import outcome_probabilities
from predilect.inference.likelihoods.special import Z_95
from predilect.models.choices import ChoiceSets, choice_proba
from predilect.models.reading import ROUNDING
from predilect.models.worth import offered_in
from predilect.papers.gaspk.posterior.joint import joint
from predilect.papers.gaspk.posterior.posterior import GaSPKPosterior
from predilect.papers.gaspk.questions import (
    all_people,
    codes_of,
    frame_of,
    mixtures_of,
    questions_of,
    typical_size,
    warn_outside,
)
from predilect.papers.gaspk.redrawn import redrawn
from predilect.papers.gaspk.tradeoffs.map import Step, TradeOffMap

_PAIRS_AT_ONCE = 500_000
_REDRAWN = 40
_T_95 = 2.0227  # of Student's t with 39 degrees of freedom


def accept(model: Any, trade_offs: Any, user: Any = None) -> Any:
    """Probability that people accept trade-offs.

    Parameters
    ----------
    model : GaSPK
        Fitted.
    trade_offs : data frame or dict of columns
        In the attributes' own units, columns by their names, such as ``{"price": [5.0], "fuel=hybrid": [1]}``: 5 more
        to pay, for a hybrid. What is not named, or empty, stays the same.
    user : id, list of ids or "all", optional
        By default the people together.

    Returns
    -------
    frame : data frame of the caller's kind
        One row a person and trade-off: user (if asked for), the columns given, p_accept, p_tie, p_reject; mean, sd,
        lower and upper of the evaluation f_u, with 95 % interval, in units of the noise of one answer. Without ``user``
        probabilities are the average of the people's: the share that is expected to accept. Evaluations are then those
        of the average of the people, and it is not the probability of their mean.

    Raises
    ------
    DataError
        If a column is no attribute, holds something else than finite numbers, or a person is not known.

    Warns
    -----
    DataWarning
        If trade-offs lie outside the range of those learned from: they are evaluated exactly, but there the
        answers say little. If a category is gained and none of its column lost, or the other way round.

    Notes
    -----
    Φ(m / √(1 + v)), with the tie threshold; m and v as in ``predict_margin``. A person's sd includes the uncertainty
    that the calibration adds, and is not 0 for the trade-off 0 either.
    """
    model = model._now()
    t, given = _read(model, trade_offs)
    warn_outside(model, t)
    who = codes_of(model, user)
    posterior, n = model.posterior_, len(t)
    if who is None:
        mean, var = _average(model, t)
        chances = _shares(model, t)
        columns = dict(given)
    else:
        codes, labels = who
        users, point = np.repeat(codes, n), np.tile(np.arange(n), len(codes))
        mean, var = posterior.evaluations(users, t, point)
        chances = outcome_probabilities(mean, var, model.tie_threshold_)
        columns = {"user": pl.Series(labels).gather(np.repeat(np.arange(len(codes)), n))}
        columns |= {name: series.gather(point) for name, series in given.items()}
    sd = np.sqrt(np.maximum(var, 0.0))
    added = {
        "p_accept": chances[:, 0], "p_tie": chances[:, 1], "p_reject": chances[:, 2], "mean": mean, "sd": sd,
        "lower": mean - Z_95 * sd, "upper": mean + Z_95 * sd,
    }  # fmt: skip
    return frame_of(model, columns, added)


def evaluation_distribution(model: Any, trade_offs: Any, user: Any = None) -> tuple[FloatArray, FloatArray]:
    """Joint posterior of a person's evaluations of trade-offs, or by default of the average of the people.

    Parameters
    ----------
    model, trade_offs, user
        As :func:`accept` takes them; one person.

    Returns
    -------
    mean, covariance : arrays of float, shapes (n,) and (n, n)

    Notes
    -----
    With the uncertainty of weights given the answers (``models/gaspk/posterior/joint.py``), where ``accept``
    and predictions have the average that held-out answers ask for, the same for every trade-off.
    """
    model = model._now()
    t, _ = _read(model, trade_offs)
    who = codes_of(model, user)
    if who is not None and len(who[0]) != 1:
        raise DataError(f"evaluations of one person at a time have a joint posterior; {len(who[0])} were named.")
    return joint(model.posterior_, model.hyperparameters_.kernel, mixtures_of(model, who), t)


class Shares:
    """What ``model.worth`` has of a GaSPK model: the shares of what is on offer. It has no coefficients."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def simulate(self, scenarios: Any, rule: str = "share", *, items: Any = None, of: str = "population") -> Any:
        """Market shares of items that are on offer together: the mean over the people of the fit.

        Parameters
        ----------
        scenarios : mapping of name to list of item ids, or one list
            What is on offer.
        rule : {"share"}, default "share"
            By the probabilities of the model: there are no draws of people's utilities.
        items : data frame, optional
            Attributes of items that the model does not know, one row an item.
        of : {"population", "respondents"}, default "population"
            Of whom the share is.

        Returns
        -------
        frame : data frame of the caller's kind
            Columns scenario, item, share, lower, upper (95 % interval), of.

        Raises
        ------
        DataError
            As ``predict_choice``, or for another rule.

        Notes
        -----
        Intervals come from 40 fits to people weighted anew, which differ as fits to other people would, and in what
        answers leave open of the characteristics: docs/math/gaspk.md section 2.3. Of the "population" the people are
        weighted so in the shares too. Amplitude, concentration and number of characteristics stay as they were chosen.
        Costs about a fit.
        """
        if rule != "share":
            raise DataError("a GaSPK model has no draws of utilities to choose the best of: take the rule share")
        check_choice("of", of, ("population", "respondents"))
        model = self._model._now()
        offered = offered_in(scenarios)
        people = all_people(model) if model.personal_ and model.users_ is not None else [None]
        n, sizes = len(people), [len(ids) for ids in offered.values()]
        rows: dict[str, list[Any]] = {"task": [], "item": []} | ({} if people == [None] else {"user": []})
        for task, ids in enumerate(offered.values()):
            rows["task"] += np.repeat(task * n + np.arange(n), len(ids)).tolist()
            rows["item"] += ids * n
            if "user" in rows:
                rows["user"] += [one for one in people for _ in ids]
        sets = ChoiceSets.of(pl.DataFrame(rows, strict=False))
        _, queries = model._read(pl.DataFrame(sets.pairs), None)
        asked, posterior = questions_of(model, queries, model._new_items(queries, items))
        starts = n * np.cumsum(sizes)[:-1]

        def shares(of_them: GaSPKPosterior, weights: FloatArray | None) -> FloatArray:
            mean, var = asked.margins(of_them)
            omitted = 0.0 if model.tie_threshold_ else of_them.calibration.omitted_ties
            p = np.split(choice_proba(sets, of_them, mean, var, queries, omitted), starts)
            by_person = [chances.reshape(n, k) for chances, k in zip(p, sizes, strict=True)]
            return np.concatenate([np.average(chances, axis=0, weights=weights) for chances in by_person])

        again = [
            shares(one.posterior, one.weights if of == "population" else None)
            for one in redrawn(model, posterior, asked.trade_offs, _REDRAWN)
        ]
        share, half = shares(posterior, None), _T_95 * np.std(again, axis=0, ddof=1)
        table = {
            "scenario": [name for name, ids in offered.items() for _ in ids],
            "item": [item for ids in offered.values() for item in ids],
            "share": share, "lower": np.maximum(share - half, 0.0), "upper": np.minimum(share + half, 1.0),
            "of": [of] * len(share),
        }  # fmt: skip
        return frame_of(model, table, {})


def segments(model: Any) -> Any:
    """Segments of people: their weights on the characteristics.

    Returns
    -------
    frame : data frame of the caller's kind
        One row a person: user, "characteristic 1" and so on (weights, which sum to 1), largest (the number of the
        characteristic with the largest weight) and share (that weight).

    Raises
    ------
    DataError
        If the model does not identify users.

    Notes
    -----
    Numbers are those of the columns of ``weights_``. Two fits number characteristics differently.
    """
    model = model._now()
    if model.users_ is None:
        raise DataError("the answers did not say who gave them, so that there are no people to tell apart.")
    gamma = model.posterior_.gamma
    columns: dict[str, Any] = {"user": all_people(model)}
    columns |= {f"characteristic {c + 1}": gamma[:, c] for c in range(gamma.shape[1])}
    return frame_of(model, columns, {"largest": gamma.argmax(axis=1) + 1, "share": gamma.max(axis=1)})


def characteristics(model: Any) -> Any:
    """The characteristics: how much people have of each, and how it evaluates one step of each attribute.

    Returns
    -------
    frame : data frame of the caller's kind
        One row a characteristic, that with the largest mean weight first: characteristic (its number in ``segments``),
        weight (mean over the people), n_largest (people for whom it is the largest), and for each step such as
        "price +5 EUR" or "fuel=gas instead of fuel=oil" the mean evaluation, and its sd in the column "... sd". Where
        items are their own attributes there are scores of the items instead.

    Notes
    -----
    A step is 1, 2 or 5 times a power of ten near the attribute's standard deviation over the items, or for attributes
    of two values their difference. sd is given the weights.
    """
    model = model._now()
    posterior, trade_offs = model.posterior_, model.trade_offs_
    gamma = posterior.gamma
    if trade_offs.items_are_attributes:
        labels = [f"{item} against the others" for item in model.items_.ids]
        rows, own = posterior.scores.rows, posterior.scores.own
        own = own if own.ndim == 1 else np.diagonal(own)
        mean = rows @ posterior.w
        var = np.einsum("qcc->qc", posterior.curvature.blocks(rows)) + own[:, None]
    else:
        steps = trade_offs.steps()
        sizes = [typical_size(model, step) for step in steps]
        labels = [_step_label(step, size) for step, size in zip(steps, sizes, strict=True)]
        found = posterior.at(np.array([size * step.direction for step, size in zip(steps, sizes, strict=True)]))
        mean, var = found.mean, np.einsum("qcc->qc", found.covariance)
    weight, largest = gamma.mean(axis=0), np.bincount(gamma.argmax(axis=1), minlength=gamma.shape[1])
    order = np.lexsort((np.arange(len(weight)), -weight))
    columns = {"characteristic": order + 1, "weight": weight[order], "n_largest": largest[order]}
    sd = np.sqrt(np.maximum(var, 0.0))
    added: dict[str, Any] = {}
    for q, label in enumerate(labels):
        added |= {label: mean[q, order], f"{label} sd": sd[q, order]}
    return frame_of(model, columns, added)


def _read(model: Any, trade_offs: Any) -> tuple[FloatArray, dict[str, pl.Series]]:
    """Trade-offs, shape (n, k), and the columns they were given in."""
    table, _ = open_frame(trade_offs)
    names = column_names(table)
    if not names:
        raise DataError(
            f"the trade-offs have no columns. Say how much of what changes: {', '.join(model.trade_offs_.names[:10])}."
        )
    given = to_columns(table, names)
    t = model.trade_offs_.from_units(given)
    if not len(t):
        raise DataError("there are no trade-offs: the table has no rows.")
    _warn_of_half_changes(model.trade_offs_, t)
    return t, given


def _warn_of_half_changes(trade_offs: TradeOffMap, t: FloatArray) -> None:
    """Of three or more categories, one that is gained means one that is lost."""
    in_units = trade_offs.in_units(t)
    if trade_offs.items_are_attributes:
        return
    by_source: dict[str, list[str]] = {}
    for dimension in trade_offs.dimensions:
        if dimension.kind == "category":
            by_source.setdefault(dimension.source, []).append(dimension.label)
    for source, labels in by_source.items():
        half = np.abs(np.sum([in_units[label] for label in labels], axis=0)) > ROUNDING
        if len(labels) > 1 and half.any():
            warnings.warn(
                f'{int(half.sum())} of {len(t)} trade-offs gain a category of "{source}" without losing another, or '
                f"the other way round: give the lost one as -1 ({', '.join(labels[:5])})", DataWarning, stacklevel=4,
            )  # fmt: skip


def _average(model: Any, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the people's average evaluation: the diagonal of ``joint``."""
    posterior, mixture = model.posterior_, mixtures_of(model, None)
    gamma = mixture.gamma[0]
    found = posterior.at(t)
    var = posterior.spread * np.einsum("qcd,c,d->q", found.covariance, gamma, gamma, optimize=True)
    var += np.square(found.mean @ mixture.root[0]).sum(axis=1)
    far = model.hyperparameters_.kernel.diagonal(t) / posterior.prior_variance
    return found.mean @ gamma, var + mixture.left_open[0] * far


def _shares(model: Any, t: FloatArray) -> FloatArray:
    """Average over the people of the probabilities of their answers, shape (n, 3)."""
    posterior = model.posterior_
    n_users, out = len(posterior.gamma), np.empty((len(t), 3))
    step = max(1, _PAIRS_AT_ONCE // n_users)
    for start in range(0, len(t), step):
        part = t[start : start + step]
        users, codes = np.tile(np.arange(n_users), len(part)), np.repeat(np.arange(len(part)), n_users)
        mean, var = posterior.evaluations(users, part, codes)
        chances = outcome_probabilities(mean, var, model.tie_threshold_)
        out[start : start + step] = chances.reshape(len(part), n_users, 3).mean(axis=1)
    return out


def _step_label(step: Step, size: float) -> str:
    if not step.is_number:
        return step.label
    unit = f" {step.dimension.unit}" if step.dimension.unit else ""
    return f"{step.dimension.name} +{size:g}{unit}"
