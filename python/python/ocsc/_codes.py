"""Sparse codes: for every sample a list of (filter, position, value)."""

from __future__ import annotations

import os
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import scipy.sparse
    import sparse

Array = npt.NDArray[Any]


class Code:
    """The sparse code of one sample.

    Attributes
    ----------
    filter : ndarray of shape (n,)
        The filter of each non-zero.
    position : ndarray of shape (n, axes)
        Where its first corner lies.
    value : ndarray of shape (n,)
        The coefficient.
    shape : tuple
        The shape of the dense code: (filters, axes...). ``numpy.asarray(code)`` is `to_dense`.
    objective, gap, beta : float
        1/2 ||x - D z||^2 + beta ||z||_1, its relative duality gap, and the weight of the l1 norm; NaN where unknown.
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
    ) -> None:
        self.filter: Array = np.asarray(filter)
        self.position: Array = np.asarray(position)
        self.value: Array = np.asarray(value)
        self.shape = tuple(int(n) for n in shape)
        self.objective = float(objective)
        self.gap = float(gap)
        self.beta = float(beta)
        n, axes = len(self.value), len(self.shape) - 1
        if self.filter.shape != (n,) or self.position.shape != (n, axes):
            raise ValueError(
                f"code: expected filter {(n,)} and position {(n, axes)} as value and shape say, found "
                f"{self.filter.shape} and {self.position.shape}"
            )

    @property
    def nonzeros(self) -> int:
        """How many there are."""
        return len(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Code({self.nonzeros} non-zeros of shape {self.shape}, gap {self.gap:.2g})"

    def to_dense(self) -> Array:
        """The dense code, of shape (filters, axes...)."""
        dense: Array = np.zeros(self.shape, self.value.dtype)
        dense[(self.filter, *self.position.T)] = self.value
        return dense

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return _as_array(self.to_dense(), dtype, copy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file in the format ``.npz``, under the very name given, as the program's ``ocsc code`` does."""
        # numpy would append .npz to other names, but not to files.
        with open(path, "wb") as file:
            np.savez(
                file,
                filter=self.filter.astype("<i4"),
                position=self.position.astype("<i4"),
                value=self.value,
                shape=np.asarray(self.shape, "<i8"),
                objective=np.float64(self.objective),
                gap=np.float64(self.gap),
                beta=np.float64(self.beta),
            )

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Code:
        """Reads what `save`, or the program, wrote."""
        arrays = _arrays(path)
        if "offset" in arrays:
            n = len(arrays["offset"]) - 1
            raise ValueError(f"{os.fspath(path)}: expected the code of one sample, found those of {n}; read them with Codes.load")
        return _one(arrays)


def _as_array(dense: Array, dtype: npt.DTypeLike | None, copy: bool | None) -> Array:
    """What numpy asks of dense codes, which are made for it."""
    if copy is False:
        raise ValueError("codes: a dense array is always a copy; expected copy=None or True")
    array: Array = dense if dtype is None else dense.astype(dtype)
    return array


