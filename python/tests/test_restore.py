"""Restored images, in Python's words."""

import numpy as np
import pytest

import ocsc


@pytest.fixture
def clean():
    rng = np.random.default_rng(1)
    return np.kron(rng.random((8, 8)), np.ones((8, 8))).astype(np.float32)


def psnr(clean, image):
    return ocsc.metrics.psnr(clean, image, peak=1.0)


def test_noise_is_taken_off(clean):
    noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    better = ocsc.restore.denoise(noisy, sigma=0.1)
    assert better.shape == clean.shape and better.dtype == np.float32
    assert psnr(clean, better) > psnr(clean, noisy) + 4
    assert np.array_equal(better, ocsc.restore.denoise(noisy, sigma=0.1, threads=1))
    assert psnr(clean, ocsc.restore.denoise(noisy)) > psnr(clean, noisy) + 2
    assert 0.05 < ocsc.restore.estimate_sigma(noisy) < 0.2
    assert np.array_equal(ocsc.restore.denoise(clean, sigma=0), clean)


def test_colours_and_units(clean):
    colour = np.stack([clean, 0.5 * clean, 1 - clean], axis=-1)
    noisy = 255 * colour + 25 * np.random.default_rng(0).standard_normal(colour.shape)
    better = ocsc.restore.denoise(noisy, sigma=25, channel_axis=-1)
    assert better.shape == colour.shape
    gain = [ocsc.metrics.psnr(255 * colour, x, peak=255, axes="HWC") for x in (noisy, better)]
    assert gain[1] > gain[0] + 4
    first = ocsc.restore.denoise(np.moveaxis(noisy, -1, 0), sigma=25, channel_axis=0)
    assert np.array_equal(np.moveaxis(first, 0, -1), better)


def test_gaps_are_filled(clean):
    seen = np.random.default_rng(2).random(clean.shape) > 0.4
    holes = np.where(seen, clean, np.nan)
    filled = ocsc.restore.inpaint(holes, seen)
    assert np.array_equal(filled[seen], clean[seen])
    assert psnr(clean, filled) > 25
    again = ocsc.restore.inpaint(np.ma.masked_array(holes, ~seen), np.ones_like(seen))
    assert np.array_equal(filled, again)
    colour = ocsc.restore.inpaint(np.stack([holes] * 3), seen, channel_axis=0)
    assert colour.shape == (3, *clean.shape)


def test_refusals(clean):
    with pytest.raises(ValueError, match="channel_axis=-1"):
        ocsc.restore.denoise(np.zeros((8, 8, 3)))
    with pytest.raises(ValueError, match="sigma: expected a number of at least 0"):
        ocsc.restore.denoise(clean, sigma=-1)
    with pytest.raises(ValueError, match="mask: expected the image's shape"):
        ocsc.restore.inpaint(clean, np.ones((3, 3), bool))
    with pytest.raises(ValueError, match="finite"):
        ocsc.restore.denoise(np.full((16, 16), np.nan))
    with pytest.raises(ValueError, match="filters: expected shape"):
        ocsc.restore.denoise(clean, filters=np.zeros((3, 3)))
