"""Functions of torch under the names of their operators, as exported models call them."""

from collections.abc import Callable, Container
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket

_SPACE = "aten"


def python_name(func: Callable[..., Any], known: Container[Any]) -> Callable[..., Any]:
    """The one of the `known` functions that an operator such as `torch.ops.aten.bmm.default` is;
    itself where there is none, or where it writes to a tensor that it is given."""
    if isinstance(func, OpOverload):
        space, writes = func.namespace, "out" in func._overloadname
        name = func._opname
    elif isinstance(func, OpOverloadPacket):
        (space, _, name), writes = func._qualified_op_name.partition("::"), False
    else:
        return func
    if space != _SPACE or writes:
        return func
    for owner in (torch.nn.functional, torch, Tensor):
        found: Callable[..., Any] | None = getattr(owner, name, None)
        if found is not None and found in known:
            return found
    return func
