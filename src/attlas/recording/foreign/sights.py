"""The sights of a model's masks, each looked at once."""

from collections import OrderedDict
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from attlas.recording.foreign.sight import (
    Reached,
    Sight,
    as_it_is,
    by_any_scores,
    sight_of,
    spelled_out,
)
from attlas.recording.foreign.versions import Versions

_KEPT = 8
_FEWEST, _LARGE = 2, 1 << 26  # of larger masks, in bytes all together, no more than these are kept


class Sights:
    """`sight_of`, which remembers the last few masks: a model gives the same one to many layers."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._known: OrderedDict[Any, tuple[Tensor, Sight, float]] = OrderedDict()

    def __call__(
        self,
        mask: Shaped[Tensor, "#batch #heads #queries #slots"] | None,
        batch: int,
        queries: int,
        slots: int,
        reached: Reached = by_any_scores,
    ) -> Sight:
        """As `sight_of`; what it keeps of a mask is a copy, one for all layers."""
        if mask is None:
            return sight_of(None, batch, queries, slots)
        for axis in (0, 1):
            if mask.stride(axis) == 0:  # the same again and again; a copy would spell it out
                mask = mask.narrow(axis, 0, 1)
        quiet = mask.is_inference() or torch._C._functorch.is_functorch_wrapped_tensor(mask)
        # Such a tensor does not tell that it was changed, or where it is; nor does an array, whose
        # memory torch may not resize.
        if quiet or not mask.untyped_storage().resizable():
            return sight_of(mask.detach().clone(), batch, queries, slots, reached)
        # A tensor that is kept here keeps its memory, so that nobody else can have its address.
        alike = mask.data_ptr(), self._versions(mask), mask.shape, mask.stride(), mask.dtype
        key: Any = (*alike, batch, queries, slots)
        if key not in self._known:
            self._remember(key, mask, *spelled_out(_copy(mask), batch, queries, slots))
        self._known.move_to_end(key)
        _, found, gap = self._known[key]
        if gap == torch.inf or not reached(gap):
            return found
        key = (*key, "as it is")
        if key not in self._known:
            self._remember(key, mask, as_it_is(_copy(mask)), gap)
        self._known.move_to_end(key)
        return self._known[key][1]

    def _remember(self, key: Any, mask: Tensor, sight: Sight, gap: float) -> None:
        self._known[key] = mask, sight, gap
        while len(self._known) > (_FEWEST if self._bytes() > _LARGE else _KEPT):
            self._known.popitem(last=False)

    def _bytes(self) -> int:
        held = (mask.untyped_storage() for mask, *_ in self._known.values())
        return sum({storage.data_ptr(): storage.nbytes() for storage in held}.values())


def _copy(mask: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    return mask.detach().clone()
