"""Models that were compiled, in which nobody can listen."""

import torch
from torch import nn

from attlas.errors import AttlasError


def check_not_compiled(model: nn.Module) -> None:
    """Errors: `AttlasError` for a model that torch.compile has taken over, wholly or in part, or
    torch.jit."""
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise AttlasError(
                "a model in Python: a scripted one calls no function that could be heard",
                f"its module {path!r}, a {type(module).__name__}"
                if path
                else type(module).__name__,
                "observe the model that was scripted or traced",
            )
        whole = "_orig_mod" in module._modules or "_orig_mod" in vars(module)
        within = hasattr(module.forward, "_torchdynamo_orig_callable")
        if whole or within or getattr(module, "_compiled_call_impl", None) is not None:
            where = f"its module {path!r}" if path else type(module).__name__
            raise AttlasError(
                "a model as it was before torch.compile: compiled code calls no function that "
                "could be heard",
                f"{where}, which is compiled",
                "observe the model itself: torch.compile(model) leaves `model` as it was"
                if whole
                else "observe a copy of it that was not compiled",
            )
