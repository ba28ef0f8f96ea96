"""The neutral judge: recomputes objective and duality gap of exported codes by FFT, in f64, from the definition

    1/2 ||x - sum_k D_k * z_k||^2 + beta ||z||_1,         with z >= 0 where codes are not negative.

A dictionary is judged by the codes of the test set: any coder may make them, because the duality gap proves how far
they are from the best there are. The mathematics here share nothing with `ocsc`. Where the outside judge of the shared
folder is present, its number is the one reported, and this file must agree with it."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np

from common import SHARED, WORK, ocsc, wrap

TOL = 1e-4


def judge(
    d: np.ndarray, x: np.ndarray, z: np.ndarray, beta: float, nonnegative: bool = False
) -> tuple[float, float]:
    """Objective and duality gap of one code; d (K, axes...), x (axes...), z (K, axes...).

    A code of the sample's shape is circular: filters wrap around. A code larger by the filter's size minus one on each
    axis has the `zero` boundary: filters may stick out, and the outside is data equal to zero."""
    x, d, z = (np.asarray(a, np.float64) for a in (x, d, z))
    if z.shape[1:] != x.shape:
        # Padded by m-1 on every side nothing wraps around, and the positions of z are the first ones of the frame.
        margin = [(m - 1, m - 1) for m in d.shape[1:]]
        x = np.pad(x, margin)
    axes = tuple(range(-x.ndim, 0))
    d_f = np.fft.rfftn(d, x.shape, axes)
    r = x - np.fft.irfftn((d_f * np.fft.rfftn(z, x.shape, axes)).sum(0), x.shape, axes)
    c = np.fft.irfftn(d_f.conj() * np.fft.rfftn(r, x.shape, axes), x.shape, axes)
    c = c[(slice(None), *(slice(n) for n in z.shape[1:]))]
    primal = 0.5 * (r**2).sum() + beta * np.abs(z).sum()
    assert not nonnegative or z.min() >= 0
    largest = c.max() if nonnegative else np.abs(c).max()
    scale = beta / max(largest, beta)
    dual = scale * (x * r).sum() - 0.5 * scale**2 * (r**2).sum()
    return primal, primal - dual


def dense(path: Path) -> np.ndarray:
    """The code of a file as an array (K, axes...)."""
    code = np.load(path)
    z = np.zeros(code['shape'][[0, *range(-code['position'].shape[1], 0)]])
    z[(code['filter'], *code['position'].T)] = code['value']
    return z


def outside():
    """The `judge` of the shared folder (images, circular), or None."""
    path = SHARED / 'tools' / 'judge.py'
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location('outside_judge', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.judge


def judged_codes(
    d: np.ndarray, samples: np.ndarray, codes: Path, beta: float, nonnegative: bool = False
) -> tuple[float, float, list[float]]:
    """Mean objective, worst relative gap, and all objectives of a folder of codes."""
    found = []
    for x, path in zip(samples, sorted(codes.glob('*.npz')), strict=True):
        z = dense(path)
        primal, gap = judge(d, x, z, beta, nonnegative)
        if (neutral := outside()) and z.shape[1:] == x.shape and x.ndim == 2:
            theirs = neutral(d.astype(np.float64), x.astype(np.float64), z, beta)[:2]
            assert np.allclose(theirs, (primal, gap), rtol=1e-9, atol=1e-6 * primal), (theirs, primal, gap)
            primal, gap = theirs
        found.append((float(primal), float(gap / primal)))
    objectives = [o for o, _ in found]
    return float(np.mean(objectives)), max(g for _, g in found), objectives


def judged(dictionary: np.ndarray, data: Path, beta: float = 1.0, *problem: str) -> float:
    """The test objective of a dictionary (K, axes...): made feasible, coded to a gap below 0.01 %, recomputed here.

    `problem`: options that say what is solved besides, such as the boundary."""
    folder = WORK / 'judged'
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = wrap(dictionary, data, folder / 'model.safetensors', '--beta', beta, '--dtype', 'f64', *problem)
    ocsc('code', model, data, '--tol', TOL, '--out', folder / 'codes')
    d = np.load(model.with_suffix('.init.npy'))
    objective, gap, _ = judged_codes(d, np.load(data), folder / 'codes', beta, '--nonnegative' in problem)
    assert gap <= 1.01 * TOL, f'the codes are only certified to {gap:.1e}'
    return objective
