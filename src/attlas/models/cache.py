"""What a decoder keeps of the source."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.ops.cache import Memory

# Rows that share what is remembered.


def shared(
    rows: Int[Tensor, " chosen"], each: int, kept: int
) -> tuple[Int[Tensor, " memories"] | None, int]:
    """Which memories the chosen rows have, None = all `kept` of them in order; and how many
    neighbouring rows share one from now on, where `each` did before.

    The greatest number that fits: the hypotheses of a sentence stand side by side, and as long as
    they only change places among themselves, every memory stays where it is.
    """
    memories = rows // each
    each = _alike(memories)
    memories = memories[::each]
    if len(memories) == kept and torch.equal(memories, torch.arange(kept, device=rows.device)):
        return None, each
    return memories, each


def _alike(memories: Int[Tensor, " rows"]) -> int:
    """The greatest n for which each n neighbours are equal; the rows are a multiple of n."""
    if len(memories) < 2:
        return 1
    changes = memories[1:] != memories[:-1]
    each = int(changes.to(torch.int8).argmax()) + 1 if bool(changes.any()) else len(memories)
    if len(memories) % each:
        return 1
    return each if bool((memories.view(-1, each) == memories[::each, None]).all()) else 1


@dataclass(frozen=True, slots=True)
class SourceMemory:
    """One memory per layer that looks, held once per source: `each` neighbouring rows share one.

    The hypotheses of a beam are such neighbours. They read the one memory as so many queries, so
    that neither growing nor reordering them copies what is remembered of the source.
    """

    layers: tuple[Memory, ...]
    each: int = 1

    def select(self, rows: Int[Tensor, " chosen"]) -> "SourceMemory":
        """These rows, in this order, repeats allowed."""
        sources, each = shared(rows, self.each, self.layers[0].keys.shape[0])
        layers = self.layers
        if sources is not None:
            layers = tuple(memory.select(sources) for memory in layers)
        return replace(self, layers=layers, each=each)

    def followed_by(self, other: "SourceMemory") -> "SourceMemory":
        """These rows and then those of another; the sources of the two are padded to one length."""
        if self.each != other.each:
            return self._each_its_own().followed_by(other._each_its_own())
        pairs = zip(self.layers, other.layers, strict=True)
        return replace(self, layers=tuple(one.followed_by(two) for one, two in pairs))

    def _each_its_own(self) -> "SourceMemory":
        return SourceMemory(tuple(self.spread(layer) for layer in range(len(self.layers))))

    def spread(self, layer: int) -> Memory:
        """A layer's memory with one batch row for each row."""
        memory = self.layers[layer]
        if self.each == 1:
            return memory
        rows = torch.arange(memory.keys.shape[0], device=memory.keys.device)
        return memory.select(rows.repeat_interleave(self.each))
