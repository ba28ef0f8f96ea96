"""Holds sparse codes: for every sample a list of (filter, position, value)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from . import _native
from ._code_files import FACTS, UNKNOWN, code_of, codes_of, read_arrays, write_arrays, write_folder
from ._errors import counted
from ._events import find_events
from ._frames import frame_of

if TYPE_CHECKING:
    import scipy.sparse
    import sparse
    import torch

Array = npt.NDArray[Any]


class Code:
    """The sparse code of one sample.

    Attributes
    ----------
    filter : ndarray of shape (n,)
        The filter of each non-zero.
    position : ndarray of shape (n, axes)
        Where it stands in the dense code. For codes with ``boundary='circular'`` the filter's first corner lies on this pixel of
        the sample; for ``zero`` and ``free``, where filters may stick out, it lies ``margin`` before it. `corner` is right for
        all of them.
    value : ndarray of shape (n,)
        The coefficient.
    shape : tuple
        The shape of the dense code: (filters, axes...). ``numpy.asarray(code)`` is `to_dense`.
    objective, gap, beta : float
        1/2 ||x - D z||^2 + beta ||z||_1, its relative duality gap, and the weight of the l1 norm; NaN where unknown.
    margin : tuple of int, or None
        How far filters may stick out of the sample, on each axis: their length minus 1 with the boundaries ``zero`` and
        ``free``, 0 with ``circular``. None where it is unknown, as in files that do not say; it may be set.
    energy : float
        ||x||^2 of the sample after preprocessing; NaN where unknown.
    facts : dict
        What a file of the program says besides, as far as it does: ``sample_shape`` (channels, axes...), ``model`` (the
        checksum of the dictionary), ``source`` (path), ``preprocess``, ``boundary`` and ``masked``, and where the sample lies in
        what it was cut from: ``whole``, ``place`` and ``rate``; as arrays. Where the sample has filters of its own (method
        ``'scsc'``), ``base`` (R,) and ``mixing`` (K, R) say how `own_filters` makes them.
    filters, boundary, sfreq
        As those of the `Codes` that it is one of, where it is one of some; else None. Files do not keep them.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> click = np.zeros(12)
    >>> click[3:6] = 1, 2, 1
    >>> filters = click[None, 3:6] / np.sqrt(6)
    >>> code = ocsc.code(click[None], filters, beta=0.1, boundary="free")[0]
    >>> code.corner[abs(code.value).argmax()], code.position[abs(code.value).argmax()]
    (array([3]), array([5], dtype=int32))
    """

    def __init__(
        self,
        filter: npt.ArrayLike,
        position: npt.ArrayLike,
        value: npt.ArrayLike,
        shape: tuple[int, ...],
        objective: float = np.nan,
        gap: float = np.nan,
        beta: float = np.nan,
        margin: Sequence[int] | None = None,
        facts: Mapping[str, Array] | None = None,
        energy: float = np.nan,
        filters: Array | None = None,
        boundary: str | None = None,
        sfreq: float | None = None,
    ) -> None:
        self.filters = filters
        self.boundary = boundary
        self.sfreq = sfreq
        self.facts: dict[str, Array] = dict(facts or {})
        self.energy = float(energy)
        self.filter: Array = _indices(filter)
        self.position: Array = _indices(position)
        self.value: Array = np.asarray(value)
        self.shape = tuple(int(n) for n in shape)
        self.objective = float(objective)
        self.gap = float(gap)
        self.beta = float(beta)
        self.margin = None if margin is None else tuple(int(n) for n in margin)
        n, axes = len(self.value), len(self.shape) - 1
        if self.filter.shape != (n,) or self.position.shape != (n, axes):
            raise ValueError(
                f"code: expected filter {(n,)} and position {(n, axes)} as value and shape say, found "
                f"{self.filter.shape} and {self.position.shape}"
            )

    @property
    def nonzeros(self) -> int:
        """The number of nonzeros."""
        return len(self.value)

    @property
    def corner(self) -> Array:
        """Where each filter's first corner lies in the sample, of shape (n, axes), whatever the boundary.

        It is negative, or less than a filter's length before the end, where a filter sticks out.
        """
        if self.margin is None:
            raise ValueError(
                "corner: expected codes that know their margin, found none in what they were read or made from; set code.margin "
                "to (0, ...) for the boundary circular, and to the filter's lengths minus 1 for zero and free"
            )
        return _corner(self.position, np.asarray(self.margin))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of earlier versions have fewer fields.
        self.__init__(**state)  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Code({counted(self.nonzeros, 'non-zero')} of shape {self.shape}, gap {self.gap:.2g})"

    def to_dense(self) -> Array:
        """Returns the dense code, of shape (filters, axes...)."""
        _check_inside(self.filter, self.position, np.asarray(self.shape))
        dense: Array = np.zeros(self.shape, self.value.dtype)
        dense[(self.filter, *self.position.T)] = self.value
        return dense

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return _as_array(self.to_dense(), dtype, copy)

    def own_filters(self, filters: Any) -> Array:
        """Returns the filters that the code refers to.

        Parameters
        ----------
        filters : array or OnlineCSC
            The model's filters (K, C, axes...) or (K, axes...).

        Returns
        -------
        ndarray
            These filters; or where the sample has filters of its own (method ``'scsc'``), those: filter k is the sum over r of
            ``mixing[k, r]`` times filter ``base[r]`` of the model, in the precision of ``value``.
        """
        given = np.asarray(getattr(filters, "filters_", filters))
        if "mixing" not in self.facts:
            return given
        # Combining heeds no axes.
        flat = np.ascontiguousarray(given).reshape(len(given), 1, -1)
        base, mixing = (np.asarray(self.facts[name]) for name in ("base", "mixing"))
        is_single = self.value.dtype == np.float32
        own = _native.own_filters(flat, base.astype(np.int64), mixing.astype(np.float64), is_single)
        return own.reshape(given.shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file in the format ``.npz``, under the very name given, as the program's ``ocsc code`` does.

        A file that is there is replaced as a whole: whatever happens on the way, there is the old one or the new one.
        """
        known = {} if self.margin is None else {"margin": np.asarray(self.margin, "<i8")}
        write_arrays(
            path,
            {
                "filter": self.filter.astype("<i4"),
                "position": self.position.astype("<i4"),
                "value": self.value,
                "shape": np.asarray(self.shape, "<i8"),
                "objective": np.float64(self.objective),
                "gap": np.float64(self.gap),
                "beta": np.float64(self.beta),
                "energy": np.float64(self.energy),
                **known,
                **self.facts,
            },
        )

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Code:
        """Reads what `save`, or the program, wrote."""
        arrays = read_arrays(path)
        if "offset" in arrays:
            n = arrays["offset"].size - 1
            raise ValueError(f"{os.fspath(path)}: expected the code of one sample, found those of {n}; read them with Codes.load")
        return Code(**code_of(arrays, os.fspath(path)))


