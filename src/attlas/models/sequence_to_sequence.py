"""What every encoder–decoder answers: one protocol for training and for decoding."""

from abc import ABC, abstractmethod
from typing import Generic, Literal, Protocol, Self, TypeVar, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


@runtime_checkable
class State(Protocol):
    """What a decoder carries from token to token: a frozen value, one batch row per hypothesis."""

    @property
    def coverage(self) -> Float[Tensor, "batch slots"] | None:
        """Σ over the steps so far of the attention weights; None where the model does not look, or
        was not asked to count.
        """

    def covered(self) -> Self:
        """The same state, whose steps from here on count where they look, if the model looks."""

    def select(self, rows: Int[Tensor, " chosen"]) -> Self:
        """These batch rows, in this order, repeats allowed: what beam search does."""


@runtime_checkable
class Joinable(State, Protocol):
    """A state that can be joined by another: the rows of two batches then go on as one."""

    def followed_by(self, other: Self) -> Self:
        """These batch rows, and then those of a state that has read as many tokens."""


S = TypeVar("S", bound=State)


class SequenceToSequence(nn.Module, ABC, Generic[S]):
    """Ids in, logits out. Knows no text and no files.

    `target` begins with the beginning-of-sentence token; position t of every output is the
    prediction of the token after target[:, t].
    """

    @property
    def longest(self) -> int | None:
        """How many positions a side may have, the begin or the end token among them; None: any."""
        return None

    @abstractmethod
    def encode(
        self,
        source: Int[Tensor, "batch slots"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> S:
        """Read the source once; the state before the first target token. real: True = a token.

        Padding belongs on the right: the position of a token is that of its slot.
        """

    def begin(
        self, source: Int[Tensor, "batch slots"], real: Bool[Tensor, "batch slots"] | None = None
    ) -> S:
        """`encode` for a search: the same, but for the rounding of floats, in less time where a
        model knows how.
        """
        return self.encode(source, real)

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, " batch"], state: S
    ) -> tuple[Float[Tensor, "batch vocabulary"], S]:
        """Logits of the next token after `tokens`, and the state that follows."""

    @abstractmethod
    def features(
        self, target: Int[Tensor, "batch queries"], state: S
    ) -> Float[Tensor, "batch queries width"]:
        """Teacher-forced decoder outputs for a whole target, before the vocabulary layer."""

    @abstractmethod
    def logits(
        self, features: Float[Tensor, "*positions width"]
    ) -> Float[Tensor, "*positions vocabulary"]:
        """The vocabulary layer: apart, so that a loss need not hold every logit at once."""

    @abstractmethod
    def between(self, layer: str) -> Literal["source", "target", "across"]:
        """Between what the attention of this path looks: inside the source, inside the target, or
        from the target to the source.
        """

    def forward(
        self,
        source: Int[Tensor, "batch slots"],
        real: Bool[Tensor, "batch slots"] | None,
        target: Int[Tensor, "batch queries"],
    ) -> Float[Tensor, "batch queries vocabulary"]:
        """Teacher-forced logits for a whole batch."""
        return self.logits(self.features(target, self.encode(source, real)))
