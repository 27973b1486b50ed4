"""Kernels made of kernels: sums, products, scaling, and selection of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from predilect._base.types import FloatArray
from predilect.inference.gaussian.kernels.base import Kernel, check_rows, positive, theta_of


class Combinable:
    """Operators of kernels: ``a + b`` is a Sum, ``a * b`` a Product, ``2.0 * a`` a Scaled kernel."""

    __slots__ = ()
    __array_ufunc__ = None  # a NumPy number times a kernel is a kernel

    def __add__(self: Kernel, other: Kernel) -> Sum:
        return Sum((*_inside(self, Sum), *_inside(other, Sum)))

    def __mul__(self: Kernel, other: Kernel | float) -> Product | Scaled:
        if isinstance(other, Kernel):
            return Product((*_inside(self, Product), *_inside(other, Product)))
        return Scaled(self, other)

    def __rmul__(self: Kernel, other: float) -> Scaled:
        return Scaled(self, other)


@dataclass(frozen=True, slots=True, eq=False)
class _Several:
    """Base of sums and products: the hyper-parameters of each kernel, one after the other."""

    _operation: ClassVar[np.ufunc]

    kernels: tuple[Kernel, ...]
    # prefix of the names of each kernel's hyper-parameters: "items.length_scale[2]". By default the name of
    # its class or, for ``Selected``, its columns; numbered where that is not unique.
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kernels = tuple(self.kernels)
        labels = tuple(self.labels) or _default_labels(kernels)
        if not kernels:
            raise ValueError(f"a {type(self).__name__} needs at least one kernel")
        if len(labels) != len(kernels) or len(set(labels)) != len(labels):
            raise ValueError(f"{len(kernels)} kernels need as many different labels, not {labels!r}")
        object.__setattr__(self, "kernels", kernels)
        object.__setattr__(self, "labels", labels)

    @property
    def names(self) -> tuple[str, ...]:
        """label.name of every hyper-parameter."""
        parts = zip(self.labels, self.kernels, strict=True)
        return tuple(f"{label}.{name}" for label, kernel in parts for name in kernel.names)

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the hyper-parameters of each kernel in turn."""
        return np.concatenate([kernel.theta for kernel in self.kernels])

    def with_theta(self, theta: FloatArray) -> Self:
        """The same at other hyper-parameters, given by their logarithms."""
        ends = np.cumsum([len(kernel.theta) for kernel in self.kernels])
        theta_of(theta, int(ends[-1]))
        parts = np.split(np.asarray(theta, dtype=np.float64), ends[:-1])
        return replace(self, kernels=tuple(k.with_theta(part) for k, part in zip(self.kernels, parts, strict=True)))

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """Sum or product over the kernels of k(x_i, y_j), shape (n, m)."""
        return self._fold(kernel(x, y) for kernel in self.kernels)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Sum or product of k(x_i, x_i), shape (n,)."""
        return self._fold(kernel.diagonal(x) for kernel in self.kernels)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Sum or product of k(x_i, y_i), shape (n,)."""
        return self._fold(kernel.pairs(x, y) for kernel in self.kernels)

    def _fold(self, parts: Iterator[FloatArray]) -> FloatArray:
        """Reduction of the parts in the memory of the first, which has no other owner."""
        whole = next(parts)
        for part in parts:
            self._operation(whole, part, out=whole)
        return whole


class Sum(_Several, Combinable):
    """Sum of kernels, Σ_k: of independent functions; similarity in one respect suffices ("soft OR").

    Attributes
    ----------
    kernels : tuple of Kernel
    labels : tuple of str
        One for each kernel, before the names of its hyper-parameters; by default the names of the classes.

    Notes
    -----
    crowdgppl.md, kernels (iii). Each kernel is evaluated once, for a value and for a gradient.
    """

    __slots__ = ()
    _operation = np.add

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Gradients of the kernels, one after the other."""
        return np.concatenate([kernel.gradient(x, y, weights) for kernel in self.kernels])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Gradients of the diagonals, one after the other."""
        return np.concatenate([kernel.diagonal_gradient(x, weights) for kernel in self.kernels])


