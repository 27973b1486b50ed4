"""Half-precision storage of covariances of kept items: 16-bit variances of differences.

Pairs of items are predicted by the variance of their difference, so that is rounded, to 11 bits, and not the
covariances whose small remainder it would be.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._json import plain, typed
from predilect._stored import (
    SMALL,
    Field,
    Fields,
    amounts,
    codes,
    flags,
    is_within,
    numbers,
    optional,
    pointer,
    positive,
    small,
)
from predilect._types import FloatArray, IntArray
from predilect.compression.losses import find_loss
from predilect.compression.posterior import SubsetPosterior
from predilect.gaussian.covariates import CovariateEffects
from predilect.gaussian.dense import is_semidefinite, pack_triangle, unpack_triangle
from predilect.gaussian.posterior import Utilities
from predilect.likelihoods.calibration import restored_calibration
from predilect.models.checks import LARGEST, check_choice
from predilect.models.registry import estimator
from predilect.models.saving import number, restore, sizes_of, stored

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
_LAWS = ("law", "crowd", "stranger")
_EXPONENT = Field("", "int64", "an exponent of 2", lambda a, _: abs(int(a)) <= 1000)


def rounded(posterior: SubsetPosterior, precision: str) -> SubsetPosterior:
    """Moments rounded to the precision of the file, so that a saved model equals the model that was made."""
    if precision == "double":
        return posterior
    law, whole, unseen = (None if one is None else _rounded(one) for one in _laws(posterior))
    assert law is not None
    assert whole is not None
    if precision == "half":
        triangles = unhalved(halved(posterior.triangles, posterior.ptr), posterior.ptr)
    else:
        triangles = _single(posterior.triangles)
    mean = _single(posterior.mean)
    return replace(posterior, mean=mean, triangles=triangles, law=law, whole=whole, unseen=unseen)


def stored_bytes(model: Any) -> int:
    """Bytes of the arrays that a model saves of its posterior and of the answers behind it."""
    return sum(int(np.asarray(array).nbytes) for array in model._stored_arrays().values())


def document_of(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Document and arrays of a :class:`~predilect.models.CompressedModel`."""
    posterior, loss = model.posterior_, model.loss
    values: dict[str, Any] = {} if model.local else {**posterior.pack()[0], "of": model.origin_}
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "estimator"}
    document = stored(model) | {
        "model": "compressed",
        "parameters": plain({**parameters, "loss": loss if isinstance(loss, str) else "regret"}),
        "calibration": plain(asdict(posterior.calibration)),
        "posterior": plain(values),
        "report": model.report_,
    }
    if model.covariates_ is not None:
        document["covariates"] = model.covariates_.to_dict()
    if not model.personal_:
        document["users"] = None
    return document, {"n_by_item": model.n_by_item_, **arrays_of(model)}


def arrays_of(model: Any) -> dict[str, Any]:
    """Arrays of the posterior as they are saved."""
    posterior = model.posterior_
    if not model.local:
        arrays: dict[str, Any] = posterior.pack()[1]
        return arrays
    kept = np.asarray if model.precision == "double" else _as_stored
    arrays = {
        "ptr": small(posterior.ptr), "item": small(posterior.items), "mean": kept(posterior.mean),
        "count": small(posterior.n_answers),
    }  # fmt: skip
    if model.precision == "half":
        arrays |= halved(posterior.triangles, posterior.ptr)
    else:
        arrays["covariance"] = kept(posterior.triangles)
    if len(posterior.implied):
        arrays["implied"] = posterior.implied
    if posterior.newcomers is not None:
        arrays["newcomers"] = posterior.newcomers
    if (posterior.tie_factor != 1.0).any():
        arrays["tie_factor"] = posterior.tie_factor
    if posterior.consistency is not None:
        arrays["consistency"] = posterior.consistency
    if len(posterior.item_ties):
        arrays["item_ties"] = posterior.item_ties
    for name, law in zip(_LAWS, _laws(posterior), strict=True):
        if law is not None:
            arrays |= _pack(law, name, kept)
    return arrays


def _laws(posterior: SubsetPosterior) -> tuple[Utilities | None, ...]:
    return posterior.law, posterior.whole, posterior.unseen


