"""Restores images: what the program's ``denoise``, ``inpaint``, ``deblur``, ``upscale`` and ``demosaic`` do, with arrays in and out.

`denoise` and `estimate_sigma` take signals too. Filters are built in, and adapt to the data at hand. All functions compute in f32.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _native
from ._convert import threads_of
from ._errors import warn_of_noise
from ._inputs import Array, Item, numeric, truths


def denoise(
    image: npt.ArrayLike,
    sigma: float | None = None,
    *,
    noise: Literal["gaussian", "poisson"] = "gaussian",
    photons: float | None = None,
    loss: Literal["l2", "l1"] = "l2",
    channel_axis: int | None = None,
    filters: npt.ArrayLike | None = None,
    learn_here: bool = True,
    random_state: int = 0,
    threads: int | None = None,
) -> Array:
    """Returns an image, or a signal, without its noise.

    Parameters
    ----------
    image : array of shape (H, W) or (W,), or with channels
        The noisy image or signal, in any units.
    sigma : float, optional
        The standard deviation of Gaussian noise, in the image's units; by default it is estimated (`estimate_sigma`). One that is far from
        the estimate is warned of with `NoiseWarning`, and one beyond the range of the values is refused.
    noise : {"gaussian", "poisson"}, default="gaussian"
        What noise: white Gaussian, or that of counted photons, whose variance is proportional to the value.
    photons : float, optional
        How many photons make a value of 1, for Poisson noise; by default it is estimated.
    loss : {"l2", "l1"}, default="l2"
        "l1" for values that are far off while the others are exact, such as salt and pepper: they are found and filled in.
    channel_axis : int, optional
        The axis of the channels, as in scikit-image; None for gray images and signals of one channel.
    filters : array of shape (K, h, w) or (K, C, h, w), or for signals (K, w) or (K, C, w), optional
        Filters to begin with, of norm at most 1, instead of the built-in ones.
    learn_here : bool, default=True
        Adapt the filters to the image.
    random_state : int, default=0
        Seeds which patches are learned from.
    threads : int, optional
        Threads to compute with; all cores by default.

    Returns
    -------
    ndarray of the image's shape
        In f32.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> rng = np.random.default_rng(0)
    >>> clean = np.kron(rng.random((6, 6)), np.ones((8, 8)))
    >>> noisy = clean + 0.1 * rng.standard_normal(clean.shape)
    >>> better = ocsc.restore.denoise(noisy, sigma=0.1)
    >>> ocsc.metrics.psnr(clean, better, peak=1) > ocsc.metrics.psnr(clean, noisy, peak=1) + 3
    True

    A signal:

    >>> beats = np.sin(0.05 * np.arange(2000)) ** 8
    >>> noisy = beats + 0.1 * rng.standard_normal(2000)
    >>> better = ocsc.restore.denoise(noisy)
    >>> bool(np.std(better - beats) < 0.5 * np.std(noisy - beats))
    True
    """
    if noise not in ("gaussian", "poisson"):
        raise ValueError(f'noise: expected "gaussian" or "poisson", found {noise!r}')
    if loss not in ("l2", "l1"):
        raise ValueError(f'loss: expected "l2" or "l1", found {loss!r}')
    if loss == "l1" and (noise != "gaussian" or sigma is not None):
        raise ValueError('loss="l1": expected neither noise nor sigma; values are exact or far off')
    if sigma is not None and noise == "poisson":
        raise ValueError("sigma: expected none with Poisson noise, which photons= describes")
    if photons is not None and noise != "poisson":
        raise ValueError('photons: expected none without noise="poisson"')
    item, axis = _item(image, None, channel_axis, or_signal=True)
    gaussian = ("gaussian", _sigma(sigma, item))
    kind, amount = ("impulse", None) if loss == "l1" else ("poisson", photons) if noise == "poisson" else gaussian
    rank = np.ndim(image) - (channel_axis is not None)
    common = _common(filters, learn_here, random_state, threads, rank)
    return _back(_native.denoise(item, kind, amount, common), axis, rank)


def inpaint(
    image: npt.ArrayLike,
    mask: npt.ArrayLike,
    *,
    channel_axis: int | None = None,
    filters: npt.ArrayLike | None = None,
    learn_here: bool = True,
    random_state: int = 0,
    threads: int | None = None,
) -> Array:
    """Returns an image with what was not observed filled in; observed values are kept.

    Parameters
    ----------
    image : array of shape (H, W), or with channels
        The image; unobserved values may be anything, even NaN.
    mask : array of the image's shape, or of one channel of it
        True where a value was observed, as everywhere in this package. (scikit-image's inpainting takes the opposite.)
    channel_axis, filters, learn_here, random_state, threads
        As for `denoise`.

    Returns
    -------
    ndarray of the image's shape
        In f32.
    """
    item, axis = _item(image, mask, channel_axis)
    return _back(_native.inpaint(item, _common(filters, learn_here, random_state, threads)), axis)


def deblur(
    image: npt.ArrayLike,
    kernel: npt.ArrayLike,
    sigma: float | None = None,
    *,
    channel_axis: int | None = None,
    filters: npt.ArrayLike | None = None,
    learn_here: bool = True,
    random_state: int = 0,
    threads: int | None = None,
) -> Array:
    """Returns an image without a known blur.

    Parameters
    ----------
    image : array of shape (H, W), or with channels
        The blurred image; it is taken to go on at its border as it ends.
    kernel : float, or array of shape (h, w)
        What the image was convolved with: the standard deviation of a Gaussian in pixels, or values of odd sides, which are
        scaled to sum 1.
    sigma : float, optional
        The standard deviation of the noise, in the image's units, as for `denoise`; by default it is estimated (`estimate_sigma`).
    channel_axis, filters, learn_here, random_state, threads
        As for `denoise`.

    Returns
    -------
    ndarray of the image's shape
        In f32.
    """
    item, axis = _item(image, None, channel_axis)
    values, _ = numeric(kernel, "kernel")
    if values.ndim not in (0, 2):
        raise ValueError(f"kernel: expected a number of pixels or an array (h, w), found an array of shape {values.shape}")
    given, deviation = ((values[None, None], None, None), 0.0) if values.ndim == 2 else (None, float(values))
    common = _common(filters, learn_here, random_state, threads)
    return _back(_native.deblur(item, given, deviation, _sigma(sigma, item), common), axis)


def upscale(
    image: npt.ArrayLike,
    factor: int = 2,
    *,
    channel_axis: int | None = None,
    filters: npt.ArrayLike | None = None,
    learn_here: bool = True,
    random_state: int = 0,
    threads: int | None = None,
) -> Array:
    """Returns an image with more pixels, which gives the one at hand when it is made smaller by cubic interpolation.

    Parameters
    ----------
    image : array of shape (H, W), or with channels
        The small image.
    factor : {2, 3, 4}, default=2
        How many times as many pixels along each side.
    channel_axis, filters, learn_here, random_state, threads
        As for `denoise`.

    Returns
    -------
    ndarray of shape (factor H, factor W), or with channels
        In f32.
    """
    if factor not in (2, 3, 4):
        raise ValueError(f"factor: expected 2, 3 or 4, found {factor!r}")
    item, axis = _item(image, None, channel_axis)
    return _back(_native.upscale(item, int(factor), _common(filters, learn_here, random_state, threads)), axis)


def demosaic(
    mosaic: npt.ArrayLike,
    pattern: Literal["RGGB", "BGGR", "GRBG", "GBRG"],
    *,
    channel_axis: int = -1,
    filters: npt.ArrayLike | None = None,
    learn_here: bool = True,
    random_state: int = 0,
    threads: int | None = None,
) -> Array:
    """Returns the colour image of what a camera's sensor sees, one colour at every pixel; observed values are kept.

    Parameters
    ----------
    mosaic : array of shape (H, W)
        The mosaic.
    pattern : {"RGGB", "BGGR", "GRBG", "GBRG"}
        The colours of the first two pixels of the first two rows.
    channel_axis : int, default=-1
        The axis of the colours in the result.
    filters, learn_here, random_state, threads
        As for `denoise`.

    Returns
    -------
    ndarray of shape (H, W, 3)
        In f32.
    """
    item, _ = _item(mosaic, None, None)
    return _back(_native.demosaic(item, pattern, _common(filters, learn_here, random_state, threads)), channel_axis)


def estimate_sigma(image: npt.ArrayLike, *, channel_axis: int | None = None) -> float:
    """Returns the standard deviation of white Gaussian noise in an image or a signal, by a robust guess: fine texture counts as noise.

    Parameters
    ----------
    image, channel_axis
        As for `denoise`.

    Returns
    -------
    float
    """
    return _native.noise_of(_item(image, None, channel_axis, or_signal=True)[0])


def _item(image: npt.ArrayLike, mask: Any, channel_axis: int | None, or_signal: bool = False) -> tuple[Item, int | None]:
    """Returns the image, or the signal as an image of one row, as the native half takes it, and the axis of its channels."""
    values, seen = numeric(image, "image")
    expected = 2 if channel_axis is None else 3
    if or_signal and values.ndim == expected - 1:
        planes = values[None] if channel_axis is None else np.moveaxis(values, channel_axis, 0)
        missing = seen if seen is None or channel_axis is None else np.moveaxis(seen, channel_axis, 0)
        return (planes[:, None, None], None if missing is None else missing.reshape(len(planes), 1, 1, -1), None), channel_axis
    if values.ndim != expected:
        advice = "; say which axis has the channels: channel_axis=-1" if channel_axis is None and values.ndim == 3 else ""
        axes = f"{expected - 1} or {expected} axes" if or_signal else f"{expected} axes"
        raise ValueError(f"image: expected {axes}, found an array of shape {values.shape}{advice}")
    planes = values[None] if channel_axis is None else np.moveaxis(values, channel_axis, 0)
    if mask is not None:
        given = truths(mask) > 0
        if given.shape == values.shape and channel_axis is not None:
            given = np.moveaxis(given, channel_axis, 0)
        elif given.shape == planes.shape[1:]:
            given = np.broadcast_to(given, planes.shape)
        if given.shape != planes.shape:
            raise ValueError(f"mask: expected the image's shape {values.shape}, or one channel of it, found {np.shape(mask)}")
        seen = given if seen is None else given & (seen if channel_axis is None else np.moveaxis(seen, channel_axis, 0))
    elif seen is not None:
        seen = seen[None] if channel_axis is None else np.moveaxis(seen, channel_axis, 0)
    if seen is not None:
        planes = np.where(seen, planes, 0)
    return (planes[:, None], None if seen is None else np.ascontiguousarray(seen[:, None]), None), channel_axis


def _back(planes: Array, channel_axis: int | None, rank: int = 2) -> Array:
    """Returns (channels, 1, H, W) as the caller's axes, of which so many are spatial."""
    flat = planes[:, 0] if rank == 2 else planes[:, 0, 0]
    image: Array = flat[0] if channel_axis is None else np.moveaxis(flat, 0, channel_axis)
    return image


def _sigma(sigma: float | None, item: Item) -> float | None:
    """Returns the standard deviation of noise; refuses one that cannot be that of the image, and warns of one that hardly can."""
    if sigma is None:
        return None
    if not (np.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma: expected a number of at least 0, or None, found {sigma!r}")
    doubt = _native.doubt_of_sigma(item, float(sigma))
    if doubt is not None and doubt[0] == "range":
        low, high = doubt[1:]
        raise ValueError(
            f"sigma: expected at most {high - low:.4g}, since the values go from {low:.4g} to {high:.4g}, found {sigma!r}; it is in the units "
            "of the image"
        )
    if doubt is not None:
        warn_of_noise(float(sigma), doubt[1])
    return float(sigma)


def _common(
    filters: npt.ArrayLike | None, learn_here: bool, random_state: int, threads: int | None, rank: int = 2
) -> tuple[Array | None, bool, int, int | None]:
    """Returns what all functions hand to the native half."""
    return _filters(filters, rank), learn_here, random_state, threads_of(threads)


def _filters(filters: npt.ArrayLike | None, rank: int) -> Array | None:
    """Returns filters (K, C, axes...) of so many axes."""
    if filters is None:
        return None
    array, _ = numeric(filters, "filters")
    if array.ndim not in (rank + 1, rank + 2):
        axes = "h, w" if rank == 2 else "w"
        raise ValueError(f"filters: expected shape (K, {axes}) or (K, C, {axes}), found {array.shape}")
    return array if array.ndim == rank + 2 else array[:, None]


__all__ = ["deblur", "demosaic", "denoise", "estimate_sigma", "inpaint", "upscale"]
