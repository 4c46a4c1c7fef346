"""A checkpoint: the tensors and facts from which a training goes on, in one file."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from attlas.config import parse_json
from attlas.errors import AttlasError
from attlas.runs.durable import write_durably

_MODEL, _TRAINING = "model.", "training."
_METADATA = "attlas"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`model`: the state dict. `training`: what an optimiser needs beside it. `facts`: JSON.

    On disk: one safetensors file with tensors `model.*` and `training.*`, the facts and a SHA-256
    over all of it in the metadata. Reading it parses numbers and JSON and executes no code.
    """

    model: Mapping[str, Tensor]
    training: Mapping[str, Tensor] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write it whole or not at all; see `write_durably`."""
    tensors = {f"{_MODEL}{name}": tensor for name, tensor in checkpoint.model.items()}
    tensors |= {f"{_TRAINING}{name}": tensor for name, tensor in checkpoint.training.items()}
    # A copy of each: safetensors refuses tensors that share memory, as tied weights do.
    tensors = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    facts = json.dumps(dict(checkpoint.facts))
    metadata = json.dumps({"facts": facts, "sha256": _checksum(tensors, facts)})
    write_durably(path, safetensors.torch.save(tensors, {_METADATA: metadata}))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read it whole, on the CPU.

    Errors: `AttlasError` that names the file where it is missing, cut short or damaged.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    try:
        # Copies, because products may round differently on memory that is not aligned.
        tensors = {name: t.clone() for name, t in safetensors.torch.load(content).items()}
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = parse_json(header["__metadata__"][_METADATA])
        facts, checksum = metadata["facts"], metadata["sha256"]
        if _checksum(tensors, facts) != checksum:
            raise _unreadable(path, "bytes that are not those that were saved")
        return Checkpoint(under(_MODEL, tensors), under(_TRAINING, tensors), parse_json(facts))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, AttlasError):
            raise
        raise _unreadable(path, f"a damaged file ({error})") from None


def _checksum(tensors: Mapping[str, Tensor], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin so, without that beginning."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _unreadable(path: Path, came: str) -> AttlasError:
    return AttlasError(
        f"a whole checkpoint at {path}",
        came,
        f"use another checkpoint of {path.parent} (write its name into `last` to train on from it)",
    )
