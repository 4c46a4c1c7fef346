"""A window of a map, pooled to the size of a picture."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.reading import Reading
from attlas.recording.streaming.block import Block
from attlas.recording.streaming.gathering import Gathering


class Pooled(Gathering):
    """The sum, mean or greatest of the weights in each cell of a grid over a window of every map.

    rows, slots: the window, first and one past the last; shape: of the grid, in cells. Cell (r, s)
    has rows ⌊r·n / shape⌋ … of the n rows, and slots likewise, so that cells differ by one at most.
    """

    def __init__(
        self,
        reading: Reading,
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
        self._cells = np.zeros((batch, heads, *shape))

    def take(self, block: Block) -> None:
        first, last = max(block.start, self._rows[0]), min(block.stop, self._rows[1])
        low, high = max(block.low, self._slots[0]), min(block.high, self._slots[1])
        if first >= last or low >= high:
            return
        inside = slice(first - block.start, last - block.start)
        parts = block.parts[:, inside, low - block.low : high - block.low]
        share = block.share[:, inside, None].cpu().numpy()
        values, (left, right) = self._reduced(parts.cpu().numpy(), self._slot_edges, low, high, 2)
        rows, (top, bottom) = self._reduced(values * share, self._row_edges, first, last, 1)
        cells = self._cells[block.batch, block.heads, top:bottom, left:right]
        if self._how == "max":
            np.maximum(cells, rows, out=cells)
        else:
            cells += rows

    def _reduced(
        self, values: np.ndarray, edges: np.ndarray, low: int, high: int, axis: int
    ) -> tuple[np.ndarray, tuple[int, int]]:
        """Cells of one axis from places low … high − 1 of it, and which cells they are."""
        first = int(np.searchsorted(edges, low, "right")) - 1
        last = int(np.searchsorted(edges, high, "left"))
        starts = np.maximum(edges[first:last], low) - low
        reduce = np.maximum if self._how == "max" else np.add
        return reduce.reduceat(values, starts, axis=axis), (first, last)

    @property
    def result(self) -> Float[Tensor, "batch heads rows slots"]:
        cells = self._cells
        if self._how == "mean":
            sizes = np.outer(np.diff(self._row_edges), np.diff(self._slot_edges))
            cells = cells / sizes
        return torch.from_numpy(cells).to(torch.float32)
