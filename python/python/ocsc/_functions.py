"""Coding without an estimator: filters in, codes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._codes import Code, Codes, concatenate, from_native
from ._errors import counted, warn_of_codes
from ._inputs import Array, Item, Layout, Reader, Stream, is_stream, numeric, reader
from ._settings import dtype_of, threads_of

if TYPE_CHECKING:
    from ._estimator import OnlineCSC

GROUP = 16
"""So many samples of a stream are coded at the same time."""


def full_filters(filters: npt.ArrayLike, axes: str | None, rank: int | None = None) -> Array:
    """Filters as (K, C, axes...), from that or from (K, axes...); which of the two, axes decide where it is not plain."""
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
    return array if has_channels else array[:, None]


def code_all(settings: dict[str, Any], filters: Array, source: Reader | Stream, threads: int | None) -> Codes:
    """The codes of all samples of a source; warns of those that did not reach the tolerance."""
    margin = margin_of(settings["boundary"], filters)
    parts = []
    missed = 0
    for get, length in _groups(source):
        raw = _native.code(settings, filters, get, length, threads)
        missed += int(np.count_nonzero(~raw["converged"]))
        parts.append(from_native(raw, len(filters), margin, settings["beta"]))
    codes = concatenate(parts)
    codes.single = isinstance(source, Reader) and source.is_one
    if missed:
        warn_of_codes(
            f"{missed} of {counted(len(codes), 'code')} did not reach the tolerance {settings['tol']}; codes.gap says how close they "
            "came. Raise max_rounds",
            settings["dtype"],
        )
    return codes


def margin_of(boundary: str, filters: Array) -> tuple[int, ...]:
    """How far filters (K, C, axes...) may stick out of a sample, on each axis."""
    return tuple(0 if boundary == "circular" else n - 1 for n in filters.shape[2:])


def _groups(source: Reader | Stream) -> Iterator[tuple[Callable[[int], Item], int]]:
    """A source as readers: a stream as many, of a few samples each."""
    if isinstance(source, Reader):
        yield source, len(source)
        return
    while items := source(GROUP):
        yield items.__getitem__, len(items)


def source_of(X: Any, axes: str | None, rank: int | None, mask: Any) -> Reader | Stream:
    """Anything that users call data."""
    return Stream(X, axes, rank, mask) if is_stream(X) else reader(X, axes, rank, mask)


def code(
    X: Any,
    filters: npt.ArrayLike,
    beta: float = 1.0,
    *,
    tol: float = 0.01,
    boundary: str = "circular",
    non_negative: bool = False,
    weights: npt.ArrayLike | None = None,
    max_rounds: int = 200,
    mask: Any = None,
    axes: str | None = None,
    preprocess: str = "none",
    dtype: Any = "f32",
    threads: int | None = None,
) -> Codes:
    """Sparse codes of samples for given filters.

    Solves min 1/2 ||x - D z||^2 + beta ||z||_1 for every sample x, to a relative duality gap of `tol`.

    Parameters
    ----------
    X : array, list of arrays, or iterable
        Samples, as for `OnlineCSC.fit`.
    filters : array of shape (K, axes...) or (K, C, axes...)
        The filters, each of norm at most 1.
    beta : float, default=1.0
        Weight of the l1 norm; `beta_max` gives the largest useful one.
    tol, boundary, non_negative, weights, max_rounds, axes, preprocess, dtype, threads
        As for `OnlineCSC`.
    mask : array or list of arrays, optional
        Which values were observed.

    Returns
    -------
    Codes

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> rng = np.random.default_rng(0)
    >>> filters = rng.standard_normal((4, 5, 5))
    >>> filters /= np.sqrt((filters**2).sum((1, 2), keepdims=True))
    >>> X = rng.standard_normal((2, 16, 16))
    >>> beta = 0.5 * ocsc.beta_max(X, filters).max()
    >>> codes = ocsc.code(X, filters, beta, tol=1e-3)
    >>> bool(codes.gap.max() <= 1e-3)
    True
    """
    full = full_filters(filters, axes)
    rank = full.ndim - 2
    source = source_of(X, axes, rank, mask)
    settings = {
        "beta": beta,
        "tol": tol,
        "boundary": boundary,
        "non_negative": non_negative,
        "weights": weights,
        "max_rounds": max_rounds,
        "preprocess": preprocess,
        "n_filters": len(full),
        "filter_shape": list(full.shape[2:]),
        "dtype": dtype_of(dtype, source.dtype),
    }
    return code_all(settings, full, source, threads_of(threads))


def beta_max(
    X: Any,
    filters: npt.ArrayLike,
    *,
    boundary: str = "circular",
    mask: Any = None,
    axes: str | None = None,
    preprocess: str = "none",
    dtype: Any = "f32",
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """The smallest beta with an all-zero code, for every sample: max |D^T x|.

    Parameters
    ----------
    X, filters, boundary, mask, axes, preprocess, dtype, threads
        As for `code`.

    Returns
    -------
    ndarray of shape (n,)
    """
    full = full_filters(filters, axes)
    source = source_of(X, axes, full.ndim - 2, mask)
    settings = {
        "boundary": boundary,
        "preprocess": preprocess,
        "n_filters": len(full),
        "filter_shape": list(full.shape[2:]),
        "dtype": dtype_of(dtype, source.dtype),
    }
    parts = [_native.beta_max(settings, full, get, n, threads_of(threads)) for get, n in _groups(source)]
    return np.concatenate([np.asarray(part) for part in parts])


def reconstruct(
    codes: Codes | Code, filters: npt.ArrayLike, *, boundary: str = "circular", axes: str | None = None
) -> Any:
    """What codes stand for: the sums of filters at their positions.

    Parameters
    ----------
    codes : Codes or Code
        From `code` or `OnlineCSC.transform`.
    filters : array of shape (K, axes...) or (K, C, axes...)
        The filters that the codes were made with.
    boundary : str, default='circular'
        The boundary that the codes were made with.
    axes : str, optional
        The order of the axes of the result; by default (N, axes...), or (N, C, axes...) with several channels.

    Returns
    -------
    ndarray or list of ndarray
        An array with one sample after the other where sizes are equal, in f64; else a list. For a `Code`, and for the codes
        of an array that was one sample, that sample.
    """
    check_codes(codes, "codes")
    rank = (len(codes.shape) if isinstance(codes, Code) else codes.shapes.shape[1]) - 1
    full = full_filters(filters, axes, rank)
    letters = _native.axes(axes) if axes is not None else ("NC" if full.shape[1] > 1 else "N") + "DHW"[3 - rank :]
    layout = Layout(letters.replace("N", ""))
    settings = {"boundary": boundary, "n_filters": len(full), "filter_shape": list(full.shape[2:])}
    parts = [codes] if isinstance(codes, Code) else list(codes)
    samples = [layout.turn_back(one(part, full, settings)) for part in parts]
    return samples[0] if is_single(codes) else assemble(samples, letters)


def is_single(codes: Codes | Code) -> bool:
    """Whether codes stand for one sample, and no set of one."""
    return isinstance(codes, Code) or (codes.single and len(codes) == 1)


def check_codes(codes: Any, name: str) -> None:
    """That these are codes, and no dense array."""
    if isinstance(codes, (Codes, Code)):
        return
    advice = "give what transform or ocsc.code returned"
    if isinstance(codes, np.ndarray):
        advice += (
            "; a dense array z of one sample, of shape (filters, axes...), is "
            "ocsc.Code(z.nonzero()[0], np.argwhere(z)[:, 1:], z[z != 0], z.shape)"
        )
    raise TypeError(f"{name}: expected Codes or a Code, found {type(codes).__name__}; {advice}")


def one(code: Code, filters: Array, settings: dict[str, Any]) -> Array:
    """The sample (channel, depth, height, width) of a code."""
    axes = code.shape[1:]
    if len(axes) != filters.ndim - 2:
        raise ValueError(
            f"code: expected {filters.ndim - 2} spatial axes, as the filters have, found {len(axes)} in {code!r}; give the "
            "filters that it was made with"
        )
    margin = margin_of(settings["boundary"], filters)
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
    return _native.reconstruct(settings, filters, triple, code.filter.astype(np.int64), flat, value)


def assemble(samples: list[Array], letters: str) -> Any:
    """Samples as one array where their sizes are equal, with the N axis where the letters have it."""
    if not samples:
        return np.zeros([0] * len(letters if "N" in letters else "N" + letters))
    if any(sample.shape != samples[0].shape for sample in samples):
        return samples
    return np.stack(samples, axis=letters.index("N") if "N" in letters else 0)


def preprocess(X: Any, steps: str, *, mask: Any = None, axes: str | None = None) -> Any:
    """Samples after preprocessing, as the program does it to images.

    Parameters
    ----------
    X : array, list of arrays, or iterable
        Samples. Without `axes`, arrays of 2 or 3 axes are (n, W) or (n, H, W); with axes that have no N, an array of these
        axes is one sample.
    steps : str
        Steps such as ``'gray,lcn,taper'`` or ``'lowpass=5,scale'``, as for `OnlineCSC`.
    mask : array or list of arrays, optional
        Which values were observed; ``gray``, ``mean`` and ``scale`` take masks.
    axes : str, optional
        What the axes mean, as for `OnlineCSC`.

    Returns
    -------
    ndarray or list of ndarray
        In f64; with the axes of X, and one channel after ``gray``.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> X = np.random.default_rng(0).random((2, 16, 16))
    >>> bool(abs(ocsc.preprocess(X, "mean").mean()) < 1e-12)
    True
    """
    source = source_of(X, axes, None, mask)
    items = (get(i) for get, n in _groups(source) for i in range(n))
    prepared = [source.layout.turn_back(_native.prepare(steps, item)) for item in items]
    if isinstance(source, Reader) and source.is_one:
        return prepared[0]
    letters = "N" + source.layout.letters if axes is None or "N" not in axes.upper() else _native.axes(axes)
    return assemble(prepared, letters)


def load(path: str | os.PathLike[str], **params: Any) -> OnlineCSC:
    """Reads a model file, of this package or of the program.

    Parameters
    ----------
    path : path
        A ``.safetensors`` file.
    **params
        Parameters of `OnlineCSC` that model files do not hold, such as ``axes`` or ``threads``.

    Returns
    -------
    OnlineCSC
        A fitted estimator with the settings of the file. `OnlineCSC.partial_fit` goes on learning: with the statistics of a
        checkpoint, with new ones from the filters of a finished model.
    """
    from ._estimator import OnlineCSC

    learner = _native.load(path)
    return OnlineCSC.from_learner(learner, params)


def save(model: OnlineCSC, path: str | os.PathLike[str], *, checkpoint: bool = False) -> None:
    """Writes a model file, which the program reads too.

    Parameters
    ----------
    model : OnlineCSC
        A fitted estimator.
    path : path
        The ``.safetensors`` file to write; replaced as a whole.
    checkpoint : bool, default=False
        Also write the statistics, so that learning can go on where it ended.
    """
    model.save(path, checkpoint=checkpoint)


__all__ = ["beta_max", "code", "load", "preprocess", "reconstruct", "save"]
