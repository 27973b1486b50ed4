"""Designs of choice studies: D-efficient sets of tasks by coordinate exchange, and what they will tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ndtr, ndtri

from predilect._base.arguments import check_arguments, check_count, check_list, check_mapping
from predilect._base.text import did_you_mean, quoted, shown
from predilect._base.types import BoolArray, FloatArray, IntArray, is_number
from predilect.data import build_frame
from predilect.errors import DataError
from predilect.inference.likelihoods.special import Z_95

_DRAWS = 64  # of uncertain priors
_MOST_PROFILES = 200_000  # that are listed
_PEOPLE = 32  # drawn for each draw of the priors, where people differ
_TRIES = 10_000  # of a random profile, or of a random design, that prohibitions allow
_GAIN = 1e-9  # of log D that an exchange must bring
_NONE = "None"  # the outside option


@dataclass(frozen=True, slots=True)
class _Attributes:
    """Attributes with their levels, and each level's columns in the utility."""

    levels: Mapping[str, list[Any]]
    columns: list[FloatArray]  # of each attribute, (n_levels, n_columns)
    report: FloatArray  # (n_reported, P): effects of levels, or slopes, from the coefficients
    labels: list[tuple[str, str]]

    @classmethod
    def of(cls, levels: Mapping[str, list[Any]], outside: bool) -> _Attributes:
        """Numbers have a slope; other levels effects that sum to 0; the outside option a constant."""
        columns: list[FloatArray] = []
        blocks: list[FloatArray] = []
        labels: list[tuple[str, str]] = []
        for name, values in levels.items():
            if _is_number(values):
                numbers = np.array(values, dtype=np.float64)
                columns.append((numbers - numbers.mean())[:, None])
                blocks.append(np.ones((1, 1)))
                labels.append((name, ""))
            else:
                effects = np.vstack([np.eye(len(values) - 1), -np.ones(len(values) - 1)])
                columns.append(effects)
                blocks.append(effects)
                labels += [(name, str(value)) for value in values]
        if outside:
            blocks.append(np.ones((1, 1)))
            labels.append((_NONE, ""))
        report = np.zeros((len(labels), sum(one.shape[1] for one in blocks)))
        row = column = 0
        for one in blocks:
            report[row : row + len(one), column : column + one.shape[1]] = one
            row, column = row + len(one), column + one.shape[1]
        return cls(levels, columns, report, labels)

    def covariance(self, spreads: Mapping[str, Any], outside: bool) -> FloatArray:
        """Covariance of people's coefficients, (P, P), by the standard deviation of each attribute's effects."""
        known = [*self.levels, *([_NONE] if outside else [])]
        blocks = []
        for name in spreads:
            if name not in known:
                raise DataError(f'spreads name "{shown(name)}", which is no attribute.{did_you_mean(str(name), known)}')
        for name in known:
            sd = spreads.get(name, 0.0)
            if not is_number(sd, 0.0):
                raise DataError(f'the spread of "{shown(name)}" over people is a number from 0 up, not {quoted(sd)}')
            n = self.columns[list(self.levels).index(name)].shape[1] if name in self.levels else 1
            # Effects of n + 1 levels that sum to 0 and have the same standard deviation; of a number, its slope.
            is_slope = name not in self.levels or _is_number(self.levels[name])
            blocks.append(sd * sd * (np.eye(n) if is_slope else (n + 1.0) / n * (np.eye(n) - 1.0 / (n + 1.0))))
        return np.asarray(block_diag(*blocks))

    def coded(self, profiles: IntArray, outside: bool) -> FloatArray:
        """Columns (..., k, P) of profiles (..., k, n_attributes), with the outside option last where there is one."""
        X = np.concatenate([one[profiles[..., a]] for a, one in enumerate(self.columns)], axis=-1)
        if not outside:
            return X
        wide = np.zeros((*X.shape[:-2], X.shape[-2] + 1, X.shape[-1] + 1))
        wide[..., :-1, :-1], wide[..., -1, -1] = X, 1.0
        return wide


