"""The cells in which a map is drawn: its weights, or what is left of them when it is long."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attlas.figures.map import Map

MOST_CELLS = 1024  # a side; more could not be told apart on paper
_BLOCK = 4_000_000  # weights held at once while a longer map is pooled


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """Each cell is the largest of tall × wide weights, 1 × 1 up to `MOST_CELLS` tokens a side.

    The last row and the last column may stand for fewer.
    """

    cells: Float[np.ndarray, "rows columns"]
    tall: int = 1
    wide: int = 1

    @classmethod
    def of(cls, map_: Map) -> "Grid":
        """Read in blocks of queries. Errors: as `Map.rows`."""
        queries, slots = len(map_.target), len(map_.source)
        tall, wide = -(-queries // MOST_CELLS), -(-slots // MOST_CELLS)
        batch, heads, _, _ = map_.reading.shape
        size = max(1, _BLOCK // (batch * heads * slots))
        columns = np.arange(0, slots, wide)
        cells = np.zeros((-(-queries // tall), len(columns)))  # weights are ≥ 0
        for start in range(0, queries, size):
            stop = min(start + size, queries)
            pooled = np.maximum.reduceat(map_.rows(start, stop), columns, axis=1)
            np.maximum.at(cells, np.arange(start, stop) // tall, pooled)
        return cls(cells, tall, wide)

    @property
    def pooled(self) -> bool:
        """Whether a cell stands for more than one weight."""
        return (self.tall, self.wide) != (1, 1)

    @property
    def peak(self) -> float:
        """The largest weight."""
        return float(self.cells.max())
