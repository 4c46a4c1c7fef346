"""What the model says of the next token."""

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError


def predicted(logits: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
    """log softmax(logits), in float32 at least.

    Errors: `AttlasError` where the logits are no numbers; a search among them would find anything.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    log_probabilities = torch.log_softmax(logits, dim=-1, dtype=dtype)
    # One NaN (or +∞) in a row makes the whole row NaN: one column tells.
    if log_probabilities[:, 0].isnan().any():
        raise AttlasError(
            "logits that are numbers",
            "NaN or infinity from the model",
            "use an earlier checkpoint: the weights are damaged, or the training diverged",
        )
    return log_probabilities


def sums(device: torch.device) -> torch.dtype:
    """The type in which log-probabilities are summed: float64 where the device has it.

    The rounding of a long float32 sum would depend on the sentences beside it.
    """
    return torch.float32 if device.type == "mps" else torch.float64
