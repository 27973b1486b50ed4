"""What ``predilect rank -o DIR`` wrote, for the commands that ask it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from predilect._base.types import LARGEST_NUMBER
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.cli.session import Talk
    from predilect.data import Comparisons


_LONGER = 4  # times the sweeps of chains that do not agree


def longer(model: Any) -> str:
    """What may make a model usable that is not."""
    draws = int(model.report_["prior"]["draws"])
    return f"more sweeps, --model mixed-logit,n_draws={_LONGER * draws}, or with fewer attributes"


@dataclass(frozen=True)
class Results:
    """A fitted model, and the folder of results that it stands in; None for the folder of a model alone."""

    model: Any
    folder: Path | None
    given: Path

    @classmethod
    def of(cls, path: Path) -> Results:
        """Load what a folder holds; DataError if that is no model."""
        from predilect.models.registry import load

        model = load(path)
        model._backend = "polars"  # whatever it was fitted with
        return cls(model, path if (path / "model").is_dir() else None, path)

    def knowing(self, user: Any) -> Any:
        """The model that knows a person, if anything does: of answers in parts, the part of the id is read."""
        from predilect.models.population.in_parts import PopulationInParts, is_in_parts

        if user is None or not is_in_parts(self.given):
            return self.model
        found = PopulationInParts.load(self.given)
        return found.part(found.parts.part_of(user))

    def refuse_unusable(self, force: bool | None = None) -> None:
        """DataError where nothing can be read from the model, unless somebody wants the numbers all the same.

        ``force``: whether ``--force`` is given; None where there is no such option.
        """
        why = self.model._not_usable
        if why and not force:
            raise DataError(
                f"{self.given} holds a {self.model._called} model that is not usable: {why}. Rank again with "
                f"{longer(self.model)}. Its numbers mean nothing"
                + ("" if force is None else "; --force prints them all the same")
            )

    def with_people(self, talk: Talk, user: Any = None) -> Results:
        """Results whose model knows a person, or holds people to take averages of: in parts, those of the largest one.

        Whom a part holds is as good as drawn by chance.
        """
        from predilect.models.population.in_parts import PopulationInParts, is_in_parts

        if not is_in_parts(self.given):
            return self
        if user is not None:
            return replace(self, model=self.knowing(user))
        found = PopulationInParts.load(self.given)
        n_people = [record.n_users for record in found.parts.records]
        model = found.part(n_people.index(max(n_people)))
        talk.say(f"{max(n_people)} people, those of the largest part, stand for all {found.parts.n_users}.")
        return replace(self, model=model)

    def everybody(self) -> Iterator[Any]:
        """Models that hold everybody: of answers in parts, one a part."""
        from predilect.models.population.in_parts import PopulationInParts, is_in_parts

        if not is_in_parts(self.given):
            yield self.model
            return
        found = PopulationInParts.load(self.given)
        yield from map(found.part, range(len(found.parts)))

    def predicting(self) -> Any:
        """The model of everybody's predictions: of answers in parts, one that reads those that it needs."""
        from predilect.models.population.in_parts import PopulationInParts, is_in_parts

        return PopulationInParts.load(self.given) if is_in_parts(self.given) else self.model

    @property
    def document(self) -> dict[str, Any]:
        """``leaderboard.json``: findings, the command, the verdict; empty where there is none.

        DataError if it is damaged.
        """
        path = None if self.folder is None else self.folder / "leaderboard.json"
        if path is None or not path.is_file():
            return {}
        try:
            found = json.loads(path.read_bytes())
        except ValueError as error:
            raise DataError(f"{path} is damaged ({error}). Rank again") from None
        return found if isinstance(found, dict) else {}

    @property
    def _answers(self) -> Path | None:
        path = None if self.folder is None else self.folder / "answers.parquet"
        return path if path is not None and path.is_file() else None

    def with_answers(self, user: Any = None) -> Any:
        """The model that knows a person, with the answers of its fit where the folder holds them and not the model."""
        if (found := self.knowing(user)) is not self.model:
            return found
        model = self.model
        if self._answers is None or getattr(model, "comparisons_", None) is not None:
            return model
        if not model.personal_ or model.posterior_.answered_rows(0) is None:
            model._begin(self.answers("a question"))
        return model

    def answers(self, what: str) -> Comparisons:
        """The answers of the fit, of which ``what`` needs to know; DataError if the folder does not hold them."""
        from predilect.data import Comparisons
        from predilect.data.read.readers import read_table

        path = self._answers
        if path is None:
            raise DataError(f"{what} needs the answers, and {self.given} holds none. Rank again with -o DIR")
        try:
            frame = read_table(path, unpack_limit=LARGEST_NUMBER)[1]
        except DataError as error:
            raise DataError(f"{error} Or rank again") from error
        intake = self.document.get("intake", {})
        joint = bool(intake.get("tasks_read") or intake.get("joint_answers"))
        covariates = [name for name in self.model._covariate_names() if name in frame.columns]
        return Comparisons.from_rows(frame, covariates, joint=joint)
