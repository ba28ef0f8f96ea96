"""Sparse codes: looking into them, other libraries' arrays, files."""

import numpy as np
import pytest
from conftest import require, smooth

import ocsc
from ocsc import Code, Codes, OnlineCSC


@pytest.fixture(scope="module")
def codes():
    X = smooth(5)
    return OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3).fit(X).transform(X)


def equal(a, b):
    fields = ("filter", "position", "value", "offset", "shapes", "objective", "gap", "beta", "margin")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in fields)


def test_samples_slices_and_lists(codes):
    assert len(codes) == 5 and len(list(codes)) == 5
    dense = codes.to_dense()
    assert dense.shape == codes.shape == (5, 4, 24, 24) and dense.dtype == np.float32
    assert np.array_equal(np.asarray(codes), dense) and np.asarray(codes, float).dtype == float
    for i, code in enumerate(codes):
        assert np.array_equal(code.to_dense(), dense[i]) and np.count_nonzero(dense[i]) == codes.nonzeros[i] == len(code)
        assert (code.objective, code.gap, code.beta) == (codes.objective[i], codes.gap[i], 0.3)
    assert np.array_equal(codes[-1].to_dense(), dense[-1])
    for index in (slice(1, 3), slice(None, None, -2), [4, 0, 0], np.array([True, False, True, False, True]), slice(0, 0)):
        part = codes[index]
        assert isinstance(part, Codes) and len(part) == len(dense[index])
        if len(part):
            assert np.array_equal(part.to_dense(), dense[index])
    with pytest.raises(IndexError):
        codes[5]
    assert "5 samples" in repr(codes) and "non-zeros" in repr(codes[0])
    assert "(1 sample, " in repr(codes[:1]) and repr(Code([0], [[0]], [1.0], (1, 1))).startswith("Code(1 non-zero of")


def test_scipy(codes):
    sparse = require("scipy.sparse")
    matrix = codes.to_scipy()
    assert sparse.issparse(matrix) and matrix.shape == (5, 4 * 24 * 24) and matrix.has_canonical_format
    assert np.array_equal(matrix.toarray(), codes.to_dense().reshape(5, -1))


def test_coo(codes):
    sparse = require("sparse")
    coo = codes.to_coo()
    assert isinstance(coo, sparse.COO) and np.array_equal(coo.todense(), codes.to_dense())


def test_absent_libraries_are_named(codes, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    monkeypatch.setitem(sys.modules, "sparse", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        codes.to_scipy()
    with pytest.raises(ImportError, match="pip install sparse"):
        codes.to_coo()


def test_one_code_is_an_array_too(codes):
    assert np.array_equal(np.asarray(codes[1]), codes[1].to_dense()) and np.asarray(codes[1], float).dtype == float


def test_no_codes(codes):
    filters = np.ones((4, 5, 5)) / 5
    assert ocsc.reconstruct(codes[:0], filters).shape == (0, 0, 0)
    model = OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3).fit(smooth(1))
    assert model.inverse_transform(codes[:0]).shape == (0, 0, 0)


def test_dense_arrays_are_no_codes(codes):
    model = OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3).fit(smooth(1))
    for ask in (model.inverse_transform, lambda z: ocsc.reconstruct(z, model.filters_)):
        with pytest.raises(TypeError, match="expected Codes or a Code, found ndarray; .*ocsc.Code"):
            ask(codes.to_dense())
    # As the message says.
    z = codes[1].to_dense()
    again = ocsc.Code(z.nonzero()[0], np.argwhere(z)[:, 1:], z[z != 0], z.shape)
    assert np.array_equal(again.to_dense(), z)


def test_codes_of_other_axes_are_refused(codes):
    signals = OnlineCSC(n_filters=4, filter_shape=(5,), beta=0.3).fit(smooth(1)[0])
    for ask in (signals.inverse_transform, lambda codes: ocsc.reconstruct(codes, signals.filters_, axes="NW")):
        for given in (codes, codes[0]):
            with pytest.raises(ValueError, match="code: expected 1 spatial axes, as the filters have, found 2"):
                ask(given)


def test_a_folder_holds_the_codes_of_the_last_save(codes, tmp_path):
    folder = tmp_path / "folder"
    codes.save(folder)
    (folder / "notes.txt").write_text("mine")
    codes[:2].save(folder)
    assert equal(Codes.load(folder), codes[:2]) and (folder / "notes.txt").exists()
    np.savez(folder / "mine.npz", a=1)
    with pytest.raises(ValueError, match="expected a folder without other .npz files, .* found mine.npz"):
        codes.save(folder)
    assert (folder / "mine.npz").exists() and (folder / "sample-000001.npz").exists()


