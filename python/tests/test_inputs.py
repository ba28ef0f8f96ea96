"""Whatever users call data."""

import numpy as np
import pytest
from conftest import require, run_python, smooth

import ocsc
from ocsc import OnlineCSC

SMALL = dict(n_filters=5, filter_shape=(5, 5), beta=0.3)


def filters(X, **params):
    return OnlineCSC(**{**SMALL, **params}).fit(X).filters_


class NotAnArray:
    """As a tensor of another library: understood through `__array__` alone."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


class OnDisk:
    """As a dataset of h5py: a shape, and samples on request; never an array as a whole."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.read = values, values.shape, values.dtype, []

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        self.read.append(index)
        return self.values[index]

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("read as a whole")


def test_every_layout_in_memory_gives_the_same(images):
    expected = filters(images)
    frozen = images.copy()
    frozen.flags.writeable = False
    padded = np.zeros((6, 30, 50), np.float32)
    padded[:, 3:27, 1:49:2] = images
    unaligned = np.frombuffer(b"x" + images.tobytes(), np.uint8)[1:].view(np.float32).reshape(images.shape)
    for X in (
        np.asfortranarray(images),
        frozen,
        padded[:, 3:27, 1:49:2],
        images[::-1][::-1],
        images.astype(">f4"),
        images.astype(np.float64),
        list(images),
        tuple(images),
        [image.tolist() for image in images],
        NotAnArray(images),
        images.astype(object),
        unaligned,
    ):
        assert np.array_equal(filters(X), expected), type(X)
    assert np.array_equal(filters(images.transpose(1, 2, 0), axes="HWN"), expected)
    disk = OnDisk(images)
    assert np.array_equal(filters(disk), expected) and sorted(set(disk.read)) == [0, 1, 2, 3, 4, 5]


def test_torch_tensors(images):
    torch = require("torch")
    assert np.array_equal(filters(torch.from_numpy(images)), filters(images))
    assert np.array_equal(filters([torch.from_numpy(image) for image in images]), filters(images))


def test_integers(images):
    small = (images * 20).astype(np.int16)
    assert np.array_equal(filters(small), filters(small.astype(np.float64)))


def test_samples_of_different_sizes():
    X = [smooth(1, 20 + i, 30 - i, seed=i)[0] for i in range(5)]
    model = OnlineCSC(**SMALL).fit(X)
    codes = model.transform(X)
    assert [code.shape for code in codes] == [(5, 20 + i, 30 - i) for i in range(5)]
    dense, back = codes.to_dense(), model.inverse_transform(codes)
    assert [d.shape for d in dense] == [(5, *x.shape) for x in X] and [b.shape for b in back] == [x.shape for x in X]
    with pytest.raises(ValueError, match="one size"):
        np.asarray(codes)


def test_channels(images):
    X = np.stack([images, images[::-1], 2 * images], axis=1)
    model = OnlineCSC(**SMALL, axes="NCHW").fit(X)
    last = OnlineCSC(**SMALL, axes="NHWC").fit(X.transpose(0, 2, 3, 1))
    assert model.filters_.shape == (5, 3, 5, 5) and np.array_equal(model.filters_, last.filters_)
    assert np.array_equal(filters(list(X), axes="CHW"), model.filters_)
    assert np.array_equal(filters(X, axes="CHW"), model.filters_)
    codes = model.transform(X)
    assert codes.shape == (6, 5, 24, 24) and model.inverse_transform(codes).shape == X.shape
    back = last.inverse_transform(last.transform(X.transpose(0, 2, 3, 1)))
    assert np.allclose(back, model.inverse_transform(codes).transpose(0, 2, 3, 1))
    with pytest.raises(ValueError, match="say where they are: axes='NCHW' or 'NHWC'"):
        filters(X)


def test_signals_and_volumes(images):
    rng = np.random.default_rng(0)
    volumes = rng.standard_normal((2, 6, 8, 10))
    model = OnlineCSC(n_filters=3, filter_shape=(3, 4, 5), beta=1.0).fit(volumes)
    assert model.filters_.shape == (3, 3, 4, 5) and model.transform(volumes).shape == (2, 3, 6, 8, 10)
    assert OnlineCSC(n_filters=3, filter_shape=3, axes="NDHW", beta=1.0).fit(volumes).filters_.shape == (3, 3, 3, 3)
    signals = rng.standard_normal((4, 2, 50))
    model = OnlineCSC(n_filters=3, filter_shape=(7,), axes="NCW", beta=1.0).fit(signals)
    assert model.filters_.shape == (3, 2, 7) and model.inverse_transform(model.transform(signals)).shape == (4, 2, 50)
    one = OnlineCSC(n_filters=3, filter_shape=(7,), axes="CW", beta=1.0).fit(signals[0])
    assert one.n_steps_ == 1


