"""`attlas`: the commands, and what holds for all of them."""

import sys
from typing import Annotated

import typer

from attlas._signals import stay
from attlas.cli._process import Guarded, GuardedGroup, prepare, unwritten
from attlas.cli.classify import classify
from attlas.cli.compare import compare
from attlas.cli.evaluate import evaluate
from attlas.cli.export import export
from attlas.cli.figure import figure
from attlas.cli.inspect import inspect
from attlas.cli.lab import lab
from attlas.cli.look import look
from attlas.cli.stats import stats
from attlas.cli.train import TrainCommand, train
from attlas.cli.translate import translate

app = typer.Typer(
    name="attlas",
    cls=GuardedGroup,
    help="Train attention models, and see where they look.",
    epilog="""Examples:

\b
  attlas train                           train the demo, into runs/demo
  echo "The cat is sleeping on the sofa." | attlas translate runs/demo
  attlas figure runs/demo "The cat is sleeping on the sofa." --output map.png
  attlas look runs/demo                  show the attention in the browser
  attlas train --pairs my.tsv            train on your own sentence pairs

Exit codes: 0 success, 2 wrong input, 1 a fault in attlas, 130 Ctrl-C (look: 0).""",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain text is readable everywhere, and fast
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command(cls=TrainCommand)(train)
for _command in (translate, classify, evaluate, compare, figure, look, stats, inspect, export):
    app.command(cls=Guarded)(_command)

app.add_typer(lab, name="lab")


def _version(show: bool) -> bool:
    if show:
        from importlib.metadata import version

        print(f"attlas {version('attlas')}")
        raise typer.Exit
    return show


@app.callback()
def everywhere(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="ATTLAS_DEBUG", help="Show tracebacks of errors.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Train attention models, and see where they look."""


def main() -> None:
    """The program, with its standard streams set up."""
    prepare()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # or a full disk would be noticed too late, after --help
    except OSError as error:
        sys.exit(unwritten(error))
    finally:
        stay()
