"""Tables of a fitted model besides boards: people as those who answer, covariates of answers, segments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from predilect._base.arguments import check_arguments
from predilect._base.estimator import check_is_fitted
from predilect._base.shards import workers
from predilect._base.text import either, shown
from predilect._base.types import FloatArray, IntArray, Table
from predilect.data import Comparisons, build_frame
from predilect.data.checks import FEWEST_CONTEXTS
from predilect.data.comparisons import SIDE
from predilect.decisions.ranking import best_items
from predilect.decisions.scales import Scale, scale_of
from predilect.errors import DataError
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.likelihoods.grades import Intervals
from predilect.inference.people.consistency import intervals_of_consistency
from predilect.inference.people.covariates import own_effects
from predilect.inference.people.engaged import chances_of_clicking
from predilect.inference.people.layout import NOISY
from predilect.models.estimator import Estimator
from predilect.models.population.updating import Updating
from predilect.models.worth import OfAttributes

if TYPE_CHECKING:
    from predilect.decisions.groups import Groups
    from predilect.models.population.coefficients import CoefficientDraws, LinearRows
    from predilect.models.population.groups import Grouped

_HARDLY = 0.1  # of the noise of an answer: what people differ by in a difference of two items
_TOLD_APART = 0.01  # of the factors of noise, between the quartiles
_PEOPLE_AT_ONCE = 1000
_ALIKE = 0.98  # correlation of two effects


class Tables(Updating, Estimator, OfAttributes):  # type: ignore[override]  # answers come after the fit
    """Base of the population model: its tables besides boards."""

    def people(self) -> Any:
        """Everybody who answered: how consistently, and how often as the crowd.

        Returns
        -------
        people : data frame of the caller's kind
            A row a person, sorted by id: user; n, the answers; consistency, with lower and upper, its 95 % interval
            (the noise of the person's answers is 1 / consistency times the usual; 1, and missing, where people do not
            differ in it; the interval averages over the spread of its logarithm over people, unless it was given, and
            in simulations with a spread of .25, .5 and .8 held the truth in 98, 95 and 94 % of cases);
            clicks_at_random, the probability that the person's answers do not depend on what is shown, missing where
            the model has no such people; agreement, the share of the decided answers that prefer what the rest of the
            crowd prefers, whose board is taken without this person's answers; ties, the share of the answers that are
            ties; infit and outfit, mean squares of what is left of answers after the rest's expectation, each by its
            expected square, 1 by chance, more where answers are less like the rest's than expected (infit weighs
            answers by their information, outfit alike); infit_z and outfit_z, by how many standard deviations that is
            more than chance; misfit, whether infit is more than chance, at a false discovery rate of 5 %; and, where
            the side is in the model, chose_left, the share of the decided answers that went to the item on the left.
            Shares of nothing are missing, and so is the fit of answers about several alternatives. Where effects
            of covariates differ over people, effect_of_x and effect_of_x_sd for each covariate x: what one unit of it
            adds for this person, as in :meth:`covariates`.

        Raises
        ------
        DataError
            If the model is pooled, and nobody is named, or it was loaded: then it does not hold who gave which answer;
            or parts hold the people.

        Notes
        -----
        people.md, "Consistency of people", "Effects of covariates that differ over people", "Judges". Where people
        differ in consistency .2 ms a person with 20 answers, on one core, for its interval.
        """
        check_is_fitted(self)
        now = self._snapshot()
        if not now._knows_who:
            _refuse_of_nobody(now)
        return build_frame(people_columns(now), now._backend)

    def top(self, k: int = 10) -> Any:
        """The best ``k`` items of everybody who answered.

        Returns
        -------
        top : data frame of the caller's kind
            Columns user, item, mean and sd (of the centred utility, as in :meth:`utilities`) and rank, sorted by user
            and rank.

        Raises
        ------
        DataError
            If ``k`` is no whole number from 1 up, or the model knows nobody: it is pooled, or parts hold the people.

        Notes
        -----
        Some .3 ms a person at 200 items, where :meth:`rank` takes 45 for its joint draws. People are taken 1 000 at a
        time: memory is that of the table.
        """
        check_is_fitted(self)
        check_arguments(k=k)
        now: Any = self._snapshot()
        _refuse_of_nobody(now)
        n_people = len(now.users_)
        with workers(now.n_jobs) as executor:
            parts = [
                pl.DataFrame(best_items(now, start, min(start + _PEOPLE_AT_ONCE, n_people), int(k), executor)[1])
                for start in range(0, max(n_people, 1), _PEOPLE_AT_ONCE)
            ]
        return build_frame(pl.concat(parts).to_dict(), now._backend)

    def predict_grades(
        self, X: Comparisons | Table, *, items: Table | None = None, people: Table | None = None
    ) -> FloatArray:
        """Probabilities of graded answers to pairs; arguments as of :meth:`predict_proba`.

        Returns
        -------
        probabilities : array of float, shape (n, 2 G + 1)
            Left better by the strongest of the G grades, ..., by the slightest, a tie, right better by the slightest,
            ..., by the strongest; without grades those of :meth:`predict_proba`, to which those of a side add up.
        """
        now, mean, var, queries = self._margins_of(X, items, people)
        posterior, sides = now.posterior_, now._chances(mean, var, queries)
        thresholds = posterior.thresholds
        if thresholds is None or not thresholds.n_grades:
            return sides
        mean, var = posterior.in_units_of_noise(mean, var, queries.users)
        factor, _, kind = posterior._standing(queries.users, queries.left, queries.right)
        scale, n = thresholds.scale * factor, thresholds.n_grades
        left = np.zeros((len(mean), n))
        right = np.zeros_like(left)
        for share, v, noise in posterior.calibration.components(var, kind):
            v = v + (noise - 1.0)  # a variance like the margin's own
            for grade in range(n):
                for side, chances in ((1, left), (-1, right)):
                    ends = np.tile(thresholds.table[n + 1 + side * (2 + grade)], (len(mean), 1))
                    chances[:, grade] += share * np.exp(Intervals.all_tilted(ends, mean, v, scale)[0])
        # Those of sides know what is left open of somebody's thresholds.
        left *= (sides[:, 0] / left.sum(axis=1))[:, None]
        right *= (sides[:, 2] / right.sum(axis=1))[:, None]
        return np.hstack([left[:, ::-1], sides[:, 1:2], right])

    @property
    def _alike(self) -> list[str]:
        check_is_fitted(self)
        return describe_alike(self)

    @property
    def attributes_(self) -> list[str]:
        from predilect.models.population.coefficients import coding_of

        check_is_fitted(self)
        if self.features_ is None:
            return []
        coding, columns = coding_of(self)
        return coding.only(columns).attributes

    def _person_draws(self) -> CoefficientDraws:
        from predilect.models.population.coefficients import draws_of

        check_is_fitted(self)
        return draws_of(self._snapshot())

    def _rows(self, codes: IntArray, described: FloatArray) -> LinearRows:
        from predilect.models.population.coefficients import rows_of

        return rows_of(self, codes, described)

    def _moved(self, rows: LinearRows, place: int, change: FloatArray) -> LinearRows:
        columns = rows.columns.copy()
        columns[place] += change
        return rows._replace(columns=columns)

    def covariates(self) -> Any:
        """Effects of covariates of the answers: of the side on which an item was shown, and of those named at the fit.

        Returns
        -------
        effects : data frame of the caller's kind
            A row a covariate: covariate, "side" for the side; effect, sd, lower, upper (95 % interval), what one unit
            of it, left minus right, adds to the utility of the left item, in units of the noise of one answer (of side:
            half of what moving from the right to the left adds); rms, the root mean square of the covariate over the
            answers, and effect_of_rms; spread, the standard deviation over people of their own effects, whose mean is
            effect: :meth:`people` has each person's where they differ; 0 where held-out answers gained nothing by own
            effects; missing where own effects were not tried, in a pooled model or with too few answers, and nothing is
            known of how far people differ. Boards are at equal covariates.

        Notes
        -----
        people.md, "Covariates of answers". Effects differ over people where held-out answers gain. In the
        personal model intervals take people's tastes into account; in the pooled one people are independent of each
        other, and not their answers.
        """
        check_is_fitted(self)
        now = self._now()
        effects = now.posterior_.covariates
        columns = CovariateEffects(np.zeros(0), np.zeros((0, 0))).columns() if effects is None else _effects_of(now)
        return build_frame(columns | {"spread": pl.Series(columns["spread"], nan_to_null=True)}, now._backend)

    @property
    def _knows_who(self) -> bool:
        """Whether it is known who gave which answer."""
        if self.personal_:
            return not self._is_of_parts
        return self.comparisons_ is not None and self.comparisons_.has_users

    @property
    def _is_of_parts(self) -> bool:
        """Whether the parts of a fit hold those who answered, and the model nobody."""
        return bool(self.personal_ and self.n_answers_ and not len(self.users_ or ()))

    def _further_tables(self) -> dict[str, Callable[[], Any]]:
        tables: dict[str, Callable[[], Any]] = {"people": self.people} if self._knows_who else {}
        return tables if self.posterior_.covariates is None else tables | {"covariates": self.covariates}

    @property
    def _has_segments(self) -> bool:
        n = len(self.hyperparameters_.segment_variances)  # their members are the last traits; all may have been erased
        return n > 0 and bool(self._snapshot().posterior_.people.traits[:, -n:].any())

    def segments(self, *, scale: str | Scale = "probit", base: float | None = None, anchor: Any = None) -> Any:
        """Boards of the segments that ``people=PersonFeatures.from_frame(..., segments=...)`` named at the fit.

        Parameters
        ----------
        scale, base, anchor
            As :meth:`rank` takes them.

        Returns
        -------
        boards : data frame of the caller's kind
            For each segment, largest first, the columns of :meth:`rank`, after column, segment and people (how many),
            and before difference (the segment's utility less the average person's, both centred over the items, in the
            unit of the scale; of "0-100" and "share" in that of utilities), difference_sd, and more_than_chance:
            whether it stands out among all items and segments of the column, by the rule of Benjamini and Hochberg at a
            false discovery rate of 5 %.

        Raises
        ------
        DataError
            If the fit was given no segments.
        """
        from predilect.models.population.segments import segment_boards

        check_is_fitted(self)
        now = self._snapshot()
        if not now._has_segments:
            raise DataError(
                "this model knows no segments of people. Name them at the fit: "
                f"{either('--segment COLUMN', 'people=PersonFeatures.from_frame(answers, segments=COLUMN)')}"
            )
        unit = scale_of(scale, now._likelihood.name, base, anchor)
        return build_frame(segment_boards(now, unit), now._backend)

    def groups(self, *, smallest: int = 10, most: int = 5, random_state: int | None = None) -> Groups:
        """Groups of opinion: what divides the people who answered, and what unites them.

        Parameters
        ----------
        smallest : int, default 10
            People that each group has at least, 5 or more. Otherwise there are fewer groups, or none.
        most : int, default 5
            Most groups, 2 to 5.
        random_state : int, optional
            By default the model's.

        Returns
        -------
        groups : Groups
            How many there are ("no groups" is an answer), the share of each, what each prefers against the others, and
            what all of them like; with 95 % intervals. ``sentences`` says it, ``table()`` has the numbers.

        Raises
        ------
        DataError
            If the model knows nobody, as it is pooled or parts hold the people; if an argument is out of range.

        Notes
        -----
        groups.md. A group is one of several normal distributions of utilities in place of one. Groups have to be two
        standard deviations apart, and their number is the one with which the answers of people who were held out are
        likeliest, in ten folds of at most 1 000 people; each group more has to make them ten times as likely. Names of
        people and items play no part. A millisecond of one core a person with ten answers where no groups stand apart;
        10 to 20 for the first 1 000 people where some do, and of the others a few fits.
        """
        return self._grouped(smallest, most, random_state).groups

    def _grouped(self, smallest: int, most: int = 5, random_state: int | None = None) -> Grouped:
        """:meth:`groups`, and the name of everybody's."""
        from predilect.models.population.groups import groups_of

        check_is_fitted(self)
        now = self._snapshot()
        _refuse_of_nobody(now)
        return groups_of(now, smallest, most, random_state)

    def _find_groups(self) -> Groups | None:
        return self.groups() if self.personal_ and self.n_answers_ and not self._is_of_parts else None


