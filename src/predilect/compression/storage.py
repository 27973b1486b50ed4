"""Half-precision storage of covariances of kept items: 16-bit variances of differences.

Pairs of items are predicted by the variance of their difference, so that is rounded, to 11 bits, and not the
covariances whose small remainder it would be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from predilect._json import plain, typed
from predilect._stored import (
    LARGEST,
    PART,
    SMALL,
    Array,
    Field,
    Fields,
    Value,
    amounts,
    build,
    codes,
    fields_of,
    flags,
    is_within,
    numbers,
    pack,
    pointer,
    positive,
    small,
    unless,
)
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.compression.losses import find_loss
from predilect.compression.posterior import SubsetPosterior
from predilect.gaussian.dense import is_semidefinite, pack_triangle, unpack_triangle
from predilect.gaussian.posterior import Utilities
from predilect.likelihoods.calibration import Calibration, restored_calibration
from predilect.models.checks import check_choice
from predilect.models.registry import estimator
from predilect.models.saving import number, restore, sizes_of

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
_SINGLE = "float32|float64"
_EXPONENT = Field("", "int64", "an exponent of 2", lambda a, _: abs(int(a)) <= 1000)
_CALIBRATION = Value(plain, lambda _, value, __: restored_calibration(value))


@dataclass(frozen=True, slots=True)
class StoredUtilities:
    """What is stored of a distribution: of utilities, or of functions and the residuals of some items."""

    mean: Annotated[FloatArray, numbers("I")]
    covariance: Annotated[Array, numbers("*", _SINGLE)]  # lower triangle
    basis: Annotated[FloatArray | None, numbers("I *")] = None
    items: Annotated[IntArray | None, codes("*", "I", "int64")] = None
    own: Annotated[FloatArray | None, amounts("I|0")] = None

    @classmethod
    def of(cls, utilities: Utilities | None, dtype: str) -> StoredUtilities | None:
        """A distribution, its covariance with the digits of a type; None of none."""
        if utilities is None:
            return None
        triangle = pack_triangle(utilities.covariance).astype(dtype)
        if utilities.Phi is None:
            return cls(utilities.mean, triangle)
        return cls(utilities.mean, triangle, utilities.Phi, utilities.items, utilities.own)

    def utilities(self) -> Utilities:
        """The distribution."""
        covariance = unpack_triangle(self.covariance.astype(np.float64))
        if self.basis is None or self.items is None or self.own is None:
            return Utilities.of(self.mean, covariance)
        return Utilities(self.mean, covariance, self.basis, self.items, self.own)

    def checked(self) -> None:
        """ValueError unless it is a distribution."""
        if not (self.basis is None) == (self.items is None) == (self.own is None):
            raise ValueError("half a basis")
        size = len(self.mean)
        if self.basis is not None and self.items is not None:
            size = self.basis.shape[1] + len(self.items)
        if len(self.covariance) != size * (size + 1) // 2:
            raise ValueError(f"a covariance of {len(self.covariance)} entries, of {size} values")
        if not is_semidefinite(unpack_triangle(self.covariance.astype(np.float64))):
            raise ValueError("a covariance with a direction of negative variance")


@dataclass(frozen=True, slots=True)
class StoredSubset:
    """What is stored of a :class:`SubsetPosterior`, of K kept items, in a precision."""

    ptr: Annotated[Array, pointer("U+1", "K", SMALL)]
    item: Annotated[Array, codes("K", "I", SMALL)]
    mean: Annotated[Array, numbers("K", _SINGLE)]
    count: Annotated[Array, amounts("K", f"{SMALL}|float64")]
    law: Annotated[StoredUtilities, PART]
    crowd: Annotated[StoredUtilities, PART]
    stranger: Annotated[StoredUtilities | None, PART]
    calibration: Annotated[Calibration, _CALIBRATION]
    # lower triangles of each person's covariance, or what :func:`halved` made of them
    covariance: Annotated[Array | None, numbers("*", _SINGLE)] = None
    variance: Annotated[Array | None, amounts("K", "float32")] = None
    difference: Annotated[Array | None, amounts("*", "float16")] = None
    exponent: Annotated[Array | None, _EXPONENT] = None
    implied: Annotated[Array | None, unless(0, numbers("*", "uint8"))] = None
    newcomers: Annotated[BoolArray | None, flags("U")] = None
    tie_factor: Annotated[FloatArray | None, unless(1.0, positive("U"))] = None
    consistency: Annotated[FloatArray | None, amounts("U 2")] = None
    item_ties: Annotated[FloatArray | None, unless(0.0, numbers("I"))] = None

    @classmethod
    def of(cls, posterior: SubsetPosterior, precision: str) -> StoredSubset:
        """What is stored of a posterior."""
        dtype, p = "float64" if precision == "double" else "float32", posterior
        law, crowd, stranger = (StoredUtilities.of(one, dtype) for one in (p.law, p.whole, p.unseen))
        assert law is not None
        assert crowd is not None
        moments = halved(p.triangles, p.ptr) if precision == "half" else {"covariance": p.triangles.astype(dtype)}
        return cls(
            small(p.ptr), small(p.items), p.mean.astype(dtype), small(p.n_answers), law, crowd, stranger,
            p.calibration, **moments, implied=p.implied, newcomers=p.newcomers, tie_factor=p.tie_factor,
            consistency=p.consistency, item_ties=p.item_ties,
        )  # fmt: skip

    def posterior(self, pooled: bool) -> SubsetPosterior:
        """The posterior."""
        ptr, nothing = self.ptr.astype(np.int64), np.zeros(0)
        return SubsetPosterior(
            ptr, self.item.astype(np.int64), self.mean.astype(np.float64), self._triangles(), self.law.utilities(),
            self.crowd.utilities(), self.count.astype(np.float64),
            np.ones(len(ptr) - 1) if self.tie_factor is None else self.tie_factor,
            None if self.stranger is None else self.stranger.utilities(),
            nothing.astype(np.uint8) if self.implied is None else self.implied, self.calibration, self.newcomers,
            self.consistency, nothing if self.item_ties is None else self.item_ties, pooled,
        )  # fmt: skip

    def _triangles(self) -> FloatArray:
        if self.covariance is not None:
            return self.covariance.astype(np.float64)
        if self.variance is None or self.difference is None or self.exponent is None:
            raise ValueError("kept items without a covariance")
        halves = {"variance": self.variance, "difference": self.difference, "exponent": self.exponent}
        return unhalved(halves, self.ptr.astype(np.int64))

    def checked(self) -> None:
        """ValueError unless moments are those of utilities, and a byte says of each eight what is implied."""
        triangles = self._triangles()
        if not is_within(triangles, -LARGEST):
            raise ValueError("moments of kept items that no utility has")
        if self.implied is not None and len(self.implied) != -(-len(triangles) // 8):
            raise ValueError(f"{len(self.implied)} bytes that say which of {len(triangles)} pairs are implied")


def rounded(posterior: SubsetPosterior, precision: str) -> SubsetPosterior:
    """Moments rounded to the precision of the file, so that a saved model equals the model that was made."""
    return posterior if precision == "double" else StoredSubset.of(posterior, precision).posterior(posterior.pooled)


def stored_bytes(model: Any) -> int:
    """Bytes of the arrays that a model saves of its posterior and of the answers behind it."""
    return sum(int(np.asarray(array).nbytes) for array in model._stored_arrays().values())


def stored_posterior(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain values and arrays of the posterior as it is saved."""
    return pack(StoredSubset.of(model.posterior_, model.precision) if model.local else model.posterior_, "posterior.")


