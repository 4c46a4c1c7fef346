"""An attention map that holds the weights."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.blocks import Block, Cut, blocks_of_weights


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DenseAttentionMap(AttentionMap):
    """The weights themselves: of recurrent attention, or arrays of a user.

    Args:
        allowed: Which keys each query may look at; None = all of them.
        query_offset: The position of the first query, counted as keys are; None = unknown. "own":
            where there are as many queries as keys, each has the position of its own key; of
            other maps the positions are unknown.
    """

    values: Float[Tensor, "batch heads queries keys"]
    allowed: Bool[Tensor, "#batch #heads #queries #keys"] | None = None
    query_offset: int | Literal["own"] | None = "own"

    def __post_init__(self) -> None:
        if not isinstance(self.values, Tensor) or self.values.ndim != 4:
            shape = getattr(self.values, "shape", None)
            raise AttlasError(
                "weights as a tensor (batch, heads, queries, keys)",
                f"a {type(self.values).__name__}"
                + ("" if shape is None else f" of shape {tuple(shape)}"),
                "torch.as_tensor(weights).reshape(batch, heads, queries, keys)",
            )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, num_keys = self.values.shape
        return batch, heads, queries, num_keys

    @property
    def position(self) -> int | None:
        if self.query_offset != "own":
            return self.query_offset
        return 0 if self.shape[2] == self.shape[3] else None

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        self._checked(start, stop)
        return self.values[:, :, start:stop]

    def allowed_rows(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows keys"]:
        self._checked(start, stop)
        if self.allowed is None:
            shape = (1, 1, stop - start, self.shape[3])
            return torch.ones((), dtype=torch.bool, device=self.values.device).expand(shape)
        return self.allowed.expand(-1, -1, *self.shape[2:])[:, :, start:stop]

    @property
    def causal(self) -> bool | None:
        if self.position is None:
            return None
        return not bool(self.values.triu(self.position + 1).any())

    def select(self, rows: Int[Tensor, " chosen"]) -> "DenseAttentionMap":
        allowed = self.allowed
        if allowed is not None and allowed.shape[0] > 1:
            allowed = allowed[rows]
        return replace(self, values=self.values[rows], allowed=allowed)

    def select_heads(self, heads: Int[Tensor, " chosen"]) -> "DenseAttentionMap":
        # One alone is a view: a map may be large.
        index = slice(int(heads[0]), int(heads[0]) + 1) if len(heads) == 1 else heads
        allowed = self.allowed
        if allowed is not None and allowed.shape[1] > 1:
            allowed = allowed[:, index]
        return replace(self, values=self.values[:, index], allowed=allowed)

    def at(self, row: int) -> "DenseAttentionMap":
        allowed = self.allowed
        if allowed is not None and allowed.shape[0] > 1:
            allowed = allowed[row : row + 1]
        return replace(self, values=self.values[row : row + 1], allowed=allowed)

    def detached_copy(self) -> "DenseAttentionMap":
        allowed = None if self.allowed is None else self.allowed.clone()
        return replace(self, values=self.values.detach().clone(), allowed=allowed)

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def is_shareable(self) -> bool:
        return self.values.device.type == "cpu" and self.values.dtype != torch.bfloat16

    @property
    def thread_safe(self) -> bool:
        return True

    def iter_blocks(self, batch: int, cuts: Iterable[Cut]) -> Iterator[Block]:
        allowed = None if self.allowed is None else self.allowed_rows
        return blocks_of_weights(self, self.rows, allowed, batch, cuts)
