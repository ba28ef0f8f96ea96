"""Restored images, in Python's words."""

import warnings

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


def test_a_sigma_on_another_scale_is_noticed_and_a_right_one_is_not(clean):
    noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    denoise = ocsc.restore.denoise
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for right in (0.03, 0.1, 0.3):
            denoise(noisy, right)
            denoise(255 * noisy, 255 * right)
        # Without noise in the image: none is asked for, and flat areas may hide it.
        denoise(clean, 0)
        denoise(clean, 0.1)
    for restore in (denoise, lambda x, sigma: ocsc.restore.deblur(x, 1.2, sigma)):
        with pytest.raises(ValueError, match=r"sigma: expected at most 1\.\d+, since the values go from .* found 25; .*units of the image"):
            restore(noisy, 25)
        with pytest.warns(ocsc.NoiseWarning, match=r"sigma 0\.1 is far below the noise that the image seems to have, 2\d\.\d+") as told:
            restore(255 * noisy, 0.1)
        assert told[0].filename == __file__
    quiet = clean + 0.005 * np.random.default_rng(0).standard_normal(clean.shape)
    with pytest.warns(ocsc.NoiseWarning, match=r"sigma 0\.1 is far above the noise that the image seems to have, 0\.00\d+"):
        denoise(quiet, 0.1)


def test_colours_and_units(clean):
    colour = np.stack([clean, 0.5 * clean, 1 - clean], axis=-1)
    noisy = 255 * colour + 25 * np.random.default_rng(0).standard_normal(colour.shape)
    better = ocsc.restore.denoise(noisy, sigma=25, channel_axis=-1)
    assert better.shape == colour.shape
    gain = [ocsc.metrics.psnr(255 * colour, x, peak=255, axes="HWC") for x in (noisy, better)]
    assert gain[1] > gain[0] + 4
    first = ocsc.restore.denoise(np.moveaxis(noisy, -1, 0), sigma=25, channel_axis=0)
    assert np.array_equal(np.moveaxis(first, 0, -1), better)


def test_signals_lose_their_noise():
    t = np.arange(3000)
    clean = np.sin(0.05 * t) * np.sign(np.cos(0.004 * t))
    noisy = clean + 0.2 * np.random.default_rng(0).standard_normal(clean.shape)
    error = lambda x: np.std(x - clean)  # noqa: E731
    better = ocsc.restore.denoise(noisy)
    assert better.shape == clean.shape and better.dtype == np.float32 and error(better) < 0.4 * error(noisy)
    assert abs(ocsc.restore.estimate_sigma(noisy) - 0.2) < 0.02
    filters = np.linalg.qr(np.random.default_rng(1).standard_normal((24, 24)))[0]
    assert error(ocsc.restore.denoise(noisy, 0.2, filters=filters)) < 0.6 * error(noisy)
    two = ocsc.restore.denoise(np.stack([noisy, noisy[::-1]], axis=1), 0.2, channel_axis=1)
    assert two.shape == (3000, 2) and error(two[:, 0]) < 0.5 * error(noisy)
    with pytest.raises(ValueError, match=r"expected shape \(K, w\) or \(K, C, w\), found \(2, 2, 3, 3\)"):
        ocsc.restore.denoise(noisy, filters=np.ones((2, 2, 3, 3)))
    with pytest.raises(ValueError, match="96"):
        ocsc.restore.denoise(noisy[:50], 0.2)
    with pytest.raises(ValueError, match="image: expected 2 axes"):
        ocsc.restore.inpaint(noisy, noisy > 0)


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


def test_blur_small_images_and_mosaics(clean):
    weights = np.exp(-0.5 * (np.arange(-4, 5) / 1.2) ** 2)
    kernel = np.outer(weights, weights / weights.sum()) / weights.sum()
    padded = np.pad(clean, 4, mode="edge")
    blurred = sum(kernel[y, x] * padded[8 - y : 72 - y, 8 - x : 72 - x] for y in range(9) for x in range(9))
    for given in (1.2, kernel):
        sharp = ocsc.restore.deblur(blurred, given, sigma=0.002)
        assert psnr(clean, sharp) > psnr(clean, blurred) + 3
    large = ocsc.restore.upscale(clean, 3)
    assert large.shape == (192, 192) and abs(large.mean() - clean.mean()) < 0.01
    assert ocsc.restore.upscale(np.stack([clean] * 3, -1), channel_axis=-1).shape == (128, 128, 3)
    colour = np.stack([clean, 0.8 * clean, 0.6 * clean], -1)
    mosaic = colour[..., 1].copy()
    mosaic[::2, ::2], mosaic[1::2, 1::2] = colour[::2, ::2, 0], colour[1::2, 1::2, 2]
    result = ocsc.restore.demosaic(mosaic, "RGGB")
    assert result.shape == colour.shape and np.array_equal(result[::2, ::2, 0], colour[::2, ::2, 0])
    assert ocsc.metrics.psnr(colour, result, peak=1, axes="HWC") > 30
    assert ocsc.restore.demosaic(mosaic, "RGGB", channel_axis=0).shape == (3, 64, 64)


def test_other_noise(clean):
    rng = np.random.default_rng(4)
    counts = rng.poisson(40 * clean) / 40
    for photons in (40, None):
        assert psnr(clean, ocsc.restore.denoise(counts, noise="poisson", photons=photons)) > psnr(clean, counts) + 4
    drawn = rng.random(clean.shape)
    speckled = np.where(drawn < 0.1, 0, np.where(drawn > 0.9, 1, clean))
    assert psnr(clean, ocsc.restore.denoise(speckled, loss="l1")) > psnr(clean, speckled) + 10


def test_refusals(clean):
    with pytest.raises(ValueError, match="photons"):
        ocsc.restore.denoise(clean, photons=3)
    with pytest.raises(ValueError, match="neither noise nor sigma"):
        ocsc.restore.denoise(clean, sigma=1, loss="l1")
    with pytest.raises(ValueError, match="noise: expected"):
        ocsc.restore.denoise(clean, noise="pink")
    with pytest.raises(ValueError, match="odd sides"):
        ocsc.restore.deblur(clean, np.ones((2, 2)))
    with pytest.raises(ValueError, match="factor: expected 2, 3 or 4"):
        ocsc.restore.upscale(clean, 1)
    with pytest.raises(ValueError, match="RGGB, BGGR"):
        ocsc.restore.demosaic(clean, "RGB")
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
