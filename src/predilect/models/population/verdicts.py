"""The verdict of a fitted model: made when it is asked for, then kept."""

from __future__ import annotations

import copy
from typing import Any

from predilect._json import plain
from predilect.errors import DataError
from predilect.evaluation.judging import judge
from predilect.evaluation.verdict import Verdict
from predilect.progress import Watcher


def verdict_of(model: Any, *, watch: Watcher | None, **settings: int) -> Verdict:
    """The verdict that the model holds, or a new one, kept unless answers changed meanwhile; raises DataError."""
    now = copy.copy(model)
    held: Verdict | None = now.verdict_
    if held is not None and held.settings == settings:
        return held
    if now.comparisons_ is None:
        why = f"it holds one for other settings ({held.settings}) in verdict_" if held is not None else "it holds none"
        raise DataError(
            f"a loaded model has no answers to hold out, and {why}. Fit again on the answers and call verdict() before "
            "save()"
        )
    verdict = judge(now, now.comparisons_, now.features_, tie_threshold=now.tie_threshold_, watch=watch, **settings)
    with model.turn_:
        if model.log_ is now.log_:  # no answer came or went meanwhile
            keep_verdict(model, verdict)
    return verdict


def keep_verdict(model: Any, verdict: Verdict) -> None:
    """Keep a verdict in a model, and in its report, which is saved."""
    vars(model).update({"verdict_": verdict, "report_": model.report_ | {"verdict": plain(verdict.to_dict())}})
