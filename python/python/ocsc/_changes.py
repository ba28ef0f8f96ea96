"""Parameters that were changed after learning: which of them take effect without learning again, and which are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

CODING = ("beta", "tol", "boundary", "preprocess", "non_negative", "weights", "max_rounds")
"""Those that coding heeds at once, beside ``dtype``, which may depend on the data, and ``axes`` and ``threads``, which are
asked at every call."""

LEARNING = (
    "beta",
    "batch_size",
    "tol",
    "non_negative",
    "weights",
    "max_rounds",
    "forgetting",
    "sweeps",
    "sweep_tol",
    "reseed",
    "stop",
    "max_iters",
    "rho",
    "adaptive_rho",
    "relaxation",
    "update_iters",
    "update_tol",
    "update_reset",
)
"""Those that learning heeds from the next step on: the statistics of the steps before stay what they are."""

FIXED = ("n_filters", "filter_shape", "method", "boundary", "preprocess", "update_rho")
"""Those that the statistics of a run are made with, beside ``dtype``."""

COMPARED = tuple(dict.fromkeys((*CODING, *LEARNING, *FIXED, "dtype", "beta_ratio")))
"""Those whose values at the beginning of learning are remembered."""


def same(a: Any, b: Any) -> bool:
    """Whether two values of a parameter are equal, which may be arrays."""
    if a is b:
        return True
    if a is None or b is None:
        return False
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a == b
    try:
        return np.array_equal(a, b)
    except (TypeError, ValueError):
        return False


def coding_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to code with that are others now than when learning began."""
    return _changes(CODING, now, then)


def learning_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to go on learning with that are others now than when learning began."""
    for name in FIXED:
        if not same(now[name], then[name]):
            raise fixed(name, then[name], now[name])
    return _changes(LEARNING, now, then)


def fixed(name: str, then: Any, now: Any) -> ValueError:
    """That a parameter cannot take effect while learning goes on."""
    return ValueError(
        f"{name}: expected {then!r}, as when learning began, to go on, found {now!r}; it takes effect at the next fit. Set it back, "
        "or call fit"
    )


def _changes(names: Iterable[str], now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    changes = {name: now[name] for name in names if not same(now[name], then[name])}
    ratio, beta = now["beta_ratio"], now["beta"]
    if ratio is not None and not same(ratio, then["beta_ratio"]):
        raise ValueError(
            f"beta_ratio: expected {then['beta_ratio']!r}, as when learning began, found {ratio!r}; it is a fraction of what the "
            "first batch of a fit allows, and takes effect at the next fit. Set beta, with beta_ratio=None, or call fit"
        )
    if ratio is not None and "beta" in changes:
        raise ValueError(
            f"beta: expected beta_ratio=None beside the new beta={beta!r}, as beta_ratio={ratio!r} stands instead of it; "
            f"set_params(beta={beta!r}, beta_ratio=None)"
        )
    if ratio is None and then["beta_ratio"] is not None:
        changes["beta"] = beta
    return changes
