"""A reading taken apart, into tensors and the facts that JSON can hold, and put together again."""

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.patterns import Pattern, everywhere, parse
from attlas.recording.maps.base import Reading
from attlas.recording.maps.dense import DenseReading
from attlas.recording.maps.factored import FactoredReading

_INTEGERS = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_NUMBERS = _INTEGERS | {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_FAR = 2**31  # patterns reckon with positions of so many bits

_AGAIN = "save the trace again"


def taken_apart(reading: Reading) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Its tensors and its facts.

    Errors: `AttlasError` for a pattern of one's own, for a reading of another form, and for tensors
    that do not fit each other, as in `put_together`.
    """
    if isinstance(reading, DenseReading):
        fields = {"weights": reading.values}
        if reading.allowed is not None:
            fields["allowed"] = reading.allowed
        _check_weights(fields)
        return fields, {"form": "dense", "first": reading.position}
    if isinstance(reading, FactoredReading):
        fields = {"query": reading.query, "keys": reading.keys}
        if reading.real is not None:
            fields["real"] = reading.real
        if reading.bias is not None:
            fields["bias"] = reading.bias
        facts = {
            "form": "factored",
            "scale": reading.scale,
            "pattern": _as_text(reading.pattern),
            "first": reading.first,
        }
        if reading.softcap is not None:
            facts["softcap"] = reading.softcap
        _check_fit(fields, facts)
        return fields, facts
    raise AttlasError("a dense or factored reading", type(reading).__name__, "convert it to one")


def put_together(fields: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Reading:
    """The reading again.

    Errors: `AttlasError` for axes, widths, batches and heads that do not fit each other, and for
    facts of another kind; `KeyError` where something is missing.
    """
    form = fact(facts, "form", str)
    if form == "dense":
        _check_weights(fields)
        # Older files leave out the place of queries that are the newest of the slots.
        queries, slots = fields["weights"].shape[2:]
        first = _first(facts) if "first" in facts else slots - queries
        return DenseReading(fields["weights"], fields.get("allowed"), first)
    if form != "factored":
        raise AttlasError("a reading of form 'dense' or 'factored'", quoted(form), _AGAIN)
    scale, first = float(fact(facts, "scale", int, float)), _first(facts)
    pattern = parse(fact(facts, "pattern", str))
    softcap = float(fact(facts, "softcap", int, float)) if "softcap" in facts else None
    _check_fit(fields, {**facts, "scale": scale})
    return FactoredReading(
        query=fields["query"],
        keys=fields["keys"],
        scale=scale,
        pattern=pattern,
        first=first,
        real=fields.get("real"),
        bias=fields.get("bias"),
        softcap=softcap,
    )


def checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    """The SHA-256 of a text and of tensors on the CPU: their names, dtypes, shapes and bytes."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def fact(facts: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """One fact of a reading. Errors: `AttlasError` where it is of none of these kinds."""
    value = facts[name]
    if not isinstance(value, kinds) or isinstance(value, bool):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise AttlasError(f"{name!r} of a reading as {wanted}", quoted(value), _AGAIN)
    return value


def _first(facts: Mapping[str, Any]) -> int | None:
    """Where the first query stands; None = nobody knows."""
    return None if facts["first"] is None else int(fact(facts, "first", int))


def _check_axes(what: str, axes: str, values: Tensor) -> None:
    if values.ndim != 4 or values.dtype not in _NUMBERS:
        raise AttlasError(
            f"{what} shaped {axes}, as real numbers",
            f"shape {tuple(values.shape)} of {values.dtype}",
            "note those of one call of one layer",
        )


def _check_weights(fields: Mapping[str, Tensor]) -> None:
    weights, allowed = fields["weights"], fields.get("allowed")
    _check_axes("weights", "(batch, heads, queries, slots)", weights)
    if allowed is not None:
        _check_axes("what is allowed", "(batch, heads, queries, slots), or 1 for each", allowed)
        _check_broadcast("allowed", allowed, tuple(weights.shape), torch.bool)


def _check_broadcast(
    what: str, values: Tensor, shape: tuple[int, ...], *kinds: torch.dtype
) -> None:
    fits = all(size in (1, whole) for size, whole in zip(values.shape, shape, strict=True))
    if not fits or (kinds and values.dtype not in kinds):
        wanted = " or ".join(map(str, kinds)) or "numbers"
        raise AttlasError(
            f"`{what}` as {wanted} of shape {shape}, or with 1 in place of any of these",
            f"shape {tuple(values.shape)} of {values.dtype}",
            "note those of one call of one layer",
        )


def _check_fit(fields: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    query, keys, real, bias = (
        fields["query"],
        fields["keys"],
        fields.get("real"),
        fields.get("bias"),
    )
    scale, first, softcap = facts["scale"], facts["first"], facts.get("softcap")
    _check_axes("queries", "(batch, heads, queries, width)", query)
    _check_axes("keys", "(batch, key_heads, slots, width)", keys)
    (batch, heads, _, width), (rows, key_heads, slots, key_width) = query.shape, keys.shape
    if (rows, key_width) != (batch, width) or not key_heads or heads % key_heads:
        raise AttlasError(
            "queries and keys of one batch and one width, and a whole number of heads to a key "
            "head",
            f"queries of shape {tuple(query.shape)} and keys of shape {tuple(keys.shape)}",
            "note those of one call of one layer",
        )
    if real is not None and (tuple(real.shape), real.dtype) != ((batch, slots), torch.bool):
        raise AttlasError(
            f"`real` of shape {(batch, slots)} and torch.bool, one to each slot",
            f"shape {tuple(real.shape)} of {real.dtype}",
            "note True for a token and False for padding, or None",
        )
    if bias is not None:
        _check_axes("a bias", "(batch, heads, queries, slots), or 1 for each", bias)
        _check_broadcast("bias", bias, (batch, heads, query.shape[2], slots))
    if softcap is not None and not (math.isfinite(softcap) and softcap > 0):
        raise AttlasError("a softcap above 0", str(softcap), "leave it out where there is none")
    if not math.isfinite(scale):
        raise AttlasError("a finite scale", str(scale), "note e.g. width ** -0.5")
    if first is None and parse(facts["pattern"]) != everywhere:
        raise AttlasError(
            "`first`, the position of the first query, from which its pattern counts",
            f"none beside the pattern {facts['pattern']}",
            "note where the first query stands",
        )
    if first is not None and not -_FAR <= first < _FAR:
        raise AttlasError(
            "`first`, the position of the first query, from −2³¹ to 2³¹ − 1",
            str(first),
            "count positions in tokens",
        )


def _as_text(pattern: Pattern) -> str:
    text = str(pattern)
    with suppress(AttlasError):
        if parse(text) == pattern:
            return text
    raise AttlasError(
        "a pattern that can be read back from its text",
        text,
        "compose it from attlas.patterns, or keep the weights: DenseReading(reading.weights())",
    )
