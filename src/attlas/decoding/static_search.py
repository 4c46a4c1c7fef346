"""Greedy search over fixed buffers: steps that a CUDA graph replays, with all rows in use.

A step of a small model waits for the launches of its kernels. Here a step reads and writes tensors
that last, and asks the device for no number, so that it is captured once for each of a few lengths
and then replayed. Each row is at a position of its own: where a sentence has ended, the next one
takes its row. What has ended is read a round of steps later, while the next round runs.

On a CPU the same steps are called in place of the graphs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas._hardware import capturable
from attlas.data.vocabulary import BEGIN, END, PAD
from attlas.decoding.config import DecodingConfig
from attlas.decoding.scoring import (
    Constraints,
    Hypothesis,
    Penalties,
    check_numbers,
    log_probabilities_of,
    sums,
)
from attlas.errors import UnsupportedError
from attlas.models.encoder_decoder import SequenceToSequence
from attlas.models.transformer.model import Transformer
from attlas.models.transformer.state import TransformerState
from attlas.models.transformer.static_steps import StaticDecoder
from attlas.ops.cuda_graphs import Capture, Numbers, Replayable, padded_length
from attlas.ops.linear import autocast
from attlas.ops.topk import largest

_ROWS = 256  # at once
_BYTES = 1 << 30  # of all buffers: longer texts get fewer rows
_ROUND = 8  # steps between two looks at what has ended


def check_static(model: SequenceToSequence[Any], device: torch.device) -> Transformer:
    """The model, whose greedy search can run as CUDA graphs on this device.

    Raises:
        UnsupportedError: If it cannot.
    """
    setting = "decoding.cuda_graphs = true"
    if device.type != "cuda":
        raise UnsupportedError(
            f"a CUDA device for {setting}",
            f"device {str(device)!r}",
            "leave decoding.cuda_graphs out",
        )
    if not isinstance(model, Transformer) or not StaticDecoder.check(model):
        raise UnsupportedError(
            f"a Transformer without hooks, in which each token sees itself, for {setting}",
            f"a {type(model).__name__} that is another",
            "leave decoding.cuda_graphs out",
        )
    return model


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A batch of sources to translate.

    Args:
        lengths: How many tokens each has.
        max_lengths: How many target tokens each gets at most.
    """

    source: Int[Tensor, "sentences keys"]
    token_mask: Bool[Tensor, "sentences keys"]
    constraints: Constraints
    lengths: Sequence[int]
    max_lengths: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """A batch that was encoded, and which of its sentences have no row yet."""

    batch: Source
    state: TransformerState
    first: int
    waiting: list[int]


