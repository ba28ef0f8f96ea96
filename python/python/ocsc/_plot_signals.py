"""Draws what codes say of signals and images: activations, events, topographies. Users call them as ``ocsc.plot``."""

# matplotlib's own types leave **kwargs unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._canvas import INKS, RULE, TEXT, ink, new_axes
from ._codes import Code, Codes, stack
from ._coding import reconstruct_one
from ._estimator import OnlineCSC
from ._rank1 import Rank1, rank1_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[Any]

TALL = 0.95
"""Activations from this quantile of the magnitudes on are drawn equally tall, lest a few make the others invisible."""

MOST = 20
"""Filters beyond the most used so many have no line in a raster, unless they are asked for."""


def activations(
    x: npt.ArrayLike,
    codes: Codes | Code,
    ax: Sequence[Axes] | Array | None = None,
    *,
    sfreq: float | None = None,
    filters: Sequence[int] | None = None,
    start: int | None = None,
    stop: int | None = None,
) -> Array:
    """Draws a signal with its reconstruction, and below it one line per filter with its activations.

    An activation is a stroke where the filter's largest magnitude lies, as high as its magnitude: up if it is positive, down if
    negative. All lines have one scale, and the largest twentieth one height.

    Parameters
    ----------
    x : array of shape (W,) or (C, W)
        The signal after preprocessing. Channels are drawn above each other.
    codes : Codes or Code
        Of this signal alone, from `OnlineCSC.transform` or `ocsc.code`; also in windows. ``codes[i]`` is the `Code` of sample i.
    ax : sequence of two matplotlib axes, optional
        Where to draw the signal and the activations; a new figure by default.
    sfreq : float, optional
        Values per second, for an axis in seconds; by default that of the codes.
    filters : sequence of int, optional
        Which to draw, from the top; by default the 20 most used, in their order.
    start, stop : int, optional
        The part to show, in values.

    Returns
    -------
    ndarray of two matplotlib axes

    Examples
    --------
    >>> axes = ocsc.plot.activations(X[3], model.transform(X)[3])  # doctest: +SKIP
    """
    signal = np.atleast_2d(np.asarray(x, float))
    codes = _as_codes(codes)
    rate = codes.sfreq if sfreq is None else float(sfreq)
    recording = _recording(codes)
    if signal.ndim != 2 or signal.shape != recording.shape:
        raise ValueError(f"x: expected the signal that was coded, (channels, values) {recording.shape}, found {signal.shape}")
    events = codes.events(sfreq=rate, min_distance=1)
    low, high = start or 0, signal.shape[1] if stop is None else stop
    if not 0 <= low < high <= signal.shape[1]:
        raise ValueError(f"start, stop: expected 0 <= start < stop <= {signal.shape[1]}, found {start} and {stop}")
    shown = events[(events["position"] >= low) & (events["position"] < high)]
    chosen = _most_used(shown["filter"], codes) if filters is None else [int(k) for k in filters]
    if ax is None:
        height = 1.6 + 0.5 * min(len(signal), 6)
        rows = 0.6 + 0.28 * max(len(chosen), 2)
        ax = new_axes(2, 1, 9.0, height + rows, sharex=True, height_ratios=[height, rows]).ravel()
    places: list[Axes] = list(ax)
    if len(places) != 2:
        raise ValueError(f"ax: expected two axes, found {len(places)}")
    time = np.arange(low, high) / (rate or 1.0)
    _draw_signal(places[0], time, signal[:, low:high], recording[:, low:high])
    _draw_raster(places[1], shown, chosen, rate)
    places[0].set_xlim(time[0], time[-1] if len(time) > 1 else time[0] + 1)
    places[1].set_xlim(places[0].get_xlim())
    places[1].set_xlabel("seconds" if rate else "values")
    result: Array = np.empty(2, object)
    result[:] = places
    return result


def _as_codes(codes: Codes | Code) -> Codes:
    """Returns a single code as a set of one, which knows what the code was made with."""
    if not isinstance(codes, Code):
        return codes
    one = stack([codes])
    one.filters, one.boundary, one.sfreq = codes.filters, codes.boundary, codes.sfreq
    return one


def _recording(codes: Codes) -> Array:
    """Returns the reconstruction (channels, values) of one signal, put together from its windows."""
    one = len(codes) == 1 or (codes.windows is not None and len(np.unique(codes.windows[:, 0])) == 1)
    if codes.filters is None or codes.boundary is None or codes.shapes.shape[1] != 2 or not one:
        raise ValueError(
            "codes: expected those of one signal, as transform or ocsc.code returned them, found others; codes[i] is that of sample i"
        )
    settings = {"boundary": codes.boundary, "n_filters": len(codes.filters), "filter_shape": list(codes.filters.shape[2:])}
    parts = [reconstruct_one(code, codes.filters, settings)[:, 0, 0] for code in codes]
    return np.concatenate(parts, axis=1)


