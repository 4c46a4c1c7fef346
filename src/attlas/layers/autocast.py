"""Computing in fewer bits than the weights have."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

import torch

from attlas.errors import AttlasError
from attlas.layers.cudnn import without_cudnn_attention
from attlas.layers.half_products import half_products

Autocast = Literal["none", "bf16", "fp16"]
NUMBERS = {"none": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(name: Autocast, device: torch.device) -> AbstractContextManager[object]:
    """Within the block products are of bfloat16 ("bf16") or float16 ("fp16"); "none": of float32.

    The weights stay as they are. On a CPU "bf16" is `half_products`, of the linear maps alone;
    elsewhere it is torch's autocast, and on CUDA `without_cudnn_attention`.
    Micikevicius et al., Mixed Precision Training, 2018.
    """
    if name == "bf16" and device.type == "cpu":
        return half_products()
    if name != "none" and device.type == "cuda":
        return _on_cuda(NUMBERS[name])
    return torch.autocast(device.type, NUMBERS[name], enabled=name != "none")


@contextmanager
def _on_cuda(numbers: torch.dtype) -> Iterator[None]:
    with without_cudnn_attention, torch.autocast("cuda", numbers):
        yield


def check_autocast(name: Autocast, device: torch.device, setting: str) -> None:
    """That the device has these numbers; setting: where they are asked for.

    Errors: `AttlasError` where it has not.
    """
    if name == "fp16" and device.type != "cuda":
        wanted, instead = f"a CUDA device for {setting} = 'fp16'", "'bf16' or 'none'"
    elif name == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported(False):
        wanted, instead = f"a device with bfloat16 for {setting} = 'bf16'", "'fp16' or 'none'"
    else:
        return
    raise AttlasError(wanted, f"device {str(device)!r}", f"use {setting} = {instead}")
