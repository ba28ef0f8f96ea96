"""Codes and reconstructs with given filters, without an estimator; reads and writes models."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._adapters import adapt
from ._codes import Code, Codes, concatenate, from_native
from ._coding import assemble, check_codes, code_all, code_margin, full_filters, groups, is_single, reconstruct_one
from ._convert import dtype_of, threads_of
from ._inputs import Layout, Reader, rate_of, source_of, split_weights

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
    weights: npt.ArrayLike | str | None = None,
    max_rounds: int = 200,
    mask: Any = None,
    axes: str | None = None,
    preprocess: str = "none",
    dtype: Any = "f32",
    threads: int | None = None,
    penalty: str = "l1",
    loss: str = "l2",
    refit: bool = False,
    error: float | None = None,
    explained: float | None = None,
    nonzeros: int | None = None,
    coder: str = "active-set",
    joint: bool = False,
    window: int | str | None = None,
    sfreq: float | None = None,
) -> Codes:
    """Codes samples sparsely with given filters.

    Solves min 1/2 ||x - D z||^2 + beta ||z||_1 for every sample x, to a relative duality gap of `tol`; or with another penalty or
    loss; or, instead of beta, within a budget of `error`, `explained` or `nonzeros`.

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
        Which values were observed; or weights from 0 to 1 that say how much each counts.
    penalty, loss, refit, error, explained, nonzeros, coder, joint, window, sfreq
        As for `OnlineCSC`.

    Returns
    -------
    Codes
        `codes.beta` says which beta a budget took.

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
    X = adapt(X)
    full = full_filters(filters, X.axes if axes is None else axes)
    rank = full.ndim - 2
    source = source_of(X, axes, rank, mask, window, sfreq)
    settings = {
        "beta": beta,
        "tol": tol,
        "boundary": boundary,
        "non_negative": non_negative,
        "weights": split_weights(weights, source),
        "max_rounds": max_rounds,
        "preprocess": preprocess,
        "n_filters": len(full),
        "filter_shape": list(full.shape[2:]),
        "dtype": dtype_of(dtype, source.dtype),
        "penalty": penalty,
        "loss": loss,
        "refit": refit,
        "error": error,
        "explained": explained,
        "nonzeros": nonzeros,
        "coder": coder,
        "joint": joint,
    }
    codes = code_all(settings, full, source, threads_of(threads))
    codes.sfreq = rate_of(sfreq, source)
    codes.first_samp = 0 if source.recorded is None else source.recorded.first_samp
    return codes


@dataclass
class Path:
    """Codes along a path of betas, from large to small.

    Attributes
    ----------
    betas : ndarray of shape (m,)
    codes : list of Codes
        Those of every beta.
    objective, gap : ndarray of shape (m, n)
        The objective and its relative duality gap, for every beta and sample.
    nonzeros : ndarray of shape (m, n)
    """

    betas: npt.NDArray[np.float64]
    codes: list[Codes]

    @property
    def objective(self) -> npt.NDArray[np.float64]:
        return np.stack([codes.objective for codes in self.codes])

    @property
    def gap(self) -> npt.NDArray[np.float64]:
        return np.stack([codes.gap for codes in self.codes])

    @property
    def nonzeros(self) -> npt.NDArray[np.int64]:
        return np.stack([codes.nonzeros for codes in self.codes])


def path(
    X: Any,
    filters: npt.ArrayLike,
    betas: npt.ArrayLike,
    *,
    tol: float = 0.01,
    boundary: str = "circular",
    non_negative: bool = False,
    weights: npt.ArrayLike | str | None = None,
    mask: Any = None,
    axes: str | None = None,
    preprocess: str = "none",
    dtype: Any = "f32",
    threads: int | None = None,
    penalty: str = "l1",
    loss: str = "l2",
    refit: bool = False,
) -> Path:
    """Codes samples for every beta, from the largest to the smallest, each code starting from the one before.

    That costs little more than the smallest beta alone.

    Parameters
    ----------
    X : array, or list of arrays
        Samples, as for `code`.
    filters : array of shape (K, axes...) or (K, C, axes...)
        The filters, each of norm at most 1.
    betas : array of shape (m,)
        Weights of the penalty, in any order.
    tol, boundary, non_negative, weights, mask, axes, preprocess, dtype, threads, penalty, loss, refit
        As for `code`.

    Returns
    -------
    Path
        With the betas in descending order.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> rng = np.random.default_rng(0)
    >>> filters = rng.standard_normal((4, 5, 5))
    >>> filters /= np.sqrt((filters**2).sum((1, 2), keepdims=True))
    >>> X = rng.standard_normal((2, 16, 16))
    >>> path = ocsc.path(X, filters, ocsc.beta_max(X, filters).max() * np.array([0.8, 0.4, 0.2]))
    >>> path.nonzeros.shape
    (3, 2)
    >>> bool(np.all(np.diff(path.objective, axis=0) < 0))
    True
    """
    wanted = np.sort(np.asarray(betas, np.float64).ravel())[::-1]
    if wanted.size == 0 or not np.all(np.isfinite(wanted) & (wanted > 0)):
        raise ValueError(f"betas: expected at least one, all finite and above 0, found {betas!r}")
    X = adapt(X)
    full = full_filters(filters, X.axes if axes is None else axes)
    source = source_of(X, axes, full.ndim - 2, mask)
    settings = {
        "tol": tol,
        "boundary": boundary,
        "non_negative": non_negative,
        "weights": split_weights(weights, source),
        "preprocess": preprocess,
        "n_filters": len(full),
        "filter_shape": list(full.shape[2:]),
        "dtype": dtype_of(dtype, source.dtype),
        "penalty": penalty,
        "loss": loss,
        "refit": refit,
    }
    margin = code_margin(settings, full)
    parts: list[list[Codes]] = [[] for _ in wanted]
    for get, n in groups(source):
        raw = _native.path(settings, full, get, n, wanted.tolist(), threads_of(threads))
        for part, one in zip(parts, raw):
            part.append(from_native(one, len(full), margin))
    return Path(wanted, [concatenate(part) for part in parts])


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
    X = adapt(X)
    full = full_filters(filters, X.axes if axes is None else axes)
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
