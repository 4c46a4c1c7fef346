"""Values for each position of each text, checked."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.padding import device_of, query_mask, token_mask_of

__all__ = ["checked_values", "device_of", "query_mask", "token_mask_of"]


def checked_values(
    name: str, values: object, shape: tuple[int, int], device: torch.device
) -> Int[Tensor, "batch length"] | Bool[Tensor, "batch length"] | Tensor:
    """Return the values as a tensor with one value for each position of each text.

    Raises:
        AttlasError: For another shape.
    """
    tensor = torch.as_tensor(values, device=device)
    if tuple(tensor.shape) != shape:
        raise AttlasError(
            f"{name} of shape {shape}, a value for each place of each text",
            f"shape {tuple(tensor.shape)}",
            "choose the layers with this axis by layers=…, and add the tables of the others",
        )
    return tensor
