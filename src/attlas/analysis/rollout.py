"""Attention rollout: how much of each input is in each output, if attention only mixes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import AttentionMap, Trace

# One layer of self-attention with its residual connection, as a mixing matrix.


_AT_ONCE = 1 << 20  # weights


@dataclass(frozen=True, slots=True)
class Mixing:
    """Ã = (ρ I + (1 − ρ) A) / row sums    Abnar & Zuidema, 2020, section 3.

    A: the mean over the heads of one batch row of self-attention; ρ: the share of the residual
    connection, 0.5 in the paper. A query that sees nothing keeps its own vector.
    """

    attention_map: AttentionMap
    residual: float = 0.5

    @property
    def length(self) -> int:
        """How many positions there are."""
        return self.attention_map.shape[3]

    def blocks(self) -> Iterator[tuple[slice, Float[Tensor, "rows keys"]]]:
        """The rows of Ã, in float64, some at a time."""
        _, heads, queries, num_keys = self.attention_map.shape
        size = max(1, _AT_ONCE // max(1, heads * num_keys))
        for start in range(0, queries, size):
            stop = min(start + size, queries)
            rows = self.attention_map.rows(start, stop)[0].to(torch.float64).mean(0)
            rows = rows * (1 - self.residual)
            rows[torch.arange(stop - start), torch.arange(start, stop)] += self.residual
            empty_rows = (rows.sum(-1) == 0).nonzero().flatten()
            rows[empty_rows, start + empty_rows] = 1.0
            yield slice(start, stop), rows / rows.sum(-1, keepdim=True)


def layers_of(
    maps: Trace | Sequence[AttentionMap], layers: str | Sequence[str] | None, row: int | None
) -> tuple[AttentionMap, ...]:
    """The attention maps of a stack of layers, of one text, from the first to the last.

    Raises:
        AttlasError: For layers of a trace that are cross-attention, that mix encoder and decoder,
            or that were called more than once; for `layers` without a trace; for a text that does
            not exist.
    """
    if isinstance(maps, Trace):
        layer_maps = maps.matching_layers(layers)
        _check_side(maps, layer_maps)
        for layer in layer_maps:
            _check_once(maps, layer)
        attention_maps = tuple(maps[layer] for layer in layer_maps)
    elif layers is None:
        attention_maps = tuple(maps)
    else:
        raise AttlasError(
            "a trace, whose layers can be named",
            f"attention maps, and layers={list(layers)}",
            "give the trace, or the attention maps of these layers alone",
        )
    if row is None:
        return attention_maps
    batches = {attention_map.shape[0] for attention_map in attention_maps}
    if len(batches) > 1:
        raise AttlasError(
            f"attention maps of as many batch rows as each other, or row={row} is of several texts",
            ", ".join(str(attention_map.shape) for attention_map in attention_maps),
            "give the attention maps of one text, by attention_map.at(row)",
        )
    batch = next(iter(batches), 0)
    if not 0 <= row < batch:
        raise AttlasError(f"a text from 0 to {batch - 1}", f"row={row}", "count batch rows from 0")
    return tuple(attention_map.at(row) for attention_map in attention_maps)


def _check_once(trace: Trace, layer: str) -> None:
    """Raise an error for several calls: only the caller knows if they are layers or texts."""
    calls = len(trace.calls(layer))
    if calls > 1:
        raise AttlasError(
            f"a single call of layer {layer!r}",
            f"{calls} calls",
            f"of a layer that is its own successor, give trace.calls({layer!r}); of several texts, "
            f"give the attention maps of one, such as [trace.calls(layer)[0] for layer in …]",
        )


def _check_side(trace: Trace, layers: Sequence[str]) -> None:
    """Check that all layers are of one side: an encoder and a decoder may have equal lengths."""
    cross_attention = [layer for layer in layers if trace.kind(layer) == "cross"]
    sides: dict[str, list[str]] = {}
    for layer in layers:
        if layer not in cross_attention:
            sides.setdefault(_side(trace, layer), []).append(layer)
    if cross_attention or len(sides) > 1:
        first_side = next(iter(sides.values()), None)
        raise AttlasError(
            "layers of self-attention on one text",
            f"{cross_attention}, which are cross-attention"
            if cross_attention
            else f"{list(sides.values())}, of two sides",
            "observe a model with self-attention"
            if first_side is None
            else f"name those of one side: layers={first_side}",
        )


def _side(trace: Trace, layer: str) -> str:
    """The side of a layer, by its name; otherwise, if the model has cross-attention, by whether it
    is causal.
    """
    for part in layer.split("."):  # the first of them: a decoder may be an "encoder" inside
        if part in ("encoder", "decoder"):
            return part
    two = any(trace.kind(other) == "cross" for other in trace)
    return "decoder" if two and trace.causal(layer) else ""


def mixings(attention_maps: Sequence[AttentionMap], residual: float) -> tuple[Mixing, ...]:
    """One for each layer, from the first to the last.

    Raises:
        AttlasError: For attention maps that do not follow each other as layers of self-attention
            over one text, and for a residual that is no share.
    """
    shapes = {
        (attention_map.shape[0], *attention_map.shape[2:]) for attention_map in attention_maps
    }
    if len(shapes) != 1 or (shape := next(iter(shapes)))[0] != 1 or shape[1] != shape[2]:
        raise AttlasError(
            "layers of self-attention over one text, (1, heads, length, length) each",
            ", ".join(str(attention_map.shape) for attention_map in attention_maps) or "none",
            "choose the text by row=… or attention_map.at(row), and layers of one stack, first to "
            "last",
        )
    if any(attention_map.position != 0 for attention_map in attention_maps):
        raise AttlasError(
            "layers in which each query stands at its own key",
            "layers whose query positions are unknown, as for a text in windows or chunks",
            "leave these out; or, where you know better, dataclasses.replace(attention_map, "
            "first=0)",
        )
    if not 0 <= residual <= 1:
        raise AttlasError("a residual share from 0 to 1", str(residual), "the paper's is 0.5")
    return tuple(Mixing(attention_map, residual) for attention_map in attention_maps)


def checked_positions(positions: Sequence[int] | None, length: int) -> list[int]:
    """These positions, or all.

    Raises:
        AttlasError: For one that is not there, and for none.
    """
    selected = list(range(length)) if positions is None else list(positions)
    invalid = [position for position in selected if not 0 <= position < length]
    if invalid or not selected:
        raise AttlasError(
            f"positions from 0 to {length - 1:,}", str(invalid or "none"), "count from the first"
        )
    return selected


_AT_MOST = 1 << 27  # shares, in float64: a gigabyte of them


def rollout(
    attention_maps: Trace | Sequence[AttentionMap],
    positions: Sequence[int] | None = None,
    residual: float = 0.5,
    *,
    layers: Sequence[str] | None = None,
    row: int | None = None,
) -> Float[Tensor, "positions keys"]:
    """Ã_L Ã_(L−1) … Ã_1, of these rows Abnar & Zuidema, 2020, section 3.1, eq. 1.

    Ã = (ρ I + (1 − ρ) A) / row sums, A the mean over heads (`Mixing`). Row i is the share of each
    input in the output of the last layer at position i; shares sum to 1, in float64. For an earlier
    layer, pass the layers up to it.

    Args:
        attention_maps: self-attention from the first layer to the last, (batch, heads, length,
            length), or a trace, and of it `layers`, None = all.
        row: Which text of a batch.
        positions: Of the outputs, None = all. Time O(positions × length²) a layer; memory
            O(positions × length): no map is held, so that one position of a long text is cheap.

    Raises:
        AttlasError: For maps that are no such layers, among them cross-attention and layers of both
            encoder and decoder; for positions that do not exist; and for more shares than fit a
            gigabyte.
    """
    stack = mixings(layers_of(attention_maps, layers, row), residual)
    length = stack[0].length
    selected = checked_positions(positions, length)
    if len(selected) * length > _AT_MOST:
        raise AttlasError(
            f"at most {_AT_MOST:,} shares",
            f"{len(selected):,} positions × {length:,} inputs",
            "ask for some positions at a time",
        )
    device = stack[0].attention_map.rows(0, 1).device
    shares = torch.zeros((len(selected), length), dtype=torch.float64, device=device)
    shares[torch.arange(len(selected)), torch.tensor(selected)] = 1.0
    # Multiply from the left: a few rows times a map, block by block, are a few rows again.
    for layer in reversed(stack):
        next_shares = torch.zeros_like(shares)
        for rows, mixing in layer.blocks():
            next_shares += shares[:, rows] @ mixing
        shares = next_shares
    return shares
