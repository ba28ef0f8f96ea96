"""Codes and reconstructs with given filters, without an estimator; reads and writes models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._codes import Code, Codes
from ._coding import assemble, check_codes, code_all, full_filters, groups, is_single, reconstruct_one
from ._convert import dtype_of, threads_of
from ._inputs import Layout, Reader, source_of

if TYPE_CHECKING:
    from ._estimator import OnlineCSC


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
    """Codes samples sparsely with given filters.

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
    """Returns the smallest beta with an all-zero code, for every sample: max |D^T x|.

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
    parts = [_native.beta_max(settings, full, get, n, threads_of(threads)) for get, n in groups(source)]
    return np.concatenate([np.asarray(part) for part in parts])


def reconstruct(
    codes: Codes | Code, filters: npt.ArrayLike, *, boundary: str = "circular", axes: str | None = None
) -> Any:
    """Reconstructs the samples that codes stand for: the sums of filters at their positions.

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
    samples = [layout.turn_back(reconstruct_one(part, full, settings)) for part in parts]
    return samples[0] if is_single(codes) else assemble(samples, letters)


def preprocess(X: Any, steps: str, *, mask: Any = None, axes: str | None = None) -> Any:
    """Preprocesses samples, as the program does images.

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
    items = (get(i) for get, n in groups(source) for i in range(n))
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
