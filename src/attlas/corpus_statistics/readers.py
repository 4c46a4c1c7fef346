"""Readers: models that read the texts of a corpus while they are observed."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Shaped
from torch import Tensor

from attlas._text import as_one_line
from attlas.data import BEGIN, END, batches_by_length, padded
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError, UnsupportedError, join_names
from attlas.inference import TextClassifier, Translator
from attlas.recording import AttentionMap, DenseAttentionMap, FactoredAttentionMap, Trace, observe
from attlas.recording.generation import with_cross_position
from attlas.recording.hooks import attention_hooks
from attlas.recording.trace import Selection
from attlas.runs import BEST, Run
from attlas.runs.loaded import checkpoint_digest, settings_digest, vocabularies_digest

# One text out of a batch: its own queries and keys, without the padding of its neighbours.


def cut(
    attention_map: AttentionMap,
    row: int,
    queries: int,
    num_keys: int,
    *,
    cross_attention: bool = False,
) -> AttentionMap:
    """The first `queries` × `keys` of one batch row: the map of that text alone.

    Padding is on the right, so positions stay. Without padding nothing depends on the other texts
    of the batch: sums over queries, the last key, positions from the end.

    Args:
        cross_attention: Whether it is cross-attention; then its first query is at the first key,
            unless a pattern needs another position.

    Raises:
        AttlasError: For an attention map of another kind.
    """
    part = attention_map.at(row)
    if cross_attention:
        part = with_cross_position(part)
    if isinstance(part, DenseAttentionMap):
        allowed = None if part.allowed is None else _part(part.allowed, queries, num_keys)
        return DenseAttentionMap(part.values[:, :, :queries, :num_keys], allowed, part.position)
    if not isinstance(part, FactoredAttentionMap):
        raise AttlasError(
            "an attention map of attlas", type(part).__name__, "observe with attlas.observe"
        )
    token_mask = None if part.token_mask is None else part.token_mask[:, :num_keys]
    bias = None if part.bias is None else _part(part.bias, queries, num_keys)
    return replace(
        part,
        query=part.query[:, :, :queries],
        keys=part.keys[:, :, :num_keys],
        token_mask=None if token_mask is None or bool(token_mask.all()) else token_mask,
        bias=None if bias is None or _hides_nothing(bias) else bias,
    )


def _hides_nothing(bias: Shaped[Tensor, "#batch #heads #queries #keys"]) -> bool:
    """Return True for a mask or bias that changes nothing, as one of padding alone does here."""
    return bool(bias.all() if bias.dtype == torch.bool else (bias == 0).all())


def _part(
    mask: Shaped[Tensor, "#batch #heads #queries #keys"], queries: int, num_keys: int
) -> Shaped[Tensor, "#batch #heads #own_queries #own_slots"]:
    mask = mask[:, :, :queries] if mask.shape[2] > 1 else mask
    return mask[..., :num_keys] if mask.shape[3] > 1 else mask


# What the statistics of a run depend on, besides the texts.


def run_facts(
    run: Run, checkpoint: str, model: Any, vocabularies: Any, device: str
) -> dict[str, str]:
    """Its checkpoint by name and checksum, its settings and vocabularies by checksum.

    A run that was moved has the same.
    """
    return {
        "model": type(model).__name__,
        "checkpoint": checkpoint_digest(run, checkpoint, model, vocabularies),
        "settings": settings_digest(run),
        "vocabularies": vocabularies_digest(vocabularies),
        "device": device,
    }


# A text of a corpus, as a model reads it.


@dataclass(frozen=True, slots=True)
class CorpusText:
    """The ids of one line of the corpus.

    Args:
        line: The number of the line in the corpus, from 1.
        source: The ids that the model reads, special ones included.
        decoder_input: The ids that the decoder reads; None = not known yet.
        expected: The id that each query of the decoder predicts; None = not known yet.
        unread: How many tokens are left out because the model has no positions for them, or because
            `decoding.max_source_length` cuts them off.
        finished: True if the written text has an end.
        types: The `token_type_ids` of the source, for models that have them; else None.
    """

    line: int
    source: tuple[int, ...]
    decoder_input: tuple[int, ...] | None = None
    expected: tuple[int, ...] | None = None
    unread: int = 0
    finished: bool = True
    types: tuple[int, ...] | None = None

    @property
    def width(self) -> int:
        """Tokens of its longer side."""
        return max(len(self.source), len(self.decoder_input or ()))


Side = Literal["source", "target", "text"]
Fact = str | int | float | bool


@dataclass(frozen=True, slots=True)
class MapRecord:
    """Where a model looked in one text, in one call of one layer.

    Args:
        call: The number of the call in this text, from 0; a module that layers share is called
            several times.
        kind: Whether queries look at themselves or at another source.
        attention_map: Of this text alone, (1, heads, queries, keys).
        ids: The ids of its queries; None if they are no tokens.
        special: The keys whose tokens stand for no text.
    """

    text: CorpusText
    layer: str
    call: int
    kind: Literal["self", "cross"]
    attention_map: AttentionMap
    ids: tuple[int, ...] | None
    special: tuple[int, ...] = ()


class Reader(ABC):
    """A model that reads texts in batches while it is observed.

    The results of a text do not depend on the other texts of the batch, except for rounding.

    Attributes:
        facts: What its numbers depend on, beside the texts.
        special: The ids of tokens that stand for no text; an unknown word is a word.
    """

    model: Any
    special: Collection[int]
    facts: Mapping[str, Fact]

    @abstractmethod
    def read(self, line: int, text: str, target: str | None = None) -> CorpusText | None:
        """Encode a line of the corpus, and its target; None if one of them is empty.

        Raises:
            AttlasError: For a target where the model writes no text.
        """

    @abstractmethod
    def named(self, record: MapRecord) -> tuple[str, ...]:
        """The tokens of the queries, as a person reads them."""

    @abstractmethod
    def completed(self, texts: Sequence[CorpusText]) -> Sequence[CorpusText]:
        """Complete a batch of texts: the model writes the missing targets.

        A written target may be longer than its source, and than the batch was planned for.
        """

    @abstractmethod
    def _run(self, texts: Sequence[CorpusText]) -> None:
        """One pass of the model over a batch."""

    @abstractmethod
    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        """The sides of the queries and of the keys of a layer."""

    def _looking(self, texts: Sequence[CorpusText]) -> tuple[str, ...]:
        """The paths of all layers with attention in this pass."""
        with observe(self.model) as trace:
            self._run(texts)
        return tuple(trace)

    @torch.no_grad()
    def map_records(
        self, texts: Sequence[CorpusText], layers: Sequence[str] | None = None
    ) -> Iterator[MapRecord]:
        """Read a batch once, and yield the maps: layer by layer, text by text.

        Texts are `completed` first.

        Args:
            layers: Paths of the layers, or patterns such as "encoder.*"; None = all.

        Raises:
            AttlasError: As `observe`.
            AttlasError: For a layer whose axes are not the tokens of a text, and for a path or
                pattern of no module.
        """
        texts = self.completed(texts)
        modules = [path for path, _ in self.model.named_modules()]
        if unmatched := Selection.of(layers, None).unmatched(modules):
            raise AttlasError(
                f"attention layers of {type(self.model).__name__}",
                f"{unmatched}, of which it has none",
                f"choose from: {join_names(self._looking(texts))}",
            )
        with observe(self.model, layers=layers) as trace:
            self._run(texts)
        for layer in trace:
            sides = self._between(layer, trace)
            kind: Literal["self", "cross"] = "self" if sides[0] == sides[1] else "cross"
            lengths = [[_length(text, side) for text in texts] for side in sides]
            for call, attention_map in enumerate(trace.calls(layer)):
                expected = len(texts), max(lengths[0]), max(lengths[1])
                batch, _, queries, num_keys = attention_map.shape
                if (batch, queries, num_keys) != expected:
                    raise _unsupported(layer, expected, (batch, queries, num_keys))
                for row, text in enumerate(texts):
                    row_lengths = lengths[0][row], lengths[1][row]
                    with_cross_position = (
                        kind == "cross" and sides[0] != "text"
                    )  # which stands nowhere
                    one_at_a_time = cut(
                        attention_map, row, *row_lengths, cross_attention=with_cross_position
                    )
                    ids, special = _ids(text, sides[0]), self._special(text, sides[1])
                    yield MapRecord(
                        text=text,
                        layer=layer,
                        call=call,
                        kind=kind,
                        attention_map=one_at_a_time,
                        ids=ids,
                        special=special,
                    )

    def _special(self, text: CorpusText, side: Side) -> tuple[int, ...]:
        numbered_ids = enumerate(_read(text, side))
        return tuple(position for position, id_ in numbered_ids if id_ in self.special)


def _read(text: CorpusText, side: Side) -> tuple[int, ...]:
    """The ids that have been read on a side."""
    return text.source if side == "source" else text.decoder_input or ()


def _length(text: CorpusText, side: Side) -> int:
    return 1 if side == "text" else len(_read(text, side))


def _ids(text: CorpusText, side: Side) -> tuple[int, ...] | None:
    """The ids that name the queries: in a decoder those that it is about to write."""
    return {"source": text.source, "target": text.expected, "text": None}[side]


def _unsupported(
    layer: str, expected: tuple[int, int, int], got: tuple[int, int, int]
) -> AttlasError:
    shapes = [" × ".join(map(str, shape)) for shape in (expected, got)]
    return UnsupportedError(
        f"layers of attention from token to token, {shapes[0]} texts, queries and keys",
        f"{shapes[1]} in layer {layer!r}",
        "choose other layers by their paths or by patterns (--layer)",
    )


# A run that classifies: the text itself is read.


class ClassifierReader(Reader):
    """Text + END is read, as `TextClassifier` reads it; a text is cut to learned positions.

    Attentive pooling has one query for each text, which is no token.
    """

    def __init__(self, run: Run, *, checkpoint: str = BEST, device: str = "cpu") -> None:
        self._classifier = TextClassifier(run, checkpoint=checkpoint, device=device)
        self.model = self._classifier.model
        self.special = {END}
        self.facts = run_facts(
            run,
            checkpoint,
            self.model,
            self._classifier.vocabularies,
            self._classifier.device.type,
        )

    def read(self, line: int, text: str, target: str | None = None) -> CorpusText | None:
        if target is not None:
            raise UnsupportedError(
                "a text alone", "a target beside it", "a classifier writes no text"
            )
        if not (words := as_one_line(text)):
            return None
        all_ids = self._classifier.vocabularies.text.encode(words)
        longest = self.model.max_positions
        ids = all_ids if longest is None else all_ids[: longest - 1]
        return CorpusText(line, (*ids, END), unread=len(all_ids) - len(ids))

    def named(self, record: MapRecord) -> tuple[str, ...]:
        if record.ids is None:
            return ("text",)
        return tuple(self._classifier.vocabularies.text.pieces(record.ids))

    def completed(self, texts: Sequence[CorpusText]) -> Sequence[CorpusText]:
        return texts

    def _run(self, texts: Sequence[CorpusText]) -> None:
        source, token_mask = padded([text.source for text in texts])
        device = self._classifier.device
        self.model(source.to(device), token_mask.to(device))

    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        return ("text" if layer.startswith("pooling") else "source"), "source"


# A run that translates, read with the right translation or with its own.


_SIDES: dict[str, tuple[Side, Side]] = {
    "source": ("source", "source"),
    "target": ("target", "target"),
    "across": ("target", "source"),
}


class TranslatorReader(Reader):
    """Source + END is read; the decoder's query t has read BEGIN … y_{t−1} and is about to write
    y_t, END included (teacher forcing).

    Args:
        search: The search that writes missing targets. A text is cut as in a translation: to
            `max_source_length` and to learned positions.

    Raises:
        AttlasError: For a run without attention, and as `Run.model`.
    """

    def __init__(
        self, run: Run, search: DecodingConfig, *, checkpoint: str = BEST, device: str = "cpu"
    ) -> None:
        self._translator = Translator(run, search, checkpoint=checkpoint, device=device)
        self.model = self._translator.model
        self.special = {BEGIN, END}
        if not attention_hooks(self.model):
            raise UnsupportedError(
                "a model with attention",
                f"the run at {run.path}, which has none",
                "name another run, or train one with model.attention",
            )
        vocabularies = self._translator.vocabularies
        self.facts = run_facts(
            run, checkpoint, self.model, vocabularies, self._translator.device.type
        )
        longest = self.model.max_positions
        limits = [search.max_source_length or None, longest and longest - 1]
        self._longest = min((limit for limit in limits if limit is not None), default=None)

    def read(self, line: int, text: str, target: str | None = None) -> CorpusText | None:
        if not text.strip() or (target is not None and not target.strip()):
            return None
        vocabularies = self._translator.vocabularies
        all_ids = vocabularies.source.encode(text)
        ids = all_ids[: self._longest]
        corpus_text = CorpusText(line, (*ids, END), unread=len(all_ids) - len(ids))
        if target is None:
            return corpus_text
        right = (*vocabularies.target.encode(target), END)
        written_ids = right[: self.model.max_positions]
        lost = len(right) - len(written_ids)
        return replace(_with_target(corpus_text, written_ids), unread=corpus_text.unread + lost)

    def named(self, record: MapRecord) -> tuple[str, ...]:
        vocabularies = self._translator.vocabularies
        of_source = self.model.attention_kind(record.layer) == "source"
        side = vocabularies.source if of_source else vocabularies.target
        return tuple(side.pieces(record.ids or ()))

    def completed(self, texts: Sequence[CorpusText]) -> Sequence[CorpusText]:
        open_texts = [text for text in texts if text.decoder_input is None]
        if not open_texts:
            return texts
        sources = [text.source[:-1] for text in open_texts]
        found = self._translator.search(sources, [[]] * len(open_texts))
        best = {
            text.line: hypotheses[0] for text, hypotheses in zip(open_texts, found, strict=True)
        }
        texts_with_target = []
        for text in texts:
            if (hypothesis := best.get(text.line)) is not None:
                written_ids = (*hypothesis.tokens, *([END] if hypothesis.finished else []))
                text = replace(_with_target(text, written_ids), finished=hypothesis.finished)
            texts_with_target.append(text)
        return texts_with_target

    def _run(self, texts: Sequence[CorpusText]) -> None:
        device = self._translator.device
        source, token_mask = padded([text.source for text in texts])
        decoder_input, _ = padded([text.decoder_input or () for text in texts])
        state = self.model.encode(source.to(device), token_mask.to(device))
        self.model.decode(decoder_input.to(device), state)

    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        return _SIDES[self.model.attention_kind(layer)]


def _with_target(text: CorpusText, written_ids: Sequence[int]) -> CorpusText:
    return replace(text, decoder_input=(BEGIN, *written_ids[:-1]), expected=tuple(written_ids))


# Windows of a corpus: texts that are read before any of them is written.


@dataclass(frozen=True, slots=True)
class TextWindow:
    """Lines of a corpus in a row; `lines` counts those without a text too."""

    lines: int
    texts: tuple[CorpusText, ...]


def batches_of(texts: Sequence[CorpusText], tokens: int) -> list[list[CorpusText]]:
    """Batches by length, of at most `tokens` padded tokens; a longer text is alone.

    The length is that of the longer side, as far as it is known.
    """
    widths: Sequence[range] = [range(text.width) for text in texts]
    return [[texts[index] for index in indices] for indices in batches_by_length(widths, tokens)]


def windows_of(
    texts: Iterable[CorpusText | None], *, lines: int, tokens: int
) -> Iterator[TextWindow]:
    """Cut a corpus into windows of at most so many lines and tokens; a longer text is a window
    alone.

    The end of a window depends only on its own texts, so a continued run has the same windows as an
    uninterrupted one.

    Args:
        texts: One for each line, None = nothing in it.
    """
    window: list[CorpusText] = []
    num_texts = num_tokens = 0
    for text in texts:
        width = 0 if text is None else text.width
        if num_texts == lines or (window and num_tokens + width > tokens):
            yield TextWindow(num_texts, tuple(window))
            window, num_texts, num_tokens = [], 0, 0
        num_texts, num_tokens = num_texts + 1, num_tokens + width
        if text is not None:
            window.append(text)
    if num_texts:
        yield TextWindow(num_texts, tuple(window))
