"""The Python package beside its peers and beside the program: `python benchmarks/python.py [--quick] [--wheel FILE]`.

Prints tables for RESULTS.md. Run it with a Python that has the package (`pip install ./python`), requirements.txt and, for the
signals, alphacsc; the program must be built (`cargo build --release`). Settings and peers are those of run.py: each peer at its
best settings, taking turns with ours in one process, the minimum of a few rounds. What cannot run says so and is left out."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

QUICK = '--quick' in sys.argv
os.environ['OCSC_BENCH_QUICK'] = '1' if QUICK else '0'
for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'NUMBA_NUM_THREADS', 'RAYON_NUM_THREADS'):
    os.environ.setdefault(name, '2')

import numpy as np

import ocsc
from common import RELEASE, TEST, THREADS, TRAIN, WORK, Table, checked, initial, pick, timed
from data import crop, ecg, normalised, saved
from judge import judge

PROGRAM = Path(os.environ.get('OCSC_PROGRAM', RELEASE / 'ocsc'))
ROUNDS = pick(5, 2)
WITHIN = 1.001
RHOS = pick([5.0, 7.0, 10.0, 14.0], [10.0])
SIGNAL = pick(18000, 3600)
LARGE = pick((40, 500), (10, 200))
"""Images and their side, for memory."""

IMPORT = """import sys, time
import numpy
start = time.perf_counter()
import ocsc
print(time.perf_counter() - start, len([m for m in sys.modules if m.split('.')[0] in ('matplotlib', 'scipy', 'sklearn')]))"""

# In a process of its own, whose peak is its own: VmHWM begins anew with every program, unlike ru_maxrss.
MEMORY = """import sys, json
import numpy as np, ocsc
def kilobytes(name):
    return next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith(name))
