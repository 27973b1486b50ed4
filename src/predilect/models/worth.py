"""What attributes are worth to people: ``model.worth``, of models that learn it from choices."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from predilect._base.arguments import check_arguments, check_choice, check_list, check_number, check_text
from predilect._base.text import either, quoted
from predilect._base.types import FloatArray, IntArray, is_number
from predilect.data import Comparisons, ItemFeatures, Vocabulary, build_frame
from predilect.data.attributes import refuse_left_out, term_of
from predilect.data.choices import choices_of
from predilect.data.features import FeatureSpace
from predilect.decisions import conjoint
from predilect.errors import DataError, DataWarning
from predilect.inference.likelihoods.special import Z_95
from predilect.models.reading import beyond, codes_of_sets, read_answers

_STEP = 1e-4  # of a price, for the slope of utilities at it


class OfAttributes:
    """Base of estimators that say what attributes are worth to people: what :class:`Worth` asks of them."""

    users_: Vocabulary | None
    _backend: str
    comparisons_: Comparisons | None
    features_: ItemFeatures | None
    items_: Vocabulary
    _space: FeatureSpace

    @property
    @abstractmethod
    def attributes_(self) -> list[str]:
        """Names of the attributes that answers tell the worth of: what follows from others is left out."""

    @abstractmethod
    def _person_draws(self) -> conjoint.PersonDraws:
        """Draws of everybody's coefficients; DataError without attributes."""

    @property
    @abstractmethod
    def seed_(self) -> int:
        """Seed of the fit."""

    @property
    def _student(self) -> float:
        """How many times too large the standard deviations of draws are, whose quantiles are Student's."""
        return 1.0

    @property
    def _has_normal_coefficients(self) -> bool:
        """Whether the population's coefficients are numbers, with errors that are normal, or Student's."""
        return False

    @abstractmethod
    def _rows(self, codes: IntArray, described: FloatArray) -> Any:
        """What :meth:`~predilect.decisions.conjoint.PersonDraws.utilities` takes, of the items with these codes, (k,).

        Those of items that are not known follow on the others: their encoded attributes are ``described`` (n_new, d).
        """

    @abstractmethod
    def _moved(self, rows: Any, place: int, change: FloatArray) -> Any:
        """The same of a set of which the item at ``place`` has other encoded attributes, (n_columns,)."""

    @abstractmethod
    def _user_code(self, user: Any) -> int:
        """Code of a person."""

    @property
    def worth(self) -> Worth:
        """What attributes are worth: ``model.worth.parts()``, ``.importances()``, ``.simulate(...)`` ..."""
        return Worth(self)


