"""One ADMM coding iteration, ours against SPORCO's `ConvBPDN`: same image, filters, rho, iterations, precision.

SPORCO runs with a fixed rho, with cached factors (HighMemSolve) and without computing its objective (FastSolve)."""

import json

import numpy as np

from common import RELEASE, THREADS, WORK, Result, Table, checked, feasible, pick
from peers import sporco_peer as peer

ITERATIONS, ROUNDS, SIDE, K, M = 50, pick(5, 2), 100, 100, 11


def main() -> None:
    rng = np.random.default_rng(0)
    # White noise smoothed to the 1/f fall of images; the cost of an iteration hardly depends on the data.
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE), indexing='ij'))
    image = np.fft.ifft2(np.fft.fft2(rng.standard_normal((SIDE, SIDE))) / (f + 0.05)).real.astype(np.float32)
    image /= image.std()
    filters = feasible(100 * rng.standard_normal((K, M, M)))
    paths = [WORK / 'admm-image.npy', WORK / 'admm-filters.npy']
    WORK.mkdir(parents=True, exist_ok=True)
    for path, array in zip(paths, (image, filters)):
        np.save(path, array)
    threads = peer.choose_setup(filters, image)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(1e3 * peer.seconds_for(filters, image, peer.tuned(10.0), ITERATIONS) / ITERATIONS)
        out = checked([RELEASE / 'examples' / 'admm_iteration', *paths, ITERATIONS]).stdout
        ours.append(json.loads(out)['ms_per_iteration'])
    ratio = min(theirs) / min(ours)
    print(
        f'SPORCO {min(theirs):.2f} ms, ocsc {min(ours):.2f} ms per iteration, ratio {ratio:.1f} '
        f'({SIDE}x{SIDE}, K={K}, {M}x{M})'
    )
    Result(
        tables=[
            Table(
                f'One ADMM iteration (the coder of `ocsc-paper`): {SIDE}x{SIDE}, K={K}, {M}x{M}',
                ['', 'ms per iteration'],
                [
                    [f'`ocsc` (threads: {THREADS})', f'{min(ours):.2f}'],
                    [f'{peer.NAME} `ConvBPDN` (threads: {threads}, the faster of one and two)', f'{min(theirs):.2f}'],
                    ['ratio', f'{ratio:.1f}'],
                ],
            )
        ]
    ).save('admm')


if __name__ == '__main__':
    main()
