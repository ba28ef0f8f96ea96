"""Fill in the missing half of a photo's pixels: code those that are there, and let the filters say what lies between.

Needs Pillow, which reads the photos, and matplotlib. `python inpaint.py [folder]` writes inpaint.png there.
"""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def gray(path):
    return np.asarray(Image.open(path).convert("L")) / 255


def local_mean(image, seen, width):
    """The mean of what was seen nearby, under a Gaussian."""
    down, right = (np.fft.fftfreq(n) for n in image.shape)
    response = np.exp(-2 * (np.pi * width) ** 2 * (down[:, None] ** 2 + right**2))
    blurred = [np.fft.ifft2(np.fft.fft2(part) * response).real for part in (np.where(seen, image, 0), seen)]
    return blurred[0] / blurred[1]


truth = gray(DATA / "set12/01.png")
seen = np.random.default_rng(0).random(truth.shape) < 0.5
damaged = np.where(seen, truth, np.nan)

# What is smooth comes from the neighbours; filters of other photos add the rest. Values that were not seen have no influence.
smooth = local_mean(damaged, seen, 3)
train = [gray(path)[100:228, 100:228] for path in sorted((DATA / "flower/train").glob("*.jpg"))]
train = [image - local_mean(image, np.ones_like(image), 3) for image in train]
model = ocsc.OnlineCSC(n_filters=64, filter_shape=(9, 9), beta=0.1).fit(train)
codes = ocsc.code((damaged - smooth)[None], model.filters_, beta=0.03, mask=seen)
filled = smooth + ocsc.reconstruct(codes, model.filters_)[0]


def psnr(image):
    """Over the missing pixels only."""
    return ocsc.metrics.psnr(np.ma.masked_array(truth, seen), image, peak=1.0)


mean = psnr(np.full_like(truth, truth[seen].mean()))
best = max(psnr(local_mean(damaged, seen, width)) for width in np.arange(0.6, 3, 0.1))
print(f"PSNR of the missing pixels: {psnr(filled):.2f} dB; by the mean {mean:.2f}, by the best local mean {best:.2f} dB")
figure, places = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
whole = np.where(seen, truth, filled)
for place, image, name in zip(places, (damaged, whole, truth), ("half of the pixels", "filled in", "the truth")):
    place.imshow(image, cmap="gray", vmin=0, vmax=1)
    place.set_title(name)
    place.set_axis_off()
figure.savefig(OUT / "inpaint.png", dpi=100)
