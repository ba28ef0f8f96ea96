"""Transcribe piano chords: learn what each note sounds like when it is struck, and read notes off the activations.

Needs matplotlib. `python transcribe_piano.py [folder]` writes transcribe_piano.png there. The piece is made of the recordings
that the notes are learned from, so that the truth is known; a real performance is harder."""

import os
import sys
import wave
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
NOTES, RATE, FRAME, HOP = ["C3", "E3", "G3", "C4", "E4", "G4", "C5"], 44100, 8192, 1024


def recording(note):
    with wave.open(str(DATA / "audio" / f"{note}.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


def onsets(sound):
    """What gets louder, and when: 372 frequencies up to 2 kHz as channels, 43 values per second."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(sound, FRAME // 2), FRAME)[::HOP]
    loudness = np.abs(np.fft.rfft(frames * np.hanning(FRAME))[:, :372]).T ** 0.7
    return np.maximum(np.diff(loudness, axis=1, prepend=loudness[:, :1]), 0)


# One filter of 0.2 s for each note, learned from its recording, which begins after half a second of silence.
coding = dict(axes="CW", boundary="zero", non_negative=True, dtype="f64")  # f32 cannot certify codes of so little beta
notes = [onsets(np.pad(recording(note)[:RATE], (RATE // 2, 0))) for note in NOTES]
single = ocsc.OnlineCSC(n_filters=1, filter_shape=8, beta_ratio=0.1, init="patches", passes=10, **coding)
filters = np.concatenate([single.fit([note]).filters_ for note in notes])
struck = [code.to_dense()[k] for k, code in enumerate(ocsc.code(notes, filters, beta=1.0, **coding))]

# Twenty seconds of one to three notes at once, soft and loud, which ring into the next.
rng, sound, score, second = np.random.default_rng(3), np.zeros(23 * RATE), [], 0.3
while second < 20:
    for k in rng.choice(len(NOTES), rng.integers(1, 4), replace=False):
        length, start = int(rng.uniform(0.5, 1.5) * RATE), int(second * RATE)
        sound[start : start + length] += rng.uniform(0.3, 1) * recording(NOTES[k])[:length] * np.linspace(1, 0, length) ** 0.1
        score.append((k, second))
    second += rng.uniform(0.25, 0.7)
sound += 1e-3 * rng.standard_normal(len(sound))

z = ocsc.code([onsets(sound)], filters, beta=5.0, **coding)[0].to_dense()
top = [max(row[max(0, i - 3) : i + 4]) for row in z for i in range(len(row))]
peaks = np.argwhere((z == np.reshape(top, z.shape)) & (z > [[0.1 * s.max()] for s in struck]))
found = [(k, (i - struck[k].argmax()) * HOP / RATE + 0.5) for k, i in peaks]
right = sum(any(j == k and abs(s - t) <= 0.05 for j, t in found) for k, s in score)
print(f"{len(score)} notes, {len(found)} found: precision {right / len(found):.2f}, recall {right / len(score):.2f}")
ax = plt.subplots(figsize=(10, 3), layout="constrained")[1]
ax.plot([s for _, s in score], [k for k, _ in score], "s", [t for _, t in found], [k for k, _ in found], "|k", markersize=9)
ax.set(yticks=range(len(NOTES)), yticklabels=NOTES, xlabel="seconds", title="played (squares) and found (lines)")
ax.figure.savefig(OUT / "transcribe_piano.png", dpi=100)
