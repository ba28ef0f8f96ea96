"""The plugin of napari: its plain half everywhere, its widgets where napari and a Qt are."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import require, smooth

import ocsc
from ocsc import OnlineCSC
from ocsc import napari as plugin

SMALL = dict(n_filters=5, beta_ratio=0.2)


@pytest.fixture(scope="module")
def images():
    return smooth(24)[:3]


@pytest.fixture(scope="module")
def model(images):
    return OnlineCSC(**SMALL, filter_shape=(5, 5)).fit(images)


def test_models_and_codes_are_read(tmp_path, images, model):
    model.save(tmp_path / "m.safetensors")
    read = plugin.reader(str(tmp_path / "m.safetensors"))
    ((filters, options, kind),) = read(str(tmp_path / "m.safetensors"))
    assert kind == "image" and np.array_equal(filters, model.filters_)
    assert np.array_equal(options["metadata"][plugin.MODEL].filters_, model.filters_)
    codes = model.transform(images)
    codes[1].save(tmp_path / "c.npz")
    path = str(tmp_path / "c.npz")
    ((places, options, kind),) = plugin.reader([path])([path])
    assert kind == "points" and np.array_equal(places, codes[1].corner)
    assert np.array_equal(options["features"]["filter"], codes[1].filter)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    (tmp_path / "cut.npz").write_bytes(Path(path).read_bytes()[:-30])
    (tmp_path / "empty.npz").write_bytes(b"")
    others = ("other.npz", "broken.npz", "cut.npz", "empty.npz", "absent.npz", "photo.png")
    assert [plugin.reader(str(tmp_path / name)) for name in others] == [None] * len(others)


@pytest.mark.parametrize(
    "rgb, volume, shape",
    [(False, False, (24, 24)), (False, False, (3, 24, 24)), (True, False, (24, 24, 3)), (False, True, (9, 12, 12))],
)
def test_a_layer_is_learned_from_and_given_back(rgb, volume, shape):
    data = np.resize(smooth(24), shape).astype(np.float32)
    filters, back = plugin.learned(data, "x", rgb, volume, size=5, **SMALL)
    assert back[0].shape == shape and back[1]["rgb"] == rgb
    fitted = filters[1]["metadata"][plugin.MODEL]
    X = plugin.samples_of(data, rgb, volume)
    expected = fitted.inverse_transform(fitted.transform(X))
    assert np.allclose(np.sort(np.ravel(back[0])), np.sort(np.ravel(expected)))
    ((places, options, kind),) = plugin.activations(data, fitted, "x", rgb)
    assert kind == "points" and len(places) == len(options["features"]["filter"]) > 0
    spatial = data.ndim - rgb
    assert places.shape[1] == spatial and (places[:, -2:] < np.array(X.shape[-2:]) + 5).all()


def test_activations_lie_where_a_filter_was_put():
    blob = np.outer(np.hanning(7), np.hanning(7))[1:-1, 1:-1]
    image = np.zeros((40, 50))
    for y, x in [(10, 12), (25, 30)]:
        image[y - 2 : y + 3, x - 2 : x + 3] += 3 * blob
    init = blob[None] / np.linalg.norm(blob)
    model = OnlineCSC(n_filters=1, filter_shape=(5, 5), beta=0.5, init=init, passes=0).fit(image[None])
    ((places, options, _),) = plugin.activations(image, model, "blobs", threshold=1.0)
    assert places.tolist() == [[10, 12], [25, 30]] and (options["features"]["amplitude"] > 0).all()
    ((places, options, _),) = plugin.activations(image, model, "blobs", threshold=1e6)
    assert len(places) == 0 and options["ndim"] == 2


def test_other_layers_are_refused():
    with pytest.raises(ValueError, match=r"found a layer of shape \(4,\)"):
        plugin.samples_of(np.zeros(4), False, False)


def test_the_manifest_names_what_there_is():
    require("npe2")
    from npe2 import PluginManifest

    manifest = PluginManifest.from_file(Path(ocsc.__file__).parent / "napari.yaml")
    for command in manifest.contributions.commands:
        assert callable(getattr(plugin, str(command.python_name).split(":")[1]))


def run(worker):
    """What a worker that was started returns, while the window's events are seen to."""
    from qtpy.QtCore import QCoreApplication

    returned, failed = [], []
    worker.returned.connect(returned.append)
    worker.errored.connect(failed.append)
    until = time.monotonic() + 60
    while not returned and not failed and time.monotonic() < until:
        QCoreApplication.processEvents()
        time.sleep(0.01)
    assert returned and not failed, failed
    return returned[0]


def test_widgets_learn_and_show():
    napari = require("napari")
    require("qtpy")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        pytest.skip("a window of napari needs a display (xvfb-run gives one)")
    viewer = napari.Viewer(show=False)
    try:
        image = viewer.add_image(smooth(24)[0], name="x")
        learn, show = plugin.learn_widget(), plugin.activations_widget()
        viewer.window.add_dock_widget(learn)
        viewer.window.add_dock_widget(show)
        run(learn(image, n_filters=5, size=5, passes=1))
        filters = viewer.layers["filters of x"]
        assert filters.data.shape == (5, 5, 5) and viewer.layers["x, from its codes"].data.shape == (24, 24)
        with pytest.raises(ValueError, match="expected a layer of filters"):
            show(image, image)
        run(show(image, filters))
        assert viewer.layers["activations in x"].ndim == 2
    finally:
        viewer.close()