def _as_array(dense: Array, dtype: npt.DTypeLike | None, copy: bool | None) -> Array:
    """Answers numpy's request for an array with the dense codes."""
    if copy is False:
        raise ValueError("codes: a dense array is always a copy; expected copy=None or True")
    array: Array = dense if dtype is None else dense.astype(dtype)
    return array


def _indices(values: npt.ArrayLike) -> Array:
    """Returns whole numbers as an array. Of an empty list numpy alone would make floating ones."""
    array: Array = np.asarray(values)
    return array if array.size else array.astype(np.int32)


def _corner(position: Array, margin: Array) -> Array:
    """Returns positions in the sample, of a wider type, since they may be negative."""
    return position.astype(np.int64) - margin


def _check_inside(filter: Array, position: Array, shape: Array) -> None:
    """Checks that entries lie within their codes' shape (filters, axes...): one shape, or one for each entry."""
    for name, index in (("filter", filter), ("position", position)):
        if index.size and index.dtype.kind not in "iu":
            raise ValueError(f"codes: expected whole numbers in {name}, found {index.dtype}")
    entries = np.column_stack([filter, position]).astype(np.int64)
    outside = np.any((entries < 0) | (entries >= shape), axis=1)
    if outside.any():
        i = int(outside.argmax())
        of = shape if shape.ndim == 1 else shape[i]
        raise ValueError(
            f"codes: expected filters and positions from 0 up to, not including, {tuple(map(int, of))}, found filter {filter[i]} at "
            f"{tuple(map(int, position[i]))}"
        )


