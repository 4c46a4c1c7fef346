"""Greedy and beam search over fixed buffers: steps that a CUDA graph replays, all places in use.

A step of a small model waits for the launches of its kernels. Here a step reads and writes tensors
that last, and asks the device for no number, so that it is captured once for each of a few lengths
and then replayed. Each place is at a position of its own: where a sentence has ended, the next one
begins. What has ended is read a round of steps later, while the next round runs.

Buffers and graphs are kept for the next search of the same kind, as long as the model lives.

On a CPU the same steps are called in place of the graphs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas._hardware import capturable
from attlas.decoding.config import DecodingConfig
from attlas.decoding.scoring import Constraints, Hypothesis, check_numbers
from attlas.decoding.static_beams import BeamRows
from attlas.decoding.static_rows import GreedyRows, StaticRows
from attlas.decoding.surface import Surface
from attlas.errors import UnsupportedError
from attlas.layers import MultiheadAttention
from attlas.models.encoder_decoder import SequenceToSequence
from attlas.models.transformer.model import Transformer
from attlas.models.transformer.state import TransformerState
from attlas.models.transformer.static_steps import StaticDecoder
from attlas.ops.cuda_graphs import Capture, Numbers, Replayable
from attlas.ops.linear import autocast, is_bf16_matmul

_ROWS = 1024  # hypotheses at once
_BYTES = 1 << 30  # of the caches: longer texts get fewer places
_ROUND = 4  # steps between two looks at what has ended
_LEAST = 16  # of lengths: 16, 32, 64, …


def check_static(model: SequenceToSequence[Any], device: torch.device) -> Transformer:
    """The model, whose searches can run as CUDA graphs on this device.

    Raises:
        UnsupportedError: If they cannot.
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
            f"for {setting} a Transformer without hooks, in which each token sees itself",
            f"a {type(model).__name__}, or one with hooks or other patterns",
            "leave decoding.cuda_graphs out",
        )
    return model


@dataclass(frozen=True, slots=True, eq=False)
class SourceBatch:
    """A batch of sources to translate.

    Args:
        lengths: How many positions of each are read: up to its last token.
        max_lengths: How many target tokens each gets at most.
    """

    source: Int[Tensor, "sentences keys"]
    token_mask: Bool[Tensor, "sentences keys"]
    constraints: Constraints
    lengths: Sequence[int]
    max_lengths: Sequence[int]

    @classmethod
    def of(
        cls,
        source: Int[Tensor, "sentences keys"],
        token_mask: Bool[Tensor, "sentences keys"],
        constraints: Constraints,
    ) -> "SourceBatch":
        """The batch, whose lengths are asked for."""
        positions = torch.arange(1, source.shape[1] + 1, device=source.device)
        lengths = (token_mask * positions).amax(dim=1).tolist()
        return cls(source, token_mask, constraints, lengths, constraints.max_length.tolist())


