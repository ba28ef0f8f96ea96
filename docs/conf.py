"""Settings of Sphinx for the site. `docs/build.py` copies the pages to a folder of their own and runs it there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_python"))
import gallery_pages  # noqa: E402

import ocsc  # noqa: E402

project = "ocsc"
author = "the ocsc developers"
copyright = "the ocsc developers; MIT or Apache-2.0"
version = release = ocsc.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_examples", "_python", "requirements.txt", "**/README.md"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# Not the rest of sphinx-gallery's index of all functions.
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3

# Types in the docstrings are words for people.
nitpick_ignore_regex = [("py:class", r"(?!ocsc\.).*"), ("py:data", r".*")]
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

smartquotes = False

html_theme = "furo"
html_title = f"ocsc {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "tango"
pygments_dark_style = "monokai"

sphinx_gallery_conf = {
    "examples_dirs": "_examples",
    "gallery_dirs": "examples",
    "filename_pattern": os.environ.get("OCSC_SITE_RUN", r"^$"),
    "ignore_pattern": r"^$",
    "subsection_order": "gallery_pages.order",
    "within_subsection_order": "gallery_pages.order",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 0,
    "copyfile_regex": r"^$",
    "plot_gallery": "True",
    "reference_url": {},
}


def formula(self, node: nodes.Element, as_block: bool) -> None:
    """Writes a formula as MathML, which browsers draw by themselves: no script and no font comes with the page."""
    text = tex2mathml(node.astext(), as_block=as_block)
    self.body.append(f'<div class="formula">{text}</div>' if as_block else text)
    raise nodes.SkipNode


def resolve(app, env, node: nodes.Element, content: nodes.Element) -> nodes.Element | None:
    """Finds what single backticks in docstrings refer to: names of the package from within its modules, and attributes that a class
    describes in its own docstring. Names of parameters and variables stay code without a link."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or node.get("reftype") != "obj":
        return None
    owner, _, attribute = target.rpartition(".")
    names = [f"ocsc.{target}"]
    if re.search(rf"^ *(\w+, )*{attribute}\b.* : ", getattr(getattr(ocsc, owner, None), "__doc__", None) or "", re.M):
        names.append(f"ocsc.{owner}")
    for name in names:
        found = env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
        if found is not None:
            return found
    return content if not owner or owner.islower() and not hasattr(ocsc, owner) else None


def bars(app, what, name, obj, options, lines: list[str]) -> None:
    """Lets the bars of norms in docstrings be bars: in reStructuredText they would be substitutions."""
    for i, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(``.*?``)", line)
            lines[i] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def dashes(app, doctree: nodes.document) -> None:
    """Makes dashes of what Sphinx writes between a parameter and what it does. Elsewhere two hyphens begin a flag."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \u2013 "))


def setup(app) -> None:
    app.connect("doctree-read", dashes)
    app.connect("autodoc-process-docstring", bars)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: formula(self, node, False), None),
        block_renderers=(lambda self, node: formula(self, node, True), None),
    )
    app.connect("missing-reference", resolve)
    # After sphinx-gallery has run the examples, before the pages are read.
    app.connect("builder-inited", lambda app: gallery_pages.finish(Path(app.srcdir)), priority=900)
