"""SPORCO: coding one image with `ConvBPDN`, learning with `OnlineConvBPDNDictLearn`, at its defaults and tuned.

Whether SPORCO's optional numexpr helps depends on the machine (it computes float32 transforms in double precision), and
so does whether a second thread does: `choose_setup` measures, and the faster counts."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numexpr
import numpy as np
import sporco
import sporco.fft
import sporco.linalg
import sporco.prox._lp
from sporco.admm import cbpdn
from sporco.dictlrn import onlinecdl

from common import THREADS, timed

NAME = f'SPORCO {sporco.__version__}'
DEFAULT: dict = {}
"""No option but float32."""
NUMEXPR = {1: False, THREADS: False}
"""Whether numexpr is faster, by number of threads; `choose_setup` finds out."""


def tuned(rho: float) -> dict:
    """A fixed rho, over-relaxation, cached factors, and no time spent on statistics."""
    return {'rho': rho, 'AutoRho': {'Enabled': False}, 'RelaxParam': 1.8, 'FastSolve': True, 'HighMemSolve': True}


def use(threads: int, with_numexpr: bool) -> None:
    """Threads of the Fourier transforms and of numexpr, the only parts of SPORCO that use several."""
    sporco.fft.pyfftw_threads = threads
    numexpr.set_num_threads(threads)
    sporco.linalg.have_numexpr = sporco.prox._lp.have_numexpr = with_numexpr


def use_threads(threads: int) -> None:
    """So many threads, with numexpr if `choose_setup` found it faster with so many."""
    use(threads, NUMEXPR[threads])


def coder(filters: np.ndarray, image: np.ndarray, options: dict, **more) -> cbpdn.ConvBPDN:
    """A solver for one image (H, W) and filters (K, h, w), beta = 1; constructed, not run."""
    opts = cbpdn.ConvBPDN.Options({**copy.deepcopy(options), 'Verbose': False, 'DataType': np.float32, **more})
    return cbpdn.ConvBPDN(np.moveaxis(filters, 0, -1), image, 1.0, opts)


def objective(solver: cbpdn.ConvBPDN) -> float:
    """The objective of the sparse variable Y (SPORCO reports a mixture of X and Y), from its own transforms."""
    y_f = sporco.fft.rfftn(solver.Y, None, solver.cri.axisN)
    image_f = (solver.Df * y_f).sum(solver.cri.axisM, keepdims=True) - solver.Sf
    residual = sporco.fft.irfftn(image_f, solver.cri.Nv, solver.cri.axisN).astype(np.float64)
    return 0.5 * float((residual**2).sum()) + float(np.abs(solver.Y).sum(dtype=np.float64))


def iterations_to(filters: np.ndarray, image: np.ndarray, options: dict, target: float, limit: int) -> int | None:
    """The first iteration whose objective is at most `target`, or None if none up to `limit` is."""
    reached = []

    def look(solver: cbpdn.ConvBPDN) -> bool:
        if objective(solver) <= target:
            reached.append(solver.k + 1)
        return bool(reached)

    coder(filters, image, options, Callback=look, MaxMainIter=limit, RelStopTol=0.0).solve()
    return reached[0] if reached else None


def seconds_for(filters: np.ndarray, image: np.ndarray, options: dict, iterations: int) -> float:
    """Wall time of so many iterations, construction excluded."""
    solver = coder(filters, image, options, MaxMainIter=iterations, RelStopTol=0.0)
    return timed(solver.solve)[0]


@dataclass(frozen=True)
class Online:
    """Settings of the online learner; None for rho means SPORCO's default coder."""

    eta_a: float = 10.0
    eta_b: float = 5.0
    iterations: int = 100
    rho: float | None = None
    batch: int = 1

    def __str__(self) -> str:
        if self == Online():
            return 'defaults'
        return f'{self.iterations} iterations, eta {self.eta_a:g}/({self.eta_b:g}+t), rho {self.rho:g}' + (
            f', batch {self.batch}' if self.batch > 1 else ''
        )

    def options(self) -> onlinecdl.OnlineConvBPDNDictLearn.Options:
        base = {'Verbose': False, 'DataType': np.float32, 'eta_a': self.eta_a, 'eta_b': self.eta_b}
        if self.rho is None:
            return onlinecdl.OnlineConvBPDNDictLearn.Options({**base, 'CBPDN': {'DataType': np.float32}})
        coding = {**tuned(self.rho), 'MaxMainIter': self.iterations, 'RelStopTol': 0.0, 'DataType': np.float32}
        return onlinecdl.OnlineConvBPDNDictLearn.Options({**base, 'CBPDN': coding})


def learn(
    settings: Online,
    initial: np.ndarray,
    samples: np.ndarray,
    passes: int,
    each: Callable[[int, float, np.ndarray], None],
) -> None:
    """Visits the samples in a new seeded order in every pass; `each` gets samples seen, learning seconds, dictionary.

    The seconds are SPORCO's own `solve_wo_eval`: no statistics, no construction."""
    learner = onlinecdl.OnlineConvBPDNDictLearn(
        np.moveaxis(initial, 0, -1), 1.0, settings.options(), dimK=1 if settings.batch > 1 else 0
    )
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(passes):
        order = rng.permutation(len(samples))
        for start in range(0, len(order), settings.batch):
            batch = np.moveaxis(samples[order[start : start + settings.batch]], 0, -1)
            learner.solve(np.ascontiguousarray(batch if settings.batch > 1 else batch[..., 0]))
            seen += batch.shape[-1]
            each(seen, learner.timer.elapsed('solve_wo_eval'), np.moveaxis(learner.getdict().squeeze(), -1, 0).copy())


def choose_setup(filters: np.ndarray, image: np.ndarray) -> int:
    """Plans the Fourier transforms, so that no measurement pays for it; sets and returns the fastest thread count."""
    seconds = {}
    for threads in (1, THREADS):
        for with_numexpr in (False, True):
            use(threads, with_numexpr)
            seconds_for(filters, image, tuned(10.0), 3)
            runs = [seconds_for(filters, image, tuned(10.0), 10) for _ in range(3)]
            seconds[threads, with_numexpr] = min(runs)
        NUMEXPR[threads] = seconds[threads, True] < seconds[threads, False]
    fastest = min(seconds, key=seconds.__getitem__)[0]
    use_threads(fastest)
    return fastest
