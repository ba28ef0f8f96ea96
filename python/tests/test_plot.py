"""What `ocsc.plot` draws: panels, values, labels and axes."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import ocsc
from ocsc import plot

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).standard_normal((6, 24, 24))
    return ocsc.OnlineCSC(n_filters=6, filter_shape=(5, 5), beta=2.0, passes=3).fit(X)


def filters(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def picture(ax):
    """The one picture in axes, NaN where it is masked or transparent."""
    (image,) = ax.images
    values = np.ma.filled(np.ma.asarray(image.get_array(), dtype=float), np.nan)
    if values.ndim == 3:
        values = np.where(values[..., 3:] > 0, values[..., :3], np.nan)
    return values


# Without matplotlib


def test_import_is_lazy_and_the_error_names_the_cure():
    script = """
import sys
import ocsc
assert not any(name.split('.')[0] == 'matplotlib' for name in sys.modules)
sys.modules['matplotlib'] = None
import numpy as np
for draw in (
    lambda: ocsc.plot.dictionary(np.ones((2, 3, 3))),
    lambda: ocsc.plot.curve([dict.fromkeys(ocsc.Step.__annotations__, 1)]),
    lambda: ocsc.plot.triplet(np.eye(3), np.eye(3)),
):
    try:
        draw()
    except ImportError as error:
        assert 'pip install matplotlib' in str(error), error
    else:
        raise AssertionError('drawn without matplotlib')
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Dictionaries


def test_dictionary_is_a_mosaic_by_variance():
    d = filters(7, 4, 5) * np.array([3, 1, 2, 7, 5, 4, 6])[:, None, None]
    ax = plot.dictionary(d, columns=3)
    mosaic = picture(ax)
    assert mosaic.shape == (3 * 5 - 1, 3 * 6 - 1)
    order = np.argsort(d.reshape(7, -1).var(axis=1))
    for i, k in enumerate(order):
        top, left = i // 3 * 5, i % 3 * 6
        np.testing.assert_allclose(mosaic[top : top + 4, left : left + 5], d[k] / np.abs(d[k]).max())
    # Between the filters, and where there are none.
    assert np.isnan(mosaic[4]).all() and np.isnan(mosaic[:, 5]).all() and np.isnan(mosaic[10:, 6:]).all()
    assert np.isfinite(mosaic).sum() == d.size
    assert ax.images[0].get_clim() == (-1.0, 1.0)
    assert ax.get_title() == "7 filters by variance"


def test_dictionary_is_near_square_and_takes_axes():
    _, (left, right) = plt.subplots(1, 2)
    assert plot.dictionary(filters(100, 11, 11), right) is right
    assert picture(right).shape == (10 * 12 - 1, 10 * 12 - 1)
    assert not left.images
    plot.dictionary(filters(12, 4, 4), left, title="mine")
    assert picture(left).shape == (3 * 5 - 1, 4 * 5 - 1) and left.get_title() == "mine"


def test_dictionary_of_zeros_is_plain_gray():
    mosaic = picture(plot.dictionary(np.zeros((2, 3, 3))))
    assert np.nanmax(np.abs(mosaic)) == 0.0


def test_dictionary_of_three_channels_is_in_colour():
    d = filters(1, 3, 4, 4)
    mosaic = picture(plot.dictionary(d, axes="CHW"))
    np.testing.assert_allclose(mosaic, np.moveaxis(0.5 + 0.5 * d[0] / np.abs(d).max(), 0, -1))


def test_dictionary_of_many_channels_is_in_false_colours():
    d = filters(1, 6, 4, 4)
    ax = plot.dictionary(d, axes="CHW")
    means = np.stack([d[0, 4:].mean(0), d[0, 2:4].mean(0), d[0, :2].mean(0)], axis=-1)
    np.testing.assert_allclose(picture(ax), 0.5 + 0.5 * means / np.abs(means).max())
    assert "channels 1-2 blue, 3-4 green, 5-6 red" in ax.get_title()


@pytest.mark.parametrize("axes, shape, words", [("CHW", (4, 2, 5, 5), "side by side"), ("DHW", (4, 2, 5, 5), "2 slices")])
def test_dictionary_of_two_channels_or_slices_has_panels(axes, shape, words):
    d = filters(*shape)
    ax = plot.dictionary(d, axes=axes, columns=2)
    mosaic = picture(ax)
    assert mosaic.shape == (2 * 7 - 2, 2 * 13 - 2) and words in ax.get_title()
    first = d[np.argsort(d.reshape(4, -1).var(axis=1))[0]]
    np.testing.assert_allclose(mosaic[:5, 6:11], first[1] / np.abs(first).max())


def test_dictionary_of_coloured_volumes():
    assert picture(plot.dictionary(filters(1, 3, 2, 4, 5))).shape == (4, 11, 3)


