"""Half-precision storage of covariances of kept items: 16-bit variances of differences.

Pairs of items are predicted by the variance of their difference, so that is rounded, to 11 bits, and not the
covariances whose small remainder it would be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_choice
from predilect._base.json import plain, typed
from predilect._base.stored import (
    LARGEST,
    SINGLE,
    SMALL,
    ArraySpec,
    Fields,
    amounts,
    build,
    fields_of,
    is_within,
    pack,
    small,
)
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import is_semidefinite
from predilect.models.registry import estimator
from predilect.models.saving import number, restore, sizes_of
from predilect.papers.compression.losses import find_loss
from predilect.papers.compression.posterior import SubsetPosterior

_LARGEST_EXPONENT = 15  # of a 16-bit number; the smallest with all its bits is 2^-14


def halved(triangles: FloatArray, ptr: IntArray) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays to save instead of lower ``triangles`` (Σ r_u (r_u + 1) / 2,) of covariances of r_u items a person.

    ``variance`` has 32 bits; ``difference``, 16 bits, of each pair, times 2^``exponent``: relative error at most 2^-11
    down to 2^-29 of the largest, and 2^-40 of the largest below. What :func:`unhalved` made gives the same bits again.
    """
    row, column, start = _entries(ptr)
    off = row != column
    v = triangles[~off]
    difference = np.maximum(v[start[off] + row[off]] + v[start[off] + column[off]] - 2.0 * triangles[off], 0.0)
    exponent = _LARGEST_EXPONENT - math.frexp(float(difference.max(initial=0.0)))[1]
    return {
        "variance": v.astype(np.float32), "difference": np.ldexp(difference, exponent).astype(np.float16),
        "exponent": np.array(exponent, dtype=np.int64),
    }  # fmt: skip


