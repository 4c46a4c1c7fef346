"""`attlas train`: from a recipe to a run."""

import os
from os.path import lexists
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from attlas._signals import loading
from attlas.cli._options import Settings
from attlas.cli._process import Guarded


class TrainCommand(Guarded):
    """`attlas train`, whose --pairs takes several files."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options. `--pairs a b` is read as `--pairs a --pairs b`."""
        arguments: list[str] = []
        after = more = False  # after: the option itself; more: a file of it
        for argument in args:
            is_option = argument.startswith("-") and argument != "-"
            if more and not is_option:
                arguments.append("--pairs")
            more = argument.startswith("--pairs=") or (not is_option and (after or more))
            after = argument == "--pairs"
            arguments.append(argument)
        try:
            return super().parse_args(ctx, arguments)
        except Exception as error:
            option = getattr(error, "option_name", None)  # an unknown one
            if isinstance(option, str) and (advice := _as_setting(option)):
                error.message += advice  # type: ignore[attr-defined]
                error.possibilities = []  # type: ignore[attr-defined]
            raise


def _as_setting(option: str) -> str:
    """How the setting that an unknown option names is written; "" = there is none."""
    from attlas.config import nearest_settings
    from attlas.training.recipe import Recipe

    name = option.lstrip("-").replace("-", "_")
    names = nearest_settings(Recipe, name, {})
    return f". It is a setting: write --set {names[0]}=…" if names else ""


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
            help="A run whose weights and vocabulary the training begins with. Its model must have "
            "the same architecture.",
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pairs",
            metavar="FILE [FILE…]",
            help="Sentence pairs: TSV or CSV files, or two files with a sentence a line. All "
            "settings are chosen by their number.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="FILE|FOLDER",
            help="Texts with labels: a CSV, TSV or JSON lines file, or a folder for each label. "
            "All settings are chosen by their number.",
        ),
    ] = None,
    length: Annotated[
        str | None,
        typer.Option(
            "--length",
            metavar="N|SHORTEST:LONGEST",
            help="The length of the sequences of copy, reverse and sort, such as 20 or 5:40.",
        ),
    ] = None,
    settings: Settings = None,
) -> None:
    """Train a model, or continue a run that was interrupted.

    The simplest way to train on your own text is --pairs FILE: attlas chooses all settings by the
    size of the data, and writes them into a recipe.

    Without a recipe and without data, attlas continues the run in --out if there is one. Otherwise
    it uses the recipe of the run in --init-from. Otherwise it trains the demo, which translates
    English to German.

    \b
    Examples:
      attlas train                         the demo
      attlas train --pairs my.tsv          your own sentence pairs, into runs/my
      attlas train --pairs my.en my.de --out runs/en-de
      attlas train --pairs part-*.tsv      several files, into runs/part
      attlas train --labels reviews.csv    your own texts with labels
      attlas train multi30k --out runs/m30k --set training.learning_rate=5e-4
      attlas train my.toml --set model.attention=dot
      attlas train my.toml --set training.max_minutes=30
      attlas train reverse --length 5:40   sequences of symbols, reversed
      attlas train imdb                    a classifier of film reviews
      attlas train runs/my                 continue this run
      attlas train --init-from runs/my --out runs/tuned --set data.train=other.tsv
    """
    with loading():
        from attlas._hardware import device_called, disable_malloc_trim
        from attlas.config import overridden
        from attlas.data.base import resolved_name
        from attlas.data.lines import MissingFileError
        from attlas.errors import AttlasError
        from attlas.jobs.inputs import is_run, length_range, warn
        from attlas.jobs.own_data import (
            announce,
            check_same_data,
            default_folder,
            recipe_for,
            recipe_path,
            write_recipe,
        )
        from attlas.runs import CONFIG, LAST, CheckpointStore
        from attlas.training import Progress, read_recipe
        from attlas.training import train as train_run
        from attlas.training.distributed import is_main_process
        from attlas.training.events import Event, Started
        from attlas.training.initialization import run_and_checkpoint

    if length is not None:
        settings = [*(settings or ()), f"data.length={length_range(length)}"]
    option, files = ("--labels", [labels]) if labels else ("--pairs", pairs or [])
    if files:
        sources = {
            "--pairs": pairs,
            "--labels": labels,
            f"the recipe {recipe}": recipe,
            "--length": length,
        }
        if len(others := [word for word, value in sources.items() if value]) > 1:
            raise AttlasError(
                "--pairs, --labels, or a recipe",
                " and ".join(others),
                "leave all but one out; --set changes what --pairs and --labels choose",
            )
        out = out or default_folder(files)
    initial_run = str(run_and_checkpoint(init_from)[0]) if init_from is not None else "demo"
    name = recipe or (str(out) if out and (out / CONFIG).is_file() else initial_run)
    has_run = name == str(out) if files else is_run(name)
    if init_from is not None and out is None and (has_run or recipe is None):
        raise AttlasError(
            "a folder for the run that --init-from begins", "none", "name one with --out"
        )
    folder = out or (Path(name) if has_run else Path("runs") / Path(name).stem)
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
    own_recipe = None
    if files and not has_run:
        own_recipe = recipe_for(option, files, settings or (), init_from)
        user_recipe, written_path = own_recipe.recipe, recipe_path(own_recipe, folder)
        if is_main_process():
            announce(own_recipe, written_path)
    else:
        if files:
            check_same_data(option, files, folder)
        user_recipe = read_recipe(Path(name) / CONFIG if has_run else name, settings or (), warn)
    if init_from is not None:
        user_recipe = user_recipe.with_init_from(resolved_name(Path().resolve(), init_from))
    if device_called(user_recipe.training.device).type == "cpu":
        disable_malloc_trim()  # an update allocates the memory that the previous one freed
    if not is_main_process():  # of torchrun's processes, only the first one prints
        train_run(user_recipe, folder)
        return
    reported: set[type[Event]] = set()

    def report(event: Event) -> None:
        reported.add(type(event))
        if own_recipe is not None and isinstance(event, Started):
            write_recipe(own_recipe, written_path)
        progress(event)

    try:
        with Progress() as progress:
            outcome = train_run(user_recipe, folder, report=report)
    except KeyboardInterrupt as interrupt:
        # Before the start, saved checkpoints may be of another recipe.
        checkpoint = CheckpointStore(folder).named(LAST) if Started in reported else None
        if checkpoint and checkpoint.isdecimal():
            interrupt.add_note(
                f"update {int(checkpoint):,} is saved: the same command continues from it"
            )
        raise
    except MissingFileError as error:
        assigned = overridden({}, settings or ()).assigned
        if ("data", "train") in assigned and ("data", "valid") not in assigned:
            error.add_note(
                "where that file is of the recipe's own data, and not of yours: --set data.valid= "
                "--set data.test= --set data.held_back=0.1"
            )
        raise
    next_step = "classify" if user_recipe.classifies else "look"
    print(f"{outcome.path} is ready; try: attlas {next_step} {quote(str(outcome.path))}")
