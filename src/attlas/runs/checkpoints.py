"""Checkpoints: the tensors and facts from which a training continues, in one file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from attlas._files import TEMPORARY, explained, parse_json, stored_bytes, utf8_text, write_durably
from attlas.errors import AttlasError, CheckpointError, quoted
from attlas.recording.serialization import trace_checksum
from attlas.runs.seal import CONFIG, PROVENANCE, mark

_MODEL, _TRAINING = "model.", "training."
_METADATA = "attlas"
_LENGTH = 8  # bytes of the number before the header of a safetensors file
_LONGEST_HEADER = 100_000_000  # bytes; safetensors reads no longer one
_KEYS = {"facts", "seal", "told_sha256", "sha256"}
_OLDER_KEYS = {"facts", "sha256"}  # of before there were seals
_OF_DAMAGE = (  # what a file that holds something else leads to
    *(SafetensorError, ValueError, KeyError, TypeError, AttributeError, IndexError),
    *(OverflowError, RuntimeError),
)
_OTHER_BYTES = "bytes that are not those that were saved"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The weights of a model, and all that a training needs to go on.

    On disk: one safetensors file with tensors `model.*` and `training.*`, and in its metadata the
    facts, the seal, a SHA-256 of these two, and one over all of it. Reading it parses numbers and
    JSON and executes no code.

    Args:
        model: The state dict.
        training: What an optimizer needs beside it.
        facts: JSON.
        seal: What its answers depend on outside of it, see `seal_of`; None = unknown.
    """

    model: Mapping[str, Tensor]
    training: Mapping[str, Tensor] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    seal: Mapping[str, Any] | None = None


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write it whole or not at all; see `write_durably`."""
    tensors = {f"{_MODEL}{name}": tensor for name, tensor in checkpoint.model.items()}
    tensors |= {f"{_TRAINING}{name}": tensor for name, tensor in checkpoint.training.items()}
    # A copy of each: safetensors refuses tensors that share memory, as tied weights do.
    tensors = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    described = {"facts": json.dumps(dict(checkpoint.facts)), "seal": json.dumps(checkpoint.seal)}
    sums = {
        "told_sha256": _metadata_sum(described),
        "sha256": trace_checksum(tensors, _sealed_text(described)),
    }
    metadata = json.dumps({**described, **sums})
    write_durably(path, safetensors.torch.save(tensors, {_METADATA: metadata}))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read it whole, on the CPU.

    Raises:
        CheckpointError: That names the file where it is missing, cut short or damaged.
    """
    with _damage_as_error(path):
        return _read(path)


def _read(path: Path) -> Checkpoint:
    """The same.

    Raises:
        OSError: And those of `_OF_DAMAGE`.
    """
    content = stored_bytes(path)
    # Copies, because products may round differently on memory that is not aligned.
    tensors = {name: t.clone() for name, t in safetensors.torch.load(content).items()}
    header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = _metadata(header)
    if trace_checksum(tensors, _sealed_text(metadata)) != metadata["sha256"]:
        raise ValueError(_OTHER_BYTES)
    return Checkpoint(under(_MODEL, tensors), under(_TRAINING, tensors), **_parsed(metadata))


def read_seal(path: Path) -> Mapping[str, Any] | None:
    """The seal alone, of the beginning of the file; its tensors are not looked at.

    Raises:
        CheckpointError: As `read_checkpoint`, for what that finds out without the tensors.
    """
    with _damage_as_error(path):
        content = stored_bytes(path, _LENGTH)
        size = int.from_bytes(content, "little")
        content = stored_bytes(path, _LENGTH + min(size, _LONGEST_HEADER))[_LENGTH:]
        seal: Mapping[str, Any] | None = _parsed(_metadata(parse_json(content)))["seal"]
        return seal


def _metadata(header: Any) -> dict[str, str]:
    """What is ours of it."""
    metadata = parse_json(header["__metadata__"][_METADATA])
    if not isinstance(metadata, dict) or set(metadata) not in (_KEYS, _OLDER_KEYS):
        raise TypeError("its metadata are not those of a checkpoint")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise TypeError("its metadata are no texts")
    if set(metadata) == _KEYS and _metadata_sum(metadata) != metadata["told_sha256"]:
        raise ValueError(_OTHER_BYTES)
    return metadata


