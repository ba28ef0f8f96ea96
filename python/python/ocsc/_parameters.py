"""The constructor of `OnlineCSC`, made from the declarations of its parameters.

Type checkers read ``_parameters.pyi`` in its place, which ``cargo xtask generate`` writes from the same declarations.
"""

# What annotations name, for those who evaluate them.
from collections.abc import Callable, Sequence  # noqa: F401
from typing import Any  # noqa: F401

import numpy.typing as npt  # noqa: F401

from ._declarations import PARAMETERS, signature
from ._step import Step  # noqa: F401

_SIGNATURE = signature()


class Parameters:
    """Holds what an estimator was constructed with: one attribute for each parameter."""

    def __init__(self, *args, **kwargs):
        """Keeps the parameters as they are given; `fit` checks them."""
        try:
            given = _SIGNATURE.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__() {error}") from None
        given.apply_defaults()
        for parameter in PARAMETERS:
            setattr(self, parameter.name, given.arguments[parameter.name])

    __init__.__signature__ = _SIGNATURE
    __init__.__annotations__ = {**{parameter.name: parameter.annotation for parameter in PARAMETERS}, "return": "None"}
