"""How close to optimal codes must be while learning: `python3 benchmarks/learn_tol.py [PROGRAM]`.

Learns from a part of the training images of Fruit, City and CIFAR-10 and of an ECG, with several tolerances and three seeds, one pass and
more, and codes the rest of the training data to 0.1 %. No test set is touched. Prints the mean seconds of learning on one thread and the mean
objective, with its standard error. Needs numpy and scipy, and `../shared/data`.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from common import DATA
from data import cifar

TOLERANCES = 0.01, 0.05, 0.1, 0.2, 0.3
SEEDS = 3


def problems():
    """Name: (samples to learn from, samples to judge by, words)."""
    found = {}
    for name in ('fruit', 'city'):
        images = np.load(DATA / name / 'train_lcne.npy')
        found[name] = images[:-3], images[-3:], ['--preset', 'paper']
    images = np.load(cifar('data_batch_small', 480))
    found['CIFAR-10, batch 16'] = images[:400], images[400:], ['--preset', 'paper', '--batch', '16']
    ecg = np.load(DATA / 'signals/ecg_360hz.npy').astype(np.float32)
    ecg = ((ecg - ecg.mean()) / ecg.std()).reshape(-1, 1800)
    words = '--axes NW --filters 12 --size 64 --boundary free --beta 1'.split()
    found['ECG, windows of 5 s'] = ecg[:16], ecg[16:], words
    words = '--axes NW --filters 12 --size 180 --boundary free --beta-ratio 0.1'.split()
    found['ECG, filters of 0.5 s'] = ecg[:16], ecg[16:], words
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', nargs='?', default='target/release/ocsc')
    program = parser.parse_args().program

    def run(*words):
        command = [program, *map(str, words), '--threads', '1', '--json', '--quiet']
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])

    print('| data | passes | tolerance | seconds | objective |\n|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as name:
        train, rest, model = (Path(name) / file for file in ('train.npy', 'rest.npy', 'model.safetensors'))
        for data, (learned, judged, words) in problems().items():
            np.save(train, learned)
            np.save(rest, judged)
            for passes in (1, 20 if '180' in words else 5):
                for tol in TOLERANCES:
                    seconds, objectives = [], []
                    for seed in range(SEEDS):
                        out = ['--passes', passes, '--seed', seed, '--learn-tol', tol, '--out', model, '--force']
                        seconds.append(run('learn', train, *words, *out)['seconds'])
                        objectives.append(run('evaluate', model, rest, '--tol', 0.001)['objective'])
                    error = np.std(objectives, ddof=1) / np.sqrt(SEEDS)
                    print(f'| {data} | {passes} | {tol} | {np.mean(seconds):.2f} | {np.mean(objectives):.2f} ± {error:.2f} |', flush=True)


if __name__ == '__main__':
    main()