def _parsed(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The facts and the seal."""
    facts, seal = parse_json(metadata["facts"]), parse_json(metadata.get("seal", "null"))
    if not isinstance(facts, dict) or not isinstance(seal, dict | None):
        raise TypeError("its facts are no facts")
    return {"facts": facts, "seal": seal}


def _sealed_text(metadata: Mapping[str, str]) -> str:
    """The facts and the seal as they are written; of older checkpoints the facts alone."""
    return metadata["facts"] + (f"\n{metadata['seal']}" if "seal" in metadata else "")


def _metadata_sum(metadata: Mapping[str, str]) -> str:
    return trace_checksum({}, _sealed_text(metadata))


@contextmanager
def _damage_as_error(path: Path) -> Iterator[None]:
    """Of whatever a file that holds something else leads to in the block."""
    try:
        yield
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except _OF_DAMAGE as error:
        raise _unreadable(path, f"a damaged file ({error})") from None


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin so, without that beginning."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _unreadable(path: Path, got: str) -> AttlasError:
    other_checkpoint = _whole_one_beside(path)
    if other_checkpoint is None:
        advice = (
            f"put back a copy of it, or train in another folder: {path.parent} holds no other "
            "checkpoint that is whole"
        )
    else:
        advice = f"use {other_checkpoint}, which is whole: --checkpoint {other_checkpoint}"
        if other_checkpoint.isdecimal():
            last = path.parent.parent / "last"
            advice += f"; to train on from it, write {other_checkpoint} into {last}"
    return CheckpointError(f"a whole checkpoint at {path}", got, advice)


def _whole_one_beside(path: Path) -> str | None:
    """The name of the newest other checkpoint that can be read; those from which a training goes on
    come first."""
    others = [
        sibling for sibling in path.parent.glob(f"*{path.suffix}") if sibling.name != path.name
    ]
    for other in sorted(others, key=lambda file: (file.stem.isdecimal(), file.stem), reverse=True):
        with suppress(OSError, *_OF_DAMAGE):
            _read(other)
            return other.stem
    return None


# The checkpoints of a run, and the pointers `best` and `last`.


BEST, LAST, AVERAGED = "best", "last", "averaged"
CHECKPOINTS = "checkpoints"
_SUFFIX = ".safetensors"
_WRITTEN = (BEST, LAST, CONFIG, PROVENANCE)


class CheckpointStore:
    """`checkpoints/NNNNNNNN.safetensors`, where N counts updates, and `averaged.safetensors`.

    The text files `best` and `last` in the run's folder name one of them each, and what they name
    is marked (`mark`): so damage to the name is noticed, and the file of another run. A name that
    was written by hand has no mark. Only who holds the lock may write.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.folder = run / CHECKPOINTS

    def names(self) -> list[str]:
        """The names of the checkpoints on disk, oldest first, the averaged one at the end."""
        found = [path.stem for path in self.folder.glob(f"*{_SUFFIX}") if path.is_file()]
        others = sorted(name for name in found if not name.isdecimal())
        return sorted((name for name in found if name.isdecimal()), key=int) + others

    def numbered(self) -> list[int]:
        """The updates at which the checkpoints on disk were saved, oldest first."""
        return [int(name) for name in self.names() if name.isdecimal()]

    def begun(self) -> bool:
        """Return True if there is a checkpoint to continue from, or some that a new start would
        lose.

        A single one that nothing names is what a killed first save leaves.
        """
        count = len(self.names())
        return (self.run / LAST).exists() or count > 1 or (count > 0 and (self.run / BEST).exists())

    def path(self, name: str) -> Path:
        """Where the checkpoint of this name is or would be."""
        return self.folder / (name + _SUFFIX)

    def named(self, pointer: str) -> str | None:
        """What `best` or `last` names; None where that file does not exist yet.

        Raises:
            CheckpointError: If it names none that is there, or another than attlas wrote there.
        """
        try:
            text = utf8_text(stored_bytes(self.run / pointer)).strip()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"the name of a checkpoint in {self.run / pointer}",
                str(error),
                "restore it from a copy",
            ) from None
        name, *marks = text.split(" ")
        name, names = name.removesuffix(_SUFFIX), self.names()
        if name not in names:
            raise CheckpointError(
                f"the name of a checkpoint of {self.folder} in {self.run / pointer}",
                quoted(text if marks else name),
                f"write one of these into it: {', '.join(names)}"
                if names
                else "put the checkpoints back, or train into another folder: none is left",
            )
        if marks and marks != [self._mark(name)]:
            raise CheckpointError(
                f"the checkpoint that attlas wrote into {self.run / pointer}",
                f"{quoted(text)}, which was damaged, or is of another run than that checkpoint",
                f"write the name alone of the right one into it: {', '.join(names)}",
            )
        return name

    def number_of(self, checkpoint: str) -> str:
        """The name of the checkpoint that `best` or `last` names now; any other name as it is."""
        return (self.named(checkpoint) or checkpoint) if checkpoint in (BEST, LAST) else checkpoint

    def read(self, checkpoint: str) -> Checkpoint:
        """`best`, `last`, or the name of a checkpoint.

        Raises:
            CheckpointError: If there is none of that name, or where it is damaged.
        """
        name: str | None = checkpoint
        if checkpoint in (BEST, LAST):
            name = self.named(checkpoint)
        if name is None or name not in self.names():
            existing = [
                pointer for pointer in (BEST, LAST) if (self.run / pointer).exists()
            ] + self.names()
            raise CheckpointError(
                f"a checkpoint {quoted(checkpoint)} of {self.run}",
                f"a run that has {', '.join(existing) or 'none yet'}",
                "choose one of these"
                if existing
                else f"train it: attlas train {quote(str(self.run))}",
            )
        return read_checkpoint(self.path(name))

    def sealed(self, name: str) -> bool:
        """Return True if the checkpoint of this name says beside which files it was saved.

        Raises:
            CheckpointError: If its beginning is damaged.
        """
        return read_seal(self.path(name)) is not None

    def write(self, name: str, checkpoint: Checkpoint) -> None:
        """Put a checkpoint into the store; nothing points at it yet."""
        with explained(self.folder):
            self.folder.mkdir(exist_ok=True)
        write_checkpoint(self.path(name), checkpoint)

    def point(self, pointer: str, name: str | None) -> None:
        """Make `best` or `last` name this checkpoint; None takes the pointer away."""
        if name is None:
            self._remove(self.run / pointer)
        else:
            mark_file = self._mark(name)
            text = f"{name}{_SUFFIX}" if mark_file is None else f"{name}{_SUFFIX} {mark_file}"
            write_durably(self.run / pointer, f"{text}\n".encode())

    def prune(self, updates: Iterable[int]) -> None:
        """Remove all numbered checkpoints but those of these updates."""
        for update in set(self.numbered()) - set(updates):
            self._remove(self.path(numbered(update)))

    def forget_after(self, update: int) -> None:
        """Remove what was saved after this update, and the average made of it."""
        for later in self.numbered():
            if later > update:
                self._remove(self.path(numbered(later)))
        self._remove(self.path(AVERAGED))

    def clean(self) -> None:
        """Remove leftovers of killed writes."""
        of_run = [self.run / f"{name}{TEMPORARY}" for name in _WRITTEN]
        for leftover in (*of_run, *self.folder.glob(f"*{_SUFFIX}{TEMPORARY}")):
            if leftover.is_file():
                self._remove(leftover)

    def _mark(self, name: str) -> str | None:
        seal = read_seal(self.path(name))
        return None if seal is None else mark(name, seal)

    def _remove(self, path: Path) -> None:
        with explained(path):
            path.unlink(missing_ok=True)


def numbered(update: int) -> str:
    """The name of the checkpoint saved after this update."""
    return f"{update:08d}"
