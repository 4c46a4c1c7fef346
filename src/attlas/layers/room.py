"""Room for a memory to grow in."""

from threading import Lock

import torch
from jaxtyping import Float, Int
from torch import Tensor

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
