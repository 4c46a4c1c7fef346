"""Where NaN begins: of all modules of a model, the first whose output has it."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

Output = tuple[str, Tensor]
"""The path of a module, and whether its output has NaN: a bool that lies where the output does."""


@contextmanager
def outputs_with_nan(model: nn.Module) -> Iterator[list[Output]]:
    """The outputs of all modules that this thread calls in the block, in order of their ends; not
    that of the model itself.

    A module ends after those that it calls. So the first with NaN is the innermost. Nothing is
    waited for.
    """
    found: list[Output] = []
    owner = threading.get_ident()
    with ExitStack() as hooks:
        for path, module in model.named_modules():
            if path and not isinstance(module, torch.jit.ScriptModule):
                hook = _OutputHook(path, found, owner)
                hooks.callback(module.register_forward_hook(hook).remove)
        yield found


class _OutputHook:
    """A forward hook of a module."""

    def __init__(self, path: str, found: list[Output], owner: int) -> None:
        self._path, self._found, self._owner = path, found, owner

    def __call__(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """Ask whether the output has NaN."""
        if not torch.compiler.is_compiling() and threading.get_ident() == self._owner:
            self._found += nan_flags(self._path, output)


def nan_flags(path: str, output: Any) -> list[Output]:
    """Whether each tensor of an output has NaN."""
    with torch.no_grad(), torch._C.DisableTorchFunction():
        return [(path, tensor.detach().isnan().any()) for tensor in _tensors_of(output)]


def _tensors_of(output: Any) -> Iterator[Tensor]:
    """The tensors of numbers in what a module has returned."""
    if isinstance(output, Tensor):
        # Others, such as nested ones and those of several devices, cannot be asked alike.
        is_plain = type(output) in (Tensor, nn.Parameter) and not output.is_nested
        is_there = output.layout == torch.strided and output.device.type != "meta"
        if is_plain and is_there and output.is_floating_point():
            yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _tensors_of(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from _tensors_of(value)
    elif is_dataclass(output):
        yield from _tensors_of([getattr(output, field.name) for field in fields(output)])


def first_nan(outputs: Iterable[Output]) -> str | None:
    """The path of the first module whose output has NaN; None = none has."""
    by_device: dict[torch.device, list[tuple[int, str, Tensor]]] = {}
    for place, (path, flag) in enumerate(outputs):
        by_device.setdefault(flag.device, []).append((place, path, flag))
    found = []
    for alike in by_device.values():
        flags = torch.stack([flag for _, _, flag in alike]).tolist()
        found += [(place, path) for (place, path, _), has in zip(alike, flags, strict=True) if has]
    return min(found)[1] if found else None


def first_nan_of_all(outputs: Sequence[Output], group: Any) -> str | None:
    """The same of all processes: of the first rank that has one."""
    parts: list[str | None] = [None] * dist.get_world_size(group)
    dist.all_gather_object(parts, first_nan(outputs), group=group)
    return next((path for path in parts if path is not None), None)