path, filters, side = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X = np.load(path)
before = kilobytes('VmRSS')
ocsc.OnlineCSC(n_filters=filters, filter_shape=(side, side), beta=1.0, threads=2).fit(X)
print(json.dumps([1024 * (kilobytes('VmHWM') - before), 1024 * before, X.nbytes]))"""


def learned() -> np.ndarray:
    """The filters to code images with: three passes over Fruit from the common start."""
    start = np.load(initial())
    model = ocsc.OnlineCSC(*start.shape[:1], start.shape[1:], beta=1.0, init=start, passes=pick(3, 1), threads=THREADS)
    return model.fit(np.load(TRAIN)).filters_


def images() -> Table:
    """Coding one image after the other to a gap of 1 %, and SPORCO to within 0.1 % of our objectives."""
    from peers import sporco_peer as peer

    d, samples = learned(), np.load(TEST).astype(np.float32)

    def ours(x: np.ndarray) -> ocsc.Codes:
        return ocsc.code(x[None], d, 1.0, tol=0.01, threads=THREADS)

    targets = [WITHIN * judge(d, x, ours(x).to_dense()[0], 1.0)[0] for x in samples]
    threads = peer.choose_setup(d, samples[0])
    limit = pick(500, 150)
    counts = {rho: [peer.iterations_to(d, x, peer.tuned(rho), t, limit) for x, t in zip(samples, targets)] for rho in RHOS}
    reached = {rho: n for rho, n in counts.items() if None not in n}
    if not reached:
        raise RuntimeError(f'SPORCO did not come within 0.1 % in {limit} iterations at any rho of {RHOS}')
    rho = min(reached, key=lambda rho: sum(reached[rho]))
    fast, slow = [], []
    for _ in range(ROUNDS):
        fast.append(np.mean([timed(lambda: ours(x))[0] for x in samples]))
        slow.append(np.mean([peer.seconds_for(d, x, peer.tuned(rho), n) for x, n in zip(samples, reached[rho])]))
    return Table(
        f'Python: coding a Fruit test image, K = {len(d)}, {d.shape[1]}x{d.shape[2]}, beta = 1, float32',
        ['', 'ms per image', 'ratio'],
        [
            ['`ocsc.code`, gap 1 %', f'{1e3 * min(fast):.1f}', ''],
            [
                f'{peer.NAME} `ConvBPDN`, rho {rho:g}, {np.mean(reached[rho]):.0f} iterations (threads: {threads})',
                f'{1e3 * min(slow):.0f}',
                f'{min(slow) / min(fast):.0f}',
            ],
        ],
    )


def signals() -> Table:
    """Coding an ECG to a gap of 1 %, and alphacsc at the largest tolerance that comes within 0.1 % of our objective."""
    from peers import alphacsc_peer as peer

    X = np.load(ecg(SIGNAL))
    model = ocsc.OnlineCSC(
        pick(25, 5), 64, beta=1.0, init='patches', boundary='zero', passes=pick(10, 2), threads=THREADS
    ).fit(X)
    d, x = model.filters_, X[0]
    target = WITHIN * judge(d, x, model.transform(X).to_dense()[0], 1.0)[0]
    peer.code(d, x[:2000], 1.0, {})
    for tol in (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4):
        _, z = peer.code(d, x, 1.0, {'tol': tol})
        if judge(d, x, z, 1.0)[0] <= target:
            break
    else:
        raise RuntimeError('alphacsc did not come within 0.1 % at any tolerance')
    fast, slow = [], []
    for _ in range(pick(3, 2)):
        fast.append(timed(lambda: model.transform(X))[0])
        slow.append(peer.code(d, x, 1.0, {'tol': tol})[0])
    return Table(
        f'Python: coding {SIGNAL // 360} s of ECG with {len(d)} atoms of 64 values, beta = 1',
        ['', 'seconds', 'ratio'],
        [
            ['`model.transform`, gap 1 %, float32', f'{min(fast):.4f}', ''],
            [f'alphacsc `lgcd`, tolerance {tol:g}, float64', f'{min(slow):.3f}', f'{min(slow) / min(fast):.0f}'],
        ],
    )


def overhead() -> Table:
    """`fit` by the wall clock, conversions and history included, against the learning time that the program reports."""
    start, data, passes = np.load(initial()), saved('python-train', np.load(TRAIN)), pick(3, 1)
    X, out = np.load(data), WORK / 'python.safetensors'
    options = ['--init', initial(), '--beta', 1, '--passes', passes, '--threads', THREADS, '--out', out, '--json', '--quiet']
    fits, runs = [], []
    for _ in range(ROUNDS):
        model = ocsc.OnlineCSC(*start.shape[:1], start.shape[1:], beta=1.0, init=start, passes=passes, threads=THREADS)
        fits.append(timed(lambda: model.fit(X))[0])
        runs.append(json.loads(checked([PROGRAM, 'learn', data, *options]).stdout.splitlines()[-1])['seconds'])
    same = np.array_equal(ocsc.load(out).filters_, model.filters_)
    return Table(
        f'Python: `fit` against the program, {passes} passes over {len(X)} images',
        ['', 'seconds', 'more than the program'],
        [
            ['`ocsc learn`, learning time', f'{min(runs):.3f}', ''],
            ['`OnlineCSC.fit`, wall time', f'{min(fits):.3f}', f'{100 * (min(fits) / min(runs) - 1):+.1f} %'],
            ['the same filters, bit for bit', 'yes' if same else '**no**', ''],
        ],
    )


def memory() -> Table:
    """What a `fit` adds to the memory of a process that holds the array."""
    n, side = LARGE
    data = saved('python-large', np.stack([normalised(crop(i)[:side, :side] / 255.0) for i in range(n)]))
    filters, width = pick((100, 11), (20, 7))
    done = checked([sys.executable, '-c', MEMORY, data, filters, width])
    extra, before, size = json.loads(done.stdout)
    return Table(
        f'Python: peak memory of `fit`, {n} images of {side}x{side} in float32, K = {filters}',
        ['', 'MB', 'of the array'],
        [
            ['the array', f'{size / 1e6:.1f}', ''],
            ['the process before, with it', f'{before / 1e6:.1f}', ''],
            ['added by `fit`, at its peak', f'{extra / 1e6:.1f}', f'{100 * extra / size:.0f} %'],
        ],
    )


def start(wheel: Path | None) -> Table:
    """Import time after numpy's, and the size of the wheel."""
    runs = [checked([sys.executable, '-c', IMPORT]).stdout.split() for _ in range(ROUNDS)]
    lines = [['`import ocsc` after numpy', f'{1e3 * min(float(seconds) for seconds, _ in runs):.1f} ms']]
    lines.append(['modules of matplotlib, scipy or scikit-learn that it imports', runs[0][1]])
    if wheel is not None:
        lines.append([f'wheel `{wheel.name}`', f'{wheel.stat().st_size / 1e6:.2f} MB'])
    return Table('Python: import and size', ['', ''], lines)


def show(table: Table) -> None:
    rows = [table.header, ['---'] * len(table.header), *table.lines]
    print(f'## {table.title}\n\n' + '\n'.join(f'| {" | ".join(row)} |' for row in rows) + '\n', flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--quick', action='store_true', help='tiny sizes, to see that all works')
    parser.add_argument('--wheel', type=Path, help='a wheel whose size to give')
    parser.add_argument('--only', choices=['start', 'images', 'signals', 'overhead', 'memory'], action='append')
    args = parser.parse_args()
    parts = {
        'start': lambda: start(args.wheel),
        'images': images,
        'signals': signals,
        'overhead': overhead,
        'memory': memory,
    }
    failed = 0
    print(f'ocsc {ocsc.__version__}, numpy {np.__version__}, load {os.getloadavg()[0]:.1f} at the start\n', flush=True)
    for name in args.only or parts:
        try:
            show(parts[name]())
        except (ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            failed += 1
            print(f'{name}: not measured: {error}\n', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
