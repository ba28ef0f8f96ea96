"""Curves: learning from an ECG beside alphacsc and DiCoDiLe. Codes are not negative, the only kind that alphacsc's learner has.

All start from the same pieces of the signal and learn from its first 50 s, cut into ten samples; the next 50 s judge. Each peer is tried
with several settings, and the one that is judged best stands for it: chosen by the test set itself, in the peer's favour. Each runs in a
process of its own: a peer that cannot be installed or fails is reported with its error."""

import json
import sys
from pathlib import Path

import numpy as np

from common import WORK, Result, Table, attempt, feasible, filters, ocsc, pick
from data import ecg, saved
from judge import judged

BETA = 1.0
ATOMS, LENGTH = pick((25, 64), (5, 32))
VALUES, PARTS = pick((18000, 10), (3600, 2))
PASSES = pick(10, 2)
ITERATIONS = pick(20, 2)
ROUNDS = pick(2, 1)
PROBLEM = ['--axes', 'NW', '--boundary', 'zero', '--nonnegative']
SETTINGS = ['--filters', ATOMS, '--size', LENGTH, '--beta', BETA, *PROBLEM]
Curve = list[tuple[float, float]]


def samples() -> tuple[Path, Path]:
    """What is learned from and what judges: parts of the signal, (N, n)."""
    halves = np.load(ecg(2 * VALUES)).reshape(2, PARTS, -1)
    return saved('ecg-train', halves[0]), saved('ecg-test', halves[1])


def start() -> Path:
    """The dictionary that all begin with: pieces of the signal."""
    signal, rng = np.load(WORK / 'ecg-train.npy').ravel(), np.random.default_rng(0)
    pieces = [signal[i : i + LENGTH] for i in rng.choice(signal.size - LENGTH, ATOMS, replace=False)]
    path = WORK / 'ecg-initial.npy'
    np.save(path, feasible(np.stack(pieces) * 1e3))
    return path


def course(train: Path, init: Path) -> list[tuple[float, np.ndarray]]:
    """Our learning seconds and dictionary after every sample: the least time of several runs, and one that is stopped after each."""
    model = WORK / 'ecg-learned.safetensors'
    begin = ['--init', init, *SETTINGS, '--passes', PASSES, '--out', model, '--force']
    runs = []
    for _ in range(ROUNDS):
        log = WORK / 'ecg.jsonl'
        ocsc('learn', train, *begin, '--log', log)
        lines = map(json.loads, log.read_text().splitlines())
        runs.append([line['seconds'] for line in lines if line['event'] == 'step'])
    found = []
    for step in range(len(runs[0])):
        ocsc('learn', train, *(begin if step == 0 else ['--axes', 'NW', '--resume', model]), '--time-limit', 1e-9)
        found.append((min(run[step] for run in runs), filters(model)))
    return found


def try_alphacsc() -> dict[str, list]:
    """Runs in the child: the courses of all settings."""
    from peers import alphacsc_peer as peer

    d, x = np.load(start()), np.load(WORK / 'ecg-train.npy')
    peer.learn(peer.Learner(1.0, 1), d[:2, :8], x[:2, :200], BETA)
    tries = [peer.Learner(tol, ITERATIONS) for tol in pick((1e-1, 1e-2, 1e-3), (1e-1,))]
    tries += [peer.Learner(tol, 4 * ITERATIONS, 1, alpha) for tol, alpha in pick(((1e-1, 0.8), (1e-2, 0.8), (1e-2, 0.95)), ())]
    return {str(settings): listed(peer.learn(settings, d, x, BETA)) for settings in tries}


def try_dicodile() -> dict[str, list]:
    """Runs in the child: the courses of all settings."""
    from peers import dicodile_peer as peer

    d, x = np.load(start()), np.load(WORK / 'ecg-train.npy')
    peer.learn(d[:2, :8], x[:2, :200], BETA, 0.1, 1, nonnegative=True)
    tols = pick((1e-2, 1e-3), (1e-2,))
    return {f'tolerance {tol:g}': listed(peer.learn(d, x, BETA, tol, ITERATIONS, nonnegative=True)) for tol in tols}


def listed(course: list[tuple[float, np.ndarray]]) -> list:
    """As JSON takes it."""
    return [[seconds, d.tolist()] for seconds, d in course]


TRIES = {'alphacsc': try_alphacsc, 'dicodile': try_dicodile}
NAMES = {'alphacsc': 'alphacsc', 'dicodile': 'DiCoDiLe'}


def main() -> None:
    train, test = samples()
    init = start()

    def curve(course: list) -> Curve:
        return [(float(seconds), judged(np.asarray(d), test, BETA, *PROBLEM)) for seconds, d in course]

    result = Result()
    lines = []
    found = {'ocsc': {f'{PASSES} passes': curve(course(train, init))}}
    for peer, name in NAMES.items():
        tries, why = attempt(peer, __file__)
        result.notes += [why] if why else []
        found[name] = {settings: curve(steps) for settings, steps in (tries or {}).items()}
    for name, tries in found.items():
        for settings, points in tries.items():
            seconds, objective = min(points, key=lambda point: point[1])
            lines.append([f'`{name}`' if name == 'ocsc' else name, settings, f'{objective:.1f}', f'{seconds:.2f} s'])
        if tries:
            result.curves[name] = min(tries.values(), key=lambda points: min(o for _, o in points))
    what = f'Learning from {VALUES // 360} s of ECG, {ATOMS} atoms of {LENGTH} values, codes not negative: the lowest judged test objective'
    result.tables.append(Table(what, ['', 'settings', 'test objective', 'after'], lines))
    result.notes.append(
        'ECG: each peer stands in the picture with the settings that the test set itself judged best. alphacsc and DiCoDiLe compute in '
        'float64; DiCoDiLe learns from the ten samples in a row, each in a frame of zeros, with one worker.'
    )
    result.save('signals')


if __name__ == '__main__':
    if len(sys.argv) > 1:
        (WORK / f'{sys.argv[1]}.json').write_text(json.dumps(TRIES[sys.argv[1]]()))
    else:
        main()
