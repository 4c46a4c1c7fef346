"""What a figure draws: weights with the tokens of both axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import DenseReading, Reading

Weights: TypeAlias = Reading | Tensor | ArrayLike

MOST_CELLS = 1024  # a side; more could not be told apart on paper
_BLOCK = 4_000_000  # weights held at once while a longer map is pooled


@dataclass(frozen=True, eq=False, slots=True)
class Map:
    """Weights (queries, slots) ≥ 0 and their tokens, at most `MOST_CELLS` cells a side.

    A cell is the largest weight of `queries_per_cell` × `slots_per_cell` weights: 1 × 1 unless the
    map is longer than that. `source` names the slots, `target` the queries.
    """

    cells: Float[np.ndarray, "rows columns"]
    source: tuple[str, ...]
    target: tuple[str, ...]
    queries_per_cell: int = 1
    slots_per_cell: int = 1

    @classmethod
    def of(cls, weights: Weights, source: Sequence[str], target: Sequence[str]) -> "Map":
        """From a reading, a tensor or an array: (queries, slots) after leading ones, or (slots,).

        A long reading is read in blocks of rows and never held whole.
        Errors: `AttlasError` for another shape, for tokens that are not one to a query and one to
        a slot, and for weights that are negative or not finite.
        """
        reading = _as_reading(weights)
        _, _, queries, slots = reading.shape
        _check_tokens("target", "query", queries, target)
        _check_tokens("source", "slot", slots, source)
        tall, wide = -(-queries // MOST_CELLS), -(-slots // MOST_CELLS)
        columns = np.arange(0, slots, wide)
        rows = []
        for block in reading.blocks(tall * max(1, _BLOCK // (slots * tall))):
            pooled = np.maximum.reduceat(_checked(block), columns, axis=1)
            rows.append(np.maximum.reduceat(pooled, np.arange(0, len(pooled), tall), axis=0))
        return cls(np.concatenate(rows), tuple(source), tuple(target), tall, wide)

    @property
    def peak(self) -> float:
        """The largest weight."""
        return float(self.cells.max())


def _as_reading(weights: Weights) -> Reading:
    if not isinstance(weights, Reading):
        values = _as_tensor(weights)
        shape = (1,) * (4 - values.ndim) + tuple(values.shape)
        if len(shape) > 4 or not values.ndim:
            raise _wrong_shape(tuple(values.shape))
        weights = DenseReading(values.reshape(shape))
    if weights.shape[:2] != (1, 1) or 0 in weights.shape:
        raise _wrong_shape(weights.shape)
    return weights


def _as_tensor(weights: Tensor | ArrayLike) -> Tensor:
    if isinstance(weights, Tensor):
        return weights.detach().to("cpu", torch.float64)
    try:
        return torch.from_numpy(np.array(weights, dtype=np.float64))
    except (TypeError, ValueError):
        raise AttlasError(
            "weights as numbers, shaped (queries, slots)",
            f"a {type(weights).__name__} that is no such array",
            "pass a reading, a tensor or an array",
        ) from None


def _wrong_shape(shape: tuple[int, ...]) -> AttlasError:
    return AttlasError(
        "the weights of one map, shaped (queries, slots) after any axes of size 1",
        f"shape {shape}",
        "choose a batch row and a head: reading.select(torch.tensor([row])).weights()[0, head]",
    )


def _check_tokens(axis: str, one: str, count: int, tokens: Sequence[str]) -> None:
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
        raise AttlasError(
            f"the {axis} tokens as a list of strings", repr(tokens)[:80], "pass one string a token"
        )
    if len(tokens) != count:
        raise AttlasError(
            f"{count} {axis} tokens, one to each {one}",
            f"{len(tokens)} tokens",
            "pass the tokens of this very map, special ones included",
        )


def _checked(block: Tensor) -> Float[np.ndarray, "rows slots"]:
    values = block[0, 0].detach().to("cpu", torch.float64).numpy()
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if wrong.size:
        raise AttlasError(
            "weights that are finite and ≥ 0",
            f"{wrong[0]} among them",
            "pass attention weights, after the softmax",
        )
    return values
