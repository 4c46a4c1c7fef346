"""What a figure draws: weights with the tokens of both axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.recording import DenseReading, Reading, Trace

Weights: TypeAlias = Reading | Tensor | ArrayLike

ACROSS = ("source", "target")  # slots and queries of what looks from one text at another
WITHIN = ("key", "query")  # of self-attention, and of what has no second text


@dataclass(frozen=True, eq=False, slots=True)
class Map:
    """The weights of one batch row and one head, and the tokens of both axes.

    `source` names the slots, `target` the queries; `axes` names these two themselves. Weights are
    read when they are drawn, so that a long reading is never held whole.
    """

    reading: Reading
    row: int
    head: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    axes: tuple[str, str] = ACROSS

    @classmethod
    def of(
        cls,
        weights: Weights,
        source: Sequence[str],
        target: Sequence[str],
        *,
        row: int | None = None,
        head: int | None = None,
    ) -> "Map":
        """From a reading, tensor or array: (batch, heads, queries, slots), or the last of these.

        row, head: which batch row and which head; None = the only one there is.
        Errors: `AttlasError` for another shape, and for tokens that are not one to a query and one
        to a slot.
        """
        reading = weights if isinstance(weights, Reading) else DenseReading(_as_tensor(weights))
        batch, heads, queries, slots = reading.shape
        if not queries or not slots:
            raise AttlasError(
                "a map of at least one query and one slot",
                f"shape {reading.shape}",
                "there is nothing to draw",
            )
        row, head = _choice("row", "batch rows", batch, row), _choice("head", "heads", heads, head)
        _check_tokens("target", "query", queries, target)
        _check_tokens("source", "slot", slots, source)
        own = reading.at(row).of_heads(torch.tensor([head]))  # so that no other is computed
        return cls(own, 0, 0, tuple(source), tuple(target))

    def rows(self, start: int, stop: int) -> Float[np.ndarray, "rows slots"]:
        """The weights of queries start … stop − 1.

        Errors: `AttlasError` for weights that are negative or not finite.
        """
        block = self.reading.rows(start, stop)[self.row, self.head]
        values = block.detach().to("cpu", torch.float64).numpy()
        wrong = values[~(np.isfinite(values) & (values >= 0))]
        if wrong.size:
            raise AttlasError(
                "weights that are finite and ≥ 0",
                f"{wrong[0]} among them",
                "pass attention weights, after the softmax",
            )
        return values


def _as_tensor(weights: Tensor | ArrayLike) -> Float[Tensor, "batch heads queries slots"]:
    if isinstance(weights, Trace):
        raise AttlasError(
            "the weights of one map",
            "a whole trace",
            "draw all of it with attlas.figures.figure_of(trace), or choose a reading from it: "
            f"trace[{next(iter(weights.layers), 'layer')!r}], with row= and head=",
        )
    if not isinstance(weights, Tensor):
        try:
            weights = torch.from_numpy(np.array(weights, dtype=np.float64))
        except (TypeError, ValueError):
            raise AttlasError(
                "weights as numbers, shaped (queries, slots)",
                f"a {type(weights).__name__} that is no such array",
                "pass a reading, a tensor or an array",
            ) from None
    if not 1 <= weights.ndim <= 4 or weights.is_complex():
        raise AttlasError(
            "weights shaped (queries, slots), or (batch, heads, queries, slots)",
            f"shape {tuple(weights.shape)} of {weights.dtype}",
            "pass the weights of one layer",
        )
    missing = (1,) * (4 - weights.ndim)
    return weights.detach().to("cpu", torch.float64).reshape(missing + tuple(weights.shape))


def _choice(name: str, of: str, count: int, choice: int | None) -> int:
    if choice is None and count != 1:
        raise AttlasError(
            f"the weights of one map, or `{name}` to choose it by",
            f"weights of {count} {of}",
            f"pass {name}=0 … {count - 1}" if count else "there is nothing to draw",
        )
    if not 0 <= (chosen := choice or 0) < count:
        raise AttlasError(f"a {name} from 0 to {count - 1}", str(choice), "choose one of these")
    return chosen


def _check_tokens(axis: str, one: str, count: int, tokens: Sequence[str]) -> None:
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
        raise AttlasError(
            f"the {axis} tokens as a list of strings", quoted(tokens), "pass one string a token"
        )
    if len(tokens) != count:
        raise AttlasError(
            f"{count} {axis} tokens, one to each {one}",
            f"{len(tokens)} tokens",
            "pass the tokens of this very map, special ones included",
        )
