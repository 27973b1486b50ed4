"""Personal rankings of all people as a Parquet file, written in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from predilect.data import Vocabulary
from predilect.decisions.ranking import is_whole

_ROWS_PER_CHUNK = 400_000
_ROWS_PER_GROUP = 200_000
# With very many items nobody reads whole personal rankings, and the file would have people x items rows.
MOST_ITEMS, BEST = 1000, 100


def write_people(
    path: Path,
    model: Any,
    *,
    per_probit: float = 1.0,
    executor: ThreadPoolExecutor | None = None,
    rows_per_chunk: int = _ROWS_PER_CHUNK,
) -> None:
    """Write a Parquet file with columns user, item, mean, sd, rank and n, sorted by user and rank.

    With more than 1 000 items only each person's 100 best. ``per_probit`` is the unit of mean and sd
    (:class:`~predilect.report.tables.Scale`); utilities are centred over the items. A hidden folder beside the file
    holds the parts while they are written; OSError if that fails. ``rows_per_chunk`` bounds memory, at least one
    person; about a microsecond a row. The file has the same bytes every time.
    """
    try:
        with TemporaryDirectory(prefix=".people-", dir=path.parent) as folder:
            parts: list[Path] = []
            for rows in _chunks(model, per_probit, executor, rows_per_chunk):
                parts.append(Path(folder) / f"{len(parts)}.parquet")
                rows.write_parquet(parts[-1], compression="lz4")
            pl.scan_parquet(parts).sink_parquet(path, row_group_size=_ROWS_PER_GROUP)
    except pl.exceptions.PolarsError as error:  # how polars reports some failures of a disk
        raise OSError(str(error).splitlines()[0]) from error


def _chunks(
    model: Any, per_probit: float, executor: ThreadPoolExecutor | None, rows_per_chunk: int
) -> Iterator[pl.DataFrame]:
    users: Vocabulary = model.users_
    items: Vocabulary = model.items_
    n_items = len(items)
    step = max(1, rows_per_chunk // n_items)
    n_shown = n_items if n_items <= MOST_ITEMS else BEST
    n_type = np.int64 if is_whole(model.n_by_item_) else np.float64
    for start in range(0, len(users), step):
        stop = min(start + step, len(users))
        mean, variance = model.posterior_.centred_utilities(np.arange(start, stop), executor=executor)
        sd = np.sqrt(np.maximum(variance, 0.0))  # rounding may leave -1e-17
        order = np.argsort(-mean, axis=1, kind="stable")[:, :n_shown]  # equal ones keep the order of the ids
        counts = model.answers_of_people(start, stop)
        yield pl.DataFrame(
            {
                "user": users.series()[start:stop].gather(np.repeat(np.arange(stop - start), n_shown)),
                "item": items.series().gather(order.ravel()),
                "mean": per_probit * np.take_along_axis(mean, order, axis=1).ravel(),
                "sd": per_probit * np.take_along_axis(sd, order, axis=1).ravel(),
                "rank": np.tile(np.arange(1, n_shown + 1), stop - start),
                "n": np.take_along_axis(counts, order, axis=1).ravel().astype(n_type),
            }
        )
