"""Modules of which somebody has made more than they are."""

from collections.abc import Iterable

from torch import nn
from torch.nn.modules import module as registered

_KINDS = ("forward", "forward_pre", "backward", "backward_pre")


def has_hooks(modules: Iterable[nn.Module]) -> bool:
    """Whether a call of one of these is more than its `forward`: hooks of its own, or of all
    modules, or what torch.compile has made of it. Then it has to be called, and no way around it.
    """
    return any(getattr(registered, f"_global_{kind}_hooks") for kind in _KINDS) or any(
        any(getattr(module, f"_{kind}_hooks") for kind in _KINDS)
        or module._compiled_call_impl is not None
        for module in modules
    )
