"""What all parts share: where things are, how `ocsc` is run and timed, and how a result is recorded."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get('OCSC_SHARED', ROOT.parent / 'shared'))
DATA = SHARED / 'data'
RELEASE = Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target')) / 'release'
QUICK = os.environ.get('OCSC_BENCH_QUICK') == '1'
WORK = ROOT / 'benchmarks' / '.work' / ('quick' if QUICK else 'full')
THREADS = 2
TRAIN, TEST = DATA / 'fruit' / 'train_lcne.npy', DATA / 'fruit' / 'test_lcne.npy'
N_FILTERS, SIDE = (20, 7) if QUICK else (100, 11)

# Starts a command from a process that is itself small: a child's ru_maxrss is at least its parent's size at the fork.
LAUNCHER = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
sys.stderr.write(done.stderr)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(done.returncode)"""


WIDE = 'avx512_vnni' in (Path('/proc/cpuinfo').read_text() if Path('/proc/cpuinfo').exists() else '')
"""Whether the processor multiplies 8-bit numbers in vectors of 512 bits: targets were set for both kinds."""


def pick(full: Any, quick: Any) -> Any:
    """A setting of the full run, or its small stand-in under --quick."""
    return quick if QUICK else full


@dataclass
class Row:
    """One row of the table of figures to reach; `ratio` is what the target speaks of."""

    id: str
    what: str
    ours: str
    peer: str
    ratio: str
    target: str
    met: bool


@dataclass
class Table:
    """A table of details below the main one."""

    title: str
    header: list[str]
    lines: list[list[str]]


@dataclass
class Result:
    """What a part found."""

    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curves: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def save(self, part: str) -> None:
        """Leaves it for run.py, which adds when and where it was measured."""
        WORK.mkdir(parents=True, exist_ok=True)
        (WORK / f'{part}.json').write_text(json.dumps(asdict(self), indent=1, default=float))


def checked(command: list[Any]) -> subprocess.CompletedProcess:
    """Runs a command; a failure shows what the command said."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f'{" ".join(str(c) for c in command)}\n{done.stdout}{done.stderr}')
    return done


def ocsc(*args: Any, threads: int = THREADS) -> dict:
    """Runs the program with --json and returns what it printed."""
    done = checked([RELEASE / 'ocsc', *args, '--threads', threads, '--json', '--quiet'])
    return json.loads(done.stdout.splitlines()[-1])


def evaluate(model: Path, data: Path, tol: float = 0.01, threads: int = THREADS, *more: Any) -> dict:
    """`ocsc evaluate`; its `seconds` is the wall time of coding all samples, reading excluded."""
    return ocsc('evaluate', model, data, '--tol', tol, *more, threads=threads)


def learn(data: Path, out: Path, *more: Any, threads: int = THREADS) -> list[dict]:
    """`ocsc learn` from the common initial dictionary; the lines of its log, whose `seconds` is learning time only."""
    log = out.with_suffix('.jsonl')
    ocsc('learn', data, '--init', initial(), '--preset', 'paper', '--out', out, '--log', log, *more, threads=threads)
    return [json.loads(line) for line in log.read_text().splitlines()]


def wrap(dictionary: np.ndarray, data: Path, out: Path, *more: Any) -> Path:
    """A model file of a dictionary (K, axes...), made feasible; `data` only says what samples look like."""
    array = out.with_suffix('.init.npy')
    np.save(array, feasible(dictionary))
    ocsc('learn', data, '--init', array, '--passes', 0, '--out', out, *more)
    return out


def feasible(dictionary: np.ndarray) -> np.ndarray:
    """Filters divided by max(1, norm)."""
    norms = np.sqrt((dictionary.astype(np.float64) ** 2).sum(tuple(range(1, dictionary.ndim)), keepdims=True))
    return (dictionary / np.maximum(norms, 1.0)).astype(np.float32)


def filters(model: Path) -> np.ndarray:
    """The dictionary (K, axes...) of a model file of one channel."""
    return load_file(model)['dictionary'][:, 0]


def initial() -> Path:
    """The initial dictionary of every learner: Gaussian noise of unit norm, written once."""
    path = WORK / 'initial.npy'
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(0).standard_normal((N_FILTERS, SIDE, SIDE))
        np.save(path, feasible(noise * 100))
    return path


def learned() -> Path:
    """The model that coding is measured with: three passes of `ocsc` over Fruit."""
    path = WORK / 'learned.safetensors'
    if not path.exists():
        learn(TRAIN, path, '--passes', pick(3, 1))
    return path


def peak_memory(*args: Any) -> int:
    """Peak resident bytes of `ocsc` with these arguments."""
    launcher = [sys._base_executable, '-S', '-c', LAUNCHER]
    return int(checked([*launcher, RELEASE / 'ocsc', *args, '--quiet']).stdout)


def timed(work) -> tuple[float, Any]:
    """Wall seconds of a call, and what it returned."""
    start = time.perf_counter()
    out = work()
    return time.perf_counter() - start, out


def attempt(peer: str, script: str, *args: Any) -> tuple[Any, str]:
    """What a peer leaves in a file of its name when its script runs it in a process of its own; or nothing, and why."""
    out, limit = WORK / f'{peer}.json', pick(900, 90)
    out.unlink(missing_ok=True)
    try:
        done = subprocess.run(
            [sys.executable, script, peer, *map(str, args)], capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None, f'{peer}: not done after {limit} s.'
    if done.returncode == 0 and out.exists():
        return json.loads(out.read_text()), ''
    last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
    # Paths of this machine do not belong into a report.
    return None, f'{peer} did not run: `{re.sub(r"/[^ ]*/", "", "".join(last))}`.'
