"""Reads and writes files of sparse codes: archives ``.npz`` as numpy writes them, replaced as a whole and read with suspicion."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native

Array = npt.NDArray[Any]

NEEDED = ("filter", "position", "value", "shape")
MADE = ("sample_shape", "model", "source", "preprocess", "boundary", "masked", "base", "mixing")
CUT = ("recording", "start", "rate", "whole", "place", "order")
FACTS = (*MADE, *CUT)
"""What codes say of what they were made of and with, of filters of the sample's own, and where in what it was cut from the sample
lies; kept from load to save."""

KNOWN = (*NEEDED, *FACTS, "problem", "offset", "objective", "gap", "beta", "margin", "single", "energy", "windows")
"""Arrays that are read. Files may hold others, which later versions or the program add."""

UNKNOWN = -1
"""The margin of codes that do not know theirs."""

PART = 1 << 20
"""So many bytes are read at a time."""

DEFLATE = 1032
"""Deflated bytes become at most so many times as many."""


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Writes an archive under the very name given; whatever happens, there is the old file or the new one."""

    def fill(temporary: Path) -> None:
        try:
            # numpy would append .npz to other names, but not to files.
            with open(temporary, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            # The name of the temporary file would only confuse.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error

    _native.replace_file(path, fill)


def write_folder(folder: Path, names: list[str], stale: list[Path], write: Callable[[int, Path], None]) -> None:
    """Writes files into a folder, made if absent, in the place of the ``stale`` ones.

    All are written beside the folder first, so that a full disk or a kill on the way leaves the folder as it was.
    """
    made_here = not folder.exists()
    if not made_here and not folder.is_dir():
        raise FileExistsError(f"{folder}: expected a folder, or a name that ends in .npz, found a file")
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.ocsc-", dir=folder.parent))
    try:
        try:
            for i, name in enumerate(names):
                write(i, staged / name)
        except OSError as error:
            raise _renamed(error, staged, folder) from error
        if made_here:
            # Folders for temporary files are private; this one becomes the result.
            staged.chmod(0o777 & ~_umask())
            staged.rename(folder)
            _sync(folder.parent)
            return
        for name in names:
            (staged / name).replace(folder / name)
        _sync(folder)
        kept = set(names)
        for file in stale:
            if file.name not in kept:
                file.unlink()
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Waits until the names in a folder are on disk. Where folders cannot be opened, the system writes them when it likes."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _renamed(error: OSError, staged: Path, folder: Path) -> OSError:
    """Returns the same error about the folder that was to be written, not about the temporary one beside it."""
    told = [text.replace(str(staged), str(folder)) if isinstance(text, str) else text for text in error.args]
    if error.filename is None:
        return type(error)(*told)
    return OSError(*told[:2], str(error.filename).replace(str(staged), str(folder)))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Returns the arrays of a file of codes."""
    name = os.fspath(path)
    if not _is_archive(path):
        raise ValueError(f"{name}: expected a .npz file of sparse codes, found {_other_content(path)}")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            missing = [array for array in NEEDED if array not in members]
            if missing:
                raise ValueError(f"expected the arrays of sparse codes, found none called {', '.join(missing)}")
            known = {array: members[array] for array in KNOWN if array in members}
            _check_memory(name, sum(info.file_size for info in known.values()))
            length = os.stat(path).st_size
            return {array: _member(archive, info, length) for array, info in known.items()}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{name}: {error or 'expected a whole .npz file of sparse codes, found a part of one'}") from error


def _is_archive(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def _other_content(path: str | os.PathLike[str]) -> str:
    """Returns a description of a file that is no archive."""
    try:
        # As a map, since a header may promise more numbers than there are.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, OverflowError):
        return "something else"
    return f"a single array of shape {array.shape}"


def _check_memory(name: str, needed: int) -> None:
    free = _native.free_memory()
    if free is not None and needed > free:
        raise MemoryError(f"{name}: its arrays need {needed / 1e9:.3g} GB, {free / 1e9:.3g} GB are free")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, length: int) -> Array:
    """Reads one array of an archive of ``length`` bytes. Allocates nothing that the archive cannot hold."""
    most = info.compress_size if info.compress_type == zipfile.ZIP_STORED else DEFLATE * info.compress_size
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{info.filename}: expected it stored or deflated, as numpy writes archives")
    if not 0 <= info.header_offset < length:
        raise ValueError(f"{info.filename}: expected it to begin within {length} bytes, found {info.header_offset}")
    if info.compress_size > length or info.file_size > most:
        raise ValueError(f"{info.filename}: expected at most {min(most, DEFLATE * length)} bytes, found {info.file_size} declared")
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise ValueError(f"{info.filename}: expected version 1 or 2 of the format .npy, found {version}")
        shape, is_fortran, dtype = readers[version](member)
        if dtype.hasobject:
            raise ValueError(f"{info.filename}: expected numbers, found Python objects")
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        declared = info.file_size - member.tell()
        if size != declared:
            raise ValueError(f"{info.filename}: expected {size} bytes, as shape {shape} of {dtype} takes, found {declared}")
        array: Array = np.empty(size // max(dtype.itemsize, 1), dtype)
        filled = 0
        while filled < size:
            part = member.read(min(PART, size - filled))
            if not part:
                raise ValueError(f"{info.filename}: expected {size} bytes of numbers, found {filled}")
            array.view(np.uint8)[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
            filled += len(part)
    return array.reshape(shape, order="F" if is_fortran else "C")


def code_of(arrays: Mapping[str, Array], name: str) -> dict[str, Any]:
    """Returns what a `Code` is made of, from the arrays of a file."""
    shape, value, margin = arrays["shape"], arrays["value"], arrays.get("margin")
    numbers = {key: arrays[key] for key in ("objective", "gap", "beta", "energy") if key in arrays}
    axes = shape.size - 1
    expected = {"shape": (axes + 1,), "filter": value.shape, "position": (value.size, axes)}
    expected |= {} if margin is None else {"margin": (axes,)}
    scalar = all(number.size == 1 and number.dtype.kind in "fiu" for number in numbers.values())
    if not (_fit(arrays, expected) and 1 <= axes <= 3 and scalar):
        raise ValueError(f"{name}: expected the code of one sample, found arrays that do not fit: {_shapes(arrays)}")
    scalars = {key: float(number.reshape(())) for key, number in numbers.items()}
    fields = {key: arrays[key] for key in ("filter", "position", "value")}
    facts = {key: arrays[key] for key in FACTS if key in arrays}
    _check_mixing(facts, (), int(shape[0]), name)
    if margin is None:
        margin = _margin(shape, facts.get("sample_shape"))
    return {**fields, "shape": tuple(shape), "margin": margin, "facts": facts, **scalars}


def _check_mixing(facts: Mapping[str, Array], samples: tuple[int, ...], n_filters: int, name: str) -> None:
    """Checks that what is said of filters of the samples' own fits the number of filters."""
    if "mixing" not in facts and "base" not in facts:
        return
    base, mixing = (facts.get(key, np.zeros(0)) for key in ("base", "mixing"))
    r = base.shape[-1] if base.ndim else 0
    kinds = base.dtype.kind in "iu" and mixing.dtype.kind == "f"
    if not kinds or base.shape != (*samples, r) or mixing.shape != (*samples, n_filters, r):
        expected = f"base {(*samples, 'R')} and mixing {(*samples, n_filters, 'R')}"
        raise ValueError(f"{name}: expected {expected}, found {base.shape} of {base.dtype} and {mixing.shape} of {mixing.dtype}")


def _margin(shape: Array, sample_shape: Array | None) -> Array | None:
    """Returns how far filters stick out of a sample, which is by how much its code is larger."""
    if sample_shape is None or sample_shape.shape != shape.shape or sample_shape.dtype.kind not in "iu":
        return None
    margin: Array = shape[1:] - sample_shape[1:]
    return margin if np.all(margin >= 0) else None


def codes_of(arrays: Mapping[str, Array], name: str) -> dict[str, Any]:
    """Returns what `Codes` are made of, from the arrays of a file."""
    offset, shapes, value = arrays["offset"], arrays["shape"], arrays["value"]
    n, axes = offset.size - 1, (shapes.shape[-1] - 1 if shapes.ndim else 0)
    if n < 0 or not 1 <= axes <= 3:
        raise ValueError(f"{name}: expected the codes of some samples, found arrays that do not fit: {_shapes(arrays)}")
    unknown: dict[str, Any] = {"margin": np.full((n, axes), UNKNOWN), "single": np.zeros((), bool)}
    unknown |= {key: np.full(n, np.nan) for key in ("objective", "gap", "beta", "energy")}
    arrays = {**unknown, **arrays}
    expected = {"offset": (n + 1,), "shape": (n, axes + 1), "filter": value.shape, "position": (value.size, axes)}
    expected |= {"objective": (n,), "gap": (n,), "beta": (n,), "energy": (n,), "margin": (n, axes), "single": ()}
    expected |= {"windows": (n, 2)} if "windows" in arrays else {}
    if not _fit(arrays, expected):
        raise ValueError(f"{name}: expected the codes of some samples, found arrays that do not fit: {_shapes(arrays)}")
    if offset[0] != 0 or offset[-1] != value.size or np.any(np.diff(offset) < 0):
        raise ValueError(f"{name}: offset: expected growing numbers from 0 to {value.size}, the number of values")
    fields = {key: arrays[key] for key in ("filter", "position", "value", "offset", "objective", "gap", "beta", "energy", "margin")}
    fields |= {"windows": arrays["windows"]} if "windows" in arrays else {}
    said = [key for key in FACTS if key in arrays and arrays[key].shape[:1] == (n,)]
    _check_mixing({key: arrays[key] for key in said}, (n,), int(shapes[0, 0]) if n else 0, name)
    facts = [{key: np.asarray(arrays[key][i]) for key in said} for i in range(n)]
    return {**fields, "shapes": shapes, "single": bool(arrays["single"]), "facts": facts}


def _fit(arrays: Mapping[str, Array], expected: Mapping[str, tuple[int, ...]]) -> bool:
    """Returns whether arrays have these shapes, values are real, and counts and positions are whole."""
    whole = (arrays[key] for key in ("filter", "position", "shape", "offset", "margin", "windows") if key in arrays)
    value = arrays["value"]
    return (
        value.ndim == 1
        and value.dtype.kind == "f"
        and all(arrays[key].shape == shape for key, shape in expected.items())
        and all(array.dtype.kind in "iu" for array in whole)
    )


def _shapes(arrays: Mapping[str, Array]) -> str:
    return ", ".join(f"{name} {array.shape} of {array.dtype}" for name, array in arrays.items())
