"""What every encoder–decoder answers: one protocol for training and for decoding."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Literal, Protocol, Self, TypeVar, runtime_checkable

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.base import check_token_mask
from attlas.models.config import refuse_settings

# Models that answer: in evaluation mode, where nothing is dropped.


def check_evaluating(model: nn.Module) -> None:
    """That a model is in evaluation mode. Errors: `AttlasError` where it is not."""
    if model.training:
        raise AttlasError("a model in evaluation mode", "one in training mode", "call model.eval()")


# What states have to have in common to go on as one.


T = TypeVar("T")


def check_positions(one: int, other: int) -> None:
    """That what comes next stands at one position in all rows.

    Errors: `AttlasError` where it does not.
    """
    if one != other:
        raise AttlasError(
            f"a state that has read as many tokens, {one}",
            f"one that has read {other}",
            "join states that are at the same position",
        )


def join_optional(one: T | None, other: T | None, join: Callable[[T, T], T]) -> T | None:
    """What two states have, joined; None where neither has such a thing.

    Errors: `AttlasError` where one has, and the other has not.
    """
    if one is not None and other is not None:
        return join(one, other)
    if one is not None or other is not None:
        raise AttlasError(
            "two states of one model, which both count where they look, or both do not",
            "one with something that the other lacks",
            "encode both with the same model, and call `with_coverage` of both or of none",
        )
    return None


# The rows that go on from a state.


def check_rows(what: str, rows: int, came: int) -> None:
    """Errors: `AttlasError` where what comes is not one token, or one target, for each row."""
    if came != rows:
        raise AttlasError(
            f"one {what} for each of {rows} rows", str(came), "pass as many as the state has rows"
        )


@runtime_checkable
class State(Protocol):
    """What a decoder carries from token to token: a frozen value, one batch row per hypothesis."""

    @property
    def coverage(self) -> Float[Tensor, "batch keys"] | None:
        """Σ over the steps so far of the attention weights; None where the model does not look, or
        was not asked to count.
        """

    def with_coverage(self) -> Self:
        """The same state, whose steps from here on count where they look, if the model looks."""

    def select(self, rows: Int[Tensor, " chosen"]) -> Self:
        """These batch rows, in this order, repeats allowed: what beam search does."""


@runtime_checkable
class Joinable(State, Protocol):
    """A state that can be joined by another: the rows of two batches then go on as one."""

    def concat(self, other: Self) -> Self:
        """These batch rows, and then those of a state that has read as many tokens."""


S = TypeVar("S", bound=State)


class SequenceToSequence(nn.Module, ABC, Generic[S]):
    """Ids in, logits out. Knows no text and no files.

    `target` begins with the beginning-of-sentence token; position t of every output is the
    prediction of the token after target[:, t].
    """

    def __new__(cls, *parts: object, **named: object) -> Self:
        refuse_settings(cls, (*parts, *named.values()), "build(config, source_size, target_size)")
        return super().__new__(cls)

    @property
    def max_positions(self) -> int | None:
        """How many positions a side may have, the begin or the end token among them; None: any."""
        return None

    @abstractmethod
    def encode(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> S:
        """Read the source once; the state before the first target token. token_mask: True = a
        token.

        Padding belongs on the right: the position of a token is that of its position.
        """

    def encode_for_search(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> S:
        """`encode` for a search: the same, but for the rounding of floats, in less time where a
        model knows how.
        """
        return self.encode(source, token_mask)

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, " batch"], state: S
    ) -> tuple[Float[Tensor, "batch vocabulary"], S]:
        """Logits of the next token after `tokens`, and the state that follows."""

    @abstractmethod
    def decode(
        self, target: Int[Tensor, "batch queries"], state: S
    ) -> Float[Tensor, "batch queries dim"]:
        """Teacher-forced decoder outputs for a whole target, before the vocabulary layer."""

    @abstractmethod
    def logits(
        self, features: Float[Tensor, "*positions dim"]
    ) -> Float[Tensor, "*positions vocabulary"]:
        """The vocabulary layer: apart, so that a loss need not hold every logit at once."""

    @abstractmethod
    def attention_kind(self, layer: str) -> Literal["source", "target", "across"]:
        """Between what the attention of this path looks: inside the source, inside the target, or
        from the target to the source.
        """

    def forward(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Bool[Tensor, "batch keys"] | None,
        target: Int[Tensor, "batch queries"],
    ) -> Float[Tensor, "batch queries vocabulary"]:
        """Teacher-forced logits for a whole batch."""
        return self.logits(self.decode(target, self.encode(source, token_mask)))


# A source as it comes, before a model reads it.


def check_source(source: Shaped[Tensor, "batch keys ..."]) -> None:
    """Errors: `AttlasError` where there is no row, or no position in them."""
    rows, num_keys = source.shape[:2]
    if not rows or not num_keys:
        raise AttlasError(
            "a source of at least one row and one position",
            f"{rows} row(s) and {num_keys} position(s)",
            "pass what there is to read; an empty sentence is its end token alone",
        )


def zero_padding_ids(
    source: Int[Tensor, "batch keys"], token_mask: Shaped[Tensor, "..."] | None
) -> Int[Tensor, "batch keys"]:
    """The ids, with 0 in padding, which may hold any number, also one that is no id.

    Errors: `AttlasError` where `token_mask` is not one bool per position.
    """
    if token_mask is None:
        return source
    check_token_mask(token_mask, source.shape)
    return source.masked_fill(~token_mask, 0)
