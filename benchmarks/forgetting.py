"""Held-out objective against the forgetting exponent and the number of sweeps.

    cargo build --release && python3 benchmarks/forgetting.py [--data ../shared/data] [--program target/release/ocsc]

The paper's four test images take no part. *Small sets*: each split holds two of the ten images of Fruit or City out and
learns from the other eight. *Stream*: one pass over 1,000 CIFAR-10 images (gray, contrast-normalised), 60 others held
out. K = 100, 11 x 11, beta = 1, gap 0.3 % on held-out images. Objectives are relative to the first line of the table on the
same split and seed, then averaged; `best` counts how often a line was the best one. Standard library only; about
twelve minutes on two busy cores.
"""

import argparse
import ast
import itertools
import json
import math
import pathlib
import struct
import subprocess
import tempfile

EXPONENTS = [1, 1.5, 2, 3, 4]
SWEEPS = [1, 2, 5]
SPLITS = [("fruit", (0, 4)), ("city", (2, 7))]
SEEDS = [0, 1]
STREAM = 1000
STREAM_HELD_OUT = 60


def read_npy(path):
    """The header's dtype, the shape, and one bytes object per image."""
    raw = path.read_bytes()
    start = 10 + struct.unpack("<H", raw[8:10])[0]
    header = ast.literal_eval(raw[10:start].decode("latin1"))
    size = int(header["descr"][-1]) * math.prod(header["shape"][1:])
    images = [raw[start + i * size :][:size] for i in range(header["shape"][0])]
    return header["descr"], header["shape"], images


def write_npy(path, descr, shape, images):
    header = repr({"descr": descr, "fortran_order": False, "shape": (len(images), *shape[1:])})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"".join(images))


def split(data, held_out, folder):
    descr, shape, images = read_npy(data / "train_lcne.npy")
    paths = folder / "seen.npy", folder / "unseen.npy"
    write_npy(paths[0], descr, shape, [x for i, x in enumerate(images) if i not in held_out])
    write_npy(paths[1], descr, shape, [x for i, x in enumerate(images) if i in held_out])
    return paths


def stream(data, folder):
    """Gray CIFAR-10 images in [0, 1]; a record is a label and three planes of 32 x 32 bytes."""
    raw = (data / "data_batch_small.bin").read_bytes()

    def gray(i):
        r, g, b = (raw[i * 3073 + 1 + c * 1024 :][:1024] for c in range(3))
        values = ((0.2989 * r + 0.5870 * g + 0.1140 * b) / 255 for r, g, b in zip(r, g, b))
        return struct.pack("<1024f", *values)

    images = [gray(i) for i in range(STREAM + STREAM_HELD_OUT)]
    paths = folder / "stream.npy", folder / "held_out.npy"
    write_npy(paths[0], "<f4", (0, 32, 32), images[:STREAM])
    write_npy(paths[1], "<f4", (0, 32, 32), images[STREAM:])
    return paths


def learn(program, seen, unseen, folder, options, passes):
    """Held-out objectives after each of the passes asked for, and the seconds of learning per pass."""
    log = folder / "run.jsonl"
    command = [program, "learn", seen, "--test", unseen, "--passes", max(passes), "--log", log, "--quiet"]
    command += ["--preset", "paper", "--out", folder / "model.safetensors", *options]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    made = {r["pass"]: r for r in records if r["event"] == "pass"}
    return [made[n]["test_objective"] for n in passes], records[-1]["seconds"] / max(passes)


def table(title, settings, passes, cases, run):
    """Runs all settings on all cases, and prints means relative to the first setting."""
    ratios = {setting: [[] for _ in passes] for setting in settings}
    seconds = {setting: [] for setting in settings}
    for case in cases:
        first = None
        for setting in settings:
            objectives, time = run(case, setting)
            first = first or objectives
            for ratio, objective, base in zip(ratios[setting], objectives, first):
                ratio.append(objective / base)
            seconds[setting].append(time)
    print(f"\n{title}: held-out objective, % of the first line, mean over {len(cases)} runs\n")
    heads = "".join(f" {n} pass{'es' * (n > 1)} | best |" for n in passes)
    print(f"| exponent | sweeps |{heads} s / pass |\n|---|---|{'---|---|' * len(passes)}---|")
    for setting in settings:
        line = f"| {setting[0]} | {setting[1]} |"
        for n, ratio in enumerate(ratios[setting]):
            best = sum(r == min(other[n][i] for other in ratios.values()) for i, r in enumerate(ratio))
            line += f" {100 * sum(ratio) / len(ratio):.2f} | {best} |"
        print(f"{line} {sum(seconds[setting]) / len(cases):.2f} |", flush=True)


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=here.parent / "shared/data")
    parser.add_argument("--program", type=pathlib.Path, default=here / "target/release/ocsc")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def options(setting):
            return ["--forgetting", setting[0], "--sweeps", setting[1]]

        def streamed(seed, setting):
            more = ["--seed", seed, "--preprocess", "lcn"]
            return learn(args.program, *paths, folder, options(setting) + more, [1])

        def small(case, setting):
            (name, held_out), seed = case
            seen, unseen = split(args.data / name, held_out, folder)
            return learn(args.program, seen, unseen, folder, [*options(setting), "--seed", seed], [1, 10])

        paths = stream(args.data / "cifar10", folder)
        table("Stream", [(e, 1) for e in EXPONENTS], [1], SEEDS, streamed)
        cases = list(itertools.product(SPLITS, SEEDS))
        table("Small sets", list(itertools.product(EXPONENTS, SWEEPS)), [1, 10], cases, small)


if __name__ == "__main__":
    main()
