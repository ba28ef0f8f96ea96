"""Dictionaries of a local field potential: ours beside alphacsc's.

    cargo build --release && python benchmarks/lfp.py [--program target/release/ocsc] [--threads 1] [--quick]

The first 50,000 values of the recording from the striatum, minus their mean, divided by their standard deviation. Both learn 10 atoms
of 128 values with non-negative codes, alphacsc's only kind, at lambda 5.65, from 10 parts of 5,000 values. Both start from the same
patches of the data, drawn by the seed. alphacsc's online learner takes all parts at once (`batch_size=10`), 60 times, its default.

Each dictionary is judged by the whole signal: filters divided by max(1, norm), coded by `ocsc code` in f64 to a gap of 0.01 % with the
boundary `free`; numpy then recomputes the objective from the exported codes. `free` lets atoms stick out of the signal and alphacsc does
not, so the script stops if an atom of these codes does: then both problems have the same objective.

Printed for each seed and learner: that objective, its relative gap as the coder states it, and processor seconds of learning,
compilation and reading excluded, so that a busy machine changes little. The objective depends on the start more than on the learner:
read all seeds, not the best.

numpy, safetensors, alphacsc 0.4.1 with numpy below 2 (its learner fails with numpy 2.4), and `../shared/data`.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
from safetensors.numpy import load_file

DATA = pathlib.Path(__file__).resolve().parents[2] / "shared/data/signals/lfp_striatum.npy"
VALUES, PARTS, ATOMS, LENGTH, LAMBDA = 50_000, 10, 10, 128, 5.65
SEEDS = [0, 1, 2, 3, 4]
PASSES = [5, 10]


def signal():
    values = np.load(DATA)[0, :VALUES].astype(np.float64)
    return (values - values.mean()) / values.std()


def patches(x, seed):
    """Where both start: pieces of the signal (10, 128) of norm 1."""
    starts = np.random.default_rng(seed).choice(VALUES - LENGTH, ATOMS, replace=False)
    found = np.stack([x[start : start + LENGTH] for start in starts])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def learn(program, x, init, folder, *words):
    """A model file of `ocsc learn`."""
    data, start, model = folder / "signal.npy", folder / "init.npy", folder / "model.safetensors"
    np.save(data, x[None])
    np.save(start, init)
    call = f"learn {data} --axes CW --init {start} --filters {ATOMS} --size {LENGTH} --beta {LAMBDA} --boundary free --nonnegative"
    call += f" --out {model} --force --quiet"
    subprocess.run([program, *call.split(), *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return model


def ours(program, threads, x, init, passes, folder):
    """Atoms of `ocsc learn`, and its seconds of learning."""
    log = folder / "run.jsonl"
    log.unlink(missing_ok=True)
    words = ["--window", VALUES // PARTS, "--passes", passes, "--threads", threads, "--log", log]
    model = learn(program, x, init, folder, *words)
    return load_file(model)["dictionary"].reshape(ATOMS, LENGTH), json.loads(log.read_text().splitlines()[-1])["cpu_seconds"]


def alphacsc(x, init, iterations, threads):
    """Atoms of alphacsc's online learner, and its seconds."""
    from alphacsc import OnlineCDL

    learner = OnlineCDL(
        n_atoms=ATOMS, n_times_atom=LENGTH, rank1=False, n_iter=iterations, reg=LAMBDA, lmbd_max="fixed", batch_size=PARTS,
        D_init=init[:, None].copy(), random_state=0, n_jobs=threads, verbose=0,
    )
    begun = time.process_time()
    learner.fit(x.reshape(PARTS, 1, -1).copy())
    return learner.D_hat_[:, 0], time.process_time() - begun


def judged(program, x, atoms, folder):
    """The objective of the best codes of the whole signal, and their relative gap."""
    atoms = atoms.astype(np.float64)
    atoms /= np.maximum(1, np.linalg.norm(atoms, axis=1, keepdims=True))
    model, codes = learn(program, x, atoms, folder, "--passes", 0, "--dtype", "f64"), folder / "codes"
    for old in codes.glob("*"):
        old.unlink()
    call = f"code {model} {folder / 'signal.npy'} --axes CW --tol 1e-4 --max-iters 2000 --out {codes} --json --quiet"
    told = json.loads(subprocess.run([program, *call.split()], check=True, capture_output=True, text=True).stdout)
    code = np.load(next(codes.glob("*.npz")))
    starts = code["position"][:, -1] - (LENGTH - 1)
    assert starts.min() >= 0 and starts.max() <= VALUES - LENGTH, "an atom sticks out: alphacsc's problem is another one"
    rest = x.copy()
    for k, start, value in zip(code["filter"], starts, code["value"], strict=True):
        rest[start : start + LENGTH] -= value * atoms[k]
    assert told["gap"] <= 1e-4, f"the codes are only certified to {told['gap']:.1e}"
    return 0.5 * rest @ rest + LAMBDA * np.abs(code["value"]).sum(), told["gap"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, default="target/release/ocsc")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one seed, and 5 iterations of alphacsc")
    parser.add_argument("--only", choices=["ocsc", "alphacsc"])
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    x, iterations = signal(), 5 if args.quick else 60
    if args.only != "ocsc":
        alphacsc(x, patches(x, 99), 1, 1)  # compiles
    learners = {f"ocsc, {n} passes": ("ocsc", lambda d, folder, n=n: ours(args.program, args.threads, x, d, n, folder)) for n in PASSES}
    learners[f"alphacsc, {iterations} iterations"] = ("alphacsc", lambda d, _: alphacsc(x, d, iterations, args.threads))
    print("| seed | learner | objective | gap | CPU seconds |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for seed in SEEDS[:1] if args.quick else SEEDS:
            for name, (kind, run) in learners.items():
                if args.only in (None, kind):
                    atoms, seconds = run(patches(x, seed), folder)
                    objective, gap = judged(args.program, x, atoms, folder)
                    print(f"| {seed} | {name} | {objective:.1f} | {gap:.0e} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
