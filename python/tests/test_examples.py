"""The examples run, draw what they say, and what they claim is so."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DATA = Path(os.environ.get("OCSC_DATA", EXAMPLES.parents[2] / "shared/data"))


def run(name, folder):
    """What an example printed, as the numbers in it; its picture must not be empty."""
    if not DATA.is_dir():
        pytest.skip("the shared data are absent (set OCSC_DATA)")
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed")
    if name in ("calcium", "drums", "heartbeats", "transcribe_piano"):
        pytest.importorskip("scipy", reason="scipy is not installed")
    if name in ("denoise", "inpaint", "learn_and_code", "textures", "upscale"):
        pytest.importorskip("PIL", reason="Pillow is not installed")
    if name in ("denoise", "inpaint"):
        pytest.importorskip("skimage", reason="scikit-image is not installed")
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "error::UserWarning", EXAMPLES / f"{name}.py", folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    picture = image.imread(folder / f"{name}.png")
    assert min(picture.shape[:2]) >= 200 and np.ptp(picture[..., :3]) > 0.5
    return done.stdout, [float(number) for number in re.findall(r"\d+\.?\d*", done.stdout)]


def test_learn_and_code(tmp_path):
    text, _ = run("learn_and_code", tmp_path)
    assert "learned 64 filters from 30 photos" in text
    psnr, coefficients, pixels = (float(n) for n in re.search(r"PSNR ([\d.]+) dB with (\d+) coeff.* (\d+) pix", text).groups())
    assert psnr > 33 and coefficients < 0.2 * pixels
    before, after = (float(n) for n in re.search(r"photos: ([\d.]+) after one photo, ([\d.]+) at the end", text).groups())
    assert after < 0.9 * before


def test_denoise(tmp_path):
    text, _ = run("denoise", tmp_path)
    pattern = r"10 photos, mean PSNR: noisy ([\d.]+) dB, ocsc ([\d.]+) dB, NL-means ([\d.]+) dB"
    noisy, ours, theirs = (float(n) for n in re.search(pattern, text).groups())
    assert noisy < 20.5 and ours > 31 and ours > theirs + 0.8


def test_inpaint(tmp_path):
    text, _ = run("inpaint", tmp_path)
    pattern = r"10 photos, mean PSNR of the missing pixels: ocsc ([\d.]+) dB, biharmonic ([\d.]+) dB"
    ours, theirs = (float(n) for n in re.search(pattern, text).groups())
    assert ours > 36 and ours > theirs + 0.5


def test_upscale(tmp_path):
    text, _ = run("upscale", tmp_path)
    ours, theirs = (float(n) for n in re.search(r"ocsc ([\d.]+) dB, cubic interpolation ([\d.]+) dB", text).groups())
    assert ours > theirs + 0.8


def test_drums(tmp_path):
    text, _ = run("drums", tmp_path)
    from scipy.io import wavfile

    assert float(re.search(r"within ([\d.e+-]+)", text).group(1)) < 1e-12
    learned, later = (float(n) for n in re.findall(r"([\d.]+) % of the energy explained", text))
    assert learned > 75 and later > 75
    rate, loop = wavfile.read(DATA / "audio/loop_tabla.wav")
    written = [wavfile.read(tmp_path / f"drums-{name}.wav") for name in (0, 1, 2, 3, "rest")]
    assert all(own == rate and sound.shape == loop.shape[:1] and sound.any() for own, sound in written)
    # Each file is rounded to whole numbers.
    assert np.abs(sum(sound.astype(float) for _, sound in written) - loop.mean(axis=1)).max() <= 3


def test_calcium(tmp_path):
    text, _ = run("calcium", tmp_path)
    precision, recall = (float(n) for n in re.search(r"precision ([\d.]+), recall ([\d.]+)", text).groups())
    assert precision > 0.9 and recall > 0.85


def test_lfp_motifs(tmp_path):
    text, _ = run("lfp_motifs", tmp_path)
    learned, later = (float(n) for n in re.search(r"variance: ([\d.]+) where it was learned, ([\d.]+) later", text).groups())
    assert later > 0.83 and abs(learned - later) < 0.05


def test_transcribe_piano(tmp_path):
    text, _ = run("transcribe_piano", tmp_path)
    precision, recall = (float(n) for n in re.search(r"precision ([\d.]+), recall ([\d.]+)", text).groups())
    assert precision > 0.68 and recall > 0.82


def test_heartbeats(tmp_path):
    text, _ = run("heartbeats", tmp_path)
    precision, recall = (float(n) for n in re.search(r"precision ([\d.]+), recall ([\d.]+)", text).groups())
    assert precision > 0.97 and recall > 0.97
    assert 90 <= int(re.search(r"(\d+) beats per minute", text).group(1)) <= 115


def test_meg_atoms(tmp_path):
    _, (topographies, waveforms, _, precision, recall) = run("meg_atoms", tmp_path)
    assert topographies > 0.98 and waveforms > 0.98 and precision > 0.95 and recall > 0.95


def test_textures(tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    text, _ = run("textures", tmp_path)
    pooled, pixels = (float(n) for n in re.search(r"accuracy ([\d.]+) by pooled codes, ([\d.]+) by pixels", text).groups())
    assert pooled > 0.3 and pooled > 1.5 * pixels


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path):
    lines = path.read_text().splitlines()
    assert len(lines) < 60 and max(map(len, lines)) <= 128
