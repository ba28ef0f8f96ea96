"""Decides what becomes of parameters that are changed after learning: which take effect, and which are refused."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._declarations import SETTINGS, WIDTH

CODING = tuple(name for name, setting in SETTINGS.items() if setting.is_in_coding and name != "dtype")
"""The settings that coding heeds at once. So it does ``dtype``, which may depend on the data, and ``axes`` and ``threads``, which
are asked at every call."""

LEARNING = tuple(name for name, setting in SETTINGS.items() if setting.is_in_learning)
"""The settings that learning heeds from the next step on: the statistics of the steps before stay what they are."""

FIXED = tuple(name for name, setting in SETTINGS.items() if setting.ends_learning and name != "dtype")
"""The settings that the statistics of a run are made with, beside ``dtype``."""

COMPARED = tuple(dict.fromkeys((*CODING, *LEARNING, *FIXED, "dtype", "beta_ratio")))
"""The settings whose values at the beginning of learning are remembered."""


def explanation() -> str:
    """Returns what becomes of changes after learning, for a docstring."""

    def names(*parameters: str) -> str:
        *first, last = (f"``{name}``" for name in parameters)
        return f"{', '.join(first)} and {last}"

    rules = (
        f"{names(*CODING, 'dtype', 'axes', 'threads')} take effect at the next `transform`, `inverse_transform`, `evaluate` or "
        "`score`.",
        f"{names(*LEARNING)} take effect at the next `partial_fit`.",
        f"{names(*FIXED, 'dtype')} are refused by `partial_fit`, since its statistics depend on them.",
        "``beta_ratio`` stands instead of ``beta`` and needs a `fit`: set ``beta=..., beta_ratio=None`` to code with another beta. "
        "What contradicts that is refused.",
    )
    fill = textwrap.TextWrapper(WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False).fill
    return "\n".join(map(fill, rules))


def same(a: Any, b: Any) -> bool:
    """Returns whether two values of a parameter are equal. They may be arrays."""
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
    """Returns the settings of coding that have other values now than when learning began."""
    return _changes(CODING, now, then)


def learning_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of learning that have other values now; refuses changes that the statistics do not allow."""
    for name in FIXED:
        if not same(now[name], then[name]):
            raise fixed(name, then[name], now[name])
    return _changes(LEARNING, now, then)


def fixed(name: str, then: Any, now: Any) -> ValueError:
    """Returns the exception to raise for a parameter that cannot change while learning goes on."""
    return ValueError(
        f"{name}: expected {then!r}, as when learning began, to go on, found {now!r}; it takes effect at the next fit. Set it back, "
        "or call fit"
    )


def _changes(names: Iterable[str], now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of the named settings that have other values now; refuses contradictions of beta and beta_ratio."""
    changes = {name: now[name] for name in names if not same(now[name], then[name])}
    ratio, beta = now["beta_ratio"], now["beta"]
    if ratio is not None and not same(ratio, then["beta_ratio"]):
        raise ValueError(
            f"beta_ratio: expected {then['beta_ratio']!r}, as when learning began, found {ratio!r}; it is a fraction of what the "
            "data of a fit allow, and takes effect at the next fit. Set beta, with beta_ratio=None, or call fit"
        )
    if ratio is not None and "beta" in changes:
        raise ValueError(
            f"beta: expected beta_ratio=None beside the new beta={beta!r}, as beta_ratio={ratio!r} stands instead of it; "
            f"set_params(beta={beta!r}, beta_ratio=None)"
        )
    if ratio is None and then["beta_ratio"] is not None:
        changes["beta"] = beta
    if "beta" in changes and beta is None:
        raise ValueError(
            "beta: expected a number, as long as learning goes on or codes are made, found None: what suits the data is chosen by the "
            "next fit"
        )
    return changes
