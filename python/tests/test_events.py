"""Events, selections, pools and windows."""

import pickle

import numpy as np
import pytest

import ocsc

from conftest import require

PATTERN = np.array([0, 0.2, -0.4, 0.8, -1.2, 2, -1.6, 1.2, -0.9, 0.7, -0.5, 0.4, -0.3, 0.2, -0.1, 0.05])
PATTERN = PATTERN / np.linalg.norm(PATTERN)
PLACES, AMPLITUDES = [30, 193, 301, 420], [1.0, 0.8, -0.6, 0.9]


def clicks(length=500, places=PLACES, amplitudes=AMPLITUDES):
    """A signal with the pattern at these places."""
    x = 0.002 * np.random.default_rng(0).standard_normal(length)
    for place, amplitude in zip(places, amplitudes):
        x[place : place + 16] += amplitude * PATTERN[: length - place]
    return x


@pytest.mark.parametrize("boundary", ["circular", "zero", "free"])
@pytest.mark.parametrize("align, offset", [("start", 0), ("peak", 5), ("centre", 6)])
def test_events_are_where_the_patterns_are(boundary, align, offset):
    codes = ocsc.code(clicks()[None], PATTERN[None], beta=0.01, boundary=boundary)
    events = codes.events(sfreq=250, threshold=0.2, align=align)
    assert events.dtype.names == ("sample", "filter", "time", "position", "amplitude", "energy")
    assert events["position"].tolist() == [place + offset for place in PLACES]
    np.testing.assert_allclose(events["time"], events["position"] / 250)
    np.testing.assert_allclose(events["amplitude"], AMPLITUDES, atol=0.03)
    np.testing.assert_allclose(events["energy"], np.square(AMPLITUDES) / 2.81, atol=0.02)
    assert np.isnan(codes.events()["time"]).all()
    mne = codes.to_mne_events(first_samp=1000, threshold=0.2, align=align)
    assert mne.tolist() == [[1000 + place + offset, 0, 1] for place in PLACES]
    with pytest.raises(ValueError, match="align: expected start, peak or centre"):
        codes.events(align="end")
    with pytest.raises(ValueError, match="min_distance"):
        codes.events(min_distance=0)


