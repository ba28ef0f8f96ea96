"""Opens the page of ``verbose="live"``: filters, curves and samples in the browser while they change."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Any

from . import _native
from ._progress import is_notebook

_pages: dict[int, _native.LivePage] = {}
"""The page of each process: one that was forked cannot serve its parent's."""


def is_live(verbose: Any) -> bool:
    """Returns whether ``verbose`` asks for the page, and refuses other words."""
    if isinstance(verbose, str) and verbose != "live":
        raise ValueError(f"verbose: expected a number, True, False or 'live', found {verbose!r}")
    return isinstance(verbose, str)


def live_page() -> _native.LivePage:
    """Returns the page of this process, and says where it is; the first time it is opened in a browser."""
    page = _pages.get(os.getpid())
    is_new = page is None
    if page is None:
        page = _pages[os.getpid()] = _native.LivePage()
    _say(page.url)
    if is_new and _has_screen():
        webbrowser.open(page.url)
    return page


def _say(url: str) -> None:
    if is_notebook():
        from IPython.display import display

        link = f'<a href="{url}" target="_blank">{url}</a>'
        display({"text/plain": f"live page: {url}", "text/html": f"live page: {link}"}, raw=True)
    elif sys.stderr is not None:
        print(f"live page: {url}", file=sys.stderr, flush=True)


def _has_screen() -> bool:
    """Returns whether a browser would be seen; elsewhere one of text might take over the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
