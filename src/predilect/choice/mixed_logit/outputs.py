"""What a fitted mixed logit says of sets of items, and of its coefficients in the units of the attributes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import chdtrc, logsumexp

from predilect._base.arguments import check_choice
from predilect._base.estimator import check_is_fitted
from predilect._base.text import first_few, shown
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit.attributes import ItemColumns
from predilect.choice.mixed_logit.diagnosis import caution
from predilect.choice.mixed_logit.estimates import DISSIMILARITY, ERRORS, Estimates, Summary, table_of
from predilect.choice.mixed_logit.nested import nested_log_chances, nests_of
from predilect.choice.mixed_logit.pay import pay_of_people
from predilect.choice.mixed_logit.posterior import MixedLogitPosterior
from predilect.choice.mixed_logit.problem import Mixture
from predilect.data import Comparisons, ItemFeatures, build_frame
from predilect.data.choices import choices_of
from predilect.decisions.conjoint import PayOfPeople, Span, logit_chances, ranges_of, rows_at, sd_of, spans_of
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.dense import moments
from predilect.models.choices import ChoiceSets
from predilect.models.reading import codes_of_sets


class ItemRows(NamedTuple):
    """Columns of items (k, d), and their encoded attributes (k, n_features)."""

    X: FloatArray
    encoded: FloatArray


@dataclass(frozen=True, slots=True)
class LogitDraws:
    """Draws of people's coefficients, as :mod:`predilect.decisions.conjoint` takes them."""

    posterior: MixedLogitPosterior
    columns: ItemColumns
    spans: list[Span]
    of_one_population: bool
    features: ItemFeatures | None  # which say what nest an item is in

    @classmethod
    def of(
        cls, posterior: MixedLogitPosterior, columns: ItemColumns, of_one_population: bool,
        features: ItemFeatures | None, encoded: FloatArray,
    ) -> LogitDraws:  # fmt: skip
        """Draws of a posterior, with what occurs in the items, whose encoded attributes are (n_items, n_features)."""
        has = columns.second_factors(encoded)
        alone = [one.endswith("]") and one.partition("[")[0] not in columns.attributes for one in columns.sources]
        spans = spans_of(columns.levels, columns.report, columns.X, ~np.array(alone, dtype=bool) | (has > 0.5))
        return cls(posterior, columns, spans, of_one_population, features)

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """See :class:`~predilect.decisions.conjoint.PersonDraws`."""
        return self.columns.levels

    @property
    def n_people(self) -> int:
        """Number of people."""
        return len(self.posterior.people)

    def coefficients(self, user: int) -> FloatArray:
        """Draws in the units of the attributes, (R, n_levels)."""
        return self._draws(user) @ self.columns.report.T

    def population(self) -> None:
        """The population follows from the draws of people."""

    def pay_of_people(self, price: int) -> PayOfPeople | None:
        """See :func:`~predilect.choice.mixed_logit.pay.pay_of_people`."""
        return pay_of_people(self.posterior.law, self.columns, price)

    def ranges(self, user: int) -> FloatArray:
        """How far utilities are apart by each attribute over the items, (R, n_attributes)."""
        return ranges_of(self._draws(user), self.spans)

    def utilities(self, user: int | None, rows: ItemRows) -> FloatArray:
        """Utilities of items, (R, n_items)."""
        return self._draws(user) @ rows.X.T

    def chances(self, V: FloatArray, user: int | None, rows: ItemRows) -> FloatArray:
        """Probabilities of each item to be chosen, from utilities (R, n_items)."""
        return logit_chances(V) if self.posterior.nests is None else np.exp(self._nested(V, user, rows)[0])

    def chance_of_first(self, V: FloatArray, user: int | None, rows: ItemRows, sets: IntArray) -> FloatArray:
        """That of the first item of each set alone, (R, n)."""
        if self.posterior.nests is None:
            return logit_chances(V.reshape(-1, V.shape[2]))[:, 0].reshape(V.shape[:2])
        each = (self.chances(V[:, place], user, rows_at(rows, one)) for place, one in enumerate(sets))
        return np.stack([one[:, 0] for one in each], axis=1)

    def expected_best(self, V: FloatArray, user: int | None, rows: ItemRows) -> FloatArray:
        """Expected utility of the item that is chosen, (R,): the log of the sum of exp V, of nested ones by nest."""
        return np.asarray(logsumexp(V, axis=1)) if self.posterior.nests is None else self._nested(V, user, rows)[1]

    def _nested(self, V: FloatArray, user: int | None, rows: ItemRows) -> tuple[FloatArray, FloatArray]:
        nests = self.posterior.nests
        assert nests is not None
        nest = nests_of(nests.name, self.features, rows.encoded)[1]
        return nested_log_chances(V, nest, nests.draws(-1 if user is None else user))

    def _draws(self, user: int | None) -> FloatArray:
        if user is None or user >= 0:
            return self.posterior.draws_of(-1 if user is None else user)
        return self.posterior.central


