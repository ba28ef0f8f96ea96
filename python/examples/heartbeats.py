"""Find heartbeats in an ECG, without being told what a heartbeat looks like.

Needs matplotlib and scipy. `python heartbeats.py [folder]` writes heartbeats.png there. There are no annotations with this
recording: the references are two other detectors, scipy's peaks of the ECG between 8 and 25 Hz, and those of the ECG itself.
The settings were chosen on this recording, with the first reference in view: another one may do worse."""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import butter, find_peaks, sosfiltfilt

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")

# The task: three filters of 0.2 s; the one with the most energy is the beat, and its events are the beats.
ecg = np.load(DATA / "signals/ecg_360hz.npy")
settings = dict(preprocess="lowpass=5", boundary="free", axes="T", window="10s", sfreq=360)
model = ocsc.OnlineCSC(n_filters=3, filter_shape=72, beta_ratio=0.3, passes=10, **settings)
events = model.fit_transform(ecg).events(min_distance=108)  # 0.3 s
beats = events[events["filter"] == np.bincount(events["filter"], events["energy"]).argmax()]

band = sosfiltfilt(butter(2, [8, 25], "band", fs=360, output="sos"), ecg)
reference = find_peaks(band, distance=108, height=0.4 * np.quantile(band, 0.99))[0] / 360
for name, other in [("between 8 and 25 Hz", reference), ("themselves", find_peaks(ecg, prominence=1)[0] / 360)]:
    apart = np.abs(beats["time"][:, None] - other)
    precision, recall = np.mean(apart.min(1) <= 0.05), np.mean(apart.min(0) <= 0.05)
    print(f"{len(beats)} beats, {len(other)} peaks {name}: precision {precision:.3f}, recall {recall:.3f} within 50 ms")
print(f"{60 / np.median(np.diff(beats['time'])):.0f} beats per minute")

rows = [["beats", "filters"], ["signal", "filters"], ["raster", "filters"]]
figure, axes = plt.subplot_mosaic(rows, figsize=(10, 7.5), layout="constrained", height_ratios=[2, 2, 1], width_ratios=[5, 1])
shown = slice(21600, 25200)
near = beats[(beats["position"] >= shown.start) & (beats["position"] < shown.stop)].copy()
near["position"] -= shown.start
ocsc.plot.events(near, ecg[shown], axes["beats"], sfreq=360)
axes["beats"].set_title("the ECG and its beats", loc="left", fontsize="medium")
x = ocsc.preprocess(ecg[None, shown], "lowpass=5", axes="NT")[0]
codes = ocsc.code(x[None], model.filters_, model.beta_, boundary="free")
ocsc.plot.activations(x, codes, [axes["signal"], axes["raster"]], sfreq=360, filters=range(3))
axes["signal"].set_title("without its smooth part", loc="left", fontsize="medium")
ocsc.plot.dictionary(model, axes["filters"], order=None, columns=1)
figure.savefig(OUT / "heartbeats.png", dpi=100)
