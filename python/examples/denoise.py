"""Remove noise from photos in one call, beside NL-means of scikit-image. Both are told how strong the noise is.

Needs matplotlib, Pillow and scikit-image. `python denoise.py [folder]` writes denoise.png there. Defaults of `ocsc.restore`
were chosen on the images of set12; the ten photos here are others. Of NL-means the best of four settings counts, for every
photo anew and by the clean photo, which nobody has who needs it."""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from skimage.restoration import denoise_nl_means

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
SIGMA, SIDE = 25 / 255, 160


def middle(path):
    """The middle of a photo, gray, from 0 to 1."""
    gray = np.asarray(Image.open(path).convert("L")) / 255
    top, left = (gray.shape[0] - SIDE) // 2, (gray.shape[1] - SIDE) // 2
    return gray[top : top + SIDE, left : left + SIDE]


def psnr(clean, image):
    return ocsc.metrics.psnr(clean, image, peak=1.0)


rng, shown, scores = np.random.default_rng(0), [], []
for path in sorted((DATA / "flower/test").glob("*.jpg")):
    clean = middle(path)
    noisy = clean + SIGMA * rng.standard_normal(clean.shape)
    denoised = ocsc.restore.denoise(noisy, SIGMA)
    settings = [dict(patch_size=size, h=h * SIGMA) for size in (5, 7) for h in (0.4, 0.6)]
    others = [denoise_nl_means(noisy, patch_distance=11, sigma=SIGMA, **setting) for setting in settings]
    means = max(others, key=lambda image: psnr(clean, image))
    shown = shown or [clean, noisy, means, denoised]
    scores.append([psnr(clean, image) for image in (noisy, means, denoised)])

noisy, means, denoised = np.mean(scores, axis=0)
better = sum(ours > theirs for _, theirs, ours in scores)
print(f"{len(scores)} photos, mean PSNR: noisy {noisy:.2f} dB, ocsc {denoised:.2f} dB, NL-means {means:.2f} dB")
print(f"ocsc is better on {better} of them")

figure, places = plt.subplots(2, 2, figsize=(8, 8.4), layout="constrained")
for place, image, name in zip(places.flat, shown, ("clean", "noisy", "NL-means", "ocsc")):
    place.imshow(image, cmap="gray", vmin=0, vmax=1)
    place.set_title(name if name == "clean" else f"{name}, {psnr(shown[0], image):.2f} dB")
    place.set_axis_off()
figure.savefig(OUT / "denoise.png", dpi=100)