def information(X: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Information of choices from sets X (..., k, P) about a logit's coefficients (S, P): (S, ..., P, P)."""
    V = np.moveaxis(X @ coefficients.T, -1, 0)
    p = np.exp(V - V.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    away = X - (p[..., None, :] @ X)
    return np.asarray(np.swapaxes(away, -1, -2) @ (p[..., None] * away))


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A design, and what choices by it will tell; ``print`` shows it in short.

    Attributes
    ----------
    table : data frame
        A row an alternative: block, task, alternative, and the attributes; the outside option, "None", has none.
    d_error : float
        det(V)^(1/P), V the covariance of the P coefficients that one respondent's choices would give, mean over the
        priors.
    balance : data frame
        Columns attribute, level, count: how often each level is shown.
    overlap : data frame
        Columns attribute, overlap, least: how much alternatives of a task are alike, 0 where all of its levels differ
        and 1 where all are the same, mean over tasks; and what is least with so few levels. Of an attribute that often
        overlaps little is learned, and answers to it are easier.
    """

    table: Any
    d_error: float
    balance: Any
    overlap: Any
    _attributes: _Attributes
    _X: FloatArray  # (n_blocks, n_tasks, k, P)
    _priors: FloatArray  # draws, (S, P)

    def __str__(self) -> str:
        n_blocks, n_tasks, k = self._X.shape[:3]
        outside = self._outside
        shown_are = f"{k - outside} alternatives" + " and none of these" * outside
        versions = f" in each of {n_blocks} versions" if n_blocks > 1 else ""
        lines = [
            f"Design of {n_tasks} tasks{versions}, {shown_are} a task; D-error {self.d_error:.4g}.",
            *(f"{name}: {', '.join(map(str, values))}" for name, values in self._attributes.levels.items()),
        ]
        means = self._priors.mean(axis=0) @ self._attributes.report.T
        if means.any():
            said = (f"{' '.join(filter(None, label))} {mean:.3g}" for label, mean in
                    zip(self._attributes.labels, means.tolist(), strict=True))  # fmt: skip
            lines.append(f"Priors, levels of a category against their mean: {', '.join(said)}")
        first = self.table[:k].drop("block", "task")
        rows = [first.columns, *([str("" if one is None else one) for one in row] for row in first.iter_rows())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        first_task = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        more = "table holds all of them, expected(n_people) and people_needed() what they tell."
        return "\n".join([*lines, "", "The first task:", *first_task, "", more])

    __repr__ = __str__

    def expected(self, n_people: int, *, spreads: Mapping[str, float] | None = None) -> Any:
        """Standard errors of a logit that so many respondents, spread evenly over the blocks, will give.

        Parameters
        ----------
        n_people : int
        spreads : mapping, optional
            Where people differ: the standard deviation over people of the slope of a number, of the effect of each
            level of a category, and of "None". Errors are then those of the means of a mixed logit. What is not named
            is the same for all.

        Returns
        -------
        table : data frame
            Columns attribute, level, prior (its mean), se, width (of the 95 % interval), power (the probability that
            the interval leaves 0 out if the prior is true).

        Notes
        -----
        V = (n_people times the information of a respondent)⁻¹, root mean square over draws of the priors. Where people
        differ by a covariance Ω a respondent tells (I⁻¹ + Ω)⁻¹ of the mean, for the information I of the answers at the
        own coefficients, averaged over people: errors then fall with more people, and hardly with more tasks.
        """
        check_count("n_people", n_people, 1)
        se = self._errors_of_one(spreads) / math.sqrt(n_people)
        prior = self._priors.mean(axis=0) @ self._attributes.report.T
        power = ndtr(np.abs(prior) / se - Z_95) + ndtr(-np.abs(prior) / se - Z_95)
        return build_frame(
            {**self._names(), "prior": prior, "se": se, "width": 2.0 * Z_95 * se, "power": power}, "polars"
        )

    def people_needed(
        self, *, width: float | None = None, power: float | None = None, spreads: Mapping[str, float] | None = None
    ) -> Any:
        """Respondents that each coefficient needs.

        Parameters
        ----------
        width : float, optional
            Of the 95 % interval, in the units of the coefficient.
        power : float, optional
            Probability that the interval leaves 0 out if the prior is true; one of the two is given.
        spreads : mapping, optional
            Where people differ, as of :meth:`expected`.

        Returns
        -------
        table : data frame
            Columns attribute, level, people; nothing where the prior is 0 and ``power`` is asked for.
        """
        if (width is None) == (power is None):
            raise DataError("give either width=..., of the 95 % interval, or power=..., such as 0.8")
        one = self._errors_of_one(spreads)
        if power is None:
            if width is None or not is_number(width):
                raise DataError(f"width is a positive number, not {quoted(width)}")
            found = (2.0 * Z_95 * one / width) ** 2
        else:
            if not is_number(power) or not 0.05 < power < 1.0:
                raise DataError(f"power is a probability between .05 and 1, not {quoted(power)}")
            prior = np.abs(self._priors.mean(axis=0) @ self._attributes.report.T)
            ratio = np.divide(one, prior, out=np.full_like(one, np.inf), where=prior > 0.0)
            found = ((Z_95 + float(ndtri(power))) * ratio) ** 2
        people = [math.ceil(n) if math.isfinite(n) else None for n in found.tolist()]
        return build_frame({**self._names(), "people": people}, "polars")

    def answers(
        self, n_people: int, random_state: int | None = 0, *, spreads: Mapping[str, float] | None = None
    ) -> Any:
        """Made-up choices by this design, of people with the mean of the priors: to try a study before it is run.

        ``spreads``: how people differ from it, as of :meth:`expected`.

        Returns
        -------
        table : data frame
            As ``table``, a row an alternative of each person's tasks, with the columns person and chosen; for
            ``predilect.read``.
        """
        check_count("n_people", n_people, 1)
        check_arguments(random_state=random_state)
        rng = np.random.default_rng(random_state)
        n_blocks, n_tasks, k = self._X.shape[:3]
        block = np.arange(n_people) % n_blocks
        noise = rng.gumbel(size=(n_people, n_tasks, k))
        away = self._people(spreads, rng.standard_normal((n_people, self._X.shape[-1])) if spreads else None)
        V = np.einsum("ntkp,np->ntk", self._X[block], self._priors.mean(axis=0) + away)
        best = (V + noise).argmax(axis=2)
        rows = np.arange(n_blocks * n_tasks * k).reshape(n_blocks, -1)[block].ravel()
        table = self.table[rows.tolist()]
        chosen = (np.arange(k) == best[..., None]).astype(int).ravel()
        columns = {name: table[name] for name in table.columns}
        return build_frame(
            {"person": np.repeat(np.arange(n_people), n_tasks * k), **columns, "chosen": chosen}, "polars"
        )

    @property
    def _outside(self) -> bool:
        """Whether each task offers none of these."""
        return self._attributes.labels[-1] == (_NONE, "")

    def _people(self, spreads: Mapping[str, float] | None, normal: FloatArray | None) -> FloatArray:
        """By how much people's coefficients differ from the mean, (n, P), from standard normal draws; 0 of nobody's."""
        if not spreads or normal is None:
            return np.zeros((1, self._X.shape[-1]))
        values, vectors = np.linalg.eigh(self._attributes.covariance(spreads, self._outside))
        return np.asarray(normal @ (vectors * np.sqrt(np.maximum(values, 0.0))).T)

    def _errors_of_one(self, spreads: Mapping[str, float] | None = None) -> FloatArray:
        """Standard errors that a single respondent would give."""
        check_mapping("spreads", spreads or {})
        P = self._X.shape[-1]
        Omega = self._attributes.covariance(spreads or {}, self._outside)
        away = self._people(spreads, _normal(P, _PEOPLE) if Omega.any() else None)
        V = np.empty((len(self._priors), P, P))
        for place, prior in enumerate(self._priors):
            of_people = information(self._X, prior + away).sum(axis=2)  # (people, blocks, P, P)
            told = of_people @ np.linalg.inv(np.eye(P) + Omega @ of_people)
            V[place] = np.linalg.inv(told.mean(axis=(0, 1)))
        report = self._attributes.report
        return np.asarray(np.sqrt(np.einsum("lp,spq,lq->sl", report, V, report).mean(axis=0)))

    def _names(self) -> dict[str, list[str]]:
        labels = self._attributes.labels
        return {"attribute": [name for name, _ in labels], "level": [level for _, level in labels]}


def design(
    attributes: Mapping[str, Sequence[Any]],
    n_tasks: int,
    n_alternatives: int,
    *,
    priors: Mapping[str, Any] | None = None,
    prohibited: Sequence[Mapping[str, Any]] = (),
    outside: bool = False,
    balanced: bool = False,
    n_blocks: int = 1,
    n_starts: int = 20,
    random_state: int | None = 0,
) -> Design:
    """A D-efficient design of a choice study, for a logit.

    Parameters
    ----------
    attributes : mapping of str to levels
        Numbers have a slope; other levels effects that sum to 0.
    n_tasks : int
        Tasks that each respondent answers.
    n_alternatives : int
        Alternatives of a task, the outside option not counted.
    priors : mapping, optional
        What is thought of coefficients: a number, or (mean, sd), for each attribute that is a number, and for "None";
        for a category a mapping from levels to these, of which the mean over all its levels is taken off, as effects
        sum to 0: {"yes": 0.3} of yes and no is 0.15 and -0.15. The constant of "None" is its utility against an
        alternative with the mean of the listed values of each number, and of the levels of each category. What is not
        named is 0; print shows the priors as they are used. With an sd the D-error is a mean over 64
        draws (a Bayesian design).
    prohibited : sequence of mappings
        Levels that no alternative may have together: ``[{"brand": "A", "price": 3}]``.
    outside : bool, default False
        Each task offers "none of these" too.
    balanced : bool, default False
        Each level is shown equally often.
    n_blocks : int, default 1
        Versions of the questionnaire; a respondent answers one.
    n_starts : int, default 20
        Random designs to start from.
    random_state : int or None, default 0

    Returns
    -------
    Design

    Raises
    ------
    DataError
        If an attribute has fewer than two levels or one twice, a prior or prohibition names what is not there,
        prohibitions leave too few alternatives or a level without any, a design cannot be balanced, or so few tasks
        cannot tell the coefficients apart.

    Notes
    -----
    Huber and Zwerina (1996); coordinate exchange (Meyer and Nachtsheim 1995): each attribute of each alternative in
    turn takes the level that makes the D-error least, until nothing changes. Balanced designs exchange the levels of
    two alternatives instead. No task shows the same alternative twice. Of a number the extremes say most of a slope, so
    that levels between them are hardly shown unless the design is balanced. For designs that adapt to the person see
    ``suggest_set`` of a fitted model.

    Examples
    --------
    >>> from predilect.decisions import design
    >>> found = design({"price": [1, 2, 3], "brand": ["A", "B", "C"]}, n_tasks=6, n_alternatives=3)
    >>> found.table.height
    18
    """
    check_arguments(attributes=attributes, priors=priors, outside=outside, balanced=balanced)
    check_count("random_state", random_state, 0, None)
    for what, number in (("n_tasks", n_tasks), ("n_blocks", n_blocks), ("n_starts", n_starts)):
        check_count(what, number, 1)
    check_count("n_alternatives", n_alternatives, 1 if outside else 2)
    coding = _Attributes.of(_levels(attributes), outside)
    rules = _rules(coding.levels, prohibited)
    search = _Exchange(
        coding, outside, _draws(coding, priors or {}, outside), _Allowed.of(coding.levels, rules, n_alternatives),
        n_tasks * n_blocks, n_alternatives, balanced,
    )  # fmt: skip
    _refuse_unbalanced(search)
    best, log_error = None, math.inf
    for start in np.random.SeedSequence(random_state).spawn(n_starts):
        found, value = search.climb(np.random.default_rng(start))
        if value < log_error:
            best, log_error = found, value
    if best is None:
        raise DataError(
            f"{n_tasks * n_blocks} tasks of {n_alternatives} alternatives cannot tell the {coding.report.shape[1]} "
            "coefficients apart. Take more tasks or blocks, or fewer levels"
        )
    return _made(coding, best.reshape(n_blocks, n_tasks, n_alternatives, -1), outside, search.priors, log_error)


def _is_number(values: Sequence[Any]) -> bool:
    return all(is_number(one, -math.inf) for one in values)


def _levels(attributes: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    for name, values in attributes.items():
        check_list(f"the levels of {quoted(name)}", values, of="levels")
    found = {str(name): list(values) for name, values in attributes.items()}
    if not found:
        raise DataError('there are no attributes. Give levels by name, such as {"price": [1, 2, 3]}')
    for name, values in found.items():
        if len(values) < 2 or len(set(map(str, values))) < len(values):
            said = "one of them twice" if len(values) > 1 else "fewer than two"
            raise DataError(
                f'the levels of "{shown(name)}" are {quoted(values)}: {said}. Give two or more different ones'
            )
    return found


def _place(levels: Mapping[str, list[Any]], name: Any, value: Any, what: str) -> tuple[int, int]:
    """Attribute and level, by their places; DataError if there are none such."""
    if name not in levels:
        raise DataError(f'{what} names "{shown(name)}", which is no attribute.{did_you_mean(str(name), levels)}')
    if value not in levels[name]:
        raise DataError(f'{what} names the level {quoted(value)} of "{shown(name)}", which has {quoted(levels[name])}')
    return list(levels).index(name), levels[name].index(value)


def _rules(levels: Mapping[str, list[Any]], prohibited: Sequence[Mapping[str, Any]]) -> list[IntArray]:
    """Prohibitions as levels by attribute, -1 for any, (n_attributes,)."""
    found = []
    check_list("prohibited", prohibited, of="mappings")
    for one in prohibited:
        check_mapping("a prohibition", one)
        rule = np.full(len(levels), -1)
        for name, value in one.items():
            attribute, level = _place(levels, name, value, "a prohibition")
            rule[attribute] = level
        if not one:
            raise DataError("a prohibition names no level. Give levels that may not go together")
        found.append(rule)
    return found


def _draws(coding: _Attributes, priors: Mapping[str, Any], outside: bool) -> FloatArray:
    """Draws of the coefficients, (S, P): one where nothing is uncertain."""
    known = [*coding.levels, *([_NONE] if outside else [])]
    for name in priors:
        if name not in known:
            raise DataError(f'priors name "{shown(name)}", which is no attribute.{did_you_mean(str(name), known)}')
    means, sds, into = [], [], []
    for name in known:
        given = priors.get(name, 0.0)
        values = coding.levels.get(name, [])
        if _is_number(values):  # as the constant of the outside option is
            pairs, matrix = [_prior(name, given)], np.ones((1, 1))
        else:
            given = {} if given == 0.0 else given
            if not isinstance(given, Mapping):
                raise DataError(
                    f'the prior of the category "{shown(name)}" is a mapping from levels, not {quoted(given)}'
                )
            for level in given:
                _place(coding.levels, name, level, "a prior")
            pairs = [_prior(name, given.get(level, 0.0)) for level in values]
            matrix = (np.eye(len(values)) - 1.0 / len(values))[:-1]  # effects sum to 0
        means += [mean for mean, _ in pairs]
        sds += [sd for _, sd in pairs]
        into.append(matrix)
    mean, sd = np.array(means), np.array(sds)
    noise = _normal(len(mean), _DRAWS) if sd.any() else np.zeros((1, len(mean)))
    full = np.zeros((sum(len(one) for one in into), len(mean)))
    row = column = 0
    for one in into:
        full[row : row + one.shape[0], column : column + one.shape[1]] = one
        row, column = row + one.shape[0], column + one.shape[1]
    return np.asarray((mean + noise * sd) @ full.T)


def _normal(n: int, n_draws: int) -> FloatArray:
    """Scrambled Sobol draws from a standard normal, whose mean is 0, (n_draws, n)."""
    from scipy.stats import qmc

    noise: FloatArray = ndtri(qmc.Sobol(n, seed=0).random(n_draws))
    return noise - noise.mean(axis=0)


def _prior(name: str, given: Any) -> tuple[float, float]:
    mean, sd = given if isinstance(given, tuple | list) and len(given) == 2 else (given, 0.0)
    if not is_number(mean, -math.inf) or not is_number(sd, 0.0):
        raise DataError(f'the prior of "{shown(name)}" is a number, or (mean, sd), not {quoted(given)}')
    return float(mean), float(sd)


@dataclass(frozen=True, slots=True)
class _Allowed:
    """Alternatives that may be shown."""

    rules: list[IntArray]
    profiles: IntArray | None  # all, (n, n_attributes), unless they are too many
    sizes: list[int]

    @classmethod
    def of(cls, levels: Mapping[str, list[Any]], rules: list[IntArray], n_alternatives: int) -> _Allowed:
        """DataError if prohibitions leave too few, or a level without any."""
        sizes = [len(values) for values in levels.values()]
        if math.prod(sizes) > _MOST_PROFILES:
            return cls(rules, None, sizes)
        found = np.array(list(product(*map(range, sizes))))
        found = found[cls(rules, None, sizes).mask(found)]
        for a, (name, values) in enumerate(levels.items()):
            lost = sorted(set(range(len(values))) - set(found[:, a].tolist()))
            if lost:
                raise DataError(
                    f"the prohibitions leave no alternative with {shown(name)}={shown(values[lost[0]])}. Leave the "
                    "level out, or prohibit less"
                )
        if len(found) < n_alternatives:
            said, less = ("the prohibitions leave", "Prohibit less") if rules else ("levels make", "Give more levels")
            raise DataError(
                f"{said} {len(found)} alternatives, and a task shows {n_alternatives} different ones. {less}, or show "
                "fewer"
            )
        return cls(rules, found, sizes)

    def mask(self, profiles: IntArray) -> BoolArray:
        """Which profiles (..., n_attributes) may be shown, (...)."""
        found = np.ones(profiles.shape[:-1], dtype=bool)
        for rule in self.rules:
            named = rule >= 0
            found &= ~(profiles[..., named] == rule[named]).all(axis=-1)
        return found

    def sets(self, tasks: IntArray) -> BoolArray:
        """Which tasks (..., k, n_attributes) hold allowed and different alternatives, (...)."""
        code = np.ravel_multi_index(tuple(np.moveaxis(tasks, -1, 0)), self.sizes)
        ordered = np.sort(code, axis=-1)
        return np.asarray(self.mask(tasks).all(axis=-1) & (np.diff(ordered, axis=-1) != 0).all(axis=-1))

    def random_task(self, k: int, rng: np.random.Generator) -> IntArray:
        """A random task; DataError where prohibitions leave hardly anything."""
        if self.profiles is not None:
            return np.asarray(self.profiles[rng.choice(len(self.profiles), k, replace=False)])
        for _ in range(_TRIES):
            task = np.stack([rng.integers(0, size, k) for size in self.sizes], axis=1)
            if self.sets(task):
                return task
        raise DataError(f"in {_TRIES} tries no random task was allowed: the prohibitions leave next to nothing")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Coordinate exchange."""

    coding: _Attributes
    outside: bool
    priors: FloatArray
    allowed: _Allowed
    n_tasks: int  # of all blocks
    n_alternatives: int
    balanced: bool

    def _information(self, tasks: IntArray) -> FloatArray:
        return information(self.coding.coded(tasks, self.outside), self.priors)

    def _log_error(self, total: FloatArray) -> FloatArray:
        """Log mean D-error of information (S, ..., P, P), (...)."""
        sign, log_det = np.linalg.slogdet(total)
        log_det = np.where(sign > 0.0, log_det, -np.inf) / total.shape[-1]
        return np.asarray(np.logaddexp.reduce(-log_det, axis=0) - math.log(len(total)))

    def climb(self, rng: np.random.Generator) -> tuple[IntArray | None, float]:
        """A design (n_tasks, k, n_attributes) from which no exchange leads down, and its log error."""
        D = self._start(rng)
        if D is None:
            return None, math.inf
        parts = self._information(D)
        total = parts.sum(axis=1)
        # So that errors of designs that cannot tell coefficients apart are still ordered.
        ridge = 1e-8 * np.eye(total.shape[-1]) * max(float(np.trace(total[0])), 1e-8)
        value, moved = float(self._log_error(total + ridge)), True
        while moved:
            moved = False
            for t, j, a in product(range(self.n_tasks), range(self.n_alternatives), range(D.shape[2])):
                found = self._exchanges(D, t, j, a)
                if found is None:
                    continue
                first, others, second = found
                change = self._information(first) - parts[:, [t]]
                if second is not None:
                    change = change + np.where(
                        (others == t)[None, :, None, None], 0.0, self._information(second) - parts[:, others]
                    )
                errors = self._log_error(total[:, None] + change + ridge)
                best = int(np.argmin(errors))
                if errors[best] < value - _GAIN:
                    value, moved, total = float(errors[best]), True, total + change[:, best]
                    if second is not None and others[best] != t:
                        D[others[best]] = second[best]
                    D[t] = first[best]
                    parts = self._information(D)
        return D, float(self._log_error(parts.sum(axis=1)))

    def _exchanges(self, D: IntArray, t: int, j: int, a: int) -> tuple[IntArray, IntArray, IntArray | None] | None:
        """Task t after each exchange of attribute a of alternative j, the other tasks in it, and these after it."""
        if not self.balanced:
            levels = np.delete(np.arange(self.allowed.sizes[a]), D[t, j, a])
            first = np.repeat(D[t][None], len(levels), axis=0)
            first[:, j, a] = levels
            first = first[self.allowed.sets(first)]
            return (first, np.empty(0, dtype=int), None) if len(first) else None
        others, places = np.nonzero(D[:, :, a] != D[t, j, a])
        first, second = np.repeat(D[t][None], len(others), axis=0), D[others].copy()
        n = np.arange(len(others))
        first[n, j, a] = D[others, places, a]
        second[n, places, a] = D[t, j, a]
        same = others == t
        first[same, places[same], a] = D[t, j, a]
        keep = self.allowed.sets(first) & (same | self.allowed.sets(second))
        return (first[keep], others[keep], second[keep]) if keep.any() else None

    def _start(self, rng: np.random.Generator) -> IntArray | None:
        """A random design that is allowed, None if none was found."""
        k = self.n_alternatives
        if not self.balanced:
            return np.stack([self.allowed.random_task(k, rng) for _ in range(self.n_tasks)])
        n = self.n_tasks * k
        D = np.stack([rng.permutation(np.arange(n) % size) for size in self.allowed.sizes], axis=1)
        D = D.reshape(self.n_tasks, k, -1)
        for _ in range(_TRIES):
            wrong = np.flatnonzero(~self.allowed.sets(D))
            if not len(wrong):
                return D
            t, a = int(rng.choice(wrong)), int(rng.integers(D.shape[2]))
            j, t2, j2 = int(rng.integers(k)), int(rng.integers(self.n_tasks)), int(rng.integers(k))
            before = int(self.allowed.sets(D[[t, t2]]).sum())
            D[t, j, a], D[t2, j2, a] = D[t2, j2, a], D[t, j, a]
            if int(self.allowed.sets(D[[t, t2]]).sum()) < before:
                D[t, j, a], D[t2, j2, a] = D[t2, j2, a], D[t, j, a]
        return None


def _refuse_unbalanced(search: _Exchange) -> None:
    """DataError if no design shows each level equally often."""
    if not search.balanced:
        return
    n, sizes = search.n_tasks * search.n_alternatives, search.allowed.sizes
    odd = [(name, size) for name, size in zip(search.coding.levels, sizes, strict=True) if n % size]
    if odd:
        step = math.lcm(*sizes) // math.gcd(math.lcm(*sizes), search.n_alternatives)
        raise DataError(
            f'"{shown(odd[0][0])}" has {odd[0][1]} levels, and {search.n_tasks} tasks of {search.n_alternatives} show '
            f"{n} alternatives: no design shows each level equally often. Take a multiple of {step} tasks in all, or "
            "balanced=False"
        )
    if search._start(np.random.default_rng(0)) is None:
        raise DataError(
            "no design was found that is balanced and that the prohibitions allow. Take balanced=False, or prohibit "
            "less"
        )


def _made(
    coding: _Attributes, D: IntArray, outside: bool, priors: FloatArray, log_error: float
) -> Design:  # fmt: skip
    """The design with its tables, from levels (n_blocks, n_tasks, k, n_attributes)."""
    n_blocks, n_tasks, k, _ = D.shape
    shown_each = k + int(outside)
    table: dict[str, list[Any]] = {
        "block": np.repeat(np.arange(n_blocks) + 1, n_tasks * shown_each).tolist(),
        "task": np.tile(np.repeat(np.arange(n_tasks) + 1, shown_each), n_blocks).tolist(),
        "alternative": ([*map(str, range(1, k + 1)), *([_NONE] if outside else [])]) * (n_blocks * n_tasks),
    }
    balance: dict[str, list[Any]] = {"attribute": [], "level": [], "count": []}
    for a, (name, values) in enumerate(coding.levels.items()):
        column = [
            [*(values[level] for level in task), *([None] if outside else [])] for task in D[..., a].reshape(-1, k)
        ]
        table[name] = [one for task in column for one in task]
        balance["attribute"] += [name] * len(values)
        balance["level"] += [str(value) for value in values]
        balance["count"] += np.bincount(D[..., a].ravel(), minlength=len(values)).tolist()
    distinct = np.array([[len(set(task)) for task in D[..., a].reshape(-1, k).tolist()] for a in range(D.shape[3])])
    size = np.array([len(values) for values in coding.levels.values()])
    overlap = {
        "attribute": list(coding.levels), "overlap": (k - distinct.mean(axis=1)) / max(k - 1, 1),
        "least": (k - np.minimum(k, size)) / max(k - 1, 1),
    }  # fmt: skip
    made, counted, alike = (build_frame(one, "polars") for one in (table, balance, overlap))
    return Design(made, math.exp(log_error) * n_blocks, counted, alike, coding, coding.coded(D, outside), priors)