class Product(_Several, Combinable):
    """Product of kernels, Π_k: similar only if similar in every respect ("soft AND").

    Attributes
    ----------
    kernels : tuple of Kernel
    labels : tuple of str
        One for each kernel, before the names of its hyper-parameters; by default the names of the classes.

    Notes
    -----
    crowdgppl.md, kernels (iii). A gradient evaluates each kernel twice, and holds one n x m array for each.
    """

    __slots__ = ()
    _operation = np.multiply

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """The gradient of each kernel with the product of the others in its weights."""
        others = _products_of_others([kernel(x, y) for kernel in self.kernels], weights)
        parts = zip(self.kernels, others, strict=True)
        return np.concatenate([kernel.gradient(x, y, other) for kernel, other in parts])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """The same for the diagonals."""
        others = _products_of_others([kernel.diagonal(x) for kernel in self.kernels], weights)
        parts = zip(self.kernels, others, strict=True)
        return np.concatenate([kernel.diagonal_gradient(x, other) for kernel, other in parts])


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(Combinable):
    """Kernel times a variance.

    Attributes
    ----------
    kernel : Kernel
        Without a hyper-parameter that scales it already: two that only multiply cannot both be learned.
    variance : float
        > 0; in squared utilities where k(x, x) = 1.
    """

    kernel: Kernel
    variance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", float(positive(self.variance, "variances", 1)[0]))

    @property
    def names(self) -> tuple[str, ...]:
        """Variance, and the names of the kernel; with its class before them if one of these is "variance" too."""
        inner = self.kernel.names
        label = f"{type(self.kernel).__name__.lower()}." if "variance" in inner else ""
        return ("variance", *(f"{label}{name}" for name in inner))

    @property
    def theta(self) -> FloatArray:
        return np.concatenate([[np.log(self.variance)], self.kernel.theta])

    def with_theta(self, theta: FloatArray) -> Self:
        variance = theta_of(theta, 1 + len(self.kernel.theta))[0]
        return replace(self, kernel=self.kernel.with_theta(np.asarray(theta)[1:]), variance=variance)

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """Variance times k(x_i, y_j), shape (n, m)."""
        K = self.kernel(x, y)
        K *= self.variance
        return K

    def diagonal(self, x: FloatArray) -> FloatArray:
        return self.variance * self.kernel.diagonal(x)

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return self.variance * self.kernel.pairs(x, y)

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Gradient; by the log variance it is the weighted sum of the kernel itself."""
        own = self.variance * float(np.vdot(weights, self.kernel(x, y)))
        return np.concatenate([[own], self.variance * self.kernel.gradient(x, y, weights)])

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        own = self.variance * float(weights @ self.kernel.diagonal(x))
        return np.concatenate([[own], self.variance * self.kernel.diagonal_gradient(x, weights)])


@dataclass(frozen=True, slots=True, eq=False)
class Of(Combinable):
    """Base of kernels with the hyper-parameters of another kernel and none of their own."""

    kernel: Kernel

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the other."""
        return self.kernel.names

    @property
    def theta(self) -> FloatArray:
        """That of the other."""
        return self.kernel.theta

    def with_theta(self, theta: FloatArray) -> Self:
        """The same of the other at ``theta``."""
        return replace(self, kernel=self.kernel.with_theta(theta))


@dataclass(frozen=True, slots=True, eq=False)
class Selected(Of):
    """Kernel of some of the features.

    Attributes
    ----------
    kernel : Kernel
    columns : tuple of int
        Features, counted from 0; hyper-parameters of the kernel are counted within these.
    """

    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        columns = tuple(int(column) for column in self.columns)
        if not columns or min(columns) < 0 or len(set(columns)) != len(columns):
            raise ValueError(f"columns must be different numbers from 0 on, not {self.columns!r}")
        object.__setattr__(self, "columns", columns)

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """The kernel of the columns, shape (n, m)."""
        return self.kernel(self._of(x), None if y is None else self._of(y))

    def diagonal(self, x: FloatArray) -> FloatArray:
        return self.kernel.diagonal(self._of(x))

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return self.kernel.pairs(self._of(x), self._of(y))

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        return self.kernel.gradient(self._of(x), None if y is None else self._of(y), weights)

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        return self.kernel.diagonal_gradient(self._of(x), weights)

    def _of(self, x: FloatArray) -> FloatArray:
        check_rows(x, None)
        if x.shape[1] <= max(self.columns):
            raise ValueError(f"the kernel selects column {max(self.columns)}, but the rows have {x.shape[1]} features")
        return x[:, list(self.columns)]


def _inside(kernel: Kernel, kind: type[_Several]) -> tuple[Kernel, ...]:
    """Terms of a kernel of that kind without labels of its own, else the kernel: a + b + c is one sum of three."""
    if isinstance(kernel, kind) and kernel.labels == _default_labels(kernel.kernels):
        return kernel.kernels
    return (kernel,)


def _default_labels(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    plain = [_label(kernel) for kernel in kernels]
    count, seen, labels = Counter(plain), Counter[str](), []
    for label in plain:
        seen[label] += 1
        labels.append(label if count[label] == 1 else f"{label}#{seen[label]}")
    return tuple(labels)


def _label(kernel: Kernel) -> str:
    if not isinstance(kernel, Selected):
        return type(kernel).__name__.lower()
    first, last = kernel.columns[0], kernel.columns[-1]
    if len(kernel.columns) > 2 and kernel.columns == tuple(range(first, last + 1)):
        return f"features[{first}-{last}]"
    return f"features[{','.join(map(str, kernel.columns))}]"


def _products_of_others(parts: list[FloatArray], weights: FloatArray) -> list[FloatArray]:
    """Weights times all parts but one, for each in turn, without a division (a part may be 0)."""
    out = [weights]
    for part in parts[:-1]:
        out.append(out[-1] * part)
    after: FloatArray | float = 1.0
    for k in range(len(parts) - 1, -1, -1):
        out[k] = out[k] * after
        after = after * parts[k]
    return out
