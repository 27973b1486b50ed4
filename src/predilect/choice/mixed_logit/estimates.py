"""Estimates of a fitted logit with their errors, and the table of them that is printed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import stdtr, stdtrit

from predilect._base.stored import PLAIN, finite, numbers, optional
from predilect._base.types import FloatArray
from predilect.choice.mixed_logit.attributes import NORMAL, TRIANGULAR, ItemColumns
from predilect.choice.mixed_logit.problem import Mixture, coefficients_of
from predilect.data import PersonFeatures
from predilect.data.features import Traits
from predilect.data.frames import open_frame, to_columns
from predilect.inference.latent.sandwich import of_student
from predilect.inference.likelihoods.special import TAILS_95

ERRORS = ("hessian", "robust", "clustered")
ENOUGH_PEOPLE = 30  # from so many on clustered errors are as good as they look
_STEP = 1e-4  # of central differences of what is reported, in units of a parameter
_AT_AN_EDGE = re.compile(r"\bsd\b|^share$")  # whose smallest value is 0
_IN_NATS = re.compile("log likelihood|AIC|BIC")
DISSIMILARITY = "dissimilarity"  # the attribute by which that of a nest is reported: z and p are of 1, and not of 0
Label = tuple[str, str, str]  # attribute, level, and what of it


@dataclass(frozen=True, slots=True)
class Estimates:
    """What is estimated and its covariances (Q, Q), None where there is none, as amounts of ``unit`` (Q,).

    A unit is a power of two: squares of what is reported neither overflow nor vanish.
    """

    labels: Annotated[tuple[Label, ...], PLAIN]
    unit: Annotated[FloatArray, numbers("Q")]
    value: Annotated[FloatArray, numbers("Q")]
    hessian: Annotated[FloatArray, finite("Q Q")]  # of "bayes" the posterior covariance
    robust: Annotated[FloatArray | None, finite("Q Q")]
    clustered: Annotated[FloatArray | None, finite("Q Q")]
    facts: Annotated[dict[str, Any], PLAIN]  # numbers of the fit, in the order in which they are printed
    errors: Annotated[str, PLAIN] = "hessian"  # whose intervals, z and p are by, unless others are asked for
    ends: Annotated[FloatArray | None, optional(finite("2 Q"))] = None  # 2.5 and 97.5 % quantiles of draws

    @property
    def student(self) -> float:
        """The root of what the variance of draws is multiplied by, so that quantiles of a normal are Student's."""
        return 1.0 if self.errors != "clustered" else float(np.sqrt(of_student(np.array(self.facts["people"]))))


def covariate_effects(traits: Traits | None, people: PersonFeatures | None) -> tuple[list[str], FloatArray]:
    """Names of people's covariates, and how one unit of each moves the traits, (n_covariates, T)."""
    if traits is None or people is None:
        return [], np.zeros((0, 0))
    return people.columns, traits.rotation / np.array([[one.scale] for one in people.outputs])


def _powers(A: FloatArray) -> FloatArray:
    """The power of two near the largest entry of each row, 1 for zeros."""
    return np.ldexp(1.0, np.frexp(np.abs(A).max(axis=1, initial=0.0))[1])


