"""Learn rank-1 atoms from signals of many channels, as from MEG: where on the head, what waveform, and when.

Needs matplotlib. `python meg_atoms.py [folder]` writes meg_atoms.png there. The recording is made up, so that the truth is
known: three sources with a topography over 32 channels, a waveform of 0.25 s and 30 times, in noise of 1.4 times their norm."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocsc

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
RATE, LENGTH, WIDTH = 150, 60 * 150, 38
rng = np.random.default_rng(0)

t = np.linspace(-1, 1, WIDTH)
spike = np.exp(-30 * (t + 0.3) ** 2) - 0.4 * np.exp(-9 * t**2)
waves = np.stack([np.exp(-8 * t**2) * np.sin(9 * t), np.exp(-4 * t**2) * np.cos(20 * t), spike])
waves /= np.linalg.norm(waves, axis=1, keepdims=True)
angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
maps = np.stack([np.exp(2 * np.cos(angle - a)) * np.cos(2 * (angle - b)) for a, b in ((0.5, 0.5), (2.5, 2.0), (4.5, 5.0))])
maps /= np.linalg.norm(maps, axis=1, keepdims=True)
x, times = np.zeros((32, LENGTH)), []
for k in range(3):
    times.append(np.sort(rng.choice(np.arange(50, LENGTH - 50, 60), 30, replace=False)) + rng.integers(0, 20, 30))
    for start in times[k]:
        x[:, start : start + WIDTH] += np.outer(maps[k], waves[k])
x += 0.04 * rng.standard_normal(x.shape)

# Twice as many atoms as sources: some stay with noise.
settings = dict(axes="CT", window="4s", sfreq=RATE, boundary="free", rank1=True, non_negative=True, init="patches")
model = ocsc.OnlineCSC(n_filters=6, filter_shape=WIDTH, beta_ratio=0.1, passes=30, **settings)
events = model.fit_transform(x).events(align="start", threshold=0.2)
atoms = model.rank1_

# Each source with the atom that resembles it most; where an atom begins is free, so both are compared at their best shift.
likeness = np.abs(maps @ atoms.topography.T)
best = likeness.argmax(axis=1)
found, shifts = [], []
for k, j in enumerate(best):
    match = np.correlate(waves[k], atoms.waveform[j] / np.linalg.norm(atoms.waveform[j]), "full")
    found.append(np.abs(match).max())
    shifts.append(np.abs(match).argmax() - WIDTH + 1)
apart = [np.abs(events["position"][events["filter"] == j][:, None] - (times[k] + shifts[k])) for k, j in enumerate(best)]
recall = np.mean([np.mean(a.min(axis=0) <= 3) for a in apart])
precision = np.mean([np.mean(a.min(axis=1) <= 3) for a in apart])
print(f"topographies {likeness.max(axis=1).min():.3f}, waveforms {min(found):.3f}: the least resemblance of three")
print(f"times within 20 ms: precision {precision:.3f}, recall {recall:.3f}")

figure, axes = plt.subplots(2, 3, figsize=(10, 4), layout="constrained")
for k, j in enumerate(best):
    sign = np.sign(maps[k] @ atoms.topography[j])
    axes[0, k].plot(maps[k], "k", sign * atoms.topography[j], "C1--")
    axes[1, k].plot(np.arange(WIDTH), waves[k], "k", np.arange(WIDTH) + shifts[k], sign * atoms.waveform[j], "C1--")
    axes[0, k].set(title=f"source {k} (black) and atom {j}", xlabel="channel", ylabel="" if k else "topography")
    axes[1, k].set(xlabel="value", ylabel="" if k else "waveform")
figure.savefig(OUT / "meg_atoms.png", dpi=100)
