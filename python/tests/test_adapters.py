"""Data of other libraries: read sample by sample, never whole; what recordings know comes along."""

import io
from pathlib import Path

import numpy as np
import pytest
from conftest import require, run_python, smooth

import ocsc
from ocsc import OnlineCSC

SMALL = dict(n_filters=5, filter_shape=(5, 5), beta=0.3)
SIGNALS = dict(n_filters=3, filter_shape=15, beta_ratio=0.2, boundary="free")


def filters(X, **params):
    return OnlineCSC(**{**SMALL, **params}).fit(X).filters_


@pytest.fixture(scope="module")
def images():
    return smooth(40)


@pytest.fixture(scope="module")
def recording():
    """Two channels of 12,000 values with something in them that recurs."""
    rng = np.random.default_rng(0)
    x = 0.05 * rng.standard_normal((2, 12_000))
    for start in range(40, 11_900, 130):
        x[:, start : start + 15] += np.outer([1, -0.5], np.hanning(15))
    return x.astype(np.float32)


class Counting(io.BytesIO):
    """A file in memory that counts the largest number of bytes that were read at once, and all of them."""

    most = total = 0

    def count(self, n):
        self.most, self.total = max(self.most, n), self.total + n

    def read(self, *args):
        data = super().read(*args)
        self.count(len(data))
        return data

    def readinto(self, buffer):
        n = super().readinto(buffer)
        self.count(n)
        return n


class Spy:
    """An array that counts the largest number of bytes that one index took out of it."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, values.ndim
        self.most = 0

    def __getitem__(self, index):
        part = np.asarray(self.values[index])
        self.most = max(self.most, part.nbytes)
        return part


# Arrays on disk


def test_h5py_reads_samples(images):
    h5py = require("h5py")
    file = Counting()
    with h5py.File(file, "w") as made:
        made["x"] = images
        made["last"] = np.moveaxis(images, 0, -1)
    with h5py.File(file, "r") as opened:
        # The file's own blocks are read ahead; the samples are larger than those.
        file.most = 0
        assert np.array_equal(filters(opened["x"]), filters(images))
        assert file.most <= 2 * images[0].nbytes
        assert np.array_equal(filters(opened["last"], axes="HWN"), filters(images))


def test_h5py_reads_windows(recording):
    h5py = require("h5py")
    file = Counting()
    with h5py.File(file, "w") as made:
        made["x"] = recording
    expected = OnlineCSC(axes="CT", window=600, **SIGNALS).fit(recording)
    with h5py.File(file, "r") as opened:
        file.most = 0
        model = OnlineCSC(axes="CT", window=600, **SIGNALS).fit(opened["x"])
        assert np.array_equal(model.filters_, expected.filters_)
        codes = model.transform(opened["x"])
        assert file.most <= 2 * recording.nbytes / 20
    assert np.array_equal(codes.value, expected.transform(recording).value)


def test_zarr_reads_samples(images, tmp_path):
    zarr = require("zarr")
    if not hasattr(zarr, "create_array"):
        pytest.skip("zarr is older than 3")
    path = tmp_path / "x.zarr"
    made = zarr.create_array(path, shape=images.shape, dtype="f4", chunks=(1, 24, 24))
    made[...] = images
    read = zarr.open_array(path, mode="r")
    spy = Spy(read)
    assert np.array_equal(filters(read), filters(images)) and np.array_equal(filters(spy), filters(images))
    assert spy.most == images[0].nbytes
    # Whole arrays are what numpy would ask for.
    read_whole = []
    type_of = type(read)
    original = type_of.__array__
    try:
        type_of.__array__ = lambda self, *args, **kwargs: read_whole.append(1) or original(self, *args, **kwargs)
        filters(read)
    finally:
        type_of.__array__ = original
    assert not read_whole


def test_dask_computes_samples(images):
    dask = require("dask")
    array = require("dask.array")
    spy = Spy(images)
    lazy = array.from_array(spy, chunks=(1, 24, 24), asarray=False, name=False)
    with dask.config.set(scheduler="synchronous"):
        assert np.array_equal(filters(lazy), filters(images))
    assert spy.most == images[0].nbytes


def test_xarray_reads_samples(images, tmp_path):
    xarray = require("xarray")
    array = require("dask.array")
    spy = Spy(images)
    lazy = xarray.DataArray(array.from_array(spy, chunks=(1, 24, 24), asarray=False, name=False), dims=("n", "y", "x"))
    assert np.array_equal(filters(lazy), filters(images))
    assert spy.most == images[0].nbytes


def test_tifffile_reads_pages(images, tmp_path):
    tifffile = require("tifffile")
    file = Counting()
    tifffile.imwrite(file, images, photometric="minisblack")
    file.seek(0)
    with tifffile.TiffFile(file) as opened:
        file.most = 0
        assert np.array_equal(filters(opened), filters(images))
        assert file.most <= 2 * images[0].nbytes
        codes = ocsc.code(opened, filters(images), 0.3)
    assert len(codes) == len(images)


def test_memory_maps_are_not_copied(tmp_path):
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not tell what memory is in use")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((400, 256, 256)).astype(np.float32))
    code = """
