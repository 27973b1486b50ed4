"""A population fitted to answers in parts: the crowd by itself, and people by reading the part that holds them."""

from __future__ import annotations

import copy
import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from predilect._base.progress import Report, Watcher
from predilect._base.replace import put_in_place, resolved, staged
from predilect._base.shards import workers
from predilect._base.text import either, for_shell
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons, Vocabulary
from predilect.data.comparisons import SIDE
from predilect.data.frames import open_frame
from predilect.data.orders import weights_of_rows
from predilect.data.read.names import PEOPLE, guess_one
from predilect.errors import DataError, OutputError
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.law import Law
from predilect.inference.people.layout import is_quicker_by_items, lay_out, patterns_of, with_own
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.estimator import AnswerCounts, Learned
from predilect.models.population.fit import PopulationState
from predilect.models.population.parted import (
    Begun,
    Passes,
    as_it_predicts,
    begun,
    fit_over_parts,
    refuse_unable,
    spec_of,
)
from predilect.models.population.prior import Candidate
from predilect.models.population.search.selection import Selection
from predilect.models.reading import read_training
from predilect.models.saving import refuse_to_replace
from predilect.parts import Parts
from predilect.parts.cells import Spec, read_state
from predilect.parts.manifest import parts_of
from predilect.parts.pools import opened

_MOST_ROWS = 1_000_000  # of the sample
_FILE, _STATES = "parts.json", "states"
_OURS = re.compile(r"parts\.json|model(/model\.json|/arrays\.npz)?|states(/part-\d+(/state-\w+-\w+\.npy)?)?")
_SCHEMA = ["predilect/population-in-parts", 2]
_PEOPLE_A_BLOCK = 4096


