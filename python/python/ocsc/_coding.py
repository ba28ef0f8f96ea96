"""Codes samples with given filters, and puts reconstructions together, for the estimator and for the package's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._codes import Code, Codes, concatenate, from_native
from ._convert import ensure_filters_first
from ._errors import counted, warn_of_codes, warn_of_sparsity
from ._inputs import Array, Item, Layout, Reader, Stream, numeric

GROUP = 16
"""The number of samples of a stream that are coded at the same time."""


def full_filters(filters: npt.ArrayLike, axes: str | None, rank: int | None = None) -> Array:
    """Returns filters as (K, C, axes...), from that or from (K, axes...). Where it is not plain which, the axes decide."""
    array, _ = numeric(filters, "filters")
    if array.ndim < 2 or array.ndim > 5:
        raise ValueError(f"filters: expected shape (K, axes...) or (K, C, axes...), found {array.shape}")
    has_channels = array.ndim == 5
    if axes is not None:
        rank = Layout(_native.axes(axes).replace("N", "")).rank
    if rank is not None:
        if array.ndim not in (rank + 1, rank + 2):
            raise ValueError(f"filters: expected {rank} spatial axes, as the samples have, found shape {array.shape}")
        has_channels = array.ndim == rank + 2
    full = array if has_channels else array[:, None]
    ensure_filters_first(full, array.shape, "filters")
    return full


def code_all(settings: dict[str, Any], filters: Array, source: Reader | Stream, threads: int | None) -> Codes:
    """Codes all samples of a source; warns of those that did not reach the tolerance."""
    margin = code_margin(settings, filters)
    parts = []
    missed = 0
    for get, length in groups(source):
        raw = _native.code(settings, filters, get, length, threads)
        missed += int(np.count_nonzero(~raw["converged"]))
        parts.append(from_native(raw, len(filters), margin))
    codes = concatenate(parts)
    codes.single = isinstance(source, Reader) and source.is_one
    codes.windows = source.windows if isinstance(source, Reader) else None
    codes.filters, codes.boundary = filters, settings["boundary"]
    if missed:
        warn_of_codes(
            f"{missed} of {counted(len(codes), 'code')} did not reach the tolerance {settings['tol']}; codes.gap says how close they "
            "came. Raise max_rounds",
            settings["dtype"],
        )
    values = np.prod(codes.shapes[:, 1:] - np.array(margin), axis=1) * filters.shape[1]
    nonzeros = codes.nonzeros
    empty = int(np.count_nonzero(nonzeros == 0))
    warn_of_sparsity(len(codes), empty, int(nonzeros.sum()), int(values.sum()), settings["beta"])
    return codes


def margin_of(boundary: str, filters: Array) -> tuple[int, ...]:
    """Returns how far filters (K, C, axes...) may stick out of a sample, on each axis."""
    return tuple(0 if boundary == "circular" else n - 1 for n in filters.shape[2:])


def is_per_channel(settings: dict[str, Any]) -> bool:
    """Returns whether each channel is coded by itself, so that the first axis of codes is the channel."""
    return str(settings.get("preprocess", "none")).endswith("per-channel")


def code_margin(settings: dict[str, Any], filters: Array) -> tuple[int, ...]:
    """Returns `margin_of` for the axes of codes made with these settings."""
    margin = margin_of(settings["boundary"], filters)
    return (0, *margin) if is_per_channel(settings) else margin


def with_channels(sample: Array, settings: dict[str, Any], rank: int) -> Array:
    """Returns a sample (channel, depth, height, width) of ``rank`` axes, with its channels where they were before coding."""
    if not is_per_channel(settings):
        return sample
    view: Array = sample.swapaxes(0, 1 if rank > 1 else 2)
    return view


def groups(source: Reader | Stream) -> Iterator[tuple[Callable[[int], Item], int]]:
    """Yields readers of a source with their lengths: a stream as many, of a few samples each."""
    if isinstance(source, Reader):
        yield source, len(source)
        return
    while items := source(GROUP):
        yield items.__getitem__, len(items)


def is_single(codes: Codes | Code) -> bool:
    """Returns whether codes stand for one sample, and no set of one."""
    if isinstance(codes, Code):
        return True
    return codes.single and (len(codes) == 1 if codes.windows is None else len(np.unique(codes.windows[:, 0])) == 1)


def check_codes(codes: Any, name: str) -> None:
    """Checks that these are codes, and no dense array."""
    if isinstance(codes, (Codes, Code)):
        return
    advice = "give what transform or ocsc.code returned"
    if isinstance(codes, np.ndarray):
        advice += (
            "; a dense array z of one sample, of shape (filters, axes...), is "
            "ocsc.Code(z.nonzero()[0], np.argwhere(z)[:, 1:], z[z != 0], z.shape)"
        )
    raise TypeError(f"{name}: expected Codes or a Code, found {type(codes).__name__}; {advice}")


def reconstruct_one(code: Code, filters: Array, settings: dict[str, Any]) -> Array:
    """Returns the sample (channel, depth, height, width) of a code."""
    axes = code.shape[1:]
    margin = code_margin(settings, filters)
    if len(axes) != len(margin):
        raise ValueError(
            f"code: expected {len(margin)} spatial axes, as the filters have, found {len(axes)} in {code!r}; give the "
            "filters that it was made with"
        )
    if code.margin not in (None, margin):
        raise ValueError(
            f"code: expected the margin {margin} of filters of {tuple(filters.shape[2:])} with the boundary "
            f"{settings['boundary']!r}, found {code.margin}; give the boundary and the filters that it was made with"
        )
    shape = (1,) * (3 - len(axes)) + axes
    inside = bool(np.all((code.position >= 0) & (code.position < np.array(axes, int))))
    if not inside or code.shape[0] != len(filters):
        raise ValueError(
            f"code: expected {len(filters)} filters, as there are, and positions within the code's shape, found {code!r}"
        )
    flat = np.asarray(np.ravel_multi_index(tuple(code.position.T), axes), np.int64)
    triple = (shape[0], shape[1], shape[2])
    value = code.value.astype(np.float64, copy=False)
    return _native.reconstruct(settings, code.own_filters(filters), triple, code.filter.astype(np.int64), flat, value)


def assemble(samples: list[Array], letters: str) -> Any:
    """Returns samples as one array where their sizes are equal, with the N axis where the letters have it; else as a list."""
    if not samples:
        return np.zeros([0] * len(letters if "N" in letters else "N" + letters))
    if any(sample.shape != samples[0].shape for sample in samples):
        return samples
    return np.stack(samples, axis=letters.index("N") if "N" in letters else 0)
