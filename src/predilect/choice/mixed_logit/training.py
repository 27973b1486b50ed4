"""Training of ``MixedLogit``: the likelihood that its settings ask for, its maximum or draws, what is reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Report, Watcher
from predilect._base.shards import workers
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.choice.mixed_logit.attributes import NORMAL, ItemColumns
from predilect.choice.mixed_logit.diagnosis import FEWEST, R_HAT
from predilect.choice.mixed_logit.estimates import Estimates, by_delta, by_draws, facts_of, of_few
from predilect.choice.mixed_logit.logit import (
    KEPT_LAWS,
    KEPT_PEOPLE,
    Classes,
    Maximum,
    draws_of,
    fit_classes,
    law_of,
    maximised,
    scores_of_answers,
)
from predilect.choice.mixed_logit.nested import NestedChoices
from predilect.choice.mixed_logit.problem import ChoiceProblem, Mixture, problem_of
from predilect.choice.mixed_logit.sampler import sample
from predilect.choice.mixed_logit.simulated import evidence_of, fit_simulated, halton, law_at, populations_around
from predilect.data.attributes import term_of
from predilect.data.choices import Choices
from predilect.errors import DataError
from predilect.inference.latent.sandwich import of_student

_SWEEPS, _LONGER, _DRAWS = 6_000, 4, 500  # n_draws="auto", and times as many where chains do not agree
_SLOPE = 1e-5  # tol="auto"
_NO_BOUND = (
    "Answers leave some coefficients without a bound, as where an attribute always decides: their sizes are those of a "
    "weak prior, and their errors as good as infinite."
)


_HOW = 'errors="robust", or errors="hessian"'


class Found(NamedTuple):
    """Result of learning: populations, coefficients of people (U, R, d), and what is said of both."""

    law: Mixture
    people: npt.NDArray[np.float32]
    report: Report
    diagnosis: dict[str, Any]
    evidence: float
    estimates: Estimates
    member: FloatArray | None = None  # of latent classes, (U, K)


@dataclass(frozen=True, slots=True)
class Learning:
    """What is learned from, and the settings of the model."""

    problem: ChoiceProblem
    columns: ItemColumns
    covariates: tuple[list[str], FloatArray]
    with_constants: float | None  # log likelihood
    n_people: int | None
    is_logit: bool
    model: Any
    watch: Watcher | None
    nested: NestedChoices | None = None

    def found(self) -> Found:
        """By maximum likelihood where nothing varies within a class, or else as ``method`` says."""
        if self.nested is not None:
            return self._nested(self.nested)
        if self.is_logit:
            return self._of_classes()
        return self._by_draws() if self.model.method == "bayes" else self._simulated()

    def _facts(self, evidence: float, n_parameters: int | None, draws: int, report: Report) -> dict[str, Any]:
        p = self.problem
        at_zero = -float(p.weight @ np.log(np.diff(p.row_ptr) + 1.0))
        return facts_of(
            at_zero, self.with_constants, evidence, n_parameters, float(p.weight.sum()), self.n_people, draws,
            report.converged,
        )  # fmt: skip

    def _tolerance(self, usually: float) -> float:
        return usually if isinstance(self.model.tol, str) else float(self.model.tol)

    def _draws(self, usually: int) -> int:
        return usually if isinstance(self.model.n_draws, str) else int(self.model.n_draws)

    def _of_classes(self) -> Found:
        m, K = self.model, int(self.model.n_classes)
        # Traits say which class somebody is of, and nothing where there is one.
        problem = self.problem if K > 1 else replace(self.problem, traits=self.problem.traits[:, :1])
        at = fit_classes(
            problem, K, max_iter=int(m.max_iter), tolerance=self._tolerance(_SLOPE), random_state=m.seed_,
            watch=self.watch,
        )  # fmt: skip
        likelihood = Classes(problem, K)
        by_person = None if self.n_people is None else of_few(at.at.slopes, self.n_people, float(problem.weight.sum()))
        scores = {"robust": at.at.slopes if K > 1 else scores_of_answers(problem, at.theta), "clustered": by_person}
        errors, information = self._errors(at, scores)
        law, people, member = draws_of(likelihood, at, information, np.random.default_rng(m.seed_))
        if K == 1:
            extra = np.zeros((len(law.B), 1, self.problem.traits.shape[1] - 1, law.B.shape[3]))
            law = replace(law, B=np.concatenate([law.B, extra], axis=2))
        evidence = float(at.at.values.sum())
        estimates = by_delta(
            partial(law_of, likelihood), self.columns, self.covariates if K > 1 else ([], np.zeros((0, 0))), at.theta,
            at.at.H, scores, self._facts(evidence, len(at.theta), 0, at.report), errors,
        )  # fmt: skip
        diagnosis: dict[str, Any] = {"draws": 0, "unbounded": [] if at.is_bounded else [_NO_BOUND]}
        return Found(law, people, at.report, diagnosis, evidence, estimates, member if K > 1 else None)

    def _nested(self, nested: NestedChoices) -> Found:
        """The nested logit, from the logit on; of the law dissimilarities are the last columns."""
        m, n, d = self.model, float(self.problem.weight.sum()), self.problem.n_coefficients
        given = {"max_iter": int(m.max_iter), "tolerance": self._tolerance(_SLOPE), "watch": self.watch}
        plain = replace(self.problem, traits=self.problem.traits[:, :1])
        start = np.zeros(nested.n_parameters)
        start[:d] = maximised(Classes(plain, 1).at, np.zeros(d), n, **given).theta  # type: ignore[arg-type]
        at = maximised(nested.at, start, n, **given)  # type: ignore[arg-type]
        by_person = None if self.n_people is None else of_few(at.at.slopes, self.n_people, n)
        scores = {"robust": nested.scores_of_answers(at.theta), "clustered": by_person}
        errors, information = self._errors(at, scores)
        rng = np.random.default_rng(m.seed_)
        law, near = (
            nested.law(populations_around(at.theta, information, rng, kept)) for kept in (KEPT_LAWS, KEPT_PEOPLE)
        )
        people = np.broadcast_to(near.B[None, :, 0, 0], (self.problem.n_users, *near.B[:, 0, 0].shape))
        evidence = float(at.at.values.sum())
        estimates = by_delta(
            nested.law, self.columns, ([], np.zeros((0, 0))), at.theta, at.at.H, scores,
            self._facts(evidence, len(at.theta), 0, at.report), errors,
        )  # fmt: skip
        diagnosis: dict[str, Any] = {"draws": 0, "unbounded": [] if at.is_bounded else [_NO_BOUND]}
        return Found(law, people.astype(np.float32), at.report, diagnosis, evidence, estimates)

    def _errors(self, at: Maximum, scores: dict[str, FloatArray | None]) -> tuple[str, FloatArray]:
        """Whose standard errors intervals are by, and the inverse of the covariance that makes them; (P, P).

        Clustered by person where somebody answered more than once, and people are more than parameters.
        """
        asked, H, p = str(self.model.errors), at.at.H, self.problem
        person = np.repeat(np.arange(p.n_users), np.diff(p.choice_ptr))
        n_people, n_answers = len(np.unique(person)), len(np.unique(p.answer))
        mine = scores["clustered"]
        are_enough = mine is not None and n_people > len(at.theta) == np.linalg.matrix_rank(mine)
        if asked == "auto":
            several = n_answers > n_people or np.bincount(person, p.weight).max() >= 2.0
            asked = "clustered" if at.is_bounded and are_enough and several else "hessian"
        if asked == "clustered" and not are_enough:
            why = "the answers do not say who gave them"
            if scores["clustered"] is not None:
                why = f"there are {n_people} people, and {len(at.theta)} numbers to estimate"
            raise DataError(
                f"errors that are clustered by person need more people than there are numbers to estimate, and {why}. "
                f"Take {either('robust, or hessian', _HOW)}"
            )
        s = scores.get(asked)
        if s is None or not at.is_bounded:
            return asked, H
        half = np.linalg.solve(H, s.T)
        wider = float(of_student(np.array(n_people))) if asked == "clustered" else 1.0
        return asked, np.linalg.inv(wider * half @ half.T)

    def _simulated(self) -> Found:
        m, n_draws = self.model, self._draws(_DRAWS)
        found = fit_simulated(
            self.problem, halton(self.problem, n_draws), diagonal=m.covariance == "diagonal",
            max_iter=int(m.max_iter), tolerance=self._tolerance(_SLOPE), random_state=m.seed_, watch=self.watch,
        )  # fmt: skip
        kept, evidence = found.sample, float(found.values.sum())
        scores: dict[str, FloatArray | None] = {
            "robust": found.slopes,
            "clustered": of_few(found.slopes, self.n_people, float(self.problem.weight.sum())),
        }
        estimates = by_delta(
            partial(law_at, found.likelihood), self.columns, self.covariates, found.theta, found.H, scores,
            self._facts(evidence, len(found.theta), n_draws, kept.report),
        )  # fmt: skip
        return Found(kept.law, kept.people, kept.report, {"draws": n_draws, **kept.diagnosis}, evidence, estimates)

    def _by_draws(self) -> Found:
        m, n_draws = self.model, self._draws(_SWEEPS)
        with workers(m.n_jobs) as executor:
            run = partial(
                sample, self.problem, n_classes=int(m.n_classes), diagonal=m.covariance == "diagonal",
                n_chains=int(m.n_chains), tolerance=self._tolerance(R_HAT),
                fewest=FEWEST if isinstance(m.tol, str) else 0, random_state=m.seed_, executor=executor,
                watch=self.watch,
            )  # fmt: skip
            kept = run(n_sweeps=n_draws)
            if isinstance(m.n_draws, str) and not kept.means_agree(R_HAT):
                n_draws *= _LONGER
                kept = run(n_sweeps=n_draws)
        evidence = evidence_of(self.problem, kept.law)
        facts = self._facts(evidence, None, n_draws, kept.report)
        estimates = by_draws(kept.law, self.columns, self.covariates, facts)
        return Found(kept.law, kept.people, kept.report, {"draws": n_draws, **kept.diagnosis}, evidence, estimates)


def is_logit(columns: ItemColumns, model: Any) -> bool:
    """Whether no coefficient is to vary between people, so that the likelihood has a maximum in closed form.

    Of one person alone coefficients do not vary either, but "bayes" has a prior for them unless they are to be fixed.
    """
    asked = model.distributions
    names = columns.attributes
    asked = dict.fromkeys(names, asked) if isinstance(asked, str) else {term_of(k, names): v for k, v in asked.items()}
    values = [asked.get(name, "normal") for name in names]
    fixed = model.method == "simulated" or set(values) == {"fixed"}
    return fixed and not columns.n_random and columns.price < 0


def likelihood_of_constants(choices: Choices, labels: FloatArray | None) -> float | None:
    """Log likelihood with a constant for each label of the alternatives (n_items, L - 1), and nothing else."""
    if labels is None:
        return None
    d = labels.shape[1]
    nothing: list[Any] = [None, np.zeros(d, dtype=np.int8), 0, -1, np.eye(d), (("", ""),) * d, ()]
    nothing[1][:] = NORMAL
    everybody = replace(choices, user=np.zeros_like(choices.user))
    problem = problem_of(everybody, ItemColumns(labels, *nothing), np.ones((1, 1)), 1)
    one = Classes(problem, 1)
    found = maximised(one.at, np.zeros(d), float(choices.weight.sum()), max_iter=50, tolerance=_SLOPE)
    return float(found.at.values.sum())
