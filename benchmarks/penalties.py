"""What each penalty costs and gives: `python3 benchmarks/penalties.py target/release/ocsc`.

Learns a dictionary from the Fruit training images with the l1 norm, then codes images along a path of betas with every penalty.
EPS of log-sum, GAMMA of mcp and Q of lq are chosen on the City training images: the value with the fewest non-zeros at the PSNR of
the l1 norm at beta 1. The Fruit test images, which nothing was chosen on, give the figures. Times are processor seconds of coding
to a gap of 1 %, the least of several, in turn with those of the l1 norm. Needs no package but Python's own, and `../shared/data`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / 'shared/data'
BETAS = [0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0]
TRIED = {
    'l1': ['l1'],
    'elastic': ['elastic:0.1'],
    'log-sum': [f'log-sum:{eps}' for eps in (0.1, 0.3, 1, 3)],
    'mcp': [f'mcp:{gamma}' for gamma in (1.5, 3, 6)],
    'lq': [f'lq:{q}' for q in (0.2, 0.5, 0.8)],
}
REPEATS = 5


def run(program, *words):
    return json.loads(subprocess.run([program, *map(str, words), '--json'], check=True, capture_output=True, text=True).stdout)


def evaluate(program, model, data, penalty, beta):
    words = ['--penalty', penalty, '--beta', beta, '--tol', 0.01, '--threads', 1]
    return run(program, 'evaluate', model, data, *words)


def curve(program, model, data, penalty):
    """(PSNR, non-zeros) along the betas, by rising PSNR."""
    rows = [evaluate(program, model, data, penalty, beta) for beta in BETAS]
    return sorted((row['psnr'], row['nonzeros']) for row in rows)


def nonzeros_at(points, psnr):
    """The non-zeros of a curve at a PSNR, between its points; none beyond them."""
    for (low, a), (high, b) in zip(points, points[1:]):
        if low <= psnr <= high:
            return a + (b - a) * (psnr - low) / (high - low)
    return None


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else 'target/release/ocsc'
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, 'm.safetensors')
        run(program, 'learn', DATA / 'fruit/train_lcne.npy', '--preset', 'paper', '--passes', 3, '--out', model)
        choice, test = DATA / 'city/train_lcne.npy', DATA / 'fruit/test_lcne.npy'
        psnr = evaluate(program, model, choice, 'l1', 1.0)['psnr']
        chosen = {}
        for family, penalties in TRIED.items():
            found = [(nonzeros_at(curve(program, model, choice, penalty), psnr), penalty) for penalty in penalties]
            found = [pair for pair in found if pair[0] is not None]
            chosen[family] = min(found)[1] if found else penalties[0]
        print('chosen on City:', ', '.join(chosen.values()))
        curves = {family: curve(program, model, test, penalty) for family, penalty in chosen.items()}
        print('\nFruit test images: non-zeros per image at the PSNR that the l1 norm has at each beta')
        print('| PSNR (dB) | ' + ' | '.join(chosen.values()) + ' |')
        print('|---' * (len(chosen) + 1) + '|')
        for psnr, _ in curves['l1']:
            row = [nonzeros_at(points, psnr) for points in curves.values()]
            print(f'| {psnr:.2f} | ' + ' | '.join('-' if n is None else f'{n:.0f}' for n in row) + ' |')
        print('\nseconds of coding the four images to 1 % at beta 1, and as a multiple of the l1 norm')
        best = dict.fromkeys(chosen, float('inf'))
        for _ in range(REPEATS):
            for family, penalty in chosen.items():
                best[family] = min(best[family], evaluate(program, model, test, penalty, 1.0)['seconds'])
        for family, penalty in chosen.items():
            print(f'| {penalty} | {best[family]:.3f} | {best[family] / best["l1"]:.2f} |')


if __name__ == '__main__':
    main()
