"""The code on the pages of the site runs, in the order in which it stands there, and links between pages lead somewhere.

A block that cannot be run here says why, in a comment before it: ``<!-- not run: needs MPI -->``.
"""

import os
import re
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, find_program

import ocsc

sys.path.insert(0, str(ROOT / "docs"))
import build  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/start").glob("*.md")), *sorted((ROOT / "docs/guides").glob("*.md"))]
PAGES += [ROOT / "docs/how/certificate.md", ROOT / "python/README.md"]
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(path, language):
    """The pieces of code of a page that are to be run."""
    return [code for skip, kind, code in BLOCK.findall(path.read_text("utf-8")) if kind == language and not skip]


def with_blocks(language):
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in PAGES if blocks(path, language)]


def write_png(path, image):
    """Writes a gray or colour image of bytes."""
    image = np.atleast_3d(image)
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    header = np.array(image.shape[1::-1], ">u4").tobytes() + bytes([8, 2 if image.shape[2] == 3 else 0, 0, 0, 0])
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    text = b"".join(
        len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big") for name, body in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what the pages call data: photos, some of them held out, a mask and an ECG."""
    rng = np.random.default_rng(0)
    for name, count in (("photos", 4), ("held-out", 2)):
        (tmp_path / name).mkdir()
        for i in range(count):
            picture = np.full((48, 56, 3), 128.0)
            for y, x, height, width in rng.integers(4, 44, (20, 4)):
                picture[y : y + height // 3, x : x + width // 3] = rng.uniform(20, 235, 3)
            write_png(tmp_path / name / f"{name}-{i:02}.png", (picture + rng.normal(0, 4, picture.shape)).clip(0, 255).astype(np.uint8))
    write_png(tmp_path / "mask.png", (255 * (rng.random((48, 56)) < 0.7)).astype(np.uint8))
    ecg = 0.05 * rng.standard_normal(20_000)
    for start in range(100, 19_800, 210):
        ecg[start : start + 60] += np.hanning(60) * np.sin(np.linspace(0, 9, 60))
    np.save(tmp_path / "ecg.npy", ecg)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", with_blocks("python"))
def test_python(path, folder):
    names = {"__name__": "__main__"}
    with warnings.catch_warnings():
        for kind in (ocsc.ConvergenceWarning, ocsc.SparsityWarning):
            warnings.simplefilter("error", kind)
        for code in blocks(path, "python"):
            exec(compile(code, str(path.relative_to(ROOT)), "exec"), names)


@pytest.mark.parametrize("path", with_blocks("sh"))
def test_shell(path, folder):
    program = find_program()
    if program is None or not program.is_file():
        pytest.skip("the program ocsc is not built: cargo build, or set OCSC_PROGRAM")
    (folder / "bin").mkdir()
    (folder / "bin/ocsc").symlink_to(program)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for code in blocks(path, "sh"):
        done = subprocess.run(["bash", "-ec", code], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stderr}"


@pytest.mark.parametrize("source", [*build.pages(), "README.md"])
def test_links(source):
    path = ROOT / source
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.M | re.S)
    for _, target, _ in build.LINK.findall(text):
        there = os.path.normpath(os.path.join(os.path.dirname(source), target))
        assert "://" in target or (ROOT / there).exists() or build.made_when_built(Path(there).as_posix()), f"{source}: {target}"