class PopulationInParts:
    """A population that :meth:`Population.fit_parts <predilect.Population.fit_parts>` found, without its answers.

    Attributes
    ----------
    population : Population
        The fitted model of the crowd: boards, predictions for people unknown, questions, reports. It holds nobody.
    parts : Parts
        The answers.
    """

    def __init__(self, population: Any, parts: Parts, states: Path, state: str, joint: bool) -> None:
        self.population, self.parts = population, parts
        self._states, self._state, self._joint = states, state, joint
        self._part = lru_cache(maxsize=2)(self._read_part)

    def __repr__(self) -> str:
        return f"PopulationInParts({self.parts.described()})"

    def part(self, number: int) -> Any:
        """The model with the people of one part, as a :class:`~predilect.Population`; reads that part.

        Raises
        ------
        DataError
            If there is no such part, or it has changed since the fit.
        """
        if not 0 <= number < len(self.parts):
            raise DataError(f"there are parts 0 to {len(self.parts) - 1}, and no part {number}")
        return self._part(number)

    def of(self, user: Any) -> Any:
        """The model with the people of the part that holds somebody: ``of("ann").utilities("ann")``.

        Raises
        ------
        DataError
            If there is no such person.
        """
        found = self.part(self.parts.part_of(user))
        found.users_.codes([user], what="user")
        return found

    def rank(self, user: Any = None, **options: Any) -> Any:
        """Board of the crowd, or of one person, whose part is read; ``options`` as of Population.rank."""
        return (self.population if user is None else self.of(user)).rank(user, **options)

    def predict_parts(self, X: Any, *, items: Any = None) -> FloatArray:
        """Probabilities of left, tie and right for each pair, (n, 3), in the order of the rows.

        Parameters
        ----------
        X : data frame
            As :meth:`Population.predict_proba <predilect.Population.predict_proba>` takes it. Each part that holds
            somebody of it is read once; unknown people get the population's prediction.
        items : data frame, optional
            Features of items that the model does not know.

        Raises
        ------
        DataError
            As predict_proba.
        """
        return self._predict_margin_and_proba(X, items=items)[2]

    def _predict_margin_and_proba(
        self, X: Any, *, items: Any = None, people: Any = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means and variances of the margins, (n,), and the probabilities, in the order of the rows."""
        table, _ = open_frame(X)
        frame = pl.DataFrame(table) if isinstance(table, dict) else table.to_polars()
        out = np.empty((len(frame), 5))
        column = guess_one(frame.columns, PEOPLE)
        part = np.zeros(len(frame)) if column is None else parts_of(frame[column], len(self.parts), column).to_numpy()
        for number in np.unique(part).tolist():
            rows = np.flatnonzero(part == number)
            model = self.population if column is None else self.part(number)
            mean, variance, chance = model._predict_margin_and_proba(frame[rows], items=items, people=people)
            out[rows] = np.column_stack([mean, variance, chance])
        return out[:, 0], out[:, 1], out[:, 2:]

    def _score_and_accuracy(
        self, answers: Comparisons, *, items: Any = None, people: Any = None
    ) -> tuple[float, float]:
        """Mean log-likelihood of answers, and the share that was the likeliest."""
        part = parts_of(answers.users.series(), len(self.parts)).to_numpy()[answers.user]
        sums = np.zeros(3)
        for number in np.unique(part).tolist():
            some = answers.take(part == number)
            model, n = self.part(number), float(weights_of_rows(some).sum())
            sums += n * np.array([*model._score_and_accuracy(some, items=items, people=people), 1.0])
        return float(sums[0] / sums[2]), float(sums[1] / sums[2])

    def __getattr__(self, name: str) -> Any:
        """What is of the crowd: items, report, thresholds, names of covariates."""
        if name.startswith("__") or name == "population":
            raise AttributeError(name)
        return getattr(self.population, name)

    def top_parts(self, k: int = 10, *, path: str | Path | None = None, watch: Watcher | None = None) -> pl.DataFrame:
        """The best ``k`` items of everybody: user, item, mean and rank, sorted by part, user and rank.

        Parameters
        ----------
        k : int, default 10
        path : path, optional
            Folder to write the table to, a Parquet file a part, instead of returning it whole.
        watch : callable, optional
            Called with progress: ``watch(stage, done)``.

        Returns
        -------
        polars data frame
            With ``path`` the number of rows of each file.

        Raises
        ------
        DataError
            If ``k`` is not positive, or the folder is there already.

        Notes
        -----
        Parts are read one after the other; some 0.04 ms a person with 20 answers at 200 items, as no sd is computed.
        """
        if k < 1:
            raise DataError(f"k is how many items are wanted of everybody, at least 1; got {k}")
        if path is None:
            return pl.concat([self._top(number, k, watch) for number in range(len(self.parts))])
        counts: dict[str, list[Any]] = {"file": [], "n_rows": []}
        refuse_to_replace(Path(path), overwrite=False)

        def write(folder: Path) -> None:
            for number in range(len(self.parts)):
                table = self._top(number, k, watch)
                name = f"top-{number:04d}.parquet"
                table.write_parquet(folder / name)
                counts["file"].append(name)
                counts["n_rows"].append(len(table))

        _write_folder(Path(path), write)
        return pl.DataFrame(counts)

    def _top(self, number: int, k: int, watch: Watcher | None) -> pl.DataFrame:
        if watch is not None:
            watch("ranking the parts", number + 1)
        model = self.part(number)
        n, k = len(model.users_), min(k, len(model.items_))
        tables = []
        for start in range(0, max(n, 1), _PEOPLE_A_BLOCK):
            codes = np.arange(start, min(start + _PEOPLE_A_BLOCK, n))
            mean = _means(model.posterior_, codes)
            best = np.argsort(-mean, axis=1, kind="stable")[:, :k]  # equal ones keep the order of the ids
            tables.append(pl.DataFrame({
                "user": model.users_.series().gather(np.repeat(codes, k)),
                "item": model.items_.series().gather(best.ravel()),
                "mean": np.take_along_axis(mean, best, axis=1).ravel(),
                "rank": np.tile(np.arange(1, k + 1), len(codes)),
            }))  # fmt: skip
        table = pl.concat(tables)
        return table if self.parts.user_is_integer else table.cast({"user": pl.String})

    def _read_part(self, number: int) -> Any:
        population, posterior = self.population, self.population.posterior_
        answers = _as_fitted(population, self.parts.answers(number), self._joint)
        covariates = posterior.covariates
        if covariates is not None:
            answers = replace(answers, covariates=answers.covariates / covariates.scale)
        people = lay_out(
            answers, n_basis=posterior.n_basis, likelihood=population._likelihood, thresholds=posterior.thresholds
        )
        state = read_state(self._states / f"part-{number:04d}", self._state, people)
        if state is None:
            raise DataError(
                f"{self._states} does not hold what the fit found out about part {number}. Fit again: with the same "
                f"work folder it takes as long as it takes to read the parts"
            )
        gamma = np.zeros(0) if covariates is None else covariates.mean
        spread = () if covariates is None else tuple(covariates.spread)
        rate, unit = population.hyperparameters_.click_rate, population.hyperparameters_.unit
        people = with_own(
            people, state.log_tie_factor, state.log_consistency - math.log(unit), gamma, state.consistency_sd, spread,
            state.engaged if rate else None,
        )  # fmt: skip
        if covariates is not None:
            covariates = replace(covariates, patterns=patterns_of(answers)["patterns"])
        model = copy.copy(population)
        model.posterior_ = replace(posterior, people=people, sites=state.sites, covariates=covariates)
        model.users_, model.counts_ = answers.users, AnswerCounts.of(answers)
        model._begin(answers)
        return model

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to a folder, whole or not at all: ``model``, the crowd's, and ``states`` of the parts.

        The answers stay where they are, and their folder is named in it.

        Raises
        ------
        FileExistsError
            If the path exists and ``overwrite`` is False, or anything else than such a model is there.
        OutputError
            If the folder cannot be written.
        """
        path = Path(path)
        refuse_to_replace(path, overwrite, _OURS.fullmatch)
        _write_folder(path, self.write)

    def write(self, folder: Path) -> None:
        """Write what :meth:`save` does into a folder that is there."""
        self.population.save(folder / "model")
        for number in range(len(self.parts)):
            place = folder / _STATES / f"part-{number:04d}"
            place.mkdir(parents=True)
            for what in ("sites", "own"):
                name = f"state-{what}-{self._state}.npy"
                shutil.copyfile(self._states / f"part-{number:04d}" / name, place / name)
        document = {"schema": _SCHEMA, "parts": str(self.parts.path.resolve()), "checksum": self.parts.checksum,
                    "state": self._state, "joint": self._joint}  # fmt: skip
        (folder / _FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def _remove_work(self) -> None:
        """Remove the folder of the fit, of which the model that was saved holds all that people need."""
        shutil.rmtree(self._states, ignore_errors=True)
        if not any(self._states.parent.iterdir()):
            self._states.parent.rmdir()

    @classmethod
    def load(cls, path: str | Path, parts: str | Path | None = None) -> Self:
        """Read a folder that :meth:`save` wrote; ``parts`` says where the answers are now.

        Raises
        ------
        DataError
            If the folder holds no such model, or the answers are others than those of the fit.
        """
        from predilect.models.registry import load

        path = Path(path)
        try:
            document = json.loads((path / _FILE).read_bytes())
            said = [document[name] for name in ("parts", "checksum", "state", "joint")]
            schema = document["schema"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} holds no population in parts ({type(error).__name__}: {error})") from None
        if schema != _SCHEMA:
            raise DataError(f"{path / _FILE} is of version {schema}, and this one reads {_SCHEMA}. Fit again")
        found = Parts.open(said[0] if parts is None else parts)
        if found.checksum != said[1]:
            raise DataError(
                f"{found.path} holds other answers than those that {path} was fitted to. "
                + either(
                    f"Rank them: predilect rank {for_shell(str(found.path))} -o DIR",
                    "Fit again: start= takes the old model for where the search begins",
                )
            )
        return cls(load(path / "model"), found, path / _STATES, str(said[2]), bool(said[3]))


def _means(posterior: PopulationPosterior, codes: IntArray) -> FloatArray:
    """Means of people's utilities, centred over the items, (n, n_items): m + S Xᵀα, of which no variance is formed."""
    people, law = posterior.people, posterior.law
    items = np.arange(people.n_items)
    # As for a pass: with few items it is quicker to work with their covariance than with functions.
    by_items = law.has_basis and is_quicker_by_items(people.n_items, law.Phi.shape[1])
    dense = Law(law.covariance(items), law.mean) if by_items else law
    x = np.zeros((len(codes), people.n_items))
    for row, code in enumerate(codes.tolist()):
        own, score, _ = people.sums(code, posterior.sites, dense)
        x[row, own] = score[: len(own)]
    if dense.has_basis:
        mean = dense.mean + (x @ dense.Phi) @ dense.cov.T + (x * dense.rho if len(dense.rho) else 0.0)
    else:
        mean = dense.mean + x @ dense.cov
    return np.asarray(mean - mean.mean(axis=1, keepdims=True))


def _write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Make a folder, whole or not at all; OutputError."""
    try:
        target = resolved(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged(target) as new:
            new.mkdir()
            write(new)
            put_in_place(new, target)
    except OSError as error:
        if error.strerror is None:
            raise
        raise OutputError(
            f"{path} could not be written: {error.strerror}. Nothing half-written was left behind; make room, or "
            "choose another place"
        ) from error


def is_in_parts(path: Path) -> bool:
    """Whether a folder holds a population in parts."""
    return (path / _FILE).is_file()


def _as_fitted(model: Any, answers: Comparisons, joint: bool) -> Comparisons:
    """Answers of a part, as the fit took them."""
    spec = Spec(
        Path(), "", Path(), model.items_, with_side=SIDE in model._covariate_names(), grades=model.grades_, joint=joint,
        unit=np.ones(len(model._covariate_names())),
    )  # fmt: skip
    return spec.taken(answers)


def fit_in_parts(
    model: Any, given: Any, items: Any, pool: Any, work: str | Path | None, start: Any,
    most_people: int, watch: Watcher | None,
) -> PopulationInParts:  # fmt: skip
    """See :meth:`Population.fit_parts <predilect.Population.fit_parts>`."""
    parts = given if isinstance(given, Parts) else Parts.open(given)
    refuse_unable(parts, bool(model.personal))
    place = Path(f"{parts.path}.fit") if work is None else Path(work)
    model = copy.copy(model)
    delta = model._given_threshold()
    if watch is not None:
        watch("reading a sample", 0)
    sample = parts.sample(most_people, _MOST_ROWS)
    training = model._prepared(read_training(sample, None, items, None, delta, None, None))
    if not training.personal:
        raise DataError(f"{parts.path} holds the answers of one person; a fit to parts needs two or more")
    with workers(model.n_jobs) as executor:
        plan, _, rms = model._plan(training, True, delta, executor, watch)
        earlier = None if start is None else _selection_of(_crowd_of(start), plan)
        made = begun(plan, parts.n_answers, earlier)
    chosen = made.selection.hyperparameters
    spec = spec_of(parts, place.resolve(), made.plan, SIDE in training.comparisons.covariate_names, chosen, made, rms)
    with opened(pool, model.n_jobs) as crew:
        over = Passes(spec, crew, len(parts), made.prior.n_functions)
        progress = None if watch is None else lambda done, _: watch("fitting", done)
        state = fit_over_parts(over, made.prior, made.plan, made.begin, progress)
        posterior, chosen = as_it_predicts(over, _posterior(state, made, plan, rms), state, made)
    model._functions, model._traits, model.verdict_ = made.selection.candidate.functions, None, None
    threshold = posterior.people.tie_threshold(state.delta)
    learned = Learned(
        posterior, chosen, True, threshold, state.evidence, state.report, made.selection.to_dict()
    )  # fmt: skip
    model._keep(training, learned)
    nobody = replace(training.comparisons.take(np.zeros(0, np.int64)), users=Vocabulary(pl.Series([], dtype=pl.String)))
    model.users_ = nobody.users
    model._begin(nobody)
    assert over.counts is not None
    model.n_answers_, model.results_by_item_ = over.counts.n_answers, over.counts.results
    model.report_ |= {
        "intake": parts.intake.describe(),
        "parts": {"n_parts": len(parts), "n_users": parts.n_users, "sample": sample.n_users, "lost": over.n_lost,
                  "passes_known": over.n_known},
    }  # fmt: skip
    state.report.require(model.strict)
    return PopulationInParts(model, parts, spec.scratch, over.now, spec.joint)


def _posterior(state: Any, made: Begun, plan: Any, rms: FloatArray) -> PopulationPosterior:
    """The posterior with nobody in it."""
    rows = plan.answers.take(np.zeros(0, np.int64))
    nobody = lay_out(
        replace(rows, users=Vocabulary(pl.Series([], dtype=pl.String))), n_basis=made.n_basis,
        likelihood=plan.likelihood, thresholds=made.thresholds,
    )  # fmt: skip
    posterior = state.posterior(nobody, made.prior)
    if posterior.covariates is not None:
        named = replace(
            posterior.covariates, names=plan.answers.covariate_names, rms=rms, patterns=np.zeros((1, len(rms)))
        )
        posterior = replace(posterior, covariates=named)
    return posterior


def _crowd_of(start: Any) -> Any:
    """The population of an earlier fit, or of the folder in which one was saved."""
    from predilect.models.registry import load

    return load(start) if isinstance(start, str | Path) else getattr(start, "population", start)


def _selection_of(old: Any, plan: Any) -> Selection:
    """Hyper-parameters of an earlier fit, and its population where items are the same."""
    candidate, begin = Candidate.of(old._functions, plan.space), None
    if old.items_ == plan.answers.items:
        posterior = old.posterior_.in_unit(1.0 / old.hyperparameters_.unit)
        basis, effects, thresholds = posterior.basis, posterior.covariates, posterior.thresholds
        nothing, none = np.zeros(0), np.zeros((0, 0))
        offset, variance, own_scale = nothing, nothing, 1.0
        if basis is not None:
            offset, variance, own_scale = basis.offset, basis.offset_variance, basis.own_scale
        delta = old.tie_threshold_ if thresholds is None else thresholds.scale
        begin = PopulationState(
            posterior.m, posterior.Sigma, posterior.C_m, delta, Sites.flat(0), old.log_evidence_, 0.0,
            Report("an earlier fit", 0, 0.0, 0.0, True, 0.0, 0.0, "", ""), offset, variance, own_scale,
            np.zeros((len(posterior.m), 0)), none, nothing, nothing, nothing, nothing,
            nothing if effects is None else effects.mean, none, thresholds,
        )  # fmt: skip
    return Selection(old.hyperparameters_, candidate, [], 0, 0.0, begin)