def people_columns(model: Any) -> dict[str, Any]:
    """Columns of :meth:`Population.people <predilect.Population.people>`, sorted by person."""
    from predilect.models.population.judges import judge_columns, misfits, rows_by_judge

    rows, about = rows_by_judge(model)
    posterior, h, who, n = model.posterior_, model.hyperparameters_, rows.who, len(rows.ptr) - 1
    nothing = np.full(n, np.nan)

    def sums(weight: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(who, weight, n), dtype=float)

    n_answers = sums(rows.weight)
    numbers = {
        "n": n_answers,
        "consistency": np.ones(n),
        "lower": nothing,
        "upper": nothing,
        "clicks_at_random": nothing,
    }
    if model.personal_:
        people = posterior.people
        numbers["consistency"] = people.consistency
        if h.consistency_spread:
            with workers(model.n_jobs) as executor:
                ends = intervals_of_consistency(
                    people, posterior.sites, posterior.law, model._delta, h.consistency_spread,
                    posterior.calibration.unit, unsure=model.consistency == "auto", executor=executor,
                )  # fmt: skip
            numbers |= dict(zip(("lower", "upper"), ends, strict=True))
        if h.click_rate:
            numbers["clicks_at_random"] = _chances_of_clicking(posterior)
    fit, ties = judge_columns(model, rows, about), sums(rows.weight * (rows.outcome == 0.0))
    with np.errstate(invalid="ignore"):
        numbers |= {"agreement": fit.pop("agreement"), "ties": ties / n_answers}
        effects = posterior.covariates
        if effects is not None and SIDE in effects.names:
            side = rows.x[:, effects.names.index(SIDE)]  # 1 where the left item of a row was shown on the left
            seen = rows.weight * ((rows.outcome != 0.0) & (side != 0.0))
            numbers["chose_left"] = sums(seen * (side * rows.outcome > 0.0)) / sums(seen)
    if model.personal_ and effects is not None and len(effects.spread):
        own_mean, own_sd = own_effects(posterior.people, posterior.sites, posterior.law, effects)
        for place, (name, scale) in enumerate(zip(effects.names, effects.scale, strict=True)):
            numbers |= {
                f"effect_of_{name}": own_mean[:, place] / scale,
                f"effect_of_{name}_sd": own_sd[:, place] / scale,
            }
    # Missing, and not NaN, where there is nothing to say.
    users = model.users_ if model.personal_ else model.comparisons_.users
    columns = {"user": users.series()} | {name: pl.Series(x, nan_to_null=True) for name, x in (numbers | fit).items()}
    return columns | {"misfit": misfits(fit["infit_z"])}


