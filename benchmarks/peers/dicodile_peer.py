"""DiCoDiLe: coding one image by locally greedy coordinate descent, in one process and with MPI workers, in float64.

Like alphacsc it lets no atom stick out; an image padded with m-1 zeros has exactly our `zero` boundary."""

import os

import numpy as np

# Open MPI refuses to start workers for root, as in a container, unless told twice.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')

from dicodile.update_z.coordinate_descent import coordinate_descent
from dicodile.update_z.dicod import dicod

from common import WORK

MAX_ITER = 10**7


def code(filters: np.ndarray, image: np.ndarray, beta: float, tol: float, workers: int) -> tuple[float, np.ndarray]:
    """Seconds by its own clock (starting workers excluded), and the code (K, H+m-1, W+m-1)."""
    padded = np.pad(image.astype(np.float64), filters.shape[1] - 1)[None]
    d = filters.astype(np.float64)[:, None]
    if workers == 1:
        z, _, _, _, statistics = coordinate_descent(padded, d, beta, tol=tol, max_iter=MAX_ITER)
    else:
        hosts = WORK / 'hosts'
        hosts.write_text(f'localhost slots={workers + 1}\n')
        z, _, _, _, statistics = dicod(
            padded, d, beta, tol=tol, max_iter=MAX_ITER, n_workers=workers, hostfile=str(hosts)
        )
    return float(statistics['runtime']), z