def spread_of_items(posterior: MixedLogitPosterior) -> float:
    """Mean over the items of E f_u(i)², centred, for somebody without answers: the prior of an unknown item."""
    X = posterior.X - posterior.X.mean(axis=0)
    mean, covariance = moments(posterior.unseen)
    inner = covariance + np.outer(mean, mean)
    return float(np.einsum("id,de,ie->", X, inner, X) / max(len(X) - 1, 1))


def said_of_nests(model: Any) -> list[str]:
    """Sentences on the dissimilarities of a nested logit; none of other models."""
    nests, found = model.posterior_.nests, model._estimates
    if nests is None or found is None:
        return []
    table, _ = table_of(found, found.errors)
    rows = [k for k, what in enumerate(table["attribute"]) if what == DISSIMILARITY]
    lines = []
    for k in rows:
        value, low, high = (table[name][k] for name in ("estimate", "lower", "upper"))
        about = f"{value:.3g}" if low is None else f"{value:.3g} ({low:.3g} to {high:.3g})"
        lines.append(
            f'Dissimilarity of the nest "{shown(table["level"][k])}" ("{shown(nests.name)}"): {about}; 1 is a logit.'
        )
        if value > 1.0:
            how = "the interval holds 1" if low is not None and low <= 1.0 else "and so is its interval"
            lines[-1] += (
                f" It is above 1 ({how}), which nobody has who takes what is best for all amounts of the attributes: "
                "take other nests, or a logit."
            )
    if rows and (flat := [one for k, one in enumerate(nests.levels) if (nests.of_crowd[:, k] == 1.0).all()
                          and (nests.of_items == k).any()]):  # fmt: skip
        lines.append(f"Never two in one choice, and so without a dissimilarity: {first_few(flat)}.")
    return lines


def chances(X: FloatArray, draws: FloatArray, apart: tuple[IntArray, FloatArray] | None = None) -> FloatArray:
    """Probabilities of k items with columns (k, d) to be chosen, averaged over draws (R, d); (k,).

    ``apart``: of a nested logit the nests of the items, (k,), and dissimilarities in the draws, (R, N).
    """
    V = X @ draws.T
    if apart is not None:
        return np.asarray(np.exp(nested_log_chances(V.T, *apart)[0]).mean(axis=0))
    V = np.exp(V - V.max(axis=0))
    return np.asarray((V / V.sum(axis=0)).mean(axis=1))


def chances_of_sets(model: Any, sets: list[list[Any]], users: Any = None, items: Any = None) -> list[FloatArray]:
    """Probabilities of each item of each set to be chosen from it, averaged over draws of the coefficients.

    ``users``: who chooses, one for all sets or one a set, None for somebody without answers; ``items``: attributes of
    items that the model does not know. An item that stands in a set several times is as many alternatives. DataError if
    a set has fewer than two.
    """
    asked = [list(one) for one in sets]
    if users is None or isinstance(users, str) or not hasattr(users, "__len__"):
        users = [users] * len(asked)
    person = _codes_of(model, list(users))
    codes, described = _sets_of(model, asked, items)
    rows = [rows_of(model, one, described) for one in codes]
    nests = model.posterior_.nests
    apart: list[tuple[IntArray, FloatArray] | None] = [None] * len(rows)
    if nests is not None:
        encoded = np.concatenate([model._space.matrix, described])
        nest = nests_of(nests.name, model.features_, encoded)[1]
        apart = [(nest[one], nests.draws(int(user))) for one, user in zip(codes, person, strict=True)]
    return [
        chances(X, model.posterior_.draws_of(int(user)), one) for X, user, one in zip(rows, person, apart, strict=True)
    ]


def predict_choice(model: Any, X: Any, items: Any) -> FloatArray:
    """As of the estimator; (n_rows,)."""
    found = ChoiceSets.of(X)
    cuts = zip(found.ptr[:-1].tolist(), found.ptr[1:].tolist(), strict=True)
    places = [found.order[start:stop] for start, stop in cuts if stop - start > 1]
    who = None if found.user is None else [found.user[int(place[0])] for place in places]
    sets = [[found.item[int(row)] for row in place] for place in places]
    proba = np.ones(len(found.order))
    for place, p in zip(places, chances_of_sets(model, sets, who, items), strict=True):
        proba[place] = p
    return proba


