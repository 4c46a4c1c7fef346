"""What the explorer is asked to show, checked before its server listens, as far as that is quick.

Nothing here imports torch: the rest is checked when it is opened, in a thread of the server.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from attlas._files import parse_json, stored_bytes
from attlas._signals import loading
from attlas.explorer.answers import AnswerFolder
from attlas.explorer.notes import notes_path
from attlas.explorer.sources import ExplorerSource

# As the modules that write such files have them, which import torch.
TRACE_FORMAT, TRACE_SUM = "attlas trace 2", "sha256"
CONFIG, CHECKPOINTS, POINTERS = "config.toml", "checkpoints", ("best", "last")
CHECKPOINT_METADATA = "attlas"


@dataclass(frozen=True, slots=True)
class LookOptions:
    """How a run or a model is opened; see the options of `attlas look`."""

    num_beams: int | None = None
    settings: Sequence[str] = ()
    checkpoint: str = "best"
    device: str = "cpu"
    max_new_tokens: int | None = None
    download: bool = False
    images: tuple[Path, ...] = ()
    tokenizer: Path | None = None


def sources_of(
    paths: Sequence[Path], options: LookOptions, *, cache: bool = True
) -> list[ExplorerSource]:
    """A source for each of these paths, or names of models.

    A trace and a run whose files look whole are opened later, and everything else now.

    Args:
        cache: Whether answers about traces are kept on disk.

    Raises:
        AttlasError: For what is none of these, and for options that it has no use for.
    """
    names = [path.name for path in paths]
    return [
        _source(path, path.name if names.count(path.name) == 1 else str(path), options, cache)
        for path in paths
    ]


def _source(path: Path, name: str, options: LookOptions, cache: bool) -> ExplorerSource:
    is_trace, is_run = path.is_file(), (path / CONFIG).is_file()
    checksum = trace_sum(path) if is_trace and options == LookOptions() else None
    notes = notes_path(path) if is_trace or is_run else None
    answers = AnswerFolder.of_trace(path, checksum) if checksum and cache else None
    opened = _opener(path, options)
    plain = LookOptions(checkpoint=options.checkpoint, device=options.device)
    if checksum is None and not (is_run and options == plain and seems_whole(path, options)):
        opened = _kept(opened())
    return ExplorerSource(name, opened, notes, checksum, answers)


def _opener(path: Path, options: LookOptions) -> Callable[[], Any]:
    def opened() -> Any:
        with loading():
            looking = import_module("attlas.jobs.looking")
        return looking.opened(path, options)

    return opened


def _kept(shown: Any) -> Callable[[], Any]:
    return lambda: shown


def trace_sum(path: Path) -> str | None:
    """The checksum that a trace's file says; None where it does not look like a whole trace."""
    with suppress(SafetensorError, OSError, ValueError):
        if not path.is_file():
            return None
        with safe_open(path, framework="numpy") as file:  # its size is that of its tensors
            metadata: Mapping[str, str] = file.metadata() or {}
        parse_json(metadata.get("maps", ""))
        found = metadata.get(TRACE_SUM, "")
        return found if metadata.get("format") == TRACE_FORMAT and len(found) == 64 else None
    return None


def seems_whole(run: Path, options: LookOptions) -> bool:
    """Return True if the best or the last checkpoint of a run has a whole header, and its seal is
    that of the vocabularies which are there."""
    if options.checkpoint not in POINTERS or not _is_device(options.device):
        return False
    with suppress(SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError):
        name = stored_bytes(run / options.checkpoint).decode().split()[0]
        with safe_open(run / CHECKPOINTS / name, framework="numpy") as file:
            metadata = parse_json((file.metadata() or {})[CHECKPOINT_METADATA])
        sealed = metadata["facts"] + f"\n{metadata['seal']}"
        if (
            hashlib.sha256(sealed.encode(errors="surrogatepass")).hexdigest()
            != metadata["told_sha256"]
        ):
            return False
        files = parse_json(metadata["seal"])["files"]
        return all(
            hashlib.sha256(stored_bytes(run / file)).hexdigest() == digest
            for file, digest in files.items()
        )
    return False


def _is_device(name: str) -> bool:
    """Return True if every machine has it; of others torch knows."""
    return name in ("cpu", "auto")
