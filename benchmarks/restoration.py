"""Restores images side by side: `python3 benchmarks/restoration.py [PROGRAM] [--tasks denoise,inpaint] [--images 01,05] [--bm3d]`.

Gray tasks run on Set12, colour ones on the photos of dogs, which are halved first so that nothing is left of JPEG. What is done to the
images is seeded. The program's defaults were chosen on Set12 (demosaicking: on photos of flowers), so the gray figures say what was
chosen, not what to expect of other images; the colour ones are of images that nothing was chosen on. Peers are scikit-image and SciPy, each
at the best of several strengths for each image, and BM3D where `bm3d` is installed (with `--bm3d`). PSNR on the 8-bit scale, results
rounded to it; wall seconds of one call for one image, on all cores, the start of the program included; the last line has
seconds per megapixel. Needs numpy, scipy, Pillow and scikit-image, and `../shared/data`.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import convolve, median_filter
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle, inpaint_biharmonic, richardson_lucy, wiener

DATA = Path(__file__).resolve().parents[2] / 'shared/data'
SIGMA = 25.0
MEANS = dict(patch_size=7, patch_distance=11, fast_mode=True)


def psnr(clean, image):
    rounded = np.clip(np.round(image), 0, 255)
    return 10 * np.log10(255**2 / np.mean((clean - rounded) ** 2))


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def gray(path):
    return np.asarray(Image.open(path).convert('L'), float)


def colour(path):
    image = Image.open(path).convert('RGB')
    width, height = (n // 4 * 2 for n in image.size)
    return np.asarray(image.resize((width, height), Image.LANCZOS), float)


def halved(path):
    image = Image.open(path).convert('L')
    return np.asarray(image.resize((image.width // 2, image.height // 2), Image.LANCZOS), float)


class Lab:
    """Runs the program on arrays in a folder of its own."""

    def __init__(self, program, bm3d, folder):
        self.program, self.bm3d, self.folder = program, bm3d, Path(folder)
        self.rng = np.random.default_rng(0)

    def ocsc(self, words, image):
        np.save(self.folder / 'image.npy', (image.transpose(2, 0, 1) if image.ndim == 3 else image).astype(np.float32))
        axes = ['--axes', 'CHW'] if image.ndim == 3 else []
        command = [self.program, *words, self.folder / 'image.npy', *axes, '--quiet', '--out', self.folder / 'out']
        result, seconds = timed(lambda: subprocess.run(command, check=True, capture_output=True))
        made = np.load(self.folder / 'out/image.npy').astype(float)
        return [((made.transpose(1, 2, 0) if made.ndim == 3 else made), seconds)]

    def others(self, noisy, psd):
        if not self.bm3d:
            return {}
        import bm3d

        function = bm3d.bm3d_rgb if noisy.ndim == 3 else bm3d.bm3d
        return {'BM3D': [timed(lambda: function(noisy, psd))]}


def denoise(path, lab, read=gray):
    clean = read(path)
    noisy = clean + SIGMA * lab.rng.standard_normal(clean.shape)
    axis = dict(channel_axis=-1) if clean.ndim == 3 else {}
    return clean, {
        'ocsc': lab.ocsc(['denoise', '--sigma', '25'], noisy),
        'NL-means': [timed(lambda h=h: denoise_nl_means(noisy, h=h * SIGMA, sigma=SIGMA, **MEANS, **axis)) for h in (0.4, 0.6, 0.8)],
        'TV': [timed(lambda w=w: 255 * denoise_tv_chambolle(noisy / 255, weight=w, **axis)) for w in (0.06, 0.09, 0.12)],
        **lab.others(noisy, SIGMA),
    }


def inpaint(path, lab, read=gray):
    clean = read(path)
    seen = lab.rng.random(clean.shape) >= 0.5
    np.save(lab.folder / 'mask.npy', seen.astype(np.uint8))
    return clean, {
        'ocsc': lab.ocsc(['inpaint', '--mask', lab.folder / 'mask.npy'], np.where(seen, clean, 0)),
        'biharmonic': [timed(lambda: 255 * inpaint_biharmonic(np.where(seen, clean, 0) / 255, ~seen))],
    }


def deblur(path, lab):
    clean = gray(path)
    weights = np.exp(-0.5 * (np.arange(-5, 6) / 1.6) ** 2)
    kernel = np.outer(weights, weights) / weights.sum() ** 2
    blurred = convolve(clean, kernel, mode='nearest') + 2 * lab.rng.standard_normal(clean.shape)
    unit = np.clip(blurred / 255, 1e-3, 1)
    return clean, {
        'ocsc': lab.ocsc(['deblur', '--kernel', 'gaussian:1.6', '--sigma', '2'], blurred),
        'Wiener': [timed(lambda b=b: 255 * wiener(unit, kernel, b)) for b in (0.001, 0.003, 0.01, 0.03, 0.1)],
        'Richardson-Lucy': [timed(lambda n=n: 255 * richardson_lucy(unit, kernel, n)) for n in (5, 10, 20, 40)],
    }


def upscale(path, lab, factor=3):
    whole = Image.open(path).convert('L')
    width, height = (n // factor for n in whole.size)
    whole = whole.crop((0, 0, width * factor, height * factor))
    small = whole.resize((width, height), Image.BICUBIC)
    return np.asarray(whole, float), {
        'ocsc': lab.ocsc(['upscale', str(factor)], np.asarray(small, float)),
        'bicubic': [timed(lambda: np.asarray(small.resize(whole.size, Image.BICUBIC), float))],
        'Lanczos': [timed(lambda: np.asarray(small.resize(whole.size, Image.LANCZOS), float))],
    }


def speckles(path, lab):
    clean = gray(path)
    drawn = lab.rng.random(clean.shape)
    noisy = np.where(drawn < 0.1, 0, np.where(drawn > 0.9, 255, clean))
    return clean, {
        'ocsc': lab.ocsc(['denoise', '--loss', 'l1'], noisy),
        'median': [timed(lambda n=n: median_filter(noisy, n)) for n in (3, 5)],
    }


def photons(path, lab):
    clean = gray(path)
    counts = lab.rng.poisson(30 * clean / 255).astype(float)
    stable = 2 * np.sqrt(counts + 0.375)

    def means(h):
        d = denoise_nl_means(stable, h=h, sigma=1, **MEANS)
        return 255 / 30 * (d**2 / 4 - 0.125)

    return clean, {
        'ocsc': lab.ocsc(['denoise', '--noise', f'poisson:{30 / 255}'], 255 / 30 * counts),
        'NL-means, stabilised': [timed(lambda h=h: means(h)) for h in (0.4, 0.6, 0.8)],
    }


def demosaic(path, lab):
    clean = colour(path)
    seen = np.zeros(clean.shape, bool)
    seen[0::2, 0::2, 0] = seen[0::2, 1::2, 1] = seen[1::2, 0::2, 1] = seen[1::2, 1::2, 2] = True
    kernel = np.outer([1, 2, 1], [1, 2, 1]) / 4

    def bilinear():
        sums, counts = (convolve(v, kernel[..., None], mode='mirror') for v in (clean * seen, seen.astype(float)))
        return np.where(seen, clean, sums / counts)

    return clean, {
        'ocsc': lab.ocsc(['demosaic', '--pattern', 'RGGB'], (clean * seen).sum(-1)),
        'bilinear': [timed(bilinear)],
    }


TASKS = {
    'denoise': ('Denoising, sigma 25', denoise, 'set12/*.png'),
    'inpaint': ('Inpainting, half of the values missing', inpaint, 'set12/*.png'),
    'barbara': ('Inpainting, half of the values missing, Barbara halved', lambda path, lab: inpaint(path, lab, halved), 'set12/09.png'),
    'deblur': ('Deblurring, Gaussian of 1.6 pixels and noise of 2 levels', deblur, 'set12/*.png'),
    'upscale': ('Upscaling by 3', upscale, 'set12/*.png'),
    'speckles': ('Salt and pepper, a fifth of the values', speckles, 'set12/*.png'),
    'photons': ('Poisson noise, 30 photons at white', photons, 'set12/*.png'),
    'colour': ('Denoising in colour, sigma 25', lambda path, lab: denoise(path, lab, colour), 'dog/*.jpg'),
    'demosaic': ('Demosaicking, RGGB', demosaic, 'dog/*.jpg'),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', nargs='?', default='target/release/ocsc')
    parser.add_argument('--tasks', default=','.join(TASKS), help=f'of {", ".join(TASKS)}; all by default')
    parser.add_argument('--images', default='', help='names of images, such as 01,05; all by default')
    parser.add_argument('--limit', type=int, default=12, help='images per task, at most')
    parser.add_argument('--bm3d', action='store_true')
    args = parser.parse_args()
    chosen = [name for name in args.images.split(',') if name]
    for title, task, pattern in (TASKS[name] for name in args.tasks.split(',')):
        paths = [path for path in sorted(DATA.glob(pattern)) if not chosen or path.stem in chosen][: args.limit]
        rows, pixels, names = [], [], []
        for path in paths:
            with tempfile.TemporaryDirectory() as folder:
                clean, peers = task(path, Lab(args.program, args.bm3d, folder))
            found = [max(results, key=lambda result: psnr(clean, result[0])) for results in peers.values()]
            rows.append([(psnr(clean, image), seconds) for image, seconds in found])
            pixels.append(clean.shape[0] * clean.shape[1])
            if not names:
                names = list(peers)
                print(f'\n{title}: PSNR in dB (seconds)\n\n| image | {" | ".join(names)} |\n|---|{"---|" * len(names)}')
            cells = [f'{value:.2f} ({seconds:.1f})' for value, seconds in rows[-1]]
            print(f'| {path.stem}, {clean.shape[0]}x{clean.shape[1]} | {" | ".join(cells)} |', flush=True)
        means = np.mean(rows, axis=0)
        print(f'| mean | {" | ".join(f"{value:.2f} ({seconds:.1f})" for value, seconds in means)} |')
        per = np.sum(rows, axis=0)[:, 1] / (sum(pixels) / 1e6)
        print(f'| seconds per megapixel | {" | ".join(f"{seconds:.1f}" for seconds in per)} |', flush=True)


if __name__ == '__main__':
    main()
