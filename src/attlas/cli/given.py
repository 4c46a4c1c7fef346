"""What a command is given, looked at before it begins to work."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from safetensors import SafetensorError, safe_open

from attlas.cli.output import STANDARD
from attlas.data.lines import MissingFileError
from attlas.errors import AttlasError
from attlas.recording import Trace
from attlas.runs import BEST, LAST, Run


def run_at(path: Path, checkpoint: str) -> tuple[Run, str]:
    """The run in this folder, and the whole name of the checkpoint: 00000079 where 79 is meant.

    Errors: `AttlasError` where there is none, with the command that helps.
    """
    run = Run(path)
    there = run.checkpoints()
    go_on = f"attlas train {quote(str(path))}"
    if not there:
        raise AttlasError(f"a run with a checkpoint at {path}", "none yet", f"train it: {go_on}")
    if checkpoint == BEST and run.shelf.named(BEST) is None and run.shelf.named(LAST):
        raise AttlasError(
            f"the best checkpoint of {path}",
            "a run that has not been validated yet",
            f"add --checkpoint last, or go on with its training: {go_on}",
        )
    whole = checkpoint.zfill(8)
    return run, whole if whole in there else checkpoint


def trace_at(path: Path) -> Trace:
    """The trace in this file. Errors: `AttlasError` for any other file, with what it is."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError):
        if path.is_file() and path.suffix != ".safetensors":
            raise AttlasError(
                "a trace, which attlas figure --save-trace wrote, or the folder of a run",
                f"{path}, which is neither",
                "check the path",
            ) from None
        metadata = {}
    if "attlas" in metadata:
        raise AttlasError(
            "a trace, or the folder of a run",
            f"{path}, which is a checkpoint",
            f"name the folder of its run: {path.absolute().parent.parent}",
        )
    return Trace.load(path)


def folder_of(path: Path | None) -> None:
    """Errors: `AttlasError` where the folder of a file that is to be written does not exist."""
    if path and not path.parent.is_dir():
        raise AttlasError(
            f"to write {path}", f"no folder {path.parent}", "choose a folder that exists"
        )


def data_of(run: Run) -> list[Path]:
    """The files and folders of texts that a run was trained, chosen and tested on."""
    table = run.table("data")
    if table.get("kind") not in ("files", "labelled"):
        return []
    given = [table.get(split) or [] for split in ("train", "valid", "test")]
    return [Path(p) for paths in given for p in ([paths] if isinstance(paths, str) else paths)]


@contextmanager
def instead_of_data(options: str) -> Iterator[None]:
    """Of a file of the run's own data that is missing in the block, say which options name another.

    What the data itself advises is for who trains.
    """
    try:
        yield
    except MissingFileError as error:
        advice = f"put it back there, or name {options}"
        raise MissingFileError(error.wanted, error.came, advice) from None


def check_distinct(read: Iterable[Path | str | None], written: Iterable[Path | str | None]) -> None:
    """That nothing is written over what is read, and nothing twice; None = no such file.

    "-" is the standard input of what is read, and the standard output of what is written.
    Errors: `AttlasError` where a file would be read and written, or written twice.
    """
    taken = {_identity(path) for path in read if path is not None and str(path) != STANDARD}
    for path in written:
        if path is None:
            continue
        if (identity := _identity(path)) in taken:
            name = "the standard output" if str(path) == STANDARD else path
            raise AttlasError(
                "different files to read and to write", f"{name} twice", "write to another file"
            )
        taken.add(identity)


def _identity(path: Path | str) -> object:
    """What is the same for two names of one file, links among them."""
    if str(path) == STANDARD:
        return STANDARD
    try:
        status = Path(path).stat()
    except (OSError, ValueError):  # not there yet
        return os.path.realpath(path)
    return status.st_dev, status.st_ino
