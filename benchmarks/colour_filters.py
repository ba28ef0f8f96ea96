"""Asks whether filters of coloured dead leaves pay: `python3 benchmarks/colour_filters.py FILTERS [PROGRAM] [--half choose|report]`.

FILTERS is what `cargo run --release -p ocsc --example dictionaries -- --colour FILTERS` writes. Photos of flowers, shrunk to 200 pixels
so that nothing is left of JPEG, get noise of sigma 15, 25 and 50. They are denoised from these filters and from the built-in gray ones,
with and without learning from the photo. Every other photo is in the half `choose`, on which the saturation of the leaves and the
number of filters were chosen. PSNR on the 8-bit scale. Needs numpy and Pillow, and `../shared/data`.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

DATA = Path(__file__).resolve().parents[2] / 'shared/data'
SIDE = 8


def photo(path):
    image = Image.open(path).convert('RGB')
    scale = 200 / max(image.size)
    return np.asarray(image.resize([round(n * scale) for n in image.size], Image.LANCZOS), float)


def psnr(clean, image):
    return 10 * np.log10(255**2 / np.mean((clean - np.clip(np.round(image), 0, 255)) ** 2))


def model(program, filters, folder):
    """A model file of filters, as `--model` takes it."""
    values = np.fromfile(filters, np.int8).reshape(-1, 3, SIDE, SIDE).astype(float)
    np.save(folder / 'd.npy', values / np.sqrt((values**2).sum((1, 2, 3), keepdims=True)))
    np.save(folder / 'any.npy', np.random.default_rng(0).random((3, 16, 16), np.float32))
    words = ['--axes', 'CHW', '--init', folder / 'd.npy', '--passes', '0', '--beta', '1', '--filters', str(len(values)), '--size', str(SIDE)]
    run([program, 'learn', folder / 'any.npy', *words, '--out', folder / 'm.safetensors'])
    return folder / 'm.safetensors'


def run(command):
    subprocess.run([*map(str, command), '--quiet'], check=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('filters')
    parser.add_argument('program', nargs='?', default='target/release/ocsc')
    parser.add_argument('--half', default='report', choices=['choose', 'report'])
    args = parser.parse_args()
    paths = sorted(DATA.glob('flower/train/*.jpg'))[args.half == 'report' :: 2]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        coloured = ['--model', model(args.program, args.filters, folder)]
        print('| sigma | learning | gray filters | colour filters | difference | photos that gain |\n|---|---|---|---|---|---|')
        for sigma in (15, 25, 50):
            for learning in ([], ['--no-learn-here']):
                found = []
                for i, path in enumerate(paths):
                    clean = photo(path)
                    noisy = clean + sigma * np.random.default_rng(i).standard_normal(clean.shape)
                    np.save(folder / 'x.npy', noisy.transpose(2, 0, 1).astype(np.float32))
                    values = []
                    for words in ([], coloured):
                        command = [args.program, 'denoise', folder / 'x.npy', '--axes', 'CHW', '--sigma', sigma, *words, *learning]
                        run([*command, '--out', folder / 'out'])
                        values.append(psnr(clean, np.load(folder / 'out/x.npy').transpose(1, 2, 0)))
                    found.append(values)
                gray, colour = np.mean(found, axis=0)
                gains = np.diff(found, axis=1)[:, 0]
                error = np.std(gains) / np.sqrt(len(gains))
                said = 'no' if learning else 'yes'
                print(
                    f'| {sigma} | {said} | {gray:.2f} | {colour:.2f} | {gains.mean():+.3f} ± {error:.3f} | {np.sum(gains > 0)} of {len(gains)} |',
                    flush=True,
                )


if __name__ == '__main__':
    main()
