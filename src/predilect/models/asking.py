"""What is asked of a fitted model: the next question, whether to act, which is better, what a score is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from predilect._base.arguments import check_arguments, check_choice, check_count
from predilect._base.text import either, quoted
from predilect.data import build_frame
from predilect.data.frames import is_list
from predilect.decisions import acting, crowd, outlook, questions, scales
from predilect.decisions import versus as of_pairs
from predilect.decisions.acting import Decision, Loss
from predilect.decisions.crowd import TARGETS, Questions, Weights, weights_of
from predilect.decisions.outlook import Outlook
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.models.registry import estimator


class Asking:
    """Base of estimators: decisions from their posterior."""

    _asked: Any = None  # weights of questions by what they are for, and the posterior they are of

    def suggest(
        self, user: Any = None, n: int = 1, *, target: str = "person", k: int = 1, candidates: Any = None,
        strategy: str = "bald", exclude: Any = None, repeat: bool = False, retired: Iterable[Any] = (),
        difficulty: float | None = None, random_state: Any = 0,
    ) -> Any:  # fmt: skip
        """Choose the pairs to ask one person next, the most useful first.

        Parameters
        ----------
        target : {"person", "board", "best", "top", "random"}, default "person"
            What the answers should tell: what this person prefers; where the items stand on the crowd's board; which
            item is first on it; which are the first ``k``; or any pair. All but the first are drawn: many people who
            are asked at once are asked different things.
        k : int, default 1
            Of "top".
        retired : list of items, optional
            Items that are not asked about. Not with "person", where ``candidates`` say so.
        difficulty : float, optional
            No pair of which the likelier answer is less likely than this, for somebody new. Not with "person".
        user : id, optional
            Who is asked; by default, and with a warning for an id that the model does not know, somebody without
            answers.
        candidates : data frame, or list of items, optional
            Pairs to choose from (columns left and right, and user where they are several people's, of which this
            person's are taken), or items any two of which may be asked; by default all items. Only items that the model
            knows.
        n : int, default 1
            How many pairs. They are chosen one after the other, each for what it adds to those before, so no two of
            them ask nearly the same.
        strategy : {"bald", "entropy", "eubo", "random"}, default "bald"
            Criterion: information about the person's utilities; maximum entropy (the answer that is hardest to predict,
            noise or not); the best item (the pair whose better one is expected to be best); none. Only with "person".
        exclude : data frame, optional
            Further pairs not to ask, such as those on the person's screen, and all that were answered if the model was
            loaded without its answers; where it names people, only this person's.
        repeat : bool, default False
            Whether pairs that the person answered may be asked again.
        random_state : int, default 0
            Seed of what is drawn: pairs of equal scores, with "random" any pair, and all questions about the crowd; or
            a NumPy Generator, or None to draw anew each time.

        Returns
        -------
        questions : data frame of the caller's kind
            Columns left, right, score, p_left, p_tie, p_right. Scores are bits, with "eubo" the expected utility of the
            better item above the average item; with "random" bits of information. Of a pair after the first the score
            is what it adds. Fewer than n rows if there are not so many pairs, none at all if every pair was answered.
            Which side is shown left is yours to shuffle: pairs come in the order of the items, or of ``candidates``.
            About the crowd the score is the bits of one such answer about the board, sides are drawn, and a further
            column, probability, says with which chance a pair was drawn, given those above it.

        Raises
        ------
        DataError
            If the strategy, an item, or the table of candidates cannot be used.

        Notes
        -----
        collaborative.md section 5. A pair asked, and not answered yet, is taken for an observation of its margin
        with the noise of one answer: the Gaussian is conditioned on it, averaged over the answer. Pairs without
        variance, of identical items, come after all others. Of pairs whose scores are equal but for rounding one is
        drawn, by ``random_state``, the person's id and the number of their answers: so newcomers, of whom the model
        knows the same, are asked different things, and the same state has the same questions. Five questions out of all
        499 500 pairs of 1 000 items take 30 to 70 ms; of more items a shortlist of 1 000 is made, those with the
        largest variance, with "eubo" those that may be best. Of a model whose margins are not those of utilities
        (GaSPK), the 5 000 pairs that are best by the items' scores are predicted one by one. Probabilities are those of
        ``model.predict_proba`` at equal covariates; scores take the person's variances as boards have them.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, -1])
        >>> question = model.suggest("ann")
        >>> question["left"][0], question["right"][0]
        ('juice', 'milk')
        """
        fitted: Any = self
        check_arguments(n=n, k=k, retired=retired, difficulty=difficulty, repeat=repeat, random_state=random_state)
        check_choice("target", target, ("person", *TARGETS))
        if target != "person":
            _refuse_strategy(strategy)
            retired = self._not_among(candidates, retired)
            weights = self._weights(target, k=k, retired=retired, difficulty=difficulty)
            return crowd.suggest_about_crowd(
                self, weights, user, n, exclude=exclude, repeat=repeat, random_state=random_state
            )
        return questions.suggest(
            fitted, user, candidates, n, strategy, exclude=exclude, repeat=repeat, random_state=random_state
        )

    def questions(
        self, target: str = "board", *, k: int = 1, retired: Iterable[Any] = (), difficulty: float | None = None,
        quota: bool | None = None, shown: Any = None, eps: float = 0.1,
    ) -> Questions:  # fmt: skip
        """Prepare questions about the crowd's board, which then take about a millisecond each.

        Parameters
        ----------
        target, k, retired, difficulty
            As of :meth:`suggest`, without "person".
        quota : bool, optional
            Whether, while some item was shown less than half as often as the average one, only pairs with such an item
            are asked; by default yes, but with "random".
        shown : mapping of item to number, optional
            How often items were shown; by default the answers on each.
        eps : float, default 0.1
            Share of questions that are any pair, so that no pair has a chance below eps / number of pairs.

        Returns
        -------
        Questions
            With methods ``ask(user, n)``, ``draw(user, n)`` (the pairs alone, which is faster), ``ask_each(users)`` and
            ``ask_set(user, size)``. The weights of pairs are those of the board as it is now; what a person has
            answered is looked up when they are asked.

        Raises
        ------
        DataError
            If a setting is out of range, or an item is not known.

        Notes
        -----
        docs/math/population.md#what-to-ask-the-crowd. With "board" a pair is drawn by exp(I / τ), I being the
        information of the answer about the consensus; the weights of pairs are those of somebody without answers, and
        within blocks of 64 pairs those of the person. With "best" and "top" by top-two Thompson sampling (Russo 2016),
        from 4 000 draws of the board. Probabilities are exact. Some 5 to 40 ms for 200 items, and a question about one;
        of more than 1 000 items 1 000 are drawn.

        Examples
        --------
        >>> import predilect
        >>> questions = predilect.Population().fit(None, items=["tea", "milk", "juice"]).questions()
        >>> questions.ask("ann", random_state=0)[0].probability
        0.3333333333333333
        """
        check_choice("target", target, TARGETS)
        check_arguments(k=k, retired=retired, difficulty=difficulty, quota=quota, shown=shown, eps=eps)
        return Questions(self, self._weights(
            target, k=k, retired=retired, difficulty=difficulty, quota=quota, shown=shown, eps=eps
        ))  # fmt: skip

    def _weights(self, target: str, **settings: Any) -> Weights:
        """Weights of pairs in the present state of the model, which are made once."""
        model: Any = self
        settings["retired"] = tuple(settings["retired"])
        posterior, shown = model.posterior_, settings.get("shown")
        held = self._asked
        if held is None or held[0] is not posterior:
            held = self._asked = posterior, {}
        counts = None if shown is None else tuple(sorted(shown.items(), key=repr))
        retired = tuple(model.items_.codes(settings["retired"]).tolist())
        key = target, tuple(sorted((settings | {"shown": counts, "retired": retired}).items(), key=lambda one: one[0]))
        if key not in held[1]:
            held[1][key] = weights_of(model, target, **settings, random_state=model.seed_)
        return held[1][key]

    def _not_among(self, candidates: Any, retired: Iterable[Any]) -> tuple[Any, ...]:
        """Items that are not asked about: those that are retired, and all but the candidates."""
        model: Any = self
        if candidates is None:
            return tuple(retired)
        if not is_list(candidates):
            raise DataError(
                "questions about the crowd are drawn from all pairs of some items: give candidates=[item, ...], or "
                'target="person"'
            )
        chosen = set(model.items_.codes(candidates).tolist())
        return (*retired, *(one for code, one in enumerate(model.items_.ids) if code not in chosen))

    def outlook(
        self, claim: str = "best", level: float = 0.95, *, k: int = 1, n_people: int | None = None,
        retired: Iterable[Any] = (), random_state: int = 0,
    ) -> Outlook:  # fmt: skip
        """Whether a claim about the crowd's board is settled, and about how many more answers will settle it.

        Parameters
        ----------
        claim : {"best", "top", "tiers"}, default "best"
            Which item is first; which are the first ``k``, as a set; or that the leader of each tier is above that of
            the next.
        level : float, default 0.95
            The probability from which a claim is settled.
        k : int, default 1
            Of "top".
        n_people : int, optional
            How many people there are in all, where no others will answer: then there is an end to what they can tell.
        retired : items, optional
            Which the claim is not about.
        random_state : int, default 0
            Seed of the draws.

        Returns
        -------
        Outlook
            Its text says it in a sentence.

        Raises
        ------
        DataError
            If a setting is out of range, or all items are in one tier.

        Notes
        -----
        docs/math/population.md#when-to-stop. The answers to come are taken to tell what answers told so far, and people
        to answer as often; so the number is a guess, good to a factor of two at best. Some tenths of a second.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": list("abcdefgh"), "left": ["tea"] * 8, "right": ["milk"] * 8, "winner": ["tea"] * 8}
        >>> model = predilect.Population().fit(answers)
        >>> model.outlook().items
        ('tea',)
        """
        check_arguments(k=k, n_people=n_people, retired=retired, random_state=random_state)
        return outlook.outlook(self, claim, level, k=k, n_people=n_people, retired=retired, random_state=random_state)

    def suggest_each(
        self, candidates: Any, *, target: str | None = None, k: int = 1, strategy: str = "bald", exclude: Any = None,
        repeat: bool = False, retired: Iterable[Any] = (), difficulty: float | None = None, random_state: Any = 0,
    ) -> Any:  # fmt: skip
        """Choose one question for each of many people, each from a pool of their own, or about the crowd's board.

        Parameters
        ----------
        candidates : data frame, or list of ids
            Columns user, left and right: the pools of all people. Or the people themselves, who are asked about the
            board.
        target : str, optional
            With a list of people, as of :meth:`suggest`; by default "board". No pair is asked twice while a person has
            others left.
        strategy, repeat, random_state, k, exclude, retired, difficulty
            As :meth:`suggest` takes them.

        Returns
        -------
        questions : data frame of the caller's kind
            One row a person who has a pair left, sorted by user: columns user, left, right, score, p_left, p_tie,
            p_right. Of a list of people in their order, with a column probability.

        Raises
        ------
        DataError
            If a column or an id is missing, or an item is not known.

        Notes
        -----
        The choice of :meth:`suggest` with n = 1, in one prediction for everybody: a microsecond or two a candidate.
        """
        fitted: Any = self
        check_arguments(k=k, retired=retired, difficulty=difficulty, repeat=repeat, random_state=random_state)
        check_choice("target", target, (None, "person", *TARGETS))
        if is_list(candidates):
            _refuse_strategy(strategy)
            weights = self._weights(target or "board", k=k, retired=retired, difficulty=difficulty)
            return crowd.suggest_to_each(
                self, weights, candidates, exclude=exclude, repeat=repeat, random_state=random_state
            )
        if target not in (None, "person"):
            raise DataError(
                f"pools of each person are for questions about these people, not target={quoted(target)}. About the "
                "crowd give a list of people"
            )
        return questions.suggest_each(fitted, candidates, strategy, repeat=repeat, random_state=random_state)

    def suggest_set(
        self, user: Any = None, size: int = 4, candidates: Sequence[Any] | None = None, *, target: str = "person",
        k: int = 1, exclude: Any = None, repeat: bool = False, random_state: Any = 0,
    ) -> Any:  # fmt: skip
        """Choose the alternatives of which to ask one person for the best.

        Parameters
        ----------
        user : id, optional
            Who is asked; by default, and with a warning for an id that the model does not know, somebody without
            answers.
        size : int, default 4
            How many alternatives, from 2 to 20.
        candidates : list of items, optional
            What may be shown; by default all items.
        target, k
            As of :meth:`suggest`: about the crowd's board the set is drawn.
        exclude : Comparisons, data frame, or list of lists of items, optional
            Further sets not to ask, such as those on the person's screen, and all that were answered if the model was
            loaded without its answers. A frame has a column item, and task where it holds several sets; where people
            are named, only this person's count.
        repeat : bool, default False
            Whether a set that the person answered may be asked again.
        random_state : int, default 0
            Seed of the draws, with the person's id and the number of their answers.

        Returns
        -------
        question : data frame of the caller's kind
            Columns item, p_best (the probability that it is chosen) and score: the bits that the answer is expected to
            tell about the person's utilities, of the items down to this row (the first tells nothing). A row an
            alternative; whose place on the screen is yours to shuffle. No rows if every set was answered. About the
            crowd: item, in the order to show, and probability, that of the whole draw.

        Raises
        ------
        DataError
            If an item is not known, or there are fewer than ``size``, or ``exclude`` cannot be read.

        Notes
        -----
        collaborative.md section 5 for a choice with normal noise of variance ½ an alternative: the entropy of the
        answer less its expected entropy given the utilities, over 400 draws of them, each chance by Gauss-Hermite
        quadrature. Greedy: the most telling pair, then one item after the other, each the best of those with which
        there are sets left to ask; of equal ones one is drawn. Of more than 60 items the 60 whose utilities vary most
        about the person's average one. Some 30 ms for a set of four of 30 items.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, -1])
        >>> model.suggest_set("ann", 3)["item"].to_list()
        ['juice', 'milk', 'tea']
        """
        fitted: Any = self
        check_arguments(size=size, k=k, repeat=repeat, random_state=random_state)
        check_choice("target", target, ("person", *TARGETS))
        if target != "person":
            weights = self._weights(target, k=k, retired=self._not_among(candidates, ()))
            return crowd.suggest_set_about_crowd(
                self, weights, user, size, exclude=exclude, repeat=repeat, random_state=random_state
            )
        return questions.suggest_set(
            fitted, user, size, candidates, exclude=exclude, repeat=repeat, random_state=random_state
        )

    def decide(
        self, user: Any, options: Any, *, cost_wrong: Loss = 1.0, cost_question: float = 0.1,
        cost_defer: float | None = None, default: Any = None, items: Any = None,
    ) -> Decision:  # fmt: skip
        """Decide for a person between some options, ask them a question, or leave the choice to them: what costs least.

        Parameters
        ----------
        user : id or None
            Whose choice it is; None, and with a warning an id that the model does not know, is somebody without
            answers.
        options : list of items
            Two or more different items, in any order; that the model knows, or that stand in ``items``.
        cost_wrong : float, or mapping, default 1
            Cost of an act that is wrong: the person would have chosen another of the options. A mapping gives it by the
            option that is taken, ``{"A": 5, "B": 20}``, or by that and the one that is wanted, ``{"A": {"B": 5}, "B":
            {"A": 20}}``.
        cost_question : float, default 0.1
            Cost of asking which of two options the person would choose; of m options it is log2(m) times that.
        cost_defer : float, optional
            Cost of leaving the choice to the person; by default that of asking about all options.
        default : item, optional
            One of the options that stands unless the person objects: leaving the choice to them then costs nothing
            where it is what they would choose. Of equally likely options it is taken.
        items : data frame, optional
            Attributes of options that the model does not know, one row an item.

        Returns
        -------
        Decision

        Raises
        ------
        DataError
            If there are fewer than two options, one of them twice or not known, a default that is none of them, or a
            cost that is no finite number from 0 up.

        Notes
        -----
        docs/howto/ask-and-decide.md. Probabilities are those of ``model.predict_choice``: of what the person would
        answer, noise and calibration included, since that is what answers can show to be right or wrong; nobody is on
        the left.

        A question is about what the person would choose now: of the options asked about, the answer is the only one
        that can still be the choice. With probabilities p_1 >= p_2 >= ... asking about the m likeliest leaves the loss
        cost_wrong (1 - p_1 - ... - p_m). No question with m answers, about whatever, leaves less: whoever acts on the
        answers takes at most m different options. So the best question needs no search, and its value no simulation.
        That the answer also teaches the model (``update``) is not counted.

        The cost of asking about m options grows with log2(m), as the time of a choice does (Hick's law). A question is
        about fewer options than there are, or about both of two: else it leaves the choice to the person. Of equal
        costs acting comes before asking, and asking before leaving it. Some ten milliseconds for 20 options.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, 1])
        >>> model.decide("ann", ["tea", "milk"], cost_wrong=1, cost_question=0.45).action
        'act'
        >>> model.decide("ann", ["juice", "milk"], cost_wrong=1, cost_question=0.01).question
        ('juice', 'milk')
        """
        fitted: Any = self
        return acting.decide(
            fitted, user, options, cost_wrong=cost_wrong, cost_question=cost_question, cost_defer=cost_defer,
            default=default, items=items,
        )  # fmt: skip

    def decide_many(
        self, options: Any, users: Any = None, *, cost_wrong: Loss = 1.0, cost_question: float = 0.1,
        cost_defer: float | None = None, default: Any = None, items: Any = None,
    ) -> Any:  # fmt: skip
        """Decide for many people between the same options, as :meth:`decide` does for one.

        Parameters
        ----------
        options, cost_wrong, cost_question, cost_defer, default, items
            As of :meth:`decide`.
        users : list of ids, optional
            By default all people of the model.

        Returns
        -------
        table : data frame of the caller's kind
            A row a person: user, action ("act", "ask" or "defer"), option (what to take, or the default that stands),
            question (options to ask about, with " | " between them), probability, expected_loss, cost (expected, of the
            action), value (of the answer to the best question).

        Raises
        ------
        DataError
            As :meth:`decide`; if the model tells nobody apart, or does not know somebody.
        """
        fitted: Any = self
        check_arguments(users=users)
        return build_frame(
            acting.decide_many(
                fitted, options, users, cost_wrong=cost_wrong, cost_question=cost_question, cost_defer=cost_defer,
                default=default, items=items,
            ),
            fitted._backend,
        )  # fmt: skip

    def versus(self, pairs: Any, other: Any = None, user: Any = None, *, scale: str | Scale = "probit") -> Any:
        """Probabilities that one item is better than another, P(A > B), for pairs of the crowd's board or one person's.

        Parameters
        ----------
        pairs : list of (item, item), or item
        other : item, optional
            The item that an item is compared with.
        user : id, optional
            A person; by default the crowd. Where people are found hardly to differ (:meth:`describe` says so) it is
            nearly the crowd's difference, with an interval that does not allow for people who differ more.
        scale : {"probit", "logit", "elo", "0-100", "share"}, default "probit"
            Unit of the difference; with the last two the noise of one answer.

        Returns
        -------
        table : data frame of the caller's kind
            A row a pair: left, right; p_better, the probability that the score of left is the higher one; difference of
            the two scores, with lower and upper, its 95 % interval; p_left, p_tie and p_right, the chances of one
            answer of the person, or of somebody new, where neither side is favoured.

        Raises
        ------
        DataError
            If what is given is no list of pairs, an item or the user is not known, or an item is paired with itself.

        Examples
        --------
        >>> import predilect
        >>> answers = {"left": ["tea"] * 3, "right": ["milk", "juice", "milk"], "winner": ["tea", "tea", "tea"]}
        >>> model = predilect.Population(personal=False).fit(answers)
        >>> bool(model.versus("tea", "milk")["p_better"][0] > 0.9)
        True
        """
        fitted: Any = self
        return of_pairs.versus(fitted, pairs, other, user, scale=scale)

    def scores(self, size: int = 4, anchor: Any = None, user: Any = None, *, random_state: int = 0) -> Any:
        """Rescaled utilities: how probable it is that an item is chosen from a set of the usual size.

        Parameters
        ----------
        size : int, default 4
            How many items stood in a set, from 2 to 20.
        anchor : item, optional
            The item that has the score 100: the threshold of an anchored study, or "none of these".
        user : id, optional
            A person; by default the mean over all people, each rescaled by themselves.
        random_state : int, default 0
            Seed of the draws.

        Returns
        -------
        table : data frame of the caller's kind
            Columns item, score, lower, upper (95 % interval of the draws), best first.

        Raises
        ------
        DataError
            If the size is out of range, or the anchor is not known.

        Notes
        -----
        p_i is the probability that item i is chosen from ``size`` items of which the others have the person's
        mean utility, exp(u_i) / (exp(u_i) + size - 1) with logistic noise. The score is 100 p_i / Σ p_j: scores sum to
        100, and one of 10 is twice as likely to be taken as one of 5. With an anchor, the others have the anchor's
        utility, and the score is 100 p_i size: 100 for the anchor itself, up to 100 times ``size``.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
        >>> model = predilect.Population().fit(answers, [1, 1, -1])
        >>> round(model.scores()["score"].sum(), 6)
        100.0
        """
        fitted: Any = self
        check_arguments(size=size)
        check_count("random_state", random_state, 0)
        return scales.scores(fitted, size, anchor, user, random_state=random_state)

    def compress(
        self, keep: Any = None, loss: Any = "regret", criterion: Any = "auto", *, budget: int | None = None,
        local: bool = True, precision: str = "half", random_state: int | None = 0,
    ) -> Any:  # fmt: skip
        """Compress the model to the items that matter to each person.

        Parameters
        ----------
        keep : int, float or str, optional
            Items that each person keeps; by default "20%", unless ``budget`` is given.
        loss, criterion, budget, local, precision, random_state
            As in :class:`CompressedModel <predilect.papers.compression.model.CompressedModel>`.

        Returns
        -------
        CompressedModel

        Raises
        ------
        DataError
            If ``keep``, ``budget``, a criterion or a loss cannot be used.

        Examples
        --------
        >>> import predilect
        >>> answers = {"user": ["ann", "bob"], "left": ["tea"] * 2, "right": ["milk"] * 2, "winner": ["tea", "milk"]}
        >>> predilect.Population().fit(answers).compress(keep=1).kept("bob")
        ['milk']
        """
        keep = "20%" if keep is None and budget is None else keep
        return estimator("compressed")(
            keep=keep, loss=loss, criterion=criterion, budget=budget, local=local, precision=precision,
            random_state=random_state,
        )._compress(self)  # fmt: skip


def _refuse_strategy(strategy: str) -> None:
    """DataError for questions about the crowd, which have one criterion, the target."""
    if strategy != "bald":
        raise DataError(
            f"{either('--strategy', 'strategy=')} is of questions about one person; those about the crowd follow "
            f"{either('--target', 'target=')}. Leave out one of the two"
        )
