"""Tensors without numbers of their own, of which no reading can be made."""

from typing import Any

import torch
from torch import Tensor, nn

IN_VMAP = "a call inside torch.func.vmap, which shows one text for many; call it without vmap"
NESTED = "a call with nested tensors; pad them, with a mask"
HOLLOW = (
    "a call with tensors that have no numbers, of the device 'meta' or fake; give it real ones, "
    "such as by model.to_empty(device=...) and its weights"
)

_PLAIN = {Tensor, nn.Parameter}


def unreadable(*tensors: Any) -> str | None:
    """Why no reading can be made of these, of which some may be no tensors; None where one can."""
    if not any(map(_is_odd, tensors)):
        return None
    given = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    if any(tensor.is_nested for tensor in given):
        return NESTED
    if any(tensor.is_meta or hasattr(tensor, "fake_mode") for tensor in given):
        return HOLLOW
    return IN_VMAP if any(map(_in_vmap, given)) else None


def _is_odd(tensor: Any) -> bool:
    """Whether it is a tensor of another kind than nearly all are."""
    plain = type(tensor) in _PLAIN
    if not plain:
        return isinstance(tensor, Tensor)
    functorch = torch._C._functorch
    odd = tensor.is_nested or tensor.is_meta or functorch.is_functorch_wrapped_tensor(tensor)
    return bool(odd)


def _in_vmap(tensor: Tensor) -> bool:
    """Whether it stands for one of many: below it there may be others, of gradients."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False
