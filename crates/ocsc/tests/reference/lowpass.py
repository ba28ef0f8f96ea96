"""Writes lowpass.json: the low-pass parts that SPORCO's `signal.tikhonov_filter` finds, for tests/all/preprocess.

    pip install sporco numpy
    python3 lowpass.py

SPORCO splits images. A signal is an image of one row. For volumes the same formula is written out here in numpy, and
checked against SPORCO on an image, a volume of one slice.
"""

import json
from pathlib import Path

import numpy as np
from sporco.signal import tikhonov_filter

PADDING = 16


def values(*shape):
    """The test's samples: made of whole numbers, so that both sides have the same ones."""
    i = np.arange(np.prod(shape))
    return ((i * i * 7 + i * 3) % 101 / 100.0 + (i % shape[-1]) / shape[-1]).reshape(shape)


def lowpass_3d(x, weight):
    pad = [(0, 0) if n == 1 else (PADDING, PADDING) for n in x.shape]
    padded = np.pad(x, pad, 'symmetric')
    denominator = np.ones(padded.shape)
    for axis in range(3):
        impulse = np.zeros(padded.shape)
        impulse[0, 0, 0] = 1
        gradient = np.roll(impulse, 1, axis) - impulse
        denominator += weight * np.abs(np.fft.fftn(gradient)) ** 2
    low = np.fft.ifftn(np.fft.fftn(padded) / denominator).real
    return low[tuple(slice(p, p + n) for (p, _), n in zip(pad, x.shape))]


def main():
    cases = []
    for weight in 5.0, 0.3, 80.0:
        signal, image, volume = values(23), values(9, 14), values(5, 4, 6)
        low, _ = tikhonov_filter(signal[np.newaxis], weight, PADDING)
        cases.append((signal, weight, low))
        low, _ = tikhonov_filter(image, weight, PADDING)
        assert np.abs(lowpass_3d(image[np.newaxis], weight)[0] - low).max() < 1e-14
        cases.append((image, weight, low))
        cases.append((volume, weight, lowpass_3d(volume, weight)))
    rows = [{'axes': list(x.shape), 'lambda': weight, 'low': low.ravel().tolist()} for x, weight, low in cases]
    text = ',\n'.join(json.dumps(row) for row in rows)
    Path(__file__).with_suffix('.json').write_text(f'[\n{text}\n]\n')


if __name__ == '__main__':
    main()
