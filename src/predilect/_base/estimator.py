"""What an estimator has by scikit-learn's conventions, which need not be there (parameters, copies, tags); a lock."""

from __future__ import annotations

import copy
import threading
from inspect import Parameter, signature
from typing import Any, Self

from predilect._base.text import did_you_mean, shortened
from predilect.errors import DataError, NotFittedError

_LONGEST_REPR = 700


class Lock:
    """A lock for those who change a model; what is pickled or copied deep gets another one."""

    def __init__(self) -> None:
        self._held = threading.RLock()

    def __enter__(self) -> None:
        self._held.acquire()

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


class Parameters:
    """Base of estimators: the arguments of the constructor are attributes of the same names."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Arguments of the constructor by their names, sorted, with their defaults."""
        arguments = list(signature(cls.__init__).parameters.values())[1:]  # without self
        return {one.name: one.default for one in sorted(arguments, key=lambda one: one.name)
                if one.kind is not Parameter.VAR_KEYWORD}  # fmt: skip

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor by their names.

        Parameters
        ----------
        deep : bool, default True
            Those of an estimator among them too, as ``estimator__name``.
        """
        found: dict[str, Any] = {}
        for name in self._defaults():
            value = getattr(self, name)
            if deep and _is_estimator(value):
                found |= {f"{name}__{inner}": its for inner, its in value.get_params().items()}
            found[name] = value
        return found

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor, those of an estimator among them as ``estimator__name``.

        Raises
        ------
        DataError
            If there is no parameter of a name.
        """
        known, inner = self._defaults(), dict[str, dict[str, Any]]()
        for name, value in params.items():
            own, _, rest = name.partition("__")
            if own not in known or (rest and not _is_estimator(params.get(own, getattr(self, own)))):
                meant = did_you_mean(name, known) or f" It has {', '.join(known)}"
                raise DataError(f'{type(self).__name__} has no parameter "{name}".{meant}')
            if rest:
                inner.setdefault(own, {})[rest] = value
        for name in params.keys() & known:
            setattr(self, name, params[name])
        for name, values in inner.items():
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        changed = [f"{name}={getattr(self, name)!r}" for name, default in self._defaults().items()
                   if repr(getattr(self, name)) != repr(default)]  # fmt: skip
        return shortened(f"{type(self).__name__}({', '.join(changed)})", _LONGEST_REPR)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks an estimator about itself; without it, it is not here."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def clone(estimator: Any) -> Any:
    """An unfitted estimator with the same parameters, copies of those that are objects."""
    given = estimator.get_params(deep=False)
    return type(estimator)(
        **{name: clone(value) if _is_estimator(value) else copy.deepcopy(value) for name, value in given.items()}
    )


def check_is_fitted(model: Any) -> None:
    """NotFittedError unless the model is fitted."""
    if not hasattr(model, "posterior_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet. Call 'fit' first")
