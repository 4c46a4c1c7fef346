"""`attlas inspect`: what is in a run, a trace or a recipe."""

from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Settings


def inspect(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TRACE|RECIPE", help="The folder of a run, a saved trace, or a recipe."
        ),
    ],
    settings: Settings = None,
) -> None:
    """Show what is in a run, a saved trace or a recipe.

    A run: its settings, parameters by part, vocabularies, checkpoints, scores and the peak memory
    of its training. A trace: its layers and tokens. A recipe: every setting with its value and its
    meaning, after --set. What is printed of a recipe is a recipe again.

    \b
    Examples:
      attlas inspect runs/demo
      attlas inspect morning.safetensors
      attlas inspect multi30k --set model.attention=dot
      attlas inspect tiny > my.toml
    """
    with loading():
        from attlas.errors import AttlasError
        from attlas.jobs.inputs import is_run, is_safetensors, trace_at, warn
        from attlas.jobs.inspection import describe_recipe, describe_run, describe_trace
        from attlas.runs import Run
        from attlas.training import read_recipe

    path = Path(subject)
    of_trace = (path.suffix == ".safetensors" and not path.is_dir()) or is_safetensors(path)
    of_run = not of_trace and is_run(subject, or_trace=True)
    if settings and (of_run or of_trace):
        raise AttlasError("--set for a recipe", f"it for {path}, which is done", "leave --set out")
    if of_run:
        print(describe_run(Run(path)))
    elif of_trace:
        print(describe_trace(trace_at(path)))
    else:
        print(describe_recipe(read_recipe(subject, settings or (), warn)))
