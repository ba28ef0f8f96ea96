"""Fill in the missing half of the pixels of photos in one call, beside the biharmonic equation of scikit-image.

Needs matplotlib, Pillow and scikit-image. `python inpaint.py [folder]` writes inpaint.png there. Defaults of `ocsc.restore`
were chosen on the images of set12; the ten photos here are others. The biharmonic equation has nothing to choose. It does
well where photos are smooth; filters pay where there is texture."""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from skimage.restoration import inpaint_biharmonic

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
SIDE = 160


def middle(path):
    """The middle of a photo, gray, from 0 to 1."""
    gray = np.asarray(Image.open(path).convert("L")) / 255
    top, left = (gray.shape[0] - SIDE) // 2, (gray.shape[1] - SIDE) // 2
    return gray[top : top + SIDE, left : left + SIDE]


rng, shown, scores = np.random.default_rng(0), [], []
for path in sorted((DATA / "flower/test").glob("*.jpg")):
    truth = middle(path)
    seen = rng.random(truth.shape) < 0.5
    damaged = np.where(seen, truth, np.nan)
    filled = ocsc.restore.inpaint(damaged, seen)
    biharmonic = inpaint_biharmonic(np.where(seen, truth, 0), ~seen)  # its mask is true where pixels are missing
    missing = np.ma.masked_array(truth, seen)  # the PSNR is that of the missing pixels
    scores.append([ocsc.metrics.psnr(missing, image, peak=1.0) for image in (biharmonic, filled)])
    shown = shown or [truth, damaged, biharmonic, filled]

biharmonic, filled = np.mean(scores, axis=0)
better = sum(ours > theirs for theirs, ours in scores)
print(f"{len(scores)} photos, mean PSNR of the missing pixels: ocsc {filled:.2f} dB, biharmonic {biharmonic:.2f} dB")
print(f"ocsc is better on {better} of them")

figure, places = plt.subplots(2, 2, figsize=(8, 8.4), layout="constrained")
names = "the truth", "half of the pixels", f"biharmonic, {scores[0][0]:.2f} dB", f"ocsc, {scores[0][1]:.2f} dB"
for place, image, name in zip(places.flat, shown, names):
    place.imshow(image, cmap="gray", vmin=0, vmax=1)
    place.set_title(name)
    place.set_axis_off()
figure.savefig(OUT / "inpaint.png", dpi=100)
