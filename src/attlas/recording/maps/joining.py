"""Maps of different texts as one map, whose heads stand behind each other."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap

_LARGEST_MASK = 1 << 16  # bytes of a mask or bias that is compared with others


def join_key(attention_map: AttentionMap) -> Hashable | None:
    """What maps must have in common so that `join_heads` takes them; None = it does not take it.

    That is all but queries, keys and weights: the shape, the type, and everything that decides
    which keys are seen.
    """
    if attention_map.shape[0] != 1:
        return None
    if isinstance(attention_map, DenseAttentionMap):
        mask = attention_map.allowed
        parts: tuple[Hashable, ...] = (attention_map.query_offset,)
        held: tuple[Tensor, ...] = (attention_map.values,)
    elif isinstance(attention_map, FactoredAttentionMap):
        if attention_map.token_mask is not None:
            return None
        mask = attention_map.bias
        parts = (
            attention_map.scale,
            attention_map.pattern,
            attention_map.query_offset,
            attention_map.softcap,
        )
        held = (attention_map.query, attention_map.keys)
    else:
        return None
    content = _content(mask)
    if content is None:
        return None
    return type(attention_map), parts, content, tuple(_kind(tensor) for tensor in held)


def _kind(tensor: Tensor) -> Hashable:
    return tuple(tensor.shape), tensor.dtype, tensor.device


def _content(mask: Tensor | None) -> Hashable | None:
    """The content of a mask, to be compared; None = it is too large for that."""
    if mask is None:
        return ()
    if mask.numel() * mask.element_size() > _LARGEST_MASK:
        return None
    raw = mask.detach().cpu().contiguous().view(torch.uint8)
    return _kind(mask), raw.numpy().tobytes()


def join_heads(maps: Sequence[AttentionMap]) -> AttentionMap:
    """One map (1, maps · heads, queries, keys): the heads of the first map, then of the second, …

    Args:
        maps: At least one, all with the same `join_key`.
    """
    first = maps[0]
    if len(maps) == 1:
        return first
    if isinstance(first, DenseAttentionMap):
        values = torch.cat([one.values for one in maps if isinstance(one, DenseAttentionMap)], 1)
        return replace(first, values=values, allowed=_repeated(first.allowed, first, len(maps)))
    assert isinstance(first, FactoredAttentionMap)
    factored = [one for one in maps if isinstance(one, FactoredAttentionMap)]
    # Query head h reads key head h // (heads / kv_heads), also of all maps together.
    return replace(
        first,
        query=torch.cat([one.query for one in factored], 1),
        keys=torch.cat([one.keys for one in factored], 1),
        bias=_repeated(first.bias, first, len(maps)),
    )


def _repeated(mask: Tensor | None, first: AttentionMap, count: int) -> Tensor | None:
    """The mask or bias of one map for so many; one of a single head serves all."""
    if mask is None or mask.shape[1] == 1:
        return mask
    return mask.expand(-1, first.shape[1], -1, -1).repeat(1, count, 1, 1)


def causal_by_weights(attention_map: AttentionMap) -> bool:
    """Return True if `causal` depends on the weights: maps with the same `join_key` may differ."""
    if isinstance(attention_map, FactoredAttentionMap):
        bias = attention_map.bias
        return bias is not None and bias.dtype != torch.bool
    return True
