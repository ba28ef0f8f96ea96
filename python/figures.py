"""The figures that the examples print, and the bounds that they must keep.

The tests read this (``tests/test_examples.py``), and the site (``docs/build.py``), which shows the figures beside their bounds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One number that an example prints, or that follows from two of them."""

    what: str
    pattern: str
    """Finds it in what was printed: one group, or two of which ``how`` makes one number."""
    above: float | None = None
    below: float | None = None
    how: str = "difference"
    """Of two groups: the ``difference`` of the first to the second, or their ``ratio``."""

    def value(self, text: str) -> float:
        """Returns the number that an example printed."""
        found = re.search(self.pattern, text, re.S)
        if found is None:
            raise ValueError(f"{self.what}: expected {self.pattern!r} in what was printed, found {text!r}")
        first, *second = (float(number) for number in found.groups())
        if not second:
            return first
        return first - second[0] if self.how == "difference" else first / second[0]

    def bounds(self) -> str:
        """Returns the bounds in words."""
        words = [f"above {self.above:g}"] if self.above is not None else []
        words += [f"below {self.below:g}"] if self.below is not None else []
        return " and ".join(words)

    def keeps(self, value: float) -> bool:
        """Returns whether a value is within the bounds."""
        return (self.above is None or value > self.above) and (self.below is None or value < self.below)


@dataclass(frozen=True)
class Example:
    """One script of ``examples``."""

    title: str
    section: str
    packages: tuple[str, ...]
    """The modules that it imports besides matplotlib and numpy."""
    figures: tuple[Figure, ...]
    needs_data: bool = True
    """Whether it reads the shared data."""

    def check(self, text: str) -> list[tuple[Figure, float]]:
        """Returns the figures with their values; refuses those that leave their bounds."""
        found = [(figure, figure.value(text)) for figure in self.figures]
        for figure, value in found:
            if not figure.keeps(value):
                raise ValueError(f"{self.title}: {figure.what}: expected a number {figure.bounds()}, found {value:g}")
        return found


NUMBER = r"([\d.]+)"

EXAMPLES = {
    "learn_and_code": Example(
        "Learn from photos, code new ones",
        "Photos",
        ("PIL",),
        (
            Figure("PSNR of new photos (dB)", rf"PSNR {NUMBER} dB with", above=33),
            Figure("coefficients per pixel", rf"with {NUMBER} coefficients for {NUMBER} pixels", below=0.2, how="ratio"),
            Figure(
                "objective of new photos, at the end over after one photo",
                r"objective of new photos: (?=[\d.]+ after one photo, ([\d.]+) at the end)([\d.]+)",
                below=0.9,
                how="ratio",
            ),
        ),
    ),
    "denoise": Example(
        "Remove noise from photos",
        "Photos",
        ("PIL", "skimage"),
        (
            Figure("mean PSNR (dB)", rf"ocsc {NUMBER} dB", above=31),
            Figure("PSNR of the noisy photos (dB)", rf"noisy {NUMBER} dB", below=20.5),
            Figure("dB better than NL-means", rf"ocsc {NUMBER} dB, NL-means {NUMBER} dB", above=0.8),
        ),
    ),
    "inpaint": Example(
        "Fill in missing pixels",
        "Photos",
        ("PIL", "skimage"),
        (
            Figure("mean PSNR of the missing pixels (dB)", rf"ocsc {NUMBER} dB", above=36),
            Figure("dB better than the biharmonic equation", rf"ocsc {NUMBER} dB, biharmonic {NUMBER} dB", above=0.5),
        ),
    ),
    "upscale": Example(
        "Make photos three times as large",
        "Photos",
        ("PIL",),
        (Figure("dB better than cubic interpolation", rf"ocsc {NUMBER} dB, cubic interpolation {NUMBER} dB", above=0.8),),
    ),
    "textures": Example(
        "Classify textures by pooled codes",
        "Photos",
        ("PIL", "sklearn"),
        (
            Figure("accuracy by pooled codes", rf"accuracy {NUMBER} by pooled codes", above=0.3),
            Figure("times the accuracy by pixels", rf"accuracy {NUMBER} by pooled codes, {NUMBER} by", above=1.5, how="ratio"),
        ),
    ),
    "heartbeats": Example(
        "Heartbeats in an ECG",
        "Signals",
        ("scipy",),
        (
            Figure("precision", rf"precision {NUMBER}", above=0.97),
            Figure("recall", rf"recall {NUMBER}", above=0.97),
            Figure("beats per minute", rf"{NUMBER} beats per minute", above=89, below=116),
        ),
    ),
    "meg_atoms": Example(
        "Sources in signals of many channels, as in MEG",
        "Signals",
        (),
        (
            Figure("least likeness of a topography", rf"topographies {NUMBER}", above=0.98),
            Figure("least likeness of a waveform", rf"waveforms {NUMBER}", above=0.98),
            Figure("precision of the times", rf"precision {NUMBER}", above=0.95),
            Figure("recall of the times", rf"recall {NUMBER}", above=0.95),
        ),
        needs_data=False,
    ),
    "lfp_motifs": Example(
        "Motifs of a local field potential",
        "Signals",
        (),
        (
            Figure("explained variance, later", rf"learned, {NUMBER} later", above=0.83),
            Figure("explained variance, learned from minus later", rf"variance: {NUMBER} where it was learned, {NUMBER}", -0.05, 0.05),
        ),
    ),
    "calcium": Example(
        "Spikes in a calcium-imaging movie",
        "Signals",
        ("scipy",),
        (Figure("precision", rf"precision {NUMBER}", above=0.9), Figure("recall", rf"recall {NUMBER}", above=0.85)),
        needs_data=False,
    ),
    "drums": Example(
        "Take a drum loop apart",
        "Sound",
        ("scipy",),
        (
            Figure("what the parts lack of the whole", r"within ([\d.e+-]+)", below=1e-12),
            Figure("% of the energy explained, learned from", rf"learned from: {NUMBER} %", above=75),
            Figure("% of the energy explained, after that", rf"after that: {NUMBER} %", above=75),
        ),
    ),
    "transcribe_piano": Example(
        "Transcribe piano chords",
        "Sound",
        ("scipy",),
        (Figure("precision", rf"precision {NUMBER}", above=0.68), Figure("recall", rf"recall {NUMBER}", above=0.82)),
    ),
}
"""The examples by the names of their files, in the order of the gallery."""
