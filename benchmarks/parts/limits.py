"""Rows: where coding is hard or the machine is small. AVX2 only, dense codes, many channels, one long signal, 10,000 photos."""

import json
import os
import subprocess
import sys
import time

import numpy as np
from PIL import Image

from common import DATA, RELEASE, TEST, WORK, Result, Row, evaluate, filters, learned, ocsc, pick
from data import saved
from peers import sporco_peer as peer

ROUNDS = pick(3, 1)
RATIO = 0.0005
"""Dense codes: this share of the largest beta."""
RHOS = pick([0.3, 1.0, 3.0, 10.0, 30.0], [3.0])
LIMIT = pick(1000, 50)
CHANNELS, LENGTH, ATOM, ATOMS = pick((204, 900, 150, 20), (8, 200, 20, 4))
SIGNAL = pick(1_000_000, 20_000)
PHOTOS = pick(10_000, 100)


def avx2() -> Row:
    """The same codes with and without AVX-512, in turn."""
    seconds: dict[str, list[float]] = {'': [], 'avx2': []}
    for _ in range(2 * ROUNDS):
        for simd, times in seconds.items():
            if simd:
                os.environ['OCSC_SIMD'] = simd
            times.append(evaluate(learned(), TEST, threads=1)['seconds'])
            os.environ.pop('OCSC_SIMD', None)
    best = {simd: min(times) for simd, times in seconds.items()}
    flags = open('/proc/cpuinfo').read()
    widest = 'AVX-512 VNNI' if 'avx512_vnni' in flags else 'AVX-512' if 'avx512f' in flags else 'AVX2'
    ratio = best['avx2'] / best['']
    what = f'coding the Fruit test images on one thread: AVX2 only against the widest unit here ({widest})'
    ours, theirs = (f'{1e3 * best[simd]:.1f} ms' for simd in ('avx2', ''))
    return Row('avx2', what, ours, theirs, f'{ratio:.2f}', 'at most 1.5 times slower', ratio <= 1.5)


def dense() -> Row:
    """Codes at a small beta against SPORCO's ADMM. A sample divided by beta is the same problem at beta 1."""
    d, image = filters(learned()), np.load(TEST)[0].astype(np.float64)
    spectrum = np.fft.rfft2(image)[None] * np.conj(np.fft.rfft2(d, image.shape))
    largest = np.abs(np.fft.irfft2(spectrum, image.shape)).max()
    scaled = (image / (RATIO * largest)).astype(np.float32)
    data = saved('dense', scaled[None])
    runs = [evaluate(learned(), data) for _ in range(ROUNDS)]
    found = min(runs, key=lambda run: run['seconds'])
    peer.choose_setup(d, scaled)
    reached = {}
    for rho in RHOS:
        n = peer.iterations_to(d, scaled, peer.tuned(rho), found['objective'], LIMIT)
        if n:
            reached[rho] = n
    what = f'one 100x100 image at {RATIO} of the largest beta to a gap of 1 %, against SPORCO `ConvBPDN` at its best rho, stopped at our objective'
    ours = f'{found["seconds"]:.2f} s, gap {100 * found["gap"]:.2g} %'
    target = 'a third of the time'
    # Where no rho gets there, the peer needs longer than the iterations it was given.
    rho = min(reached or RHOS, key=lambda rho: reached.get(rho, LIMIT))
    iterations, more = reached.get(rho, LIMIT), '' if reached else 'more than '
    theirs = min(peer.seconds_for(d, scaled, peer.tuned(rho), iterations) for _ in range(ROUNDS))
    share = found['seconds'] / theirs
    said = f'{more}{theirs:.2f} s (rho {rho:g}, {iterations} iterations)'
    return Row('dense', what, ours, said, f'{share:.2f}', target, share <= 1 / 3)


def channels() -> Row:
    """Many channels, as MEG has them, against alphacsc's `lgcd`: rank-1 atoms in noise, the atoms known."""
    rng = np.random.default_rng(0)
    shapes = np.hanning(ATOM) * np.sin(np.outer(rng.uniform(0.05, 0.4, ATOMS), np.arange(ATOM)) + rng.uniform(0, 6, (ATOMS, 1)))
    atoms = rng.standard_normal((ATOMS, CHANNELS, 1)) * shapes[:, None]
    atoms /= np.sqrt((atoms**2).sum((1, 2), keepdims=True))
    signal = rng.standard_normal((CHANNELS, LENGTH)) * 0.05
    for _ in range(3 * ATOMS):
        at, k = rng.integers(0, LENGTH - ATOM + 1), rng.integers(ATOMS)
        signal[:, at : at + ATOM] += rng.uniform(1, 3) * atoms[k]
    data = saved('channels', signal[None])
    largest = max(np.abs(sum(np.correlate(x, a, 'full') for x, a in zip(signal, atom))).max() for atom in atoms)
    beta = 0.2 * largest
    words = ['--axes', 'NCW', '--boundary', 'zero', '--beta', float(beta), '--size', ATOM, '--filters', ATOMS]
    model = wrap_channels(atoms, data, words)
    runs = [evaluate(model, data, 0.01, 2, '--axes', 'NCW') for _ in range(ROUNDS)]
    found = min(runs, key=lambda run: run['seconds'])
    what = f'{CHANNELS} channels x {LENGTH} values, {ATOMS} atoms of {ATOM}, against alphacsc `lgcd`'
    ours = f'{1e3 * found["seconds"]:.1f} ms, gap {100 * found["gap"]:.2g} %'
    child = subprocess.run(
        [sys.executable, __file__, 'channels', str(beta), str(1.001 * found['objective'])], capture_output=True, text=True
    )
    if child.returncode:
        return Row('channels', what, ours, 'alphacsc did not run', '', '50 times faster, certified', False)
    theirs = json.loads(child.stdout.splitlines()[-1])
    ratio = theirs['seconds'] / found['seconds']
    said = f'{1e3 * theirs["seconds"]:.0f} ms (tolerance {theirs["tol"]:g}, objective {theirs["objective"] / found["objective"]:.4f} of ours)'
    return Row('channels', what, ours, said, f'{ratio:.0f}', '50 times faster, certified', ratio >= 50 and found['gap'] <= 0.01)