def _refuse_of_nobody(model: Any) -> None:
    """DataError for a question about people where the model knows none."""
    if not model.personal_:
        raise DataError(
            "the pooled model tells nobody apart: fit with "
            f"{either('--personal yes', 'personal=True')}, and a column of users"
        )
    if model._is_of_parts:
        raise DataError(
            "this is the crowd's model of answers in parts, and holds nobody: ask the model of a part, .part(0), or of "
            "the part that holds somebody, .of(user)"
        )


def describe_alike(model: Any) -> list[str]:
    """Sentence on people who hardly differ, whose rankings are the crowd's; none where they do, or it is pooled."""
    if not model.personal_ or not model.n_fitted_ or model.posterior_.effects is not None:
        return []
    law = model.posterior_.law
    n = len(law.mean)
    variance = np.einsum("ij,ij->i", law.cov, law.Phi) if law.has_basis else np.diagonal(law.Sigma)
    total = variance.sum() + law.rho.sum()
    of_all = law.Phi.sum(axis=0) if law.has_basis else np.ones(n)
    shared = (of_all @ law.Sigma @ of_all + law.rho.sum()) / n
    sd = math.sqrt(max(2.0 * (total - shared) / max(n - 1, 1), 0.0))  # of a difference of two items, over people
    if sd >= _HARDLY:
        return []
    return [
        f"People hardly differ: in the difference of two items by {sd:.1g} times the noise of one answer. Everybody's "
        "ranking is nearly the crowd's, and its intervals do not allow for people who differ more."
    ]


