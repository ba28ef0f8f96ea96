"""How long it takes from Ctrl-C to the end of the program: `python3 benchmarks/interrupt.py target/release/ocsc`.

Every command is interrupted in the middle of what takes long, at random moments, and must end with exit code 130. Needs no
package but Python's own; the data are made here.
"""

import argparse
import random
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = ['--filters', '100', '--size', '11', '--beta', '1', '--threads', '2']


def write_npy(path: Path, n: int, side: int, seed: int) -> None:
    """Writes noise with some structure as (n, side, side) in f32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, {side}, {side}), }}"
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    rng = random.Random(seed)
    pool = [rng.gauss(0, 1) for _ in range(1 << 16)]
    with path.open('wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
        for _ in range(n):
            start = rng.randrange(len(pool))
            values = [pool[(start + i * 7) % len(pool)] for i in range(side * side)]
            file.write(struct.pack(f'<{side * side}f', *values))


def interrupted(program: str, folder: Path, words: list[str], sign: str, delay: float) -> float:
    """Starts the program, waits for `sign` on stderr and a moment more, interrupts it, and returns the seconds to its end."""
    command = [program, *words]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seen = ''
    for line in child.stderr:
        seen += line
        if sign in line:
            break
    time.sleep(delay)
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    seen += child.communicate()[1]
    took = time.monotonic() - begun
    if child.returncode != 130:
        sys.exit(f'{" ".join(words)}: expected exit code 130, found {child.returncode}: {seen}')
    return took


def main() -> None:
    """Measures all commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('program')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--samples', type=int, default=4000)
    args = parser.parse_args()
    program = str(Path(args.program).resolve())
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_npy(folder / 'few.npy', 4, 64, 1)
        write_npy(folder / 'many.npy', args.samples, 64, 2)
        write_npy(folder / 'large.npy', 8, 512, 3)
        learn = [program, 'learn', 'few.npy', '--out', 'm.st', *SETTINGS]
        subprocess.run(learn, cwd=folder, check=True, capture_output=True)
        two = ['--threads', '2']
        out = ['--out', 'n.st', *SETTINGS]
        cases = [
            ('learn', ['learn', 'many.npy', *out], 'learning'),
            ('learn, samples of 512x512', ['learn', 'large.npy', '--tile', 'whole', *out], 'learning'),
            (f'learn --batch {args.samples}', ['learn', 'many.npy', '--batch', str(args.samples), *out], 'batch coded'),
            ('learn, in the test evaluation', ['learn', 'few.npy', '--test', 'many.npy', *out], 'testing'),
            ('evaluate', ['evaluate', 'm.st', 'many.npy', *two], 'evaluating'),
            ('code', ['code', 'm.st', 'many.npy', '--out', 'codes', *two], 'coding'),
        ]
        for title, words, sign in cases:
            times = []
            for _ in range(args.rounds):
                (folder / 'n.st').unlink(missing_ok=True)
                times.append(interrupted(program, folder, words, sign, rng.uniform(0, 0.5)))
            print(f'{title:32} median {statistics.median(times):.3f} s, longest {max(times):.3f} s')


if __name__ == '__main__':
    main()
