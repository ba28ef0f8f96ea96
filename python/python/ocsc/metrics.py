"""Measures how good a reconstruction or a code is. Everything is summed in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._codes import Code, Codes
from ._inputs import Item, Layout, item, numeric


def _pair(reference: npt.ArrayLike, estimate: npt.ArrayLike, axes: str | None) -> tuple[Item, Item]:
    """Returns both samples as the native half takes them. Without ``axes``, one axis is a signal's and two are an image's."""
    a, _ = numeric(reference, "reference")
    b, _ = numeric(estimate, "estimate")
    if a.shape != b.shape:
        raise ValueError(f"samples to compare: expected equal shapes, found {a.shape} and {b.shape}")
    letters = _native.axes(axes) if axes is not None else {1: "W", 2: "HW"}.get(a.ndim, "")
    if "N" in letters:
        raise ValueError(f"axes: expected those of one sample, without N, found {axes!r}; compare samples one by one")
    if not letters:
        raise ValueError(f"reference: an array of shape {a.shape} needs axes, e.g. 'CHW', 'HWC' or 'DHW'")
    layout = Layout(letters)
    return item(reference, layout, None, "reference"), item(estimate, layout, None, "estimate")


def mse(reference: npt.ArrayLike, estimate: npt.ArrayLike, *, axes: str | None = None) -> float:
    """Returns the mean squared error, over the values that the reference observed.

    Parameters
    ----------
    reference, estimate : array
        One sample each: (H, W), or as `axes` says. A masked reference leaves out what it masks. A masked estimate does not:
        what it masks counts as zero.
    axes : str, optional
        What the axes mean, e.g. ``'CHW'``.
    """
    return _native.mse(*_pair(reference, estimate, axes))


def psnr(reference: npt.ArrayLike, estimate: npt.ArrayLike, peak: float, *, axes: str | None = None) -> float:
    """Returns the peak signal-to-noise ratio 10 log10(peak^2 / mse), in decibels.

    Parameters
    ----------
    reference, estimate, axes
        As for `mse`.
    peak : float
        1 or 255 for images as stored, `value_range` for contrast-normalised data as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsc import metrics
    >>> x = np.zeros((8, 8))
    >>> round(metrics.psnr(x, x + 0.1, peak=1.0), 6)
    20.0
    """
    return _native.psnr(*_pair(reference, estimate, axes), peak)


def ssim(reference: npt.ArrayLike, estimate: npt.ArrayLike, peak: float, *, axes: str | None = None) -> float:
    """Returns the structural similarity with an 11 x 11 Gaussian window (Wang, Bovik, Sheikh, Simoncelli 2004).

    Parameters
    ----------
    reference, estimate, peak, axes
        As for `psnr`; images of at least 11 x 11, without masks.
    """
    return _native.ssim(*_pair(reference, estimate, axes), peak)


def value_range(X: Any) -> float:
    """Returns the range max - min of all samples: the peak with which the paper's PSNR numbers are reproduced.

    Parameters
    ----------
    X : array or list of arrays
        Samples; masked values do not count.
    """
    parts = X if isinstance(X, (list, tuple)) else [X]
    ends = [(float(np.min(part)), float(np.max(part))) for part in parts]
    if not ends:
        raise ValueError("value_range: expected at least one sample, found none")
    return max(high for _, high in ends) - min(low for low, _ in ends)


def sparsity(codes: Codes | Code) -> float:
    """Returns the fraction of the coefficients that are not zero, 0 to 1; of `Codes` the mean over samples.

    Parameters
    ----------
    codes : Codes or Code
        From `OnlineCSC.transform` or `ocsc.code`.
    """
    if isinstance(codes, Code):
        return codes.nonzeros / float(np.prod(codes.shape, dtype=float))
    return float(np.mean(codes.nonzeros / np.prod(codes.shapes.astype(float), axis=1)))


__all__ = ["mse", "psnr", "sparsity", "ssim", "value_range"]