class StaticSearch:
    """The search of some batches; `run` gives the hypotheses of each sentence.

    They are those of `greedy_search` or `beam_search`, up to rounding.

    Args:
        batches: Each is encoded when the first of its sentences begins.
    """

    def __init__(
        self,
        model: Transformer,
        batches: Sequence[SourceBatch],
        config: DecodingConfig,
        surface: Surface | None = None,
    ) -> None:
        self._model, self._batches, self._config = model, batches, config
        self._surface = surface if config.n_best > 1 else None
        self._device = batches[0].source.device
        self._width = config.num_beams if config.method == "beam" else 1

    def run(
        self,
        before_step: Callable[[], None] | None = None,
        on_ended: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of all sentences, in order.

        Args:
            before_step: Called before every step; what it raises ends the search.
            on_ended: Called with the number of sentences that were found to have ended.
        """
        waiting = self._waiting()
        first = next(waiting)
        waiting = chain([first], waiting)
        plan = _Plan.of(self._model, first.encoded, self._batches, self._config, self._width)
        kept = _kept.pop(self._model, None)
        if kept is None or not kept.plan.suffices(plan) or kept.surface is not self._surface:
            kept = None  # its memory is free for what comes now
            kept = self._made(plan, first.encoded)
        kept.rows.clear()
        results = self._searched(kept, waiting, before_step, on_ended)
        check_numbers(kept.rows.invalid)
        found: dict[int, list[Hypothesis]] = {}
        for numbers, parts in results:
            on_host = tuple(part.cpu() for part in parts)
            found.update(zip(numbers, kept.rows.lists(on_host), strict=True))
        _kept[self._model] = kept
        return [found[number] for number in range(len(found))]

    def _searched(
        self,
        kept: "_Kept",
        waiting: Iterator["_Waiting"],
        before_step: Callable[[], None] | None,
        on_ended: Callable[[int], None] | None,
    ) -> list[tuple[list[int], tuple[Tensor, ...]]]:
        """The numbers of sentences that ended together, and their results on the device."""
        rows = kept.rows
        results: list[tuple[list[int], tuple[Tensor, ...]]] = []
        sentences: list[_Sentence | None] = [None] * kept.plan.places
        previous: tuple[Numbers, list[_Sentence | None]] | None = None
        last: _Waiting | None = None
        while True:
            free = [place for place, sentence in enumerate(sentences) if sentence is None]
            while free and (last := last if last and last.chosen else next(waiting, None)):
                places, free = free[: len(last.chosen)], free[len(last.chosen) :]
                self._begin(rows, places, last, sentences)
            under_way = [sentence for sentence in sentences if sentence is not None]
            if not under_way:
                return results
            self._advance(kept, under_way, before_step)
            over = {
                place
                for place, sentence in enumerate(sentences)
                if sentence is not None and not sentence.steps_left
            }
            if previous is not None:
                flags = previous[0].read()
                for place, (flag, sentence) in enumerate(zip(flags, previous[1], strict=True)):
                    if flag and sentence is not None and sentences[place] is sentence:
                        over.add(place)
            previous = (Numbers(rows.done.float()), list(sentences))
            if over:
                places = sorted(over)
                ended = [found for place in places if (found := sentences[place]) is not None]
                parts = rows.results(self._indices(places))
                results.append(([sentence.number for sentence in ended], parts))
                for place in places:
                    sentences[place] = None
                if on_ended is not None:
                    on_ended(len(places))

    def _waiting(self) -> Iterator["_Waiting"]:
        first = 0
        for batch in self._batches:
            batch.constraints.check_ids(self._model.target_embedding.num_embeddings)
            state = self._model.encode_for_search(batch.source, batch.token_mask)
            yield _Waiting(batch, state, first, list(range(len(batch.lengths))))
            first += len(batch.lengths)

    def _made(self, plan: "_Plan", like: TransformerState) -> "_Kept":
        decoder = StaticDecoder(
            self._model, like, plan.places, self._width, plan.source_length, plan.target_length
        )
        given = decoder, self._config, self._batches[0].constraints, plan.prefix_length
        rows: StaticRows
        if self._config.method == "greedy":
            rows = GreedyRows(*given)
        else:
            rows = BeamRows(*given, self._surface)
        capture = Capture(self._device, "a step of the search", "decoding.cuda_graphs")
        return _Kept(plan, rows, capture, self._surface)

    def _begin(
        self,
        rows: StaticRows,
        places: list[int],
        batch: "_Waiting",
        sentences: list["_Sentence | None"],
    ) -> None:
        """Let the next sentences of a batch have these places."""
        chosen = batch.chosen[: len(places)]
        del batch.chosen[: len(places)]
        given, at, source = self._indices(chosen), self._indices(places), batch.batch
        rows.decoder.begin(at, batch.encoded, given, source.token_mask)
        rows.begin(at, source.constraints.select(given))
        for place, number in zip(places, chosen, strict=True):
            sentences[place] = _Sentence(
                batch.first + number, source.lengths[number], source.max_lengths[number] + 1
            )

    def _advance(
        self,
        kept: "_Kept",
        under_way: Sequence["_Sentence"],
        before_step: Callable[[], None] | None,
    ) -> None:
        """One round of steps."""
        steps = min(_ROUND, *(sentence.steps_left for sentence in under_way))
        lengths = (
            _doubled(max(sentence.source_length for sentence in under_way)),
            _doubled(max(sentence.steps for sentence in under_way) + steps),
        )
        graph = kept.graph(*lengths, self._config.autocast)
        for _ in range(steps):
            if before_step is not None:
                before_step()
            graph.replay()
        for sentence in under_way:
            sentence.steps += steps
            sentence.steps_left -= steps

    def _indices(self, numbers: list[int]) -> Int[Tensor, " numbers"]:
        host = torch.tensor(numbers, dtype=torch.long)
        if self._device.type != "cuda":
            return host.to(self._device)
        return host.pin_memory().to(self._device, non_blocking=True)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A batch that was encoded, and the sentences of it that have not begun.

    Args:
        first: The number of its first sentence.
    """

    batch: SourceBatch
    encoded: TransformerState
    first: int
    chosen: list[int]


@dataclass(slots=True, eq=False)
class _Sentence:
    """A sentence that is under way.

    Args:
        steps_left: After so many more steps it is done in any case.
        steps: How many were made.
    """

    number: int
    source_length: int
    steps_left: int
    steps: int = 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """On what buffers and graphs depend, beside the model.

    Args:
        search: The settings, without the bounds of lengths.
        numbers: How products are computed, where the weights lie, and what of the layers is no
            weight: graphs hold on to all of it.
    """

    places: int
    source_length: int
    target_length: int
    prefix_length: int
    search: str
    numbers: tuple[object, ...]

    @classmethod
    def of(
        cls,
        model: Transformer,
        like: TransformerState,
        batches: Sequence[SourceBatch],
        config: DecodingConfig,
        width: int,
    ) -> "_Plan":
        """With as many places as there is room for."""
        source = _doubled(max(batch.source.shape[1] for batch in batches))
        target = _doubled(max(chain(*(batch.max_lengths for batch in batches))) + 1)
        caches = like.source.layers
        each = sum(cache.keys[0, :, 0].numel() + cache.values[0, :, 0].numel() for cache in caches)
        room = _BYTES // (each * (source + width * target) * caches[0].keys.element_size())
        sentences = _doubled(sum(len(batch.lengths) for batch in batches))
        prefixes = [batch.constraints.prefix.shape[1] for batch in batches]
        return cls(
            max(1, min(_ROWS // width, room, sentences)),
            source,
            target,
            max(_doubled(length) if length else 0 for length in prefixes),
            config.model_dump_json(exclude={"max_len_a", "max_len_b", "max_source_length"}),
            _numbers(model, caches[0].keys),
        )

    def suffices(self, needed: "_Plan") -> bool:
        """Return True if these buffers and graphs can be used for what is needed.

        Longer buffers can, because a step reads no more of them than it needs. More places would
        cost time at every step.
        """
        sizes = ("source_length", "target_length")
        return (self.places, self.search, self.numbers, self.prefix_length > 0) == (
            needed.places,
            needed.search,
            needed.numbers,
            needed.prefix_length > 0,
        ) and all(
            getattr(self, name) >= getattr(needed, name) for name in (*sizes, "prefix_length")
        )


@dataclass(slots=True, eq=False)
class _Kept:
    """Buffers, and the graphs of their steps."""

    plan: _Plan
    rows: StaticRows
    capture: Capture
    surface: Surface | None
    graphs: dict[tuple[int, int], Replayable] = field(default_factory=dict)

    def graph(self, source_length: int, target_length: int, autocast: Any) -> Replayable:
        """A step that reads so many positions; captured when it is asked for first."""
        lengths = source_length, target_length
        if lengths not in self.graphs:
            with self.rows.unchanged():
                self.graphs[lengths] = self.capture(partial(_step, self.rows, *lengths, autocast))
        return self.graphs[lengths]


_kept: "WeakKeyDictionary[Transformer, _Kept]" = WeakKeyDictionary()
"""Of the newest search of each model; a search that is under way has taken it."""


def _step(rows: StaticRows, source_length: int, target_length: int, name: Any) -> None:
    """What is captured."""
    device = rows.done.device
    with torch.inference_mode(), capturable(), _products(name, device):
        rows.step(source_length, target_length)


def _products(name: Any, device: torch.device) -> AbstractContextManager[object]:
    """The autocast of this name; "none": whatever holds outside, but nothing is kept of it."""
    if name != "none":
        return autocast(name, device, cached=False)
    if device.type == "meta" or not torch.is_autocast_enabled(device.type):
        return nullcontext()
    dtype = torch.get_autocast_dtype(device.type)
    return torch.autocast(device.type, dtype, cache_enabled=False)


def _numbers(model: Transformer, like: Tensor) -> tuple[object, ...]:
    device = like.device
    is_autocast = torch.is_autocast_enabled(device.type)
    switches: Any = torch.backends  # whose stubs lack some of these
    return (
        device,
        like.dtype,
        is_autocast and torch.get_autocast_dtype(device.type),
        is_bf16_matmul(),
        switches.cuda.matmul.fp32_precision,
        model.scale,
        tuple(
            (attention.pattern, attention.scale)
            for attention in model.decoder.modules()
            if isinstance(attention, MultiheadAttention)
        ),
        tuple(
            (weights.data_ptr(), weights.dtype)
            for weights in chain(model.parameters(), model.buffers())
        ),
    )


def _doubled(length: int) -> int:
    """The least of 16, 32, 64, … that is not below a length."""
    return max(_LEAST, 1 << (length - 1).bit_length())