def fields_of(document: dict[str, Any]) -> tuple[Fields, dict[str, int]]:
    """Expected arrays: of K kept items, D pairs of them, and distributions of M functions, or of the items."""
    sizes, arrays, single = sizes_of(document), document["arrays"], "float32|float64"
    fields: Fields = {"n_by_item": amounts("I")}
    if "alpha" in arrays:
        return fields | _kept_posterior(document).fields(arrays), sizes
    fields |= {
        "ptr": pointer("U+1", "K", SMALL), "item": codes("K", "I", SMALL), "mean": numbers("K", single),
        "count": amounts("K", f"{SMALL}|float64"), "tie_factor": optional(positive("U")),
        "consistency": optional(amounts("U 2")), "item_ties": optional(numbers("I")),
    }  # fmt: skip
    if "covariance" in arrays:
        fields["covariance"] = numbers("E", single)
        n_entries = arrays["covariance"][1][0]
    else:
        fields |= {"variance": amounts("K", "float32"), "difference": amounts("D", "float16"), "exponent": _EXPONENT}
        n_entries = arrays["variance"][1][0] + arrays["difference"][1][0]
    fields["implied"] = optional(numbers(str(-(-n_entries // 8)), "uint8"))
    fields["newcomers"] = optional(flags("U"))
    for name in _LAWS:
        if name == "stranger" and f"{name}_mean" not in arrays:
            continue
        fields[f"{name}_mean"], size = numbers("I"), sizes["I"]
        if f"{name}_basis" in arrays:
            n_functions, n_items = arrays[f"{name}_basis"][1][1], arrays[f"{name}_items"][1][0]
            fields[f"{name}_basis"], fields[f"{name}_own"] = numbers(f"I {n_functions}"), amounts("I|0")
            fields[f"{name}_items"] = codes(str(n_items), "I", "int64")
            size = n_functions + n_items
        fields[f"{name}_covariance"] = numbers(str(size * (size + 1) // 2), single)
    return fields, sizes


def from_document(cls: Any, document: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The model that :func:`document_of` is of; ValueError, TypeError or KeyError for damaged input."""
    parameters = document["parameters"]
    model = cls(**{name: value if name == "keep" else number(value) for name, value in parameters.items()})
    find_loss(model.loss)
    check_choice("precision", model.precision, PRECISIONS)
    restore(model, document, arrays)
    model.n_by_item_ = arrays["n_by_item"]
    model.personal_ = typed(bool, document["personal"], "personal")
    calibration = restored_calibration(document["calibration"])
    effects = document.get("covariates")
    model.covariates_ = None if effects is None else CovariateEffects.from_dict(effects)
    if model.personal_ != (model.users_ is not None):
        raise ValueError("people who are named, and are not")
    n_users = len(model.users_ or [None])
    if ("alpha" in arrays) == model.local:
        raise ValueError("the covariance between people, and moments person by person")
    model.origin_ = document["report"]["of"]
    if not model.local:
        model.origin_ = document["posterior"]["of"]
        model.posterior_ = _kept_posterior(document).unpack(document["posterior"], arrays)
        if model.posterior_.n_users != n_users:
            raise ValueError(f"{n_users} people, but a process of {model.posterior_.n_users}")
    else:
        ptr, whole = arrays["ptr"].astype(np.int64), arrays.get("covariance")
        triangles = unhalved(arrays, ptr) if whole is None else whole.astype(np.float64)
        if not is_within(triangles, -LARGEST):
            raise ValueError("moments of kept items that no utility has")
        laws = {name: _unpack(arrays, name) if f"{name}_mean" in arrays else None for name in _LAWS}
        law, crowd = laws["law"], laws["crowd"]
        if law is None or crowd is None:
            raise ValueError("a model without a crowd")
        model.posterior_ = SubsetPosterior(
            ptr, arrays["item"].astype(np.int64), arrays["mean"].astype(np.float64), triangles,
            law, crowd, arrays["count"].astype(np.float64),
            arrays.get("tie_factor", np.ones(n_users)), laws["stranger"],
            arrays.get("implied", np.zeros(0, dtype=np.uint8)), calibration, arrays.get("newcomers"),
            arrays.get("consistency"), arrays.get("item_ties", np.zeros(0)),
            not model.personal_,
        )  # fmt: skip
    model.describe()  # an incomplete report fails here, and not when it is first read
    return model


def _kept_posterior(document: dict[str, Any]) -> Any:
    """Class of the posterior of everybody's kept utilities together, which the full model's estimator knows."""
    found = estimator(typed(str, document["posterior"]["of"], "of"))._kept_posterior
    if found is None:
        raise ValueError(f"{document['posterior']['of']} has no covariance between people")
    return found


def _pack(utilities: Utilities, name: str, kept: Any) -> dict[str, Any]:
    arrays = {f"{name}_mean": utilities.mean, f"{name}_covariance": kept(pack_triangle(utilities.covariance))}
    if utilities.Phi is not None:
        arrays |= {f"{name}_basis": utilities.Phi, f"{name}_items": utilities.items, f"{name}_own": utilities.own}
    return arrays


def _unpack(arrays: dict[str, Any], name: str) -> Utilities:
    covariance = unpack_triangle(arrays[f"{name}_covariance"].astype(np.float64))
    if not is_semidefinite(covariance):
        raise ValueError(f"{name}_covariance has a direction of negative variance")
    if f"{name}_basis" not in arrays:
        return Utilities.of(arrays[f"{name}_mean"], covariance)
    more = (arrays[f"{name}_{part}"] for part in ("basis", "items", "own"))
    return Utilities(arrays[f"{name}_mean"], covariance, *more)


def _single(values: FloatArray) -> FloatArray:
    return values.astype(np.float32).astype(np.float64)


def _as_stored(values: FloatArray) -> npt.NDArray[np.float32]:
    return values.astype(np.float32)


def _rounded(utilities: Utilities) -> Utilities:
    return replace(utilities, covariance=_single(utilities.covariance))