class Worth:
    """What attributes are worth to people, of one fitted model: ``model.worth``.

    Methods raise a DataError where the model was fitted without attributes.
    """

    def __init__(self, model: OfAttributes) -> None:
        self._model = model

    def parts(self) -> Any:
        """Everybody's coefficients.

        Returns
        -------
        table : data frame of the caller's kind
            Columns user, attribute, level (empty for a number, of a piecewise one the piece, in which it is the slope;
            the levels of a category sum to 0), mean, sd, lower, upper (95 % interval); in the units of the attributes,
            and of the noise of that person's answers.
        """
        model = self._model
        draws = model._person_draws()
        apart = model.users_ is not None and draws.n_people == len(model.users_)
        users = list(model.users_.ids) if model.users_ is not None and apart else ["everyone"]
        table = conjoint.part_worths(draws, users)
        return build_frame(table | {"sd": table["sd"] / model._student}, model._backend)

    def coefficients(self) -> Any:
        """Means of the population's coefficients, and how people differ in them, in the units of the attributes.

        Returns
        -------
        table : data frame of the caller's kind
            Columns attribute, level (empty for a number; the levels of a category sum to 0), mean, sd, lower, upper (of
            the population's mean, of a log-normal coefficient its median; 95 % interval), spread, spread_lower,
            spread_upper (standard deviation between people; its interval is from nearly 0 to very much where answers
            say little of how people differ). In the space of willingness to pay: amounts times the coefficient of the
            price.

        Notes
        -----
        Of :class:`~predilect.Population` they are those of a model of the attributes alone, in units of the median
        person's noise: what items have to themselves is noise too, so that they may be a little smaller than the mean
        of the part-worths (people.md, "The population of coefficients"). Of a logit with fixed
        coefficients the interval is 1.96 sd each way, or Student's where errors are clustered.
        """
        model = self._model
        table = conjoint.coefficients(model._person_draws())
        if model._has_normal_coefficients:
            table |= {name: table["mean"] + z * table["sd"] for name, z in (("lower", -Z_95), ("upper", Z_95))}
        return build_frame(table | {"sd": table["sd"] / model._student}, model._backend)

    def importances(self, of: str = "population") -> Any:
        """Share of the range of a person's utilities over the items that each attribute makes.

        Parameters
        ----------
        of : {"population", "respondents"}, default "population"
            Of whom the mean is, and its interval: of the population that the people of the fit are a sample of, or of
            these people alone, which is narrower.

        Returns
        -------
        table : data frame of the caller's kind
            Columns attribute, importance (mean over people; they sum to 1), spread (standard deviation between people),
            lower, upper (95 % interval of the mean), of.

        Notes
        -----
        people.md, "Averages over people". A term that is a product has a range of its own, beside those
        of its factors.
        """
        model = self._model
        return build_frame(conjoint.importances(model._person_draws(), of, model.seed_), model._backend)

    def willingness_to_pay(self, price: str, user: Any = None) -> Any:
        """What one unit of each attribute is worth, in units of the price.

        Parameters
        ----------
        price : str
            An attribute that is a number.
        user : id, optional
            A person; by default the population's central one.

        Returns
        -------
        table : data frame of the caller's kind
            Columns attribute, level, median, lower, upper (quantiles of the ratio over the draws, 95 %), said (in words
            where the price may be without effect: the ratio is then unbounded). Of a category the worth of a level is
            against the mean of all levels. Of a mixed logit whose price has one sign for all people (log-normal, or
            fixed) ``median`` is that over people, and mean, mean_lower, mean_upper are their mean with its interval.

        Notes
        -----
        mixed-logit.md section 6. The mean over people is what all would pay together, by each; ``said`` tells where
        a quarter of it or more comes from the 1 % who would pay most. No mean is known of a ratio to a normal price.
        """
        model = self._model
        check_arguments(price=price, user=user)
        draws = model._person_draws()
        if model.features_ is not None:
            refuse_left_out(price, model.features_, model.attributes_)
        code = -1 if user is None else model._user_code(user)
        term = term_of(price, model.attributes_)
        return build_frame(conjoint.willingness_to_pay(draws, term, code), model._backend)

    def contrasts(self, attribute: str, user: Any = None) -> Any:
        """Differences between the levels of a category, each with its interval.

        Parameters
        ----------
        attribute : str
            A category.
        user : id, optional
            A person; by default the population's central one.

        Returns
        -------
        table : data frame of the caller's kind
            A row for each two levels: level, against, mean (of the one minus the other), sd, lower, upper (95 %
            interval).

        Raises
        ------
        DataError
            If the attribute is no category whose worth answers tell.
        """
        model = self._model
        check_arguments(attribute=attribute, user=user)
        draws = model._person_draws()
        if model.features_ is not None:
            refuse_left_out(attribute, model.features_, model.attributes_)
        code = -1 if user is None else model._user_code(user)
        table = conjoint.contrasts(draws, term_of(attribute, model.attributes_), code)
        return build_frame(table | {"sd": table["sd"] / model._student}, model._backend)

    def fit_of_people(self, X: Any = None) -> Any:
        """How well everybody's choices are explained, and who answers no better than chance.

        Parameters
        ----------
        X : Comparisons or data frame, optional
            Answers; by default those of the fit, which a saved model does not hold.

        Returns
        -------
        table : data frame of the caller's kind
            A row a person: user; choices (an order is one after the other, best-worst two); rlh, the root likelihood:
            the geometric mean of the probabilities of what was chosen, by the person's own coefficients; chance, what
            guessing gives (the geometric mean of 1 over the size of the set); p_guessing, how probable it is that the
            person guessed, if that was as probable before as being one of the population; guesses, whether that is
            above .9: then guessing explains the answers much better than the population does.

        Raises
        ------
        DataError
            If a task is neither a choice of the best, best-worst nor an order, or a saved model is given no answers.

        Notes
        -----
        A person's coefficients are learned from the same choices, so that rlh of somebody who guesses lies above chance
        too: read p_guessing, or what people choose in tasks that were held out. P(guessed) / P(did not) is
        Π 1/k / E Π p(chosen), the mean over the population of coefficients, before the person's answers. Of 361 people
        who chose 12 times from four, 40 of whom were made to guess, 28 of these and 7 others are above .9, 39 and 20
        above .5.
        """
        model = self._model
        draws = model._person_draws()
        answers = self._held_answers() if X is None else read_answers(X, None)
        choices = choices_of(answers)
        people, first = np.unique(choices.user, return_index=True)
        names = answers.users.labels(people)
        of_person = np.split(choices.item, choices.ptr[first[1:]])
        sets = [list(answers.items.labels(np.unique(items))) for items in of_person]
        who: list[int | None] = [0] * len(names)
        if model.users_ is not None:
            codes = model.users_.codes(names, unknown="minus_one", what="user").tolist()
            who = [None if code < 0 else code for code in codes]
        codes, described = codes_of_sets(model, sets, None)
        rows = [model._rows(one, described) for one in codes]
        found = conjoint.fit_of_people(draws, choices, who, rows)
        return build_frame({"user": names, **found}, model._backend)

    def _held_answers(self) -> Comparisons:
        model = self._model
        if model.comparisons_ is None:
            raise DataError("a saved model does not hold the answers of its fit. Give them: fit_of_people(answers)")
        return model.comparisons_

    def simulate(
        self, scenarios: Mapping[str, Sequence[Any]] | Sequence[Any], rule: str = "share", *, items: Any = None,
        of: str = "population",
    ) -> Any:  # fmt: skip
        """Market shares of items that are on offer together: the mean over the people of the fit.

        Parameters
        ----------
        scenarios : mapping of name to list of item ids, or one list
            What is on offer.
        rule : {"share", "first_choice", "randomised"}, default "share"
            Choice by the probabilities of the model; of what is best by mean utilities; of what is best in each draw.
        items : data frame, optional
            Attributes of items that the model does not know, one row an item; none is empty that no item of the fit
            lacks.
        of : {"population", "respondents"}, default "population"
            Of whom the share is, and its interval: as in :meth:`importances`.

        Returns
        -------
        table : data frame of the caller's kind
            Columns scenario, item, share, lower, upper (95 % interval: of the draws below the share, which is their
            mean, and of those above it; of "first_choice" with the draws of "randomised"), of.

        Raises
        ------
        DataError
            If a scenario has fewer than two items or one twice, or an item is not known and comes without one of its
            attributes.

        Warns
        -----
        DataWarning
            If numbers of new items lie outside the range of those of the fit: shares then follow a straight line.
        """
        model = self._model
        check_arguments(items=items)
        draws = model._person_draws()
        sets = offered_in(scenarios)
        codes, described = codes_of_sets(model, list(sets.values()), items)
        self._warn_beyond(described)
        rows = (model._rows(one, described) for one in codes)
        return self._shares(draws, "scenario", zip(sets, sets.values(), rows, strict=True), rule, of)

    def price_curve(
        self, scenario: Sequence[Any], item: Any, price: str, values: Sequence[float], rule: str = "share", *,
        items: Any = None, of: str = "population",
    ) -> Any:  # fmt: skip
        """Market shares of what is on offer while the price, or any number, of one item changes.

        Parameters
        ----------
        scenario : list of item ids
            What is on offer.
        item : id
            The one whose price changes; all else of it stays.
        price : str
            The attribute.
        values : sequence of float
            Its values.
        rule, items, of
            As in :meth:`simulate`.

        Returns
        -------
        table : data frame of the caller's kind
            Columns price (the value), item, share, lower, upper, of, for all items on offer. Warns as :meth:`simulate`.
        """
        model = self._model
        check_arguments(scenario=scenario, price=price, values=values)
        draws, values = model._person_draws(), _finite(values)
        offered = _offered("", scenario)
        place = _place_of(offered, item, price)
        codes, encoded = self._on_offer(offered, price, items)
        features, described = model.features_, encoded[len(model.items_) :]
        assert features is not None
        changes = [features.shifted(encoded[codes[place]], price, value) for value in values]
        others = encoded[[code for code in np.unique(codes) if code >= len(model.items_) and code != codes[place]]]
        self._warn_beyond(np.concatenate([encoded[codes[place]] + np.array(changes), others]))
        rows = model._rows(codes, described)
        moved = [(value, offered, model._moved(rows, place, one)) for value, one in zip(values, changes, strict=True)]
        return self._shares(draws, "price", moved, rule, of)

    def elasticities(self, scenario: Sequence[Any], price: str, *, items: Any = None, of: str = "population") -> Any:
        """Elasticities of market shares by a price, or any number, of each item on offer.

        Parameters
        ----------
        scenario : list of item ids
            What is on offer.
        price : str
            The attribute.
        items, of
            As in :meth:`simulate`.

        Returns
        -------
        table : data frame of the caller's kind
            A row for each two items: item (whose share), changes (whose price; not of items without one), elasticity
            (per cent of the share by one per cent of the price), lower, upper (95 % interval), of. Own elasticities are
            those with the same item twice.

        Raises
        ------
        DataError
            As :meth:`price_curve`.
        """
        model = self._model
        check_arguments(scenario=scenario, price=price)
        draws, ids = model._person_draws(), _offered("", scenario)
        k = len(ids)
        codes, encoded = self._on_offer(ids, price, items)
        rows = model._rows(np.tile(codes, 2), encoded[len(model.items_) :])
        assert model.features_ is not None
        now, step, priced = self._steps_of_price(price, encoded[codes])
        for j in priced:
            change = model.features_.shifted(encoded[codes[j]], price, float(now[j] + step[j]))
            rows = model._moved(rows, k + j, change)
        found = conjoint.elasticities(draws, rows, step, now, of, model.seed_)
        table = {"item": [one for one in ids for _ in priced], "changes": [ids[j] for j in priced] * k}
        columns = zip(("elasticity", "lower", "upper"), (part[:, priced].ravel() for part in found), strict=True)
        return build_frame({**table, **dict(columns), "of": [of] * k * len(priced)}, model._backend)

    def surplus(
        self, scenarios: Mapping[str, Sequence[Any]], price: str, *, items: Any = None, of: str = "population"
    ) -> Any:
        """Consumer surplus: how much more a choice from one scenario is worth to people than from the first, in money.

        Parameters
        ----------
        scenarios : mapping of name to list of item ids
            What is on offer, in the first now, say, and in each other instead.
        price : str
            The attribute that is money.
        items, of
            As in :meth:`simulate`.

        Returns
        -------
        table : data frame of the caller's kind
            A row a scenario: scenario, surplus (of one choice, mean over people, in units of the price; of the first
            scenario 0), lower, upper (95 % interval), of.

        Raises
        ------
        DataError
            As :meth:`price_curve`, if there are fewer than two scenarios, or where utility may rise with the price in
            some draw of somebody: the amount then has no mean.

        Notes
        -----
        The change of the expected utility of what is chosen, over the fall of utility by one unit of the price (Small
        and Rosen 1981); of a logit the change of log Σ exp V (the logsum). Effects of income are not in it. Where the
        price is piecewise, a unit is one at the price of the first item that has one.
        """
        check_arguments(items=items)
        model = self._model
        draws, offered = model._person_draws(), offered_in(scenarios)
        if len(offered) < 2:
            raise DataError("surplus is a difference between scenarios. Give two or more, by name")
        ids = [one for some in offered.values() for one in some]
        unique = list({str(one): one for one in ids}.values())
        codes, encoded = self._on_offer(unique, price, items)
        assert model.features_ is not None
        now, steps, priced = self._steps_of_price(price, encoded[codes])
        self._warn_beyond(encoded[len(model.items_) :])
        moved, step = priced[0], float(steps[priced[0]])
        rows = model._rows(np.append(codes, codes[moved]), encoded[len(model.items_) :])
        change = model.features_.shifted(encoded[codes[moved]], price, float(now[moved]) + step)
        rows = model._moved(rows, len(codes), change)
        place = {str(one): k for k, one in enumerate(unique)}
        sets = [np.array([place[str(one)] for one in some]) for some in offered.values()]
        mean, lower, upper = conjoint.surplus(draws, price, rows, moved, step, sets, of, model.seed_)
        table = {"scenario": list(offered), "surplus": mean, "lower": lower, "upper": upper, "of": [of] * len(sets)}
        return build_frame(table, model._backend)

    def best_price(
        self, scenario: Sequence[Any], item: Any, price: str, values: Sequence[float], maximise: str = "revenue", *,
        cost: float = 0.0, items: Any = None, of: str = "population",
    ) -> Any:  # fmt: skip
        """What each of several prices of one item would bring, and which brings the most.

        Parameters
        ----------
        scenario, item, price, values
            As in :meth:`price_curve`.
        maximise : {"share", "revenue", "margin"}, default "revenue"
            The share of the item; times its price; or times its price less ``cost``.
        cost : float, default 0
            Of one that is sold ("margin").
        items, of
            As in :meth:`simulate`.

        Returns
        -------
        table : data frame of the caller's kind
            A row a price: price, brings (for each person who chooses), lower, upper (95 % interval), p_best (the
            probability that no other of the prices brings more), is_best (of the row with the largest ``brings``), of.

        Raises
        ------
        DataError
            As :meth:`price_curve`.
        """
        model = self._model
        check_choice("maximise", maximise, conjoint.AIMS)
        check_arguments(scenario=scenario, price=price, values=values)
        check_number("cost", cost)
        draws, ids, values = model._person_draws(), _offered("", scenario), _finite(values)
        place, k = _place_of(ids, item, price), len(ids)
        codes, encoded = self._on_offer(ids, price, items)
        assert model.features_ is not None
        rows = model._rows(np.append(codes, np.repeat(codes[place], len(values))), encoded[len(model.items_) :])
        changes = [model.features_.shifted(encoded[codes[place]], price, value) for value in values]
        self._warn_beyond(encoded[codes[place]] + np.array(changes))
        sets = []
        for number, (value, change) in enumerate(zip(values, changes, strict=True)):
            rows = model._moved(rows, k + number, change)
            there = np.arange(k)
            there[place] = k + number
            worth = {"share": 1.0, "revenue": value, "margin": value - cost}[maximise]
            sets.append(conjoint.Offer(there, np.array([place]), np.array([worth])))
        return self._best({"price": values}, draws, rows, sets, of)

    def best_line(
        self, ours: Sequence[Any], against: Sequence[Any], size: int, maximise: str = "share", *,
        price: str | None = None, cost: Mapping[Any, float] | float = 0.0, items: Any = None, of: str = "population",
    ) -> Any:  # fmt: skip
        """Which of our offers to bring to market together, against others that are there.

        Parameters
        ----------
        ours : list of item ids
            What could be offered.
        against : list of item ids
            What others offer, and the outside option.
        size : int
            Number of offers in a line.
        maximise
            As in :meth:`best_price`, the sum over our offers; by default "share".
        price : str, optional
            The attribute that is the price; needed for "revenue" and "margin".
        cost : float or mapping of item to float, default 0
            Of one that is sold ("margin").
        items, of
            As in :meth:`simulate`.

        Returns
        -------
        table : data frame of the caller's kind
            A row a line, the best first: line (ids with " + " between them), brings, lower, upper, p_best, is_best, of.

        Raises
        ------
        DataError
            As :meth:`simulate`; if there are more than 2 000 lines, or a cost is missing.
        """
        model = self._model
        check_choice("maximise", maximise, conjoint.AIMS)
        check_arguments(ours=ours, against=against, size=size)
        check_text("price", price, None, of="the name of an attribute")
        ours = list(ours)
        for one in cost.values() if isinstance(cost, Mapping) else [cost]:
            check_number("cost", one)
        if maximise != "share" and price is None:
            raise DataError(f"{maximise} needs the attribute that is the price ({either('--price NAME', 'price=...')})")
        draws, ids = model._person_draws(), _offered("", [*ours, *against])
        codes, encoded = self._on_offer(ids, price, items)
        lacking = [one for one in ours if one not in cost] if isinstance(cost, Mapping) else []
        if lacking:
            raise DataError(f"cost names no amount for {quoted(lacking[0])}. Give one for each of our offers")
        worth = np.ones(len(ours))
        if price is not None and maximise != "share" and model.features_ is not None:
            if (without := model.features_.lack(encoded[codes[: len(ours)]], price)).any():
                raise DataError(f'our offer {quoted(ours[int(np.argmax(without))])} has no "{price}"')
            worth = model.features_.numbers(encoded[codes])[price][: len(ours)]
            if maximise == "margin":
                worth = worth - np.array([cost[one] if isinstance(cost, Mapping) else cost for one in ours])
        others = np.arange(len(ours), len(ids))
        lines = conjoint.lines_of(len(ours), size)
        sets = [conjoint.Offer(np.append(np.array(one), others), np.arange(size), worth[list(one)]) for one in lines]
        names = [" + ".join(str(ours[k]) for k in one) for one in lines]
        rows = model._rows(codes, encoded[len(model.items_) :])
        return self._best({"line": names}, draws, rows, sets, of, in_order=True)

    def _on_offer(self, ids: list[Any], price: str | None, items: Any) -> tuple[IntArray, FloatArray]:
        """Codes of items on offer, and encoded attributes of all; DataError if there is no such price."""
        model = self._model
        if model.features_ is None:
            raise DataError(f"the model was fitted without attributes, so that no {price or 'price'} can change")
        if price is not None:
            refuse_left_out(price, model.features_, model.attributes_)
        (codes,), described = codes_of_sets(model, [ids], items)
        encoded = np.concatenate([model._space.matrix, described])
        if price is not None:
            model.features_.shifted(np.zeros(encoded.shape[1]), price, 0.0)
        return codes, encoded

    def _steps_of_price(self, price: str, offered: FloatArray) -> tuple[FloatArray, FloatArray, list[int]]:
        """Prices of what is on offer, encoded, and steps for slopes at them, (k,) each; and places of what has a price.

        DataError if nothing has one.
        """
        features = self._model.features_
        assert features is not None
        priced = np.flatnonzero(~features.lack(offered, price)).tolist()
        if not priced:
            raise DataError(f'nothing on offer has the attribute "{price}"')
        now, known = (features.numbers(table)[price] for table in (offered, self._model._space.matrix))
        return now, _STEP * np.maximum(np.abs(now), _STEP * float(np.ptp(known))), priced

    def _best(
        self, labels: dict[str, list[Any]], draws: conjoint.PersonDraws, rows: Any, sets: list[conjoint.Offer], of: str,
        in_order: bool = False,
    ) -> Any:  # fmt: skip
        """What sets bring, with what they are called."""
        model = self._model
        found = conjoint.best_of(draws, rows, sets, of, model.seed_)
        order = np.argsort(-found[0], kind="stable") if in_order else np.arange(len(sets))
        table: dict[str, Any] = {name: [column[k] for k in order] for name, column in labels.items()}
        table |= {name: part[order] for name, part in zip(("brings", "lower", "upper", "p_best"), found, strict=True)}
        table["is_best"] = order == int(np.argmax(found[0]))
        return build_frame({**table, "of": [of] * len(sets)}, model._backend)

    def _warn_beyond(self, offers: FloatArray) -> None:
        """Warn of encoded attributes, (n, n_columns), outside the range of those of the items of the fit."""
        model = self._model
        if model.features_ is None:
            return
        known = model.features_.numbers(model._space.matrix[model._space.known])
        ranges = {name: (float(values.min()), float(values.max())) for name, values in known.items()}
        n, where = beyond(model.features_.numbers(offers), ranges)
        if n:
            warnings.warn(
                f"{n} of {len(offers)} offers lie outside the range of those the model learned from ({where}): there "
                "shares follow a straight line that no answer has tested", DataWarning, stacklevel=3,
            )  # fmt: skip

    def _shares(
        self, draws: conjoint.PersonDraws, label: str, offered: Iterable[tuple[Any, list[Any], Any]], rule: str, of: str
    ) -> Any:
        """Shares of sets, each with a label, its items and their columns."""
        model = self._model
        table: dict[str, list[Any]] = {name: [] for name in (label, "item", "share", "lower", "upper", "of")}
        for name, ids, rows in offered:
            shares = (values.tolist() for values in conjoint.market_shares(draws, rows, rule, of, model.seed_))
            columns = ([name] * len(ids), ids, *shares, [of] * len(ids))
            for column, values in zip(table.values(), columns, strict=True):
                column += values
        return build_frame(table, model._backend)


