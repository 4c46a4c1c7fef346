"""Inputs of commands, checked before the work begins."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os.path import isdir, isfile
from pathlib import Path
from shlex import quote

from safetensors import SafetensorError, safe_open

from attlas._hardware import disable_malloc_trim
from attlas._output import STANDARD
from attlas._signals import loading
from attlas.config import Overridden, nearest_settings, overridden
from attlas.config.toml import SET
from attlas.data.lines import MissingFileError
from attlas.decoding import DecodingConfig
from attlas.decoding.config import check_in_use, idle_settings
from attlas.errors import (
    AttlasError,
    CheckpointError,
    ConfigError,
    DataError,
    UnsupportedError,
    quoted,
)
from attlas.inference import Translator
from attlas.recording import Trace
from attlas.runs import BEST, CONFIG, LAST, Run
from attlas.runs.run import HUGGING_FACE

# What searches: attlas itself, or an export of the run.


_EXPORTS = ("ctranslate2", "ctranslate2-int8")  # as attlas export calls their folders


def translator_of(
    run: Run, engine: str, config: DecodingConfig, checkpoint: str, device: str
) -> Translator:
    """A translator of the run that searches by this engine: attlas, one of the run's exports, or an
    export in another folder.

    Raises:
        AttlasError: For an unknown engine, for one that needs an export which is not there, and for
            a device that it cannot use.
    """
    if engine == "attlas":
        disable_malloc_trim()  # every batch allocates the same memory again: a tenth of the time
        return Translator(run, config, checkpoint=checkpoint, device=device)
    folder = run.path / "exports" / engine if engine in _EXPORTS else Path(engine)
    if engine not in _EXPORTS and not isdir(folder):
        raise UnsupportedError(
            f"one of the engines attlas, {', '.join(_EXPORTS)}, or the folder of an export to "
            "ctranslate2",
            f"{quoted(engine, 1000)}, where no folder is",
            "choose one",
        )
    if device != "cpu":
        raise UnsupportedError(
            f"--device cpu with --engine {engine}", device, "leave one of the two out"
        )
    with loading():
        from attlas.inference.ctranslate2 import FastTranslator

    return FastTranslator(run, folder, config, checkpoint=checkpoint)


def run_at(path: Path, checkpoint: str) -> tuple[Run, str]:
    """The run in this folder, and the full name of the checkpoint: 00000079 for 79.

    Raises:
        AttlasError: If there is none, with the command that helps.
    """
    run = Run(path)
    names = run.checkpoints()
    go_on = f"attlas train {quote(str(path))}"
    if not names:
        for pointer in (BEST, LAST):
            run.store.named(pointer)  # which says so where it is lost
        raise CheckpointError(
            f"a run with a checkpoint at {path}", "none yet", f"train it: {go_on}"
        )
    if checkpoint == BEST and run.store.named(BEST) is None and run.store.named(LAST):
        raise CheckpointError(
            f"the best checkpoint of {path}",
            "a run that has not been validated yet",
            f"add --checkpoint last, or go on with its training: {go_on}",
        )
    padded = checkpoint.zfill(8)
    checkpoint_name = padded if padded in names else checkpoint
    number = run.store.number_of(checkpoint_name)
    if number in names and not run.store.sealed(number):
        print(
            f"attlas: checkpoint {number} of {path} was saved by an older attlas, without a "
            "digest of its vocabulary and "
            "settings: attlas cannot check that they are unchanged. Checkpoints of "
            f"a training that goes on have one: {go_on}",
            file=sys.stderr,
        )
    return run, checkpoint_name


def names_a_trace(path: Path) -> bool:
    """Return True if this is a file, or by its name a trace that is missing; else it may be a
    run.
    """
    return path.is_file() or (path.suffix == ".safetensors" and not path.exists())


def model_folder_at(path: Path, *, download: bool = False) -> Path | None:
    """The folder of a model of Hugging Face, at this path or by this name; None if it is none.

    What is at the path comes first, then what the cache on this machine has of that name.

    Args:
        download: Whether a model of that name is fetched, where neither is there.

    Raises:
        AttlasError: If it was to be fetched, and could not be.
    """
    # Only `look` needs it: a line that is translated does not wait for it.
    from attlas.inference.huggingface_folder import is_model_folder, model_of_hub

    if path.exists():
        is_run = (path / CONFIG).is_file()
        return path if is_model_folder(path) and not is_run else None
    if path.is_absolute() or path.suffix == ".safetensors":
        return None
    return model_of_hub(path.as_posix(), download=download)


def check_run_or_trace(path: Path) -> None:
    """Check that there is something at this path.

    Raises:
        AttlasError: If there is not.
    """
    if not path.exists():
        raise CheckpointError(
            "the folder of a run, or a trace's file",
            f"nothing at {path}",
            "check the path; attlas train --help shows how a run is trained",
        )


def check_shown(path: Path) -> None:
    """Check that a run is in the folder at this path.

    Raises:
        AttlasError: If it is not, with all that can be looked at.
    """
    if (path / CONFIG).is_file():
        return
    raise CheckpointError(
        "a run, a trace, or a model of Hugging Face",
        f"the folder {str(path)!r}, which has neither {CONFIG} nor config.json"
        if path.is_dir()
        else f"nothing at {path}",
        "name another folder"
        if path.is_dir()
        else "check the path; --download fetches a model of the Hugging Face Hub by its name",
    )


def is_safetensors(path: Path) -> bool:
    """Return True if this file is of the kind that traces are, whatever it is called."""
    try:
        if not path.is_file():
            return False
        with safe_open(path, framework="numpy"):
            return True
    except (SafetensorError, OSError, ValueError):  # the last for U+0000 in a name
        return False


def trace_at(path: Path) -> Trace:
    """The trace in this file.

    Raises:
        AttlasError: For any other file, with what it is.
    """
    if not isfile(path):
        return Trace.load(path)  # which says what is there
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError):
        if path.is_file() and path.suffix != ".safetensors":
            raise CheckpointError(
                "a trace, which attlas figure --save-trace wrote, or the folder of a run or of a "
                "model",
                f"{path}, which is none of them"
                if path.stat().st_size
                else f"{path}, an empty file",
                "check the path",
            ) from None
        metadata = {}
    if "attlas" in metadata:
        raise CheckpointError(
            "a trace, or the folder of a run",
            f"{path}, which is a checkpoint",
            f"name the folder of its run: {path.absolute().parent.parent}",
        )
    return Trace.load(path)


def check_used(options: Mapping[str, bool], owner: str, reason: str) -> None:
    """Check that none of these options was given, because `owner` does not use them.

    Raises:
        AttlasError: That names those that were.
    """
    option_names = [name for name, is_given in options.items() if is_given]
    if option_names:
        raise AttlasError(
            f"options that {owner} has a use for",
            ", ".join(option_names),
            f"leave that out: {reason}",
        )


def check_nothing_searched(
    num_beams: int | None, settings: list[str] | None, checkpoint: str, device: str
) -> None:
    """Check that no option of a search was given for a trace, which needs no search."""
    options = {
        "--num-beams": num_beams is not None,
        "--set": bool(settings),
        "--checkpoint": checkpoint != BEST,
        "--device": device != "cpu",
    }
    check_used(options, "a trace", "what it shows was found before it was saved")


def warn(text: str) -> None:
    """Print a warning on the standard error."""
    print(f"attlas: {text}", file=sys.stderr)


def length_range(text: str) -> list[int]:
    """The shortest and the longest length that `--length` names: "20" or "5:40".

    Raises:
        ConfigError: For anything else.
    """
    match = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text)
    shortest, longest = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= shortest <= longest:
        raise ConfigError(
            "--length N, or --length SHORTEST:LONGEST with 1 ≤ SHORTEST ≤ LONGEST",
            quoted(text),
            "write such as --length 20 or --length 5:40",
        )
    return [shortest, longest]


def is_run(name: Path | str, *, or_trace: bool = False) -> bool:
    """Return True if it names the folder of a run; else it names a recipe, of which a folder that
    happens to be called the same hides none that comes with attlas.

    Args:
        or_trace: Whether the file of a trace would do as well.

    Raises:
        AttlasError: For any other folder.
    """
    from attlas.training.recipe import shipped_recipes

    path = Path(name)
    if (path / CONFIG).is_file():
        return True
    if path.is_dir() and str(path) not in shipped_recipes():
        expected, last = "a recipe or a run", "or the folder of a run"
        first = f"train on its texts with attlas train --labels {quote(str(name))}, or "
        if or_trace:
            expected, last = "a recipe, a run or a trace", "the folder of a run, or a trace's file"
            first = ""
        if (path / HUGGING_FACE).is_file():
            raise AttlasError(
                expected,
                f"a model of Hugging Face in {name}",
                f"use attlas look {quote(str(name))}, attlas stats, or attlas.observe in Python",
            )
        raise AttlasError(
            expected,
            f"the folder {name} without {CONFIG}",
            f"{first}name a TOML file, a recipe that comes with attlas, {last}",
        )
    return False


def data_of(run: Run) -> list[Path]:
    """The files and folders of texts that a run was trained, chosen and tested on."""
    table = run.table("data")
    if table.get("kind") not in ("files", "labelled"):
        return []
    files = [table.get(split) or [] for split in ("train", "valid", "test")]
    return [Path(p) for paths in files for p in ([paths] if isinstance(paths, str) else paths)]


class UnscoredError(DataError):
    """There is nothing by which these runs can be scored: no test set, or not the same."""


def check_tested(run: Run, split: str, has_test: bool, options: str) -> None:
    """Check that there is a test set where that is the split which is asked for.

    Raises:
        UnscoredError: That says which options name one.
    """
    if split == "test" and not has_test:
        raise UnscoredError(
            f"a test set of {run.path}",
            "a run whose recipe has none (data.test)",
            f"give one with {options}, or take the validation set with --valid",
        )


@contextmanager
def instead_of_data(options: str) -> Iterator[None]:
    """If a file of the run's data is missing in the block, say which options name another one.

    The advice of the data itself is for training.
    """
    try:
        yield
    except MissingFileError as error:
        advice = f"put it back there, or name {options}"
        raise MissingFileError(error.expected, error.got, advice) from None


def check_distinct(
    sources: Iterable[Path | str | None], destinations: Iterable[Path | str | None]
) -> None:
    """Check that nothing is written over what is read, nothing is written twice, and the standard
    input is read once; None = no such file.

    "-" is the standard input of what is read, and the standard output of what is written.

    Raises:
        AttlasError: If a file would be read and written, or written twice, or if the standard input
            would be read twice.
    """
    names = [path for path in sources if path is not None]
    uses = sum(str(path) == STANDARD for path in names)
    if uses > 1:
        raise AttlasError(
            "one use of the standard input", f"{uses} uses", 'name a file in place of "-"'
        )
    identities = {_identity(path) for path in names if str(path) != STANDARD}
    for path in destinations:
        if path is None:
            continue
        if (identity := _identity(path)) in identities:
            name = "the standard output" if str(path) == STANDARD else path
            raise AttlasError(
                "different files to read and to write", f"{name} twice", "write to another file"
            )
        identities.add(identity)


def first_repeated(paths: Iterable[Path | str]) -> Path | str | None:
    """The first of these that is a file which stands there before, whatever its name is; None: each
    is another file.
    """
    identities: set[object] = set()
    for path in paths:
        if (identity := _identity(path)) in identities:
            return path
        identities.add(identity)
    return None


def _identity(path: Path | str) -> object:
    """The identity of a file, the same for all its names and links."""
    if str(path) == STANDARD:
        return STANDARD
    try:
        status = Path(path).stat()
    except (OSError, ValueError):  # not there yet
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


# How a run translates when the command line changes it: its [decoding] table, overridden.


def lists_asked_for(assignments: Iterable[str] | None, n_best: int | None) -> bool:
    """Return True if the command line says how many translations of a line are wanted, `--n-best`
    or `--set decoding.n_best=`: then they are written as a list.
    """
    assigned = overridden({"decoding": {}}, assignments or ()).assigned
    return n_best is not None or ("decoding", "n_best") in assigned


def decoding_of(
    run: Run,
    assignments: Iterable[str] | None,
    num_beams: int | None = None,
    n_best: int | None = None,
) -> DecodingConfig:
    """The settings of the run, with `decoding.key=value` put in, then `--num-beams` and `--n-best`.

    `--num-beams` asks for method = "beam". Where a method is asked for, the run's own n_best is
    left out, and what the run says of its own method too if that is another.

    Raises:
        AttlasError: For a setting of another table, which a trained run cannot change, and for one
            that was asked for and has no effect with the method, or that is asked for in two ways.
    """
    tables = overridden({"decoding": {}}, assignments or ())
    others = sorted(tables.keys() - {"decoding"})
    if others:
        matches = [f"`decoding.{name}`" for name in nearest_settings(DecodingConfig, others[0], {})]
        raise ConfigError(
            "settings of the search, such as decoding.length_penalty=1.0",
            f"one of {', '.join(others)}",
            f"did you mean {' or '.join(matches)}?"
            if matches
            else "train another run to change this setting",
        )
    if not isinstance(tables["decoding"], dict):
        raise ConfigError(
            "one of the settings of the search, such as decoding.method=greedy",
            f"decoding={quoted(tables['decoding'])}",
            "name the setting behind a dot",
        )
    requested = {**tables["decoding"]}
    for option, name, value in (
        ("--num-beams", "num_beams", num_beams),
        ("--n-best", "n_best", n_best),
    ):
        if value is not None and requested.get(name, value) != value:
            raise ConfigError(
                f"{option} or --set decoding.{name}",
                f"{option} {value} and --set decoding.{name}={requested[name]}",
                "leave one of the two out",
            )
    if num_beams is not None and requested.get("method", "beam") != "beam":
        raise ConfigError(
            "a search by beam for --num-beams",
            f"--set decoding.method={requested['method']}",
            "leave one of the two out",
        )
    requested |= {"method": "beam", "num_beams": num_beams} if num_beams is not None else {}
    requested |= {"n_best": n_best} if n_best is not None else {}
    location = f"[decoding] of {run.path / CONFIG}"
    decoding = run.table("decoding")
    method = requested.get("method")
    if method is not None:
        # The run's n_best belongs to its own search, not to another one.
        idle = {"n_best"}
        if method != DecodingConfig.read(decoding, location).method:
            idle |= idle_settings(method)
        decoding = {key: value for key, value in decoding.items() if key not in idle}
    settings = Overridden(decoding)
    for name, value in requested.items():
        settings[name] = value
        settings.replaced((name,), value)
    options = [
        name
        for name, value in (("--num-beams", num_beams), ("--n-best", n_best))
        if value is not None
    ]
    if options:
        settings.by = " and ".join([*options, *([SET] if tables.assigned else [])])
    config = DecodingConfig.read(settings, location)
    check_in_use(config.method, requested)
    return config