def document_of(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Document and arrays of a :class:`~predilect.models.CompressedModel`."""
    loss, (values, shared), (posterior, arrays) = model.loss, pack(model), stored_posterior(model)
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "estimator"}
    return {
        "model": "compressed",
        "parameters": plain({**parameters, "loss": loss if isinstance(loss, str) else "regret"}),
        "posterior": posterior if model.local else {**posterior, "of": model.origin_},
        **values,
    }, {**shared, **arrays}


def all_fields_of(cls: Any, document: dict[str, Any]) -> tuple[Fields, dict[str, int]]:
    """Specification of the arrays, and the sizes that the document gives."""
    values = document["posterior"]
    return fields_of(cls, document) | fields_of(_kind_of(values), values, "posterior."), sizes_of(document)


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
    model.origin_ = model.report_["of"] if model.local else values["of"]
    found = build(_kind_of(values), values, arrays, {"sizes": sizes_of(document)}, "posterior.")
    model.posterior_ = found.posterior(not model.personal_) if model.local else found
    model.describe()  # an incomplete report fails here, and not when it is first read
    return model


def _kind_of(values: dict[str, Any]) -> Any:
    """Class of what is stored; of everybody's kept utilities together the full model's estimator knows it."""
    if "of" not in values:
        return StoredSubset
    found = estimator(typed(str, values["of"], "of"))._kept_posterior
    if found is None:
        raise ValueError(f"{values['of']} has no covariance between people")
    return found
