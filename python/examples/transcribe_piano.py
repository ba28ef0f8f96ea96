"""Transcribe piano chords: learn what each note sounds like when it is struck, and read notes off the events.

Needs matplotlib and scipy. `python transcribe_piano.py [folder]` writes transcribe_piano.png there. Notes are learned from
four recordings; three others play the piece, at all pitches. Settings: the best of some 110, with the two groups swapped."""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import wavfile

import ocsc

DATA = Path(os.environ.get("OCSC_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
NOTES, RATE, HOP = dict(C3=0, E3=4, G3=7, C4=12, E4=16, G4=19, C5=24), 44100, 1024
LEARNED, PLAYED = ("C3", "G3", "E4", "C5"), ("E3", "C4", "G4")


def sounds(note, sources, length):
    """The first values of a note, from every recording, the nearest in pitch first: faster or slower by semitones."""
    for source in sorted(sources, key=lambda source: abs(NOTES[source] - NOTES[note])):
        sound = wavfile.read(DATA / "audio" / f"{source}.wav")[1] / 32768
        yield np.interp(np.arange(length) * 2 ** ((NOTES[note] - NOTES[source]) / 12), np.arange(len(sound)), sound)


def onsets(sound):
    """What gets louder, and when: 372 frequencies up to 2 kHz as channels, 43 values per second."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(sound, 4096), 8192)[::HOP] * np.hanning(8192)
    loudness = np.abs(np.fft.rfft(frames)[:, :372]).T ** 0.5
    return np.maximum(np.diff(loudness, axis=1, prepend=loudness[:, :1]), 0)


# One filter of 0.2 s for each note, which is struck after half a second of silence; and the event of that.
coding = dict(axes="CW", boundary="zero", non_negative=True, dtype="f64")  # f32 cannot certify codes of so little beta
single = ocsc.OnlineCSC(n_filters=1, filter_shape=8, beta_ratio=0.1, init="patches", passes=10, **coding)
heard = [[onsets(np.pad(s, (RATE // 2, 0))) for s in sounds(note, LEARNED, RATE)][:3] for note in NOTES]
filters = [single.fit(examples).filters_ for examples in heard]
alone = [ocsc.code(h[:1], f, 1.0, **coding).events(align="start") for h, f in zip(heard, filters)]
struck = np.array([max(events, key=lambda event: event["amplitude"]) for events in alone])
# A minute of one to three notes at once, soft and loud, which ring into the next.
rng, score = np.random.default_rng(3), []
sound = 1e-3 * rng.standard_normal(90 * RATE)
for second in np.cumsum(rng.uniform(0.25, 0.7, 120)):
    for k in rng.choice(len(NOTES), rng.integers(1, 4), replace=False):
        score.append((k, second))
        note = next(sounds(list(NOTES)[k], PLAYED, int(rng.uniform(0.5, 1.5) * RATE)))
        sound[int(second * RATE) :][: len(note)] += rng.uniform(0.3, 1) * note * np.linspace(1, 0, len(note)) ** 0.1
events = ocsc.code([onsets(sound)], np.concatenate(filters), 0.03 * struck["amplitude"].mean(), **coding).events(align="start")
events = events[events["amplitude"] > 0.1 * struck["amplitude"][events["filter"]]]
found = (events["position"] - struck["position"][events["filter"]]) * HOP / RATE + 0.5
right = sum(np.any((events["filter"] == k) & (np.abs(found - s) <= 0.05)) for k, s in score)
print(f"{len(score)} notes, {len(found)} found: precision {right / len(found):.2f}, recall {right / len(score):.2f}")
figure, ax = plt.subplots(figsize=(10, 3), layout="constrained")
ax.plot([s for _, s in score], [k for k, _ in score], "s", found, events["filter"], "|k", markersize=9)
ax.set(yticks=range(7), yticklabels=NOTES, xlim=(0, 20), xlabel="seconds", title="played (squares) and found (lines)")
figure.savefig(OUT / "transcribe_piano.png", dpi=100)
