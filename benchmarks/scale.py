"""How `ocsc-mpi` scales: `python3 benchmarks/scale.py PART...`, with the parts below, or all of them; prints the tables of docs/scale.md.

    constants   seconds per image and per update, bytes per step, on one process and two
    link        two processes on two hosts that a limited link joins (network namespaces; needs root)
    price       samples that batches of 1 to 256 need to reach the same objective, by forgetting exponent
    predict     efficiency to 1,000 processes, from the constants

Figures are kept in scale.json, so that parts can be measured one by one, and `predict` printed again. Needs no packages, a release
build (`cargo build --release -p ocsc-cli -p ocsc-mpi`), mpirun, and the data in ../shared/data. All runs: 100 filters of 11x11, beta = 1,
one thread for each process, the minimum of a few rounds that take turns.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from link import Link

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get('OCSC_SHARED', ROOT.parent / 'shared')) / 'data'
RELEASE = Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target')) / 'release'
KEPT = Path(__file__).resolve().parent / 'scale.json'
ROUNDS = 3

SETS = {
    'CIFAR-10, 32x32': [f'{DATA}/cifar10/data_batch_small.bin', '--limit', '512'],
    'Dog, 224x224': [f'{DATA}/dog', '--resize', '224', '--crop', '224'],
    'Flower, 500x500': [f'{DATA}/flower/train', '--resize', '500', '--crop', '500', '--limit', '16'],
}
BATCHES = {'CIFAR-10, 32x32': (8, 64, 256), 'Dog, 224x224': (2, 8, 24), 'Flower, 500x500': (2, 8, 16)}
"""Small, middle and large; links are measured with the middle one."""

LINKS = [(1, 0.1), (1, 1), (10, 0.1), (10, 1)]
UNITS = {'B': 1, 'kB': 1e3, 'MB': 1e6, 'GB': 1e9, 'TB': 1e12}
ENVIRONMENT = {
    **os.environ,
    'OMPI_ALLOW_RUN_AS_ROOT': '1',
    'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
    'OMPI_MCA_btl_vader_single_copy_mechanism': 'none',
}


def words(data: list[str], batch: int, out: Path) -> list[str]:
    """`ocsc-mpi learn`."""
    common = ['--beta', '1', '--threads', '1', '--json', '--out', str(out), '--log', str(out.with_suffix('.jsonl'))]
    return [str(RELEASE / 'ocsc-mpi'), 'learn', *data, '--batch', str(batch), *common]


def figures(done: subprocess.CompletedProcess, out: Path) -> dict[str, float]:
    """Learning time, steps, traffic and non-zeros per image of a run."""
    result = json.loads(done.stdout.splitlines()[-1])
    told = re.search(r'processes: ([0-9.]+) (\w+) received by rank 0 in (\d+) collective .*, ([0-9.]+) s in them', done.stderr)
    number, unit, calls, waiting = told.groups() if told else ('0', 'B', '0', '0')
    traffic = {'bytes': float(number) * UNITS[unit], 'calls': int(calls), 'communicating': float(waiting)}
    steps = [json.loads(line) for line in out.with_suffix('.jsonl').read_text().splitlines()]
    nonzeros = [record['nonzeros'] for record in steps if record['event'] == 'step']
    mean = sum(nonzeros) / len(nonzeros)
    return {'seconds': result['seconds'], 'steps': result['steps'], 'samples': result['samples'], 'nonzeros': mean, **traffic}


def local(ranks: int, data: list[str], batch: int, out: Path) -> dict[str, float]:
    """A run by processes of this machine."""
    mpirun = ['mpirun', '-n', str(ranks), *words(data, batch, out)]
    return figures(subprocess.run(mpirun, check=True, capture_output=True, text=True, env=ENVIRONMENT), out)


def fastest(runs: list[dict[str, float]]) -> dict[str, float]:
    """The run with the shortest learning time."""
    return min(runs, key=lambda run: run['seconds'])


def constants(out: Path) -> dict:
    """For every set and batch, one process and two in turn."""
    measured = {}
    for name, data in SETS.items():
        measured[name] = {}
        for batch in BATCHES[name]:
            runs = {1: [], 2: []}
            for _ in range(ROUNDS):
                for ranks, kept in runs.items():
                    kept.append(local(ranks, data, batch, out))
            measured[name][str(batch)] = {str(ranks): fastest(kept) for ranks, kept in runs.items()}
            print(name, batch, measured[name][str(batch)], flush=True)
    return measured


def link(out: Path) -> dict:
    """Two processes on two hosts, by the link between them, at the middle batch."""
    os.environ.update(ENVIRONMENT)
    measured = {}
    for gbit, delay in LINKS:
        with Link(gbit, delay, out.parent) as joined:
            for name, data in SETS.items():
                batch = BATCHES[name][1]
                run = fastest([figures(joined.mpirun(words(data, batch, out)), out) for _ in range(2)])
                measured.setdefault(name, {})[f'{gbit} {delay}'] = {**run, 'how': joined.how}
                print(name, gbit, delay, run, flush=True)
    return measured


PRICE = {'passes': 2, 'test': 100, 'batches': [1, 4, 16, 64, 256], 'exponents': [1, 2, 3, 5, 8, 12, 20]}
RECORD = 3073
"""Bytes of an image in a CIFAR-10 file."""


def price(out: Path) -> dict:
    """The test objective along runs over the 2,000 images of CIFAR-10, by batch and exponent."""
    cifar, test = DATA / 'cifar10', out.parent / 'test.bin'
    test.write_bytes((cifar / 'test_batch_small.bin').read_bytes()[: PRICE['test'] * RECORD])
    # These do not depend on the machine: what is kept is not measured again.
    measured = json.loads(KEPT.read_text()).get('price', {}) if KEPT.exists() else {}
    missing = [(b, e) for b in PRICE['batches'] for e in PRICE['exponents'] if f'{b} {e}' not in measured]
    for batch, exponent in missing:
        log = out.parent / 'run.jsonl'
        every = max(64, batch)
        command = [RELEASE / 'ocsc', 'learn', cifar / 'data_batch_small.bin', '--batch', batch, '--forgetting', exponent]
        command += ['--beta', 1, '--test', test, '--test-every', every, '--passes', PRICE['passes']]
        command += ['--log', log, '--out', out, '--quiet', '--strict']
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        records = map(json.loads, log.read_text().splitlines())
        curve = [(r['samples'], round(r['test_objective'], 3)) for r in records if r.get('test_objective') and r['event'] == 'step']
        measured[f'{batch} {exponent}'] = curve
        print(batch, exponent, curve[-1], flush=True)
    return measured


def table(header: list[str], lines: list[list[str]]) -> None:
    """Prints Markdown."""
    for line in [header, ['---'] * len(header), *lines]:
        print('| ' + ' | '.join(line) + ' |')
    print()


PHI = 724 * 8 * 21 * 21
"""Numbers of phi for 100 filters of 11x11: blocks of 8 filters, with all lags for each."""
PAIR = 29e-9
"""Seconds to add one pair of atoms to phi: `cargo bench -p ocsc --bench kernels -- lags`, 3.0 ms for 105,000 pairs."""
RANKS = (2, 8, 64, 256, 1000)
SMALL = 'CIFAR-10, 32x32'


class Model:
    """Seconds of a step, by the number of processes, their images, and the network."""

    def __init__(self, kept: dict, name: str):
        runs, batches = kept['constants'][name], BATCHES[name]
        middle = runs[str(batches[1])]['1']
        pixels = math.prod(map(int, name.split(', ')[1].split('x')))
        atoms = middle['nonzeros']
        self.pairs = atoms * atoms / 2 * 21 * 21 / pixels
        self.code_bytes = 12 * atoms + 60
        # A step besides its images is the same for all sets; small images tell it best. The first two batches send codes, the last
        # sums, which are also made and added.
        first, second, third = (kept['constants'][SMALL][str(batch)]['1'] for batch in BATCHES[SMALL])
        self.update = (first['seconds'] - second['seconds']) / (first['steps'] - second['steps'])
        image = (second['seconds'] - second['steps'] * self.update) / second['samples']
        self.update_summed = max(self.update, (third['seconds'] - third['samples'] * image) / third['steps'])
        besides = self.update_summed if self.is_summed(batches[1]) else self.update
        self.image = (middle['seconds'] - middle['steps'] * besides) / middle['samples']
        self.pixel = self.image / pixels

    def is_summed(self, batch: float) -> bool:
        """Whether sums of phi travel, and not codes."""
        return batch * self.pairs > PHI / 2

    def one(self, batch: float) -> float:
        """A step of one process."""
        return batch * self.image + (self.update_summed if self.is_summed(batch) else self.update)

    def step(self, ranks: int, share: float, rate: float, delay: float) -> float:
        """A step of so many processes with `share` images each, over a network of so many bytes per second, and this delay."""
        batch, hops = ranks * share, 2 * math.ceil(math.log2(ranks))
        if self.is_summed(batch):
            return share * self.image + self.update_summed + 16 * PHI * (1 - 1 / ranks) / rate + 12 * hops * delay
        # Everybody makes phi of all codes.
        others = (batch - share) * (self.pairs * PAIR + self.code_bytes / rate)
        return share * self.image + self.update + others + 5 * hops * delay

    def efficiency(self, ranks: int, share: float, rate: float, delay: float) -> float:
        """What a process achieves of what it would alone, at the same batch."""
        return self.one(ranks * share) / ranks / self.step(ranks, share, rate, delay)


def report(kept: dict) -> None:
    """Prints what was measured, and what follows."""
    if 'constants' in kept:
        lines = []
        for name in SETS:
            m = Model(kept, name)
            where = math.ceil(PHI / 2 / m.pairs)
            codes = f'{m.code_bytes / 1e3:.1f} kB'
            lines.append([name, f'{1e3 * m.image:.1f} ms', f'{1e6 * m.pixel:.2f} us', codes, f'{m.pairs:,.0f}', f'{where}'])
        table(['', 'an image', 'per pixel', 'its code', 'pairs of atoms', 'sums from batch'], lines)
        print(f'A step besides: {1e3 * m.update:.1f} ms with codes, {1e3 * m.update_summed:.1f} ms with sums.\n')
        lines = []
        for name in SETS:
            for batch in BATCHES[name][1:]:
                run = kept['constants'][name][str(batch)]
                one, two = run['1'], run['2']
                ratio = one['seconds'] / two['seconds']
                traffic = f'{two["bytes"] / two["steps"] / 1e6:.2f} MB'
                lines.append([name, str(batch), f'{one["seconds"]:.3f}', f'{two["seconds"]:.3f}', f'{ratio:.2f}', traffic])
        table(['', 'batch', 'one process, s', 'two, s', 'times faster', 'received per step'], lines)
    if 'link' in kept:
        lines = []
        for name in SETS:
            one = kept['constants'][name][str(BATCHES[name][1])]
            row = [f'{name}, batch {BATCHES[name][1]}', f'{one["1"]["seconds"] / one["2"]["seconds"] / 2:.0%}']
            m = Model(kept, name)
            for gbit, delay in LINKS:
                seconds = kept['link'][name][f'{gbit} {delay}']['seconds']
                said = m.efficiency(2, BATCHES[name][1] / 2, gbit * 1e9 / 8, delay / 1e3)
                row.append(f'{one["1"]["seconds"] / seconds / 2:.0%} ({said:.0%})')
            lines.append(row)
        table(['efficiency of two processes', 'one machine', *(f'{g} Gbit/s, {d} ms' for g, d in LINKS)], lines)
    if 'price' in kept:
        price_table(kept['price'])
    if 'constants' in kept:
        predict(kept)


def price_table(curves: dict) -> None:
    """Samples until an objective that batches of one reach, with the best exponent of each batch."""

    def needed(curve: list, target: float) -> float:
        return next((samples for samples, objective in curve if objective <= target), math.inf)

    ones = [curves[f'1 {e}'] for e in PRICE['exponents'] if f'1 {e}' in curves]
    best = min(ones, key=lambda curve: curve[-1][1])
    for share, what in [(1 / 6, 'a sixth'), (1 / 2, 'half'), (1, 'all')]:
        target = min(objective for samples, objective in best if samples <= share * best[-1][0])
        lines, least_of_one = [], None
        for batch in PRICE['batches']:
            counts = {e: needed(curves[f'{batch} {e}'], target) for e in PRICE['exponents'] if f'{batch} {e}' in curves}
            if not counts:
                continue
            e = min(counts, key=counts.get)
            least_of_one = least_of_one or counts[e]
            reached = math.isfinite(counts[e])
            least = [f'{counts[e]:,}', str(e), f'{counts[e] / least_of_one:.1f}'] if reached else ['not reached', '', '']
            last = {e: curves[f'{batch} {e}'][-1][1] for e in counts}
            e = min(last, key=last.get)
            lines.append([str(batch), *least, f'{last[e]:.2f} ({e})'])
        header = ['batch', f'samples to {target:.2f}', 'best exponent', 'times those of batch 1', 'at the end (best exponent)']
        print(f'Target: what batch 1 reaches in {what} of {best[-1][0]:,} samples.\n')
        table(header, lines)


def predict(kept: dict) -> None:
    """Efficiency to 1,000 processes, and the least images per process for 90 %."""
    for gbit, delay in [(10, 0.1), (1, 1)]:
        rate, seconds = gbit * 1e9 / 8, delay / 1e3
        lines, least = [], []
        for name in SETS:
            m = Model(kept, name)
            for share in (1, 4, 16, 64):
                cells = [f'{m.efficiency(ranks, share, rate, seconds):.0%}' for ranks in RANKS]
                lines.append([f'{name}, {share} per process', *cells])
            row = []
            for ranks in RANKS:
                shares = (share for share in range(1, 5000) if m.efficiency(ranks, share, rate, seconds) >= 0.9)
                row.append(str(next(shares, 'never')))
            least.append([name, *row])
        network = f'{gbit} Gbit/s, {delay} ms'
        table([f'predicted efficiency, {network}', *map(str, RANKS)], lines)
        table([f'images per process for 90 %, {network}', *map(str, RANKS)], least)


def main() -> None:
    """Measures the parts asked for, keeps them, and prints all tables."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    parts = sys.argv[1:] or ['constants', 'link', 'price', 'predict']
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            if part != 'predict':
                kept[part] = {'constants': constants, 'link': link, 'price': price}[part](Path(folder) / 'model.safetensors')
                KEPT.write_text(json.dumps(kept) + '\n')
    report(kept)


if __name__ == '__main__':
    main()
