"""The gallery: examples as sphinx-gallery reads them, and what is added to the pages that it makes of them."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

from figures import EXAMPLES, Example

ABSENT = "the shared data are absent (set OCSC_DATA to a folder with them)"


def order(name: str) -> str:
    """Returns what examples and sections are sorted by: their place in `EXAMPLES`."""
    names = [*EXAMPLES]
    sections = [example.section for example in EXAMPLES.values()]
    stem = Path(name).stem
    place = names.index(stem) if stem in names else next((i for i, s in enumerate(sections) if s.lower() == stem), 99)
    return f"{place:02}"


def stage(scripts: Path, out: Path) -> None:
    """Writes the examples as sphinx-gallery wants them, in a folder for each section."""
    out.mkdir(parents=True)
    (out / "GALLERY_HEADER.rst").write_text(HEADER)
    for name, example in EXAMPLES.items():
        folder = out / example.section.lower()
        folder.mkdir(exist_ok=True)
        (folder / "GALLERY_HEADER.rst").write_text(f"{example.section}\n{'-' * len(example.section)}\n")
        (folder / f"{name}.py").write_text(with_headings((scripts / f"{name}.py").read_text("utf-8"), example), "utf-8")


HEADER = """\
Examples
========

Every example is run when this site is built. Its page has the time that it took, its picture, and the figures that it printed
beside the bounds that they must keep: the build fails when one leaves them. Each can be had as a script and as a notebook.
"""


def with_headings(text: str, example: Example) -> str:
    """Returns an example as sphinx-gallery wants it: with a title, and with its comments as paragraphs between pieces of code."""
    doc, *rest = pieces(text)
    lines = [f'r"""\n{example.title}\n{"=" * len(example.title)}\n\n{reworded(doc[1])}\n"""']
    for kind, piece in rest:
        lines += [piece] if kind == "code" else ["# %%", *(f"# {reworded(line)}" for line in piece.splitlines())]
    return "\n".join(lines) + "\n"


def pieces(text: str) -> list[tuple[str, str]]:
    """Returns the pieces of an example in turn, each ``text`` or ``code``: its docstring, then code and comments between it. Notebooks
    and pages know neither a script's place nor its arguments, so they look for the data beside them."""
    tree = ast.parse(text)
    # How to call the script is of no use here.
    doc = re.sub(r"`python \w+\.py \[folder\]` writes [\w.]+ there(, and so on)?[.,]\s*", "", ast.get_docstring(tree) or "")
    found = [("text", doc)]
    for line in text.splitlines()[tree.body[0].end_lineno :]:
        kind = "text" if line.startswith("# ") else "code"
        if line == "import sys":
            continue
        if line.startswith("DATA = "):
            line = 'DATA = Path(os.environ.get("OCSC_DATA", "shared/data"))'
        if line.startswith("OUT = "):
            line = 'OUT = Path(".")'
        line = line.removeprefix("# ") if kind == "text" else line
        if found[-1][0] == kind and len(found) > 1:
            found[-1] = (kind, f"{found[-1][1]}\n{line}")
        else:
            found.append((kind, line))
    return found


def reworded(text: str) -> str:
    """Returns text of a docstring or a comment as reStructuredText."""
    return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text.replace("*", r"\*"))


def printed(page: str) -> str:
    """Returns what an example printed, as its page shows it."""
    blocks = re.findall(r"sphx-glr-script-out\n\n \.\. code-block:: none\n\n((?:    .*\n|\n)+)", page)
    return "\n".join(blocks)


def finish(source: Path) -> None:
    """Checks what the examples printed, and puts it on their pages with their pictures, before the code; says on the others that they
    were not run. The page of all examples gets a table."""
    rows = []
    for name, example in EXAMPLES.items():
        path = source / "examples" / example.section.lower() / f"{name}.rst"
        page = path.read_text("utf-8")
        took = re.search(r"\*\*Total running time of the script:\*\* \((\d+) minutes ([\d.]+) seconds\)", page)
        if took:
            seconds = 60 * int(took[1]) + float(took[2])
            figures = example.check(printed(page))
            page, picture = without_picture(page)
            cells = [[figure.what, f"{value:.4g}", figure.bounds()] for figure, value in figures]
            took_row = ["seconds that it took", f"{seconds:.1f}", ""]
            added = f"{picture}\n\n{table(['figure', 'printed here', 'must be'], [*cells, took_row])}"
            rows.append([f":doc:`{example.section.lower()}/{name}`", *cells[0], f"{seconds:.1f}"])
        else:
            added = f".. note:: This example was not run: {os.environ.get('OCSC_SITE_WHY', ABSENT)}."
            rows.append([f":doc:`{example.section.lower()}/{name}`", "not run", "", "", ""])
        code = page.index(".. GENERATED FROM PYTHON SOURCE LINES", page.index(example.title))
        path.write_text(f"{page[:code]}{added}\n\n{page[code:]}", "utf-8")
    index = source / "examples/index.rst"
    heading = "The figures\n-----------\n\nThe first figure of each example; its page has the others."
    text = table(["example", "figure", "printed here", "must be", "seconds"], rows)
    index.write_text(f"{index.read_text('utf-8')}\n\n{heading}\n\n{text}\n", "utf-8")


def without_picture(page: str) -> tuple[str, str]:
    """Returns the page of an example without its picture, and the picture."""
    found = re.search(r"^\.\. image-sg:: .*\n(?:   :.*\n)+", page, re.M)
    if found is None:
        raise ValueError(f"expected a picture, found none in {page[:400]}")
    return page.replace(found[0], "", 1), found[0]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [head, *rows]:
        lines += [f"   {'-' if i else '* -'} {cell}".replace("   - ", "     - ", 1) for i, cell in enumerate(row)]
    return "\n".join(lines)
