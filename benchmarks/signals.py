"""Denoises signals side by side: `python3 benchmarks/signals.py [PROGRAM] [--half choose|report]`.

An ECG and recordings of 1 s with white noise, 5, 10 and 20 dB below the signal, whose deviation all are told. The program's settings
were chosen on the half `choose`: the first half of the ECG, two notes of a piano, a loop of drums. Peers are scikit-image's
soft thresholds (BayesShrink and VisuShrink), hard thresholds of a stationary wavelet transform (PyWavelets, 6 levels, three
thresholds), both with the wavelets sym8 and db4, and SciPy's local Wiener filter of four lengths; each at its best for the signal at hand.
Signal-to-noise ratios in dB; wall seconds of one call, on all cores, the start of the program included. Needs numpy, scipy, PyWavelets and
scikit-image, and `../shared/data`.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pywt
from scipy.io import wavfile
from scipy.signal import wiener
from skimage.restoration import denoise_wavelet

DATA = Path(__file__).resolve().parents[2] / 'shared/data'
WAVELETS = 'sym8', 'db4'
LEVELS = 6


def recording(name):
    rate, values = wavfile.read(DATA / 'audio' / name)
    values = values.astype(float) / (np.iinfo(values.dtype).max if values.dtype.kind == 'i' else 1)
    return (values.mean(1) if values.ndim > 1 else values)[:rate]


def signals(half):
    ecg = np.load(DATA / 'signals/ecg_360hz.npy').astype(float).ravel()
    if half == 'choose':
        return {'ECG, first 50 s': ecg[:18000], **{name: recording(f'{name}.wav') for name in ('C3', 'E4', 'loop_tabla')}}
    return {'ECG, last 50 s': ecg[18000:], **{name: recording(f'{name}.wav') for name in ('G3', 'C5', 'loop_breakbeat')}}


def snr(clean, signal):
    return 10 * np.log10(np.sum((clean - clean.mean()) ** 2) / np.sum((clean - signal) ** 2))


def stationary(noisy, sigma, wavelet, factor):
    padded = np.pad(noisy, (0, -len(noisy) % (1 << LEVELS)), mode='reflect')
    coarse, *details = pywt.swt(padded, wavelet, LEVELS, norm=True, trim_approx=True)
    levels = range(LEVELS, 0, -1)
    kept = [pywt.threshold(d, factor * sigma / 2 ** (level / 2), 'hard') for level, d in zip(levels, details)]
    return pywt.iswt([coarse, *kept], wavelet, norm=True)[: len(noisy)]


def peers(noisy, sigma):
    shrink = dict(sigma=sigma, mode='soft', rescale_sigma=False)
    methods = 'BayesShrink', 'VisuShrink'
    return {
        'wavelet, soft': [denoise_wavelet(noisy, wavelet=w, method=m, **shrink) for w in WAVELETS for m in methods],
        'wavelet, stationary': [stationary(noisy, sigma, w, k) for w in WAVELETS for k in (2.5, 3.0, 3.5)],
        'Wiener': [wiener(noisy, n, sigma**2) for n in (5, 9, 15, 25)],
    }


def ocsc(program, noisy, sigma, words, folder):
    np.save(folder / 'x.npy', noisy.astype(np.float32))
    command = [program, 'denoise', folder / 'x.npy', '--sigma', str(sigma), *words, '--quiet', '--out', folder / 'out']
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return np.load(folder / 'out/x.npy').astype(float), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', nargs='?', default='target/release/ocsc')
    parser.add_argument('--half', default='report', choices=['choose', 'report'])
    args = parser.parse_args()
    names = ['noisy', 'ocsc', 'ocsc --no-learn-here', *peers(np.random.default_rng(0).standard_normal(256), 1.0)]
    print(f'| signal | {" | ".join(names)} | seconds |\n|---|{"---|" * (len(names) + 1)}')
    rows = []
    for name, clean in signals(args.half).items():
        for level in (5, 10, 20):
            sigma = np.std(clean) / 10 ** (level / 20)
            noisy = clean + sigma * np.random.default_rng(0).standard_normal(len(clean))
            with tempfile.TemporaryDirectory() as folder:
                made, seconds = ocsc(args.program, noisy, sigma, [], Path(folder))
                plain, _ = ocsc(args.program, noisy, sigma, ['--no-learn-here'], Path(folder))
            best = [max(snr(clean, result) for result in results) for results in peers(noisy, sigma).values()]
            rows.append([snr(clean, noisy), snr(clean, made), snr(clean, plain), *best, seconds])
            print(f'| {name} | {" | ".join(f"{value:.2f}" for value in rows[-1][:-1])} | {seconds:.1f} |', flush=True)
    means = np.mean(rows, axis=0)
    print(f'| mean | {" | ".join(f"{value:.2f}" for value in means[:-1])} | {means[-1]:.1f} |')


if __name__ == '__main__':
    main()
