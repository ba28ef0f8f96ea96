"""Measures what restoring large colour photos costs: `python3 benchmarks/large_photos.py [PROGRAM] [--quick]`.

The photo of 12 megapixels is made of photos of flowers, side by side at their own size (500 rows of each, the first two once more at the
end, mirrored): 4000x3000 pixels. That of 1 megapixel is its first 1000x1000. Every command reads one 8-bit PNG and writes another. Printed
are the wall and the processor seconds of the whole program per megapixel of the result, and its peak memory. `--quick` leaves the 12
megapixels out. Needs numpy, scipy and Pillow, and `../shared/data`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

FLOWERS = Path(__file__).resolve().parents[2] / 'shared/data/flower'
ROWS, HEIGHT, WIDTH = 500, 3000, 4000

# Starts the program from a process that is itself small: a child's ru_maxrss is at least its parent's size at the fork.
LAUNCHER = """import json, resource, subprocess, sys, time
clock = time.perf_counter()
text = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True).stdout
seconds, used = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([json.loads(text)['psnr'], seconds, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss]))"""


def mosaic():
    paths = sorted(FLOWERS.glob('*/*.jpg'))
    strips = [np.asarray(Image.open(path).convert('RGB'))[:ROWS] for path in paths]
    strips += [strip[:, ::-1] for strip in strips[:2]]
    clean = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    row = column = 0
    for strip in strips:
        part = strip[:, : WIDTH - column]
        clean[row : row + ROWS, column : column + part.shape[1]] = part
        column += part.shape[1]
        if column == WIDTH:
            row, column = row + ROWS, 0
        if row == HEIGHT:
            return clean
    raise SystemExit(f'{FLOWERS}: expected photos for {WIDTH}x{HEIGHT} pixels, found {len(paths)} of them')


def save(path, image):
    Image.fromarray(np.clip(np.round(image), 0, 255).astype(np.uint8)).save(path)


def write_inputs(clean, folder):
    """Writes what each command is to restore."""
    rng = np.random.default_rng(0)
    values = clean.astype(float)
    save(folder / 'clean.png', values)
    save(folder / 'noisy.png', values + 25 * rng.standard_normal(values.shape))
    save(folder / 'blurred.png', gaussian_filter(values, (1.6, 1.6, 0), mode='nearest', truncate=6) + 2 * rng.standard_normal(values.shape))
    save(folder / 'mask.png', 255.0 * (rng.random(values.shape[:2]) < 0.5))
    sensor = values[..., 1].copy()
    sensor[::2, ::2], sensor[1::2, 1::2] = values[::2, ::2, 0], values[1::2, 1::2, 2]
    save(folder / 'sensor.png', sensor)
    Image.fromarray(clean).resize([side // 2 for side in clean.shape[1::-1]], Image.BICUBIC).save(folder / 'small.png')


def measure(program, words, folder):
    """Returns the PSNR, wall and processor seconds, and peak bytes of one call."""
    command = [program, *words, '--reference', 'clean.png', '--json', '--quiet', '--out', 'out']
    done = subprocess.run([sys.executable, '-c', LAUNCHER, *command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f'{" ".join(words)}: {done.stderr}')
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', nargs='?', default='target/release/ocsc')
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    calls = [
        'denoise noisy.png --sigma 25',
        'inpaint clean.png --mask mask.png',
        'deblur blurred.png --kernel gaussian:1.6 --sigma 2',
        'upscale 2 small.png',
        'demosaic sensor.png --pattern RGGB',
    ]
    clean = mosaic()
    sets = [(clean[:1000, :1000], calls)] + ([] if args.quick else [(clean, calls[:1])])
    print('| command | megapixels | PSNR, dB | wall s per megapixel | processor s per megapixel | peak memory |\n|---|---|---|---|---|---|')
    for image, these in sets:
        pixels = image.shape[0] * image.shape[1] / 1e6
        with tempfile.TemporaryDirectory() as folder:
            write_inputs(image, Path(folder))
            for call in these:
                psnr, wall, used, peak = measure(str(Path(args.program).resolve()), call.split(), folder)
                print(f'| `{call}` | {pixels:.0f} | {psnr:.2f} | {wall / pixels:.1f} | {used / pixels:.1f} | {peak / 1e6:.0f} MB |', flush=True)
    print(f'\nload average at the end: {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    main()
