"""What the decoder's layers keep of the source."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.layers import Memory


@dataclass(frozen=True, slots=True)
class SourceMemory:
    """One memory per layer, held once per source: `each` neighbouring rows share a source.

    The hypotheses of a beam are such neighbours. They read the one memory as so many queries, so
    that neither growing nor reordering them copies what is remembered of the source.
    """

    layers: tuple[Memory, ...]
    each: int = 1

    def select(self, rows: Int[Tensor, " chosen"]) -> "SourceMemory":
        """These rows, in this order, repeats allowed."""
        sources = rows // self.each
        each = _shared(sources)
        sources = sources[::each]
        kept = self.layers[0].keys.shape[0]
        layers = self.layers
        if len(sources) != kept or not torch.equal(sources, torch.arange(kept, device=rows.device)):
            layers = tuple(memory.select(sources) for memory in layers)
        return replace(self, layers=layers, each=each)

    def spread(self, layer: int) -> Memory:
        """A layer's memory with one batch row for each row."""
        memory = self.layers[layer]
        if self.each == 1:
            return memory
        rows = torch.arange(memory.keys.shape[0], device=memory.keys.device)
        return memory.select(rows.repeat_interleave(self.each))


def _shared(sources: Int[Tensor, " rows"]) -> int:
    """The greatest n for which each n neighbours have one source; the rows are multiples of n."""
    if len(sources) < 2:
        return 1
    changes = sources[1:] != sources[:-1]
    each = int(changes.to(torch.int8).argmax()) + 1 if bool(changes.any()) else len(sources)
    if len(sources) % each or not bool((sources.view(-1, each) == sources[::each, None]).all()):
        return 1
    return each
