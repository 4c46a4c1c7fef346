"""The weights of a trace under the names that TransformerLens gives them."""

import re
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
        name: The name of each, with `{layer}` for its number, which stands in its path. An
            encoder–decoder has the names
            `encoder_blocks.{layer}.attn.hook_pattern`,
            `decoder_blocks.{layer}.self_attn.hook_pattern` and
            `decoder_blocks.{layer}.cross_attn.hook_pattern`.

    Raises:
        AttlasError: For layers of two stacks together, for a stack whose layers have two numbers
            (of a stage and in it), for a name without `{layer}`, and for layers that the trace has
            not, or that were called more than once.
    """
    if "{layer}" not in name:
        raise AttlasError(
            "a name with {layer}, for the number of each layer",
            repr(name),
            f"such as {HOOK_PATTERN!r}",
        )
    paths = trace.matching_layers(layers)
    stacks = {(_stack(path), trace.kind(path)): path for path in reversed(paths)}
    if len(stacks) > 1:
        raise AttlasError(
            "the layers of one stack, which TransformerLens counts from 0",
            " and ".join(map(repr, sorted(stacks.values(), key=paths.index)[:2])),
            "choose layers, such as hook_patterns(trace, 'encoder.*', "
            "'encoder_blocks.{layer}.attn.hook_pattern')",
        )
    return {
        name.replace("{layer}", str(number)): trace[path][:]
        for path, number in _numbered(trace, paths).items()
    }


_NUMBER = re.compile(r"(?<![^._])\d+(?![^._])")  # "3" of "layers.3" and of "encoder_layer_3"


def _stack(path: str) -> str:
    """The path of a layer without its numbers."""
    return _NUMBER.sub("#", path)


def _numbers(path: str) -> list[int]:
    return list(map(int, _NUMBER.findall(path)))


def _numbered(trace: Trace, paths: Sequence[str]) -> dict[str, int]:
    """The number of each layer in its stack: the only number in which the paths of the stack
    differ, or their first one where the stack has one layer.
    """
    if not paths:
        return {}
    stack = [_numbers(path) for path in trace if _stack(path) == _stack(paths[0])]
    places = [
        place for place, numbers in enumerate(zip(*stack, strict=True)) if len({*numbers}) > 1
    ]
    if len(places) > 1:
        raise AttlasError(
            "paths of layers that differ in one number, which counts them",
            f"{paths[0]!r}, in whose stack {len(places)} numbers differ",
            "name the weights yourself: trace[path][:] has those of one layer",
        )
    place = places[0] if places else 0
    return {path: (_numbers(path) or [0])[place] for path in paths}
