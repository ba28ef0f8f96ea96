"""Learn filters from photos, then code photos that were not learned from.

Needs Pillow, which reads the photos, and matplotlib. `python learn_and_code.py [folder]` writes learn_and_code.png there.
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


def middle(path, side=96):
    """The middle of a photo, gray, from 0 to 1."""
    gray = np.asarray(Image.open(path).convert("L"), np.float32) / 255
    top, left = (gray.shape[0] - side) // 2, (gray.shape[1] - side) // 2
    return gray[top : top + side, left : left + side]


train = [middle(path) for path in sorted((DATA / "flower/train").glob("*.jpg"))]
test = [middle(path) for path in sorted((DATA / "flower/test").glob("*.jpg"))]

# The smooth part of every photo is split off, since filters of 9 x 9 cannot say much about it; the rest is learned from.
# A list may hold photos of any sizes; a generator that reads one after the other would do as well.
model = ocsc.OnlineCSC(n_filters=64, filter_shape=(9, 9), beta=0.1, preprocess="lowpass=5", passes=2)
tested = []


def test_now_and_then(step):
    """How well the filters represent new photos, as they are after this step."""
    if step["step"] in (1, 2, 4, 8, 16, 30, 45, 60):
        tested.append((step["samples"], -model.score(test)))


model.set_params(callback=test_now_and_then).fit(train)
print(f"learned {model.n_filters} filters from {len(train)} photos in {model.history_['seconds'][-1]:.1f} s")
print(f"objective of new photos: {tested[0][1]:.2f} after one photo, {tested[-1][1]:.2f} at the end")
codes = model.transform(test)
back = model.inverse_transform(codes, original=test)  # with the smooth part, in the range of the photos
psnr = [ocsc.metrics.psnr(x, y, peak=1.0) for x, y in zip(test, back)]
print(
    f"{len(test)} new photos: PSNR {np.mean(psnr):.1f} dB with {codes.nonzeros.mean():.0f} coefficients for "
    f"{test[0].size} pixels; every code is within {100 * codes.gap.max():.2g} % of the best there is"
)

panels = [["filters", "curve", "curve"], ["x", "y", "difference"]]
figure, grid = plt.subplot_mosaic(panels, figsize=(10, 7), layout="constrained")
ocsc.plot.dictionary(model, grid["filters"])
grid["curve"].plot(*zip(*tested), "o-")
grid["curve"].set(title="learning", xlabel="photos visited", ylabel="objective of new photos")
ocsc.plot.triplet(test[0], back[0], [grid["x"], grid["y"], grid["difference"]], peak=1.0)
figure.savefig(OUT / "learn_and_code.png", dpi=100)
