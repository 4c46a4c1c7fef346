"""Attention rollout: how much of each input is in each output, if attention only mixes."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.flow.mixing import checked_places, layers_of, mixings
from attlas.errors import AttlasError
from attlas.recording import Reading, Trace

_AT_MOST = 1 << 27  # shares, in float64: a gigabyte of them


def rollout(
    readings: Trace | Sequence[Reading],
    positions: Sequence[int] | None = None,
    residual: float = 0.5,
    *,
    layers: Sequence[str] | None = None,
    row: int | None = None,
) -> Float[Tensor, "positions slots"]:
    """Ã_L Ã_(L−1) … Ã_1, of these rows    Abnar & Zuidema, 2020, section 3.1, eq. 1.

    Ã = (ρ I + (1 − ρ) A) / row sums, A the mean over heads (`Mixing`). Row i says which share of
    the output of the last layer at position i came from each input: shares that sum to 1, in
    float64. For what reaches an earlier layer, give the layers up to it.

    readings: self-attention from the first layer to the last, (batch, heads, length, length), or a
    trace, and of it `layers`, None = all; row: which text of a batch. positions: of the outputs,
    None = all. Time O(positions × length²) a layer; memory O(positions × length): no map is held,
    so that one position of a long text is cheap.

    Errors: `AttlasError` for readings that are not such layers, among them those of a trace that
    look across or are of two sides (encoder and decoder), positions that are not there, and
    for more shares than fit a gigabyte.
    """
    stack = mixings(layers_of(readings, layers, row), residual)
    length = stack[0].length
    chosen = checked_places(positions, length)
    if len(chosen) * length > _AT_MOST:
        raise AttlasError(
            f"at most {_AT_MOST:,} shares",
            f"{len(chosen):,} positions × {length:,} inputs",
            "ask for some positions at a time",
        )
    device = stack[0].reading.rows(0, 1).device
    shares = torch.zeros((len(chosen), length), dtype=torch.float64, device=device)
    shares[torch.arange(len(chosen)), torch.tensor(chosen)] = 1.0
    # From the left: a few rows times a map, which can come in blocks, is a few rows again.
    for layer in reversed(stack):
        mixed = torch.zeros_like(shares)
        for rows, mixing in layer.blocks():
            mixed += shares[:, rows] @ mixing
        shares = mixed
    return shares