def rows_of(model: Any, codes: IntArray, described: FloatArray) -> FloatArray:
    """Columns of the items with these codes, (k, d), of which the last are of items that are not known."""
    X, new = model.posterior_.X, codes >= len(model.items_)
    rows = X[np.where(new, 0, codes)]
    if new.any():
        rows[new] = model.columns_.rows(described[codes[new] - len(X)])
    return rows


def _sets_of(model: Any, sets: list[list[Any]], items: Any) -> tuple[list[IntArray], FloatArray]:
    """Codes of the items of each set, (k,), and encoded attributes of new ones; DataError as :func:`predict_choice`."""
    codes, described = codes_of_sets(model, sets, items)
    for number, one in enumerate(codes):
        if len(one) < 2:
            said = "one item" if len(one) else "no items"
            raise DataError(f"set {number + 1} has {said}: a choice is between two or more")
    return codes, described


def _codes_of(model: Any, who: list[Any]) -> npt.NDArray[np.int64]:
    codes = np.full(len(who), -1, dtype=np.int64)
    named = [place for place, one in enumerate(who) if one is not None]
    if model.personal_ and model.users_ is not None and named:
        codes[named] = model.users_.codes(pl.Series([who[place] for place in named]), unknown="minus_one", what="user")
        lost = [who[place] for place in named if codes[place] < 0]
        if lost:
            warnings.warn(
                f"{len(lost)} of {len(who)} sets name someone without answers in this model (first: {lost[0]!r}): the "
                "population's prediction is given", DataWarning, stacklevel=5,
            )  # fmt: skip
    return codes


def score_of_choices(model: Any, answers: Comparisons, items: Any) -> float:
    """Mean log-likelihood of choices, in nats an answer."""
    choices = choices_of(answers)
    names = answers.items.labels(choices.item)
    sets = [list(names[first:last]) for first, last in zip(choices.ptr[:-1], choices.ptr[1:], strict=True)]
    if (choices.sign < 0).any():
        raise DataError("best-worst answers cannot be scored by the choice of one item. Leave them out")
    who = list(answers.users.labels(choices.user)) if answers.has_users else None
    found = np.array([one[0] for one in chances_of_sets(model, sets, who, items)])
    return float(choices.weight @ np.log(found)) / choices.n_answers


def shares_of(model: Any) -> FloatArray:
    """Shares of the classes, (K,)."""
    found = model.posterior_.law.share if model._member is None else model._member
    return np.asarray(found.mean(axis=0))


def classes(self: Any) -> Any:
    """Share of each class of the population, largest first, and the mean coefficients of its people.

    Returns
    -------
    table : data frame of the caller's kind
        Columns class (from 1), share, attribute, level, mean, sd; in the units of the attributes.
    """
    check_is_fitted(self)
    law, columns = self.posterior_.law, self.columns_
    average, n_classes, shares = np.eye(law.B.shape[2])[0], law.share.shape[1], shares_of(self)
    table: dict[str, list[Any]] = {name: [] for name in ("class", "share", "attribute", "level", "mean", "sd")}
    for k in range(n_classes):
        one = Mixture(law.B[:, k : k + 1], law.Omega[:, k : k + 1], np.ones((len(law.B), 1)))
        means = one.central(average, columns.kind, columns.price) @ columns.report.T
        for place, (attribute, level) in enumerate(columns.levels):
            sd = sd_of(means)[place] / self._student
            row = (k + 1, shares[k], attribute, level, means[:, place].mean(), sd)
            for name, value in zip(table, row, strict=True):
                table[name].append(value)
    return build_frame(table, self._backend)


def memberships(self: Any) -> Any:
    """How probable it is that each person is of each latent class, given their choices.

    Returns
    -------
    table : data frame of the caller's kind
        A row a person: user, "class 1" and so on (probabilities, which sum to 1; classes are numbered as in
        :meth:`classes`), largest (the number of the likeliest class) and share (its probability).

    Raises
    ------
    DataError
        If the model has no latent classes.
    """
    check_is_fitted(self)
    if self._member is None or self.users_ is None:
        raise DataError(
            'the model has no latent classes of people. Fit MixedLogit(distributions="fixed", n_classes=3), or rank '
            "with --model latent-class"
        )
    member = self._member
    columns = {f"class {k + 1}": member[:, k] for k in range(member.shape[1])}
    largest = {"largest": member.argmax(axis=1) + 1, "share": member.max(axis=1)}
    return build_frame({"user": list(self.users_.ids), **columns, **largest}, self._backend)