POOLS = ("sum", "max", "count", "energy")
"""What `Codes.pool` can take of the coefficients of a filter."""


def axis_bins(bins: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """Returns in how many parts each of ``rank`` axes is cut."""
    given = np.asarray(bins)
    parts = tuple(int(n) for n in np.broadcast_to(given, (rank,))) if given.shape in ((), (rank,)) else ()
    if given.dtype.kind not in "iu" or not parts or min(parts) < 1:
        raise ValueError(f"bins: expected a number from 1 up, or one per axis, {rank}, found {bins!r}")
    return parts


class Codes:
    """The sparse codes of a set of samples.

    ``len(codes)`` samples; ``codes[i]`` is the `Code` of one, ``codes[2:5]`` and ``codes[[0, 3]]`` are codes again, and
    iterating gives one after the other. ``numpy.asarray(codes)`` is `to_dense`.

    Attributes
    ----------
    filter, position, value : ndarray
        Those of all samples, one after the other.
    offset : ndarray of shape (n + 1,)
        Sample i has the entries from ``offset[i]`` to ``offset[i + 1]``.
    shapes : ndarray of shape (n, 1 + axes)
        The shapes of the dense codes: (filters, axes...).
    objective : ndarray of shape (n,)
        1/2 ||x - D z||^2 + beta ||z||_1 of every sample.
    gap : ndarray of shape (n,)
        The relative duality gap of every sample: its objective is at most this part of itself above the minimum.
    beta : ndarray of shape (n,)
        The weight of the l1 norm.
    margin : ndarray of shape (n, axes)
        How far filters may stick out of every sample, as `Code.margin` says; -1 where it is unknown.
    single : bool
        Whether these are codes of an array that was one sample, without an axis N: reconstructions then have none either.
    facts : list of dict
        What files of the program say besides of every sample, see `Code`.
    energy : ndarray of shape (n,)
        ||x||^2 of every sample after preprocessing; NaN where unknown.
    windows : ndarray of shape (n, 2), or None
        Where the samples are windows of recordings (``window`` of `OnlineCSC`): the number of the recording, and where in it the
        window begins.
    filters : ndarray of shape (K, C, axes...), or None
        The filters that the codes were made with, and `boundary` with them. Files do not keep them.
    sfreq : float, or None
        Values per second, as given to `OnlineCSC` or as the data say.
    first_samp : int
        What MNE counts the values of a recording from; 0 for other data.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> X = np.random.default_rng(0).standard_normal((3, 16, 16))
    >>> model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=2.0).fit(X)
    >>> codes = model.transform(X)
    >>> len(codes), codes.to_dense().shape
    (3, (3, 4, 16, 16))
    >>> bool(np.all(codes.gap <= model.tol))
    True
    >>> codes[0].nonzeros == int(codes.nonzeros[0])
    True
    """

    def __init__(
        self,
        filter: Array,
        position: Array,
        value: Array,
        offset: Array,
        shapes: Array,
        objective: Array,
        gap: Array,
        beta: Array,
        margin: Array | None = None,
        single: bool = False,
        facts: list[dict[str, Array]] | None = None,
        energy: Array | None = None,
        windows: Array | None = None,
        filters: Array | None = None,
        boundary: str | None = None,
        sfreq: float | None = None,
        first_samp: int = 0,
    ) -> None:
        self.first_samp = first_samp
        self.energy = np.full(len(offset) - 1, np.nan) if energy is None else energy
        self.windows = windows
        self.filters = filters
        self.boundary = boundary
        self.sfreq = sfreq
        self.facts = facts if facts is not None else [{} for _ in range(len(offset) - 1)]
        self.filter = filter
        self.position = position
        self.value = value
        self.offset = offset
        self.shapes = shapes
        self.objective = objective
        self.gap = gap
        self.beta = beta
        self.margin = np.full((len(shapes), shapes.shape[1] - 1), UNKNOWN) if margin is None else margin
        self.single = single

    @property
    def nonzeros(self) -> Array:
        """The number of nonzeros of every sample, of shape (n,)."""
        return np.diff(self.offset)

    @property
    def corner(self) -> Array:
        """Where each filter's first corner lies in its sample, as `Code.corner`, of all samples one after the other."""
        if np.any(self.margin < 0):
            unknown = int(np.flatnonzero(np.any(self.margin < 0, axis=1))[0])
            raise ValueError(
                f"corner: expected codes that know their margin, found none for sample {unknown}; set codes.margin to 0 for the "
                "boundary circular, and to the filter's lengths minus 1 for zero and free"
            )
        return _corner(self.position, np.repeat(self.margin, self.nonzeros, axis=0))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `to_dense`: (n, filters, axes...). Only for samples of one size."""
        return (len(self), *self._one_shape())

    def _one_shape(self) -> tuple[int, ...]:
        if len(self) == 0:
            return tuple(0 for _ in range(self.shapes.shape[1]))
        if np.any(self.shapes != self.shapes[0]):
            raise ValueError(f"codes: expected samples of one size, found {len(np.unique(self.shapes, axis=0))} sizes")
        return tuple(int(n) for n in self.shapes[0])

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of earlier versions have fewer fields.
        self.__init__(**state)  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __repr__(self) -> str:
        return f"Codes({counted(len(self), 'sample')}, {counted(len(self.value), 'non-zero')})"

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Code: ...
    @overload
    def __getitem__(self, index: slice | list[int] | Array) -> Codes: ...
    def __getitem__(self, index: Any) -> Code | Codes:
        chosen = np.arange(len(self))[index]
        if np.ndim(chosen) == 0:
            i = int(chosen)
            part = slice(int(self.offset[i]), int(self.offset[i + 1]))
            shape = tuple(int(n) for n in self.shapes[i])
            numbers = (float(self.objective[i]), float(self.gap[i]), float(self.beta[i]))
            margin = None if np.any(self.margin[i] < 0) else tuple(self.margin[i])
            entries = (self.filter[part], self.position[part], self.value[part])
            made_with = (self.filters, self.boundary, self.sfreq)
            return Code(*entries, shape, *numbers, margin, self.facts[i], float(self.energy[i]), *made_with)
        counts = self.nonzeros[chosen]
        offset = np.concatenate([[0], np.cumsum(counts)])
        # The numbers of the entries: those of each sample in turn, from where it begins.
        entries = np.arange(offset[-1]) + np.repeat(self.offset[:-1][chosen] - offset[:-1], counts)
        return Codes(
            self.filter[entries],
            self.position[entries],
            self.value[entries],
            offset,
            self.shapes[chosen],
            self.objective[chosen],
            self.gap[chosen],
            self.beta[chosen],
            self.margin[chosen],
            facts=[self.facts[i] for i in chosen],
            energy=self.energy[chosen],
            windows=None if self.windows is None else self.windows[chosen],
            filters=self.filters,
            boundary=self.boundary,
            sfreq=self.sfreq,
            first_samp=self.first_samp,
        )

    def __iter__(self) -> Iterator[Code]:
        return (self[i] for i in range(len(self)))

    def to_dense(self) -> Any:
        """Returns the dense codes, of shape (n, filters, axes...), or a list of arrays where sizes differ."""
        if len(self) > 0 and np.any(self.shapes != self.shapes[0]):
            return [code.to_dense() for code in self]
        self._check_inside()
        dense: Array = np.zeros(self.shape, self.value.dtype)
        dense[(self._sample(), self.filter, *self.position.T)] = self.value
        return dense

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        dense = self.to_dense()
        if isinstance(dense, list):
            raise ValueError("codes: expected samples of one size to make one array of; to_dense() gives a list")
        return _as_array(dense, dtype, copy)

    def _check_inside(self) -> None:
        _check_inside(self.filter, self.position, np.repeat(self.shapes, self.nonzeros, axis=0))

    def _sample(self) -> Array:
        """Returns the number of the sample that every entry belongs to."""
        return np.repeat(np.arange(len(self)), self.nonzeros)

    def select(
        self,
        filter: int | Sequence[int] | None = None,
        start: int | Sequence[int] | None = None,
        stop: int | Sequence[int] | None = None,
    ) -> Codes:
        """Returns the codes with some of their non-zeros alone, e.g. to reconstruct what single filters stand for.

        Objectives and gaps are NaN, as they were those of the whole.

        Parameters
        ----------
        filter : int or sequence of int, optional
            The filters to keep; all by default.
        start, stop : int or sequence of int, optional
            Keep the filters whose first corner lies from ``start`` up to, not including, ``stop``: in the sample, or in the
            recording where samples are windows of one. One number for signals, one per axis for others.

        Returns
        -------
        Codes

        Examples
        --------
        >>> import numpy as np, ocsc
        >>> X = np.random.default_rng(0).standard_normal((3, 40))
        >>> model = ocsc.OnlineCSC(n_filters=4, filter_shape=5, beta=1.0).fit(X)
        >>> codes = model.transform(X)
        >>> parts = [model.inverse_transform(codes.select(filter=k)) for k in range(4)]
        >>> bool(np.allclose(sum(parts), model.inverse_transform(codes)))
        True
        """
        keep = np.ones(len(self.value), bool)
        if filter is not None:
            wanted = np.atleast_1d(np.asarray(filter))
            n_filters = int(self.shapes[:, 0].max()) if len(self) else 0
            if wanted.dtype.kind not in "iu" or np.any((wanted < 0) | (wanted >= n_filters)):
                raise ValueError(f"filter: expected numbers of filters below {n_filters}, found {filter!r}")
            keep &= np.isin(self.filter, wanted)
        if start is not None or stop is not None:
            corner = self.corner
            if self.windows is not None:
                corner[:, -1] += np.repeat(self.windows[:, 1], self.nonzeros)
            for name, bound, inside in (("start", start, np.greater_equal), ("stop", stop, np.less)):
                if bound is None:
                    continue
                places = np.atleast_1d(np.asarray(bound))
                if places.shape != (corner.shape[1],):
                    raise ValueError(f"{name}: expected one number per axis, {corner.shape[1]}, found {bound!r}")
                keep &= np.all(inside(corner, places), axis=1)
        chosen = self[np.arange(len(self))]
        counts = np.bincount(self._sample()[keep], minlength=len(self))
        chosen.offset = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        chosen.filter, chosen.position, chosen.value = self.filter[keep], self.position[keep], self.value[keep]
        chosen.objective, chosen.gap = (np.full(len(self), np.nan) for _ in range(2))
        chosen.single = self.single
        return chosen

    def pool(self, how: str = "sum", bins: int | Sequence[int] = 1) -> npt.NDArray[np.float64]:
        """Returns one row of numbers per sample, for classifiers: how much each filter is used, in each part of the sample.

        Parameters
        ----------
        how : {'sum', 'max', 'count', 'energy'}
            What to take of the coefficients of a filter: the sum of their magnitudes, the largest magnitude, their number, or
            the sum of their squares.
        bins : int or sequence of int
            In how many equal parts to cut each axis of the code: one number for every axis, or one for each.

        Returns
        -------
        ndarray of shape (n, K * bins)
            Filter by filter, and for each the parts in the order of the axes. Samples may differ in size, not in filters.

        Examples
        --------
        >>> import numpy as np, ocsc
        >>> X = np.random.default_rng(0).standard_normal((3, 16, 16))
        >>> model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=2.0).fit(X)
        >>> model.transform(X).pool("max", bins=(2, 2)).shape
        (3, 16)
        """
        if how not in POOLS:
            raise ValueError(f"how: expected one of {', '.join(POOLS)}, found {how!r}")
        rank = self.shapes.shape[1] - 1
        parts = axis_bins(bins, rank)
        n_filters = int(self.shapes[0, 0]) if len(self) else 0
        if len(self) and np.any(self.shapes[:, 0] != n_filters):
            raise ValueError("codes: expected codes of one dictionary, found different numbers of filters")
        lengths = np.repeat(self.shapes[:, 1:], self.nonzeros, axis=0)
        place = self.position.astype(np.int64) * np.array(parts) // lengths
        cell = np.asarray(np.ravel_multi_index(tuple(place.T), parts), np.int64)
        size = n_filters * int(np.prod(parts))
        flat = (self._sample() * n_filters + self.filter) * int(np.prod(parts)) + cell
        magnitude = np.abs(self.value.astype(np.float64))
        pooled: npt.NDArray[np.float64] = np.zeros(len(self) * size)
        if how == "max":
            np.maximum.at(pooled, flat, magnitude)
        else:
            weights = {"sum": magnitude, "count": np.ones_like(magnitude), "energy": magnitude**2}[how]
            pooled += np.bincount(flat, weights, minlength=len(pooled))
        return pooled.reshape(len(self), size)

    def events(
        self,
        sfreq: float | None = None,
        min_distance: int | Sequence[int] | None = None,
        threshold: float = 0.0,
        align: str = "peak",
        filters: Any = None,
        boundary: str | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Lists when and where each filter fires, as the program's ``ocsc events`` does.

        A code often writes one occurrence of a pattern as several neighbouring atoms of one filter. The strongest atom that is in no
        event yet is the peak of a new one, which takes all atoms of its filter that are in none yet and nearer than
        ``min_distance`` on every axis, whatever their signs. Where samples are windows of recordings, positions and times are those
        of the recording, and an event that both sides of a cut show is one.

        Parameters
        ----------
        sfreq : float, optional
            Values per second along the last axis of signals, or frames per second along the first of video; by default that of
            the estimator.
        min_distance : int or sequence of int, optional
            One number for every axis, or one for each; 1 merges none. Half a filter by default, rounded up.
        threshold : float, default=0.0
            The least magnitude of an event's amplitude.
        align : {'peak', 'start', 'centre'}
            Which place in the sample the position is: that of the filter's largest magnitude, of its first corner, or of its
            centre of energy, rounded.
        filters : array or OnlineCSC, optional
            For codes from files, which do not keep them: the filters (K, C, axes...) or (K, axes...) that they were made with.
        boundary : str, optional
            For codes from files, if the files do not say.
        as_frame : bool, default=False
            Return a data frame of pandas instead of an array.

        Returns
        -------
        structured ndarray, or pandas.DataFrame
            One record per event, by sample, then position, then filter, with the fields ``sample``, ``filter``, ``time`` (in
            seconds; NaN without a rate), ``position`` (of signals; ``z``, ``y``, ``x`` of others, z = 0 for images), ``amplitude``
            (the coefficient of the strongest atom) and ``energy``, a share: the energy of the reconstruction of the event's atoms
            alone over the energy of the sample, or of the whole recording, after preprocessing (NaN where codes from files do not
            know it). Positions may lie outside of the sample where filters stick out.

        Examples
        --------
        >>> import numpy as np, ocsc
        >>> clicks = np.zeros((1, 100))
        >>> clicks[0, [20, 60]] = 2, 3
        >>> codes = ocsc.code(clicks, np.ones((1, 1)), beta=0.5)
        >>> codes.events(sfreq=10)[["time", "position", "amplitude"]].tolist()
        [(2.0, 20, 1.5), (6.0, 60, 2.5)]
        """
        found = find_events(self, sfreq, min_distance, threshold, align, filters, boundary)
        return frame_of(found, "events(as_frame=True)") if as_frame else found

    def to_mne_events(self, first_samp: int | None = None, **options: Any) -> npt.NDArray[np.int64]:
        """Returns the events of one recording as MNE-Python takes them: an array (n, 3) of sample number, 0, and filter + 1.

        Event codes begin at 1, since MNE has its own use for 0. Events outside of the recording, where filters stick out, are left
        out.

        Parameters
        ----------
        first_samp : int, optional
            ``raw.first_samp``, which MNE counts from; by default that of the Raw that was coded, or 0.
        **options
            As for `events`: ``min_distance``, ``threshold``, ``align``.
        """
        found = self.events(**options)
        names = found.dtype.names or ()
        if "position" not in names or (len(found) and int(found["sample"].max()) > 0) or (len(self) > 1 and self.windows is None):
            raise ValueError("to_mne_events: expected codes of one recording, found several samples, images or volumes")
        ends = self.shapes[:, 1] - np.maximum(self.margin[:, 0], 0) + (0 if self.windows is None else self.windows[:, 1])
        position = found["position"]
        inside = found[(position >= 0) & (position < int(ends.max()))]
        begin = self.first_samp if first_samp is None else first_samp
        rows = [inside["position"] + begin, np.zeros(len(inside), np.int64), inside["filter"] + 1]
        return np.stack(rows, axis=1).astype(np.int64)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Returns a ``scipy.sparse.csr_array`` with one row of filters times positions per sample, for samples of one size."""
        try:
            import scipy.sparse
        except ImportError as error:
            raise ImportError("to_scipy: expected scipy; pip install scipy") from error
        shape = self._one_shape()
        self._check_inside()
        column = np.ravel_multi_index((self.filter, *self.position.T), shape) if len(self) else self.filter
        size = (len(self), int(np.prod(shape)))
        return scipy.sparse.csr_array((self.value, column, self.offset), shape=size)

    def to_coo(self) -> sparse.COO:
        """Returns a ``sparse.COO`` of shape (n, filters, axes...), for samples of one size."""
        try:
            import sparse
        except ImportError as error:
            raise ImportError("to_coo: expected the package sparse; pip install sparse") from error
        self._check_inside()
        coords = np.stack([self._sample(), self.filter, *self.position.T])
        return sparse.COO(coords, self.value, shape=self.shape)

    def to_torch(self) -> torch.Tensor:
        """Returns a sparse tensor of torch, of shape (n, filters, axes...) and in its COO layout, for samples of one size."""
        try:
            import torch
        except ImportError as error:
            raise ImportError("to_torch: expected torch; pip install torch") from error
        self._check_inside()
        coords = np.stack([self._sample(), self.filter, *self.position.T]).astype(np.int64)
        values = torch.from_numpy(np.ascontiguousarray(self.value))
        return torch.sparse_coo_tensor(torch.from_numpy(coords), values, self.shape, check_invariants=True).coalesce()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the codes.

        Parameters
        ----------
        path : path
            A name that ends in ``.npz``: one file with all samples; or a folder, made if absent: one file per sample, as
            the program's ``ocsc code`` writes them and ``ocsc reconstruct`` reads them. The folder then holds these codes
            alone: those of an earlier save are replaced, and a folder with other ``.npz`` files is refused. All new ones are
            on disk before an old one goes.
        """
        path = Path(path)
        if path.suffix != ".npz":
            earlier = sorted(path.glob("*.npz"))
            others = [file.name for file in earlier if not re.fullmatch(r"sample-[0-9]{6,}\.npz", file.name)]
            if others:
                raise ValueError(
                    f"{path}: expected a folder without other .npz files, which would be read as codes too, found "
                    f"{others[0]}; choose another folder"
                )
            names = [f"sample-{i:06}.npz" for i in range(len(self))]
            write_folder(path, names, earlier, lambda i, file: self[i].save(file))
            return
        write_arrays(
            path,
            {
                "filter": self.filter.astype("<i4"),
                "position": self.position.astype("<i4"),
                "value": self.value,
                "offset": self.offset.astype("<i8"),
                "shape": self.shapes.astype("<i8"),
                "objective": self.objective,
                "gap": self.gap,
                "beta": self.beta,
                "energy": self.energy,
                **({} if self.windows is None else {"windows": self.windows.astype("<i8")}),
                "margin": self.margin.astype("<i8"),
                "single": np.bool_(self.single),
                **{name: np.stack([facts[name] for facts in self.facts]) for name in FACTS if self._all_say(name)},
            },
        )

    def _all_say(self, name: str) -> bool:
        """Returns whether every sample has this fact, of one shape."""
        shapes = {facts[name].shape if name in facts else None for facts in self.facts}
        return len(shapes) == 1 and None not in shapes

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Codes:
        """Reads what `save` wrote, or a file or folder of the program's codes."""
        path = Path(path)
        if path.is_dir():
            names = sorted(path.glob("*.npz"))
            if not names:
                raise ValueError(f"{path}: expected codes ending in .npz, found none")
            return stack([Code.load(name) for name in names])
        arrays = read_arrays(path)
        name = os.fspath(path)
        return Codes(**codes_of(arrays, name)) if "offset" in arrays else stack([Code(**code_of(arrays, name))])