@pytest.mark.parametrize("axes", ["W", "NW", "WN", "CW", "WC", "NCW", "NWC", "CNW", "CWN", "WNC", "HW", "NHW", "WH", "HWN", "HNW",
                                  "CHW", "HWC", "NCHW", "NHWC", "CNHW", "HWCN", "NWHC", "DHW", "NDHW", "DHWN", "CDHW", "DHWC",
                                  "NCDHW", "NDHWC", "WHDCN", "DW", "NDW", "nhw", None])
def test_the_shape_that_went_in_comes_out(axes):
    letters = (axes or "NHW").upper()
    lengths = dict(N=3, C=2, D=5, H=6, W=7)
    filter_shape = (2, 2, 3) if "D" in letters else (2, 3) if "H" in letters else (3,)
    filter_shape = (2, 1, 3) if "D" in letters and "H" not in letters else filter_shape
    X = np.random.default_rng(0).standard_normal([lengths[letter] for letter in letters])
    model = OnlineCSC(n_filters=3, filter_shape=filter_shape, axes=axes, beta=0.5, dtype="f64", tol=1e-3).fit(X)
    stacks = [X] if "N" in letters else [X, np.stack([X, 2 * X])]
    for given in stacks:
        codes = model.transform(given)
        back = model.inverse_transform(codes)
        assert back.shape == given.shape
        assert np.array_equal(ocsc.reconstruct(codes, full(model), axes=axes), back)
        assert model.inverse_transform(codes, original=given).shape == given.shape
        # The values are where they were: what is left of a sample after coding is little.
        assert ((given - back) ** 2).sum() < 0.8 * (given**2).sum()
        assert len(codes) == (1 if given is X and "N" not in letters else given.shape[letters.index("N") if "N" in letters else 0])


def full(model):
    return model._learner.filters()


def test_codes_of_one_sample_stay_so_in_a_file(tmp_path):
    y = np.random.default_rng(0).standard_normal(40)
    model = OnlineCSC(n_filters=3, filter_shape=5, axes="W", beta=0.5).fit(y)
    codes = model.transform(y)
    codes.save(tmp_path / "codes.npz")
    assert codes.single and model.inverse_transform(ocsc.Codes.load(tmp_path / "codes.npz")).shape == (40,)
    assert model.inverse_transform(codes[:]).shape == (1, 40) and model.inverse_transform(codes[0]).shape == (40,)


def test_one_length_of_filters_does_not_tell_images_from_signals_with_channels():
    trials = np.random.default_rng(0).standard_normal((4, 20, 50))
    model = OnlineCSC(n_filters=3, filter_shape=16, beta=2.0)
    stacked = r"images .* 16x16, or axes='NCW' .*'NWC'.* signals with channels and filters of 16"
    single = stacked.replace("'N", "'")
    for X, readings in [(trials, stacked), (list(trials), single), (iter(trials), single)]:
        for learn in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=rf"filter_shape: one length, 16, does not say .* {readings}"):
                learn(X)
    assert not hasattr(model, "filters_")
    # As the message says.
    assert OnlineCSC(n_filters=3, filter_shape=(16, 16), beta=2.0).fit(trials).filters_.shape == (3, 16, 16)
    for axes, shape in [("NHW", (3, 16, 16)), ("NCW", (3, 20, 16)), ("NWC", (3, 50, 16))]:
        learned = OnlineCSC(n_filters=3, filter_shape=16, beta=2.0, axes=axes).fit(trials)
        assert learned.filters_.shape == shape
    for axes, shape in [("HW", (3, 16, 16)), ("CW", (3, 20, 16)), ("WC", (3, 50, 16))]:
        assert OnlineCSC(n_filters=3, filter_shape=16, beta=2.0, axes=axes).fit(list(trials)).filters_.shape == shape
    # Signals are plain, and so is a model that has filters.
    assert OnlineCSC(n_filters=3, filter_shape=16, beta=2.0).fit(trials[0]).filters_.shape == (3, 16)
    assert learned.set_params(axes="NWC").partial_fit(trials).n_steps_ == 8


def test_masks_leave_out_what_was_not_observed(images):
    rng = np.random.default_rng(0)
    seen = rng.random(images.shape) > 0.2
    damaged = np.where(seen, images, np.nan)
    expected = filters(np.where(seen, images, 0), passes=1)
    model = OnlineCSC(**SMALL).fit(damaged, mask=seen)
    assert not np.array_equal(model.filters_, expected)
    masked = np.ma.masked_array(damaged, ~seen)
    for X, mask in [
        (masked, None),
        (list(damaged), list(seen)),
        (list(damaged), seen),
        ([np.ma.masked_array(x, ~s) for x, s in zip(damaged, seen)], None),
        (damaged, seen.astype(np.uint8)),
    ]:
        assert np.array_equal(OnlineCSC(**SMALL).fit(X, mask=mask).filters_, model.filters_)
    stream = OnlineCSC(**SMALL).fit(np.ma.masked_array(x, ~s) for x, s in zip(damaged, seen))
    assert np.array_equal(stream.filters_, OnlineCSC(**SMALL).partial_fit(damaged, mask=seen).filters_)
    codes = model.transform(damaged, mask=seen)
    whole = model.inverse_transform(codes)
    hidden = np.abs(whole - images)[~seen].mean()
    assert hidden < 0.9 * np.abs(images[~seen]).mean()


