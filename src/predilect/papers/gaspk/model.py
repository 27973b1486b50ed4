"""``GaSPK``: people's evaluations of trade-offs between attributes, as mixtures of a few Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy.typing as npt

from predilect._base.estimator import Lock, check_is_fitted
from predilect._base.progress import Watcher
from predilect._base.shards import workers
from predilect._base.stored import PART
from predilect._base.types import FloatArray
from predilect.models.estimator import Estimator, Learned
from predilect.models.reading import PairQueries, Said, Training, read_answers
from predilect.models.worth import former
from predilect.papers.gaspk import boundaries as gaspk_boundaries
from predilect.papers.gaspk import outputs as gaspk_outputs
from predilect.papers.gaspk.posterior.posterior import GaSPKPosterior
from predilect.papers.gaspk.questions import limits, questions_of, typical_size
from predilect.papers.gaspk.settings import FitSettings, GaSPKHyperparameters, check_gaspk
from predilect.papers.gaspk.storage import Stored, restore_gaspk
from predilect.papers.gaspk.training import fit_gaspk
from predilect.papers.gaspk.update import take_in
from predilect.show.charts.chart import Chart
from predilect.show.charts.trade_offs import characteristics


@dataclass(eq=False, repr=False)
class GaSPK(Estimator):
    """Preferences over trade-offs: what one item has more, and less, of than the other.

    A choice between two items is about the trade-off t of their attributes. Person u accepts it with probability
    Φ(f_u(t)), f_u = Σ_c γ_uc f^c: a mixture of characteristics f^c ~ GP(0, k) that people share, with weights γ_u on
    the simplex. An evaluation is measured in units of the noise of one answer. Training cost depends on the number of
    different trade-offs, and hardly on the number of people and choices. Without features, items are their own
    attributes.

    Boards score an item by its mean evaluation against others, see ``scores`` in the Notes.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        "auto": 1, 2, 3, 5 or 10, by held-out answers, and then as if that number had been given.
    gamma : {"auto", "exact", "heuristic"}, default "auto"
        Weights of people: the most probable ones, or by how well each characteristic by itself explains their answers.
        "auto": exact, in the paper's preset heuristic.
    concentration : float or "auto", default "auto"
        α ≥ 0 of the Dirichlet prior of weights: near 0 people are of one characteristic each, large they are alike; 0
        is maximum likelihood. "auto": 0.03, 0.3, 3 or 30, by held-out answers.
    tau : {"difference", "relative"} or callable, default "difference"
        Trade-off of two items: difference of standardised attributes; relative change of numbers; or a function of
        two arrays of attributes in their own units, shape (n, n_columns) each, that gives (n, d).
    attributes : list of str, optional
        Columns of the table of items to use; by default all. See :func:`~predilect.evaluation.select_attributes`.
    units : mapping of str to str, optional
        Units of attributes, for labels.
    levels : int, list or mapping, optional
        Round trade-offs to a grid: a number of levels, found by natural breaks, or the levels, for all dimensions, for
        each, or by name. By default trade-offs are not rounded.
    kernel : str, default "squared-exponential"
        Or "matern-1/2", "matern-3/2", "matern-5/2": a product over dimensions.
    length_scale : str, float or array of float, default "median"
        "median" (one for all dimensions), "per-dimension"; "evidence": learned; or numbers.
    variance : float, "auto" or "evidence", default "auto"
        Prior variance of a characteristic (half of it if antisymmetric). "auto": by held-out answers, such that the
        evaluation of a person has the prior variance 1, 3, 10, 30 or 100.
    antisymmetric : bool or "auto", default "auto"
        Whether f(-t) = -f(t), so that swapping left and right says nothing. If not, a trade-off is of the item shown on
        the left; answers of which the side is not known count half each way.
    backend : {"auto", "grid", "function"}, default "auto"
        Kronecker algebra on a grid, or function space over the observed trade-offs. Both give the same.
    variances : {"auto", "exact", "low-rank"}, default "auto"
        Of predictions: by solving equations, or by the ``n_eigenpairs`` largest eigenpairs of a grid, however few
        answers there are. "auto": exact while that is cheap, and where there is no grid.
    n_eigenpairs : int, default 100
        n_e, of each characteristic.
    n_restarts : int or "auto", default "auto"
        Starts, of which that of the highest evidence is continued. With a prior of weights the first one follows from
        the answers, and "auto" is 3; others are random, and without a prior "auto" is 5.
    spread : float or "auto", default "auto"
        T² ≥ 1, by which 1 + variance of a margin is multiplied; "auto": by held-out answers, and so is how much of the
        covariance of weights counts, all, a half or a quarter, and how much larger the variance by characteristics is
        for people with few answers.
    preset : {"modern", "paper"}, default "modern"
        "paper": heuristic weights without a prior, random starts, amplitude 1, not antisymmetric, a grid, low-rank
        variances, no damping, no calibration.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float, default 0.01
        Largest change of a weight by another round.
    max_iter : int, default 100
        Rounds of characteristics and weights.
    n_jobs : int, optional
        Threads; by default all cores. Results have the same bits for any number.
    random_state : int or None, default 0
        Seed of random weights to start from (without a prior of weights), of probes, and of the draws behind rank
        intervals. Predictions of the defaults do not depend on it.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : GaSPKPosterior
    trade_offs_ : TradeOffMap
        How two items become a trade-off.
    grid_ : Grid or None
    weights_ : array of float, shape (n_users, n_components)
        γ.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`. ``personal_``: whether users are identified; ``log_evidence_`` is Laplace's,
        given the weights; ``report_`` also tells of attributes, grid and trials.

    Notes
    -----
    docs/math/gaspk.md, with the corrections there; Peters et al. (2018). **Differs from the paper**: functions change
    sign with the trade-off, the amplitude is chosen, trade-offs need no grid, variances of mixtures use all covariances
    of the characteristics, and predictions are calibrated by a factor chosen on held-out answers. The attributes are
    the features of items; features of people are stored but not used.

    ``scores``: item i scores the mean of f_u(trade-off of i against j) over references j: all items, or as many, spread
    over the attributes, as make 4 000 trade-offs. Where f is linear that is a utility.

    A round takes some 10 products of n_points rank n_c operations and passes over the answers of n_c each, n_points
    different trade-offs of which rank independent; memory n_points (rank + n_c²).

    Examples
    --------
    >>> import predilect
    >>> answers = {"user": ["ann", "bob"] * 2, "left": ["a", "a", "b", "b"], "right": ["b", "b", "c", "c"],
    ...            "winner": ["a", "b", "b", "c"]}
    >>> cars = {"item": ["a", "b", "c"], "price": [30.0, 20.0, 25.0], "doors": [5, 3, 5]}
    >>> model = predilect.GaSPK(n_components=2, variance=3.0).fit(answers, items=cars)
    >>> model.rank("ann")["item"].to_list()[0]
    'a'
    """

    _hyperparameters_type: ClassVar[Any] = GaSPKHyperparameters
    posterior_: GaSPKPosterior = field(init=False)

    n_components: int | str = "auto"
    gamma: str = "auto"
    concentration: float | str = "auto"
    tau: str | Callable[[FloatArray, FloatArray], FloatArray] = "difference"
    attributes: Sequence[str] | None = None
    units: Mapping[str, str] | None = None
    levels: Any = None
    kernel: str = "squared-exponential"
    length_scale: Any = "median"
    variance: float | str = "auto"
    antisymmetric: bool | str = "auto"
    backend: str = "auto"
    variances: str = "auto"
    n_eigenpairs: int = 100
    n_restarts: int | str = "auto"
    spread: float | str = "auto"
    preset: str = "modern"
    tie_threshold: float | str = "auto"
    tol: float = 1e-2
    max_iter: int = 100
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    _check = check_gaspk

    def _prepared(self, training: Training) -> Training:
        prepared = super()._prepared(training)
        if FitSettings.of(self).antisymmetric:
            return prepared
        sides = training.comparisons.sides  # which one was on the left is part of such a question
        return replace(prepared, comparisons=replace(prepared.comparisons, sides=sides))

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        with workers(self.n_jobs) as executor:
            found = fit_gaspk(training, FitSettings.of(self, delta, self.seed_), executor, watch)
        self._choices, self.answers_ = found.choices, found.answers
        self.trade_offs_, self.grid_ = found.choices.trade_offs, found.choices.grid
        self._lock = Lock()
        return found.learned

    @property
    def _settings(self) -> FitSettings:
        """Settings of the fit, with what it chose."""
        settings = FitSettings.of(self, self.tie_threshold_, self.seed_)
        return replace(settings, concentration=self.hyperparameters_.concentration)

    def update(
        self, more: Any, y: npt.ArrayLike | None = None, *, items: Any = None, columns: Said = None,
        reading: Said = None, online: bool = False,
    ) -> Self:  # fmt: skip
        """Update with more choices, continuing from the current weights and characteristics.

        Parameters
        ----------
        more : Comparisons or data frame
            As :meth:`fit` takes them; of people known or new. All are added or, after an error, none.
        y : array of int, shape (n,), optional
            Outcomes of the rows of a frame.
        items : data frame, optional
            Attributes of items that the model does not know.
        columns, reading : dict, optional
            As of :meth:`fit`.
        online : bool, default False
            Take the posterior of the characteristics for the prior of these choices, at the cost of these alone,
            instead of going on with all of them; but go on with all when there are a tenth more than the last time. Not
            on a grid, nor with more than 3 000 coordinates.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If a new item has no attributes, users are identified in one but not the other, or ties come to a model
            that was fitted without.

        Notes
        -----
        Hyper-parameters stay as they were fitted. The result is a fixed point of the iteration that ``fit`` runs on all
        answers, the one nearest to the model before; with one characteristic it is unique. Costs a few rounds of a fit.
        ``online`` keeps no such promise: what earlier choices said of the characteristics stays as it was weighed then,
        until all are gone through again: results depend on the order of batches (docs/math/gaspk.md section 3.1). A
        batch that brings this about costs an update without ``online``; for each new answer ten are gone through, on
        average. Threads may share a model, as :meth:`Population.update <predilect.Population.update>` says.
        """
        check_is_fitted(self)
        answers = read_answers(more, y, with_ties=self.tie_threshold_ > 0.0, columns=columns, reading=reading)
        with self._lock:
            report = take_in(self, answers, items, online)
        report.require(self.strict)
        return self

    @property
    def weights_(self) -> FloatArray:
        """People's weights on the characteristics, shape (n_users, n_components)."""
        return self.posterior_.gamma

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        asked, posterior = questions_of(self, queries, self._new_items(queries, items))
        return asked.margins(posterior)

    def _relation(self) -> str:
        number = self.hyperparameters_.n_components
        mixture = f"a mixture of {number} evaluations" if number > 1 else "one evaluation"
        whose = "one evaluation for all"
        if self.personal_ and self.users_ is not None:
            whose = f"each of {len(self.users_)} people has {mixture}"
        return f"What an item has more and less of than another: {whose}; the board is their average"

    def describe(self) -> list[str]:
        h, prior = self.hyperparameters_, self.report_["prior"]
        values = h.to_dict()
        number = "One characteristic" if h.n_components == 1 else f"{h.n_components} characteristics"
        lines = [
            f"{number} of trade-offs in {', '.join(self.trade_offs_.names)}; {prior['n_trade_offs']} different "
            f"trade-offs, amplitude {values['variance']:.3g}.",
            *self.trade_offs_.report,
        ]
        if self.grid_ is not None:
            lines.append(f"Trade-offs were brought to a grid of {self.grid_.n_points} points.")
            lines += prior["grid"]["loss"]
        if h.concentration > 0.0 and h.n_components > 1:
            lines.append(f"People's weights have a Dirichlet prior of concentration {h.concentration:.3g} each.")
        if h.spread > 1.0:
            lines.append(f"Held-out answers ask for 1 + variance of an evaluation {h.spread:.2f} times as large.")
        if h.newcomer_factor > 1.0 and self.users_ is not None:
            lines.append(
                f"What is open of the characteristics counts up to {h.newcomer_factor:.2f} times for people with fewer "
                f"than {h.usual:.0f} answers: people who were left out ask for that."
            )
        if prior["left_out"] > 0.01:
            lines.append(f"Low rank leaves out up to {100 * prior['left_out']:.2g} % of the prior variance.")
        if prior["at_bound"]:
            lines.append(f"The search of hyper-parameters ended at its bounds: {', '.join(prior['at_bound'])}.")
        return lines

    def _further_tables(self) -> dict[str, Callable[[], Any]]:
        """See :meth:`~predilect.models.boards.RankingEstimator._further_tables`."""
        weights: dict[str, Callable[[], Any]] = {} if self.users_ is None else {"weights": self.segments}
        return weights | {"characteristics": self.characteristics}

    def _further_charts(self) -> dict[str, Callable[[], Chart]]:
        """See :meth:`~predilect.models.boards.RankingEstimator._further_charts`."""
        if self.trade_offs_.items_are_attributes:
            return {}
        return {"characteristics": partial(characteristics, self)}

    @property
    def _kept(self) -> Annotated[Stored, PART]:
        return Stored.of(self.posterior_, self._choices, self.answers_, self.report_["prior"]["backend"])

    def _restored(self, parts: dict[str, Any]) -> None:
        self.posterior_, self._choices, self.answers_ = restore_gaspk(self, parts["_kept"])
        self.trade_offs_, self.grid_ = self._choices.trade_offs, self._choices.grid
        self._lock = Lock()

    # What a choice researcher asks of a fitted model.
    accept = gaspk_outputs.accept
    evaluation_distribution = gaspk_outputs.evaluation_distribution
    segments = gaspk_outputs.segments
    simulate = former("simulate")

    @property
    def worth(self) -> gaspk_outputs.Shares:
        """``model.worth.simulate(scenarios)``: market shares of what is on offer."""
        return gaspk_outputs.Shares(self)

    characteristics = gaspk_outputs.characteristics
    indifference = gaspk_boundaries.indifference
    willingness = gaspk_boundaries.willingness
    _limits, _typical_size = limits, typical_size
