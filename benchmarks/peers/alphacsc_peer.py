"""alphacsc: coding one signal with its locally greedy coordinate descent (`lgcd`), and learning, in float64, its only precision.

alphacsc lets no atom stick out of the signal. On a signal padded with m-1 zeros on both sides that is exactly the
`zero` boundary of the signal itself, and with `positive=False` exactly our objective."""

from dataclasses import dataclass

import numpy as np
from alphacsc.learn_d_z_multi import learn_d_z_multi
from alphacsc.update_z_multi import update_z_multi

from common import timed


def code(atoms: np.ndarray, signal: np.ndarray, beta: float, options: dict) -> tuple[float, np.ndarray]:
    """Seconds, and the code (K, n + m - 1) with positions shifted by m - 1, for atoms (K, m) and a signal (n)."""
    padded = np.pad(signal.astype(np.float64), atoms.shape[1] - 1)[None, None]
    d = atoms.astype(np.float64)[:, None]
    seconds, out = timed(lambda: update_z_multi(padded, d, beta, solver='lgcd', positive=False, solver_kwargs=options))
    return seconds, np.asarray(out[0])[0]


@dataclass(frozen=True)
class Learner:
    """Settings of `learn_d_z_multi` with `lgcd`: all samples in every iteration, or so many at random."""

    tol: float
    iterations: int
    batch: int | None = None
    alpha: float = 0.8

    def __str__(self) -> str:
        kind = 'all samples' if self.batch is None else f'online, {self.batch} at a time, alpha {self.alpha:g}'
        return f'{kind}, tolerance {self.tol:g}'


def learn(settings: Learner, atoms: np.ndarray, samples: np.ndarray, beta: float) -> list[tuple[float, np.ndarray]]:
    """Seconds by its own clock (its objectives excluded) and the atoms (K, m) after every iteration. Its codes are not negative."""
    margin = atoms.shape[1] - 1
    padded = np.pad(samples.astype(np.float64)[:, None], ((0, 0), (0, 0), (margin, margin)))
    online = {} if settings.batch is None else {'batch_size': settings.batch, 'alpha': settings.alpha}
    course: list[np.ndarray] = []
    _, times, _, _, _ = learn_d_z_multi(
        padded,
        *atoms.shape,
        n_iter=settings.iterations,
        reg=beta,
        rank1=False,
        algorithm='online' if online else 'batch',
        algorithm_params=online,
        solver_z='lgcd',
        solver_z_kwargs={'tol': settings.tol},
        D_init=atoms.astype(np.float64)[:, None],
        raise_on_increase=False,
        verbose=0,
        random_state=0,
        callback=lambda encoder, _: course.append(encoder.D_hat[:, 0].copy()),
    )
    # The first call is before the first iteration; two times for every iteration follow that of the start.
    seconds = np.cumsum(times)[2::2]
    return list(zip(map(float, seconds), course[1:], strict=True))
