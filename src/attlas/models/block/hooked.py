"""Modules of which somebody has made more than they are."""

from collections.abc import Iterable

from torch import nn
from torch.nn.modules import module as registered


def hooked(modules: Iterable[nn.Module]) -> bool:
    """Whether a call of one of these is more than its `forward`: hooks of its own, or of all
    modules, or what torch.compile has made of it. Then it has to be called, and no way around it.
    """
    return bool(registered._global_forward_hooks or registered._global_forward_pre_hooks) or any(
        module._forward_hooks or module._forward_pre_hooks or module._compiled_call_impl is not None
        for module in modules
    )
