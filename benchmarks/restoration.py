"""Restores the images of Set12 side by side: `python3 benchmarks/restoration.py [PROGRAM] [--images 01,05]`.

Noise of sigma 25, and half of the values missing, both seeded. The program's defaults are chosen on Set12, so these figures say what
was chosen, not what to expect of other images. Peers: scikit-image's NL-means and total variation at the best of several strengths
for each image, its biharmonic inpainting, and BM3D where `bm3d` is installed (with `--bm3d`). PSNR on the 8-bit scale, results
rounded to it; wall seconds of one call for one image, on all cores, the start of the program included.
Needs numpy, Pillow and scikit-image, and `../shared/data`.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle, inpaint_biharmonic

DATA = Path(__file__).resolve().parents[2] / 'shared/data/set12'
SIGMA = 25.0


def psnr(clean, image):
    rounded = np.clip(np.round(image), 0, 255)
    return 10 * np.log10(255**2 / np.mean((clean - rounded) ** 2))


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def program(words, image, folder):
    """What the program makes of an array."""
    np.save(Path(folder, 'image.npy'), image.astype(np.float32))
    subprocess.run([*words, Path(folder, 'image.npy'), '--quiet', '--out', Path(folder, 'out')], check=True, capture_output=True)
    return np.load(Path(folder, 'out/image.npy')).astype(float)


def best(clean, results):
    return max(results, key=lambda result: psnr(clean, result[0]))


def denoise(path, args, folder):
    clean = np.asarray(Image.open(path).convert('L'), float)
    noisy = clean + SIGMA * np.random.default_rng(0).standard_normal(clean.shape)
    means = dict(patch_size=7, patch_distance=11, fast_mode=True, sigma=SIGMA)
    peers = {
        'ocsc': [timed(lambda: program([args.program, 'denoise', '--sigma', '25'], noisy, folder))],
        'NL-means': [timed(lambda h=h: denoise_nl_means(noisy, h=h * SIGMA, **means)) for h in (0.4, 0.6, 0.8)],
        'TV': [timed(lambda w=w: 255 * denoise_tv_chambolle(noisy / 255, weight=w)) for w in (0.06, 0.09, 0.12)],
    }
    if args.bm3d:
        import bm3d

        peers['BM3D'] = [timed(lambda: bm3d.bm3d(noisy, SIGMA))]
    return clean, peers


def inpaint(path, args, folder):
    clean = np.asarray(Image.open(path).convert('L'), float)
    seen = np.random.default_rng(0).random(clean.shape) >= 0.5
    mask = Path(folder, 'mask.npy')
    np.save(mask, seen.astype(np.uint8))
    words = [args.program, 'inpaint', '--mask', mask]
    return clean, {
        'ocsc': [timed(lambda: program(words, np.where(seen, clean, 0), folder))],
        'biharmonic': [timed(lambda: 255 * inpaint_biharmonic(np.where(seen, clean, 0) / 255, ~seen))],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', nargs='?', default='target/release/ocsc')
    parser.add_argument('--images', default='', help='numbers of images, e.g. 01,05; all by default')
    parser.add_argument('--bm3d', action='store_true')
    args = parser.parse_args()
    chosen = [name for name in args.images.split(',') if name]
    paths = [path for path in sorted(DATA.glob('*.png')) if not chosen or path.stem in chosen]
    for title, task in [('Denoising, sigma 25', denoise), ('Inpainting, half of the values missing', inpaint)]:
        rows, names = [], []
        for path in paths:
            with tempfile.TemporaryDirectory() as folder:
                clean, peers = task(path, args, folder)
            names = list(peers)
            found = {name: best(clean, results) for name, results in peers.items()}
            rows.append([(psnr(clean, image), seconds) for image, seconds in found.values()])
            cells = [f'{value:.2f} ({seconds:.1f} s)' for value, seconds in rows[-1]]
            if len(rows) == 1:
                print(f'\n{title}: PSNR in dB (seconds)\n\n| image | {" | ".join(names)} |\n|---|{"---|" * len(names)}')
            print(f'| {path.stem}, {clean.shape[0]}x{clean.shape[1]} | {" | ".join(cells)} |', flush=True)
        means = np.mean(rows, axis=0)
        print(f'| mean | {" | ".join(f"{value:.2f} ({seconds:.1f} s)" for value, seconds in means)} |')


if __name__ == '__main__':
    main()
