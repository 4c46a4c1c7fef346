"""The key/value cache, and the buffers in which it grows."""

from dataclasses import dataclass, field, replace
from threading import Lock

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError

# Growing buffers.


_LEAST = 16  # positions

Kept = Float[Tensor, "batch *kv_heads keys head_dim"]
New = Float[Tensor, "batch *kv_heads new_keys head_dim"]
Longer = Float[Tensor, "batch *kv_heads all_keys head_dim"]


class GrowingBuffer:
    """One tensor with free positions at its end (axis −2), of which the first `used` are taken.

    A key/value cache that is copied for every new position costs O(length²). Here a position is
    written after the used ones, and every cache is a view of the first n. If a cache is extended
    that is no longer the longest, it gets a new buffer. So a cache never changes.
    """

    def __init__(
        self, buffer: Float[Tensor, "batch *kv_heads capacity head_dim"], length: int
    ) -> None:
        self.buffer = buffer
        self.length = length
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["GrowingBuffer"], tuple[Tensor, int]]:
        return GrowingBuffer, (self.buffer, self.length)  # a copy has a lock of its own

    @classmethod
    def with_room_for(cls, stored: Kept, num_new: int) -> "GrowingBuffer":
        """A copy of the stored positions, with space for `num_new` positions and for half as many
        again.
        """
        *leading_sizes, num_keys, dim = stored.shape
        capacity = max(_LEAST, (num_keys + num_new) * 3 // 2)
        buffer = stored.new_empty(*leading_sizes, capacity, dim)
        buffer[..., :num_keys, :] = stored
        return cls(buffer, num_keys)

    def owns(self, stored: Kept) -> bool:
        """Return True if these are the used positions of this buffer."""
        return (
            stored.untyped_storage().data_ptr() == self.buffer.untyped_storage().data_ptr()
            and stored.shape[-2] == self.length
            and stored.shape[:-2] == self.buffer.shape[:-2]
        )

    def append(self, stored: Kept, new: New) -> Longer | None:
        """The stored positions followed by the new ones; None if they do not fit."""
        with self._lock:
            stop = self.length + new.shape[-2]
            # A tensor of inference mode must not be written outside of it.
            shut = self.buffer.is_inference() and not torch.is_inference_mode_enabled()
            if shut or not self.owns(stored) or stop > self.buffer.shape[-2]:
                return None
            # `.data` is the same memory without autograd's version counter. A backward pass through
            # earlier positions stays valid, because only free positions change, and no existing
            # cache contains those.
            self.buffer.data.narrow(-2, self.length, new.shape[-2]).copy_(new)
            self.length = stop
        return self.buffer.narrow(-2, 0, stop)

    def select(self, rows: Int[Tensor, " chosen"], length: int) -> "GrowingBuffer":
        """These batch rows of a cache of `used` positions, in a new buffer.

        They are taken from the cache, not from this buffer, because another thread may be adding to
        it.
        """
        return GrowingBuffer(self.buffer.index_select(0, rows), length)


def append_keys(
    stored: Kept, new: New, buffer: GrowingBuffer | None
) -> tuple[Longer, GrowingBuffer | None]:
    """The stored positions followed by the new ones, and the buffer that holds them (None: no
    buffer).

    With gradients the two are concatenated, and nothing is overwritten: the backward pass may need
    the cache, even if the cache itself has no gradient.
    """
    if torch.is_grad_enabled() or stored.dtype != new.dtype:
        return torch.cat([stored, new], dim=-2), None
    longer = None if buffer is None else buffer.append(stored, new)
    if longer is None:
        buffer = GrowingBuffer.with_room_for(stored, new.shape[-2])
        longer = buffer.append(buffer.buffer[..., : buffer.length, :], new)
        assert longer is not None  # it was made to fit
    return longer, buffer


# Two batches as one.


def pad_and_concat(
    first: Shaped[Tensor, "rows *sizes"],
    second: Shaped[Tensor, "other_rows *other_sizes"],
    fill: int = 0,
) -> Shaped[Tensor, "all_rows *most"]:
    """The rows of both, one after the other; the shorter ones are padded at their end."""
    sizes = [max(pair) for pair in zip(first.shape[1:], second.shape[1:], strict=True)]
    return torch.cat([_pad_to(part, sizes, fill) for part in (first, second)])


def _pad_to(
    part: Shaped[Tensor, "rows *sizes"], sizes: list[int], fill: int
) -> Shaped[Tensor, "rows *most"]:
    missing = [size - length for size, length in zip(sizes, part.shape[1:], strict=True)]
    if not any(missing):
        return part
    return F.pad(part, [n for last in reversed(missing) for n in (0, last)], value=fill)


@dataclass(frozen=True, slots=True)
class KeyValueCache:
    """Keys, values and a token mask: a frozen value. Positions are axis −2.

    Args:
        keys, values: (batch, keys, dim), or (batch, kv_heads, keys, dim) for multi-head.
        token_mask: (batch, keys) bool, True = a token; None = no padding. `project_kv` sets padding
            to zero first, so that NaN or inf there have no effect.
    """

    keys: Float[Tensor, "batch *kv_heads keys key_dim"]
    values: Float[Tensor, "batch *kv_heads keys value_dim"]
    token_mask: Bool[Tensor, "batch keys"] | None = None
    _buffers: tuple[GrowingBuffer | None, GrowingBuffer | None] = field(
        default=(None, None), repr=False, compare=False
    )

    @property
    def num_keys(self) -> int:
        """The number of positions, padding included."""
        return self.keys.shape[-2]

    def append(self, new: "KeyValueCache") -> "KeyValueCache":
        """This cache followed by newer positions: a growing key/value cache.

        Without gradients, mostly only the new positions are copied. This cache does not change; see
        `GrowingBuffer`.

        Raises:
            AttlasError: If the positions are not of such a cache.
        """
        _check_same_rows(self.keys, new.keys)
        _check_same_rows(self.values, new.values)
        token_mask = None
        if self.token_mask is not None or new.token_mask is not None:
            token_mask = torch.cat([_full_token_mask(self), _full_token_mask(new)], dim=1)
        keys, key_buffer = append_keys(self.keys, new.keys, self._buffers[0])
        values, value_buffer = append_keys(self.values, new.values, self._buffers[1])
        return replace(
            self,
            keys=keys,
            values=values,
            token_mask=token_mask,
            _buffers=(key_buffer, value_buffer),
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> "KeyValueCache":
        """These batch rows, in this order, repeats allowed: what beam search does."""
        token_mask = None if self.token_mask is None else self.token_mask[rows]
        keys, key_buffer = _select_states(self.keys, self._buffers[0], rows)
        values, value_buffer = _select_states(self.values, self._buffers[1], rows)
        return replace(
            self,
            keys=keys,
            values=values,
            token_mask=token_mask,
            _buffers=(key_buffer, value_buffer),
        )

    def concat(self, other: "KeyValueCache") -> "KeyValueCache":
        """These batch rows and then those of another cache; the shorter one is padded."""
        token_mask = None
        if (
            self.token_mask is not None
            or other.token_mask is not None
            or self.num_keys != other.num_keys
        ):
            token_mask = pad_and_concat(_full_token_mask(self), _full_token_mask(other))
        return KeyValueCache(
            pad_and_concat(self.keys, other.keys),
            pad_and_concat(self.values, other.values),
            token_mask,
        )

    def gather_keys(self, indices: Int[Tensor, "batch chosen"]) -> "KeyValueCache":
        """These positions of each batch row, in this order; of a cache with heads."""
        token_mask = None if self.token_mask is None else self.token_mask.gather(1, indices)
        keys, values = (
            part.gather(2, indices[:, None, :, None].expand(-1, part.shape[1], -1, part.shape[3]))
            for part in (self.keys, self.values)
        )
        return KeyValueCache(keys, values, token_mask)

    def split_rows(self, rows_per_text: int) -> "KeyValueCache":
        """Split positions into caches of equal length, so many from each; with heads."""
        caches, heads = self.keys.shape[:2]
        keys, values = (
            part.reshape(caches, heads, rows_per_text, -1, part.shape[-1])
            .transpose(1, 2)
            .flatten(0, 1)
            for part in (self.keys, self.values)
        )
        token_mask = (
            None if self.token_mask is None else self.token_mask.reshape(caches * rows_per_text, -1)
        )
        return KeyValueCache(keys, values, token_mask)

    def contiguous(self) -> "KeyValueCache":
        """The same, each head's positions side by side."""
        return KeyValueCache(self.keys.contiguous(), self.values.contiguous(), self.token_mask)

    def merge_rows(self, caches: int) -> "KeyValueCache":
        """One position of each of many rows as the positions of fewer caches, that neighbours
        share.
        """
        return KeyValueCache(group_rows(self.keys, caches), group_rows(self.values, caches))


def group_rows(
    vectors: Float[Tensor, "rows heads 1 head_dim"], caches: int
) -> Float[Tensor, "caches heads each head_dim"]:
    """(rows, heads, 1, dim) → (caches, heads, rows / caches, dim): neighbours share one."""
    _, heads, _, dim = vectors.shape
    return vectors.reshape(caches, -1, heads, dim).transpose(1, 2)


def _select_states(
    stored: Float[Tensor, "batch *kv_heads keys head_dim"],
    buffer: GrowingBuffer | None,
    rows: Int[Tensor, " chosen"],
) -> tuple[Float[Tensor, "chosen *kv_heads keys head_dim"], GrowingBuffer | None]:
    # Beam search does this at every step: index_select copies several times faster than [rows].
    if buffer is None or not buffer.owns(stored):
        return stored.index_select(0, rows), None
    states = buffer.select(
        rows, stored.shape[-2]
    )  # also the free positions: the next ones need them
    return states.buffer[..., : states.length, :], states


def _check_same_rows(
    stored: Float[Tensor, "batch *kv_heads keys head_dim"],
    new: Float[Tensor, "other_batch *other_heads new_keys other_dim"],
) -> None:
    """Check that they may be joined: a copy into a room would spread one row, or head, over
    many.
    """
    rows, dim = stored.shape[:-2], stored.shape[-1]
    if new.shape[:-2] != rows or new.shape[-1] != dim or new.device != stored.device:
        raise AttlasError(
            f"new positions of shape {(*rows, 'n', dim)} on {stored.device}",
            f"{tuple(new.shape)} on {new.device}",
            "extend a memory by what the same layer remembers of the same rows",
        )


def _full_token_mask(cache: KeyValueCache) -> Bool[Tensor, "batch keys"]:
    if cache.token_mask is not None:
        return cache.token_mask
    return torch.ones(
        cache.keys.shape[0], cache.num_keys, dtype=torch.bool, device=cache.keys.device
    )
