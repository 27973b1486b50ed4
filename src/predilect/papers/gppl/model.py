"""Gaussian-process preference learning (GPPL)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

from predilect._base.arguments import check_choice, check_count, check_number, check_positive
from predilect._base.progress import Watcher
from predilect._base.shards import workers
from predilect._base.stored import LARGEST, PART, number_within
from predilect._base.text import setting, written
from predilect._base.types import FloatArray
from predilect.errors import DataError
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.latent.sparse.fit import RULES, SparsePosterior
from predilect.inference.latent.sparse.problem import SURROGATES
from predilect.models.checks import KernelHyperparameters, check_gamma, check_process
from predilect.models.estimator import Estimator, Learned
from predilect.models.reading import PairQueries, Training
from predilect.papers.gppl.joint import fit_joint_gppl
from predilect.papers.gppl.pooled import (
    INFERENCE,
    fit_pooled_gppl,
)
from predilect.papers.gppl.separate import (
    SeparatePosterior,
    fit_separate_gppl,
    separate_margins,
)
from predilect.papers.joint.process import CellProcess, KeptProcess

USERS = ("pooled", "separate", "joint")
_AUTOMATIC: dict[str, dict[str, Any]] = {
    "modern": {"sites": "expected", "surrogate": "corrected", "scale_prior": (1.0, 1.0)},
    "paper": {
        "sites": "linearised", "surrogate": "2020", "scale_prior": (1.0, 100.0), "inference": "stochastic",
        "median": "code",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GPPLHyperparameters(KernelHyperparameters):
    """Hyper-parameters of the prior; the kernel is of item features, or of users' and items' (``users="joint"``)."""

    variance: float  # 1/s: utilities are N(0, K/s), in units of the noise of one answer


@dataclass(eq=False, repr=False)
class GPPL(Estimator):
    """Gaussian-process preference learning: utilities are a smooth function of the features of items.

    f ~ N(0, K/s) with K a kernel of item features and s ~ Gamma; an answer to "left or right?" is left with probability
    Φ(f(left) - f(right)), so a utility is measured in units of the noise of one answer. Unseen items are predicted from
    their features. Items without features are uncorrelated with all others; without any features, K is the identity.

    Parameters
    ----------
    preset : {"modern", "paper"}, default "modern"
        What "auto" means. "paper": the linearised likelihood, in batches, of Simpson and Gurevych (2020) as they print
        it, with their median rule and prior of s.
    users : {"pooled", "separate", "joint"}, default "pooled"
        "pooled": one function for all users. "separate": one for each user, learned from that user's answers only,
        with s and the kernel shared. "joint": one function of the features of users and items, K_users ⊗ K_items; it
        needs both, and predicts unseen users. That is the process of :class:`~predilect.JointGP`, see there.
    kernel : str or Kernel, default "matern-3/2"
        Of item features: "squared-exponential", "matern-1/2", "matern-3/2", "matern-5/2", or a kernel of
        :mod:`predilect.kernels`, such as a sum or product over features, used with its
        hyper-parameters.
    kernel_form : {"isotropic", "product"}, default "isotropic"
        Of the Euclidean distance over all features, or the product over features of a kernel of each.
    length_scale : "median", "optimise", float or array of float, default "median"
        By the median heuristic; from there by L-BFGS on the evidence or its bound; or given, one for all features or
        one for each feature column after encoding. (For "joint": of items; those of users are then by the heuristic.)
    median : str, default "auto"
        Rule of :func:`~predilect.kernels.median_length_scales`; "auto": "root", for "paper" "code".
    user_kernel : str or Kernel, default "matern-3/2"
        Of features of users, for "joint".
    n_inducing : int, None or "auto", default "auto"
        Inducing points M; None: the items. "auto": the items up to 1 000, then 500. For "joint" of cells, (user, item),
        in place of items. "separate" needs none.
    inference : {"auto", "variational", "stochastic", "ep", "laplace"}, default "auto"
        "variational": all answers at once. "stochastic": in batches. "auto": in batches beyond 20 000 different
        answers, for "paper" always. "ep" and "laplace" take all items at once, for "pooled". "separate" takes
        expectation propagation.
    sites : {"auto", "expected", "linearised"}, default "auto"
        The exact expectation of the log-likelihood ("modern"), or the paper's linearisation, in which a tie is half a
        win each.
    surrogate : {"auto", "corrected", "2020"}, default "auto"
        Variance of the linearisation: "corrected" ("modern"), or as printed.
    variance : float or "auto", default "auto"
        Prior variance 1/s of a utility, or learn it.
    scale_prior : pair of float or "auto", default "auto"
        Shape and rate of the Gamma prior of s. "auto": (1, 1), for "paper" (1, 100); the paper also has (2, 200).
    noise_variance : float, default 0.5
        Noise of one item in one answer in the units of the rate: 1/2 in the paper, 1 in its authors' code.
    batch_size : int or "auto", default "auto"
        Different answers in a batch.
    forgetting_rate, delay : float, default 0.9 and 1.0
        r and ε of the steps ρ_i = (i + ε)^-r.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float or "auto", default "auto"
        Stop when the bound rises by less in a pass, in nats per answer; "auto": 1e-6, for "separate" 1e-5.
    max_iter : int, default 200
        Passes, or batches, but at least one pass.
    n_jobs : int, optional
        Threads, for "separate"; by default all cores. Results have the same bits for any number.
    random_state : int or None, default 0
        Seed of inducing points, batches, and the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : SparsePosterior, SeparatePosterior or, for "joint", CellProcess
    items_, users_ : Vocabulary
        ``users_`` is None where users are not identified.
    personal_ : bool
        Whether predictions are personal: not "pooled", and at least two users.
    hyperparameters_ : GPPLHyperparameters
    tie_threshold_ : float
    log_evidence_ : float
        Lower bound of the evidence of the answers ("variational", "stochastic"), or its approximation, in nats.
    report_ : dict
        Convergence, what was read and left out, which features were used.
    n_answers_ : float
    comparisons_ : Comparisons or None
        The answers; None after :meth:`load`.
    classes_ : array
        1, 0, -1, after a fit with a ``y`` of booleans False and True: what :meth:`predict` returns, in the order of
        the columns of :meth:`predict_proba`.

    Notes
    -----
    crowdgppl.md 1 and 2.2, with the corrections there; Simpson and Gurevych. **Differs from the paper**: exact
    expectations by default, all answers at once where that is quicker, ties.

    With M inducing points a pass takes P M + n_items M² operations for P different answers; n_items M floats.

    Examples
    --------
    >>> import predilect
    >>> answers = {"left": ["tea", "milk"], "right": ["milk", "juice"], "winner": ["tea", "milk"]}
    >>> items = {"item": ["tea", "milk", "juice", "mate"], "warm": [1.0, 0.4, 0.0, 0.9]}
    >>> model = predilect.GPPL().fit(answers, items=items)
    >>> model.rank()["item"].to_list()
    ['tea', 'mate', 'milk', 'juice']
    """

    _hyperparameters_type: ClassVar[Any] = GPPLHyperparameters
    own_share = 0.0  # of the variance of a utility, what is item-specific: an argument of subclasses
    _IS_SEPARATE: ClassVar[bool] = False  # also for one person alone
    _INFERENCE: ClassVar[tuple[str, ...]] = INFERENCE
    _kept_posterior = KeptProcess
    _LEARNED: ClassVar[dict[str, str]] = {
        "joint": "learned together by their features", "separate": "each learned alone"
    }  # fmt: skip

    posterior_: Annotated[SparsePosterior | SeparatePosterior | CellProcess, PART] = field(init=False)

    preset: str = "modern"
    users: str = "pooled"
    kernel: str | Kernel = "matern-3/2"
    kernel_form: str = "isotropic"
    length_scale: Any = "median"
    median: str = "auto"
    user_kernel: str | Kernel = "matern-3/2"
    n_inducing: int | str | None = "auto"
    inference: str = "auto"
    sites: str = "auto"
    surrogate: str = "auto"
    variance: float | str = "auto"
    scale_prior: tuple[float, float] | str = "auto"
    noise_variance: float = 0.5
    batch_size: int | str = "auto"
    forgetting_rate: float = 0.9
    delay: float = 1.0
    tie_threshold: float | str = "auto"
    tol: float | str = "auto"
    max_iter: int = 200
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        personal, how = self.users != "pooled" and training.personal, self._resolved()
        with workers(self.n_jobs) as executor:
            if self.users == "joint":
                found = fit_joint_gppl(how, training, delta, watch)
            elif personal or self._IS_SEPARATE:
                found = fit_separate_gppl(how, training, delta, executor, watch)
            else:
                found = fit_pooled_gppl(how, training, delta, watch)
        return Learned(
            found.posterior, GPPLHyperparameters(found.kernel, 1.0 / found.scale), personal, found.delta,
            found.evidence, found.report, found.search,
        )  # fmt: skip

    def _resolved(self) -> Self:
        """The same with the settings that its preset decides."""
        found = copy.copy(self)
        for name, value in _AUTOMATIC[self.preset].items():
            given = getattr(self, name)
            if isinstance(given, str) and given == "auto":
                setattr(found, name, value)
        return found

    def _check(self) -> None:
        check_choice("preset", self.preset, _AUTOMATIC)
        check_process(self, learned=True)
        check_choice("users", self.users, USERS)
        check_choice("inference", self.inference, self._INFERENCE)
        check_choice("sites", self.sites, ("auto", *RULES))
        check_choice("surrogate", self.surrogate, ("auto", *SURROGATES))
        check_count("n_inducing", self.n_inducing, 1, None, "auto")
        check_count("batch_size", self.batch_size, 1, "auto")
        check_count("max_iter", self.max_iter, 1)
        check_positive("variance", self.variance, "auto")
        check_gamma("scale_prior", self._resolved().scale_prior)
        for name in ("noise_variance", "forgetting_rate"):
            check_positive(name, getattr(self, name))
        check_number("delay", self.delay, low=0.0)
        if self.inference in ("ep", "laplace") and self.users == "joint":
            raise DataError(
                f"{setting('inference', self.inference)} is for {setting('users', 'pooled')}; {written('joint')} is "
                "variational"
            )

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        posterior, asked = self.posterior_, (queries.users, queries.left, queries.right)
        if isinstance(posterior, CellProcess):
            return posterior.predict(self, queries, items, people)
        new = self._new_items(queries, items)
        if isinstance(posterior, SeparatePosterior):
            return separate_margins(self, queries, new)
        assert isinstance(posterior, SparsePosterior)
        return (posterior if new is None else posterior.with_items(new.matrix, new.known)).margins(*asked)

    def _relation(self) -> str:
        if not self.personal_ or self.users_ is None:
            return ""
        how = self._LEARNED[self.users]
        return f"A utility function for each of {len(self.users_)} people, {how}; the board is their average"

    def describe(self) -> list[str]:
        h, points = self.hyperparameters_, self.report_["prior"].get("n_inducing")
        same = ", the same for every person" if self.users == "separate" else ""
        lines = [f"Prior variance of a utility {h.variance:.2g}{same}."]
        if self.features_ is not None:
            how = {"median": "by the median heuristic", "optimise": "optimised"}
            told = how.get(self.length_scale, "as given") if isinstance(self.length_scale, str) else "as given"
            lines.append(f"Item features: {', '.join(self.features_.sources) or 'none of use'}; length-scales {told}.")
        if points is not None and not self.report_["prior"]["items_are_points"]:
            lines.append(f"Utilities are known through {points} inducing points.")
        if bound := self.report_["prior"].get("at_bound"):
            lines.append(f"The search of length-scales ended at its bounds: {', '.join(bound)}.")
        return lines

    def _restored(self, parts: dict[str, Any]) -> None:
        h = self.hyperparameters_
        number_within("variance", h.variance, 1.0 / LARGEST, LARGEST)
        if self.users != "joint":
            h.kernel.diagonal(self._space.matrix[:1])  # ValueError if it is made for other features
