"""What an attention keeps of its source."""

from dataclasses import dataclass, field, replace
from threading import Lock

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError

# Room for a memory to grow in.


_LEAST = 16  # slots

Kept = Float[Tensor, "batch *key_heads slots width"]
New = Float[Tensor, "batch *key_heads new_slots width"]
Longer = Float[Tensor, "batch *key_heads all_slots width"]


class Room:
    """One tensor with free slots at its end (axis −2), of which the first `used` are taken.

    A key/value cache that is copied for every new slot costs O(length²). Here a slot is written
    behind the taken ones, and every memory is a view of the first n. Whoever extends a memory that
    is no longer the longest gets a room of its own, so that no memory ever changes.
    """

    def __init__(self, buffer: Float[Tensor, "batch *key_heads room width"], used: int) -> None:
        self.buffer = buffer
        self.used = used
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["Room"], tuple[Tensor, int]]:
        return Room, (self.buffer, self.used)  # a copy has a lock of its own

    @classmethod
    def around(cls, kept: Kept, more: int) -> "Room":
        """A copy of what is kept, with room for `more` slots, and half as many again."""
        *rest, slots, width = kept.shape
        room = max(_LEAST, (slots + more) * 3 // 2)
        buffer = kept.new_empty(*rest, room, width)
        buffer[..., :slots, :] = kept
        return cls(buffer, slots)

    def holds(self, kept: Kept) -> bool:
        """Whether these are the taken slots of this very room."""
        return (
            kept.untyped_storage().data_ptr() == self.buffer.untyped_storage().data_ptr()
            and kept.shape[-2] == self.used
            and kept.shape[:-2] == self.buffer.shape[:-2]
        )

    def append(self, kept: Kept, new: New) -> Longer | None:
        """What is kept and the new slots behind it; None where they do not fit in here."""
        with self._lock:
            stop = self.used + new.shape[-2]
            # What was made in inference mode may not be written to outside of it.
            shut = self.buffer.is_inference() and not torch.is_inference_mode_enabled()
            if shut or not self.holds(kept) or stop > self.buffer.shape[-2]:
                return None
            # `.data` is the same numbers without autograd's count of changes: whoever read these
            # slots with gradients may still go back through them, because only free ones change,
            # and no memory that was handed out has any of those.
            self.buffer.data.narrow(-2, self.used, new.shape[-2]).copy_(new)
            self.used = stop
        return self.buffer.narrow(-2, 0, stop)

    def select(self, rows: Int[Tensor, " chosen"], used: int) -> "Room":
        """These batch rows of a memory of `used` slots, in a room of their own.

        Of that memory, and not of this room: another thread may be adding to it.
        """
        return Room(self.buffer.index_select(0, rows), used)


def grown(kept: Kept, new: New, room: Room | None) -> tuple[Longer, Room | None]:
    """What is kept with the new slots behind it, and the room it lies in (None: in none).

    Where gradients are made the two are joined, and nothing is written over: whoever reads a memory
    may keep it for the way back, also where the memory itself wants no gradient.
    """
    if torch.is_grad_enabled() or kept.dtype != new.dtype:
        return torch.cat([kept, new], dim=-2), None
    longer = None if room is None else room.append(kept, new)
    if longer is None:
        room = Room.around(kept, new.shape[-2])
        longer = room.append(room.buffer[..., : room.used, :], new)
        assert longer is not None  # it was made to fit
    return longer, room


# Two batches as one.


def stacked(
    one: Shaped[Tensor, "rows *sizes"],
    other: Shaped[Tensor, "other_rows *other_sizes"],
    fill: int = 0,
) -> Shaped[Tensor, "all_rows *most"]:
    """The rows of both, one after the other; the shorter on another axis is filled at its end."""
    sizes = [max(pair) for pair in zip(one.shape[1:], other.shape[1:], strict=True)]
    return torch.cat([_filled(part, sizes, fill) for part in (one, other)])


def _filled(
    part: Shaped[Tensor, "rows *sizes"], sizes: list[int], fill: int
) -> Shaped[Tensor, "rows *most"]:
    missing = [size - own for size, own in zip(sizes, part.shape[1:], strict=True)]
    if not any(missing):
        return part
    return F.pad(part, [n for last in reversed(missing) for n in (0, last)], value=fill)


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
