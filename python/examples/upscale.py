"""Make photos three times as large in one call, beside cubic interpolation.

Needs matplotlib and Pillow. `python upscale.py [folder]` writes upscale.png there. The settings of `ocsc.restore.upscale` were
chosen on the images of set12; the ten photos here are others, made small by Pillow and in colour."""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
SIDE, FACTOR = 150, 3


def middle(path):
    """The middle of a photo."""
    photo = Image.open(path).convert("RGB")
    left, top = (photo.width - SIDE) // 2, (photo.height - SIDE) // 2
    return photo.crop((left, top, left + SIDE, top + SIDE))


def values(photo):
    return np.asarray(photo) / 255


def psnr(clean, image):
    return ocsc.metrics.psnr(clean, np.clip(image, 0, 1), peak=1.0, axes="HWC")


shown, scores = [], []
for path in sorted((DATA / "flower/test").glob("*.jpg")):
    photo = middle(path)
    small = photo.resize((SIDE // FACTOR, SIDE // FACTOR), Image.BICUBIC)
    cubic = values(small.resize((SIDE, SIDE), Image.BICUBIC))
    ours = ocsc.restore.upscale(values(small), FACTOR, channel_axis=-1)
    shown = shown or [values(photo), values(small), cubic, ours]
    scores.append([psnr(values(photo), image) for image in (cubic, ours)])

cubic, ours = np.mean(scores, axis=0)
better = sum(own > other for other, own in scores)
print(f"{len(scores)} photos, mean PSNR: ocsc {ours:.2f} dB, cubic interpolation {cubic:.2f} dB")
print(f"ocsc is better on {better} of them")

figure, places = plt.subplots(2, 2, figsize=(8, 8.4), layout="constrained")
for place, image, name in zip(places.flat, shown, ("clean", "small", "cubic", "ocsc")):
    place.imshow(np.clip(image, 0, 1))
    place.set_title(name if name in ("clean", "small") else f"{name}, {psnr(shown[0], image):.2f} dB")
    place.set_axis_off()
figure.savefig(OUT / "upscale.png", dpi=100)
