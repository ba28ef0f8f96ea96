"""Draws pictures of dictionaries, of runs, of reconstructions, of activations and of events with matplotlib.

matplotlib is not needed otherwise, and is not imported before the first picture. Each function draws into axes that are
given or makes new ones, returns them, and leaves showing and saving to the caller::

    ax = ocsc.plot.dictionary(model)
    ax.figure.savefig("dictionary.png")
"""

# matplotlib's own types leave **kwargs unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import metrics
from ._canvas import INKS, PAPER, RULE, SMALLEST, TEXT, duration, new_axes
from ._codes import Codes
from ._coding import full_filters
from ._estimator import RECORD, OnlineCSC
from ._inputs import Array, Layout, item, numeric
from ._native import axes as parse_axes
from ._plot_signals import activations, events, topomap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLES_AND_SECONDS = {"samples": "samples", "seconds": "seconds of learning", "step": "steps"}
"""What curves run over, and what their axis says."""

WIDE = {"x": 100.0, "y": 10.0}
"""From this ratio of the largest value to the smallest, a logarithmic axis pays."""

CELL = 0.075
"""The width of a letter of the smallest labels, in inches, with some room."""


# Dictionaries


def dictionary(
    filters: npt.ArrayLike | OnlineCSC,
    ax: Axes | None = None,
    *,
    axes: str | None = None,
    columns: int | None = None,
    cmap: str = "gray",
    title: str | None = None,
    order: str | Sequence[int] | Array | None = "variance",
    sfreq: float | None = None,
    codes: Codes | None = None,
    numbers: bool | None = None,
) -> Axes:
    """Draws all filters in ascending order of variance, on a near-square grid, as the program's ``ocsc show`` does.

    Each filter is divided by its largest magnitude: zero is mid-gray, and a filter of zeros plain gray. Filters of three
    channels are shown in colour; those of more in false colours, the means of three groups of neighbouring channels with the
    last group red; those of two side by side. The slices of volumes stand in a row. Filters of signals are lines, one per
    channel.

    Parameters
    ----------
    filters : OnlineCSC, or array of shape (K, axes...) or (K, C, axes...)
        A fitted estimator, or filters.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    axes : str, optional
        For arrays: the letters of a sample, e.g. ``'CHW'`` where filters (K, C, H, W) have channels. Without, they have none.
    columns : int, optional
        So many filters in a row.
    cmap : str, default='gray'
        The colours of filters of one or two channels, from minus to plus the largest magnitude.
    title : str, optional
        Instead of what is shown in words.
    order : {'variance', 'count'}, sequence of int, or None
        By ascending variance; by descending number of non-zeros in `codes`; these filters in this order; or, with None, as they are
        numbered.
    sfreq : float, optional
        Values per second of signals: the axis below the last row is in seconds or milliseconds instead of values. By default that
        of the estimator.
    codes : Codes, optional
        Write beside each filter's number how many non-zeros it has in these.
    numbers : bool, optional
        Write the number of each filter into its cell; by default for signals, and for all filters where there are `codes`.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> ax = ocsc.plot.dictionary(np.random.default_rng(0).standard_normal((16, 8, 8)))  # doctest: +SKIP
    """
    full = _full(filters, axes)
    counts = None if codes is None else np.bincount(codes.filter, minlength=len(full))
    chosen = _order(full, order, counts)
    shown = full[chosen] / _peaks(full[chosen])
    n, channels, depth, height, width = shown.shape
    is_signal = depth == height == 1
    panels = 1 if is_signal else depth * (channels if channels == 2 else 1)
    aspect = 1.0 if is_signal else panels * width / height
    across = _columns(n, aspect) if columns is None else max(1, min(int(columns), n))
    down = -(-n // across)
    labels = [str(k) if counts is None else f"{k}: {counts[k]}" for k in chosen]
    if not (is_signal or counts is not None if numbers is None else numbers):
        labels = []
    if ax is None:
        # Line plots are twice as wide as high; labels need room.
        ratio = across * (2.0 if is_signal else aspect) / down
        inches = min(max(6.0, CELL * across * max(map(len, labels), default=0)), 12.0)
        ax = new_axes(1, 1, inches, min(max(inches / ratio, 1.0), 12.0) + 0.4)[0, 0]
        assert ax is not None
    if is_signal:
        rate = sfreq
        if rate is None and isinstance(filters, OnlineCSC):
            rate = filters.sfreq if filters.sfreq is not None else getattr(filters, "sfreq_", None)
        _lines(ax, shown[:, :, 0, 0], across, down, labels, rate)
    else:
        _label_tiles(ax, shown, across, labels)
        mosaic = _mosaic(shown, across, down)
        if mosaic.shape[-1] == 1:
            ax.imshow(mosaic[..., 0], cmap=cmap, vmin=-1.0, vmax=1.0, interpolation="nearest")
        else:
            opacity = np.isfinite(mosaic[..., :1]).astype(float)
            colours = np.concatenate([np.nan_to_num(0.5 + 0.5 * mosaic), opacity], axis=-1)
            ax.imshow(colours, interpolation="nearest")
    ax.set_axis_off()
    how = {"variance": " by variance", "count": " by use"}.get(order, "") if isinstance(order, str) else ""
    words = _legend(shown.shape, how) + ("" if counts is None else "; number: non-zeros")
    ax.set_title(words if title is None else title, fontsize="medium", wrap=True)
    return ax


def _full(filters: npt.ArrayLike | OnlineCSC, axes: str | None) -> Array:
    """Returns filters as (K, C, D, H, W)."""
    if isinstance(filters, OnlineCSC):
        array = filters.filters_
        rank = array.ndim - 1
        if np.ndim(filters.filter_shape) > 0:
            rank = len(tuple(np.atleast_1d(filters.filter_shape)))
        elif filters.axes is not None:
            rank = Layout(parse_axes(filters.axes).replace("N", "")).rank
        full = array if array.ndim == rank + 2 else array[:, None]
    else:
        full = full_filters(filters, axes)
    k, c, *spatial = full.shape
    if full.size == 0:
        raise ValueError(f"filters: expected at least one value, found shape {full.shape}")
    return full.astype(float).reshape(k, c, *[1] * (3 - len(spatial)), *spatial)


def _variance(full: Array) -> Array:
    variance: Array = full.reshape(len(full), -1).var(axis=1)
    return variance


def _peaks(full: Array) -> Array:
    """Returns the largest magnitude of every filter, to divide by; 1 for filters of zeros."""
    peaks: Array = np.abs(full).max(axis=(1, 2, 3, 4), keepdims=True)
    return np.where(peaks > 0, peaks, 1.0)


def _columns(n: int, aspect: float) -> int:
    """Returns how many tiles of this aspect (width over height) to put in a row: near-square as a whole, few empty places."""

    def cost(columns: int) -> float:
        rows = -(-n // columns)
        return abs(float(np.log(columns * aspect / rows))) + 0.5 * (rows * columns - n) / n

    return min(range(n, 0, -1), key=cost)


def _group(channel: int, channels: int) -> int:
    """Returns the colour of a channel among more than three: 0 is blue, 1 green, 2 red, in the order of rising wavelength."""
    return 3 * channel // channels


def _colours(filters: Array) -> Array:
    """Returns panels (K, panels, H, W, 1 or 3) of filters (K, C, D, H, W): what is shown of their channels and slices."""
    k, channels, _, height, width = filters.shape
    if channels > 3:
        groups = np.array([_group(c, channels) for c in range(channels)])
        filters = np.stack([filters[:, groups == group].mean(axis=1) for group in (2, 1, 0)], axis=1)
        # As bright as the others, though means are smaller.
        filters = filters / _peaks(filters)
    if channels >= 3:
        return np.moveaxis(filters, 1, -1)
    panels: Array = filters.reshape(k, -1, height, width, 1)
    return panels


def _mosaic(filters: Array, across: int, down: int) -> Array:
    """Returns one picture (height, width, 1 or 3) of values -1 to 1, NaN between the filters."""
    tiles = _colours(filters)
    _, panels, height, width, colours = tiles.shape
    gap = 1 if panels == 1 else 2
    tile_width = panels * (width + 1) - 1
    mosaic: Array = np.full((down * (height + gap) - gap, across * (tile_width + gap) - gap, colours), np.nan)
    for i, tile in enumerate(tiles):
        top, left = i // across * (height + gap), i % across * (tile_width + gap)
        for panel in tile:
            mosaic[top : top + height, left : left + width] = panel
            left += width + 1
    return mosaic


def _label_tiles(ax: Axes, filters: Array, across: int, labels: list[str]) -> None:
    """Writes labels into the upper left corners of the tiles of a mosaic."""
    _, panels, height, width, _ = _colours(filters).shape
    gap = 1 if panels == 1 else 2
    tile_width = panels * (width + 1) - 1
    for i, label in enumerate(labels):
        top, left = i // across * (height + gap), i % across * (tile_width + gap)
        style = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.6}
        ax.text(left - 0.4, top - 0.4, label, fontsize=SMALLEST, color="#20201e", ha="left", va="top", bbox=style)


def _order(full: Array, order: str | Sequence[int] | Array | None, counts: Array | None) -> list[int]:
    """Returns the numbers of the filters to draw, in their order."""
    if order is None:
        return list(range(len(full)))
    if isinstance(order, str):
        if order == "count" and counts is not None:
            return [int(k) for k in np.argsort(-counts[: len(full)], kind="stable")]
        if order == "variance":
            return [int(k) for k in np.argsort(_variance(full), kind="stable")]
        raise ValueError(f"order: expected 'variance', 'count' (with codes), numbers of filters or None, found {order!r}")
    chosen = [int(k) for k in order]
    if not chosen or min(chosen) < 0 or max(chosen) >= len(full):
        raise ValueError(f"order: expected numbers of filters below {len(full)}, found {order!r}")
    return chosen


def _lines(ax: Axes, filters: Array, across: int, down: int, labels: list[str], rate: float | None) -> None:
    """Draws filters (K, C, W) as lines, in cells of 2 x 1 with a gap between them."""
    from matplotlib.patches import Rectangle

    gap, reach, margin = 0.12, 0.85 / 2, 0.05
    n, channels, width = filters.shape
    place = np.linspace(margin, 2 - margin, width) if width > 1 else np.array([1.0])
    for i in range(n):
        left, middle = i % across * (2 + gap), -(i // across) * (1 + gap)
        ax.add_patch(Rectangle((left, middle - 0.5), 2, 1, color=PAPER, linewidth=0, zorder=0))
        ax.hlines(middle, left, left + 2, color=RULE, linewidth=0.6, zorder=1)
        # The first channel last, so that it lies on top.
        for c in reversed(range(channels)):
            ax.plot(left + place, middle + reach * filters[i, c], color=INKS[c % len(INKS)], linewidth=0.8, zorder=2)
        if labels:
            style = {"facecolor": PAPER, "alpha": 0.8, "edgecolor": "none", "pad": 0.6}
            ax.text(left + 0.04, middle + 0.47, labels[i], fontsize=SMALLEST, color=TEXT, ha="left", va="top", zorder=3, bbox=style)
    bottom = -(down - 1) * (1 + gap) - 0.5
    # One axis of time, below the first column: all cells have the same.
    for end, length in ((margin, 0), (2 - margin, width - 1)):
        ax.vlines(end, bottom - 0.05, bottom, color=TEXT, linewidth=0.6)
        text = "0" if length == 0 else duration(length, rate)
        ax.text(end, bottom - 0.07, text, fontsize=SMALLEST, color=TEXT, ha="left" if length == 0 else "right", va="top")
    ax.set_xlim(0, across * (2 + gap) - gap)
    ax.set_ylim(bottom - 0.25, 0.5)
    ax.set_aspect("equal")


def _legend(shape: tuple[int, ...], how: str) -> str:
    """Returns what is shown, in words."""
    n, channels, depth, height, _ = shape
    words = [f"{n} filters{how}" if n > 1 else "1 filter"]
    if channels > 1 and depth == height == 1:
        words.append(f"a line for each of {channels} channels")
    elif channels == 2:
        words.append("two channels side by side")
    elif channels > 3:
        ends = [[c + 1 for c in range(channels) if _group(c, channels) == group] for group in (0, 1, 2)]
        blue, green, red = (f"{g[0]}-{g[-1]}" if len(g) > 1 else f"{g[0]}" for g in ends)
        words.append(f"channels {blue} blue, {green} green, {red} red")
    if depth > 1:
        words.append(f"{depth} slices in a row")
    return "; ".join(words)


# Runs


def curve(
    history: OnlineCSC | npt.ArrayLike | Sequence[Mapping[str, Any]],
    ax: Axes | None = None,
    *,
    x: str = "samples",
    gap: bool = True,
    mean: int | None = None,
    log_x: bool | None = None,
    log_y: bool | None = None,
    label: str | None = None,
) -> Axes:
    """Draws the objective of a run, and the duality gap of its codes, against samples or seconds.

    The objective of each step is that of its own samples, coded before the update, and so as uneven as samples are: it is
    drawn faintly, with its running mean on top, and thin lines between passes. Several runs may share axes: draw them one
    after the other with the same `ax` and a `label` each.

    Parameters
    ----------
    history : OnlineCSC, structured array, or list of Step
        A fitted estimator, its ``history_``, or what a callback collected.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    x : {'samples', 'seconds', 'step'}, default='samples'
        What to draw against.
    gap : bool, default=True
        Whether to draw the gap too, as dots, on a logarithmic axis at the right.
    mean : int, optional
        So many steps go into the running mean. By default those of a pass, as over a pass every sample counts once; of a
        single pass a twentieth. 1 draws the steps alone.
    log_x, log_y : bool, optional
        Whether the axes are logarithmic. By default where it pays: where the largest value is more than 100 times the
        smallest (x) or 10 times (objective), and all are positive.
    label : str, optional
        The name of the run in the legend.

    Returns
    -------
    matplotlib axes
        Those of the objective. Those of the gap have the label ``'gap'`` in ``ax.figure.axes``.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=2.0)
    >>> model = model.fit(np.random.default_rng(0).standard_normal((8, 16, 16)))
    >>> ax = ocsc.plot.curve(model, x="seconds")  # doctest: +SKIP
    """
    if x not in SAMPLES_AND_SECONDS:
        raise ValueError(f"x: expected one of {', '.join(SAMPLES_AND_SECONDS)}, found {x!r}")
    records = _records(history)
    if ax is None:
        ax = new_axes(1, 1, 6.0, 4.0)[0, 0]
        assert ax is not None
    place, objective = records[x].astype(float), records["objective"]
    width = _mean_width(records["pass"]) if mean is None else int(mean)
    if width < 1:
        raise ValueError(f"mean: expected a number of steps from 1 up, found {mean!r}")
    colour = INKS[sum(line.get_gid() == "objective" for line in ax.lines) % len(INKS)]
    if width > 1:
        ax.plot(place, objective, color=colour, alpha=0.25, linewidth=0.8, gid="steps")
    name = label or ("objective" if width == 1 else f"objective, mean of {width} steps")
    ax.plot(place, _running_mean(objective, width), color=colour, label=name, gid="objective")
    for end in place[:-1][np.diff(records["pass"]) > 0]:
        ax.axvline(float(end), color=RULE, linewidth=0.6, zorder=0, gid="pass")
    if gap:
        _draw_gap(ax, place, records["gap"], colour)
    ax.set_xlabel(SAMPLES_AND_SECONDS[x])
    ax.set_ylabel("objective")
    if _pays(place, "x") if log_x is None else log_x:
        ax.set_xscale("log")
    if _pays(objective, "y") if log_y is None else log_y:
        ax.set_yscale("log")
    ax.legend(fontsize="small", frameon=False)
    return ax


def _records(history: Any) -> Array:
    """Returns one record per step; refuses a run without any."""
    records: Array
    if isinstance(history, OnlineCSC):
        records = history.history_
    elif getattr(getattr(history, "dtype", None), "names", None):
        records = history
    else:
        steps: list[Mapping[str, Any]] = list(history)
        records = np.zeros(len(steps), RECORD)
        for name in RECORD.names or ():
            records[name] = [step[name] for step in steps]
    if len(records) == 0:
        raise ValueError("history: expected at least one step, found none; models that were loaded have no history")
    return records


def _mean_width(passes: Array) -> int:
    """Returns how many steps to average: the longest pass of several, at least a twentieth of all."""
    _, counts = np.unique(passes, return_counts=True)
    return max(1, len(passes) // 20, int(counts.max()) if len(counts) > 1 else 1)


def _running_mean(values: Array, width: int) -> Array:
    """Returns the mean of each value and the ``width`` - 1 before it, or as many as there are."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - width, 0)
    mean: Array = (total[last] - total[first]) / (last - first)
    return mean


def _pays(values: Array, axis: str) -> bool:
    low, high = float(np.min(values)), float(np.max(values))
    return low > 0 and high > WIDE[axis] * low


def _draw_gap(ax: Axes, place: Array, gap: Array, colour: str) -> None:
    """Draws the gap on an axis of its own at the right: that of an earlier run, if there is one."""
    figure = ax.get_figure()
    beside = [] if figure is None else figure.axes
    here = ax.get_position().bounds
    found = [other for other in beside if other.get_label() == "gap" and other.get_position().bounds == here]
    if found:
        twin = found[0]
    else:
        twin = ax.twinx()
        twin.set_label("gap")
        twin.set_ylabel("relative duality gap (dots)")
        twin.set_yscale("log")
    # A gap of zero has no place on a logarithmic axis.
    twin.plot(place, np.where(gap > 0, gap, np.nan), color=colour, linestyle="", marker=".", markersize=3, alpha=0.4)


# Reconstructions


def triplet(
    original: npt.ArrayLike,
    reconstruction: npt.ArrayLike,
    ax: Sequence[Axes] | Array | None = None,
    *,
    axes: str | None = None,
    peak: float | None = None,
    scale: float | None = None,
) -> Array:
    """Draws a sample, its reconstruction and their difference, with the PSNR.

    Both are drawn in the range of the original. The difference is white where they agree, red where the original is larger and
    blue where it is smaller. Signals are lines, and so is the difference, one for each channel in the colour of that channel. Of
    images, three channels are shown in colour, any other number as their mean, as differences are; of volumes the middle slice is
    shown.

    Parameters
    ----------
    original, reconstruction : array
        One sample each: (H, W), (W,), or as `axes` says. What a masked original leaves out does not count, and is left white
        in the original and in the difference.
    ax : sequence of three matplotlib axes, optional
        Where to draw; a new figure by default.
    axes : str, optional
        What the axes mean, e.g. ``'HWC'``.
    peak : float, optional
        Of the PSNR: 1 or 255 for images as stored; the range of the original by default.
    scale : float, optional
        The difference of full colour; a quarter of the range of the original by default.

    Returns
    -------
    ndarray of three matplotlib axes
    """
    low, high = _ends(original)
    peak = (high - low or 1.0) if peak is None else float(peak)
    scale = (high - low or 1.0) / 4 if scale is None else float(scale)
    psnr = metrics.psnr(original, reconstruction, peak, axes=axes)
    first, second = (_picture(array, axes) for array in (original, reconstruction))
    # Where the original was not observed, there is nothing to differ from.
    is_signal = first.ndim == 2
    difference = first - second if is_signal else _gray(first) - _gray(second)
    if ax is None:
        ratio = first.shape[0] / first.shape[1] if not is_signal else 0.0
        height = 4.5 if is_signal else min(max(3.0 * ratio, 1.0), 8.0) + 0.5
        ax = new_axes(*((3, 1) if is_signal else (1, 3)), 9.0, height).ravel()
    places: list[Axes] = list(ax)
    if len(places) != 3:
        raise ValueError(f"ax: expected three axes, found {len(places)}")
    titles = ("original", "reconstruction", f"difference, PSNR {psnr:.2f} dB")
    for place, title, picture in zip(places, titles, (first, second, difference)):
        is_difference = picture is difference
        ends = (-scale, scale) if is_difference else (low, high)
        _draw_sample(place, picture, ends, "RdBu_r" if is_difference else "gray")
        place.set_title(title, fontsize="medium")
    result: Array = np.empty(3, object)
    result[:] = places
    return result


def _ends(sample: npt.ArrayLike) -> tuple[float, float]:
    """Returns the smallest and the largest of the observed values."""
    array: Array = np.asanyarray(sample)
    return float(array.min()), float(array.max())


def _picture(sample: npt.ArrayLike, axes: str | None) -> Array:
    """Returns what is shown of a sample, NaN where it was not observed: (H, W, C) of an image or a volume, (W, C) of a signal."""
    values, _ = numeric(sample, "sample")
    letters = parse_axes(axes) if axes is not None else {1: "W", 2: "HW"}[values.ndim]
    turned, observed, _ = item(sample, Layout(letters), None, "sample")
    shown = turned.astype(float) if observed is None else np.where(observed, turned, np.nan)
    _, depth, height, _ = shown.shape
    if depth == height == 1:
        return shown[:, 0, 0].T
    return np.moveaxis(shown[:, depth // 2], 0, -1)


def _gray(picture: Array) -> Array:
    """Returns the mean of the channels, as one channel."""
    mean: Array = picture.mean(axis=-1, keepdims=True)
    return mean


def _draw_sample(ax: Axes, picture: Array, ends: tuple[float, float], cmap: str) -> None:
    """Draws pixels or lines, from the lower end to the upper one."""
    if picture.ndim == 2:
        ax.axhline(0.0, color=RULE, linewidth=0.6, zorder=0)
        for c in reversed(range(picture.shape[1])):
            ax.plot(picture[:, c], color=INKS[c % len(INKS)], linewidth=0.8)
        low, high = ends
        room = 0.05 * (high - low or 1.0)
        ax.set_ylim(low - room, high + room)
        return
    ax.set_axis_off()
    if picture.shape[-1] == 3:
        width = ends[1] - ends[0] or 1.0
        opacity = np.isfinite(picture).all(axis=-1, keepdims=True).astype(float)
        levels = np.clip((picture - ends[0]) / width, 0.0, 1.0)
        ax.imshow(np.concatenate([np.nan_to_num(levels), opacity], axis=-1), interpolation="nearest")
    else:
        ax.imshow(_gray(picture)[..., 0], cmap=cmap, vmin=ends[0], vmax=ends[1], interpolation="nearest")


__all__ = ["activations", "curve", "dictionary", "events", "topomap", "triplet"]