def _most_used(filter: Array, codes: Codes) -> list[int]:
    counts = np.bincount(filter, minlength=int(codes.shapes[0, 0]))
    used = [int(k) for k in np.argsort(-counts, kind="stable")[:MOST] if counts[k] > 0]
    return sorted(used)


def _draw_signal(ax: Axes, time: Array, signal: Array, reconstruction: Array) -> None:
    """Draws channels above each other, the first at the top."""
    step = 1.05 * float(np.ptp(signal)) if len(signal) > 1 else 0.0
    for c in range(len(signal)):
        shift = -c * (step or 1.0) if len(signal) > 1 else 0.0
        ax.plot(time, signal[c] + shift, color="#9a9a94", linewidth=1.2, label="signal" if c == 0 else None)
        ax.plot(time, reconstruction[c] + shift, color=INKS[0], linewidth=0.9, label="reconstruction" if c == 0 else None)
    if len(signal) > 1:
        ax.set_yticks([-c * (step or 1.0) for c in range(len(signal))], [f"channel {c}" for c in range(len(signal))])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(fontsize="small", frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def _draw_raster(ax: Axes, events: Array, chosen: list[int], rate: float | None) -> None:
    """Draws one line per filter, the first at the top."""
    scale = float(np.quantile(np.abs(events["amplitude"]), TALL)) if len(events) else 1.0
    for row, k in enumerate(chosen):
        own = events[events["filter"] == k]
        time = own["position"] / (rate or 1.0)
        ax.axhline(-row, color=RULE, linewidth=0.6, zorder=0)
        height = 0.47 * np.clip(own["amplitude"] / scale, -1, 1)
        ax.vlines(time, -row, -row + height, color=ink(k), linewidth=1.0)
    ax.set_yticks([-row for row in range(len(chosen))], [str(k) for k in chosen], fontsize="small")
    ax.set_ylim(-max(len(chosen), 1) + 0.4, 0.6)
    ax.set_ylabel("filter")
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def events(
    events: Any,
    x: npt.ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    sample: int = 0,
    sfreq: float | None = None,
) -> Axes:
    """Draws the events of one sample: on its signal or image, if it is given, else alone.

    A filter has the colour of its number, as in `activations`; the six most frequent are named. Dots on images, and dots without a signal, have an area
    by the magnitude of the amplitude.

    Parameters
    ----------
    events : structured ndarray or pandas.DataFrame
        From `Codes.events`.
    x : array of shape (W,) or (H, W), optional
        The signal or image.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    sample : int, default=0
        Which sample's events.
    sfreq : float, optional
        Values per second of the signal; where events have times, it follows from them.

    Returns
    -------
    matplotlib axes
    """
    if hasattr(events, "to_records"):
        events = events.to_records(index=False)
    names = getattr(getattr(events, "dtype", None), "names", None) or ()
    if "amplitude" not in names:
        raise ValueError("events: expected what Codes.events returned, found no field 'amplitude'")
    own = events[events["sample"] == sample]
    numbers, counts = np.unique(own["filter"], return_counts=True)
    first = [int(k) for k in numbers[np.argsort(-counts, kind="stable")][: len(INKS)]]
    if "position" in names:
        ax = new_axes(1, 1, 9.0, 3.0 if x is not None else 0.9 + 0.28 * max(len(numbers), 2))[0, 0] if ax is None else ax
        assert ax is not None
        _signal_events(ax, own, x, sfreq, first, [int(k) for k in numbers])
    else:
        image = None if x is None else np.asarray(x, float)
        if image is not None and image.ndim != 2:
            raise ValueError(f"x: expected an image (H, W), found shape {image.shape}")
        ratio = 1.0 if image is None else image.shape[0] / image.shape[1]
        ax = new_axes(1, 1, 6.0, min(max(6.0 * ratio, 2.0), 9.0) + 0.3)[0, 0] if ax is None else ax
        assert ax is not None
        _image_events(ax, own, image, first)
    return ax


def _sizes(own: Array) -> Array:
    """Returns areas of dots, the largest for the strongest event."""
    magnitude = np.abs(own["amplitude"])
    areas: Array = 8 + 60 * magnitude / (magnitude.max() if len(own) else 1.0)
    return areas


def _signal_events(
    ax: Axes, own: Array, x: npt.ArrayLike | None, sfreq: float | None, first: list[int], numbers: list[int]
) -> None:
    timed = own[np.isfinite(own["time"]) & (own["time"] != 0)]
    rate = sfreq if sfreq is not None else float(np.median(timed["position"] / timed["time"])) if len(timed) else None
    place = own["position"] / (rate or 1.0)
    sizes = _sizes(own)
    signal = None if x is None else np.asarray(x, float)
    if signal is not None:
        if signal.ndim != 1:
            raise ValueError(f"x: expected one channel of a signal, (W,), found shape {signal.shape}")
        ax.plot(np.arange(len(signal)) / (rate or 1.0), signal, color="#9a9a94", linewidth=0.9, zorder=1)
        ax.set_xlim(0, (len(signal) - 1) / (rate or 1.0))
    for k in numbers:
        mine = own["filter"] == k
        label = f"filter {k} ({int(mine.sum())})" if k in first else None
        if signal is None:
            ax.scatter(place[mine], np.full(int(mine.sum()), -numbers.index(k)), sizes[mine], color=ink(k), linewidth=0)
        else:
            height = signal[np.clip(own["position"][mine], 0, len(signal) - 1)]
            ax.scatter(place[mine], height, 22, color=ink(k), linewidth=0, zorder=2, label=label)
    if signal is None:
        ax.set_yticks([-i for i in range(len(numbers))], [str(k) for k in numbers], fontsize="small")
        ax.set_ylim(-max(len(numbers), 1) + 0.4, 0.6)
        ax.set_ylabel("filter")
        ax.grid(axis="y", color=RULE, linewidth=0.6)
        ax.set_axisbelow(True)
    elif numbers:
        ax.legend(fontsize="small", frameon=False, ncols=len(first), loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.set_xlabel("seconds" if rate else "values")


def _image_events(ax: Axes, own: Array, image: Array | None, first: list[int]) -> None:
    if image is not None:
        ax.imshow(image, cmap="gray", interpolation="nearest")
    sizes = _sizes(own)
    for k in np.unique(own["filter"]):
        mine = own["filter"] == k
        label = f"filter {k} ({int(mine.sum())})" if int(k) in first else None
        ax.scatter(own["x"][mine], own["y"][mine], 2 * sizes[mine], facecolors="none", edgecolors=ink(int(k)), linewidth=1.4, label=label)
    if image is None:
        ax.set_aspect("equal")
        ax.invert_yaxis()
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    if len(own):
        columns = min(len(first), 3)
        ax.legend(fontsize="small", frameon=False, ncols=columns, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def topomap(
    filters: OnlineCSC | Rank1 | npt.ArrayLike,
    info: Any = None,
    *,
    numbers: Sequence[int] | None = None,
    sfreq: float | None = None,
) -> Array:
    """Draws filters of several channels as topographies on the head, each with its waveform below. Needs MNE-Python.

    Parameters
    ----------
    filters : OnlineCSC, Rank1, or array of shape (K, C, W)
        A fitted estimator, its ``rank1_``, or filters.
    info : mne.Info, optional
        Of the C channels, in their order; not needed with an estimator that learned from data of MNE.
    numbers : sequence of int, optional
        Which filters; by default the first eight.
    sfreq : float, optional
        Values per second of the waveforms; by default ``info['sfreq']``.

    Returns
    -------
    ndarray of matplotlib axes, of shape (2, filters)
    """
    try:
        import mne  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("ocsc.plot.topomap: expected MNE-Python; pip install mne") from error
    if isinstance(filters, OnlineCSC):
        split = filters.rank1_
        info = getattr(filters, "info_", None) if info is None else info
    else:
        split = filters if isinstance(filters, Rank1) else rank1_of(np.asarray(filters, float))
    if split.topography.shape[1] < 2 or split.waveform.ndim != 2:
        raise ValueError(f"filters: expected signals of several channels, (K, C, W), found topographies {split.topography.shape}")
    if info is None:
        raise ValueError("info: expected an mne.Info of the channels, since the filters were not learned from data of MNE, found none")
    chosen = [int(k) for k in (range(min(8, len(split.share))) if numbers is None else numbers)]
    rate = float(info["sfreq"]) if sfreq is None else float(sfreq)
    axes = new_axes(2, len(chosen), max(2.0 * len(chosen), 3.0), 3.4, height_ratios=[2, 1])
    for column, k in enumerate(chosen):
        head, wave = axes[:, column]
        mne.viz.plot_topomap(split.topography[k], info, axes=head, show=False)
        head.set_title(f"{k}\n{100 * split.share[k]:.0f} % rank 1", fontsize="small", color=TEXT)
        time = 1000 * np.arange(split.waveform.shape[1]) / rate
        wave.axhline(0.0, color=RULE, linewidth=0.6)
        wave.plot(time, split.waveform[k], color=INKS[0], linewidth=1.0)
        wave.set_yticks([])
        wave.set_xlabel("ms", fontsize="small")
        for side in ("top", "right", "left"):
            wave.spines[side].set_visible(False)
    return axes