def test_dictionary_of_signals_is_lines():
    d = filters(6, 32)
    ax = plot.dictionary(d)
    assert not ax.images and len(ax.lines) == 6 and len(ax.patches) == 6
    first = d[np.argsort(d.var(axis=1))[0]]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.425 * first / np.abs(first).max())
    two = plot.dictionary(filters(6, 2, 32), axes="CW")
    assert len(two.lines) == 12 and len({line.get_color() for line in two.lines}) == 2


def test_dictionary_of_models(model):
    assert np.isfinite(picture(plot.dictionary(model))).sum() == 6 * 25
    colour = ocsc.OnlineCSC(n_filters=4, filter_shape=5, axes="NHWC", beta=2.0).fit(filters(2, 16, 16, 3))
    assert picture(plot.dictionary(colour)).shape[-1] == 3
    signal = ocsc.OnlineCSC(n_filters=4, filter_shape=5, beta=2.0).fit(filters(2, 40))
    assert len(plot.dictionary(signal).lines) == 4


def test_dictionary_refuses():
    with pytest.raises(ValueError, match="expected shape"):
        plot.dictionary(np.ones(4))
    with pytest.raises(ValueError, match="at least one value"):
        plot.dictionary(np.ones((0, 4, 4)))
    with pytest.raises(ocsc.NotFittedError):
        plot.dictionary(ocsc.OnlineCSC())


def test_dictionary_with_numbers_counts_and_time():
    d = filters(4, 32)
    texts = lambda ax: [text.get_text() for text in ax.texts]
    assert texts(plot.dictionary(d, order=None)) == ["0", "1", "2", "3", "0", "31"]
    assert texts(plot.dictionary(d, order=[2, 0], sfreq=31)) == ["2", "0", "0", "1 s"]
    assert texts(plot.dictionary(d, order=[1], sfreq=1000)) == ["1", "0", "31 ms"]
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    codes = ocsc.code(filters(3, 64), d, beta=2.0)
    counts = np.bincount(codes.filter, minlength=4)
    expected = [f"{k}: {counts[k]}" for k in np.argsort(-counts, kind="stable")]
    assert texts(plot.dictionary(d, codes=codes, order="count"))[:4] == expected
    assert texts(plot.dictionary(filters(2, 5, 5))) == [] and texts(plot.dictionary(filters(2, 5, 5), numbers=True, order=None)) == ["0", "1"]
    for wrong in ("size", "count", [4], []):
        with pytest.raises(ValueError, match="order"):
            plot.dictionary(d, order=wrong)


# What codes say


@pytest.fixture(scope="module")
def coded():
    x = filters(1, 2, 300)
    model = ocsc.OnlineCSC(n_filters=3, filter_shape=9, axes="NCT", window=100, sfreq=50, beta=2.0).fit(x)
    return x[0], model.transform(x), model


def test_activations(coded):
    x, codes, model = coded
    signal, raster = plot.activations(x, codes)
    assert len(signal.lines) == 4 and raster.get_xlabel() == "seconds"
    np.testing.assert_allclose(signal.lines[0].get_ydata(), x[0])
    np.testing.assert_allclose(signal.lines[1].get_ydata(), model.inverse_transform(codes)[0, 0], atol=1e-6)
    strokes = sum(len(lines.get_segments()) for lines in raster.collections)
    assert strokes == len(codes.events(min_distance=1)) and len(raster.get_yticks()) == 3
    assert plot.activations(x, codes, start=50, stop=100, filters=[1])[0].get_xlim() == (1.0, 1.98)
    with pytest.raises(ValueError, match="x: expected the signal that was coded"):
        plot.activations(x[:, :50], codes)
    with pytest.raises(ValueError, match="codes: expected those of one signal"):
        plot.activations(x, ocsc.code(filters(2, 30), np.ones((1, 1)), beta=1.0))


