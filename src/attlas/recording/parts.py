"""A reading taken apart, into tensors and the facts that JSON can hold, and put together again."""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from attlas.errors import AttlasError
from attlas.patterns import Pattern, parse
from attlas.recording.reading import DenseReading, FactoredReading, Reading

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
        _check_axes("weights", "(batch, heads, queries, slots)", reading.values)
        return {"weights": reading.values}, {"form": "dense"}
    if isinstance(reading, FactoredReading):
        fields = {"query": reading.query, "keys": reading.keys}
        if reading.real is not None:
            fields["real"] = reading.real
        facts = {
            "form": "factored",
            "scale": reading.scale,
            "pattern": _as_text(reading.pattern),
            "first": reading.first,
        }
        _check_fit(fields, reading.scale, reading.first)
        return fields, facts
    raise AttlasError("a dense or factored reading", type(reading).__name__, "convert it to one")


def put_together(fields: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Reading:
    """The reading again.

    Errors: `AttlasError` for axes, widths, batches and heads that do not fit each other, and for
    facts of another kind; `KeyError` where something is missing.
    """
    form = fact(facts, "form", str)
    if form == "dense":
        _check_axes("weights", "(batch, heads, queries, slots)", fields["weights"])
        return DenseReading(fields["weights"])
    if form != "factored":
        raise AttlasError("a reading of form 'dense' or 'factored'", repr(form), _AGAIN)
    scale, first = float(fact(facts, "scale", int, float)), fact(facts, "first", int)
    pattern = parse(fact(facts, "pattern", str))
    _check_fit(fields, scale, first)
    return FactoredReading(
        fields["query"], fields["keys"], scale, pattern, first, fields.get("real")
    )


def fact(facts: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """One fact of a reading. Errors: `AttlasError` where it is of none of these kinds."""
    value = facts[name]
    if not isinstance(value, kinds) or isinstance(value, bool):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise AttlasError(f"{name!r} of a reading as {wanted}", repr(value)[:80], _AGAIN)
    return value


def _check_axes(what: str, axes: str, values: Tensor) -> None:
    if values.ndim != 4 or values.dtype not in _NUMBERS:
        raise AttlasError(
            f"{what} shaped {axes}, as real numbers",
            f"shape {tuple(values.shape)} of {values.dtype}",
            "note those of one call of one layer",
        )


def _check_fit(fields: Mapping[str, Tensor], scale: float, first: int) -> None:
    query, keys, real = fields["query"], fields["keys"], fields.get("real")
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
    if not math.isfinite(scale):
        raise AttlasError("a finite scale", str(scale), "note e.g. width ** -0.5")
    if not -_FAR <= first < _FAR:
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