def stack(codes: list[Code]) -> Codes:
    """Returns single codes as a set."""
    if not codes:
        raise ValueError("codes: expected at least one, found none")
    counts = [code.nonzeros for code in codes]
    return Codes(
        np.concatenate([code.filter for code in codes]),
        np.concatenate([code.position for code in codes]),
        np.concatenate([code.value for code in codes]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([code.shape for code in codes], np.int64),
        np.array([code.objective for code in codes]),
        np.array([code.gap for code in codes]),
        np.array([code.beta for code in codes]),
        np.array([(UNKNOWN,) * (len(code.shape) - 1) if code.margin is None else code.margin for code in codes], np.int64),
        facts=[code.facts for code in codes],
        energy=np.array([code.energy for code in codes]),
    )


def concatenate(parts: list[Codes]) -> Codes:
    """Returns sets of codes as one set."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([part.nonzeros for part in parts])
    return Codes(
        np.concatenate([part.filter for part in parts]),
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate([part.shapes for part in parts]),
        np.concatenate([part.objective for part in parts]),
        np.concatenate([part.gap for part in parts]),
        np.concatenate([part.beta for part in parts]),
        np.concatenate([part.margin for part in parts]),
        facts=[facts for part in parts for facts in part.facts],
        energy=np.concatenate([part.energy for part in parts]),
    )


def from_native(raw: Mapping[str, Any], n_filters: int, margin: Sequence[int]) -> Codes:
    """Returns what the native half coded, of samples out of which filters may stick by ``margin``, as `Codes`."""
    rank = len(margin)
    spatial = raw["shape"][:, 3 - rank :]
    counts = raw["nonzeros"]
    flat = raw["position"]
    position = np.empty((len(flat), rank), np.int32)
    for axis in reversed(range(rank)):
        length = np.repeat(spatial[:, axis], counts)
        position[:, axis] = flat % length
        flat = flat // length
    shapes = np.concatenate([np.full((len(counts), 1), n_filters, np.int64), spatial], axis=1)
    offset = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    margins = np.tile(np.asarray(margin, np.int64), (len(counts), 1))
    numbers = (raw["objective"], raw["gap"], raw["beta"], margins)
    facts = [{"base": base, "mixing": mixing} for base, mixing in raw["mixing"]] or None
    return Codes(raw["filter"], position, raw["value"], offset, shapes, *numbers, energy=raw["energy"], facts=facts)