def summary(self: Any, errors: str | None = None) -> Summary:
    """The table of estimates that a referee asks for.

    Parameters
    ----------
    errors : {"hessian", "robust", "clustered"}, optional
        Whose standard errors z and p are by: of the Hessian; robust to a wrong model, each answer by itself (of classes
        and of coefficients that vary, each person); or robust and clustered by person, with Student's p. By default
        those of the model's intervals. Hierarchical Bayes has posterior standard deviations and intervals instead, and
        neither z nor p.

    Returns
    -------
    Summary
        ``print(summary)`` writes a table; ``summary.table`` is a frame, ``summary.facts`` log likelihoods, rho squared,
        AIC and BIC, and ``summary.markdown()`` and ``summary.latex()`` are for papers.

    Raises
    ------
    DataError
        If the model does not know these errors: of a model saved by an older Predilect, or clustered without people.

    Notes
    -----
    mixed-logit.md section 7. Robust errors have no factor for small samples, as in Apollo and Biogeme; clustered ones
    have that of statsmodels. BIC counts choices.
    """
    check_is_fitted(self)
    found: Estimates | None = self._estimates
    if found is None:
        raise DataError("the model was saved by an older Predilect, without its standard errors. Fit it again")
    errors = found.errors if errors is None else errors
    check_choice("errors", errors, ERRORS)
    by = "posterior" if found.facts["draws"] and "AIC" not in found.facts else errors
    if by != "posterior" and getattr(found, by) is None:
        raise DataError(
            "clustered errors need people with ids, and the answers do not say who gave them. Take errors='robust'"
        )
    table, rows = table_of(found, by)
    prior = self.report_["prior"]
    said = caution(prior) if "r_hat_means" in prior else ""
    return Summary(build_frame(table, self._backend), dict(found.facts), by, rows, said, not self._not_usable)


def likelihood_ratio(self: Any, nested: Any) -> Any:
    """Test by the ratio of likelihoods whether a smaller model explains the same choices as well.

    Parameters
    ----------
    nested : MixedLogit
        A fit to the same answers by maximum likelihood that is this one with something left out: an attribute, an
        interaction, a covariate of people, or the spread of a coefficient.

    Returns
    -------
    table : data frame of the caller's kind
        One row: statistic, twice the difference of the log likelihoods; df, how many parameters were left out; p, its
        probability under the smaller model, by chi-squared; said, where that is an upper bound.

    Raises
    ------
    DataError
        If either model has no maximum of the likelihood (hierarchical Bayes), the answers are not the same, numbers of
        classes differ, whose test has no known distribution, or the other model is not the smaller one.

    Notes
    -----
    Spreads are at the edge of what is possible where they are 0: p is then too large, for one spread twice as large as
    it should be (Self and Liang 1987). That what the other model has is in this one is checked by its attributes alone.
    """
    check_is_fitted(self)
    if type(nested) is not type(self):
        raise DataError("the test compares fits of MixedLogit. Give a fitted one that leaves something out")
    check_is_fitted(nested)
    mine, theirs = (one.summary().facts for one in (self, nested))
    if "AIC" not in mine or "AIC" not in theirs:
        raise DataError(
            "hierarchical Bayes has no maximum of the likelihood to compare. Fit both by method='simulated'"
        )
    about = np.array([[one["choices"], one["log likelihood at 0"], one["people"] or 0] for one in (mine, theirs)])
    if not np.allclose(about[0], about[1], rtol=1e-9):
        raise DataError(
            f"the models are of different answers ({mine['choices']:g} and {theirs['choices']:g} choices). Fit both to "
            "the same"
        )
    if self.n_classes != nested.n_classes:
        raise DataError("numbers of classes have no test of this kind. Compare their BIC")
    df, other = mine["parameters"] - theirs["parameters"], set(nested.attributes_) - set(self.attributes_)
    if df <= 0 or other:
        why = f"has {other.pop()}, which this one has not" if other else "has no fewer parameters"
        raise DataError(f"the model given {why}: give the smaller one, whose attributes are all in this one")
    statistic = max(0.0, 2.0 * (mine["log likelihood"] - theirs["log likelihood"]))
    edge = self.columns_.n_random > nested.columns_.n_random
    said = "an upper bound: spreads of 0 are at the edge" if edge else ""
    return build_frame(
        {"statistic": [statistic], "df": [df], "p": [float(chdtrc(df, statistic))], "said": [said]}, self._backend
    )