import sys, numpy as np, ocsc
def held():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1]) * 1024
x = np.load(sys.argv[1], mmap_mode="r")
before = held()
most = []
ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=3.0, threads=1, callback=lambda step: most.append(held()) or step["step"] > 60).fit(x)
print(max(most) - before)
"""
    assert int(run_python(code, tmp_path / "x.npy")) < 400 * 256 * 256 * 4 / 4


# torch


@pytest.fixture(scope="module")
def torch():
    return require("torch")


def test_tensors_are_not_copied(torch, images):
    from ocsc._inputs import source_of

    tensor = torch.from_numpy(images)
    for given in (tensor, tensor.clone().requires_grad_()):
        values, _, _ = source_of(given, None, 2, None)(3)
        given.data[3, 0, 0] = 7
        assert values[0, 0, 0, 0] == 7
    images[3] = smooth(40)[3]
    assert np.array_equal(filters(tensor), filters(images))
    assert np.array_equal(filters(list(tensor)), filters(images))


def test_types_that_numpy_lacks(torch, images):
    tensor = torch.from_numpy(images).bfloat16()
    assert np.array_equal(filters(tensor), filters(tensor.float().numpy()))
    assert np.array_equal(filters(list(tensor)), filters(tensor.float().numpy()))
    assert np.array_equal(filters(torch.from_numpy(images).half()), filters(images.astype(np.float16)))


def test_datasets_and_loaders(torch, images):
    data = torch.utils.data
    labelled = data.TensorDataset(torch.from_numpy(images), torch.arange(len(images)))
    assert np.array_equal(filters(labelled), filters(images))
    in_order = filters(iter(images))
    for loader in (data.DataLoader(labelled, batch_size=7), data.DataLoader(labelled, batch_size=None), data.DataLoader(images)):
        assert np.array_equal(filters(loader), in_order)
    twice = filters(data.DataLoader(labelled, batch_size=7), passes=2)
    assert not np.array_equal(twice, in_order)

    class Endless(data.IterableDataset):
        def __iter__(self):
            while True:
                yield from zip(images, range(len(images)))

    model = OnlineCSC(**SMALL, callback=lambda step: step["step"] == 45).fit(Endless())
    assert model.n_steps_ == 45
    assert len(model.transform(data.DataLoader(labelled, batch_size=7))) == len(images)


def test_codes_to_torch(torch, images):
    codes = OnlineCSC(**SMALL).fit(images).transform(images)
    tensor = codes.to_torch()
    assert tensor.is_sparse and tuple(tensor.shape) == codes.shape
    assert np.array_equal(tensor.to_dense().numpy(), codes.to_dense())


# MNE-Python


@pytest.fixture(scope="module")
def mne():
    return require("mne")


@pytest.fixture
def raw(mne, recording):
    """A recording in volts with a trigger channel and a bad one beside the two."""
    rows = np.stack([recording[0], np.zeros(12_000), recording[1], 9 * recording[0]]) * 1e-6
    info = mne.create_info(["C3", "STI", "C4", "Fz"], 200.0, ["eeg", "stim", "eeg", "eeg"])
    places = {"C3": (-0.06, 0, 0.06), "C4": (0.06, 0, 0.06), "Fz": (0, 0.06, 0.08)}
    info.set_montage(mne.channels.make_dig_montage(places, coord_frame="head"))
    raw = mne.io.RawArray(rows, info, first_samp=500, verbose="error")
    raw.info["bads"] = ["Fz"]
    return raw


def test_raw(raw, recording, mne):
    values = recording.astype(np.float64) * 1e-6
    expected = OnlineCSC(axes="CT", window="3s", sfreq=200, **SIGNALS).fit(values)
    model = OnlineCSC(window="3s", **SIGNALS).fit(raw)
    assert np.array_equal(model.filters_, expected.filters_)
    assert model.sfreq_ == 200 and model.sfreq is None and model.info_["ch_names"] == ["C3", "C4"]
    codes = model.transform(raw)
    assert codes.sfreq == 200 and codes.first_samp == 500
    events = codes.events(threshold=0.3 * np.abs(codes.value).max())
    assert np.allclose(events["time"], events["position"] / 200)
    found = codes.to_mne_events(threshold=0.3 * np.abs(codes.value).max())
    assert found[0, 0] == 500 + events["position"][0] and len(mne.Annotations(events["time"], 0.1, "atom")) == len(events)
    back = model.inverse_transform(codes, original=raw)
    assert back.shape == values.shape and np.linalg.norm(back - values) < 0.5 * np.linalg.norm(values)
    with pytest.raises(ValueError, match="sfreq: expected 200"):
        OnlineCSC(window="3s", sfreq=100, **SIGNALS).fit(raw)


def test_raw_is_read_by_window(raw, tmp_path, mne):
    path = tmp_path / "x_raw.fif"
    raw.save(path, verbose="error")
    opened = mne.io.read_raw_fif(path, preload=False, verbose="error")
    lengths = []
    get = opened.get_data
    opened.get_data = lambda **options: lengths.append(options["stop"] - options["start"]) or get(**options)
    model = OnlineCSC(window="3s", **SIGNALS).fit(opened)
    assert set(lengths) == {600} and not opened.preload
    # Files keep single precision.
    assert np.allclose(model.filters_, OnlineCSC(window="3s", **SIGNALS).fit(raw).filters_, atol=0.05)


def test_epochs(raw, mne):
    epochs = mne.make_fixed_length_epochs(raw, 3.0, preload=True, verbose="error")
    values = epochs.get_data(picks=["C3", "C4"], verbose="error")
    expected = OnlineCSC(axes="NCT", **SIGNALS).fit(values).filters_
    model = OnlineCSC(**SIGNALS).fit(epochs)
    assert np.array_equal(model.filters_, expected) and model.info_["ch_names"] == ["C3", "C4"]
    assert len(model.transform(epochs)) == len(epochs) and model.transform(epochs).sfreq == 200
    lazy = mne.make_fixed_length_epochs(raw, 3.0, preload=False, verbose="error")
    assert np.array_equal(OnlineCSC(**SIGNALS).fit(lazy).filters_, expected) and not lazy.preload
    evoked = epochs.average()
    assert len(ocsc.code(evoked, model.filters_, 1e-7, boundary="free")) == 1
    assert ocsc.beta_max(epochs, model.filters_).shape == (len(epochs),)
    assert ocsc.tune(epochs, ratios=[0.5, 0.2], n_filters=2, filter_shape=15, boundary="free").beta > 0


def test_channels_of_other_types(raw):
    other = raw.copy().set_channel_types({"C3": "ecg", "C4": "ecg", "Fz": "ecg"}, verbose="error")
    assert OnlineCSC(window="3s", **SIGNALS).fit(other).info_["ch_names"] == ["C3", "C4"]
    other.info["bads"] = ["C3", "C4", "Fz"]
    with pytest.raises(ValueError, match="bad"):
        OnlineCSC(window="3s", **SIGNALS).fit(other)


def test_topomaps_know_their_channels(raw):
    require("matplotlib").use("Agg")
    with_more = raw.copy()
    with_more.info["bads"] = []
    model = OnlineCSC(window="3s", rank1=True, init="patches", **SIGNALS).fit(with_more)
    assert ocsc.plot.topomap(model).shape == (2, 3)
    with pytest.raises(ValueError, match="info: expected an mne.Info"):
        ocsc.plot.topomap(model.filters_)


# pandas


def test_frames(images):
    pandas = require("pandas")
    model = OnlineCSC(**SMALL).fit(images)
    history = model.history_frame()
    assert isinstance(history, pandas.DataFrame) and list(history) == list(model.history_.dtype.names)
    assert np.array_equal(history["objective"], model.history_["objective"])
    codes = model.transform(images)
    events = codes.events(as_frame=True)
    assert isinstance(events, pandas.DataFrame) and np.array_equal(events["x"], codes.events()["x"])
    require("matplotlib")
    drawn = [ocsc.plot.events(found, images[0]) for found in (events, codes.events())]
    assert [len(ax.collections) for ax in drawn] == [len(drawn[1].collections)] * 2 and drawn[1].collections
