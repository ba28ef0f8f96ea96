"""Writes RESULTS.md and curves.svg beside a results.json: `report.py results.json`."""

import json
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt

from misses import MISSES

ORDER = [
    'code',
    'learn',
    'pass',
    'units',
    'memory-learn',
    'memory-code',
    'memory-large',
    'pixels',
    'threads-batch',
    'threads-image',
    'threads-signal',
    'cifar',
    'ecg',
    'channels',
    'dense',
    'avx2',
    'start',
]
"""The rows, in the order of the figures to reach."""
PACKAGES = ['sporco', 'pyFFTW', 'scipy', 'alphacsc', 'dicodile', 'mpi4py']
COLOURS = {
    'SPORCO online, defaults': '#999999',
    'SPORCO online, best': '#d55e00',
    'alphacsc': '#d55e00',
    'DiCoDiLe': '#cc79a7',
    'ocsc-paper': '#0072b2',
    'ocsc': '#009e73',
}
PANELS = {
    'learning': 'Images: Fruit, 100 filters of 11x11, beta = 1',
    'signals': 'Signals: 50 s of ECG, 25 atoms of 64 values, codes >= 0',
}
"""The parts that are drawn, and what their panels are called."""


def table(header: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in [header, ['---'] * len(header), *lines])


def draw(parts: dict[str, dict], path: Path) -> None:
    """Test objective against learning time, on a logarithmic axis of time; a panel for images and one for signals."""
    # Without a date and with fixed ids the same figures give the same file.
    plt.rcParams.update({'svg.hashsalt': 'ocsc', 'font.size': 10})
    figure, all_axes = plt.subplots(1, len(parts), figsize=(6.5 * len(parts), 4.5), layout='constrained', squeeze=False)
    for axes, (name, part) in zip(all_axes[0], parts.items(), strict=True):
        for peer, points in part['curves'].items():
            axes.semilogx(*zip(*points), label=peer, color=COLOURS[peer], marker='.', linewidth=1.4)
        axes.set(xlabel='learning time in seconds', title=PANELS[name])
        objectives = [o for points in part['curves'].values() for _, o in points]
        lowest, highest = min(objectives), max(objectives)
        axes.set_ylim(lowest - 0.03 * (highest - lowest), min(highest * 1.002, lowest * 1.15))
        axes.grid(True, which='both', alpha=0.25)
        axes.legend()
    all_axes[0, 0].set_ylabel('objective on held-out data')
    figure.suptitle(f'{next(iter(parts.values()))["machine"]}; all begin with the same dictionary', fontsize=10)
    figure.savefig(path, metadata={'Date': None})


def versions() -> str:
    """Of the packages that are installed."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f'{name} {version(name)}')
        except PackageNotFoundError:
            found.append(f'{name} not installed')
    return ', '.join(found)


def main(results: Path) -> None:
    parts = json.loads(results.read_text())
    rows = {row['id']: row for part in parts.values() for row in part['rows']}
    lines, misses = [], []
    for row in (rows[name] for name in ORDER if name in rows):
        lines.append(
            [row['what'], row['ours'], row['peer'], row['ratio'], row['target'], 'met' if row['met'] else '**missed**']
        )
        if not row['met']:
            misses.append(f'- **{row["what"]}**: {MISSES.get(row["id"], "not explained yet.")}')
    quick = os.environ.get('OCSC_BENCH_QUICK') == '1'
    text = [
        '# A quick run: the sizes are too small to mean anything' if quick else '# Results',
        '',
        'Written by `python3 benchmarks/run.py`; [README.md](README.md) says how it measures and how to read this.',
        'K = 100 filters of 11x11, beta = 1, float32, circular boundary, two threads, unless said.',
        '',
        table(['what', 'ours', 'peer or comparison', 'ratio', 'target', ''], lines),
        '',
    ]
    if misses:
        text += ['Missed:', '', *misses, '']
    if drawn := {name: parts[name] for name in PANELS if parts.get(name, {}).get('curves')}:
        draw(drawn, results.with_name('curves.svg'))
        text += ['![Objective on held-out data against learning time](curves.svg)', '']
    for part in parts.values():
        for entry in part['tables']:
            text += [f'## {entry["title"]}', '', table(entry['header'], entry['lines']), '']
    notes = [note for part in parts.values() for note in part['notes']]
    text += [
        '## Notes',
        '',
        *(f'- {note}' for note in notes),
        f'- Versions: {versions()}.',
        '',
        '## Measured',
        '',
        table(
            ['part', 'date', 'commit', 'machine', 'Python', 'numpy', 'took'],
            [
                [name, p['date'], p['commit'], p['machine'], p['python'], p['numpy'], f'{p["took_seconds"]} s']
                for name, p in parts.items()
            ],
        ),
        '',
    ]
    results.with_name('RESULTS.md').write_text('\n'.join(text))


if __name__ == '__main__':
    main(Path(sys.argv[1]))
