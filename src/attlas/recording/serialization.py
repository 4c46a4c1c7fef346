"""Convert attention maps to tensors and JSON facts, and back."""

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from attlas.errors import AttlasError, CheckpointError, UnsupportedError, quoted
from attlas.patterns import Pattern, everywhere, parse
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap

_INTEGERS = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_NUMBERS = _INTEGERS | {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_FAR = 2**31  # patterns reckon with positions of so many bits

_AGAIN = "save the trace again"


def to_tensors(attention_map: AttentionMap) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Its tensors and its facts.

    Raises:
        AttlasError: For a pattern of your own, for an attention map of another form, and for
            tensors that do not fit each other, as in `from_tensors`.
    """
    if isinstance(attention_map, DenseAttentionMap):
        fields = {"weights": attention_map.values}
        if attention_map.allowed is not None:
            fields["allowed"] = attention_map.allowed
        _check_weights(fields)
        return fields, {"form": "dense", "query_offset": attention_map.position}
    if isinstance(attention_map, FactoredAttentionMap):
        fields = {"query": attention_map.query, "keys": attention_map.keys}
        if attention_map.token_mask is not None:
            fields["token_mask"] = attention_map.token_mask
        if attention_map.bias is not None:
            fields["bias"] = attention_map.bias
        facts = {
            "form": "factored",
            "scale": attention_map.scale,
            "pattern": _as_text(attention_map.pattern),
            "query_offset": attention_map.query_offset,
        }
        if attention_map.softcap is not None:
            facts["softcap"] = attention_map.softcap
        _check_fit(fields, facts)
        return fields, facts
    raise AttlasError(
        "a dense or factored attention map", type(attention_map).__name__, "convert it to one"
    )


def from_tensors(fields: Mapping[str, Tensor], facts: Mapping[str, Any]) -> AttentionMap:
    """The attention map again.

    Raises:
        AttlasError: For axes, widths, batches and heads that do not fit each other, and for facts
            of another kind.
        KeyError: If something is missing.
    """
    form = fact(facts, "form", str)
    if form == "dense":
        _check_weights(fields)
        # Older files leave out the place of queries that are the newest of the keys.
        queries, num_keys = fields["weights"].shape[2:]
        query_offset = _first(facts) if "query_offset" in facts else num_keys - queries
        return DenseAttentionMap(fields["weights"], fields.get("allowed"), query_offset)
    if form != "factored":
        raise CheckpointError(
            "an attention map of form 'dense' or 'factored'", quoted(form), _AGAIN
        )
    scale, query_offset = float(fact(facts, "scale", int, float)), _first(facts)
    pattern = parse(fact(facts, "pattern", str))
    softcap = float(fact(facts, "softcap", int, float)) if "softcap" in facts else None
    _check_fit(fields, {**facts, "scale": scale})
    return FactoredAttentionMap(
        query=fields["query"],
        keys=fields["keys"],
        scale=scale,
        pattern=pattern,
        query_offset=query_offset,
        token_mask=fields.get("token_mask"),
        bias=fields.get("bias"),
        softcap=softcap,
    )


def trace_checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    """The SHA-256 of a text and of tensors on the CPU: their names, dtypes, shapes and bytes."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def fact(facts: Any, name: str, *kinds: type) -> Any:
    """One fact of an attention map.

    Raises:
        AttlasError: If it is of none of these kinds.
        TypeError: If the facts are no object; a file that holds such is damaged.
    """
    if not isinstance(facts, Mapping):  # a file may hold anything
        raise TypeError("the facts of an attention map are an object")
    value = facts[name]
    if not isinstance(value, kinds) or isinstance(value, bool):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise CheckpointError(f"{name!r} of an attention map as {expected}", quoted(value), _AGAIN)
    return value


def _first(facts: Mapping[str, Any]) -> int | None:
    """Where the first query stands; None = unknown."""
    return None if facts["query_offset"] is None else int(fact(facts, "query_offset", int))


def _check_axes(name: str, axes: str, values: Tensor) -> None:
    if values.ndim != 4 or values.dtype not in _NUMBERS:
        raise AttlasError(
            f"{name} shaped {axes}, as real numbers",
            f"shape {tuple(values.shape)} of {values.dtype}",
            "note those of one call of one layer",
        )


def _check_weights(fields: Mapping[str, Tensor]) -> None:
    weights, allowed = fields["weights"], fields.get("allowed")
    _check_axes("weights", "(batch, heads, queries, keys)", weights)
    if allowed is not None:
        _check_axes("what is allowed", "(batch, heads, queries, keys), or 1 for each", allowed)
        _check_broadcast("allowed", allowed, tuple(weights.shape), torch.bool)


def _check_broadcast(
    name: str, values: Tensor, shape: tuple[int, ...], *kinds: torch.dtype
) -> None:
    fits = all(size in (1, full_size) for size, full_size in zip(values.shape, shape, strict=True))
    if not fits or (kinds and values.dtype not in kinds):
        expected = " or ".join(map(str, kinds)) or "numbers"
        raise AttlasError(
            f"`{name}` as {expected} of shape {shape}, or with 1 in place of any of these",
            f"shape {tuple(values.shape)} of {values.dtype}",
            "note those of one call of one layer",
        )


def _check_fit(fields: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    query, keys, token_mask, bias = (
        fields["query"],
        fields["keys"],
        fields.get("token_mask"),
        fields.get("bias"),
    )
    scale, query_offset, softcap = facts["scale"], facts["query_offset"], facts.get("softcap")
    _check_axes("queries", "(batch, heads, queries, dim)", query)
    _check_axes("keys", "(batch, kv_heads, keys, dim)", keys)
    (batch, heads, _, head_dim), (rows, num_kv_heads, num_keys, key_head_dim) = (
        query.shape,
        keys.shape,
    )
    if (rows, key_head_dim) != (batch, head_dim) or not num_kv_heads or heads % num_kv_heads:
        raise AttlasError(
            "queries and keys of one batch and one width, and a whole number of heads to a key "
            "head",
            f"queries of shape {tuple(query.shape)} and keys of shape {tuple(keys.shape)}",
            "note those of one call of one layer",
        )
    if token_mask is not None and (tuple(token_mask.shape), token_mask.dtype) != (
        (batch, num_keys),
        torch.bool,
    ):
        raise AttlasError(
            f"`token_mask` of shape {(batch, num_keys)} and torch.bool, one to each key",
            f"shape {tuple(token_mask.shape)} of {token_mask.dtype}",
            "note True for a token and False for padding, or None",
        )
    if bias is not None:
        _check_axes("a bias", "(batch, heads, queries, keys), or 1 for each", bias)
        _check_broadcast("bias", bias, (batch, heads, query.shape[2], num_keys))
    if softcap is not None and not (math.isfinite(softcap) and softcap > 0):
        raise AttlasError("a softcap above 0", str(softcap), "leave it out where there is none")
    if not math.isfinite(scale):
        raise AttlasError("a finite scale", str(scale), "note e.g. width ** -0.5")
    if query_offset is None and parse(facts["pattern"]) != everywhere:
        raise AttlasError(
            "`query_offset`, the position of the first query, from which its pattern counts",
            f"none beside the pattern {facts['pattern']}",
            "note where the first query stands",
        )
    if query_offset is not None and not -_FAR <= query_offset < _FAR:
        raise AttlasError(
            "`query_offset`, the position of the first query, from −2³¹ to 2³¹ − 1",
            str(query_offset),
            "count positions in tokens",
        )


def _as_text(pattern: Pattern) -> str:
    text = str(pattern)
    with suppress(AttlasError):
        if parse(text) == pattern:
            return text
    raise UnsupportedError(
        "a pattern that can be read back from its text",
        text,
        "compose it from attlas.patterns, or keep the weights: "
        "DenseAttentionMap(attention_map.weights())",
    )