class StaticGreedySearch:
    """The greedy search of some batches; `run` gives the hypothesis of each sentence.

    The hypotheses are those of `greedy_search`, up to rounding.

    Args:
        batches: Encoded when their first sentence gets a row.
    """

    def __init__(
        self, model: Transformer, batches: Sequence[Source], config: DecodingConfig
    ) -> None:
        self._model, self._batches, self._config = model, batches, config
        self._penalties = Penalties(config.length_penalty, config.coverage_penalty)
        device = batches[0].source.device
        self._device = device
        self._capture = Capture(device, "a step of the search", "decoding.cuda_graphs")
        self._graphs: dict[tuple[int, int], Replayable] = {}
        self._source_length = padded_length(max(b.source.shape[1] for b in batches))
        self._longest = max(length for batch in batches for length in batch.max_lengths)
        self._buffers: _Buffers | None = None

    def run(
        self,
        before_step: Callable[[], None] | None = None,
        on_ended: Callable[[int], None] | None = None,
    ) -> list[Hypothesis]:
        """The hypotheses of all sentences, in order.

        Args:
            before_step: Called before every step; what it raises ends the search.
            on_ended: Called with the number of sentences that were found to have ended.
        """
        encoded = self._encoded()
        batch = next(encoded)
        buffers = self._buffers = _Buffers(
            self._decoder(batch.state), batch.batch.constraints, self._prefixes(), self._penalties
        )
        rows: list[_Row | None] = [None] * buffers.decoder.rows
        found: dict[int, Hypothesis] = {}
        total = sum(len(b.lengths) for b in self._batches)
        previous: tuple[Numbers, list[_Row | None]] | None = None
        ended: list[tuple[list[int], Tensor, Tensor]] = []
        while len(found) + sum(len(numbers) for numbers, _, _ in ended) < total:
            free = [place for place, row in enumerate(rows) if row is None]
            while free:
                if not batch.waiting:
                    batch = next(encoded, batch)
                    if not batch.waiting:
                        break
                chosen = batch.waiting[: len(free)]
                del batch.waiting[: len(chosen)]
                places, free = free[: len(chosen)], free[len(chosen) :]
                self._begin(buffers, places, batch, chosen)
                for place, sentence in zip(places, chosen, strict=True):
                    rows[place] = _Row(batch.first + sentence, batch.batch.lengths[sentence])
            self._advance(buffers, [row for row in rows if row is not None], before_step)
            seen, previous = previous, (Numbers(buffers.done.float()), list(rows))
            if seen is None:
                continue
            flags, owners = seen[0].read(), seen[1]
            over = [
                place
                for place, (flag, row) in enumerate(zip(flags, owners, strict=True))
                if flag and row is not None and rows[place] is row
            ]
            if over:
                numbers = [row.number for place in over if (row := rows[place]) is not None]
                ended.append((numbers, *buffers.results(self._indices(over))))
                for place in over:
                    rows[place] = None
                if on_ended is not None:
                    on_ended(len(over))
        check_numbers(buffers.invalid)
        for numbers, tokens, values in ended:
            for number, ids, (score, log_p, length, is_end) in zip(
                numbers, tokens.tolist(), values.tolist(), strict=True
            ):
                found[number] = Hypothesis(tuple(ids[: int(length)]), score, log_p, bool(is_end))
        return [found[number] for number in range(total)]

    def _encoded(self) -> Iterator[_Encoded]:
        first = 0
        for batch in self._batches:
            batch.constraints.check_ids(self._model.target_embedding.num_embeddings)
            state = self._model.encode_for_search(batch.source, batch.token_mask)
            yield _Encoded(batch, state, first, list(range(len(batch.lengths))))
            first += len(batch.lengths)

    def _prefixes(self) -> int:
        return max(batch.constraints.prefix.shape[1] for batch in self._batches)

    def _decoder(self, state: TransformerState) -> StaticDecoder:
        """With as many rows as there is room for."""
        cache, target = state.source.layers[0], self._longest + 1
        numbers = (self._source_length + target) * cache.keys.shape[3] * 2
        numbers *= sum(layer.keys.shape[1] for layer in state.source.layers)
        room = _BYTES // (numbers * cache.keys.element_size())
        rows = max(1, min(_ROWS, room, sum(len(batch.lengths) for batch in self._batches)))
        return StaticDecoder(self._model, state, rows, self._source_length, target)

    def _begin(
        self, buffers: "_Buffers", places: list[int], batch: _Encoded, chosen: list[int]
    ) -> None:
        given, rows, constraints = self._indices(chosen), self._indices(places), batch.batch
        buffers.decoder.begin(rows, batch.state, given, constraints.token_mask)
        buffers.begin(rows, constraints.constraints.select(given))

    def _advance(
        self, buffers: "_Buffers", rows: list["_Row"], before_step: Callable[[], None] | None
    ) -> None:
        """One round of steps."""
        steps = _ROUND
        source = padded_length(max(row.source_length for row in rows))
        target = padded_length(max(row.age for row in rows) + steps)
        lengths = min(source, self._source_length), min(target, self._longest + 1)
        if lengths not in self._graphs:
            work = partial(self._step, buffers, *lengths)
            with buffers.unchanged():
                self._graphs[lengths] = self._capture(work)
        graph = self._graphs[lengths]
        for _ in range(steps):
            if before_step is not None:
                before_step()
            graph.replay()
        for row in rows:
            row.age += steps

    def _step(self, buffers: "_Buffers", source_length: int, target_length: int) -> None:
        """What is captured."""
        name = self._config.autocast
        with torch.inference_mode(), capturable():
            if name == "none":  # whatever holds outside stays as it is
                buffers.step(source_length, target_length)
            else:
                with autocast(name, self._device, cached=False):
                    buffers.step(source_length, target_length)

    def _indices(self, numbers: list[int]) -> Int[Tensor, " numbers"]:
        host = torch.tensor(numbers, dtype=torch.long)
        if self._device.type != "cuda":
            return host.to(self._device)
        return host.pin_memory().to(self._device, non_blocking=True)


@dataclass(slots=True)
class _Row:
    """The sentence that has a row.

    Args:
        age: How many steps were made since it began.
    """

    number: int
    source_length: int
    age: int = 0


