"""Measures what `--refit` does to the R peaks of an ECG, and what it costs: `python3 benchmarks/refit.py [PROGRAM]`.

The filters are those of the gallery, learned from the same 100 s. Both calls of `ocsc code` are made in turn, five times; printed are the
smallest wall and processor seconds of the whole program. Beats are SciPy's peaks of the ECG between 8 and 25 Hz, as in the example
`heartbeats.py`, and the R peak is the largest value within 50 ms. A height is a value at an R peak, less the median of the recording:
of the ECG itself, and of what `ocsc reconstruct --original` gives back. Needs numpy and scipy, and `../shared/data`.
"""

import argparse
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.signal import butter, find_peaks, sosfiltfilt

ECG = Path(__file__).resolve().parents[2] / 'shared/data/signals/ecg_360hz.npy'
READ = '--axes', 'T', '--window', '3600'
LEARN = '--preprocess lowpass=2000,scale --boundary free --filters 12 --size 180 --beta-ratio 0.1 --passes 20'.split()
ROUNDS = 5


def r_peaks(ecg):
    band = sosfiltfilt(butter(2, [8, 25], 'band', fs=360, output='sos'), ecg)
    beats = find_peaks(band, distance=108, height=0.4 * np.quantile(band, 0.99))[0]
    near = (beats[:, None] + np.arange(-18, 19)).clip(0, len(ecg) - 1)
    return near[np.arange(len(beats)), ecg[near].argmax(axis=1)]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', nargs='?', default='target/release/ocsc')
    program = parser.parse_args().program

    def run(*words):
        subprocess.run([program, *map(str, words), '--quiet'], check=True, capture_output=True)

    ecg = np.load(ECG).astype(float)
    peaks = r_peaks(ecg)
    true = ecg[peaks] - np.median(ecg)
    calls = {'without': [], 'with `--refit`': ['--refit']}
    times = {name: [] for name in calls}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / 'model.safetensors'
        run('learn', ECG, *READ, *LEARN, '--out', model)
        for _ in range(ROUNDS):
            for i, (call, words) in enumerate(calls.items()):
                clock, used = time.perf_counter(), processor_seconds()
                run('code', model, ECG, *READ, *words, '--out', folder / f'codes-{i}')
                times[call].append((time.perf_counter() - clock, processor_seconds() - used))
        print(f'{len(peaks)} R peaks, {np.mean(true):.3f} high in the mean\n')
        print('| codes | height | of the peak | SNR, dB | non-zeros | wall s | processor s |\n|---|---|---|---|---|---|---|')
        for i, call in enumerate(calls):
            codes = folder / f'codes-{i}'
            run('reconstruct', model, codes, '--original', ECG, *READ, '--format', 'npy', '--out', folder / f'back-{i}')
            back = np.concatenate([np.load(path).ravel() for path in sorted((folder / f'back-{i}').glob('*.npy'))])
            found = back[peaks] - np.median(back)
            snr = 10 * np.log10(np.var(ecg) / np.mean((ecg - back) ** 2))
            nonzeros = sum(len(np.load(path)['value']) for path in codes.glob('*.npz'))
            wall, used = np.min(times[call], axis=0)
            share = f'{100 * np.mean(found) / np.mean(true):.1f} %'
            print(f'| {call} | {np.mean(found):.3f} | {share} | {snr:.2f} | {nonzeros} | {wall:.3f} | {used:.3f} |')


if __name__ == '__main__':
    main()
