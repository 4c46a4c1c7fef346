"""What a search over fixed buffers holds, and its step, which a CUDA graph can replay."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END, PAD
from attlas.decoding.config import DecodingConfig
from attlas.decoding.scoring import (
    Constraints,
    Hypothesis,
    Penalties,
    log_probabilities_of,
    sums,
)
from attlas.models.transformer.static_steps import StaticDecoder
from attlas.ops.topk import largest

NEVER = float("-inf")


class StaticRows(ABC):
    """Places for sentences, each at a position of its own, with one row for each hypothesis.

    A step asks the device for no number. What it writes lasts; a place whose sentence is done stays
    as it is, until `begin` gives it another one. No place has one at first.

    Args:
        rules: Of some sentences; those for all of them are read.
        prefix_length: Of the longest prefix.
    """

    decoder: StaticDecoder
    done: Bool[Tensor, " places"]
    invalid: Bool[Tensor, " 1"]
    """Whether a row that was followed had logits that are no numbers."""

    _lasting: ClassVar[tuple[str, ...]] = (
        "done", "invalid", "_position", "_last", "_tokens", "_coverage",
    )  # fmt: skip

    def __init__(
        self,
        decoder: StaticDecoder,
        config: DecodingConfig,
        rules: Constraints,
        prefix_length: int,
    ) -> None:
        self.decoder, width = decoder, decoder.rows_per_source
        self._penalties = Penalties(config.length_penalty, config.coverage_penalty)
        self._min_length, self._ngram = rules.min_length, rules.no_repeat_ngram
        self._forbidden, self._prefix_length = rules.forbidden, prefix_length
        places, device = decoder.sources, decoder.token_mask.device
        self._sums = sums(device)
        self.done = torch.ones(places, dtype=torch.bool, device=device)
        self.invalid = torch.zeros(1, dtype=torch.bool, device=device)
        self._position, self._max_length = (
            torch.zeros(places, dtype=torch.long, device=device) for _ in range(2)
        )
        self._prefix = torch.full((places, max(1, prefix_length)), PAD, device=device)
        self._last = torch.full((places, width), BEGIN, device=device)
        self._tokens = torch.full((places, width, decoder.target_length), PAD, device=device)
        self._coverage: Float[Tensor, "places width keys"] | None = None
        if config.coverage_penalty:
            shape = (places, width, decoder.token_mask.shape[1])
            self._coverage = torch.zeros(shape, dtype=decoder.weights_dtype, device=device)

    def begin(self, places: Int[Tensor, " begun"], constraints: Constraints) -> None:
        """Let the sentences of these constraints, whose sources the decoder has, begin here."""
        self._last.index_fill_(0, places, BEGIN)
        for tensor in (self._position, self.done, self._coverage):
            if tensor is not None:
                tensor.index_fill_(0, places, 0)
        self._max_length.index_copy_(0, places, constraints.max_length)
        self._prefix.index_fill_(0, places, PAD)
        given = constraints.prefix
        if given.shape[1]:
            self._prefix[:, : given.shape[1]].index_copy_(0, places, given)

    def clear(self) -> None:
        """Let no place have a sentence."""
        self.done.fill_(True)
        self.invalid.fill_(False)

    @abstractmethod
    def step(self, source_length: int, target_length: int) -> None:
        """One more token for each place that is not done, with so many positions of the buffers."""

    @abstractmethod
    def results(self, places: Int[Tensor, " ended"]) -> tuple[Tensor, ...]:
        """What `lists` needs of places that are done."""

    @abstractmethod
    def lists(self, results: tuple[Tensor, ...]) -> list[list[Hypothesis]]:
        """The hypotheses of each of these places, from results on the host."""

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Let the block's steps come to nothing."""
        tensors = [held for name in self._lasting if (held := getattr(self, name)) is not None]
        tensors += self.decoder.caches
        before = [tensor.clone() for tensor in tensors]
        yield
        for tensor, values in zip(tensors, before, strict=True):
            tensor.copy_(values)

    # Parts of a step.

    def _log_probabilities(
        self,
        source_length: int,
        target_length: int,
        followed: Bool[Tensor, "places width"],
    ) -> tuple[Float[Tensor, "rows vocabulary"], Float[Tensor, "places width keys"] | None]:
        """Of each row: log P of the next token, and the coverage behind it."""
        position = self._position.unsqueeze(1).expand(self._last.shape).flatten()
        logits, weights = self.decoder.step(
            self._last.flatten(),
            position,
            source_length,
            target_length,
            weighs=self._coverage is not None,
        )
        log_p = log_probabilities_of(logits)
        self.invalid.logical_or_((log_p[:, 0].isnan() & followed.flatten()).any())
        log_p = self._allowed(log_p.nan_to_num(nan=NEVER, neginf=NEVER), position.unsqueeze(1))
        coverage = self._coverage
        if coverage is not None and weights is not None:
            seen = torch.zeros_like(coverage)
            seen[:, :, :source_length].copy_(weights.view(*self._last.shape, -1))
            coverage = coverage + seen
        return log_p, coverage

    def _allowed(
        self, free: Float[Tensor, "rows vocabulary"], position: Int[Tensor, "rows 1"]
    ) -> Float[Tensor, "rows vocabulary"]:
        """`Constraints.apply` for rows at positions of their own."""
        for token_id in self._forbidden:
            free[:, token_id].fill_(NEVER)
        if self._min_length:
            free[:, END].masked_fill_(position[:, 0] < self._min_length, NEVER)
        allowed = self._without_repeats(free, position) if self._ngram else free
        if not self._prefix_length:
            return allowed
        index = self._position.clamp(max=self._prefix_length - 1).unsqueeze(1)
        forced = self._prefix.gather(1, index)
        forced = forced.masked_fill(self._position.unsqueeze(1) >= self._prefix_length, PAD)
        forced = forced.expand(self._last.shape).reshape(-1, 1)
        only = torch.full_like(free, NEVER).scatter(1, forced, free.gather(1, forced))
        return torch.where(forced == PAD, allowed, only)

    def _without_repeats(
        self, allowed: Float[Tensor, "rows vocabulary"], position: Int[Tensor, "rows 1"]
    ) -> Float[Tensor, "rows vocabulary"]:
        n, tokens = self._ngram, self._tokens.flatten(0, 1)
        if tokens.shape[1] < n:
            return allowed
        grams = tokens.unfold(1, n, 1)
        offsets = torch.arange(n - 1, device=allowed.device) - (n - 1)
        newest = tokens.gather(1, (position + offsets).clamp(min=0)).unsqueeze(1)
        starts = torch.arange(grams.shape[1], device=allowed.device)
        repeats = (grams[..., :-1] == newest).all(-1) & (starts + n <= position)
        completing = grams[..., -1].masked_fill(~repeats, PAD)  # PAD is forbidden anyway
        blocked = allowed.scatter(1, completing, NEVER)
        stuck = torch.isneginf(blocked).all(-1, keepdim=True)
        return torch.where(stuck, allowed, blocked)

    def _scored(
        self,
        log_probabilities: Float[Tensor, "places width"],
        factors: Int[Tensor, "places #width"],
        coverage: Float[Tensor, "places width keys"] | None,
        token_mask: Bool[Tensor, "places keys"],
    ) -> Float[Tensor, "places width"]:
        factors = factors.expand(log_probabilities.shape)
        mask = token_mask.unsqueeze(1)
        return self._penalties.score(log_probabilities, factors, coverage, mask)


