"""Writes the files that are made from the declarations of settings: the constructor's type stub, and the table of the docs.

``cargo xtask generate`` runs this, with the package installed; with ``--check`` it refuses files that are not up to date.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from ocsc import _declarations, _native
from ocsc._declarations import PARAMETERS, POSITIONS

ROOT = Path(__file__).resolve().parents[1]

STUB = '''\
"""The constructor of `OnlineCSC`, for type checkers. Written by ``cargo xtask generate``: edit the declarations instead."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from ._step import Step

class Parameters:
{attributes}

    def __init__(
        self,
{parameters}
    ) -> None:
        """Keeps the parameters as they are given; `fit` checks them.

{documentation}
        """
'''

PAGE = """\
# Settings

This page is written by `cargo xtask generate` from the declarations in `crates/ocsc/src` (`settings.rs`, `coder/settings.rs`,
`update/settings.rs`) and `python/python/ocsc/_declarations.py`. Edit those instead.

The first column is the parameter of `ocsc.OnlineCSC` in Python, the second the flag of `ocsc learn`, or of `ocsc code` and
`ocsc evaluate` where the row says so. A method that does not obey a setting refuses other values than the default. The defaults
are those of Python and of the library. The program chooses `--boundary` and `--preprocess` to suit the data, and takes filters
of 11 along every axis; `ocsc help learn` says how.

| Python | program | default | what it does | methods |
|---|---|---|---|---|
{rows}
"""


def stub() -> str:
    """Returns the text of ``_parameters.pyi``."""
    lines = [f"{p.name}: {p.annotation} = {p.default!r}," for p in PARAMETERS]
    if len(PARAMETERS) > len(POSITIONS):
        lines.insert(len(POSITIONS), "*,")
    return STUB.format(
        attributes=textwrap.indent("\n".join(f"{p.name}: {p.annotation}" for p in PARAMETERS), " " * 4),
        parameters=textwrap.indent("\n".join(lines), " " * 8),
        documentation=textwrap.indent(_declarations.documentation(), " " * 8),
    )


def page() -> str:
    """Returns the text of ``docs/settings.md``."""
    settings = {setting.name: setting for setting in _native.settings()}
    rows = [_row(p.name, p.flag, p.default, p.doc, settings.get(p.name)) for p in PARAMETERS]
    named = {parameter.name for parameter in PARAMETERS}
    # What a model only remembers has no flag.
    others = (s for s in settings.values() if s.name not in named and (s.learn_flag or s.code_flag))
    rows += [_row(None, s.learn_flag, s.default, s.doc + ".", s) for s in others]
    return PAGE.format(rows="\n".join(rows))


def _row(name: str | None, flag: str | None, default: object, doc: str, setting: _native.Setting | None) -> str:
    """Returns a row of the table; ``name`` is that of the parameter, ``flag`` that of ``learn``."""
    flags = [] if flag is None else [f"`--{flag}`"]
    code_flag = None if setting is None else setting.code_flag
    if code_flag is not None:
        also = "also " if flag == code_flag else f"`--{code_flag}` "
        flags.append(f"{also}of `code` and `evaluate`")
    methods = "all"
    if setting is not None and len(setting.methods) < len(_native.methods()):
        methods = ", ".join(setting.methods)
    columns = (
        "" if name is None else f"`{name}`",
        ", ".join(flags),
        "" if default is None else f"`{default!r}`",
        doc.replace("|", r"\|").replace("``", "`"),
        methods,
    )
    return f"| {' | '.join(columns)} |"


def main() -> int:
    """Writes the files, or checks them; returns the program's exit code."""
    is_check = sys.argv[1:] == ["--check"]
    stale = []
    for path, text in ((ROOT / "python/python/ocsc/_parameters.pyi", stub()), (ROOT / "docs/settings.md", page())):
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(path.relative_to(ROOT))
            if not is_check:
                path.write_text(text, "utf-8")
    for name in stale:
        print(f"{name}: expected what the settings say now, found another text; run `cargo xtask generate`" if is_check else name)
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
