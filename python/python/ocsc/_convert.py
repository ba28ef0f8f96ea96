"""Converts the estimator's parameters to what the native half takes; refuses values that it could not name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._declarations import SETTINGS
from ._errors import warn_of_order
from ._inputs import numeric

UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def rank_of(filter_shape: Any) -> int | None:
    """Returns the number of spatial axes of the filters; none if one length stands for all."""
    if np.ndim(filter_shape) == 0:
        return None
    if np.ndim(filter_shape) > 1 or not 1 <= len(filter_shape) <= 3:
        raise ValueError(
            "filter_shape: expected one length for every axis, or one for each of one to three axes, found "
            f"{filter_shape!r}"
        )
    return len(filter_shape)


def lengths(filter_shape: Any, rank: int) -> list[int]:
    """Returns the filters' lengths on every axis."""
    if np.ndim(filter_shape) == 0:
        return [filter_shape] * rank
    shape: Sequence[int] = filter_shape
    return list(shape)


def seed_of(random_state: Any) -> int:
    """Returns a seed from what scikit-learn calls a random state."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63 - 1))
    if isinstance(random_state, (int, np.integer)) and int(random_state) >= 0:
        return int(random_state)
    raise ValueError(f"random_state: expected a whole number from 0 up, a numpy generator or None, found {random_state!r}")


def dtype_of(dtype: Any, data: np.dtype[Any] | None) -> str:
    """Returns f32 or f64; with ``auto``, f64 for data in f64 and f32 for others."""
    if isinstance(dtype, str) and dtype == "auto":
        return "f64" if data == np.float64 else "f32"
    if isinstance(dtype, str) and dtype in ("f32", "f64"):
        return dtype
    try:
        # numpy takes None for f64.
        known = np.dtype(object if dtype is None else dtype)
    except TypeError:
        known = np.dtype(object)
    if known == np.float32:
        return "f32"
    if known == np.float64:
        return "f64"
    raise ValueError(f"dtype: expected 'f32', 'f64' or 'auto' (f64 for data in f64, f32 for others), found {dtype!r}")


def filters_of(init: Any, n_filters: Any, filter_shape: Any, rank: int) -> str | npt.NDArray[Any]:
    """Returns the initial dictionary: a word, or filters of shape (K, C, axes...). ``n_filters`` and ``filter_shape`` must agree
    with these, or have their defaults."""
    if isinstance(init, str):
        return init
    array = numeric(init, "init")[0].astype(np.float64, copy=False)
    if array.ndim not in (rank + 1, rank + 2):
        raise ValueError(
            f"init: expected random, patches, or an array of shape (K, C, {rank} axes) or (K, {rank} axes), found shape "
            f"{array.shape}"
        )
    filters = array[:, None] if array.ndim == rank + 1 else array
    found = {"n_filters": len(filters), "filter_shape": tuple(filters.shape[2:])}
    given = {"n_filters": n_filters, "filter_shape": tuple(lengths(filter_shape, rank))}
    if given != found:
        _check_order(array, rank, given, found)
    for name, value in given.items():
        if value != found[name] and value != SETTINGS[name].default:
            raise ValueError(
                f"{name}: expected {found[name]}, as the filters of init have, found {value}; leave {name} out, or give "
                "an init of this size"
            )
    return filters


def ensure_filters_first(filters: npt.NDArray[Any], shape: tuple[int, ...], what: str) -> str | None:
    """Refuses filters, read as (K, C, axes...) from an array of this shape, whose norms say that K is the last axis. Returns what else
    says so."""
    doubt = _native.filters_last(filters)
    if doubt == "norms":
        why = "along the last axis all norms are 1, and along the first they are not (if filters do come first, scale them to norm 1)"
        raise _filters_last(shape, filters.ndim == len(shape), what, why)
    return doubt


def _check_order(array: npt.NDArray[Any], rank: int, given: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuses an array for ``init`` whose last axis are the filters, by their norms or by what the call says, and warns where nothing but
    its sides speaks for that."""
    has_channels = array.ndim == rank + 2
    filters = array if has_channels else array[:, None]
    has_sides = ensure_filters_first(filters, array.shape, "init") == "sides" and not has_channels
    says_number = given["n_filters"] == array.shape[-1] != len(array)
    if says_number and (has_sides or given["filter_shape"] == array.shape[:rank]):
        raise _filters_last(array.shape, has_channels, "init", f"there are {given['n_filters']} then, as n_filters says")
    if has_sides:
        warn_of_order(
            f"init: an array of shape {array.shape} is read as {len(array)} filters of {found['filter_shape']}; if its filters are the last "
            f"axis, as SPORCO has them, give {_filters_first(array.ndim, has_channels, 'init')}. With n_filters={len(array)} and "
            f"filter_shape={found['filter_shape']} it is taken as it is"
        )


def _filters_last(shape: tuple[int, ...], has_channels: bool, what: str, why: str) -> ValueError:
    """Returns what is wrong with filters (axes..., K) or (axes..., C, K), and what to do."""
    expected = "(K, C, axes...)" if has_channels else "(K, axes...)"
    return ValueError(
        f"{what}: expected filters first, {expected}, found shape {shape} with filters last, as SPORCO has them, it seems: {why}; give "
        f"{_filters_first(len(shape), has_channels, what)}"
    )


def _filters_first(ndim: int, has_channels: bool, what: str) -> str:
    """Returns the call of numpy that brings an array (axes..., K) or (axes..., C, K) into our order."""
    if not has_channels:
        return f"np.moveaxis({what}, -1, 0)"
    return f"{what}.transpose({', '.join(map(str, (ndim - 1, ndim - 2, *range(ndim - 2))))})"


def bytes_of(limit: Any) -> int | None:
    """Returns a number of bytes from 500_000_000, '500MB' or '32GiB'."""
    if limit is None:
        return None
    if isinstance(limit, (int, np.integer)) and not isinstance(limit, bool) and limit > 0:
        return int(limit)
    parts = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+) *([a-zA-Z]*)", limit.strip()) if isinstance(limit, str) else None
    unit = UNITS.get(parts[2].lower()) if parts else None
    if parts and unit:
        return int(float(parts[1]) * unit)
    raise ValueError(f"memory_limit: expected a size such as '500MB' or '32GB', or a number of bytes, found {limit!r}")


def positive(name: str, value: Any) -> float | None:
    """Returns a number above 0, or none."""
    if value is None:
        return None
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not (number > 0 and np.isfinite(number)):
        raise ValueError(f"{name}: expected a number above 0, found {value!r}")
    return number


def threads_of(threads: Any) -> int | None:
    """Returns a number of threads, or none for all cores; -1 is scikit-learn's word for all."""
    if threads is None or threads == -1:
        return None
    if isinstance(threads, (int, np.integer)) and not isinstance(threads, bool) and 1 <= threads <= 1024:
        return int(threads)
    raise ValueError(f"threads: expected a whole number from 1 to 1024, or None for all cores, found {threads!r}")
