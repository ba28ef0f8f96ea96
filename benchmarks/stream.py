"""Memory while learning from a long stream: 20,000 synthetic images through a pipe.

    cargo build --release && python3 benchmarks/stream.py [--images 20000] [--program target/release/ocsc]

Images of 32 x 32 bytes, each a few bars on noise, are made here and piped into `ocsc learn -`. Printed: the most memory
the program has held after the 1,000th image and after the last, their ratio, and images per second. Standard library only.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile

SIDE = 32


def image(rng, noise):
    start = rng.randrange(len(noise) - SIDE * SIDE)
    pixels = bytearray(noise[start : start + SIDE * SIDE])
    for _ in range(3):
        level, place = rng.randrange(160, 250), rng.randrange(SIDE - 3)
        if rng.random() < 0.5:
            pixels[place * SIDE : (place + 3) * SIDE] = bytes([level]) * (3 * SIDE)
        else:
            for y in range(SIDE):
                pixels[y * SIDE + place : y * SIDE + place + 3] = bytes([level]) * 3
    return bytes(pixels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--program", default="target/release/ocsc")
    options = parser.parse_args()
    rng = random.Random(0)
    noise = bytes(rng.randrange(40, 90) for _ in range(1 << 16))
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "run.jsonl"
        command = [options.program, "learn", "-", "--raw", f"{SIDE}x{SIDE}", "--quiet", "--log", str(log)]
        command += ["--beta", "1", "--out", str(pathlib.Path(folder) / "model.safetensors")]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as run:
            for _ in range(options.images):
                run.stdin.write(image(rng, noise))
            run.stdin.close()
        assert run.returncode == 0, run.returncode
        records = [json.loads(line) for line in log.read_text().splitlines()]
    early = next(r for r in records if r["samples"] >= 1000)
    last = records[-1]
    assert last["samples"] == options.images, last
    ratio = last["peak_rss_bytes"] / early["peak_rss_bytes"]
    print(f"memory after {early['samples']} images: {early['peak_rss_bytes'] / 1e6:.2f} MB")
    print(f"memory after {last['samples']} images: {last['peak_rss_bytes'] / 1e6:.2f} MB, {100 * (ratio - 1):.2f} % more")
    print(f"{last['samples'] / last['seconds']:.0f} images per second of learning")


if __name__ == "__main__":
    main()
