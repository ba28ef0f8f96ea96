"""A plugin of napari: reads models and codes, learns filters from a layer, and shows where they fire.

It is found by napari where both are installed; ``napari.yaml`` says what it offers. What the widgets do is done by `learned` and
`activations`, which need no window.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._codes import Codes, concatenate
from ._estimator import OnlineCSC
from ._functions import load

if TYPE_CHECKING:
    from magicgui.widgets import FunctionGui

Array = npt.NDArray[Any]
Layer = tuple[Any, dict[str, Any], str]
"""Data, options and kind of a layer, as napari takes it."""

MODEL = "ocsc_model"
"""Where the metadata of a layer of filters keep the model."""


def reader(path: str | list[str]) -> Callable[[Any], list[Layer]] | None:
    """Returns what reads a model or a code, or None for other files."""
    first = path if isinstance(path, str) else path[0]
    if first.endswith(".safetensors"):
        return _read_models
    if first.endswith(".npz") and _is_code(first):
        return _read_codes
    return None


def _is_code(path: str) -> bool:
    try:
        with np.load(path) as arrays:
            return {"filter", "position", "value", "shape"} <= set(arrays.files)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return False


def _paths(path: Any) -> list[str]:
    return [path] if isinstance(path, str) else list(path)


def _read_models(path: Any) -> list[Layer]:
    return [_filters(load(one), os.path.basename(one)) for one in _paths(path)]


def _read_codes(path: Any) -> list[Layer]:
    paths = _paths(path)
    return [_atoms(concatenate([Codes.load(one) for one in paths]), os.path.basename(paths[0]))]


def _filters(model: OnlineCSC, name: str) -> Layer:
    """The filters as a stack, all on one scale, with the model in the layer's metadata."""
    filters = np.asarray(model.filters_)
    largest = float(np.abs(filters).max()) or 1.0
    options = {"name": f"filters of {name}", "contrast_limits": (-largest, largest), "metadata": {MODEL: model}}
    return filters, options, "image"


def _points(places: Array, filters: Array, amplitudes: Array, name: str) -> Layer:
    """Points at places, as large as their amplitudes and with their filter's colour."""
    largest = float(np.abs(amplitudes).max()) if amplitudes.size else 1.0
    options = {
        "name": name,
        "features": {"filter": filters, "amplitude": amplitudes},
        "size": 1 + 9 * np.abs(amplitudes) / (largest or 1.0),
        "face_color": "filter",
        "face_colormap": "hsv",
        "opacity": 0.6,
    }
    if not amplitudes.size:
        options = {"name": name, "ndim": places.shape[1]}
    return places, options, "points"


def _atoms(codes: Codes, name: str) -> Layer:
    """All non-zeros of codes, where the first corner of their filter is."""
    sample, corner = np.repeat(np.arange(len(codes)), np.diff(codes.offset)), np.asarray(codes.corner)
    places = corner if len(codes) == 1 else np.column_stack([sample, corner])
    return _points(places.astype(float), np.asarray(codes.filter), np.asarray(codes.value), f"atoms of {name}")


def samples_of(data: Any, rgb: bool, volume: bool) -> Array:
    """Returns a layer's data as samples: (1, H, W), (1, C, H, W) of colours, (N, H, W) of a stack, or (1, D, H, W) of a volume."""
    values = np.asarray(data)
    values = values.astype(np.float64 if values.dtype == np.float64 else np.float32)
    if rgb:
        values = np.moveaxis(values[..., :3], -1, -3)
        return values if values.ndim == 4 else values[None]
    if values.ndim == 2 or (volume and values.ndim == 3):
        return values[None]
    if values.ndim == 3:
        return values
    raise ValueError(f"expected an image, a stack of images or a volume, found a layer of shape {values.shape}")


def learned(data: Any, name: str, rgb: bool = False, volume: bool = False, size: int = 11, **settings: Any) -> list[Layer]:
    """Learns filters from a layer, and returns layers of the filters and of what the codes of the layer give back."""
    X = samples_of(data, rgb, volume)
    axes = ("NCHW" if rgb else "NDHW") if X.ndim == 4 else "NHW"
    model = OnlineCSC(filter_shape=(size,) * (3 if axes == "NDHW" else 2), axes=axes, **settings).fit(X)
    back = np.asarray(model.inverse_transform(model.transform(X)))
    back = np.moveaxis(back, 1, -1) if rgb else back
    back = back if np.ndim(data) == back.ndim else back[0]
    return [_filters(model, name), (back, {"name": f"{name}, from its codes", "rgb": rgb}, "image")]


def activations(data: Any, model: OnlineCSC, name: str, rgb: bool = False, threshold: float = 0.0) -> list[Layer]:
    """Codes a layer, and returns a layer of points: where each filter fires, neighbouring atoms of one filter merged."""
    axes = str(model.get_params()["axes"] or "")
    X = samples_of(data, rgb, volume="D" in axes)
    events = model.transform(X).events(threshold=threshold, align="centre")
    axis_names = ["z", "y", "x"][-np.asarray(model.filter_shape).size :]
    places = np.column_stack([events["sample"], *(events[axis] for axis in axis_names)]).astype(float)
    places = places if len(X) > 1 else places[:, 1:]
    return [_points(places, events["filter"], events["amplitude"], f"activations in {name}")]


def learn_widget() -> FunctionGui[..., Any]:
    """Makes the widget that learns; it works beside the window."""
    from magicgui import magicgui
    from napari.layers import Image

    def learn(
        image: Any,
        n_filters: int = 32,
        size: int = 11,
        beta_ratio: float = 0.1,
        passes: int = 3,
        is_volume: bool = False,
    ) -> Any:
        settings = {"n_filters": n_filters, "beta_ratio": beta_ratio, "passes": passes}
        return _beside(learned)(image.data, image.name, image.rgb, is_volume, size, **settings)

    learn.__annotations__ |= {"image": Image, "return": _layers_later()}
    return magicgui(learn, call_button="Learn filters", beta_ratio={"min": 0.001, "max": 1.0, "step": 0.01})


def activations_widget() -> FunctionGui[..., Any]:
    """Makes the widget that shows where filters fire."""
    from magicgui import magicgui
    from napari.layers import Image

    def show(image: Any, filters: Any, threshold: float = 0.0) -> Any:
        model = filters.metadata.get(MODEL)
        if model is None:
            raise ValueError(f"{filters.name}: expected a layer of filters, as learning or reading a model makes it")
        return _beside(activations)(image.data, model, image.name, image.rgb, threshold)

    show.__annotations__ |= {"image": Image, "filters": Image, "return": _layers_later()}
    return magicgui(show, call_button="Show activations")


def _beside(work: Callable[..., list[Layer]]) -> Any:
    """What does the work in a thread of its own."""
    from napari.qt import threading

    return threading.thread_worker(work, start_thread=True)


def _layers_later() -> Any:
    """What tells napari that layers follow."""
    from napari.qt.threading import FunctionWorker
    from napari.types import LayerDataTuple

    return FunctionWorker[list[LayerDataTuple]]
