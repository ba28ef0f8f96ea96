"""Find spikes in a calcium-imaging movie: which cells fire, and in which frames.

Needs matplotlib and scipy. `python calcium.py [folder]` writes calcium.png there. Movies are made up: 20 cells light up and
fade, in noise. Settings were chosen on seven trial movies, filter and threshold on the movie of seed 0; the score is that of
three others, which nothing was chosen on. Real movies also have a background, and cells that are not round."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

import ocsc

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
RATE, FRAMES, SIDE = 10, 160, 40


def simulate(seed):
    """A movie (frames, height, width), and its spikes as rows of frame, y, x."""
    rng, y, x = np.random.default_rng(seed), *np.mgrid[:SIDE, :SIDE]
    movie, spikes = 0.3 * rng.standard_normal((FRAMES, SIDE, SIDE)), []
    for _ in range(20):
        top, left, width = *rng.uniform(4, SIDE - 4, 2), rng.uniform(1.3, 1.9)
        cell = np.exp(-((y - top) ** 2 + (x - left) ** 2) / (2 * width**2))
        for frame in np.flatnonzero(rng.random(FRAMES) < 0.02):
            movie[frame:] += rng.uniform(0.6, 1.4) * np.exp(-np.arange(FRAMES - frame) / 8)[:, None, None] * cell
            spikes.append((frame, top, left))
    return movie, np.array(spikes)


def hits(events, spikes):
    """How many events are spikes: each of one other, at most 2 frames and 2 pixels away."""
    apart = [np.abs(events[name][:, None] - column) for name, column in zip("zyx", spikes.T)]
    near = (apart[0] <= 2) & (np.hypot(apart[1], apart[2]) <= 2)
    return near[linear_sum_assignment(near, maximize=True)].sum()


# One filter of 2 s and 7 x 7 pixels. Light adds up, so neither filters nor codes are negative.
settings = dict(axes="THW", sfreq=RATE, boundary="zero", non_negative=True, filters_nonnegative=True)
model = ocsc.OnlineCSC(n_filters=1, filter_shape=(20, 7, 7), beta_ratio=0.1, passes=10, **settings)
movie, spikes = simulate(0)
events = model.fit_transform(movie).events(min_distance=(3, 4, 4))
tried = [events[events["amplitude"] >= least] for least in np.arange(0, 2, 0.1)]
threshold = 0.1 * np.argmax([hits(some, spikes) / (len(some) + len(spikes)) for some in tried])
truths = [simulate(seed) for seed in (1, 2, 3)]
found = [model.transform(movie).events(min_distance=(3, 4, 4), threshold=threshold) for movie, _ in truths]
right, made, total = sum(np.array([hits(e, s), len(e), len(s)]) for e, (_, s) in zip(found, truths))
print(f"{total} spikes, {made} found: precision {right / made:.3f}, recall {right / total:.3f}")

figure, axes = plt.subplot_mosaic("ab;cc", figsize=(11, 5.4), layout="constrained", width_ratios=[1, 1.7], height_ratios=[9, 1])
events, (movie, spikes) = found[0], truths[0]
ocsc.plot.events(events, movie.std(axis=0), axes["a"])
axes["a"].plot(spikes[:, 2], spikes[:, 1], "C1+")
axes["b"].plot(spikes[:, 0] / RATE, spikes[:, 1], "C1+", events["time"], events["y"], "C0o", fillstyle="none", markersize=8)
axes["b"].set(xlabel="seconds", ylabel="y", ylim=axes["a"].get_ylim(), title="spikes (crosses) and what was found (circles)")
ocsc.plot.dictionary(model, axes["c"], columns=1, title="the filter, frame by frame")
figure.savefig(OUT / "calcium.png", dpi=100)
