"""Maximum flow through a graph of layers, and attention flow."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.rollout import Mixing, checked_positions, layers_of, mixings
from attlas.errors import AttlasError
from attlas.recording import AttentionMap, Trace

Capacity = Float[np.ndarray, "_ _"]  # (nodes of a layer, nodes of the next one)

_DIGITS = 1e-12  # a smaller share of the greatest capacity is rounding error
_FAR = 1 << 30


def maximum_flow(capacities: Sequence[Capacity], source: int, sink: int) -> float:
    """max Σ flow out of `source`, with flow ≤ capacity on each edge and conservation at other
    nodes.

    capacities[l][i, j]: of the edge from node i of layer l to node j of layer l + 1. The flow goes
    from node `source` of the first layer to node `sink` of the last one. Dinic's algorithm (1970):
    augment along all shortest remaining paths at once, until none is left; exact up to float64
    rounding. The flow equals the minimum cut (Ford & Fulkerson, 1956).

    Time: O(layers × nodes²) to find the remaining paths, mostly a few times the number of layers;
        and a step in Python for each edge of each path.

    Raises:
        AttlasError: For invalid capacities, for layers whose shapes do not chain, and for nodes
            that do not exist.
    """
    _check(capacities, source, sink)
    flow = _Flow(capacities, source, sink)
    total = 0.0
    while flow.level():
        while (pushed := flow.push()) > 0:
            total += pushed
    return total


class _Flow:
    """Residual capacities: what is left of each edge, and the flow that can be taken back."""

    def __init__(self, capacities: Sequence[Capacity], source: int, sink: int) -> None:
        self.left = [np.array(capacity, dtype=np.float64) for capacity in capacities]
        self.nothing = _DIGITS * max(capacity.max(initial=0.0) for capacity in self.left)
        self.back = [np.zeros_like(capacity) for capacity in self.left]
        sizes = [len(self.left[0]), *(capacity.shape[1] for capacity in self.left)]
        self.source, self.sink = (0, source), (len(sizes) - 1, sink)
        self.levels = [np.full(size, _FAR) for size in sizes]
        self.ways: list[list[list[tuple[int, int]] | None]] = []

    def level(self) -> bool:
        """Compute each node's distance from the source. Return True if the sink can be reached."""
        for level in self.levels:
            level.fill(_FAR)
        self.levels[self.source[0]][self.source[1]] = 0
        self.ways = [[None] * len(level) for level in self.levels]
        distance, fresh = 0, True
        while fresh and self.levels[-1][self.sink[1]] == _FAR:
            fresh = False
            at_level = [level == distance for level in self.levels]
            distance += 1
            for layer, level in enumerate(self.levels):
                reachable = np.zeros(len(level), dtype=bool)
                if layer > 0:
                    reachable |= (self.left[layer - 1][at_level[layer - 1]] > self.nothing).any(0)
                if layer < len(self.left):
                    reachable |= (self.back[layer][:, at_level[layer + 1]] > self.nothing).any(1)
                reachable &= level == _FAR
                level[reachable] = distance
                fresh = fresh or bool(reachable.any())
        return bool(self.levels[-1][self.sink[1]] < _FAR)

    def push(self) -> float:
        """Send as much as one path from the source to the sink takes; 0 = no path is left."""
        way = [self.source]
        while way[-1] != self.sink:
            onward = self._onward(way[-1])
            while onward and self._residual_capacity(way[-1], onward[-1]) <= self.nothing:
                onward.pop()
            if onward:
                way.append(onward[-1])
            elif len(way) == 1:
                return 0.0
            else:  # a dead end: never visit it again
                way.pop()
                self._onward(way[-1]).pop()
        edges = list(pairwise(way))
        amount = min(self._residual_capacity(*edge) for edge in edges)
        for edge in edges:
            self._take(*edge, amount)
        return amount

    def _onward(self, node: tuple[int, int]) -> list[tuple[int, int]]:
        """Nodes one edge further with capacity left; the next one to try is last."""
        layer, position = node
        ways = self.ways[layer][position]
        if ways is None:
            further = self.levels[layer][position] + 1
            ways = []
            if layer > 0:
                can = (self.back[layer - 1][:, position] > self.nothing) & (
                    self.levels[layer - 1] == further
                )
                ways += [(layer - 1, int(i)) for i in np.flatnonzero(can)]
            if layer < len(self.left):
                can = (self.left[layer][position] > self.nothing) & (
                    self.levels[layer + 1] == further
                )
                ways += [(layer + 1, int(i)) for i in np.flatnonzero(can)]
            self.ways[layer][position] = ways
        return ways

    def _residual_capacity(self, source: tuple[int, int], target: tuple[int, int]) -> float:
        if target[0] > source[0]:
            return float(self.left[source[0]][source[1], target[1]])
        return float(self.back[target[0]][target[1], source[1]])

    def _take(self, source: tuple[int, int], target: tuple[int, int], amount: float) -> None:
        if target[0] > source[0]:
            edge, sign, layer = (source[1], target[1]), -amount, source[0]
        else:
            edge, sign, layer = (target[1], source[1]), amount, target[0]
        self.left[layer][edge] += sign
        self.back[layer][edge] -= sign


