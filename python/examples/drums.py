"""Take a drum loop apart: learn what its strokes sound like, and write what each of them plays as a recording of its own.

Needs matplotlib and scipy. `python drums.py [folder]` writes drums.png there, drums-0.wav and so on, one for each filter, and
drums-rest.wav, what no filter explains. The loop is of a tabla. Filters are learned from its first four seconds; as the player
repeats the pattern, the rest of the loop is much like them. Settings were chosen on the whole loop, and random_state of three,
so that every filter plays something."""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import wavfile

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rate, loop = wavfile.read(DATA / "audio/loop_tabla.wav")
loop = loop.mean(axis=1) / 32768  # both ears in one

# Four filters of 0.1 s. They begin as pieces of the loop: random ones so long resemble nothing, and get no codes at all.
settings = dict(axes="T", window="1s", sfreq=rate, boundary="zero", init="patches", random_state=1)
model = ocsc.OnlineCSC(n_filters=4, filter_shape=rate // 10, beta_ratio=0.2, passes=5, **settings).fit(loop[: 4 * rate])
codes = model.transform(loop)
whole = model.inverse_transform(codes)
parts = [model.inverse_transform(codes.select(filter=k)) for k in range(4)]

print(f"the parts add up to the reconstruction within {np.abs(sum(parts) - whole).max():.0e}")
for name, span in ("learned from", slice(4 * rate)), ("after that", slice(4 * rate, None)):
    explained = 1 - np.sum((loop - whole)[span] ** 2) / np.sum(loop[span] ** 2)
    print(f"{name}: {100 * explained:.1f} % of the energy explained")

names = [*map(str, range(4)), "rest"]
for name, part in zip(names, [*parts, loop - whole]):
    wavfile.write(OUT / f"drums-{name}.wav", rate, np.rint(np.clip(32768 * part, -32768, 32767)).astype(np.int16))

figure, axes = plt.subplots(6, 1, figsize=(10, 8), sharex=True, layout="constrained")
for ax, name, part in zip(axes, ["loop", *names], [loop, *parts, loop - whole]):
    ax.plot(np.arange(len(part)) / rate, part, linewidth=0.4)
    ax.set_ylabel(f"filter {name}" if name.isdigit() else name)
axes[-1].set(xlabel="seconds", xlim=(0, len(loop) / rate))
figure.savefig(OUT / "drums.png", dpi=100)