def test_events_equal_those_of_the_program(program, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2, 400)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    model = ocsc.OnlineCSC(n_filters=3, filter_shape=9, beta=1.2, boundary="free", axes="NT", window=100, sfreq=50).fit(X)
    model.save(tmp_path / "m.safetensors")
    words = "events m.safetensors x.npy --axes NT --window 100 --sfreq 50 --threshold 0.3 --min-distance 4 --out e.csv"
    program(*words.split())
    table = np.genfromtxt(tmp_path / "e.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    events = model.transform(X).events(threshold=0.3, min_distance=4)
    assert len(events) == len(table) > 20
    assert [f"x.npy[{i}]" for i in events["sample"]] == table["sample"].tolist()
    for name in ("filter", "time", "position"):
        np.testing.assert_array_equal(events[name], table[name])
    for name in ("amplitude", "energy"):
        np.testing.assert_allclose(events[name], table[name], rtol=1e-4)


def test_windows_are_put_together_again():
    x = clicks()
    model = ocsc.OnlineCSC(
        n_filters=1, filter_shape=16, init=PATTERN[None], passes=1, beta=0.01, boundary="free", axes="T", window="0.4s", sfreq=250
    )
    model.fit(x)
    model.set_params(tol=1e-3)
    codes = model.transform(x)
    assert len(codes) == 5 and codes.windows.tolist() == [[0, 100 * i] for i in range(5)]
    events = codes.events(threshold=0.2)
    assert len(events) == 4 and np.abs(events["position"] - np.array(PLACES) - 5).max() <= 1
    np.testing.assert_allclose(events["time"], events["position"] / 250)
    back = model.inverse_transform(codes)
    assert back.shape == x.shape and np.square(back - x).sum() < 0.1 * np.square(x).sum()
    again = pickle.loads(pickle.dumps(codes)).events(threshold=0.2)
    np.testing.assert_array_equal(events, again)
    # The function cuts and names times as the estimator does.
    same = ocsc.code(x, model.filters_, 0.01, tol=1e-3, boundary="free", axes="T", window="0.4s", sfreq=250)
    np.testing.assert_array_equal(same.windows, codes.windows)
    np.testing.assert_array_equal(same.events(threshold=0.2), events)
    # A rest shorter than half a window goes with the last; lists and channels too.
    pair = [np.stack([x, x])[:, :340], np.stack([x, x])[:, :360]]
    both = ocsc.OnlineCSC(n_filters=2, filter_shape=16, axes="CT", window=100).fit(pair).transform(pair)
    assert both.windows.tolist() == [[0, 0], [0, 100], [0, 200], [1, 0], [1, 100], [1, 200], [1, 300]]
    with pytest.raises(ValueError, match="window: expected sfreq"):
        model.set_params(sfreq=None).transform(x)
    with pytest.raises(ValueError, match="window: expected signals"):
        ocsc.OnlineCSC(filter_shape=(5, 5), window=10).fit(np.ones((2, 16, 16)))
    with pytest.raises(ValueError, match="window: expected a number"):
        ocsc.OnlineCSC(filter_shape=5, window="long").fit(np.ones((2, 16)))
    with pytest.raises(ValueError, match="window: expected arrays"):
        ocsc.OnlineCSC(filter_shape=5, window=8).fit(iter([np.ones(16)]))


def test_time_is_a_letter():
    x = np.random.default_rng(0).standard_normal((3, 2, 60))
    one, other = (ocsc.OnlineCSC(n_filters=3, filter_shape=5, axes=axes, beta=1.0).fit(x) for axes in ("NCT", "NCW"))
    np.testing.assert_array_equal(one.filters_, other.filters_)
    video = np.random.default_rng(0).standard_normal((1, 6, 8, 8))
    assert ocsc.OnlineCSC(n_filters=2, filter_shape=(3, 3, 3), axes="NTHW").fit(video).filters_.shape == (2, 3, 3, 3)


def test_codes_from_files_need_their_filters(tmp_path):
    codes = ocsc.code(clicks()[None], PATTERN[None], beta=0.01, boundary="free")
    codes.save(tmp_path / "codes.npz")
    codes.save(tmp_path / "folder")
    for name in ("codes.npz", "folder"):
        loaded = ocsc.Codes.load(tmp_path / name)
        with pytest.raises(ValueError, match="filters: expected those"):
            loaded.events()
        np.testing.assert_array_equal(loaded.events(filters=PATTERN[None], sfreq=9), codes.events(sfreq=9))


def test_events_of_images_and_volumes():
    y, x = np.mgrid[-3:4, -3:4]
    blob = np.exp(-(y**2 + x**2) / 3.0)
    blob /= np.linalg.norm(blob)
    images = np.zeros((2, 40, 42))
    images[0, 6:13, 4:11] += 3 * blob
    images[1, 20:27, 30:37] += 2 * blob
    events = ocsc.code(images, blob[None], beta=0.05, boundary="free").events(threshold=1, min_distance=(4, 4))
    assert events.dtype.names == ("sample", "filter", "time", "z", "y", "x", "amplitude", "energy")
    assert events[["sample", "z", "y", "x"]].tolist() == [(0, 0, 9, 7), (1, 0, 23, 33)]
    np.testing.assert_allclose(events["energy"], 1, atol=0.1)
    volume = np.zeros((1, 6, 9, 10))
    volume[0, 2, 3, 4] = 1
    events = ocsc.code(volume, np.ones((1, 1, 1, 1)), beta=0.1, axes="NTHW").events(sfreq=4)
    assert events[["time", "z", "y", "x"]].tolist() == [(0.5, 2, 3, 4)]


def test_selections():
    X = np.random.default_rng(0).standard_normal((2, 60))
    model = ocsc.OnlineCSC(n_filters=3, filter_shape=7, beta=0.8, boundary="free").fit(X)
    codes = model.transform(X)
    parts = [model.inverse_transform(codes.select(filter=k)) for k in range(3)]
    np.testing.assert_allclose(sum(parts), model.inverse_transform(codes), atol=1e-6)
    pair = codes.select(filter=[0, 2])
    assert set(pair.filter) == {0, 2} and np.isnan(pair.gap).all() and len(pair) == 2
    early, late = codes.select(stop=20), codes.select(start=20)
    assert early.corner.max() < 20 <= late.corner.min() and len(early.value) + len(late.value) == len(codes.value)
    assert model.inverse_transform(model.transform(X[0][None])[0:1].select(filter=1)).shape == (1, 60)
    for wrong in (3, -1, [0, 7], 0.5):
        with pytest.raises(ValueError, match="filter: expected numbers"):
            codes.select(filter=wrong)
    with pytest.raises(ValueError, match="start: expected one number per axis"):
        codes.select(start=(1, 2))


def test_pools_are_those_of_dense_codes():
    X = np.random.default_rng(0).standard_normal((4, 20, 18))
    codes = ocsc.OnlineCSC(n_filters=3, filter_shape=(5, 5), beta=2.0).fit_transform(X)
    dense = np.abs(codes.to_dense())
    expected = {
        "sum": dense.sum((2, 3)), "max": dense.max((2, 3)), "count": (dense > 0).sum((2, 3)), "energy": (dense**2).sum((2, 3)),
    }
    for how, values in expected.items():
        np.testing.assert_allclose(codes.pool(how), values, rtol=1e-5)
    halves = codes.pool("sum", bins=(2, 3)).reshape(4, 3, 2, 3)
    np.testing.assert_allclose(halves[:, :, 1, 2], dense[:, :, 10:, 12:].sum((2, 3)), rtol=1e-5)
    np.testing.assert_allclose(halves.sum((2, 3)), expected["sum"], rtol=1e-5)
    for wrong in (0, (2,), 1.5, (1, 2, 3)):
        with pytest.raises(ValueError, match="bins"):
            codes.pool(bins=wrong)
    with pytest.raises(ValueError, match="how"):
        codes.pool("mean")


def test_pooler_in_a_pipeline():
    require("sklearn")
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    X = 0.1 * rng.standard_normal((30, 64))
    y = np.arange(30) % 2
    for x, kind in zip(X, y):
        place = rng.integers(0, 48)
        x[place : place + 8] += [1, -1, 1, -1, 1, -1, 1, -1] if kind else [1, 1, 1, 1, -1, -1, -1, -1]
    pipeline = make_pipeline(ocsc.OnlineCSC(n_filters=4, filter_shape=8, passes=5), ocsc.CodePooler("max"), LogisticRegression(C=100))
    assert clone(pipeline).fit(X[:20], y[:20]).score(X[20:], y[20:]) == 1
    codes = ocsc.OnlineCSC(n_filters=4, filter_shape=8).fit_transform(X)
    pandas = require("pandas")
    frame = ocsc.CodePooler("count", bins=2).set_output(transform="pandas").fit_transform(codes)
    assert isinstance(frame, pandas.DataFrame) and list(frame)[:3] == ["filter0_count_0", "filter0_count_1", "filter1_count_0"]
    assert ocsc.CodePooler().fit(codes).get_feature_names_out().tolist() == [f"filter{k}_sum" for k in range(4)]
    with pytest.raises(TypeError, match="expected Codes"):
        ocsc.CodePooler().fit(X)
    with pytest.raises(ocsc.NotFittedError):
        ocsc.CodePooler().transform(codes)


def test_topographies_and_waveforms():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 5, 80))
    model = ocsc.OnlineCSC(n_filters=4, filter_shape=9, axes="NCT", rank1=True).fit(X)
    topography, waveform, share = model.rank1_
    assert topography.shape == (4, 5) and waveform.shape == (4, 9)
    np.testing.assert_allclose(share, 1, atol=1e-5)
    np.testing.assert_allclose(topography[:, :, None] * waveform[:, None], model.filters_, atol=1e-5)
    free = ocsc.OnlineCSC(n_filters=4, filter_shape=9, axes="NCT").fit(X).rank1_
    assert np.all((free.share > 0.2) & (free.share < 1))
