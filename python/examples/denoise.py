"""Remove noise from a photo: code it with filters learned from other photos, and keep what the code says.

Needs Pillow, which reads the photos, and matplotlib. `python denoise.py [folder]` writes denoise.png there.
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


clean = gray(DATA / "set12/01.png")
sigma = 25 / 255
noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)

# Filters of clean photos, none of which is the one above.
train = [gray(path)[100:228, 100:228] for path in sorted((DATA / "flower/train").glob("*.jpg"))]
model = ocsc.OnlineCSC(n_filters=64, filter_shape=(9, 9), beta=0.15, preprocess="lowpass=5").fit(train)

# Noise correlates with a filter of norm 1 by about sigma: with beta at 2.5 sigma, little of it gets a coefficient.
codes = ocsc.code(noisy[None], model.filters_, beta=2.5 * sigma, preprocess=model.preprocess)
denoised = model.inverse_transform(codes, original=noisy[None])[0]


def blurred(image, width):
    """A Gaussian blur, to compare with."""
    down, right = (np.fft.fftfreq(n) for n in image.shape)
    response = np.exp(-2 * (np.pi * width) ** 2 * (down[:, None] ** 2 + right**2))
    return np.fft.ifft2(np.fft.fft2(image) * response).real


def psnr(image):
    return ocsc.metrics.psnr(clean, image, peak=1.0)


best_blur = max(psnr(blurred(noisy, width)) for width in np.arange(0.5, 2, 0.1))
print(f"PSNR: noisy {psnr(noisy):.2f} dB, denoised {psnr(denoised):.2f} dB; the best Gaussian blur gives {best_blur:.2f} dB")

figure, places = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for place, image, name in zip(places, (clean, noisy, denoised), ("clean", "noisy", "denoised")):
    place.imshow(image, cmap="gray", vmin=0, vmax=1)
    place.set_title(name if image is clean else f"{name}, {psnr(image):.2f} dB")
    place.set_axis_off()
figure.savefig(OUT / "denoise.png", dpi=100)
