"""Attention flow: how much of each input can get to each output, if edges have capacities."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.flow.maximum_flow import Capacity, maximum_flow
from attlas.analysis.flow.mixing import Mixing, checked_places, layers_of, mixings
from attlas.errors import AttlasError
from attlas.recording import Reading, Trace

AT_MOST = 1 << 28
"""Edges that may be gone through: positions × inputs × layers × length²."""


def attention_flow(
    readings: Trace | Sequence[Reading],
    positions: Sequence[int] | None = None,
    inputs: Sequence[int] | None = None,
    residual: float = 0.5,
    at_most: int = AT_MOST,
    *,
    layers: Sequence[str] | None = None,
    row: int | None = None,
) -> Float[Tensor, "positions inputs"]:
    """max flow from position i of the last layer to input j    Abnar & Zuidema, 2020, section 3.2.

    The graph has a node for each position of each layer and of the inputs; the edge from a position
    to one of the layer below has the capacity that Ã gives it, Ã = (ρ I + (1 − ρ) A) / row sums, A
    the mean over heads (`Mixing`). A number is the flow to this input alone, as if no other took
    any: from 0 to 1, and those of a position need not sum to 1.

    readings, layers, row: as of `rollout`; positions: of the outputs, inputs: that the flow may
    reach; None = all.
    One flow takes about as long as `maximum_flow` says; there are positions × inputs of them.

    Errors: `AttlasError` for readings that are not such layers, for positions that are not there,
    and where more than `at_most` edges, counted once for each flow, would have to be gone through,
    which are some minutes of a processor.
    """
    stack = mixings(layers_of(readings, layers, row), residual)
    length = stack[0].length
    asked, reached = checked_places(positions, length), checked_places(inputs, length)
    count = len(asked) * len(reached) * len(stack) * length**2
    if count > at_most:
        raise AttlasError(
            f"at most {at_most:,} edges to go through, of all flows together",
            f"{len(asked):,} positions × {len(reached):,} inputs × {len(stack)} layers × "
            f"{length:,}² = {count:,}",
            "ask for some positions and inputs, or for `rollout`, which takes any length; or pass "
            "at_most=… and wait",
        )
    capacities = [_capacity(layer) for layer in reversed(stack)]
    flows = [[maximum_flow(capacities, i, j) for j in reached] for i in asked]
    return torch.tensor(flows, dtype=torch.float64)


def _capacity(layer: Mixing) -> Capacity:
    return np.concatenate([rows.cpu().numpy() for _, rows in layer.blocks()])
