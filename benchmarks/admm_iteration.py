"""One ADMM coding iteration, ours against SPORCO's ConvBPDN: same image, filters, rho, iterations, precision, threads.

    pip install sporco==0.2.2.post1 numpy
    python3 benchmarks/admm_iteration.py

The two run in turn, several times; the minimum of each counts. SPORCO runs with a fixed rho and without computing its
objective (FastSolve)."""

import json
import os
import subprocess
import sys
import tempfile

THREADS, ITERATIONS, ROUNDS, SIDE, K, M = 2, 50, 5, 100, 100, 11
for name in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'RAYON_NUM_THREADS'):
    os.environ[name] = str(THREADS)

import time

import numpy as np
import sporco
from sporco.admm import cbpdn

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def peer(image, filters):
    """Milliseconds per iteration, construction excluded."""
    options = cbpdn.ConvBPDN.Options({
        'Verbose': False, 'FastSolve': True, 'MaxMainIter': ITERATIONS, 'RelStopTol': 0.0, 'rho': 10.0,
        'AutoRho': {'Enabled': False}, 'RelaxParam': 1.8, 'DataType': np.float32})
    solver = cbpdn.ConvBPDN(np.moveaxis(filters, 0, -1), image, 1.0, options)
    start = time.perf_counter()
    solver.solve()
    return (time.perf_counter() - start) * 1e3 / ITERATIONS


def main():
    subprocess.run(['cargo', 'build', '--release', '--quiet', '-p', 'ocsc', '--example', 'admm_iteration'],
                   cwd=ROOT, check=True)
    program = os.path.join(os.environ.get('CARGO_TARGET_DIR', os.path.join(ROOT, 'target')),
                           'release', 'examples', 'admm_iteration')
    rng = np.random.default_rng(0)
    # White noise smoothed to the 1/f fall of images; the cost of an iteration hardly depends on the data.
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE), indexing='ij'))
    image = np.fft.ifft2(np.fft.fft2(rng.standard_normal((SIDE, SIDE))) / (f + 0.05)).real.astype(np.float32)
    image /= image.std()
    filters = rng.standard_normal((K, M, M)).astype(np.float32)
    filters /= np.sqrt((filters**2).sum((1, 2), keepdims=True)) * (1 + 1e-6)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ('image.npy', 'filters.npy')]
        np.save(paths[0], image)
        np.save(paths[1], filters)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(peer(image, filters))
            out = subprocess.run([program, *paths, str(ITERATIONS)], check=True, capture_output=True, text=True)
            ours.append(json.loads(out.stdout)['ms_per_iteration'])
    print(f'{SIDE}x{SIDE}, K={K}, {M}x{M}, float32, {THREADS} threads, {ITERATIONS} iterations, minimum of {ROUNDS}')
    print(f'SPORCO {sporco.__version__} ConvBPDN  {min(theirs):7.3f} ms per iteration')
    print(f'ocsc admm                    {min(ours):7.3f} ms per iteration')
    print(f'ratio                        {min(theirs) / min(ours):7.2f}')


if __name__ == '__main__':
    sys.exit(main())
