"""What an attention keeps of its source."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers.room import Room, grown
from attlas.layers.stacked import stacked


@dataclass(frozen=True, slots=True)
class Memory:
    """Keys, values and which slots are real: a frozen value. Slots are axis −2.

    keys, values: (batch, slots, width), or (batch, key_heads, slots, width) for multi-head.
    real: (batch, slots) bool, True = a token; None = no padding. `remember` puts zeros in place of
    padding before anything is made of it, so that junk there (NaN, inf) can change nothing.
    """

    keys: Float[Tensor, "batch *key_heads slots key_width"]
    values: Float[Tensor, "batch *key_heads slots value_width"]
    real: Bool[Tensor, "batch slots"] | None = None
    _rooms: tuple[Room | None, Room | None] = field(default=(None, None), repr=False, compare=False)

    @property
    def slots(self) -> int:
        """How many positions can be looked at, padding included."""
        return self.keys.shape[-2]

    def extend(self, new: "Memory") -> "Memory":
        """This memory followed by newer slots: a growing key/value cache.

        Without gradients only the new slots are copied, mostly; this memory stays what it is, see
        `Room`. Errors: `AttlasError` where the slots are not of such a memory.
        """
        _check_alike(self.keys, new.keys)
        _check_alike(self.values, new.values)
        real = None
        if self.real is not None or new.real is not None:
            real = torch.cat([_all_real(self), _all_real(new)], dim=1)
        keys, of_keys = grown(self.keys, new.keys, self._rooms[0])
        values, of_values = grown(self.values, new.values, self._rooms[1])
        return replace(self, keys=keys, values=values, real=real, _rooms=(of_keys, of_values))

    def select(self, rows: Int[Tensor, " chosen"]) -> "Memory":
        """These batch rows, in this order, repeats allowed: what beam search does."""
        real = None if self.real is None else self.real[rows]
        keys, of_keys = _selected(self.keys, self._rooms[0], rows)
        values, of_values = _selected(self.values, self._rooms[1], rows)
        return replace(self, keys=keys, values=values, real=real, _rooms=(of_keys, of_values))

    def followed_by(self, other: "Memory") -> "Memory":
        """These batch rows and then those of another memory; who has fewer slots is padded."""
        real = None
        if self.real is not None or other.real is not None or self.slots != other.slots:
            real = stacked(_all_real(self), _all_real(other))
        return Memory(stacked(self.keys, other.keys), stacked(self.values, other.values), real)

    def choose(self, slots: Int[Tensor, "batch chosen"]) -> "Memory":
        """These slots of each batch row, in this order; of a memory with heads."""
        real = None if self.real is None else self.real.gather(1, slots)
        keys, values = (
            part.gather(2, slots[:, None, :, None].expand(-1, part.shape[1], -1, part.shape[3]))
            for part in (self.keys, self.values)
        )
        return Memory(keys, values, real)

    def apart(self, each: int) -> "Memory":
        """Runs of equally many slots as memories of their own, so many from each; with heads."""
        memories, heads = self.keys.shape[:2]
        keys, values = (
            part.reshape(memories, heads, each, -1, part.shape[-1]).transpose(1, 2).flatten(0, 1)
            for part in (self.keys, self.values)
        )
        real = None if self.real is None else self.real.reshape(memories * each, -1)
        return Memory(keys, values, real)

    def contiguous(self) -> "Memory":
        """The same, each head's slots side by side."""
        return Memory(self.keys.contiguous(), self.values.contiguous(), self.real)

    def joined(self, memories: int) -> "Memory":
        """One slot of each of many rows as the slots of fewer memories, that neighbours share."""
        return Memory(beside(self.keys, memories), beside(self.values, memories))


def beside(
    vectors: Float[Tensor, "rows heads 1 width"], memories: int
) -> Float[Tensor, "memories heads each width"]:
    """(rows, heads, 1, width) → (memories, heads, rows / memories, width): neighbours share one."""
    _, heads, _, width = vectors.shape
    return vectors.reshape(memories, -1, heads, width).transpose(1, 2)


def _selected(
    kept: Float[Tensor, "batch *key_heads slots width"],
    room: Room | None,
    rows: Int[Tensor, " chosen"],
) -> tuple[Float[Tensor, "chosen *key_heads slots width"], Room | None]:
    # Beam search does this at every step: index_select copies several times faster than [rows].
    if room is None or not room.holds(kept):
        return kept.index_select(0, rows), None
    chosen = room.select(rows, kept.shape[-2])  # the free slots too: what comes next needs them
    return chosen.buffer[..., : chosen.used, :], chosen


def _check_alike(
    kept: Float[Tensor, "batch *key_heads slots width"],
    new: Float[Tensor, "other_batch *other_heads new_slots other_width"],
) -> None:
    """That they may be joined: a copy into a room would spread one row, or head, over many."""
    rows, width = kept.shape[:-2], kept.shape[-1]
    if new.shape[:-2] != rows or new.shape[-1] != width or new.device != kept.device:
        raise AttlasError(
            f"new slots of shape {(*rows, 'n', width)} on {kept.device}",
            f"{tuple(new.shape)} on {new.device}",
            "extend a memory by what the same layer remembers of the same rows",
        )


def _all_real(memory: Memory) -> Bool[Tensor, "batch slots"]:
    if memory.real is not None:
        return memory.real
    return torch.ones(
        memory.keys.shape[0], memory.slots, dtype=torch.bool, device=memory.keys.device
    )