def _arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays of a file of codes."""
    name = os.fspath(path)
    try:
        loaded = np.load(path)
    except (ValueError, EOFError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        raise ValueError(f"{name}: expected a .npz file of sparse codes, found something else") from error
    if isinstance(loaded, np.ndarray):
        raise ValueError(f"{name}: expected a .npz file of sparse codes, found a single array of shape {loaded.shape}")
    with loaded as file:
        missing = [name for name in ("filter", "position", "value", "shape") if name not in file]
        if missing:
            raise ValueError(f"{name}: expected the arrays of sparse codes, found none called {', '.join(missing)}")
        return {name: np.asarray(file[name]) for name in file}


def _one(arrays: Mapping[str, Array]) -> Code:
    numbers = {name: float(arrays[name]) for name in ("objective", "gap", "beta") if name in arrays}
    shape = tuple(int(n) for n in arrays["shape"])
    return Code(arrays["filter"], arrays["position"], arrays["value"], shape, **numbers)


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
    ) -> None:
        self.filter = filter
        self.position = position
        self.value = value
        self.offset = offset
        self.shapes = shapes
        self.objective = objective
        self.gap = gap
        self.beta = beta

    @property
    def nonzeros(self) -> Array:
        """How many there are in every sample, of shape (n,)."""
        return np.diff(self.offset)

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

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __repr__(self) -> str:
        return f"Codes({len(self)} samples, {len(self.value)} non-zeros)"

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
            return Code(self.filter[part], self.position[part], self.value[part], shape, *numbers)
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
        )

    def __iter__(self) -> Iterator[Code]:
        return (self[i] for i in range(len(self)))

    def to_dense(self) -> Any:
        """The dense codes, of shape (n, filters, axes...); a list of arrays where sizes differ."""
        if len(self) > 0 and np.any(self.shapes != self.shapes[0]):
            return [code.to_dense() for code in self]
        dense: Array = np.zeros(self.shape, self.value.dtype)
        dense[(self._sample(), self.filter, *self.position.T)] = self.value
        return dense

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        dense = self.to_dense()
        if isinstance(dense, list):
            raise ValueError("codes: expected samples of one size to make one array of; to_dense() gives a list")
        return _as_array(dense, dtype, copy)

    def _sample(self) -> Array:
        """The sample of every entry."""
        return np.repeat(np.arange(len(self)), self.nonzeros)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """A ``scipy.sparse.csr_array`` with one row of filters times positions per sample, for samples of one size."""
        try:
            import scipy.sparse
        except ImportError as error:
            raise ImportError("to_scipy: expected scipy; pip install scipy") from error
        shape = self._one_shape()
        column = np.ravel_multi_index((self.filter, *self.position.T), shape) if len(self) else self.filter
        size = (len(self), int(np.prod(shape)))
        return scipy.sparse.csr_array((self.value, column, self.offset), shape=size)

    def to_coo(self) -> sparse.COO:
        """A ``sparse.COO`` of shape (n, filters, axes...), for samples of one size."""
        try:
            import sparse
        except ImportError as error:
            raise ImportError("to_coo: expected the package sparse; pip install sparse") from error
        coords = np.stack([self._sample(), self.filter, *self.position.T])
        return sparse.COO(coords, self.value, shape=self.shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the codes.

        Parameters
        ----------
        path : path
            A name that ends in ``.npz``: one file with all samples; or a folder, made if absent: one file per sample, as
            the program's ``ocsc code`` writes them and ``ocsc reconstruct`` reads them. The folder then holds these codes
            alone: those of an earlier save are replaced, and a folder with other ``.npz`` files is refused.
        """
        path = Path(path)
        if path.suffix != ".npz":
            path.mkdir(parents=True, exist_ok=True)
            earlier = sorted(path.glob("*.npz"))
            others = [file.name for file in earlier if not re.fullmatch(r"sample-[0-9]{6,}\.npz", file.name)]
            if others:
                raise ValueError(
                    f"{path}: expected a folder without other .npz files, which would be read as codes too, found "
                    f"{others[0]}; choose another folder"
                )
            for file in earlier:
                file.unlink()
            for i, code in enumerate(self):
                code.save(path / f"sample-{i:06}.npz")
            return
        np.savez(
            path,
            filter=self.filter.astype("<i4"),
            position=self.position.astype("<i4"),
            value=self.value,
            offset=self.offset.astype("<i8"),
            shape=self.shapes.astype("<i8"),
            objective=self.objective,
            gap=self.gap,
            beta=self.beta,
        )

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Codes:
        """Reads what `save` wrote, or a file or folder of the program's codes."""
        path = Path(path)
        if path.is_dir():
            names = sorted(path.glob("*.npz"))
            if not names:
                raise ValueError(f"{path}: expected codes ending in .npz, found none")
            return stack([Code.load(name) for name in names])
        arrays = _arrays(path)
        if "offset" not in arrays:
            return stack([_one(arrays)])
        unknown = np.full(len(arrays["offset"]) - 1, np.nan)
        numbers = [arrays.get(name, unknown) for name in ("objective", "gap", "beta")]
        entries = [arrays[name] for name in ("filter", "position", "value", "offset", "shape")]
        return Codes(*entries, *numbers)


def stack(codes: list[Code]) -> Codes:
    """Single codes as a set."""
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
    )


def concatenate(parts: list[Codes]) -> Codes:
    """Sets of codes as one."""
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
    )


def from_native(raw: Mapping[str, Array], n_filters: int, rank: int, beta: float) -> Codes:
    """Codes as the native half returns them."""
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
    betas = np.full(len(counts), beta)
    return Codes(raw["filter"], position, raw["value"], offset, shapes, raw["objective"], raw["gap"], betas)
