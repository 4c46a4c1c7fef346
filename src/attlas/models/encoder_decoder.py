"""The protocol of encoder–decoders, for training and for decoding."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError, UnsupportedError, quoted
from attlas.layers.base import check_tensor, check_token_mask, integers_as_bools
from attlas.models.config import refuse_settings
from attlas.models.embedding import Embedding
from attlas.ops.linear import is_traced_or_transformed
from attlas.recording.hooks import AttentionHook, Listener, listening

# Checks of the evaluation mode.


def check_evaluating(model: nn.Module) -> None:
    """Check that a model is in evaluation mode.

    Raises:
        AttlasError: If it is not.
    """
    if model.training:
        raise AttlasError("a model in evaluation mode", "one in training mode", "call model.eval()")


# Joining states of two batches.


T = TypeVar("T")


def check_positions(first: int, second: int) -> None:
    """Check that all rows are at one position.

    Raises:
        AttlasError: If it does not.
    """
    if first != second:
        raise AttlasError(
            f"a state that has read as many tokens, {first}",
            f"one that has read {second}",
            "join states that are at the same position",
        )


def join_optional(first: T | None, second: T | None, join: Callable[[T, T], T]) -> T | None:
    """Join an optional part of two states; None if neither has it.

    Raises:
        AttlasError: If only one state has it.
    """
    if first is not None and second is not None:
        return join(first, second)
    if first is not None or second is not None:
        raise AttlasError(
            "two states of one model, which both count where they look, or both do not",
            "one with something that the other lacks",
            "encode both with the same model, and call `with_coverage` of both or of none",
        )
    return None


# Checks of rows.


def check_rows(name: str, rows: int, got: int) -> None:
    """Raise `AttlasError` unless there is one token, or one target, for each row."""
    if got != rows:
        raise AttlasError(
            f"one {name} for each of {rows} rows", str(got), "pass as many as the state has rows"
        )


@runtime_checkable
class State(Protocol):
    """The state of a decoder between tokens: a frozen value, one batch row for each hypothesis."""

    @property
    def coverage(self) -> Float[Tensor, "batch keys"] | None:
        """Σ of the attention weights over the steps so far; None if the model has no attention, or
        does not count them.
        """

    def with_coverage(self) -> Self:
        """The same state; from here on its steps add up attention weights, if the model has
        attention.
        """

    def select(self, rows: Int[Tensor, " chosen"]) -> Self:
        """These batch rows, in this order, repeats allowed: what beam search does."""


@runtime_checkable
class Joinable(State, Protocol):
    """A state that can be joined by another: the rows of two batches then go on as one."""

    def concat(self, other: Self) -> Self:
        """These batch rows, and then those of another state that has read equally many tokens."""


S = TypeVar("S", bound=State)


class SequenceToSequence(nn.Module, ABC, Generic[S]):
    """Ids in, logits out: an encoder–decoder, without texts and files.

    `target` begins with the begin token. Position t of every output predicts the token after
    target[:, t]. So a training loop of PyTorch is

        model = attlas.models.build(attlas.models.RecurrentConfig(), 100)
        for source, target in loader:  # ids (batch, length); 0 is padding
            logits = model(source, target[:, :-1], teacher_forcing_ratio=0.5)
            loss = F.cross_entropy(logits.mT, target[:, 1:], ignore_index=0)
    """

    source_embedding: Embedding | None
    target_embedding: Embedding

    def __new__(cls, *parts: object, **kwargs: object) -> Self:
        refuse_settings(cls, (*parts, *kwargs.values()), "build(config, source_size, target_size)")
        return super().__new__(cls)

    @property
    def max_positions(self) -> int | None:
        """The maximum number of positions of a side, begin or end token included; None: any."""
        return None

    @abstractmethod
    def encode(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> S:
        """Encode the source. Return the state before the first target token.

        Padding belongs on the right, because positions count it.

        Args:
            token_mask: True = a token.
        """

    def encode_for_search(
        self,
        source: Int[Tensor, "batch keys"],
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> S:
        """`encode` for a search: the same up to rounding, and faster for some models."""
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
        """The kind of the attention at this path: in the source, in the target, or from the target
        to the source.
        """

    @property
    def weights_hook(self) -> AttentionHook | None:
        """The hook of the attention whose weights `forward_with_weights` returns; None: the model
        has none.
        """
        return None

    def forward(
        self,
        source: Shaped[Tensor, "..."],
        target: Shaped[Tensor, "..."],
        teacher_forcing_ratio: float = 1.0,
        *,
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch queries vocabulary"]:
        """Logits for a whole batch: logits[:, t] predicts the token after target[:, t].

        Args:
            source: Ids, (batch, keys).
            target: Ids, (batch, queries). target[:, 0] is always fed, as the begin token.
            teacher_forcing_ratio: The probability with which each later token that is fed is that
                of `target`; else it is the model's own most probable one. It is drawn for each
                token of each row by torch's generator (scheduled sampling, Bengio et al., 2015).
                1 is teacher forcing: all positions at once. 0 is free running, for evaluation:
                only the first token and the length of `target` matter. Below 1 the model goes
                step by step, a Transformer too; gradients flow through its states, not through
                the choice of tokens.
            token_mask: True = a token of the source. Left out: all but the zeros at the end of
                each row.

        Raises:
            AttlasError: For ids that are not integers, or outside of the vocabulary; for a source
                and a target with other numbers of rows; for an empty target; for a row that begins
                with padding; for a ratio outside of 0 … 1.
        """
        ratio = _checked_ratio(teacher_forcing_ratio)
        source_embedding = self.source_embedding
        embedding = self.target_embedding if source_embedding is None else source_embedding
        if token_mask is not None and isinstance(source, Tensor):
            source, token_mask = read_token_mask(source, token_mask)
        check_ids("source", source, embedding)
        check_ids("target", target, self.target_embedding)
        if len(source) != len(target):
            raise AttlasError(
                "a source and a target with as many rows",
                f"{len(source)} rows of source and {len(target)} of target",
                "pass batches of the same pairs: model(source, target)",
            )
        _check_start("target", target)
        if token_mask is None:
            token_mask = padding_mask(source)
        if ratio == 1.0:
            return self.logits(self.decode(target, self.encode(source, token_mask)))
        is_forced = torch.zeros(target.shape, dtype=torch.bool, device=target.device)
        if ratio:
            is_forced = torch.rand(target.shape, device=target.device) < ratio
        return sampled_logits(self, source, target, token_mask, is_forced)

    def forward_with_weights(
        self,
        source: Shaped[Tensor, "..."],
        target: Shaped[Tensor, "..."],
        teacher_forcing_ratio: float = 1.0,
        *,
        token_mask: Shaped[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch queries vocabulary"], Float[Tensor, "batch queries keys"]]:
        """`forward`, and how the target looked at the source.

        The weights are those of the attention that the decoder has, each row sums to 1, before
        dropout; of a Transformer those of its last layer's cross-attention, the mean over its
        heads. They have gradients. `attlas.observe` shows every layer and head.

        Raises:
            AttlasError: For a model without attention, and as `forward` does.
        """
        hook = self.weights_hook
        if hook is None:
            raise UnsupportedError(
                "a model with attention",
                "one without (attention = 'none')",
                "call model(source, target), which gives the logits alone",
            )
        return with_weights(
            hook, lambda: self(source, target, teacher_forcing_ratio, token_mask=token_mask)
        )


def with_weights(
    hook: AttentionHook, call: Callable[[], Tensor]
) -> tuple[Tensor, Float[Tensor, "batch queries keys"]]:
    """What a call returns, and the weights of the attention with this hook, the mean over its
    heads.

    The queries of several reads stand behind each other. The weights have gradients.
    """
    kept: list[Tensor] = []

    def keep(weights: Tensor, allowed: Tensor, layer: str) -> Tensor:
        kept.append(weights.clone())
        return weights

    with listening(Listener({id(hook): ""}, patch=keep)):
        result = call()
    return result, torch.cat(kept, dim=2).mean(1)


def sampled_logits(
    model: SequenceToSequence[Any],
    source: Int[Tensor, "batch keys"],
    target: Int[Tensor, "batch queries"],
    token_mask: Shaped[Tensor, "..."] | None,
    forced: Bool[Tensor, "batch queries"],
    token: Literal["argmax", "sample"] = "argmax",
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch queries vocabulary"]:
    """The logits of each position when the model is fed tokens of its own.

    The first token is that of the target. Each later one is, too, where it is `forced`; else it is
    the model's most probable token ("argmax"), or one drawn from its distribution ("sample").
    Gradients flow through the states, not through the choice. All logits are kept: batch × queries
    × vocabulary numbers.
    """
    state = model.encode(source, token_mask)
    input_ids = target[:, 0]
    logits: list[Tensor] = []
    for position in range(target.shape[1]):
        if position:
            sampled = _chosen(logits[-1].detach(), token, generator).to(target.dtype)
            input_ids = torch.where(forced[:, position], target[:, position], sampled)
        scores, state = model.step(input_ids, state)
        logits.append(scores)
    return torch.stack(logits, dim=1)


def _chosen(
    logits: Float[Tensor, "batch vocabulary"],
    token: Literal["argmax", "sample"],
    generator: torch.Generator | None,
) -> Int[Tensor, " batch"]:
    if token == "argmax":
        return logits.argmax(-1)
    return torch.multinomial(logits.float().softmax(-1), 1, generator=generator).squeeze(1)


# Checks of ids.


PADDING_ID = 0  # as `attlas.data` pads, and as PyTorch's examples do


def check_ids(
    side: str,
    ids: Any,
    embedding: Embedding,
    arguments: str = "source, target",
) -> None:
    """Raise `AttlasError` unless this is a batch of ids of this embedding.

    Args:
        arguments: what the model is called with, for the hints.
    """
    expected = f"{side} ids, integers of shape (batch, length)"
    if not isinstance(ids, Tensor):
        raise AttlasError(expected, f"a {type(ids).__name__}", f"pass a tensor: model({arguments})")
    kind = str(ids.dtype).removeprefix("torch.")
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        advice = (
            f"pass the mask by its name: model({arguments}, token_mask=mask)"
            if ids.dtype == torch.bool
            else "number the tokens; one-hot rows and embeddings are no ids"
        )
        raise AttlasError(expected, f"{kind} of shape {tuple(ids.shape)}", advice)
    if ids.dtype not in (torch.int64, torch.int32):
        raise AttlasError(expected, kind, "turn them into int64: ids.long()")
    if ids.ndim != 2:
        raise AttlasError(
            expected, f"shape {tuple(ids.shape)}", "of one text that is ids.unsqueeze(0)"
        )
    if side == "source":
        check_source(ids)
    elif not ids.numel():
        raise AttlasError(
            "a target of at least one token", "an empty one", "begin it with the begin token"
        )
    device = embedding.weight.device
    if ids.device != device:
        raise AttlasError(
            f"{side} ids on {device}, where the model is",
            f"ids on {ids.device}",
            f"move them: ids.to({str(device)!r})",
        )
    if _is_symbolic():
        return
    invalid = ids[(ids < 0) | (ids >= embedding.num_embeddings)]
    if len(invalid):
        raise AttlasError(
            f"{side} ids from 0 to {embedding.num_embeddings - 1}",
            str(int(invalid[0])),
            "number the text with the vocabulary that this model was built for",
        )


def padding_mask(source: Int[Tensor, "batch keys"]) -> Bool[Tensor, "batch keys"]:
    """True = a token: all but the zeros at the end of each row.

    Raises:
        AttlasError: For a row that begins with 0.
    """
    _check_start("source", source)
    tokens = (source != PADDING_ID).to(torch.int8)
    return tokens.flip(1).cummax(1).values.flip(1).bool()


def _is_symbolic() -> bool:
    """Return True under tracing, where ids have no values."""
    return torch.compiler.is_compiling() or is_traced_or_transformed()


def _check_start(side: str, ids: Int[Tensor, "batch length"]) -> None:
    if _is_symbolic():
        return
    has_start = ids[:, 0] != PADDING_ID
    if not bool(has_start.all()):
        row = int((~has_start).nonzero()[0])
        advice = (
            "put padding behind the tokens; where 0 is a token of yours, pass token_mask"
            if side == "source"
            else "begin each row with the begin token, and put padding behind the tokens"
        )
        raise AttlasError(
            f"rows of {side} that begin with a token",
            f"{PADDING_ID}, which is padding, at the beginning of row {row}",
            advice,
        )


def _checked_ratio(ratio: Any) -> float:
    if isinstance(ratio, bool) or not isinstance(ratio, Real) or not 0.0 <= float(ratio) <= 1.0:
        raise AttlasError(
            "a teacher_forcing_ratio from 0 to 1",
            quoted(ratio) if not isinstance(ratio, Tensor) else f"a tensor {tuple(ratio.shape)}",
            "0 is free running, 1 is teacher forcing; a mask is passed as token_mask=…",
        )
    return float(ratio)


# Sources and token masks, before a model reads them.


def check_source(source: Shaped[Tensor, "batch keys ..."]) -> None:
    """Raise `AttlasError` if there is no row, or no position."""
    rows, num_keys = source.shape[:2]
    if not rows or not num_keys:
        raise AttlasError(
            "a source of at least one row and one position",
            f"{rows} row(s) and {num_keys} position(s)",
            "pass what there is to read; an empty sentence is its end token alone",
        )


def read_token_mask(
    source: Int[Tensor, "batch keys"], token_mask: Shaped[Tensor, "..."] | None
) -> tuple[Int[Tensor, "batch keys"], Bool[Tensor, "batch keys"] | None]:
    """The ids with 0 in padding, which may hold any number, also one that is no id; and the mask
    as bools, of which integers 0 and 1 say the same.

    Raises:
        AttlasError: The mask has not one bool, 0 or 1 for each position.
    """
    if token_mask is None:
        return source, None
    check_tensor("token_mask", token_mask)
    mask = integers_as_bools("token_mask", token_mask)
    check_token_mask(mask, source.shape)
    return source.masked_fill(~mask, 0), mask