def _chances_of_clicking(posterior: Any) -> FloatArray:
    given = posterior.calibration
    return chances_of_clicking(
        posterior.people, posterior.sites, posterior.law, posterior.C_predicted, given.consistency_spread, given.unit
    )


def describe_clickers(model: Any) -> list[str]:
    """Sentences on people who click at random; none where there are none."""
    if not model.hyperparameters_.click_rate:
        return []
    people = model.posterior_.people
    answered = np.diff(people.answer_ptr) > 0
    chance = _chances_of_clicking(model.posterior_)[answered]
    if not chance.size:  # a crowd whose people are elsewhere
        rate = model.hyperparameters_.click_rate
        return [f"About {100.0 * rate:.0f} % of the people seem to click at random (people() of a part says who)."]
    n, sure = int(chance.size), int((chance > 0.5).sum())
    lines = [
        f"Some people seem to click at random: about {chance.sum():.0f} of {n}, {sure} of them more likely than not "
        "(people() says who). The noise that scores are in units of is that of the median person among the others."
    ]
    if chance.sum() > 0.5 * n:
        lines.append("More than half of the people seem to: unit and board are of the lesser part of the crowd.")
    return lines


def describe_consistency(model: Any) -> list[str]:
    """Sentences on how people differ in the noise of their answers; none where they do not."""
    if not model.hyperparameters_.consistency_spread:
        return []
    people = model.posterior_.people
    answered = np.flatnonzero(np.diff(people.answer_ptr))
    if not len(answered):
        return []
    low, high = np.quantile(1.0 / people.consistency[answered], [0.25, 0.75])
    n_noisy = int((people.consistency[answered] < NOISY).sum())
    if high - low < _TOLD_APART and not n_noisy:
        return ["People may differ in how consistently they answer, but these answers tell hardly anything of whom."]
    lines = [
        "People differ in how consistently they answer: the noise of the middle half of them is "
        f"{low:.2f} to {high:.2f} times what is usual, and whoever is less consistent counts for less."
    ]
    if n_noisy:
        who = f"{n_noisy} people have" if n_noisy > 1 else "1 person has"
        lines.append(f"{who} more than twice the usual noise.")
    return lines


