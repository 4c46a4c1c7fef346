"""A gate on each head."""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.tap import Rewrite, Seen, Weights


def gated(gates: Mapping[str, Float[Tensor, "..."]]) -> Rewrite:
    """ξ_h · head_h: a change for `intervene` that multiplies what each head reads.

    gates: by layer, (heads) or (batch, heads); layers without one stay as they are. What a head
    reads is linear in its weights, so they are multiplied. 0 = the head reads nothing; gradients
    flow to the gates. Michel et al., Are Sixteen Heads Really Better than One?, 2019, section 2.3.
    Errors: `AttlasError` for gates that do not fit the layer.
    """

    def change(weights: Weights, seen: Seen, layer: str) -> Weights:
        if layer not in gates:
            return weights
        gate, (batch, heads) = gates[layer], weights.shape[:2]
        if tuple(gate.shape) not in {(heads,), (1, heads), (batch, heads)}:
            raise AttlasError(
                f"gates of shape ({heads},) or ({batch}, {heads}) for layer {layer!r}",
                f"shape {tuple(gate.shape)}",
                "give one gate to each head",
            )
        return weights * gate.to(weights)[..., None, None]

    return change
