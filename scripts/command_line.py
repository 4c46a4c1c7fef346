"""docs/reference/command_line.md: every command with its options, from the commands themselves.

python scripts/command_line.py    write the page (`make docs` does)
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from attlas.cli.main import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "command_line.md"


def page() -> str:
    """The whole page, in Markdown."""
    program: Any = get_command(app)
    context = program.context_class(program, info_name="attlas")
    parts = ["# Command line", "## attlas", *_prose(program.help), *_prose(program.epilog)]
    parts += _options(program, context)
    for path, command, own in _commands(program, context):
        usage = " ".join(command.collect_usage_pieces(own))
        parts += [f"## {path}", f"```text\n{path} {usage}\n```"]
        parts += [*_prose(command.help), *_options(command, own)]
    return "\n\n".join(parts) + "\n"


def _commands(group: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every command below a group with its whole name; a group stands before its commands."""
    for name in group.list_commands(context):
        command = group.commands[name]
        own = command.context_class(command, info_name=name, parent=context)
        yield own.command_path, command, own
        if hasattr(command, "list_commands"):
            yield from _commands(command, own)


def _prose(text: str | None) -> Iterator[str]:
    r"""The paragraphs of a help text; those after \b keep their lines."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        if block.startswith("\b\n"):
            yield f"```text\n{inspect.cleandoc(block[2:])}\n```"
        elif block.strip():
            yield _escaped(" ".join(block.split()))


def _options(command: Any, context: Any) -> Iterator[str]:
    """A table of arguments and options: how each is written, and what it says."""
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [
        f"| `{' '.join(written.split())}` | {_escaped(' '.join(meaning.split()))} |".replace(
            "RUN|", "RUN\\|"
        ).replace("TRACE|R", "TRACE\\|R")
        for written, meaning in filter(None, records)
    ]
    yield "\n".join(["| option | meaning |", "|---|---|", *rows])


def _escaped(text: str) -> str:
    """What Markdown would take for markup stands as it is."""
    return re.sub(r"([\\*_<|`\[])", r"\\\1", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