def describe_thresholds(model: Any) -> list[str]:
    """Sentence on the cuts between grades."""
    thresholds = model.posterior_.thresholds
    if thresholds is None:
        return []
    lines = []
    if thresholds.names:
        steps = [f'"{shown(name)}" from {cut:.2f}' for name, cut in zip(thresholds.names, thresholds.cuts, strict=True)]
        lines.append(f"Grades of answers, in units of the noise: {', '.join(steps)}.")
    if len(psi := thresholds.of_items):
        most, least = (shown(str(model.items_.ids[int(place)])) for place in (psi.argmax(), psi.argmin()))
        lines.append(
            f'Items tie differently: their factors of the threshold go from {math.exp(psi.min()):.2f} ("{least}") to '
            f'{math.exp(psi.max()):.2f} ("{most}").'
        )
    return lines


def _effects_of(model: Any) -> dict[str, Any]:
    """Columns of the effects of covariates; a spread of 0 where own effects were tried and gained nothing."""
    columns: dict[str, Any] = model.posterior_.covariates.columns()
    tried = any(one.get("covariate_spread") for one in model.report_["prior"].get("trials", []))
    return columns | {"spread": np.nan_to_num(columns["spread"])} if tried else columns


def describe_covariates(model: Any) -> list[str]:
    """Sentences on the effects of covariates of answers."""
    effects = model.posterior_.covariates
    if effects is None:
        return []
    columns, lines = _effects_of(model), []
    for place, name in enumerate(effects.names):
        effect, lower, upper = (float(columns[key][place]) for key in ("effect", "lower", "upper"))
        if name == SIDE:
            low, middle, high = (f"{100.0 * ndtr(value):.0f}" for value in (lower, effect, upper))
            lines.append(
                f"Between equals the item on the left is chosen {middle} % of the time (95 % interval {low} to "
                f"{high}); boards are for no side."
            )
        else:
            lines.append(
                f'Covariate "{name}": {effect:+.3g} a unit ({lower:+.3g} to {upper:+.3g}), in noise units; '
                f"{columns['effect_of_rms'][place]:+.2f} for a usual difference of {effects.rms[place]:.3g}. Boards "
                "are for equal ones."
            )
        if (spread := float(columns["spread"][place])) > 0.0:
            lines[-1] += f" People differ in it, with a standard deviation of {spread:.3g}."
    sd = np.sqrt(np.diagonal(effects.covariance))
    correlation = np.triu(effects.covariance / np.outer(sd, sd), 1)
    for one, other in np.argwhere(np.abs(correlation) > _ALIKE).tolist():
        lines.append(
            f'The effects of "{effects.names[one]}" and "{effects.names[other]}" cannot be told apart: they say the '
            "same of these answers. Leave one of them out."
        )
    return lines


def independence_lines(model: Any) -> list[str]:
    """What intervals of the crowd's board take for independent."""
    n_contexts = model.report_.get("contexts", 0)
    people = "people and contexts" if n_contexts >= FEWEST_CONTEXTS else "people"
    if model.personal_:
        if n_contexts < FEWEST_CONTEXTS:
            return ["All answers are on one context: intervals hold for that one."] if n_contexts else []
        share = 100.0 * model.report_.get("between_contexts", 1.0)
        return [
            f"Intervals of the crowd's board take {n_contexts} contexts for independent of each other, and not "
            f"answers. The noise of one answer, which scores are in units of, holds {share:.0f} % of how far contexts "
            "differ (of the variance): so likely are two answers of one person on different ones."
        ]
    if model.posterior_.dependence is not None:
        return [
            f"Intervals take {people} for independent of each other, and not their answers. Scores are the average "
            "answer's: the more people differ, the closer together they are than the average person's."
        ]
    return [
        "Intervals take all answers for independent: fewer than five people are named, or items are more than 3 000."
    ]
