"""The commands as a shell would call them, for the tests."""

from collections.abc import Iterator
from functools import cache

from typer import testing
from typer.core import TyperGroup
from typer.main import get_group

from attlas.cli.main import app


def leaves(group: TyperGroup) -> Iterator[str]:
    """The commands below a group, each with all its words: "train", "lab run"."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from (f"{name} {below}" for below in leaves(command))
        else:
            yield name


COMMANDS = [*leaves(get_group(app))]
# The runner builds all commands and their options at every call, which takes longer than most of
# what is tested here. A process builds them once, and so do the tests.
testing._get_command = cache(testing._get_command)


def called(*arguments: object, text: str | bytes | None = None) -> tuple[int, str, str]:
    """The exit code, the standard output and what was told beside it."""
    result = testing.CliRunner().invoke(app, [*map(str, arguments)], input=text)
    return result.exit_code, result.stdout_bytes.decode(), result.stderr
