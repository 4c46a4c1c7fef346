"""A checkpoint: the tensors and facts from which a training goes on, in one file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from attlas.config import parse_json, stored_bytes
from attlas.errors import AttlasError
from attlas.recording.parts import checksum
from attlas.runs.durable import write_durably

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
    """`model`: the state dict. `training`: what an optimiser needs beside it. `facts`: JSON.
    `seal`: what its answers depend on outside of it, see `seal_of`; None = nobody knows.

    On disk: one safetensors file with tensors `model.*` and `training.*`, and in its metadata the
    facts, the seal, a SHA-256 of these two, and one over all of it. Reading it parses numbers and
    JSON and executes no code.
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
    told = {"facts": json.dumps(dict(checkpoint.facts)), "seal": json.dumps(checkpoint.seal)}
    sums = {"told_sha256": _of_told(told), "sha256": checksum(tensors, _joined(told))}
    metadata = json.dumps({**told, **sums})
    write_durably(path, safetensors.torch.save(tensors, {_METADATA: metadata}))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read it whole, on the CPU.

    Errors: `AttlasError` that names the file where it is missing, cut short or damaged.
    """
    with _damage_told(path):
        return _read(path)


def _read(path: Path) -> Checkpoint:
    """The same. Errors: `OSError`, and those of `_OF_DAMAGE`."""
    content = stored_bytes(path)
    # Copies, because products may round differently on memory that is not aligned.
    tensors = {name: t.clone() for name, t in safetensors.torch.load(content).items()}
    header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = _metadata(header)
    if checksum(tensors, _joined(metadata)) != metadata["sha256"]:
        raise ValueError(_OTHER_BYTES)
    return Checkpoint(under(_MODEL, tensors), under(_TRAINING, tensors), **_told(metadata))


def read_seal(path: Path) -> Mapping[str, Any] | None:
    """The seal alone, of the beginning of the file; its tensors are not looked at.

    Errors: as `read_checkpoint`, for what that finds out without the tensors.
    """
    with _damage_told(path):
        content = stored_bytes(path, _LENGTH)
        size = int.from_bytes(content, "little")
        content = stored_bytes(path, _LENGTH + min(size, _LONGEST_HEADER))[_LENGTH:]
        seal: Mapping[str, Any] | None = _told(_metadata(parse_json(content)))["seal"]
        return seal


def _metadata(header: Any) -> dict[str, str]:
    """What is ours of it."""
    metadata = parse_json(header["__metadata__"][_METADATA])
    if not isinstance(metadata, dict) or set(metadata) not in (_KEYS, _OLDER_KEYS):
        raise TypeError("its metadata are not those of a checkpoint")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise TypeError("its metadata are no texts")
    if set(metadata) == _KEYS and _of_told(metadata) != metadata["told_sha256"]:
        raise ValueError(_OTHER_BYTES)
    return metadata


def _told(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The facts and the seal."""
    facts, seal = parse_json(metadata["facts"]), parse_json(metadata.get("seal", "null"))
    if not isinstance(facts, dict) or not isinstance(seal, dict | None):
        raise TypeError("its facts are no facts")
    return {"facts": facts, "seal": seal}


def _joined(told: Mapping[str, str]) -> str:
    """The facts and the seal as they are written; of older checkpoints the facts alone."""
    return told["facts"] + (f"\n{told['seal']}" if "seal" in told else "")


def _of_told(told: Mapping[str, str]) -> str:
    return checksum({}, _joined(told))


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
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


def _unreadable(path: Path, came: str) -> AttlasError:
    whole = _whole_one_beside(path)
    if whole is None:
        advice = (
            f"put back a copy of it, or train anew in another folder: {path.parent} holds no other "
            "checkpoint that is whole"
        )
    else:
        advice = f"use {whole}, which is whole: --checkpoint {whole}"
        if whole.isdecimal():
            advice += f"; to train on from it, write {whole} into {path.parent.parent / 'last'}"
    return AttlasError(f"a whole checkpoint at {path}", came, advice)


def _whole_one_beside(path: Path) -> str | None:
    """The name of the newest other checkpoint that can be read; those from which a training goes on
    come first."""
    others = [one for one in path.parent.glob(f"*{path.suffix}") if one.name != path.name]
    for other in sorted(others, key=lambda one: (one.stem.isdecimal(), one.stem), reverse=True):
        with suppress(OSError, *_OF_DAMAGE):
            _read(other)
            return other.stem
    return None
