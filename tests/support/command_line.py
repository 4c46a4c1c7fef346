"""The commands as a shell would call them, for the tests."""

from typer.main import get_group
from typer.testing import CliRunner

from attlas.cli.main import app

COMMANDS = [*get_group(app).commands]


def called(*arguments: object, text: str | bytes | None = None) -> tuple[int, str, str]:
    """The exit code, the standard output and what was told beside it."""
    result = CliRunner().invoke(app, [*map(str, arguments)], input=text)
    return result.exit_code, result.stdout_bytes.decode(), result.stderr
