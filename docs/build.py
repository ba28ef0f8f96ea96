"""Builds the site: `cargo xtask site` runs this, in an environment with `requirements.txt` and the package.

1. *Stage.* The pages of `docs`, and files of the repository that are pages too, are copied to a folder of their own, with their
   links turned to where they are there. A link to a file that is no page is refused.
2. *Make pages.* The program's commands from its own help; the examples as sphinx-gallery reads them.
3. *Sphinx*, with warnings as errors.
4. *Notebooks* of some examples, run.
5. *Check.* Every link within the site must lead to a file and a heading, and no page may load anything from elsewhere.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT / "python")]
import command_pages  # noqa: E402
import gallery_pages  # noqa: E402
from figures import EXAMPLES  # noqa: E402

PAGES = {
    "benchmarks/RESULTS.md": "benchmarks/results.md",
    "benchmarks/README.md": "benchmarks/method.md",
    "benchmarks/PENALTIES.md": "benchmarks/penalties.md",
    "benchmarks/LEARN_TOL.md": "benchmarks/learn-tol.md",
    "benchmarks/PYTHON.md": "benchmarks/python.md",
    "benchmarks/KERNELS.md": "benchmarks/kernels.md",
    "experiments/RESULTS.md": "paper/results.md",
    "crates/ocsc/NOTATION.md": "how/notation.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Files of the repository outside of `docs` that are pages, by their paths."""

OTHER_NAMES = {"README.md": "index.md", "python/examples": "examples/index.rst", "python/examples/README.md": "examples/index.rst"}
"""Where links to files lead whose content is on other pages."""

LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s#]+)(#[^)\s]*)?\)")


def main() -> int:
    """Builds and checks; returns the exit code."""
    # Not at the top: tests read the list of pages above without what notebooks need.
    import notebooks

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, required=True, help="the program ocsc")
    parser.add_argument("--rustdoc", type=Path, required=True, help="the folder that cargo doc wrote")
    parser.add_argument("--data", type=Path, required=True, help="the shared data")
    parser.add_argument("--out", type=Path, required=True, help="where to write the site")
    parser.add_argument("--draft", action="store_true", help="run no example")
    args = parser.parse_args()
    staged = args.out.with_name(f"{args.out.name}-source")
    for folder in (staged, args.out):
        shutil.rmtree(folder, ignore_errors=True)
    stage(staged)
    command_pages.write(args.program, staged / "reference/commands")
    gallery_pages.stage(ROOT / "python/examples", staged / "_examples")
    run = [] if args.draft else [name for name, example in EXAMPLES.items() if not example.needs_data or args.data.is_dir()]
    clock = time.monotonic()
    sphinx(staged, args.out, run, args.data)
    print(f"sphinx: {time.monotonic() - clock:.0f} s")
    for left_over in (".buildinfo", "objects.inv"):
        (args.out / left_over).unlink(missing_ok=True)
    shutil.copytree(args.rustdoc, args.out / "rust")
    ran = notebooks.write(ROOT / "python/examples", args.out / "notebooks", args.data, not args.draft)
    pages, problems = check(args.out)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{pages} pages in {args.out}; {len(run)} of {len(EXAMPLES)} examples and {len(ran)} of {len(notebooks.NOTEBOOKS)} notebooks run")
    skipped = [name for name in EXAMPLES if name not in run]
    if skipped:
        why = "--draft" if args.draft else gallery_pages.ABSENT
        print(f"skipped: the examples {', '.join(skipped)}: {why}")
    return 1 if problems else 0


def pages() -> dict[str, str]:
    """Returns where files of the repository are on the site, by their paths."""
    own = {path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))}
    return {**own, **PAGES}


def stage(staged: Path) -> None:
    """Copies the sources of all pages, with their links turned."""
    places = pages()
    for source, page in places.items():
        text = turned((ROOT / source).read_text("utf-8"), source, page, places, staged)
        target = staged / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    shutil.copy(DOCS / "conf.py", staged)
    shutil.copytree(DOCS / "_static", staged / "_static")
    (staged / "_python").mkdir()
    for module in (DOCS / "gallery_pages.py", ROOT / "python/figures.py"):
        shutil.copy(module, staged / "_python")


def turned(text: str, source: str, page: str, places: dict[str, str], staged: Path) -> str:
    """Returns the text of a page with links to where things are on the site; copies the pictures that it shows."""

    def turn(match: re.Match[str]) -> str:
        name, target, anchor = match[1], match[2], match[3] or ""
        if urlsplit(target).scheme or target.startswith("/"):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        place = places.get(path) or OTHER_NAMES.get(path)
        if place is None and made_when_built(path):
            return match[0]
        if place is None:
            if not (ROOT / path).is_file() or not name.startswith("!"):
                raise SystemExit(f"error: {source}: expected links to pages of the site, found {target}")
            place = path.removeprefix("docs/")
            (staged / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, staged / place)
        return f"{name}({posixpath.relpath(place, posixpath.dirname(page) or '.')}{anchor})"

    pieces = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(piece if piece.startswith("```") else LINK.sub(turn, piece) for piece in pieces)


def made_when_built(path: str) -> bool:
    """Returns whether a page of this path is made from something else."""
    return path.startswith(("docs/reference/commands/", "docs/examples/", "docs/rust/"))


def sphinx(staged: Path, out: Path, run: list[str], data: Path) -> None:
    """Builds the pages; runs these examples on the way."""
    pattern = rf"/({'|'.join(run)})\.py$" if run else r"^$"
    environment = {**os.environ, "OCSC_SITE_RUN": pattern, "OCSC_DATA": str(data.resolve()), "MPLBACKEND": "Agg"}
    if data.is_dir():
        environment["OCSC_SITE_WHY"] = "this is a draft of the site"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    doctrees = staged.with_name(f"{out.name}-doctrees")
    shutil.rmtree(doctrees, ignore_errors=True)
    done = subprocess.run([*command, "-d", doctrees, staged, out], env=environment, check=False)
    if done.returncode:
        raise SystemExit("error: sphinx failed")


class Page(HTMLParser):
    """Collects what a page refers to, what it loads, and the places in it that can be referred to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.places.update(values[name] for name in ("id", "name") if name in values)
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and "href" in values and values.get("rel") not in ("next", "prev", "search", "index", "author"):
            self.loads.append(values["href"])
        if "src" in values:
            self.loads.append(values["src"])


def check(site: Path) -> tuple[int, list[str]]:
    """Returns how many pages there are besides those of rustdoc, and what is wrong with them."""
    found = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html")) if "rust" not in path.relative_to(site).parts[:1]}
    problems = []
    for path, page in found.items():
        where = path.relative_to(site)
        for target in [*page.links, *page.loads]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads and parts.scheme != "data":
                    problems.append(f"{where}: expected nothing from elsewhere, found {target}")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.is_file():
                problems.append(f"{where}: expected a file of the site, found a link to {target}")
            elif parts.fragment and file in found and unquote(parts.fragment) not in found[file].places:
                problems.append(f"{where}: expected a place in a page, found a link to {target}")
    return len(found), problems


if __name__ == "__main__":
    sys.exit(main())
