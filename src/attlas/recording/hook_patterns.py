"""The weights of a trace under the names that TransformerLens gives them."""

from collections.abc import Sequence

from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.trace import Trace

HOOK_PATTERN = "blocks.{layer}.attn.hook_pattern"
"""The name of a layer's weights in an encoder, or in a decoder alone."""


def hook_patterns(
    trace: Trace, layers: str | Sequence[str] | None = None, name: str = HOOK_PATTERN
) -> dict[str, Tensor]:
    """{"blocks.0.attn.hook_pattern": (batch, heads, queries, keys), …}, in the order of the layers.

    The tensors are what a cache of TransformerLens has under these names:
    `ActivationCache(hook_patterns(trace), bridge)`. Each is computed whole.

    Args:
        trace: What `attlas.observe` has read, of layers that were called once.
        layers: Paths, or patterns of them such as "encoder.*", of one stack of layers; None = all.
        name: The name of each, with `{layer}` for its number. An encoder–decoder has the names
            `encoder_blocks.{layer}.attn.hook_pattern`,
            `decoder_blocks.{layer}.self_attn.hook_pattern` and
            `decoder_blocks.{layer}.cross_attn.hook_pattern`.

    Raises:
        AttlasError: For layers of self- and of cross-attention together, for a name without
            `{layer}`, and for layers that the trace has not, or that were called more than once.
    """
    if "{layer}" not in name:
        raise AttlasError(
            "a name with {layer}, for the number of each layer",
            repr(name),
            f"such as {HOOK_PATTERN!r}",
        )
    paths = trace.matching_layers(layers)
    if len({trace.kind(path) for path in paths} - {None}) > 1:
        raise AttlasError(
            "the layers of one stack, which TransformerLens counts from 0",
            "self-attention and cross-attention together",
            "choose layers, such as hook_patterns(trace, 'encoder.*', "
            "'encoder_blocks.{layer}.attn.hook_pattern')",
        )
    return {
        name.replace("{layer}", str(number)): trace[path][:] for number, path in enumerate(paths)
    }