def _check(capacities: Sequence[Capacity], source: int, sink: int) -> None:
    shapes = [capacity.shape for capacity in capacities]
    if not shapes or any(previous[1] != after[0] for previous, after in pairwise(shapes)):
        raise AttlasError(
            "the edges between each layer and the next one, (nodes, nodes of the next)",
            ", ".join(map(str, shapes)) or "none",
            "give at least one, in order",
        )
    if not all(np.isfinite(capacity).all() and (capacity >= 0).all() for capacity in capacities):
        raise AttlasError(
            "finite capacities from 0", "others among them", "an edge that is not there has 0"
        )
    if not (0 <= source < shapes[0][0] and 0 <= sink < shapes[-1][1]):
        raise AttlasError(
            f"a source of {shapes[0][0]:,} nodes and a sink of {shapes[-1][1]:,}",
            f"{source} and {sink}",
            "count them from 0",
        )


# Attention flow: how much of each input can reach each output, with weights as capacities.


AT_MOST = 1 << 28
"""Edges that may be gone through: positions × inputs × layers × length²."""


def attention_flow(
    attention_maps: Trace | Sequence[AttentionMap],
    positions: Sequence[int] | None = None,
    inputs: Sequence[int] | None = None,
    residual: float = 0.5,
    at_most: int = AT_MOST,
    *,
    layers: Sequence[str] | None = None,
    row: int | None = None,
) -> Float[Tensor, "positions inputs"]:
    """max flow from position i of the last layer to input j Abnar & Zuidema, 2020, section 3.2.

    The graph has a node for each position of each layer and of the inputs; the edge from a position
    to one of the layer below has the capacity that Ã gives it, Ã = (ρ I + (1 − ρ) A) / row sums, A
    the mean over heads (`Mixing`). Each value is the maximum flow to this input alone: from 0 to 1;
    the values of a position need not sum to 1.

    Time: positions × inputs times that of `maximum_flow`.

    Args:
        attention_maps, layers, row: As of `rollout`.
        positions: Of the outputs, inputs: that the flow may reach; None = all.

    Raises:
        AttlasError: For maps that are no such layers, for positions that do not exist, and if edges
            × flows exceed `at_most`, which takes some minutes.
    """
    stack = mixings(layers_of(attention_maps, layers, row), residual)
    length = stack[0].length
    outputs, reached_inputs = (
        checked_positions(positions, length),
        checked_positions(inputs, length),
    )
    count = len(outputs) * len(reached_inputs) * len(stack) * length**2
    if count > at_most:
        raise AttlasError(
            f"at most {at_most:,} edges to go through, of all flows together",
            f"{len(outputs):,} positions × {len(reached_inputs):,} inputs × {len(stack)} layers × "
            f"{length:,}² = {count:,}",
            "ask for some positions and inputs, or for `rollout`, which takes any length; or pass "
            "at_most=… and wait",
        )
    capacities = [_capacity(layer) for layer in reversed(stack)]
    flows = [[maximum_flow(capacities, i, j) for j in reached_inputs] for i in outputs]
    return torch.tensor(flows, dtype=torch.float64)


def _capacity(layer: Mixing) -> Capacity:
    return np.concatenate([rows.cpu().numpy() for _, rows in layer.blocks()])
