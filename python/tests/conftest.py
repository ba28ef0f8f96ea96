"""What all tests share: small data, and the program, where it was built."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A shell that starts the tests in the background lets them and their children ignore Ctrl-C, which some are about.
signal.signal(signal.SIGINT, signal.default_int_handler)


def smooth(n, height=24, width=24, seed=0, dtype=np.float32):
    """Images with something to learn: sums of a few shifted bumps and edges, and a little noise."""
    rng = np.random.default_rng(seed)
    bump = np.outer(np.hanning(7), np.hanning(7))
    edge = bump * np.linspace(-1, 1, 7)
    images = 0.05 * rng.standard_normal((n, height, width))
    for image in images:
        for part in (bump, edge, edge.T) * 3:
            y, x = rng.integers(0, height - 7), rng.integers(0, width - 7)
            image[y : y + 7, x : x + 7] += rng.normal(0, 2) * part
    return images.astype(dtype)


@pytest.fixture
def images():
    return smooth(6)


def find_program():
    """The program `ocsc`: the one that OCSC_PROGRAM names, or the newest that cargo built."""
    named = os.environ.get("OCSC_PROGRAM")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "ocsc" for profile in ("debug", "release")]
    built = [pathlib.Path(named)] if named else [path for path in built if path.is_file()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


@pytest.fixture
def program(tmp_path):
    """Runs the program in a folder of its own."""
    path = find_program()
    if path is None or not path.is_file():
        pytest.skip("the program ocsc is not built: cargo build, or set OCSC_PROGRAM")

    def run(*arguments):
        done = subprocess.run([path, *map(str, arguments), "--quiet"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def run_python(code, *arguments, timeout=120, **options):
    """Runs a script in a process of its own; returns what it printed."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def require(module):
    return pytest.importorskip(module, reason=f"{module} is not installed")


__all__ = ["find_program", "require", "run_python", "smooth"]
