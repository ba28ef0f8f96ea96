"""The data that are made, not read: crops and mosaics of photos, contrast-normalised CIFAR-10 images, a scaled ECG."""

from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import correlate1d

from common import DATA, WORK

CROP = 500


def normalised(gray: np.ndarray) -> np.ndarray:
    """Local contrast normalisation as the paper's authors do it (see the README of the shared data)."""
    taps = np.exp(-0.5 * (np.arange(-6, 7) / (3 * 1.591)) ** 2)
    taps /= taps.sum()

    def local(a: np.ndarray) -> np.ndarray:
        return correlate1d(correlate1d(a, taps, 0, mode='mirror'), taps, 1, mode='mirror')

    mean = local(gray)
    deviation = np.sqrt(np.maximum(local(gray**2) - mean**2, 0))
    median = np.sort(deviation.ravel())[(deviation.size - 1) // 2]
    # The median is zero where more than half of a photo is of one gray level; what rounding leaves there must stay small.
    out = (gray - mean) / np.maximum(deviation, max(median, 1e-6 * np.ptp(gray)))
    return out - out.mean()


@cache
def gray_photos() -> list[np.ndarray]:
    """The flower photos, gray levels 0..255; the shortest side of each is 500 or a little more."""
    files = sorted(DATA.glob('flower/train/*')) + sorted(DATA.glob('flower/test/*'))
    return [np.asarray(Image.open(f).convert('L')) for f in files]


def crop(index: int) -> np.ndarray:
    """A 500x500 crop: left or right end of a photo, upright or upside down, then transposed; different for 0..239."""
    photos = gray_photos()
    photo, variant = photos[index % len(photos)], index // len(photos)
    corner = (slice(CROP), slice(CROP)) if variant % 2 == 0 else (slice(-CROP, None), slice(-CROP, None))
    part = photo[corner]
    return part[::-1] if variant in (2, 3) else part.T if variant > 3 else part


def folder_of_crops(n: int) -> Path:
    """n crops as PNG files."""
    folder = WORK / f'crops-{n}'
    if not folder.exists():
        folder.mkdir(parents=True)
        for i in range(n):
            Image.fromarray(np.ascontiguousarray(crop(i))).save(folder / f'{i:03}.png')
    return folder


def mosaic(rows: int, columns: int) -> np.ndarray:
    """Crops side by side, gray levels."""
    return np.block([[crop(r * columns + c) for c in range(columns)] for r in range(rows)])


def saved(name: str, samples: np.ndarray) -> Path:
    """Samples as a float32 .npy file."""
    path = WORK / f'{name}.npy'
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, samples.astype(np.float32))
    return path


def cifar(file: str, n: int) -> Path:
    """The first n images of a CIFAR-10 file (1 label byte, then 32x32 red, green, blue): gray, contrast-normalised."""
    raw = np.fromfile(DATA / 'cifar10' / f'{file}.bin', np.uint8).reshape(-1, 3073)[:n, 1:]
    gray = np.tensordot(raw.reshape(-1, 3, 32, 32) / 255.0, [0.2989, 0.5870, 0.1140], axes=(1, 0))
    return saved(f'cifar-{file}-{n}', np.stack([normalised(image) for image in gray]))


def ecg(n: int) -> Path:
    """The first n values of the ECG, centred and scaled to unit variance, as one sample."""
    signal = np.load(DATA / 'signals' / 'ecg_360hz.npy').astype(np.float64).ravel()[:n]
    return saved(f'ecg-{n}', ((signal - signal.mean()) / signal.std())[None])
