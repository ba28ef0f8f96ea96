"""Notebooks of some examples: made from the scripts, run, and held against the bounds of their figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gallery_pages
import nbformat
from figures import EXAMPLES
from nbclient import NotebookClient

NOTEBOOKS = {"photos": "learn_and_code", "heartbeats": "heartbeats", "meg": "meg_atoms"}
"""The examples that are notebooks too, by the notebooks' names."""


def notebook(script: Path) -> Any:
    """Returns an example as a notebook that was not run."""
    example = EXAMPLES[script.stem]
    (_, doc), *rest = gallery_pages.pieces(script.read_text("utf-8"))
    data = "\n\nThe data are looked for in `shared/data`; the variable `OCSC_DATA` of the environment names another folder."
    cells = [nbformat.v4.new_markdown_cell(f"# {example.title}\n\n{doc.strip()}{data if example.needs_data else ''}")]
    for kind, piece in rest:
        make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
        if piece.strip():
            cells.append(make(piece.strip("\n")))
    # Names of cells are drawn at random; these do not change from one build to the next.
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=kernel)


def run(name: str, scripts: Path, folder: Path, data: Path) -> tuple[Any, str]:
    """Returns a notebook with what came of it, and what it printed; checks its figures."""
    made = notebook(scripts / f"{NOTEBOOKS[name]}.py")
    environment = {**os.environ, "OCSC_DATA": str(data.resolve())}
    # The kernel draws into the notebook, unless it is told otherwise.
    environment.pop("MPLBACKEND", None)
    client = NotebookClient(made, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    outputs = [output for cell in made.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    EXAMPLES[NOTEBOOKS[name]].check(text)
    if not any("image/png" in output.get("data", {}) for output in outputs):
        raise ValueError(f"{name}: expected a picture in the notebook, found none")
    return made, text


def write(scripts: Path, out: Path, data: Path, execute: bool) -> list[str]:
    """Writes the notebooks, run where their data are; returns the names of those that were run."""
    out.mkdir(parents=True)
    done = []
    for name, stem in NOTEBOOKS.items():
        made = notebook(scripts / f"{stem}.py")
        if execute and (data.is_dir() or not EXAMPLES[stem].needs_data):
            made, _ = run(name, scripts, out, data)
            done.append(name)
        nbformat.validate(made)
        nbformat.write(made, out / f"{name}.ipynb")
    for picture in out.glob("*.png"):
        picture.unlink()
    return done
