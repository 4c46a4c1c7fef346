"""Sequences of unequal length in one array."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ragged:
    """Row n is ids[starts[n] : starts[n + 1]]; four bytes an id, whatever the number of rows."""

    ids: Int[np.ndarray, " ids"]
    starts: Int[np.ndarray, " rows_and_one"]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """The ids of one row: a view."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        ids: NDArray[np.int32] = self.ids[self.starts[row] : self.starts[row + 1]]
        return ids

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many ids each row has."""
        return np.diff(self.starts)

    @classmethod
    def of(cls, rows: Iterable[list[int]]) -> "Ragged":
        """Pack lists of ids, each as it comes: no two of them are held."""
        ids, lengths = array("i"), array("i")
        for row in rows:
            ids.extend(row)
            lengths.append(len(row))
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return cls(np.asarray(ids), starts)
