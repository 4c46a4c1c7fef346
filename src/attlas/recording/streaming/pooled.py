"""A window of a map, pooled to the size of a picture."""

from copy import copy
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.streaming.block import Block
from attlas.recording.streaming.blocks import BlockSource
from attlas.recording.streaming.gathering import Gathering


class Pooled(Gathering):
    """The sum, mean or greatest of the weights in each cell of a grid over a window of every map.

    rows, slots: the window, first and one past the last; shape: of the grid, in cells. Cell (r, s)
    has rows ⌊r·n / shape⌋ … of the n rows, and slots likewise, so that cells differ by one at most.
    """

    shared = True

    def __init__(
        self,
        reading: BlockSource,
        rows: tuple[int, int],
        slots: tuple[int, int],
        shape: tuple[int, int],
        how: str,
    ) -> None:
        batch, heads, *axes = reading.shape
        if how not in ("sum", "mean", "max"):
            raise AttlasError("how as 'sum', 'mean' or 'max'", repr(how), "choose one of them")
        self._rows, self._slots, self._how = rows, slots, how
        for name, (low, high), cells, most in zip(
            ("rows", "slots"), (rows, slots), shape, axes, strict=True
        ):
            if not 0 <= low < high <= most or not 1 <= cells <= high - low:
                raise AttlasError(
                    f"a window of {name} within 0 … {most}, in at most as many cells",
                    f"{low} … {high} in {cells} cells",
                    "ask for a part of the map, and for no more cells than it has",
                )
        self._row_edges, self._slot_edges = (
            np.arange(cells + 1, dtype=np.int64) * (high - low) // cells + low
            for (low, high), cells in zip((rows, slots), shape, strict=True)
        )
        self._join = np.maximum if how == "max" else np.add
        self._cells = np.full((batch, heads, *shape), -np.inf if how == "max" else 0.0)
        self._apart: dict[int, Pooled] = {}

    def apart(self, number: int) -> "Pooled":
        other = copy(self)
        other._cells, other._apart = self._cells.copy(), {}  # nothing is in them yet
        return self._apart.setdefault(number, other)

    def take(self, block: Block) -> None:
        first, last = max(block.start, self._rows[0]), min(block.stop, self._rows[1])
        low, high = max(block.low, self._slots[0]), min(block.high, self._slots[1])
        if first >= last or low >= high:
            return
        weights = block.weights[..., low - block.low : high - block.low]
        (top, bottom), row_edges = _cells(self._row_edges, first, last)
        (left, right), slot_edges = _cells(self._slot_edges, low, high)
        # Rows first, and by torch: that leaves few numbers to go through slot by slot.
        stripes = [
            self._of_rows(weights[:, begin - block.start : end - block.start])
            for begin, end in pairwise(row_edges)
        ]
        found = self._join.reduceat(
            torch.stack(stripes, 1).cpu().numpy(), slot_edges[:-1] - low, axis=2
        )
        cells = self._cells[block.batch, block.heads, top:bottom, left:right]
        self._join(cells, found, out=cells)

    def _of_rows(self, weights: Float[Tensor, "heads rows slots"]) -> Float[Tensor, "heads slots"]:
        return weights.amax(1) if self._how == "max" else weights.sum(1)

    @property
    def result(self) -> Float[Tensor, "batch heads rows slots"]:
        cells = self._cells
        for _, other in sorted(self._apart.items()):  # sums depend on their order
            cells = self._join(cells, other._cells)
        if self._how == "max":
            cells = np.where(cells == -np.inf, 0.0, cells)  # where no query looks
        if self._how == "mean":
            sizes = np.outer(np.diff(self._row_edges), np.diff(self._slot_edges))
            cells = cells / sizes
        return torch.from_numpy(cells).to(torch.float32)


def _cells(edges: np.ndarray, low: int, high: int) -> tuple[tuple[int, int], np.ndarray]:
    """Which cells have one of the places low … high − 1, and the edges of what they have."""
    first = int(np.searchsorted(edges, low, "right")) - 1
    last = int(np.searchsorted(edges, high, "left"))
    return (first, last), edges[first : last + 1].clip(low, high)