def wrap_channels(atoms: np.ndarray, data, words):
    array, out = WORK / 'channels-atoms.npy', WORK / 'channels.safetensors'
    np.save(array, atoms.astype(np.float32))
    ocsc('learn', data, '--init', array, '--passes', 0, '--out', out, *words)
    return out


def try_channels(beta: float, level: float) -> dict:
    """Runs in the child: alphacsc at the largest tolerance that comes within 0.1 % of our objective."""
    from alphacsc.update_z_multi import update_z_multi

    atoms = np.load(WORK / 'channels-atoms.npy').astype(float)
    signal = np.load(WORK / 'channels.npy').astype(float)[0]
    padded = np.pad(signal, ((0, 0), (ATOM - 1, ATOM - 1)))[None]
    for tol in (3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3):
        times = []
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            z = update_z_multi(padded, atoms, beta, solver='lgcd', positive=False, solver_kwargs={'tol': tol})[0]
            times.append(time.perf_counter() - start)
        z = np.asarray(z)[0]
        made = sum(np.stack([np.convolve(z[k], atoms[k, c]) for c in range(CHANNELS)]) for k in range(ATOMS))
        objective = 0.5 * ((padded[0] - made) ** 2).sum() + beta * np.abs(z).sum()
        if objective <= level:
            break
    return {'seconds': min(times), 'tol': tol, 'objective': objective}


def signal() -> Row:
    """One long signal on one thread and on two: the ECG, repeated with other noise."""
    ecg = np.load(DATA / 'signals' / 'ecg_360hz.npy').astype(np.float64).ravel()
    long = np.resize((ecg - ecg.mean()) / ecg.std(), SIGNAL) + 0.05 * np.random.default_rng(0).standard_normal(SIGNAL)
    data, model = saved('long-signal', long[None]), WORK / 'long-signal.safetensors'
    part = saved('long-signal-part', long[None, :18000])
    words = ['--axes', 'NW', '--filters', pick(25, 5), '--size', 64, '--init', 'patches', '--boundary', 'zero', '--beta', 1.0]
    ocsc('learn', part, *words, '--passes', pick(10, 2), '--out', model)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for threads, times in seconds.items():
            times.append(evaluate(model, data, 0.01, threads, '--axes', 'NW')['seconds'])
    one, two = (min(seconds[n]) for n in (1, 2))
    what = f'two threads against one: coding one signal of {SIGNAL:,} values'
    return Row('threads-signal', what, f'{two:.2f} s', f'{one:.2f} s', f'{one / two:.2f}', '1.8', one / two >= 1.8)


def start() -> Row:
    """Seconds from the start of `ocsc learn` until it has learned from its first batch of one, of many small photos."""
    folder = WORK / f'photos-{PHOTOS}'
    if not folder.exists():
        folder.mkdir(parents=True)
        rng = np.random.default_rng(0)
        photo = np.asarray(Image.open(sorted(DATA.glob('flower/train/*'))[0]).convert('RGB'))
        for i in range(PHOTOS):
            y, x = rng.integers(0, photo.shape[0] - 128), rng.integers(0, photo.shape[1] - 128)
            Image.fromarray(photo[y : y + 128, x : x + 96 + i % 32]).save(folder / f'{i:05}.jpg', quality=90)
    first = []
    for _ in range(ROUNDS):
        log, model = WORK / 'start.jsonl', WORK / 'start.safetensors'
        for earlier in (log, model):
            earlier.unlink(missing_ok=True)
        begin = time.perf_counter()
        words = ['learn', folder, '--preset', 'paper', '--out', model, '--log', log, '--quiet']
        run = subprocess.Popen([str(word) for word in [RELEASE / 'ocsc', *words]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (log.exists() and '"step"' in log.read_text()) and run.poll() is None:
            time.sleep(0.005)
        seconds = time.perf_counter() - begin
        run.terminate()
        run.wait()
        if not (log.exists() and '"step"' in log.read_text()):
            raise RuntimeError(f'ocsc learn ended with {run.returncode} before its first step')
        first.append(seconds)
    what = f'from the start of `ocsc learn` to its first step, {PHOTOS:,} photos of different sizes'
    return Row('start', what, f'{min(first):.2f} s', '', '', '0.5 s', min(first) <= 0.5)


def main() -> None:
    Result(rows=[avx2(), dense(), channels(), signal(), start()]).save('limits')


if __name__ == '__main__':
    if len(sys.argv) > 1:
        print(json.dumps(try_channels(float(sys.argv[2]), float(sys.argv[3]))))
    else:
        main()
