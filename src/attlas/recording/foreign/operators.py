"""Functions of torch under the names of their operators, as exported programs call them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket

_SPACE = "aten"
OPERATORS = (OpOverload, OpOverloadPacket)
_OWN_NAMES = {"numpy_T": "T", "matrix_H": "H"}


def python_name(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function that an operator such as `torch.ops.aten.bmm.default` is, by which it is known;
    itself for all others, and for one that writes to a tensor which it is given.

    Only a name: what they are given differs, so that it is the operator that has to be called.
    """
    if isinstance(func, OpOverload | OpOverloadPacket):
        return _python_name(func)
    return func


@cache
def _python_name(operator: OpOverload | OpOverloadPacket) -> Callable[..., Any]:
    if isinstance(operator, OpOverload):
        space, name, writes = operator.namespace, operator._opname, "out" in operator._overloadname
    else:
        space, _, name = operator._qualified_op_name.partition("::")
        writes = False
    if space != _SPACE or writes:
        return operator
    name = _OWN_NAMES.get(name, name)
    for owner in (torch.nn.functional, torch, Tensor):
        found: Callable[..., Any] | None = getattr(owner, name, None)
        if callable(found):
            return found
    attribute = vars(torch._C.TensorBase).get(name)
    return operator if attribute is None else attribute.__get__
