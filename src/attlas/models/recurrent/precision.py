"""What PyTorch's recurrent layers can compute in half precision."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def computable(inputs: Tensor) -> Iterator[Callable[[Tensor], Tensor]]:
    """Within, an LSTM of float32 computes in float32 where autocast would ask too much of a CPU.

    What is yielded makes of a tensor one that it can be given: of float32 there, else as it is.

    Without AVX-512 a CPU has no LSTM in bfloat16: PyTorch raises a RuntimeError of its own.
    """
    half = inputs.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    if not half or torch.ops.mkldnn._is_mkldnn_bf16_supported():
        yield lambda tensor: tensor
        return
    with torch.autocast("cpu", enabled=False):
        yield Tensor.float
