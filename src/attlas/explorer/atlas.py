"""The maps of one translation, layer by layer."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import Reading, Trace


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's map of one sentence: its calls, one after another.

    A model that asks token by token makes one call per query; their rows follow one another.
    """

    name: str
    calls: tuple[Reading, ...]

    @property
    def heads(self) -> int:
        """How many heads look."""
        return self.calls[0].shape[1]

    @property
    def queries(self) -> int:
        """How many positions ask."""
        return sum(call.shape[2] for call in self.calls)

    @property
    def slots(self) -> int:
        """How many positions can be looked at; a memory that grew counts at its largest."""
        return max(call.shape[3] for call in self.calls)

    def rows(self, start: int, stop: int) -> Float[Tensor, "heads rows slots"]:
        """The weights of queries start … stop − 1 of the first sentence in the batch."""
        parts = []
        first = 0
        for call in self.calls:
            count = call.shape[2]
            a, b = max(start - first, 0), min(stop - first, count)
            if a < b:
                block = call.rows(a, b)[0]
                # What a growing memory did not hold yet could not be looked at.
                parts.append(torch.nn.functional.pad(block, (0, self.slots - block.shape[-1])))
            first += count
        if not parts:
            return self.calls[0].rows(0, 0)[0].new_zeros((self.heads, 0, self.slots))
        return torch.cat(parts, dim=1)


@dataclass(frozen=True, slots=True)
class Atlas:
    """Every map of one translation."""

    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, trace: Trace) -> "Atlas":
        """The maps of target × source for the first sentence of a trace."""
        across = filter(trace.looks_across, trace.layers)
        return cls(tuple(Layer(name, trace.calls(name)) for name in across))

    def layer(self, index: int) -> Layer:
        """One layer, counted from 0 in the order in which they were heard."""
        if not 0 <= index < len(self.layers):
            raise AttlasError(
                f"a layer from 0 to {len(self.layers) - 1}", str(index), "count layers from 0"
            )
        return self.layers[index]
