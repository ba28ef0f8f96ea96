"""The progress bar of ``verbose=1``: one line on stderr, in terminals and in notebooks."""

import sys
import time

from ._types import Step

WIDTH = 24
EVERY = 0.1


class Bar:
    """Shows how far a run is; `total` samples, or as many as come."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.shown = 0.0
        self.length = 0

    def show(self, step: Step) -> None:
        """After a step, at most ten times a second, and at the end."""
        done = step["samples"]
        now = time.monotonic()
        if now - self.shown < EVERY and done != self.total:
            return
        self.shown = now
        head = f"{done} samples"
        if self.total:
            full = WIDTH * min(done, self.total) // self.total
            head = f"[{'=' * full}{' ' * (WIDTH - full)}] {done}/{self.total}"
        line = f"ocsc {head}  objective {step['objective']:.4g}  gap {100 * step['gap']:.2g} %  {step['seconds']:.1f} s"
        # Shorter lines must cover longer ones.
        print("\r" + line.ljust(self.length), end="", file=sys.stderr, flush=True)
        self.length = len(line)

    def close(self) -> None:
        """Ends the line, if there is one."""
        if self.length:
            print(file=sys.stderr, flush=True)
            self.length = 0