class _Buffers:
    """What lasts from step to step, one row for each sentence that is under way."""

    def __init__(
        self,
        decoder: StaticDecoder,
        constraints: Constraints,
        prefix_length: int,
        penalties: Penalties,
    ) -> None:
        self.decoder, self._penalties = decoder, penalties
        self._min_length, self._ngram = constraints.min_length, constraints.no_repeat_ngram
        self._forbidden = constraints.forbidden
        rows, device = decoder.rows, decoder.token_mask.device
        width = decoder.target_length
        self._tokens = torch.full((rows, width), PAD, device=device)
        self._prefix = torch.full((rows, prefix_length + 1), PAD, device=device)
        self._last, self._position, self._max_length = (
            torch.zeros(rows, dtype=torch.long, device=device) for _ in range(3)
        )
        self._total = torch.zeros(rows, dtype=sums(device), device=device)
        self.done = torch.ones(rows, dtype=torch.bool, device=device)
        self._is_end = torch.zeros(rows, dtype=torch.bool, device=device)
        self.invalid = torch.zeros(1, dtype=torch.bool, device=device)
        self._coverage: Float[Tensor, "rows keys"] | None = None
        if penalties.coverage:
            self._coverage = torch.zeros(decoder.token_mask.shape, device=device)
            self._coverage = self._coverage.to(decoder.weights_dtype)

    def begin(self, rows: Int[Tensor, " begun"], constraints: Constraints) -> None:
        """Let the sentences of these constraints have these rows."""
        self._last.index_fill_(0, rows, BEGIN)
        for tensor in (self._position, self._total, self.done, self._is_end, self._coverage):
            if tensor is not None:
                tensor.index_fill_(0, rows, 0)
        self._max_length.index_copy_(0, rows, constraints.max_length)
        self._prefix.index_fill_(0, rows, PAD)
        given = constraints.prefix
        self._prefix[:, : given.shape[1]].index_copy_(0, rows, given)

    def results(
        self, rows: Int[Tensor, " ended"]
    ) -> tuple[Int[Tensor, "ended length"], Float[Tensor, "ended 4"]]:
        """Of rows that are done the tokens; and score, log P, length and whether END came."""
        length, is_end = self._position[rows], self._is_end[rows]
        total = self._total[rows]
        coverage = None if self._coverage is None else self._coverage[rows]
        mask = self.decoder.token_mask[rows]
        score = self._penalties.score(total, length + is_end, coverage, mask)
        values = torch.stack([score, total, length.to(total.dtype), is_end.to(total.dtype)], dim=1)
        return self._tokens[rows], values

    def step(self, source_length: int, target_length: int) -> None:
        """One token of each row that is not done."""
        position = self._position
        logits, weights = self.decoder.step(
            self._last,
            position,
            source_length,
            target_length,
            weighs=self._coverage is not None,
        )
        log_p = log_probabilities_of(logits)
        live = ~self.done
        self.invalid.logical_or_((log_p[:, 0].isnan() & live).any())
        log_p = self._constrained(log_p.nan_to_num(nan=float("-inf"), neginf=float("-inf")))
        token = largest(log_p, 1)[1].squeeze(1)
        gained = log_p.gather(1, token.unsqueeze(1)).squeeze(1)
        impossible = torch.isneginf(gained)
        ends = live & (token == END) & ~impossible
        cut = live & ~ends & (impossible | (self._max_length <= position))
        counts = live & ~cut
        goes_on = counts & ~ends
        self._total.copy_(torch.where(counts, self._total + gained, self._total))
        if self._coverage is not None and weights is not None:
            seen = torch.where(counts.unsqueeze(1), weights, 0.0)
            self._coverage[:, :source_length].add_(seen)
        index = position.unsqueeze(1)
        kept = torch.where(goes_on.unsqueeze(1), token.unsqueeze(1), self._tokens.gather(1, index))
        self._tokens.scatter_(1, index, kept)
        self._last.copy_(torch.where(goes_on, token, self._last))
        self._position.add_(goes_on)
        self._is_end.logical_or_(ends)
        self.done.logical_or_(ends | cut)

    def _constrained(
        self, free: Float[Tensor, "rows vocabulary"]
    ) -> Float[Tensor, "rows vocabulary"]:
        """`Constraints.apply` for rows at positions of their own."""
        position = self._position.unsqueeze(1)
        for token_id in self._forbidden:
            free[:, token_id].fill_(float("-inf"))
        if self._min_length:
            early = position[:, 0] < self._min_length
            free[:, END] = free[:, END].masked_fill(early, float("-inf"))
        allowed = free
        if self._ngram:
            allowed = self._without_repeats(free)
        width = self._prefix.shape[1]
        if width == 1:  # no row has one
            return allowed
        forced = self._prefix.gather(1, position.clamp(max=width - 1))
        only = torch.full_like(free, float("-inf")).scatter(1, forced, free.gather(1, forced))
        return torch.where(forced == PAD, allowed, only)

    def _without_repeats(
        self, allowed: Float[Tensor, "rows vocabulary"]
    ) -> Float[Tensor, "rows vocabulary"]:
        n, position = self._ngram, self._position.unsqueeze(1)
        if self._tokens.shape[1] < n:
            return allowed
        grams = self._tokens.unfold(1, n, 1)
        offsets = torch.arange(n - 1, device=allowed.device) - (n - 1)
        newest = self._tokens.gather(1, (position + offsets).clamp(min=0)).unsqueeze(1)
        starts = torch.arange(grams.shape[1], device=allowed.device)
        repeats = (grams[..., :-1] == newest).all(-1) & (starts + n <= position)
        completing = grams[..., -1].masked_fill(~repeats, PAD)
        blocked = allowed.scatter(1, completing, float("-inf"))
        stuck = torch.isneginf(blocked).all(-1, keepdim=True)
        return torch.where(stuck, allowed, blocked)

    def unchanged(self) -> "_Unchanged":
        """Let the block's steps come to nothing."""
        lasting = [
            self._tokens, self._last, self._position, self._total, self.done, self._is_end,
            self.invalid,
        ]  # fmt: skip
        return _Unchanged(lasting + ([] if self._coverage is None else [self._coverage]))


class _Unchanged:
    """Tensors that are as before behind the block.

    Keys that the block wrote lie at positions that are written again before they are read.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors, self._before = tensors, [tensor.clone() for tensor in tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        for tensor, before in zip(self._tensors, self._before, strict=True):
            tensor.copy_(before)
