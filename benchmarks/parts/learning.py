"""Rows: learning on Fruit against SPORCO's online learner and `ocsc-paper`; curves of test objective against time."""

from pathlib import Path

import numpy as np

from common import TEST, TRAIN, WIDE, WORK, Result, Row, Table, filters, initial, learn, ocsc, pick
from data import saved
from judge import judged
from peers import sporco_peer as peer
from peers.sporco_peer import Online

PASSES = pick(3, 1)
TIMES = 150 if WIDE else 80
ROUNDS = pick(2, 1)
BASE = Online(10.0, 20.0, 30, 10.0)
GRID = pick(
    [
        BASE,
        Online(10.0, 10.0, 30, 10.0),
        Online(20.0, 20.0, 30, 10.0),
        Online(10.0, 40.0, 30, 10.0),
        Online(10.0, 20.0, 15, 10.0),
        Online(10.0, 20.0, 60, 10.0),
        Online(10.0, 20.0, 30, 5.0),
        Online(10.0, 20.0, 30, 20.0),
    ],
    [BASE],
)
FRUIT = saved('fruit', np.load(TRAIN)[: pick(None, 2)])
Curve = list[tuple[float, float]]


def peer_course(settings: Online, samples: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Learning seconds and dictionary after every sample."""
    course = []
    peer.learn(settings, np.load(initial()), samples, PASSES, lambda _, seconds, d: course.append((seconds, d)))
    return course


def our_course(method: str, steps: int) -> list[np.ndarray]:
    """The dictionary after every sample: a run that a tiny time limit stops after each, and that is resumed, which by
    contract goes on exactly as the uninterrupted run that is timed."""
    model = WORK / f'steps-{method}.safetensors'
    start = ['--init', initial(), '--beta', 1, '--method', method, '--passes', PASSES, '--out', model]
    course = []
    for step in range(steps):
        ocsc('learn', FRUIT, *(start if step == 0 else ['--resume', model]), '--time-limit', 1e-9)
        course.append(filters(model))
    return course


def run_seconds(method: str, passes: int, out: Path) -> list[float]:
    """Learning seconds after every sample of an uninterrupted run."""
    log = learn(FRUIT, out, '--method', method, '--passes', passes)
    return [line['seconds'] for line in log if line['event'] == 'step']


def race(ours: Curve, theirs: Curve) -> tuple[float, float, float | None, float]:
    """The peer's lowest objective, when it had it, when we first had it or a lower one, and how many times sooner."""
    peer_seconds, level = min(theirs, key=lambda point: point[1])
    seconds = next((t for t, objective in ours if objective <= level), None)
    return level, peer_seconds, seconds, peer_seconds / seconds if seconds else 0.0


def tune(samples: np.ndarray) -> dict[Online, tuple[float, float]]:
    """Seconds and test objective of every setting after the pass where it stood best, judged after each pass."""
    found = {}
    for settings in GRID:
        course = peer_course(settings, samples)[len(samples) - 1 :: len(samples)]
        found[settings] = min(((s, judged(d, TEST)) for s, d in course), key=lambda point: point[1])
    return found


def main() -> None:
    samples = np.load(FRUIT)
    threads = peer.choose_setup(np.load(initial()), samples[0])
    grid = tune(samples)
    best = min(grid, key=lambda settings: grid[settings][1])

    fast, paper, slow = [], [], []
    for _ in range(ROUNDS):
        fast.append(run_seconds('ocsc', PASSES, WORK / 'fast.safetensors'))
        slow.append(peer_course(best, samples))
        paper.append(run_seconds('ocsc-paper', 1, WORK / 'paper.safetensors'))
    default = peer_course(Online(), samples)

    curves: dict[str, Curve] = {
        'SPORCO online, defaults': [(s, judged(d, TEST)) for s, d in default],
        'SPORCO online, best': [(min(run[i][0] for run in slow), judged(d, TEST)) for i, (_, d) in enumerate(slow[0])],
        'ocsc-paper': judged_curve('ocsc-paper', paper),
        'ocsc': judged_curve('ocsc', fast),
    }
    theirs = curves['SPORCO online, best']
    any_time = race(curves['ocsc'], theirs)
    whole_passes = race(curves['ocsc'], theirs[len(samples) - 1 :: len(samples)])
    level, peer_seconds, seconds, ratio = any_time
    one, one_paper = curves['ocsc'][len(paper[0]) - 1], curves['ocsc-paper'][-1]
    pass_ratio = one_paper[0] / one[0]
    Result(
        rows=[
            Row(
                'learn',
                f"learn on Fruit until the best test objective of SPORCO's online learner in {PASSES} passes "
                f'({level:.1f})',
                f'{seconds:.3f} s' if seconds else 'not reached',
                f'{peer_seconds:.1f} s (threads: {threads})',
                f'{ratio:.0f}',
                f'{TIMES} times faster',
                ratio >= TIMES,
            ),
            Row(
                'pass',
                'one pass over Fruit, against `ocsc-paper`',
                f'{one[0]:.2f} s, objective {one[1]:.1f}',
                f'{one_paper[0]:.1f} s, objective {one_paper[1]:.1f}',
                f'{pass_ratio:.0f}',
                '30 times faster, test objective lower',
                pass_ratio >= 30 and one[1] < one_paper[1],
            ),
        ],
        tables=[
            summary(curves),
            Table(
                "Time until SPORCO's lowest test objective",
                ['the lowest', 'test objective', 'SPORCO', '`ocsc`', 'ratio'],
                [
                    [name, f'{o:.1f}', f'{t:.1f} s', f'{u:.3f} s' if u else 'not reached', f'{r:.0f}']
                    for name, (o, t, u, r) in (
                        ('after any sample (the row of the first table)', any_time),
                        ('after a whole pass', whole_passes),
                    )
                ],
            ),
            Table(
                'SPORCO online: settings tried, best of the objectives after each pass, judged on the test set itself '
                "(in SPORCO's favour)",
                ['setting', 'test objective', 'seconds until then'],
                [[str(s), f'{o:.1f}', f'{t:.1f}'] for s, (t, o) in grid.items()],
            ),
        ],
        notes=[
            "Learning: the test objective of SPORCO's learner swings from sample to sample (see the curves). The row "
            "takes the lowest value after any sample, chosen by the test set itself, which is in SPORCO's favour; the "
            'lowest after a whole pass is given beside it.'
        ],
        curves=curves,
    ).save('learning')


def judged_curve(method: str, runs: list[list[float]]) -> Curve:
    """The least time of several runs and the judged test objective, after every sample."""
    dictionaries = our_course(method, len(runs[0]))
    return [(min(run[i] for run in runs), judged(d, TEST)) for i, d in enumerate(dictionaries)]


def summary(curves: dict[str, Curve]) -> Table:
    """Where each learner stands after its first pass and at its best."""
    lines = []
    for name, curve in curves.items():
        per_pass = len(curve) if name == 'ocsc-paper' else len(curve) // PASSES
        best = min(curve, key=lambda point: point[1])
        (t1, o1), passes = curve[per_pass - 1], len(curve) // per_pass
        lines.append([name, f'{o1:.1f} after {t1:.2f} s', f'{best[1]:.1f} after {best[0]:.2f} s', str(passes)])
    return Table(
        'Learning on Fruit: judged test objectives', ['', 'after one pass', 'at its best', 'passes made'], lines
    )


if __name__ == '__main__':
    main()
