"""Files of codes: replaced as a whole, and read with suspicion."""

import io
import os
import resource
import struct
import zipfile

import numpy as np
import pytest
from conftest import run_python, smooth

import ocsc
from ocsc import Code, Codes, OnlineCSC


@pytest.fixture(scope="module")
def codes():
    X = smooth(3)
    return OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3).fit(X).transform(X)


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if "ocsc-" in path.name)


# A limit on the size of files stands for a full disk.
FULL_DISK = """
import resource, signal, sys
import numpy as np, ocsc
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
codes = ocsc.Codes.load(sys.argv[1])
what = codes[0] if sys.argv[3] == "one" else codes
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
try:
    what.save(sys.argv[2])
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize(("what", "target"), [("one", "one.npz"), ("all", "all.npz"), ("all", "folder")])
def test_a_failed_save_leaves_what_was_there(what, target, codes, tmp_path):
    other = ocsc.code(smooth(3, seed=5), np.ones((4, 5, 5)) / 5, beta=0.3)
    new, target = tmp_path / "new.npz", tmp_path / "out" / target
    target.parent.mkdir()
    codes.save(new)
    (other[0] if what == "one" else other).save(target)
    files = sorted(target.iterdir()) if target.is_dir() else [target]
    before = [file.read_bytes() for file in files]
    for limit in (0, 200, 1000):
        told = run_python(FULL_DISK, new, target, what, limit)
        assert "File too large" in told and "ocsc-" not in told
        assert [file.read_bytes() for file in files] == before
        assert leftovers(tmp_path) == [] and leftovers(tmp_path / "out") == []


def test_a_save_replaces_what_was_there_or_says_why_not(codes, tmp_path):
    path = tmp_path / "c.npz"
    path.write_bytes(b"old")
    codes.save(path)
    assert len(Codes.load(path)) == 3
    codes[0].save(path)
    assert Code.load(path).nonzeros == codes[0].nonzeros and leftovers(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="nowhere"):
        codes.save(tmp_path / "nowhere" / "c.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(FileExistsError, match="plain: expected a folder, or a name that ends in .npz, found a file"):
        (tmp_path / "plain").write_text("mine")
        codes.save(tmp_path / "plain")
    assert (tmp_path / "plain").read_text() == "mine"
    with pytest.raises(OSError, match="expected a file, found a folder"):
        codes.save(tmp_path / "folder.npz")


def test_a_new_folder_has_usual_permissions(codes, tmp_path):
    codes.save(tmp_path / "deep" / "folder")
    (tmp_path / "mine").mkdir()
    assert os.stat(tmp_path / "deep" / "folder").st_mode == os.stat(tmp_path / "mine").st_mode
    assert sorted(path.name for path in (tmp_path / "deep" / "folder").iterdir()) == [f"sample-{i:06}.npz" for i in range(3)]


def archive(path, arrays, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in arrays.items():
            file.writestr(f"{name}.npy", content)


def npy(array, shape=None):
    """The bytes of a .npy file, whose header may lie about the shape."""
    out = io.BytesIO()
    np.save(out, array)
    content = out.getvalue()
    if shape is None:
        return content
    header = repr({"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    return content[:8] + struct.pack("<H", len(header)) + header.encode() + array.tobytes()


WHOLE = dict(
    filter=npy(np.array([0], np.int32)),
    position=npy(np.array([[1, 2]], np.int32)),
    value=npy(np.array([2.0])),
    shape=npy(np.array([2, 9, 9])),
)


def test_archives_of_others(tmp_path):
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive(tmp_path / "c.npz", {**WHOLE, "note": b"anything"}, compression)
        code = Code.load(tmp_path / "c.npz")
        assert code.to_dense()[0, 1, 2] == 2.0 and np.isnan(code.gap) and code.value.flags.writeable


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (dict(value=npy(np.array([2.0]), (10**11,))), r"value.npy: expected 800000000000 bytes, .* found 8$"),
        (dict(value=npy(np.array([2.0]), (2**62, 2**62))), r"value.npy: expected \d+ bytes, .* found 8$"),
        (dict(value=npy(np.zeros(5), (1,))), "value.npy: expected 8 bytes, .* found 40"),
        (dict(value=npy(np.array([None]))), "value.npy: expected numbers, found Python objects"),
        (dict(value=npy(np.array(["a"]))), "do not fit: .*value .* of <U1"),
        (dict(value=npy(np.array([1j]))), "do not fit"),
        (dict(value=b"text"), "value.npy|magic"),
        (dict(value=b""), "."),
        (dict(shape=npy(np.array([2, 9]))), "do not fit"),
        (dict(shape=npy(np.array(2))), "do not fit"),
        (dict(shape=npy(np.array([2.0, 9.0, 9.0]))), "do not fit"),
        (dict(gap=npy(np.zeros(2))), "do not fit"),
        (dict(gap=npy(np.array("a"))), "do not fit"),
        (dict(margin=npy(np.zeros(3, int))), "do not fit"),
        (dict(filter=npy(np.array([0.5]))), "do not fit"),
        (dict(offset=npy(np.array([0, 1]))), "do not fit"),
        (dict(offset=npy(np.array([0, 2])), shape=npy(np.array([[2, 9, 9]]))), "offset: expected growing numbers from 0 to 1"),
        (dict(offset=npy(np.array([1, 1])), shape=npy(np.array([[2, 9, 9]]))), "offset: expected growing numbers from 0 to 1"),
        (dict(mixing=npy(np.ones((2, 1)))), r"expected base \('R',\) and mixing \(2, 'R'\), found"),
        (dict(base=npy(np.array([1])), mixing=npy(np.ones((3, 1)))), "expected base"),
        (dict(base=npy(np.array([0.5])), mixing=npy(np.ones((2, 1)))), "expected base"),
        (dict(offset=npy(np.array([], int)), shape=npy(np.array([[2, 9, 9]]))), "do not fit"),
    ],
)
def test_arrays_that_lie_are_refused(arrays, message, tmp_path):
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive(tmp_path / "c.npz", {**WHOLE, **arrays}, compression)
        with pytest.raises(ValueError, match=rf"c.npz: .*{message}"):
            Codes.load(tmp_path / "c.npz")


def test_sizes_beyond_what_an_archive_can_hold(tmp_path, monkeypatch):
    """The directory of an archive may declare anything; no room is made for what its bytes cannot become."""
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive(tmp_path / "c.npz", WHOLE, compression)
        content = bytearray((tmp_path / "c.npz").read_bytes())
        at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"shape.npy"))
        content[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)
        (tmp_path / "c.npz").write_bytes(content)
        monkeypatch.setattr(ocsc._native, "free_memory", lambda: None)
        with pytest.raises(ValueError, match=r"c.npz: shape.npy: expected at most \d+ bytes, found 4294967294 declared"):
            Code.load(tmp_path / "c.npz")
        monkeypatch.setattr(ocsc._native, "free_memory", lambda: 10**9)
        with pytest.raises(MemoryError, match=r"c.npz: its arrays need 4.29 GB, 1 GB are free"):
            Code.load(tmp_path / "c.npz")


def test_damaged_files_are_refused_or_read(codes, tmp_path):
    """Bytes flipped, cut and put in at random: an answer or a ValueError, and little memory, whatever is in the file."""
    rng, path = np.random.default_rng(0), tmp_path / "c.npz"
    resource_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        codes.save(path)
        with zipfile.ZipFile(path) as file:
            archive(path, {name.removesuffix(".npy"): file.read(name) for name in file.namelist()}, compression)
        whole = np.frombuffer(path.read_bytes(), np.uint8)
        for i in range(600):
            content = whole.copy()
            places = rng.integers(0, len(content), rng.integers(1, 6))
            content[places] = rng.integers(0, 256, len(places))
            content = content[: rng.integers(0, len(content))] if i % 5 == 0 else content
            path.write_bytes(content.tobytes())
            for load in (Codes.load, Code.load):
                try:
                    load(path).to_dense()
                except (ValueError, MemoryError):
                    pass
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resource_before
    assert grown < 200_000, f"{grown} kB"