def reported(
    law: Mixture, columns: ItemColumns, covariates: Sequence[str], M: FloatArray
) -> tuple[list[Label], FloatArray, FloatArray]:
    """What is reported of populations, its units (Q,) and values (S, Q): means, effects of covariates, spreads, shares.

    Of a log-normal coefficient the median, and the standard deviation of its logarithm.
    """
    S, K, _, d = law.B.shape
    n = law.Omega.shape[-1]
    is_log = ~np.isin(columns.kind, (NORMAL, TRIANGULAR))
    unit, unit_of_M = _powers(columns.report), _powers(M)
    report, M = columns.report / unit[:, None], M / unit_of_M[:, None]
    logs = columns.report @ is_log != 0.0  # levels whose coefficients are log-normal
    into = np.where(is_log, report != 0.0, report)[:, :n]
    unit_of_spread = np.where(logs, 1.0, unit)
    varying = np.flatnonzero(into.any(axis=1))
    labels: list[Label] = []
    parts: list[tuple[FloatArray, FloatArray]] = []
    for k in range(K):
        whose = f"class {k + 1}" if K > 1 else "mean"
        of = "" if K == 1 else f"{whose}: "
        parts.append((unit, coefficients_of(law.B[:, k, 0], columns.kind, columns.price) @ report.T))
        labels += [(*level, whose) for level in columns.levels]
        if not len(varying):
            continue
        size = np.ones((S, d))
        if columns.price >= 0:
            size = np.where(is_log, size, np.exp(law.B[:, k, 0, [columns.price]]))
        scaled = (into * size[:, None, :n])[:, varying]
        if len(M):
            moved = np.einsum("ct,stn,sln->scl", M, law.B[:, k, 1:, :n], scaled)
            parts.append((np.outer(unit_of_M, unit_of_spread[varying]).ravel(), moved.reshape(S, -1)))
            labels += [(*columns.levels[j], f"{of}by {name}") for name in covariates for j in varying]
        variance = np.einsum("sli,sij,slj->sl", scaled, law.Omega[:, k], scaled)
        parts.append((unit_of_spread[varying], np.sqrt(np.maximum(variance, 0.0))))
        labels += [(*columns.levels[j], f"{of}sd{' of the logarithm' if logs[j] else ''}") for j in varying]
    if K > 1:
        parts.append((np.ones(K), law.share))
        labels += [(f"class {k + 1}", "", "share") for k in range(K)]
    if law.member is not None and len(M):
        parts.append((np.tile(unit_of_M, K - 1), np.einsum("ct,skt->skc", M, law.member[:, 1:, 1:]).reshape(S, -1)))
        labels += [(f"class {k + 1}", name, "log odds") for k in range(1, K) for name in covariates]
    units, values = zip(*parts, strict=True)
    return labels, np.concatenate(units), np.concatenate(values, axis=1)


def by_delta(
    laws: Callable[[FloatArray], Mixture], columns: ItemColumns, covariates: tuple[Sequence[str], FloatArray],
    theta: FloatArray, H: FloatArray, scores: dict[str, FloatArray | None], facts: dict[str, Any],
    errors: str = "hessian",
) -> Estimates:  # fmt: skip
    """Estimates at ``theta`` (P,) of the log-likelihood with minus the Hessian H, by the delta method.

    ``laws``: populations (S,) of parameters (S, P); ``scores``: slopes of independent parts of the log-likelihood
    (n, P), None where there are none, for "robust" and "clustered": V = H⁻¹ (Σ s sᵀ) H⁻¹.
    """
    step = _STEP * np.eye(len(theta))
    labels, unit, at = reported(laws(np.vstack([theta, theta + step, theta - step])), columns, *covariates)
    J = (at[1 : len(theta) + 1] - at[len(theta) + 1 :]).T / (2.0 * _STEP)
    bread = np.linalg.pinv(H, hermitian=True)
    found: dict[str, FloatArray | None] = {"hessian": J @ bread @ J.T}
    for name in ERRORS[1:]:
        s = scores[name]
        found[name] = None if s is None else (half := J @ bread @ s.T) @ half.T
    return Estimates(tuple(labels), unit, at[0], facts=facts, errors=errors, **found)  # type: ignore[arg-type]


def of_few(slopes: FloatArray, n_people: int | None, n_choices: float) -> FloatArray | None:
    """Slopes of people's log-likelihoods (U, P) for clustered errors, times the root of G / (G - 1) (n - 1) / (n - P)
    for G people and n choices, by which their squares are right on average; None where people are not known.
    """
    if n_people is None:
        return None
    of_people = n_people / max(n_people - 1.0, 1.0)
    return slopes * math.sqrt(of_people * (n_choices - 1.0) / max(n_choices - slopes.shape[1], 1.0))


def by_draws(
    law: Mixture, columns: ItemColumns, covariates: tuple[Sequence[str], FloatArray], facts: dict[str, Any]
) -> Estimates:
    """Posterior means and covariances of what is reported."""
    labels, unit, draws = reported(law, columns, *covariates)
    V = np.cov(draws.T).reshape([len(labels)] * 2)
    ends = np.quantile(draws, TAILS_95, axis=0)
    return Estimates(tuple(labels), unit, draws.mean(axis=0), V, None, None, facts, ends=ends)


