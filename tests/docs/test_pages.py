"""What README.md and the pages show runs as it stands; their links lead somewhere."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from support.minilm import minilm
from support.pages import ROOT, pages
from support.warm_processes import WarmProcess

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PAGES = pages()
# All but what scripts write from docstrings, and the log.
PLAIN = [
    page
    for page in PAGES
    if page.parent.name not in ("reference", "api", "dev", "lab") and page.name != "index.md"
]
# The chapters of the course train models for minutes: the site runs them while it is built.
RUN = [page for page in PAGES if page.parent.name != "course"]
TRANSFORMERS = tuple(f"transformers.models.{name}.modeling_{name}" for name in ("bert", "llama"))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page and the cells of a notebook, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(?:python|\{code-cell\}[^\n]*)\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("page", [page for page in RUN if blocks(page)], ids=name_of)
def test_the_python_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The model that the pages name comes as a package of the tests: nothing is downloaded.
    code = "\n".join(blocks(page)).replace(f'"{MODEL}"', repr(str(minilm())))
    monkeypatch.chdir(tmp_path)
    with WarmProcess(
        code=f"import warnings; warnings.simplefilter('error')\n{code}",
        loaded=TRANSFORMERS if "transformers" in code else (),
        stderr=PIPE,
    ) as process:
        printed = process.printed()
    assert process.returncode == 0, printed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_and_picture_of_a_page_exists(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    local = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if not t.startswith("http")]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_page_but_the_first_is_in_a_table_of_contents() -> None:
    docs = ROOT / "docs"
    listed = set()
    for page in PAGES:
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{entry}.md").resolve() for entry in entries}
    written = {page for page in PAGES if page.is_relative_to(docs)} - {docs / "index.md"}
    made = docs / "reference" / "command_line.md"
    assert listed - {made} == written - {made}


def sentences(page: Path) -> list[str]:
    """The sentences of a page, without code, tables, headings and the targets of links."""
    text = re.sub(r"\A---\n.*?^---\n", "", page.read_text("utf-8"), flags=re.M | re.S)
    text = re.sub(r"<!-- (results|benchmarks).*?<!-- end of \1 -->", "", text, flags=re.S)
    text = re.sub(
        r"^```.*?^```|<!--.*?-->|^\$\$.*?\$\$$|^[|#!].*?$|^    .*?$", "", text, flags=re.M | re.S
    )
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return [
        sentence
        for paragraph in re.split(r"\n\s*\n|\n(?=[-*] )", text)
        for sentence in re.split(r"(?<=[.!?:])\s+", paragraph.strip())
        if sentence
    ]


def test_the_readme_has_at_most_800_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800


def test_the_design_has_at_most_2500_words() -> None:
    assert len((ROOT / "docs" / "design.md").read_text(encoding="utf-8").split()) <= 2500


def test_every_file_and_folder_that_the_design_names_is_there() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_\-]+(?:/[a-z_\-]+)*(?:/|\.py))`", text)) - {"checkpoints/"}
    assert len(named) > 20
    homes = (
        ROOT,
        ROOT / "src" / "attlas",
        ROOT / "src" / "attlas" / "recording" / "torch_functions",
    )
    assert [name for name in named if not any((home / name).exists() for home in homes)] == []


@pytest.mark.parametrize("page", PLAIN, ids=name_of)
def test_no_sentence_of_a_page_that_is_written_by_hand_has_more_than_30_words(
    page: Path,
) -> None:
    found = sentences(page)
    assert found
    assert [sentence for sentence in found if len(sentence.split()) > 30] == []


def written_options(page: Path) -> set[tuple[str, str]]:
    """The options that a page writes, each with its command."""
    found = set()
    for line in page.read_text("utf-8").replace("\\\n", " ").splitlines():
        for command, rest in re.findall(r"\battlas (\w+)((?:[^`|&;#]|\|(?! attlas))*)", line):
            found |= {(command, option) for option in re.findall(r"(?<=\s)--[a-z][\w-]*", rest)}
    return found


def test_every_option_that_a_page_writes_is_one_of_its_command() -> None:
    from typer.main import get_command

    from attlas.cli.main import app

    group: Any = get_command(app)
    known: dict[str, set[str]] = {
        name: {text for parameter in command.params for text in parameter.opts}
        | {text for parameter in command.params for text in parameter.secondary_opts}
        for name, command in [*group.commands.items(), *group.commands["lab"].commands.items()]
    }
    known["lab"] = set().union(*(known[name] for name in group.commands["lab"].commands))
    # Not the log, nor the page that is made of the help itself.
    made = "command_line.md"
    pages_of_today = [page for page in PAGES if page.parent.name != "dev" and page.name != made]
    written = {(page, *option) for page in pages_of_today for option in written_options(page)}
    assert len(written) > 40
    wrong = [
        (page.name, command, option)
        for page, command, option in sorted(written)
        if command in known and option not in {*known[command], "--help"}
    ]
    assert wrong == []


def test_the_page_of_commands_has_every_command_with_every_option() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "command_line.py"))["page"]()
    helped = subprocess.run(
        [sys.executable, "-m", "attlas", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = re.findall(
        r"^  (\w+)  +\S", helped.split("Commands:")[1].split("Examples:")[0], re.M
    )
    assert re.findall(r"^## attlas (\w+)$", page, re.M) == commands
    sections = re.split(r"^## attlas ?", page, flags=re.M)
    for command in ("train", "translate"):
        own = next(section for section in sections if section.startswith(f"{command}\n"))
        shown = subprocess.run(
            [sys.executable, "-m", "attlas", command, "--help"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown, re.M)
        assert options
        assert all(option in own for option in options)
