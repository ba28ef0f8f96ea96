"""Lists the events of codes: which filter fires where, and how strongly. The native half finds them, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _native

if TYPE_CHECKING:
    from ._codes import Codes

Array = npt.NDArray[Any]

SIGNAL = np.dtype(
    [
        ("sample", np.int64),
        ("filter", np.int64),
        ("time", np.float64),
        ("position", np.int64),
        ("amplitude", np.float64),
        ("energy", np.float64),
    ]
)
"""An event of a signal."""

PLACE = np.dtype(
    [
        ("sample", np.int64),
        ("filter", np.int64),
        ("time", np.float64),
        ("z", np.int64),
        ("y", np.int64),
        ("x", np.int64),
        ("amplitude", np.float64),
        ("energy", np.float64),
    ]
)
"""An event of an image or a volume."""


def find_events(
    codes: Codes,
    sfreq: float | None,
    min_distance: int | Sequence[int] | None,
    threshold: float,
    align: str,
    filters: Any,
    boundary: str | None,
) -> Array:
    """Returns one record per event, as `Codes.events` says."""
    rank = codes.shapes.shape[1] - 1
    rate = codes.sfreq if sfreq is None else sfreq
    if rate is not None and not (np.isfinite(rate) and rate > 0):
        raise ValueError(f"sfreq: expected values per second, above 0, found {rate!r}")
    full = _filters(codes, filters, rank)
    outside = _boundary(codes, boundary)
    distance = _distance(min_distance, rank)
    parts = []
    for i in range(len(codes)):
        code = codes[i]
        axes = code.shape[1:]
        flat = np.asarray(np.ravel_multi_index(tuple(code.position.T), axes), np.int64)
        shape = (*(1,) * (3 - rank), *axes)
        value = code.value.astype(np.float64)
        which = (code.filter.astype(np.int64), flat, value, code.energy)
        own = code.own_filters(full)
        parts.append(_native.events(own, outside, (shape[0], shape[1], shape[2]), *which, float(threshold), distance, align))
    samples = list(range(len(codes)))
    if codes.windows is not None:
        reach = -(-full.shape[2] // 2) if distance is None else distance[2]
        samples, parts = _stitched(codes, parts, reach)
    return _records(samples, parts, rank, rate)


def _stitched(codes: Codes, parts: list[dict[str, Array]], reach: int) -> tuple[list[int], list[dict[str, Array]]]:
    """Returns the numbers of recordings, and their events put together from those of windows."""
    assert codes.windows is not None
    numbers = [int(n) for n in np.unique(codes.windows[:, 0])]
    whole = []
    for number in numbers:
        members = [int(i) for i in np.flatnonzero(codes.windows[:, 0] == number)]
        own = [parts[i] for i in members]
        columns = {name: np.concatenate([part[name] for part in own]) for name in ("filter", "position", "amplitude", "energy")}
        whole.append(
            _native.stitch_events(
                columns["filter"],
                np.ascontiguousarray(columns["position"][:, 2]),
                columns["amplitude"],
                columns["energy"],
                [len(part["filter"]) for part in own],
                [int(codes.windows[i, 1]) for i in members],
                [float(codes.energy[i]) for i in members],
                reach,
            )
        )
    return numbers, whole


def _records(samples: list[int], parts: list[dict[str, Array]], rank: int, rate: float | None) -> Array:
    """Returns the events of samples as one array."""
    records: Array = np.zeros(sum(len(part["filter"]) for part in parts), SIGNAL if rank == 1 else PLACE)
    records["time"] = np.nan
    if not len(records):
        return records
    records["sample"] = np.repeat(samples, [len(part["filter"]) for part in parts])
    for name in ("filter", "amplitude", "energy"):
        records[name] = np.concatenate([part[name] for part in parts])
    position = np.concatenate([part["position"] for part in parts])
    for name, column in zip(("position",) if rank == 1 else ("z", "y", "x"), position.T[2 if rank == 1 else 0 :]):
        records[name] = column
    if rate is not None and rank != 2:
        records["time"] = records["position" if rank == 1 else "z"] / rate
    return records


def _filters(codes: Codes, filters: Any, rank: int) -> Array:
    """Returns the filters (K, C, axes...) that codes refer to."""
    given = getattr(filters, "filters_", filters)
    found = codes.filters if given is None else np.asarray(given)
    if found is None:
        raise ValueError(
            "filters: expected those that the codes were made with, found none, as files of codes do not keep them; give "
            "events(filters=model)"
        )
    if found.ndim == rank + 1:
        found = found[:, None]
    if found.ndim != rank + 2:
        raise ValueError(f"filters: expected shape (K, axes...) or (K, C, axes...) with {rank} axes, found {found.shape}")
    return np.ascontiguousarray(found)


def _boundary(codes: Codes, boundary: str | None) -> str:
    """Returns what lies outside of the samples."""
    said = {str(facts["boundary"]) for facts in codes.facts if "boundary" in facts}
    known = boundary or codes.boundary or (said.pop() if len(said) == 1 else None)
    if known is None and not np.any(codes.margin < 0):
        # The places of atoms in the sample are all that is asked for; zero and free have the same.
        known = "free" if np.any(codes.margin > 0) else "circular"
    if known is None:
        raise ValueError("boundary: expected that of the codes, found none in what they were read from; give events(boundary=...)")
    return known


def _distance(min_distance: int | Sequence[int] | None, rank: int) -> tuple[int, int, int] | None:
    """Returns the distance on (depth, height, width)."""
    if min_distance is None:
        return None
    given = np.asarray(min_distance)
    if given.dtype.kind not in "iu" or given.shape not in ((), (rank,)) or np.any(given < 1):
        raise ValueError(f"min_distance: expected a whole number from 1 up, or one per axis, {rank}, found {min_distance!r}")
    lengths = [1] * (3 - rank) + [int(n) for n in np.broadcast_to(given, (rank,))]
    return lengths[0], lengths[1], lengths[2]