def test_files(codes, tmp_path):
    codes.save(tmp_path / "all.npz")
    assert equal(Codes.load(tmp_path / "all.npz"), codes)
    codes.save(tmp_path / "folder")
    assert equal(Codes.load(tmp_path / "folder"), codes)
    codes[2].save(tmp_path / "one.npz")
    assert equal(Codes.load(tmp_path / "one.npz"), codes[2:3])
    assert np.array_equal(Code.load(tmp_path / "one.npz").to_dense(), codes[2].to_dense())
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ValueError, match="other.npz: expected the arrays of sparse codes, found none called filter"):
        Codes.load(tmp_path / "other.npz")
    codes[2].save(tmp_path / "one")
    assert np.array_equal(Code.load(tmp_path / "one").to_dense(), codes[2].to_dense())
    with pytest.raises(ValueError, match="all.npz: expected the code of one sample, found those of 5; .* Codes.load"):
        Code.load(tmp_path / "all.npz")
    np.save(tmp_path / "dense.npy", codes.to_dense())
    (tmp_path / "text.npz").write_text("text")
    for load in (Code.load, Codes.load):
        with pytest.raises(ValueError, match="dense.npy: expected a .npz file of sparse codes, found a single array"):
            load(tmp_path / "dense.npy")
        with pytest.raises(ValueError, match="text.npz: expected a .npz file of sparse codes, found something else"):
            load(tmp_path / "text.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="expected codes ending in .npz"):
        Codes.load(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        Codes.load(tmp_path / "absent.npz")


@pytest.mark.parametrize("boundary", ["circular", "zero", "free"])
@pytest.mark.parametrize("shape", [(30,), (12, 14), (6, 7, 8)])
def test_corners_are_where_filters_lie(boundary, shape):
    """A sum that adds each filter at its corner, written down plainly, gives the reconstruction."""
    rng = np.random.default_rng(0)
    lengths = (4, 3, 2)[: len(shape)]
    filters = rng.standard_normal((3, *lengths))
    filters /= np.sqrt((filters**2).sum(tuple(range(1, filters.ndim)), keepdims=True))
    X = rng.standard_normal((2, *shape))
    codes = ocsc.code(X, filters, beta=0.5, boundary=boundary, axes="N" + "DHW"[3 - len(shape) :], dtype="f64")
    back = ocsc.reconstruct(codes, filters, boundary=boundary)
    for code, expected in zip(codes, back):
        total = np.zeros(shape)
        for k, corner, value in zip(code.filter, code.corner, code.value):
            for tap in np.ndindex(*lengths):
                place = corner + tap
                if boundary == "circular":
                    place = place % shape
                if np.all((place >= 0) & (place < shape)):
                    total[tuple(place)] += value * filters[k][tap]
        assert np.allclose(total, expected)
        assert boundary == "circular" or code.corner.min() < 0
    assert np.array_equal(codes.corner, np.concatenate([code.corner for code in codes]))


def test_corners_need_a_margin(codes, tmp_path):
    codes.save(tmp_path / "all.npz")
    codes.save(tmp_path / "folder")
    for path in ("all.npz", "folder"):
        assert np.array_equal(Codes.load(tmp_path / path).corner, codes.corner)
    free = ocsc.code(smooth(1), np.ones((2, 3, 3)) / 3, beta=0.3, boundary="free")
    assert free[0].margin == (2, 2) and codes[0].margin == (0, 0)
    unknown = Code(free.filter, free.position, free.value, free[0].shape)
    with pytest.raises(ValueError, match="corner: expected codes that know their margin"):
        unknown.corner
    with pytest.raises(ValueError, match="corner: .* found none for sample 1"):
        ocsc._codes.stack([free[0], unknown]).corner
    unknown.margin = (2, 2)
    assert np.array_equal(unknown.corner, free.corner)


def test_codes_of_another_boundary_are_refused():
    X, filters = smooth(1), np.ones((2, 3, 3)) / 3
    for made, given in [("circular", "free"), ("zero", "circular")]:
        codes = ocsc.code(X, filters, beta=0.3, boundary=made)
        with pytest.raises(ValueError, match=f"code: expected the margin .* boundary '{given}', found .* made with"):
            ocsc.reconstruct(codes, filters, boundary=given)


def test_codes_of_nothing():
    X = smooth(2)
    filters = OnlineCSC(n_filters=4, filter_shape=(5, 5)).fit(X).filters_
    codes = ocsc.code(X, filters, beta=1e6)
    assert list(codes.nonzeros) == [0, 0] and not codes.to_dense().any() and codes.gap.max() < 1e-6
    assert not ocsc.reconstruct(codes, filters).any()


def test_damaged_codes_are_refused():
    filters = np.ones((2, 3, 3)) / 3
    with pytest.raises(ValueError, match="code: expected filter"):
        Code([0, 1], [[0, 0]], [1.0], (2, 9, 9))
    for code in (Code([5], [[0, 0]], [1.0], (2, 9, 9)), Code([0], [[9, 0]], [1.0], (2, 9, 9)), Code([0], [[0, 0]], [1.0], (3, 9, 9))):
        with pytest.raises(ValueError, match="code"):
            ocsc.reconstruct(code, filters)


@pytest.mark.parametrize("entry", [([-1], [[0, 0]]), ([0], [[-1, 0]]), ([0], [[0, -9]]), ([2], [[0, 0]]), ([0], [[9, 0]])])
def test_dense_codes_refuse_what_lies_outside(entry):
    code = Code(*entry, [1.0], (2, 9, 9))
    codes = ocsc._codes.stack([Code([0], [[1, 1]], [1.0], (2, 9, 9)), code])
    mixed = ocsc._codes.stack([Code([0], [[1, 1]], [1.0], (2, 9, 8)), code])
    asked = [code.to_dense, codes.to_dense, mixed.to_dense, lambda: np.asarray(code)]
    for ask in (*asked, codes.to_scipy, codes.to_coo):
        with pytest.raises(ValueError, match=r"codes: expected filters and positions from 0 up to, .*\(2, 9, 9\), found filter"):
            ask()
    with pytest.raises(ValueError, match="codes: expected whole numbers in position, found float64"):
        Code([0], [[0.5, 0.0]], [1.0], (2, 9, 9)).to_dense()
    assert not Code([], np.zeros((0, 2)), [], (2, 9, 9)).to_dense().any()


def test_pickles_of_earlier_versions(codes):
    for now in (codes, codes[0]):
        state = dict(vars(now))
        for name in ("margin", "single"):
            state.pop(name, None)
        old = type(now).__new__(type(now))
        old.__setstate__(state)
        assert np.array_equal(old.to_dense(), now.to_dense())
        with pytest.raises(ValueError, match="margin"):
            old.corner
