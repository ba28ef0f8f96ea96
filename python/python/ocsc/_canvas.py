"""What all pictures share: colours, and new axes. matplotlib is imported when the first are made."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

INKS = ("#2563a8", "#c2571a", "#2f7d4f", "#8b4aa8", "#a8831d", "#b03a5b")
"""The lines of channels, in their order; further ones begin again. As the program draws them."""

PAPER, RULE = "#f6f6f4", "#cdcdc8"
"""Behind a line plot, and its zero line."""

TEXT = "#555550"
"""Small labels."""

SMALLEST = 7.5
"""The size of the smallest letters, in points."""


def new_axes(rows: int, columns: int, width: float, height: float, **options: Any) -> npt.NDArray[Any]:
    """Returns a new figure's axes (rows, columns), of this size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("ocsc.plot: expected matplotlib; pip install matplotlib") from error
    _, grid = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained", **options)
    axes: npt.NDArray[Any] = grid
    return axes


def ink(number: int) -> str:
    """Returns the colour of the filter of this number, the same in all pictures."""
    return INKS[number % len(INKS)]


def duration(values: float, sfreq: float | None) -> str:
    """Returns a length in words: of values, or in seconds or milliseconds where the rate is known."""
    if sfreq is None:
        return f"{values:g}"
    seconds = values / sfreq
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
