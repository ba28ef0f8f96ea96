"""Splits filters of several channels into topographies and waveforms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Rank1(NamedTuple):
    """The best product of a topography and a waveform for each filter.

    Attributes
    ----------
    topography : ndarray of shape (K, C)
        The weights of the channels, of norm 1; the largest magnitude is positive.
    waveform : ndarray of shape (K, axes...)
        What all channels share; its norm is that of the product.
    share : ndarray of shape (K,)
        How much of the filter's energy the product has: 1 for filters that were learned with ``rank1=True``, up to rounding; 0 for
        filters of zeros.
    """

    topography: Array
    waveform: Array
    share: Array


def rank1_of(filters: Array) -> Rank1:
    """Returns the best products for filters (K, C, axes...), by singular values."""
    k, channels = filters.shape[:2]
    full = filters.reshape(k, channels, -1).astype(float)
    left, values, right = np.linalg.svd(full, full_matrices=False)
    topography = left[:, :, 0]
    largest = np.abs(topography).argmax(axis=1)
    sign = np.where(topography[np.arange(k), largest] < 0, -1.0, 1.0)[:, None]
    energy = np.sum(full**2, axis=(1, 2))
    share = np.divide(values[:, 0] ** 2, energy, out=np.zeros(k), where=energy > 0)
    waveform = (sign * values[:, :1] * right[:, 0]).reshape(k, *filters.shape[2:])
    return Rank1(sign * topography, waveform, share)
