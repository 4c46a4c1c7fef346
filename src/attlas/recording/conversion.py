"""Attention maps as tables of pandas and arrays of xarray."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from attlas.errors import AttlasError, missing_extra
from attlas.recording.maps.base import AttentionMap

_AT_MOST = 1 << 24
"""Rows of a table: about 1 GiB."""


class LabelledMap(NamedTuple):
    """One call of a layer, and the tokens of each text: () if unknown."""

    layer: str
    call: int
    attention_map: AttentionMap
    query_tokens: Sequence[tuple[str, ...]]
    key_tokens: Sequence[tuple[str, ...]]


def to_dataframe(maps: Sequence[LabelledMap]) -> Any:
    """A table with a row for each weight: layer, call, batch, head, query, key, weight,
    query_token, key_token; None for a token that is not known.

    Raises:
        AttlasError: If pandas is missing, and for more than 2²⁴ weights.
    """
    pandas = _imported("pandas", "a table of a trace (pandas)")
    sizes = {record.layer: 0 for record in maps}
    for record in maps:
        sizes[record.layer] += int(np.prod(record.attention_map.shape))
    if sum(sizes.values()) > _AT_MOST:
        largest = max(sizes, key=sizes.__getitem__)
        raise AttlasError(
            f"at most {_AT_MOST:,} weights for a table",
            f"{sum(sizes.values()):,}, of which layer {largest!r} has {sizes[largest]:,}",
            "choose layers, as in to_dataframe(layers='decoder.*'); observe fewer heads or texts; "
            "or ask each map for its `summary` or `pool`",
        )
    tables = [pandas.DataFrame(_columns(record)) for record in maps]
    empty = pandas.DataFrame({name: [] for name in _COLUMNS})
    return pandas.concat(tables, ignore_index=True) if tables else empty


def to_xarray(labelled: LabelledMap) -> Any:
    """A DataArray (batch, head, query, key), with known tokens as coordinates: `query_token`
    (batch, query) and `key_token` (batch, key).

    Raises:
        AttlasError: If xarray is missing, and for more than 2²⁸ weights.
    """
    xarray = _imported("xarray", "an array of a map with named axes (xarray)")
    shape = labelled.attention_map.shape
    coordinates: dict[str, Any] = {
        axis: np.arange(size) for axis, size in zip(_AXES, shape, strict=True)
    }
    sides = (("query", labelled.query_tokens), ("key", labelled.key_tokens))
    for axis, tokens in sides:
        if any(tokens):
            rows = _token_array(tokens, shape[_AXES.index(axis)])
            coordinates[f"{axis}_token"] = (("batch", axis), rows)
    return xarray.DataArray(
        labelled.attention_map.numpy(), coords=coordinates, dims=_AXES, name=labelled.layer
    )


_AXES = ("batch", "head", "query", "key")
_COLUMNS = ("layer", "call", *_AXES, "weight", "query_token", "key_token")


def _columns(labelled: LabelledMap) -> dict[str, Any]:
    shape = labelled.attention_map.shape
    batch, head, query, key = (axis.reshape(-1) for axis in np.indices(shape))
    query_tokens = _token_array(labelled.query_tokens, shape[2])
    key_tokens = _token_array(labelled.key_tokens, shape[3])
    return {
        "layer": np.full(batch.shape, labelled.layer, dtype=object),
        "call": np.full(batch.shape, labelled.call),
        "batch": batch,
        "head": head,
        "query": query,
        "key": key,
        "weight": labelled.attention_map.numpy().reshape(-1),
        "query_token": query_tokens[batch, query],
        "key_token": key_tokens[batch, key],
    }


def _token_array(tokens: Sequence[tuple[str, ...]], length: int) -> Any:
    """(batch, length); None where the tokens of a text are not known."""
    rows = np.full((len(tokens), length), None, dtype=object)
    for row, row_tokens in enumerate(tokens):
        if row_tokens:
            rows[row] = row_tokens
    return rows


def _imported(name: str, purpose: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise missing_extra(purpose, name) from None
