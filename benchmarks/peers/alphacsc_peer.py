"""alphacsc: coding one signal with its locally greedy coordinate descent (`lgcd`), in float64, its only precision.

alphacsc lets no atom stick out of the signal. On a signal padded with m-1 zeros on both sides that is exactly the
`zero` boundary of the signal itself, and with `positive=False` exactly our objective."""

import numpy as np
from alphacsc.update_z_multi import update_z_multi

from common import timed


def code(atoms: np.ndarray, signal: np.ndarray, beta: float, options: dict) -> tuple[float, np.ndarray]:
    """Seconds, and the code (K, n + m - 1) with positions shifted by m - 1, for atoms (K, m) and a signal (n)."""
    padded = np.pad(signal.astype(np.float64), atoms.shape[1] - 1)[None, None]
    d = atoms.astype(np.float64)[:, None]
    seconds, out = timed(lambda: update_z_multi(padded, d, beta, solver='lgcd', positive=False, solver_kwargs=options))
    return seconds, np.asarray(out[0])[0]