def test_one_mask_for_all_samples_and_for_all_channels(images):
    seen = np.ones((24, 24), bool)
    seen[5:9, 5:9] = False
    each = np.broadcast_to(seen, images.shape)
    fit = lambda X, mask, **params: OnlineCSC(**SMALL, **params).fit(X, mask=mask).filters_  # noqa: E731
    assert np.array_equal(fit(images, seen), fit(images, each))
    colour = np.stack([images, -images], axis=1)
    full = np.broadcast_to(seen, colour.shape)
    for mask in (seen, each):
        assert np.array_equal(fit(colour, mask, axes="NCHW"), fit(colour, full, axes="NCHW"))
    with pytest.raises(ValueError, match="mask: expected"):
        fit(images, np.ones((3, 24, 24)))
    with pytest.raises(ValueError, match="mask"):
        fit(images, np.ones((7,)))
    with pytest.raises(ValueError, match="masks: expected the methods `ocsc` or `ffcsc`"):
        fit(images, seen, method="fcsc")


def test_generators_are_drawn_as_needed_and_once(images):
    drawn = []

    def stream():
        for i in range(10**9):
            drawn.append(i)
            yield images[i % 6]

    OnlineCSC(**SMALL, callback=lambda step: step["step"] == 4).fit(stream())
    assert drawn == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="passes: expected 1, as a generator or iterator can be read once, found 2"):
        OnlineCSC(**SMALL, passes=2).fit(iter(images))
    with pytest.raises(ValueError, match="read twice"):
        OnlineCSC(**SMALL).fit_transform(iter(images))
    with pytest.raises(ValueError, match="at least one sample, found none"):
        OnlineCSC(**SMALL).fit(iter([]))


def test_iterables_that_begin_anew_take_several_passes(images):
    class Anew:
        begun = 0

        def __iter__(self):
            Anew.begun += 1
            return iter(images)

    model = OnlineCSC(**SMALL, passes=3).fit(Anew())
    assert model.n_steps_ == 18 and Anew.begun == 3
    codes = model.transform(Anew())
    assert len(codes) == 6 and np.array_equal(codes.to_dense(), model.transform(images).to_dense())


def test_errors_of_the_users_own_code_come_through(images):
    def broken():
        yield images[0]
        raise KeyError("lost")

    model = OnlineCSC(**SMALL)
    with pytest.raises(KeyError, match="lost"):
        model.fit(broken())
    assert model.n_steps_ == 1, "what was learned is kept"

    class Broken(OnDisk):
        def __getitem__(self, index):
            raise OSError("disk is gone")

    with pytest.raises(OSError, match="disk is gone"):
        OnlineCSC(**SMALL).fit(Broken(images))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.full((2, 9, 9), np.nan), ValueError, r"X\[.\]: .*finite values, found NaN at row 0, column 0"),
        (np.full((2, 9, 9), 1j), ValueError, "Complex data not supported"),
        (np.zeros((0, 9, 9)), ValueError, "0 sample"),
        (np.zeros((2, 0, 9)), ValueError, "0 feature"),
        (np.zeros((9, 9)), ValueError, r"X: expected 3 axes \(N, H, W\), found 2.*one sample is X\[None\]"),
        (np.zeros((2, 3, 9, 9)), ValueError, "axes='NCHW' or 'NHWC'"),
        (np.zeros((2, 4, 4)), ValueError, "expected at least the size 5x5 of the filters"),
        (np.full((2, 9, 9), 1e30), ValueError, r"values up to 1e12 in f32 \(scale the samples, or use f64\)"),
        (np.full((2, 9, 9), 1e39), ValueError, "up to 1e12 in f32, which overflows .*dtype='f64'.*found 1e39"),
        (np.zeros((2, 9, 9), "M8[s]"), TypeError, "X: expected real numbers, found an array of datetime64"),
        (list(np.zeros((2, 9, 9), "m8[s]")), TypeError, r"X\[0\]: expected real numbers, found an array of timedelta64"),
        (np.zeros((2, 9, 9), [("a", float)]), TypeError, "X: expected real numbers, found an array of"),
        ([np.ones((9, 9)), np.ones((9, 9)), np.ones((3, 9))], ValueError, r"X\[2\]: expected at least the size 5x5"),
        ([np.ones((9, 9)).tolist(), np.ones((3, 9)).tolist()], ValueError, r"X\[1\]: .*at least the .*size 5x5"),
        (ocsc.Code([0], [[0, 0]], [1.0], (5, 9, 9)), TypeError, "X: expected samples, found Code; inverse_transform"),
        ("photos/", TypeError, "X: expected an array .* found str"),
        (7, TypeError, "X: expected an array .* found int"),
        ({"a": 1}, TypeError, "X: expected"),
        ([], ValueError, "0 samples"),
        ([np.zeros((9, 9)), np.zeros((9, 9, 9))], ValueError, r"X\[1\]: expected 2 axes"),
        ([["a", "b"]], ValueError, "could not convert string"),
    ],
)
def test_bad_data_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        OnlineCSC(**SMALL).fit(X)