def unhalved(arrays: dict[str, npt.NDArray[np.generic]], ptr: IntArray) -> FloatArray:
    """The lower triangles of covariances that :func:`halved` was given, but for rounding."""
    v, r = arrays["variance"].astype(np.float64), np.diff(ptr)
    if len(v) != ptr[-1] or arrays["difference"].shape != (int((r * (r - 1) // 2).sum()),):
        raise ValueError(f"{ptr[-1]} kept items, but {len(v)} variances and {len(arrays['difference'])} differences")
    row, column, start = _entries(ptr)
    off = row != column
    triangles = np.empty(len(row))
    triangles[~off] = v
    difference = np.ldexp(arrays["difference"].astype(np.float64), -int(arrays["exponent"]))
    triangles[off] = 0.5 * (v[start[off] + row[off]] + v[start[off] + column[off]] - difference)
    return triangles


def _entries(ptr: IntArray) -> tuple[IntArray, ...]:
    """Row, column and first item's place of the person of each entry of all triangles."""
    r = np.diff(ptr)
    length = np.arange(1, int(r.max(initial=0)) + 1)  # of the rows of the largest triangle
    rows = np.concatenate([length[:n] for n in r.tolist()]) if len(r) else length
    row = np.repeat(rows - 1, rows)
    column = np.arange(len(row)) - np.repeat(np.cumsum(rows) - rows, rows)
    return row, column, np.repeat(ptr[:-1], r * (r + 1) // 2)


PRECISIONS = ("half", "single", "double")
_TRIANGLES, _OF = "posterior.triangles", "posterior."
_HALVES: Fields = {
    "variance": amounts("K", "float32"), "difference": amounts("*", "float16"),
    "exponent": ArraySpec("", "int64", "an exponent of 2", lambda a, _: abs(int(a)) <= 1000),
}  # fmt: skip


def stored_posterior(posterior: Any, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain values and arrays of a posterior as they are saved, each in as few bytes as its specification allows."""
    values, arrays = pack(posterior, _OF)
    for name, field in fields_of(type(posterior), values, _OF).items():
        if name in arrays and SMALL in field.dtypes:
            arrays[name] = small(arrays[name])
        elif name in arrays and field.dtypes == SINGLE and precision != "double":
            arrays[name] = arrays[name].astype(np.float32)
    if precision == "half" and _TRIANGLES in arrays:
        del arrays[_TRIANGLES]
        arrays |= {f"{_OF}{name}": half for name, half in halved(posterior.triangles, posterior.ptr).items()}
    return values, arrays


def _posterior(kind: type, values: Any, arrays: dict[str, Any], given: dict[str, Any]) -> Any:
    """The posterior of which :func:`stored_posterior` gave the values and arrays."""
    if f"{_OF}variance" in arrays:
        halves = {name: arrays[f"{_OF}{name}"] for name in _HALVES}
        arrays = arrays | {_TRIANGLES: unhalved(halves, arrays[f"{_OF}ptr"].astype(np.int64))}
    return build(kind, values, arrays, given, _OF)


def rounded(posterior: SubsetPosterior, precision: str) -> SubsetPosterior:
    """Moments rounded to the precision of the file, so that a saved model equals the model that was made."""
    again: SubsetPosterior = _posterior(
        SubsetPosterior, *stored_posterior(posterior, precision), {"pooled": posterior.pooled}
    )
    return again


def stored_bytes(model: Any) -> int:
    """Bytes of the arrays that a model saves of its posterior and of the answers behind it."""
    return sum(int(np.asarray(array).nbytes) for array in model._stored_arrays().values())


def document_of(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Document and arrays of a :class:`~predilect.models.CompressedModel`."""
    loss, (values, shared), (posterior, arrays) = (
        model.loss, pack(model), stored_posterior(model.posterior_, model.precision)
    )  # fmt: skip
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "estimator"}
    return {
        "model": "compressed",
        "parameters": plain(
            {
                **parameters,
                "loss": loss if isinstance(loss, str) else "regret",
                "criterion": model.criterion if isinstance(model.criterion, str) else "auto",  # ``report_`` says which
            }
        ),
        "posterior": posterior if model.local else {**posterior, "of": model.origin_},
        **values,
    }, {**shared, **arrays}


def all_fields_of(cls: Any, document: dict[str, Any]) -> tuple[Fields, dict[str, int]]:
    """Specification of the arrays, and the sizes that the document gives."""
    values, arrays = document["posterior"], document["arrays"]
    fields = fields_of(cls, document) | fields_of(_kind_of(values), values, _OF)
    if _TRIANGLES in fields and _TRIANGLES not in arrays:
        del fields[_TRIANGLES]
        fields |= {f"{_OF}{name}": field for name, field in _HALVES.items()}
    return fields, sizes_of(document)


def from_document(cls: Any, document: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The model that :func:`document_of` is of; ValueError, TypeError or KeyError for damaged input."""
    parameters, values = document["parameters"], document["posterior"]
    model = cls(**{name: value if name == "keep" else number(value) for name, value in parameters.items()})
    find_loss(model.loss)
    check_choice("precision", model.precision, PRECISIONS)
    restore(model, document, arrays)
    if model.personal_ != (model.users_ is not None):
        raise ValueError("people who are named, and are not")
    if ("of" in values) == model.local:
        raise ValueError("the covariance between people, and moments person by person")
    model._begin(None)
    model.origin_ = model.report_["of"] if model.local else values["of"]
    given = {"sizes": sizes_of(document), "pooled": not model.personal_}
    model.posterior_ = _posterior(_kind_of(values), values, arrays, given)
    if model.local:
        _check_moments(model.posterior_)
    model.describe()  # an incomplete report fails here, and not when it is first read
    return model


def _check_moments(posterior: SubsetPosterior) -> None:
    """ValueError unless moments are those of utilities."""
    if not is_within(posterior.triangles, -LARGEST):
        raise ValueError("moments of kept items that no utility has")
    for utilities in (posterior.law, posterior.whole, posterior.unseen):
        if utilities is not None and not is_semidefinite(utilities.covariance):
            raise ValueError("a covariance with a direction of negative variance")


def _kind_of(values: dict[str, Any]) -> Any:
    """Class of the posterior; of everybody's kept utilities together the full model's estimator knows it."""
    if "of" not in values:
        return SubsetPosterior
    found = estimator(typed(str, values["of"], "of"))._kept_posterior
    if found is None:
        raise ValueError(f"{values['of']} has no covariance between people")
    return found