def facts_of(
    at_zero: float, with_constants: float | None, evidence: float, n_parameters: int | None, n_choices: float,
    n_people: int | None, draws: int, converged: bool,
) -> dict[str, Any]:  # fmt: skip
    """Numbers of the fit; ``n_parameters`` is None for draws, which have no maximum."""
    found: dict[str, Any] = {
        "log likelihood at 0": at_zero, "log likelihood with constants alone": with_constants,
        "log likelihood": evidence, "rho squared": 1.0 - evidence / at_zero,
    }  # fmt: skip
    if n_parameters is not None:
        found |= {
            "adjusted rho squared": 1.0 - (evidence - n_parameters) / at_zero, "parameters": n_parameters,
            "AIC": 2.0 * n_parameters - 2.0 * evidence, "BIC": n_parameters * math.log(n_choices) - 2.0 * evidence,
        }  # fmt: skip
    return found | {"choices": n_choices, "people": n_people, "draws": draws, "converged": "yes" if converged else "no"}


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Estimates and the fit, for print.

    Attributes
    ----------
    table : data frame of the caller's kind
        Columns attribute, level, what (mean, sd, share, class 1 ...), estimate, hessian, robust, clustered (standard
        errors), z, p (two-sided) and lower, upper (95 % interval) by the errors that were asked for. Spreads and shares
        have none of the last four: at the edge of what is possible they are not normal. Of hierarchical Bayes sd, and
        lower and upper from the posterior, of spreads and shares too.
    facts : dict
        Log likelihoods at 0, with constants alone and at the maximum, rho squared, AIC, BIC (of the number of choices),
        numbers of choices, people and draws, and whether the fit converged.
    errors : str
        Whose errors z and p are by; "posterior" for draws.
    said : str
        What comes first in print: that chains do not agree, say.
    usable : bool
        Whether print shows numbers; ``table`` and ``facts`` hold them all the same.
    """

    table: Any
    facts: dict[str, Any]
    errors: str
    rows: list[list[str]]  # as text, heads first
    said: str = ""
    usable: bool = True

    def __str__(self) -> str:
        if not self.usable:
            return self._refused
        widths = [max(len(row[k]) for row in self.rows) for k in range(len(self.rows[0]))]
        aligned = [
            "  ".join(f"{cell:{'<' if k < 3 else '>'}{widths[k]}}" for k, cell in enumerate(row)) for row in self.rows
        ]
        facts = [f"{name}: {value}" for name, value in self._facts()]
        return "\n".join([*self._first(), *(line.rstrip() for line in aligned), "", *facts])

    def __repr__(self) -> str:
        return str(self)

    def markdown(self) -> str:
        """As a table of Markdown, and the numbers of the fit in a list."""
        if not self.usable:
            return self._refused
        rows = [f"| {' | '.join(one.replace('|', chr(92) + '|') for one in row)} |" for row in self.rows]
        ruler = f"|{'|'.join([' --- '] * 3 + [' ---: '] * (len(self.rows[0]) - 3))}|"
        facts = [f"- {name}: {value}" for name, value in self._facts()]
        return "\n".join([*self._first(), rows[0], ruler, *rows[1:], "", *facts])

    def latex(self, pay: Any = None) -> str:
        """As a tabular of LaTeX with booktabs, the numbers of the fit below.

        Parameters
        ----------
        pay : data frame, optional
            What ``willingness_to_pay`` gave, for a second tabular.
        """
        if not self.usable:
            return f"% {self._refused}"
        n = len(self.rows[0])
        body = [" & ".join(map(_for_latex, row)) + r" \\" for row in self.rows]
        facts = [rf"\multicolumn{{3}}{{l}}{{{_for_latex(name)}}} & {_for_latex(value)}{' &' * (n - 4)} \\"
                 for name, value in self._facts()]  # fmt: skip
        head = rf"\begin{{tabular}}{{lll{'r' * (n - 3)}}}"
        return "\n".join([
            *map(_for_latex, self._first()), head, r"\toprule", body[0], r"\midrule", *body[1:], r"\midrule", *facts,
            r"\bottomrule", r"\end{tabular}", *([] if pay is None else ["", *_tabular_of_pay(pay)]),
        ])  # fmt: skip

    @property
    def _refused(self) -> str:
        return f"{self.said} The attributes table and facts of the summary hold its numbers all the same."

    def _first(self) -> list[str]:
        return [self.said, ""] if self.said else []

    def _facts(self) -> list[tuple[str, str]]:
        found = [(name, value) for name, value in self.facts.items() if value is not None]
        return [(name, f"{value:.2f}" if _IN_NATS.match(name) else _cell(value)) for name, value in found]


def table_of(found: Estimates, errors: str) -> tuple[dict[str, list[Any]], list[list[str]]]:
    """Columns of the table, and its rows as text; ``errors`` of :data:`ERRORS`, or "posterior"."""
    n = len(found.labels)
    columns = zip(("attribute", "level", "what"), zip(*found.labels, strict=True), strict=True)
    table: dict[str, list[Any]] = {name: list(column) for name, column in columns}
    table["estimate"] = (found.value * found.unit).tolist()
    matrices = {"sd": found.hessian} if errors == "posterior" else {name: getattr(found, name) for name in ERRORS}
    sd = {name: None if V is None else np.sqrt(np.maximum(np.diagonal(V), 0.0)) for name, V in matrices.items()}
    table |= {name: [None] * n if one is None else (one * found.unit).tolist() for name, one in sd.items()}
    if errors != "posterior":
        # A dissimilarity of 1 is what there is nothing of.
        away = found.value - np.array([1.0 if of == DISSIMILARITY else 0.0 for of in table["attribute"]]) / found.unit
        by = zip(away.tolist(), sd[errors].tolist(), table["what"], strict=True)  # type: ignore[union-attr]
        z = [None if not one or _AT_AN_EDGE.search(what) else value / one for value, one, what in by]
        # Student's with infinitely many degrees of freedom is normal.
        freedom = found.facts["people"] - 1.0 if errors == "clustered" else math.inf
        quantile = float(stdtrit(freedom, 0.975))
        table |= {"z": z, "p": [None if one is None else 2.0 * float(stdtr(freedom, -abs(one))) for one in z]}
        for name, side in (("lower", -quantile), ("upper", quantile)):
            ends = zip(table["estimate"], table[errors], z, strict=True)
            table[name] = [None if one is None else value + side * error for value, error, one in ends]
    elif found.ends is not None:
        table |= dict(zip(("lower", "upper"), (found.ends * found.unit).tolist(), strict=True))
    shown = [name for k, (name, column) in enumerate(table.items()) if k < 3 or column != [None] * n]
    rows = zip(*(table[name] for name in shown), strict=True)
    cells = [[_p_in_words(value) if name == "p" else _cell(value) for name, value in zip(shown, row, strict=True)]
             for row in rows]  # fmt: skip
    return table, [shown, *cells]


def _p_in_words(p: float | None) -> str:
    return "" if p is None else "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _tabular_of_pay(pay: Any) -> list[str]:
    """Willingness to pay with its interval, where there are both the median over people and the mean, as a tabular."""
    frame = open_frame(pay)[0]
    has_mean = "mean" in frame.columns
    names = ["attribute", "level", "median", "lower", "upper", *(["mean", "mean_lower", "mean_upper"] * has_mean)]
    columns = to_columns(frame, names)
    rows = zip(*(column.to_list() for column in columns.values()), strict=True)
    body = [" & ".join(_for_latex(_cell(value)) for value in row) + r" \\" for row in rows]
    first = "median over people" if has_mean else "willingness to pay"
    more = " & mean over people & lower & upper" if has_mean else ""
    head = rf"attribute & level & {first} & lower & upper{more} \\"
    ruler = rf"\begin{{tabular}}{{ll{'r' * (len(names) - 2)}}}"
    return [ruler, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return "" if value is None else str(value)
    if math.isinf(value):
        return "∞" if value > 0.0 else "-∞"
    return f"{value:.10g}" if value == round(value) else f"{value:.4g}"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "∞": r"$\infty$",
} | {sign: rf"\{sign}" for sign in "&%$#_{}"}


def _for_latex(text: str) -> str:
    """A cell; one that begins with a bracket would be an option of the end of the row before it."""
    return "{}" * text.startswith("[") + "".join(_SPECIAL.get(sign, sign) for sign in text)
