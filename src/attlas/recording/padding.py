"""Masks of the keys and queries that are tokens, and not padding."""

import torch
from jaxtyping import Bool
from torch import Tensor

from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap

_AT_ONCE = 1 << 22  # pairs of a block


def device_of(attention_map: AttentionMap) -> torch.device:
    """The device of its weights."""
    return attention_map.rows(0, 0).device


def token_mask_of(attention_map: AttentionMap) -> Bool[Tensor, "batch keys"]:
    """Which keys are tokens: as the attention map says, or else the keys that some query may see.

    If a model hides padding only by a bias, and padding may look at padding, the padding cannot be
    recognised. Then pass a token mask.
    """
    batch, _, queries, num_keys = attention_map.shape
    if isinstance(attention_map, FactoredAttentionMap) and attention_map.token_mask is not None:
        return attention_map.token_mask
    lacks_mask = isinstance(attention_map, DenseAttentionMap) and attention_map.allowed is None
    if (
        lacks_mask
        or (isinstance(attention_map, FactoredAttentionMap) and attention_map.bias is None)
        or not queries
    ):
        return torch.ones((batch, num_keys), dtype=torch.bool, device=device_of(attention_map))
    # A row of padding that a bias hides completely looks everywhere, also at padding.
    see = (
        attention_map.shown
        if isinstance(attention_map, FactoredAttentionMap)
        else attention_map.allowed_rows
    )
    step = max(1, _AT_ONCE // max(1, num_keys))
    masks = [
        see(start, min(start + step, queries)).flatten(1, 2).any(1)
        for start in range(0, queries, step)
    ]
    return torch.stack(masks).any(0).expand(batch, num_keys)


def query_mask(
    attention_map: AttentionMap,
    token_mask: Bool[Tensor, "batch keys"],
    *,
    cross_attention: bool | None,
) -> Bool[Tensor, "batch queries"]:
    """The queries at a token's position. All queries if their positions are unknown.

    Args:
        cross_attention: Whether the map is of cross-attention. None = unknown; then a map with as
            many queries as keys counts as self-attention.
    """
    batch, _, queries, num_keys = attention_map.shape
    query_offset = attention_map.position
    if (
        query_offset is None
        or cross_attention
        or (cross_attention is None and queries != num_keys)
        or not num_keys
    ):
        return torch.ones((batch, queries), dtype=torch.bool, device=token_mask.device)
    positions = query_offset + torch.arange(queries, device=token_mask.device)
    return (
        token_mask[:, positions.clamp(0, num_keys - 1)] & (positions >= 0) & (positions < num_keys)
    )
