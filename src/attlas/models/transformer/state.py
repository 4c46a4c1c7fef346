"""What the Transformer's decoder carries from token to token."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.models.cache import SourceMemory, shared
from attlas.models.encoder_decoder import check_positions, of_both
from attlas.ops.cache import Memory, stacked
from attlas.patterns import Causal, Everywhere, Pattern

# What the decoder's layers keep of the target so far.


_FEW = 32  # slots: of so few, those that are nobody's do not matter
_MANY = 16  # rows: so few may share a memory, even if each reads mostly what others wrote


@dataclass(frozen=True, slots=True)
class TargetMemory:
    """One memory per layer, shared by `each` neighbouring rows, each of which sees its own slots.

    The hypotheses of a beam are such neighbours, and have most of their past in common. Where one
    goes on from another, it takes over which slots are its `own`, and no memory is copied; slots
    that are nobody's any more are cleared away when they have become too many.

    layers: () before the first token. length: how many tokens each row has read, which is how many
    slots are its own. own: None = all.
    """

    layers: tuple[Memory, ...] = ()
    length: int = 0
    each: int = 1
    own: Bool[Tensor, "rows slots"] | None = None

    def select(self, rows: Int[Tensor, " chosen"]) -> "TargetMemory":
        """These rows, in this order, repeats allowed."""
        if not self.layers:
            return self
        memories, each = shared(rows, self.each, self.layers[0].keys.shape[0])
        own = None if self.own is None else self.own.index_select(0, rows)
        layers = self.layers
        if memories is not None:
            layers = tuple(memory.select(memories) for memory in layers)
        return replace(self, layers=layers, each=each, own=own)._cleared()

    def followed_by(self, other: "TargetMemory") -> "TargetMemory":
        """These rows and then those of another, which have read as many tokens."""
        if self.each != other.each:
            return self.spread().followed_by(other.spread())
        pairs = zip(self.layers, other.layers, strict=True)
        layers = tuple(one.followed_by(two) for one, two in pairs)
        if self.own is None and other.own is None:
            return replace(self, layers=layers)
        own = stacked(self._owned(), other._owned())
        # `own` tells which slots are nobody's, filled ones too; to say it twice would be slower.
        return replace(self, layers=tuple(replace(m, real=None) for m in layers), own=own)

    def _owned(self) -> Bool[Tensor, "rows slots"]:
        if self.own is not None:
            return self.own
        memory = self.layers[0]
        rows = memory.keys.shape[0] * self.each
        return torch.ones(rows, memory.slots, dtype=torch.bool, device=memory.keys.device)

    def spread(self) -> "TargetMemory":
        """The same with one memory for each row, every slot of which is its own."""
        if self.each == 1 and self.own is None:
            return self
        memories = self.layers[0].keys.shape[0]
        if self.own is None:
            kept = torch.arange(memories, device=self.layers[0].keys.device)
            kept = kept.repeat_interleave(self.each)
            return TargetMemory(tuple(one.select(kept) for one in self.layers), self.length)
        slots = self.own.nonzero()[:, 1].view(memories, -1)  # of all its rows, one after the other
        layers = tuple(memory.choose(slots).apart(self.each) for memory in self.layers)
        return TargetMemory(layers, self.length)

    def parted(self) -> "TargetMemory":
        """The same, or with one memory for each row where what rows have in common is little, as
        in a wide beam may be."""
        if self.own is None or self.each <= _MANY:
            return self
        apart = self.own.shape[1] > 4 * (self.length + self.each)
        return self.spread() if apart else self

    def longer(self, rows: int, sources: int, device: torch.device) -> "TargetMemory":
        """With one more token of each of so many rows; the layers are those before it.

        sources: how many memories begin here if there are none yet. A memory gets one new slot for
        each of the rows that share it.

        Many rows that begin together begin apart: they are draws, which never come together again,
        and n of them would read n times what is their own. Those of a beam begin as one.
        """
        memories, slots = sources if rows <= _MANY * sources else rows, 0
        if self.layers:
            memories, slots = self.layers[0].keys.shape[0], self.layers[0].slots
        each, own = rows // memories, self.own
        if each > 1 or own is not None:
            if own is None:
                own = torch.ones(rows, slots, dtype=torch.bool, device=device)
            newest = torch.eye(each, dtype=torch.bool, device=device)
            own = torch.cat([own, newest.repeat(memories, 1)], dim=1)
        return TargetMemory(self.layers, self.length + 1, each, own)

    def seen(
        self, pattern: Pattern, device: torch.device
    ) -> Bool[Tensor, "#memories each slots"] | None:
        """Which slots the newest token of each row sees: its own, in the pattern; None = all.

        A row's own slots are in the order of its tokens, so that their number is their position.
        """
        own = self.own
        if not isinstance(pattern, Causal | Everywhere):
            if own is None:
                places = torch.arange(self.length, device=device).unsqueeze(0)
            else:
                places = own.cumsum(1) - 1
            seen = pattern(places.new_tensor(self.length - 1), places)
            own = seen if own is None else own & seen
        return None if own is None else own.view(-1, self.each, own.shape[1])

    def _cleared(self) -> "TargetMemory":
        """Without the slots that are nobody's, where they are as many as those that are not."""
        if self.own is None or self.own.shape[1] < _FEW:
            return self
        used = self.own.view(-1, self.each, self.own.shape[1]).any(1)
        most = int(used.sum(1).max())
        if 2 * most > used.shape[1]:
            return self
        # What is used comes first; a memory that uses fewer slots than another keeps some unused.
        slots = used.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
        own = self.own.gather(1, slots.repeat_interleave(self.each, dim=0))
        return replace(self, layers=tuple(m.choose(slots) for m in self.layers), own=own)


@dataclass(frozen=True, slots=True)
class TransformerState:
    """One row per hypothesis; frozen, so that a step leaves the state before it as it was.

    source: what each layer keeps of the source. past: what each layer keeps of the target so far.
    coverage: Σ over the steps of the last layer's cross-attention, mean over heads; None until
    `covered` asks for it, because it costs the weights of every step.
    """

    source: SourceMemory
    past: TargetMemory = field(default_factory=TargetMemory)
    coverage: Float[Tensor, "batch slots"] | None = None

    @property
    def position(self) -> int:
        """How many target tokens have been read."""
        return self.past.length

    @property
    def rows(self) -> int:
        """How many hypotheses there are."""
        return self.source.layers[0].keys.shape[0] * self.source.each

    def covered(self) -> "TransformerState":
        """The same, and from here on the steps count where they look."""
        keys = self.source.layers[-1].keys
        precise = torch.promote_types(keys.dtype, torch.float32)
        nothing = torch.zeros(self.rows, keys.shape[-2], dtype=precise, device=keys.device)
        return replace(self, coverage=nothing)

    def followed_by(self, other: "TransformerState") -> "TransformerState":
        """These rows and then those of another state, which has read as many target tokens."""
        check_positions(self.position, other.position)
        return replace(
            self,
            source=self.source.followed_by(other.source),
            past=self.past.followed_by(other.past),
            coverage=of_both(self.coverage, other.coverage, stacked),
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> "TransformerState":
        """These batch rows, in this order, repeats allowed."""
        return replace(
            self,
            source=self.source.select(rows),
            past=self.past.select(rows),
            coverage=None if self.coverage is None else self.coverage.index_select(0, rows),
        )