def test_activations_of_one_code_are_those_of_a_set_of_one(coded):
    X = filters(3, 2, 300)
    codes = ocsc.OnlineCSC(n_filters=3, filter_shape=9, axes="NCT", sfreq=50, beta=2.0).fit(X).transform(X)

    def drawn(codes):
        signal, raster = plot.activations(X[1], codes)
        lines = [line.get_ydata() for line in signal.lines]
        return lines, [segment for strokes in raster.collections for segment in strokes.get_segments()], raster.get_xlabel()

    one, few = drawn(codes[1]), drawn(codes[1:2])
    assert one[2] == few[2] == "seconds" and len(one[1]) == len(few[1]) > 0
    for a, b in zip([*one[0], *one[1]], [*few[0], *few[1]], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(drawn(pickle.loads(pickle.dumps(codes[1])))[0], one[0])
    bare = ocsc.Code(codes[1].filter, codes[1].position, codes[1].value, codes[1].shape)
    with pytest.raises(ValueError, match=r"codes: expected those of one signal.*codes\[i\] is that of sample i"):
        plot.activations(X[1], bare)


def test_events(coded):
    x, codes, _ = coded
    events = codes.events()
    alone = plot.events(events)
    assert sum(len(dots.get_offsets()) for dots in alone.collections) == len(events) and alone.get_xlabel() == "seconds"
    on_signal = plot.events(events, x[0])
    np.testing.assert_allclose(on_signal.lines[0].get_ydata(), x[0])
    image = filters(12, 14)
    found = ocsc.code(image[None], np.ones((1, 1, 1)), beta=1.5).events()
    ax = plot.events(found, image)
    assert len(ax.images) == 1 and len(ax.collections[0].get_offsets()) == len(found)
    assert plot.events(found[:0], image).images
    with pytest.raises(ValueError, match="events: expected what"):
        plot.events(np.ones(3))


def test_a_filter_has_one_colour_in_all_pictures(coded):
    x, codes, _ = coded
    events = codes.events(min_distance=1)
    chosen = [2, 0]
    raster = plot.activations(x, codes, filters=chosen)[1]
    strokes = {k: tuple(lines.get_color()[0]) for k, lines in zip(chosen, raster.collections[: len(chosen)])}
    dots = plot.events(events[np.isin(events["filter"], chosen)])
    for k, drawn in zip(sorted(chosen), dots.collections):
        assert tuple(drawn.get_facecolor()[0]) == strokes[k]


def test_labels_of_a_dictionary_can_be_read(coded):
    *_, model = coded
    for ax in (plot.dictionary(model), plot.dictionary(filters(100, 8, 8), numbers=True)):
        assert ax.texts and min(text.get_fontsize() for text in ax.texts) >= 7
        assert ax.figure.get_figwidth() >= 6


def test_topomaps_need_mne(coded):
    *_, model = coded
    try:
        import mne
    except ImportError:
        with pytest.raises(ImportError, match="pip install mne"):
            plot.topomap(model, None)
        return
    montage = mne.channels.make_standard_montage("standard_1020")
    info = mne.create_info(["C3", "C4", "Fz", "Pz"], 100, "eeg").set_montage(montage)
    axes = plot.topomap(filters(2, 4, 9), info)
    assert axes.shape == (2, 2) and len(axes[1, 0].lines) == 2
    with pytest.raises(ValueError, match="several channels"):
        plot.topomap(filters(2, 1, 9), info)


# Runs


def named(ax, gid):
    return [line for line in ax.lines if line.get_gid() == gid]


def gap_axes(ax):
    return [other for other in ax.figure.axes if other.get_label() == "gap"]


def test_curve_draws_objective_and_gap(model):
    ax = plot.curve(model, mean=1)
    history = model.history_
    (line,) = named(ax, "objective")
    np.testing.assert_array_equal(line.get_xdata(), history["samples"])
    np.testing.assert_allclose(line.get_ydata(), history["objective"])
    assert not named(ax, "steps")
    # Three passes of 6 samples have two ends between them.
    assert [line.get_xdata()[0] for line in named(ax, "pass")] == [6.0, 12.0]
    (twin,) = gap_axes(ax)
    np.testing.assert_allclose(twin.lines[0].get_ydata(), history["gap"])
    assert twin.get_yscale() == "log" and "gap" in twin.get_ylabel()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("samples", "objective")


def test_curve_has_a_running_mean(model):
    ax = plot.curve(model, x="seconds", mean=4, gap=False)
    objective = model.history_["objective"]
    (steps,), (line,) = named(ax, "steps"), named(ax, "objective")
    np.testing.assert_allclose(steps.get_ydata(), objective)
    np.testing.assert_allclose(line.get_ydata()[[0, 1, 3, 9]], [objective[max(0, i - 3) : i + 1].mean() for i in (0, 1, 3, 9)])
    assert ax.get_xlabel() == "seconds of learning" and not gap_axes(ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["objective, mean of 4 steps"]


def test_curve_averages_a_pass(model):
    text = plot.curve(model).get_legend().get_texts()[0].get_text()
    assert text == "objective, mean of 6 steps"
    assert named(plot.curve(model), "objective")[0].get_ydata()[-1] == pytest.approx(model.objective_)
    once = np.repeat(model.history_[:1], 100)
    assert "mean of 5 steps" in plot.curve(once).get_legend().get_texts()[0].get_text()


def test_curve_takes_steps_of_a_callback():
    steps = []
    model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=2.0, callback=steps.append).fit(filters(5, 16, 16))
    (line,) = named(plot.curve(steps, x="step", mean=1), "objective")
    np.testing.assert_allclose(line.get_ydata(), model.history_["objective"])
    (line,) = named(plot.curve(model.history_, mean=1), "objective")
    np.testing.assert_allclose(line.get_ydata(), model.history_["objective"])


def test_curve_is_logarithmic_where_it_pays(model):
    history = np.repeat(model.history_[:1], 200)
    history["samples"] = np.arange(1, 201)
    history["objective"] = np.linspace(10, 20, 200)
    ax = plot.curve(history)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    ax = plot.curve(history, log_x=False, log_y=True)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    history["objective"][0] = 1e3
    assert plot.curve(history[:50]).get_yscale() == "log"
    history["objective"][1] = 0
    assert plot.curve(history).get_yscale() == "linear"


def test_curves_of_two_runs_share_axes(model):
    ax = plot.curve(model, label="one")
    ax.figure.canvas.draw()
    assert plot.curve(model, ax, label="two") is ax
    (twin,) = gap_axes(ax)
    assert len(twin.lines) == 2 and len({line.get_color() for line in named(ax, "objective")}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_curve_refuses(model, tmp_path):
    with pytest.raises(ValueError, match="x: expected one of samples, seconds, step"):
        plot.curve(model, x="epochs")
    with pytest.raises(ValueError, match="mean: expected"):
        plot.curve(model, mean=0)
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="history: expected at least one step"):
        plot.curve(ocsc.load(tmp_path / "model.safetensors"))


# Reconstructions


def test_triplet_of_images():
    x = np.linspace(0, 1, 64).reshape(8, 8)
    places = plot.triplet(x, x - 0.1)
    assert len(places) == 3
    np.testing.assert_allclose(picture(places[0]), x)
    np.testing.assert_allclose(picture(places[1]), x - 0.1)
    np.testing.assert_allclose(picture(places[2]), np.full((8, 8), 0.1))
    assert [ax.images[0].get_clim() for ax in places] == [(0, 1), (0, 1), (-0.25, 0.25)]
    # Red where the original is larger.
    red, _, blue, _ = places[2].images[0].cmap(1.0)
    assert red > blue
    assert [ax.get_title() for ax in places] == ["original", "reconstruction", "difference, PSNR 20.00 dB"]


def test_triplet_of_colour_in_given_axes():
    x = filters(8, 9, 3)
    _, grid = plt.subplots(2, 3)
    places = plot.triplet(x, 0.5 * x, grid[1], axes="HWC", peak=1.0, scale=2.0)
    assert all(a is b for a, b in zip(places, grid[1])) and not grid[0, 0].images
    low, high = x.min(), x.max()
    np.testing.assert_allclose(picture(places[0]), (x - low) / (high - low))
    np.testing.assert_allclose(picture(places[2]), 0.5 * x.mean(axis=2))
    assert f"{ocsc.metrics.psnr(x, 0.5 * x, 1.0, axes='HWC'):.2f} dB" in places[2].get_title()


def test_triplet_of_signals_and_volumes():
    x = filters(50)
    places = plot.triplet(x, 0.5 * x)
    np.testing.assert_allclose(places[2].lines[-1].get_ydata(), 0.5 * x)
    volume = filters(5, 6, 7)
    np.testing.assert_allclose(picture(plot.triplet(volume, 0 * volume, axes="DHW")[0]), volume[2])


def test_triplet_of_signals_shows_the_difference_of_each_channel():
    x = filters(3, 50)
    y = x * [[0.5], [1.0], [2.0]]
    places = plot.triplet(x, y, axes="CW")
    for place, expected in zip(places, (x, y, x - y)):
        # The first line is the zero line; the first channel is drawn last, on top of the others.
        shown = [line.get_ydata() for line in place.lines[:0:-1]]
        np.testing.assert_allclose(shown, expected)
        assert len({line.get_color() for line in place.lines[1:]}) == 3


def test_triplet_leaves_out_what_was_not_observed():
    x = filters(6, 6)
    hidden = np.zeros((6, 6), bool)
    hidden[2] = True
    places = plot.triplet(np.ma.masked_array(np.where(hidden, 1e6, x), hidden), x + 0.5, peak=1.0)
    assert np.isnan(picture(places[0])[2]).all() and np.isnan(picture(places[2])[2]).all()
    assert np.isfinite(picture(places[1])).all()
    assert places[2].get_title().endswith("PSNR 6.02 dB")


def test_triplet_refuses():
    with pytest.raises(ValueError, match="equal shapes"):
        plot.triplet(np.eye(3), np.eye(4))
    with pytest.raises(ValueError, match="needs axes"):
        plot.triplet(np.ones((3, 4, 4)), np.ones((3, 4, 4)))
    with pytest.raises(ValueError, match="three axes"):
        plot.triplet(np.eye(3), np.eye(3), plt.subplots(1, 2)[1])
    with pytest.raises(ValueError, match="axes: expected those of one sample, without N, found 'NHW'"):
        plot.triplet(np.ones((3, 4, 4)), np.ones((3, 4, 4)), axes="NHW")