# What the methods were called while they were the model's own.
_FORMER = {
    name: name
    for name in (
        "coefficients", "importances", "willingness_to_pay", "contrasts", "fit_of_people", "simulate", "price_curve",
        "elasticities", "best_price", "best_line",
    )
} | {"part_worths": "parts"}  # fmt: skip


def former(name: str) -> Any:
    """The method of a model that a method of its worth was before."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        now = f"worth.{_FORMER[name]}"
        warnings.warn(f"model.{name}(...) is model.{now}(...) now", FutureWarning, stacklevel=2)
        return getattr(self.worth, _FORMER[name])(*args, **kwargs)

    method.__name__, method.__doc__ = name, f"The former name of ``worth.{_FORMER[name]}``."
    return method


for _name in _FORMER:
    setattr(OfAttributes, _name, former(_name))


def _finite(values: Sequence[float]) -> list[float]:
    """The values that a number takes; DataError if there are none, or one is not finite."""
    found = list(values)
    if not found or not all(is_number(value, -math.inf) for value in found):
        raise DataError(f"values should be numbers that the attribute takes in turn, got {quoted(found)}")
    return [float(value) for value in found]


def _place_of(ids: list[Any], item: Any, price: str) -> int:
    """Where an item is on offer; DataError if it is not."""
    place = next((k for k, one in enumerate(ids) if str(one) == str(item)), -1)
    if place < 0:
        raise DataError(f"item {quoted(item)}, whose {price} should change, is not on offer")
    return place


def offered_in(scenarios: Any) -> dict[str, list[Any]]:
    """What is on offer in each scenario, or in the only one, by its name; DataError where that is no choice."""
    several = scenarios if isinstance(scenarios, Mapping) else {"": scenarios}
    if not several:
        raise DataError("there is no scenario. Give lists of items by name, or one list")
    return {str(name): _offered(str(name), one) for name, one in several.items()}


def _offered(name: str, items: Sequence[Any]) -> list[Any]:
    """What is on offer; DataError if that is no choice."""
    where = f'scenario "{name}"' if name else "the scenario"
    check_list(where, items, of="items")
    found = list(items)
    if len(found) < 2 or len(set(map(str, found))) < len(found):
        said = "one item" if len(found) == 1 else "an item twice" if found else "no items"
        how = ". Give the second one another name, with the same attributes" if said == "an item twice" else ""
        raise DataError(f"{where} has {said}: a choice is between two or more different items{how}")
    return found
