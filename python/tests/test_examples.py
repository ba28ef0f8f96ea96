"""The examples run, draw what they say, and what they claim is so."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from figures import EXAMPLES  # noqa: E402

SCRIPTS = ROOT / "examples"
DATA = Path(os.environ.get("OCSC_DATA", ROOT.parents[1] / "shared/data"))


def test_every_example_has_figures():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_figures_keep_their_bounds(name, tmp_path):
    example = EXAMPLES[name]
    if example.needs_data and not DATA.is_dir():
        pytest.skip("the shared data are absent (set OCSC_DATA)")
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed")
    for package in example.packages:
        pytest.importorskip(package, reason=f"{package} is not installed")
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "error::UserWarning", SCRIPTS / f"{name}.py", tmp_path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    picture = image.imread(tmp_path / f"{name}.png")
    assert min(picture.shape[:2]) >= 200 and np.ptp(picture[..., :3]) > 0.5
    example.check(done.stdout)
    if name == "drums":
        check_parts(tmp_path)


def check_parts(folder):
    """Checks that the recordings of the parts add up to the loop."""
    from scipy.io import wavfile

    rate, loop = wavfile.read(DATA / "audio/loop_tabla.wav")
    written = [wavfile.read(folder / f"drums-{name}.wav") for name in (0, 1, 2, 3, "rest")]
    assert all(own == rate and sound.shape == loop.shape[:1] and sound.any() for own, sound in written)
    # Each file is rounded to whole numbers.
    assert np.abs(sum(sound.astype(float) for _, sound in written) - loop.mean(axis=1)).max() <= 3


def test_a_figure_that_leaves_its_bounds_is_refused():
    example = EXAMPLES["heartbeats"]
    good = "117 beats, 117 peaks: precision 0.99, recall 1.00 within 50 ms\n100 beats per minute\n"
    assert [value for _, value in example.check(good)] == [0.99, 1.0, 100]
    with pytest.raises(ValueError, match="precision: expected a number above 0.97, found 0.9"):
        example.check(good.replace("0.99", "0.9"))
    with pytest.raises(ValueError, match="recall"):
        example.check("precision 0.99\n100 beats per minute")


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path):
    lines = path.read_text().splitlines()
    assert len(lines) < 60 and max(map(len, lines)) <= 128