def test_more_data_are_refused_by_their_names(images):
    colours = [np.ones((9, 9, 3)), np.ones((9, 9, 3)), np.ones((9, 9, 1))]
    for order in ([0, 1, 2], [0, 2, 1]):
        odd = order.index(2)
        with pytest.raises(ValueError, match=rf"X\[{odd}\]: expected 3 channels, as X\[0\] has, found 1"):
            filters([colours[i] for i in order], axes="HWC")
    with pytest.raises(ValueError, match=r"expected 2 or 3 axes \(N, W\) or \(N, H, W\), found 4.*volumes say axes='NDHW'"):
        filters(np.ones((2, 9, 9, 9)), filter_shape=5)
    with pytest.raises(ValueError, match=r"values up to 1e140 in f64 \(scale the samples\), found 1e145"):
        filters(np.full((2, 9, 9), 1e145), dtype="f64")
    with pytest.raises(ValueError, match="which overflows"):
        filters(np.full((2, 9, 9), 1e39), preprocess="scale=0.5")
    small = [images[0], images[1][:3]]
    model = OnlineCSC(**SMALL).fit(images)
    for ask in (model.transform, model.evaluate, lambda X: ocsc.beta_max(X, model.filters_)):
        with pytest.raises(ValueError, match=r"X\[1\]: .*at least the filter's size 5x5"):
            ask(small)


def test_arrays_of_arrays_are_lists(images):
    ragged = np.empty(6, object)
    ragged[:] = [image[: 20 + i % 3] for i, image in enumerate(images)]
    assert np.array_equal(filters(ragged), filters(list(ragged)))


PEAK = """
import sys, numpy as np, ocsc
def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
kind = sys.argv[1]
n = 60
X = np.resize(np.random.default_rng(0).standard_normal((512, 521)), (n, 512, 512)).astype(np.float64 if "64" in kind else np.float32)
if kind == "fortran": X = np.asfortranarray(X)
if kind == "strided": X = X[:, :, ::2]
if kind == "list": X = list(X)
model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=3.0, threads=1, callback=lambda step: step["step"] == 3)
model.fit(X[:2]).transform(X[:1])
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
model.fit(X)
model.set_params(callback=None).transform(X[:3])
print((status("VmHWM") - before) / (n * 512 * 512 * (8 if "64" in kind else 4)))
"""


@pytest.mark.parametrize("kind", ["f32", "f64-64", "fortran", "strided", "list"])
def test_no_copy_of_the_input_is_made(kind):
    try:
        grown = float(run_python(PEAK, kind))
    except (FileNotFoundError, PermissionError):
        pytest.skip("the system does not say how much memory is used")
    # A part of it are the samples that are read ahead, at most a million numbers, and the coder's.
    assert grown < 0.6, f"{grown:.2f} copies"


STREAM = """
import resource, sys, numpy as np, ocsc
n = int(sys.argv[1])
rng = np.random.default_rng(0)
model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=4.0, threads=1).fit(rng.standard_normal((256, 256)) for _ in range(n))
assert model.n_steps_ == n
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def test_memory_of_a_stream_is_flat():
    few, many = (float(run_python(STREAM, n)) for n in (20, 200))
    # 180 more samples of half a megabyte each.
    assert many - few < 20, f"{few:.0f} and {many:.0f} MB"


def test_functions_take_the_same_data(images):
    model = OnlineCSC(**SMALL).fit(images)
    expected = ocsc.code(images, model.filters_, 0.3).to_dense()
    for X in (list(images), iter(images), np.asfortranarray(images), images.astype(float)):
        assert np.array_equal(ocsc.code(X, model.filters_, 0.3).to_dense(), expected)
    assert np.array_equal(ocsc.beta_max(iter(images), model.filters_), ocsc.beta_max(images, model.filters_))
    assert np.array_equal(ocsc.preprocess(iter(images), "mean"), ocsc.preprocess(images, "mean"))
