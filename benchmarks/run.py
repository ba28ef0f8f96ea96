"""The benchmark: `python3 benchmarks/run.py` makes its environment, builds `ocsc`, measures, writes RESULTS.md.

Needs Python 3.11 or later, cargo, and the data in ../shared/data (or OCSC_SHARED/data). Only the standard library here:
the parts run in benchmarks/.venv with the pinned versions of requirements.txt."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENV = HERE / '.venv'
PYTHON = VENV / ('Scripts' if os.name == 'nt' else 'bin') / 'python'
PARTS = ['coding', 'learning', 'signals', 'memory', 'scaling', 'cifar', 'admm', 'others', 'limits']
THREADS = '2'


def make_environment() -> None:
    """Installs what is pinned, once per change of the files; the optional peers may fail, and `others` then says so."""
    wanted = ''.join((HERE / f'requirements{kind}.txt').read_text() for kind in ('', '-optional'))
    stamp = VENV / 'installed.txt'
    if stamp.exists() and stamp.read_text() == wanted:
        return
    venv.create(VENV, with_pip=True)
    install = [PYTHON, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r']
    subprocess.run([*install, HERE / 'requirements.txt'], check=True)
    for line in (HERE / 'requirements-optional.txt').read_text().split():
        subprocess.run([*install[:-1], line], check=False)
    stamp.write_text(wanted)


def build() -> None:
    for target in (['-p', 'ocsc-cli'], ['-p', 'ocsc', '--example', 'admm_iteration']):
        subprocess.run(['cargo', 'build', '--release', '--quiet', *target], cwd=ROOT, check=True)


def processor() -> str:
    """The processor's name, as the system tells it."""
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        return next(line.split(':')[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def circumstances() -> dict:
    """When, where and of what: kept with every part."""
    git = ['git', '-C', ROOT]
    commit = subprocess.run([*git, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run(
        [*git, 'status', '--porcelain', '--', 'crates', 'Cargo.lock'], capture_output=True, text=True
    ).stdout
    return {
        'date': time.strftime('%Y-%m-%d'),
        'commit': commit + (' with changes' if changed else ''),
        'machine': f'{processor()}, {os.cpu_count()} cores',
        'python': platform.python_version(),
        'numpy': subprocess.run(
            [PYTHON, '-c', 'import numpy; print(numpy.__version__)'], capture_output=True, text=True, check=True
        ).stdout.strip(),
    }


def run_part(part: str, work: Path, environment: dict) -> dict:
    """Runs a part in a process of its own; its result with the circumstances added."""
    print(f'== {part}', flush=True)
    start = time.monotonic()
    where = circumstances()
    subprocess.run([PYTHON, HERE / 'parts' / f'{part}.py'], env=environment, check=True)
    seconds = time.monotonic() - start
    print(f'== {part}: {seconds:.0f} s', flush=True)
    return {**json.loads((work / f'{part}.json').read_text()), **where, 'took_seconds': round(seconds)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--only', choices=PARTS, action='append', help='run this part alone (may be repeated) and renew its figures'
    )
    parser.add_argument(
        '--quick', action='store_true', help='tiny sizes, to see that all works; leaves RESULTS.md as it is'
    )
    args = parser.parse_args()
    shared = Path(os.environ.get('OCSC_SHARED', ROOT.parent / 'shared'))
    if not (shared / 'data').is_dir():
        print(
            'the data are missing: expected shared/data beside the project, or OCSC_SHARED to name the folder shared',
            file=sys.stderr,
        )
        return 2
    make_environment()
    build()
    work = HERE / '.work' / ('quick' if args.quick else 'full')
    out = HERE / '.work' if args.quick else HERE
    # What an earlier run learned or made belongs to an earlier program.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    results = out / 'results.json'
    threads = {
        name: THREADS for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'NUMBA_NUM_THREADS', 'RAYON_NUM_THREADS')
    }
    environment = {**os.environ, **threads, 'OCSC_BENCH_QUICK': '1' if args.quick else '0', 'PYTHONPATH': str(HERE)}
    found = json.loads(results.read_text()) if args.only and results.exists() else {}
    for part in args.only or PARTS:
        found[part] = run_part(part, work, environment)
        found = {name: found[name] for name in PARTS if name in found}
        results.write_text(json.dumps(found, indent=1) + '\n')
    subprocess.run([PYTHON, HERE / 'report.py', results], env=environment, check=True)
    print(f'written: {os.path.relpath(out / "RESULTS.md")}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
