"""`attlas train`: from a recipe to a run."""

import os
from os.path import lexists
from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Settings


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(help="A TOML file, the name of a recipe that comes with attlas, or a run."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder of the run; by default runs/NAME-OF-RECIPE."),
    ] = None,
    init_from: Annotated[
        str | None,
        typer.Option(
            "--init-from",
            help="A run whose weights and vocabulary the training begins with: other data, other "
            "settings, the same architecture.",
        ),
    ] = None,
    settings: Settings = None,
) -> None:
    """Train a model, or go on with a run that was interrupted.

    Without a recipe: that of the run in --out if there is one, else that of the run in --init-from,
    else the demo, which learns English to German from the corpus that comes with attlas.

    \b
    Examples:
      attlas train
      attlas train multi30k --out runs/m30k --set training.learning_rate=5e-4
      attlas train my.toml --set model.attention=dot
      attlas train imdb                             a classifier of film reviews
      attlas train runs/my                          go on with it
      attlas train --init-from runs/my --out runs/tuned --set data.train=other.tsv
    """
    with loading():
        from attlas._hardware import device_called, disable_malloc_trim
        from attlas.config import overridden
        from attlas.data.base import resolved_name
        from attlas.data.lines import MissingFileError
        from attlas.errors import AttlasError
        from attlas.jobs.inputs import is_run, warn
        from attlas.runs import CONFIG, LAST, CheckpointStore
        from attlas.training import Progress, read_recipe
        from attlas.training import train as train_run
        from attlas.training.distributed import is_main_process
        from attlas.training.events import Event, Started
        from attlas.training.initialization import run_and_checkpoint

    theirs = str(run_and_checkpoint(init_from)[0]) if init_from is not None else "demo"
    name = recipe or (str(out) if out and (out / CONFIG).is_file() else theirs)
    begun = is_run(name)
    if init_from is not None and out is None and (begun or recipe is None):
        raise AttlasError(
            "a folder for the run that --init-from begins", "none", "name one with --out"
        )
    folder = out or (Path(name) if begun else Path("runs") / Path(name).stem)
    for part in (folder, *folder.parents):
        if lexists(part) and not part.is_dir():
            raise AttlasError(
                f"a folder for the run at {folder}",
                f"{part}, which is no folder",
                "choose another one with --out",
            )
    for path in (name, str(folder)):
        if not path.isprintable() and path.encode(errors="replace") != os.fsencode(path):
            raise AttlasError(
                "a recipe and a folder whose names are UTF-8, because the run holds them",
                ascii(path),
                "rename it, or choose another folder with --out",
            )
    chosen = read_recipe(Path(name) / CONFIG if begun else name, settings or (), warn)
    if init_from is not None:
        chosen = chosen.with_init_from(resolved_name(Path().resolve(), init_from))
    if device_called(chosen.training.device).type == "cpu":
        disable_malloc_trim()  # an update asks for what the one before it freed
    if not is_main_process():  # of the processes that torchrun started, the first one speaks
        train_run(chosen, folder)
        return
    told: set[type[Event]] = set()

    def report(event: Event) -> None:
        told.add(type(event))
        progress(event)

    try:
        with Progress() as progress:
            outcome = train_run(chosen, folder, report=report)
    except KeyboardInterrupt as interrupt:
        # Before it has started, what is saved may be of another recipe.
        saved = CheckpointStore(folder).named(LAST) if Started in told else None
        if saved and saved.isdecimal():
            interrupt.add_note(f"update {int(saved):,} is saved: the same command goes on from it")
        raise
    except MissingFileError as error:
        named = overridden({}, settings or ()).assigned
        if ("data", "train") in named and ("data", "valid") not in named:
            error.add_note(
                "where that file is of the recipe's own data, and not of yours: --set data.valid= "
                "--set data.test= --set data.held_back=0.1"
            )
        raise
    next_step = "classify" if chosen.classifies else "look"
    print(f"{outcome.path} is ready; try: attlas {next_step} {outcome.path}")