def put(held: Tensor, new: Tensor, where: Bool[Tensor, " places"]) -> None:
    """Write the places where it is so, and leave the others as they are."""
    mask = where.view(-1, *[1] * (held.ndim - 1))
    held.copy_(torch.where(mask, new, held))


class GreedyRows(StaticRows):
    """The most probable token each time, as in `greedy_search`."""

    _lasting = (*StaticRows._lasting, "_total", "_is_end")

    def __init__(
        self,
        decoder: StaticDecoder,
        config: DecodingConfig,
        rules: Constraints,
        prefix_length: int,
    ) -> None:
        super().__init__(decoder, config, rules, prefix_length)
        self._total = torch.zeros(self._last.shape, dtype=self._sums, device=self._last.device)
        self._is_end = torch.zeros_like(self.done)

    def begin(self, places: Int[Tensor, " begun"], constraints: Constraints) -> None:
        super().begin(places, constraints)
        for tensor in (self._total, self._is_end):
            tensor.index_fill_(0, places, 0)

    def step(self, source_length: int, target_length: int) -> None:
        live = ~self.done
        log_p, coverage = self._log_probabilities(source_length, target_length, live.unsqueeze(1))
        token = largest(log_p, 1)[1]
        gained = log_p.gather(1, token)
        impossible = torch.isneginf(gained[:, 0])
        ends = live & (token[:, 0] == END) & ~impossible
        cut = live & ~ends & (impossible | (self._max_length <= self._position))
        goes_on = live & ~ends & ~cut
        put(self._total, self._total + gained, live & ~cut)
        if coverage is not None and self._coverage is not None:
            put(self._coverage, coverage, live & ~cut)
        index = self._position[:, None, None]
        put(self._tokens, self._tokens.scatter(2, index, token.unsqueeze(1)), goes_on)
        put(self._last, token, goes_on)
        self._position.add_(goes_on)
        self._is_end.logical_or_(ends)
        self.done.logical_or_(ends | cut)

    def results(self, places: Int[Tensor, " ended"]) -> tuple[Tensor, ...]:
        length, is_end, total = (
            part[places] for part in (self._position, self._is_end, self._total)
        )
        coverage = None if self._coverage is None else self._coverage[places]
        mask = self.decoder.token_mask[places]
        score = self._scored(total, (length + is_end).unsqueeze(1), coverage, mask)
        return self._tokens[places, 0], length, score[:, 0], total[:, 0], is_end

    def lists(self, results: tuple[Tensor, ...]) -> list[list[Hypothesis]]:
        return [
            [Hypothesis(tuple(tokens[:length]), score, log_p, is_end)]
            for tokens, length, score, log_p, is_end in zip(
                *(part.tolist() for part in results), strict=True
            )
        ]
