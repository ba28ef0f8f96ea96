"""Shows the progress of ``verbose=1``: a line that changes, in terminals and in notebooks; elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from typing import Any

from ._errors import counted
from ._step import Step

WIDTH = 24
EVERY = 0.1
"""Seconds between two refreshes, at least."""

EVERY_IN_FILES = 5.0
"""The same where every refresh is a line more: stderr in a file."""


class Bar:
    """Shows how far a run is, of ``total`` samples or of as many as come."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.length = 0
        self.is_notebook = is_notebook()
        self.is_terminal = sys.stderr is not None and sys.stderr.isatty()
        changes = self.is_notebook or self.is_terminal
        self.every = EVERY if changes else EVERY_IN_FILES
        self.shown = float("-inf") if changes else time.monotonic()
        self.handle: Any = None
        self.waiting: Step | None = None

    def show(self, step: Step) -> None:
        """Shows a step; not every one, if they are quick."""
        self.waiting = step
        if time.monotonic() - self.shown >= self.every:
            self._draw(step)

    def close(self) -> None:
        """Shows the last step, and ends the line, if there is one."""
        if self.waiting is not None:
            self._draw(self.waiting)
        if self.length and sys.stderr is not None:
            print(file=sys.stderr, flush=True)
            self.length = 0

    def _draw(self, step: Step) -> None:
        self.shown, self.waiting = time.monotonic(), None
        line = self._line(step)
        if self.is_notebook:
            self._display(line)
        elif self.is_terminal:
            # Shorter lines must cover longer ones.
            print("\r" + line.ljust(self.length), end="", file=sys.stderr, flush=True)
            self.length = len(line)
        elif sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)

    def _line(self, step: Step) -> str:
        done = step["samples"]
        head = counted(done, "sample")
        if self.total:
            full = WIDTH * min(done, self.total) // self.total
            head = f"[{'=' * full}{' ' * (WIDTH - full)}] {done}/{self.total}"
        return f"ocsc {head}  objective {step['objective']:.4g}  gap {100 * step['gap']:.2g} %  {step['seconds']:.1f} s"

    def _display(self, line: str) -> None:
        """Updates one output of the cell: notebooks that are stored would keep every line on stderr."""
        from IPython.display import display

        content = {"text/plain": line}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)


def is_notebook() -> bool:
    """Returns whether this runs in a kernel of IPython, as in Jupyter, which has imported IPython then."""
    ipython = sys.modules.get("IPython")
    get_shell = getattr(ipython, "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    return getattr(shell, "kernel", None) is not None
