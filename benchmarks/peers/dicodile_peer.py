"""DiCoDiLe: coding one image by locally greedy coordinate descent, in one process and with MPI workers, and learning, in float64.

Like alphacsc it lets no atom stick out; an image padded with m-1 zeros has exactly our `zero` boundary."""

import os

import numpy as np

# Open MPI refuses to start workers for root, as in a container, unless told twice.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')

import scipy.optimize.linesearch
from scipy.optimize._linesearch import scalar_search_armijo

# DiCoDiLe asks for a function where SciPy had it once.
scipy.optimize.linesearch.scalar_search_armijo = scalar_search_armijo

from dicodile import dicodile
from dicodile.update_z.coordinate_descent import coordinate_descent
from dicodile.update_z.dicod import dicod
from dicodile.update_z.distributed_sparse_encoder import DistributedSparseEncoder
from dicodile.utils.dictionary import get_lambda_max

from common import WORK

MAX_ITER = 10**7
CALLS = 8
"""How often a process may learn: MPI takes workers that have ended for workers still."""


def code(filters: np.ndarray, image: np.ndarray, beta: float, tol: float, workers: int) -> tuple[float, np.ndarray]:
    """Seconds by its own clock (starting workers excluded), and the code (K, H+m-1, W+m-1)."""
    padded = np.pad(image.astype(np.float64), filters.shape[1] - 1)[None]
    d = filters.astype(np.float64)[:, None]
    if workers == 1:
        z, _, _, _, statistics = coordinate_descent(padded, d, beta, tol=tol, max_iter=MAX_ITER)
    else:
        z, _, _, _, statistics = dicod(
            padded, d, beta, tol=tol, max_iter=MAX_ITER, n_workers=workers, hostfile=hosts(workers)
        )
    return float(statistics['runtime']), z


def hosts(workers: int) -> str:
    """A file that lets MPI start so many workers here, beside this process."""
    path = WORK / 'hosts'
    path.write_text(f'localhost slots={workers + 1}\n')
    return str(path)


def learn(
    filters: np.ndarray, samples: np.ndarray, beta: float, tol: float, iterations: int, nonnegative: bool
) -> list[tuple[float, np.ndarray]]:
    """Seconds by its own clock (the worker's start and its objectives excluded) and the filters after every iteration.

    It learns from one signal: the samples, each in a frame of zeros, in a row, which is the same problem."""
    margin = filters.shape[1] - 1
    row = np.concatenate([np.pad(x.astype(np.float64), margin) for x in samples])[None]
    d = filters.astype(np.float64)[:, None]
    largest = get_lambda_max(row, d).max()
    course: list[np.ndarray] = []
    keep = DistributedSparseEncoder.set_worker_D

    def noted(encoder, changed, *more):
        course.append(changed[:, 0].copy())
        return keep(encoder, changed, *more)

    DistributedSparseEncoder.set_worker_D = noted
    try:
        _, _, _, times = dicodile(
            row,
            d,
            reg=beta / largest,
            n_iter=iterations,
            z_positive=nonnegative,
            n_workers=1,
            tol=tol,
            hostfile=hosts(CALLS),
            random_state=0,
        )
    finally:
        DistributedSparseEncoder.set_worker_D = keep
    seconds = np.cumsum(times[1:])[1::2]
    return list(zip(map(float, seconds), course[-len(seconds) :], strict=True))
