"""Rank-one dictionaries of simulated MEG: ours beside alphacsc's.

    cargo build --release && python benchmarks/rank1.py [--program target/release/ocsc] [--threads 1] [--quick]

30 channels, 10 trials of 10 s at 150 Hz, 3 planted atoms. Each is a topography (a bump over the channels beside a broader one of
the other sign) times a waveform of 64 values (a spike, a burst at 10 Hz, a mu-shaped wave). Each occurs 8 times in a trial, with
amplitudes from 0.75 to 1.25, in pink noise that neighbouring channels share. The noise's standard deviation is 0.5, 1 and 2
times the root mean square of the atoms' part. Data are scaled to standard deviation 1.

Both learn 3 atoms of 64 values with non-negative codes, alphacsc's only kind, from patches of the data. Each value of lambda is a
fraction of the smallest one with all-zero codes for the initial dictionary: `--beta-ratio`, and `reg` with `lmbd_max='scaled'`.

Printed for each noise level, learner and lambda: the absolute correlation of each planted topography, and of each waveform at the
best shift, with one atom each, by the assignment that is best in sum; means over seeds, and the worst of all; and processor
seconds of learning, compilation and reading excluded, so that a busy machine changes little.

numpy, scipy, safetensors, and alphacsc 0.4.1 with numpy below 2: its learner fails with numpy 2.4.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
from safetensors.numpy import load_file

CHANNELS, TIMES, TRIALS, LENGTH, ATOMS, EVENTS = 30, 1500, 10, 64, 3, 8
NOISE = [0.5, 1.0, 2.0]
LAMBDAS = [0.1, 0.2, 0.3, 0.5]
SEEDS = [0, 1]


def atoms():
    """Topographies (3, 30) and waveforms (3, 64) of norm 1."""
    places, time = np.arange(CHANNELS), np.arange(LENGTH)
    u = np.stack([np.exp(-((places - c) ** 2) / 18.0) - 0.5 * np.exp(-((places - c - 9) ** 2) / 30.0) for c in (5, 14, 22)])
    window = np.hanning(LENGTH)
    spike = np.exp(-((time - 28) ** 2) / 12.0) - 0.6 * np.exp(-((time - 38) ** 2) / 50.0)
    burst = window * np.sin(2 * np.pi * 10 / 150 * time)
    mu = window * np.sign(np.sin(2 * np.pi * 6 / 150 * time)) * np.abs(np.sin(2 * np.pi * 6 / 150 * time)) ** 0.3
    v = np.stack([spike, burst, mu])
    return u / np.linalg.norm(u, axis=1, keepdims=True), v / np.linalg.norm(v, axis=1, keepdims=True)


def pink(rng):
    """Noise (channels, times) of standard deviation 1 whose power falls as 1/f, shared by neighbouring channels."""
    spectrum = np.fft.rfft(rng.standard_normal((CHANNELS, TIMES)), axis=1)
    spectrum[:, 1:] /= np.sqrt(np.arange(1, spectrum.shape[1]))
    spectrum[:, 0] = 0
    noise = np.fft.irfft(spectrum, TIMES, axis=1)
    mixing = np.exp(-(np.subtract.outer(np.arange(CHANNELS), np.arange(CHANNELS)) ** 2) / 2.0)
    noise = mixing @ noise
    return noise / noise.std()


def simulated(level, seed):
    """Trials (10, 30, 1500)."""
    rng, (u, v) = np.random.default_rng(seed), atoms()
    trials = np.zeros((TRIALS, CHANNELS, TIMES))
    for trial in trials:
        for k in range(ATOMS):
            starts = rng.choice(TIMES - LENGTH, EVENTS, replace=False)
            for start in starts:
                trial[:, start : start + LENGTH] += rng.uniform(0.75, 1.25) * np.outer(u[k], v[k])
    rms = trials.std()
    trials += level * rms * np.stack([pink(rng) for _ in range(TRIALS)])
    return trials / trials.std()


def correlations(u, v):
    """Of each planted topography and waveform with the atoms found, one each: (2, 3)."""
    true_u, true_v = atoms()
    norm = lambda a: a / np.maximum(np.linalg.norm(a, axis=-1, keepdims=True), 1e-300)
    with_u = np.abs(true_u @ norm(u).T)
    with_v = np.array([[np.abs(np.correlate(t, f, "full")).max() for f in norm(v)] for t in true_v])
    best = max(itertools.permutations(range(ATOMS)), key=lambda p: sum(with_u[k, p[k]] * with_v[k, p[k]] for k in range(ATOMS)))
    return np.array([[with_u[k, best[k]] for k in range(ATOMS)], [with_v[k, best[k]] for k in range(ATOMS)]])


def factors(filters):
    """The topography and the waveform of each filter (channels, times)."""
    u, s, v = np.linalg.svd(filters, full_matrices=False)
    assert (s[:, 1] < 1e-5 * s[:, 0]).all(), "filters of rank one"
    return u[:, :, 0], v[:, 0]


def ours(program, threads, trials, ratio, passes, folder):
    """Atoms of `ocsc learn --rank1`, and its seconds of learning."""
    data, model, log = folder / "trials.npy", folder / "model.safetensors", folder / "run.jsonl"
    np.save(data, trials.astype(np.float32))
    log.unlink(missing_ok=True)
    call = f"learn {data} --axes NCW --out {model} --force --quiet --rank1 --filters {ATOMS} --size {LENGTH} --beta-ratio {ratio}"
    call += f" --passes {passes} --tile whole --init patches --boundary zero --nonnegative --recenter --threads {threads} --log {log}"
    subprocess.run([program, *call.split()], check=True, stdout=subprocess.DEVNULL)
    seconds = json.loads(log.read_text().splitlines()[-1])["cpu_seconds"]
    return *factors(load_file(model)["dictionary"]), seconds


def alphacsc(trials, ratio, iterations, threads, seed):
    """Atoms of alphacsc's batch learner with its locally greedy coder, and its seconds."""
    from alphacsc import BatchCDL

    learner = BatchCDL(
        n_atoms=ATOMS, n_times_atom=LENGTH, rank1=True, n_iter=iterations, reg=ratio, lmbd_max="scaled", uv_constraint="separate",
        solver_z="lgcd", solver_z_kwargs={"tol": 1e-2, "max_iter": 10000}, solver_d="alternate_adaptive",
        solver_d_kwargs={"max_iter": 300}, D_init="chunk", random_state=seed, n_jobs=threads, verbose=0,
    )
    begun = time.process_time()
    learner.fit(trials)
    return learner.u_hat_, learner.v_hat_, time.process_time() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, default="target/release/ocsc")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one seed and two values of lambda")
    parser.add_argument("--only", choices=["ocsc", "alphacsc"])
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    seeds, lambdas = (SEEDS[:1], LAMBDAS[1:3]) if args.quick else (SEEDS, LAMBDAS)
    if args.only != "ocsc":
        alphacsc(simulated(1.0, 99)[:2, :, :300], 0.3, 1, 1, 0)  # compiles
    learners = {
        "ocsc, 2 passes": ("ocsc", lambda x, ratio, seed, folder: ours(args.program, args.threads, x, ratio, 2, folder)),
        "ocsc, 10 passes": ("ocsc", lambda x, ratio, seed, folder: ours(args.program, args.threads, x, ratio, 10, folder)),
        "alphacsc, 20 iterations": ("alphacsc", lambda x, ratio, seed, _: alphacsc(x, ratio, 20, args.threads, seed)),
    }
    print("| noise | learner | lambda | topographies | waveforms | worst | CPU seconds |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for level, (name, (kind, learn)), ratio in itertools.product(NOISE, learners.items(), lambdas):
            if args.only not in (None, kind):
                continue
            found = []
            for seed in seeds:
                u, v, seconds = learn(simulated(level, seed), ratio, seed, pathlib.Path(folder))
                found.append((correlations(u, v), seconds))
            both = np.mean([c for c, _ in found], axis=0)
            worst, seconds = min(c.min() for c, _ in found), np.mean([s for _, s in found])
            row = f"| {level} | {name} | {ratio} | {both[0].mean():.3f} | {both[1].mean():.3f} | {worst:.3f} | {seconds:.2f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
