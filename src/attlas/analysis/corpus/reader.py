"""What can be looked into: a model that reads the texts of a corpus."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from attlas.analysis.corpus.cutting import cut
from attlas.analysis.corpus.text import Text
from attlas.errors import AttlasError, listed
from attlas.recording import Reading, Trace, observe
from attlas.recording.selection import Selection

Side = Literal["source", "target", "text"]
Fact = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Look:
    """Where a model looked in one text, in one call of one layer.

    call: which one of this text, from 0; a module that a model shares among its layers is called
    several times. relation: whether queries look at themselves or at another source. reading: of
    this text alone, (1, heads, queries, slots). ids: of its queries; None where they are no tokens.
    special: the slots whose tokens stand for no text.
    """

    text: Text
    layer: str
    call: int
    relation: Literal["self", "cross"]
    reading: Reading
    ids: tuple[int, ...] | None
    special: tuple[int, ...] = ()


class Reader(ABC):
    """A model that reads texts in batches, and is observed as it does.

    What comes of a text does not depend on the texts beside it, but for the rounding of floats.
    facts: what its numbers depend on, beside the texts. special: the ids of tokens that stand for
    no text; an unknown word is a word.
    """

    model: Any
    special: Collection[int]
    facts: Mapping[str, Fact]

    @abstractmethod
    def read(self, line: int, text: str, target: str | None = None) -> Text | None:
        """A line of the corpus, and what stands beside it as its target; None where there is
        nothing in one of them.

        Errors: `AttlasError` for a target where the model writes no text.
        """

    @abstractmethod
    def named(self, look: Look) -> tuple[str, ...]:
        """The tokens of the queries, as a person reads them."""

    @abstractmethod
    def completed(self, texts: Sequence[Text]) -> Sequence[Text]:
        """The same texts, with what the model itself writes where no target was given: one batch.

        Such a text may be longer than its source, and than the batch was made for.
        """

    @abstractmethod
    def _run(self, texts: Sequence[Text]) -> None:
        """One pass of the model over a batch."""

    @abstractmethod
    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        """The sides of the queries and of the slots of a layer."""

    def _looking(self, texts: Sequence[Text]) -> tuple[str, ...]:
        """The paths of all layers that look while a batch is read."""
        with observe(self.model) as trace:
            self._run(texts)
        return trace.layers

    @torch.no_grad()
    def looks(self, texts: Sequence[Text], layers: Sequence[str] | None = None) -> Iterator[Look]:
        """Read a batch once, and say where the model looked: layer by layer, text by text.

        What is not yet `completed` is, before. layers: paths of the layers, or patterns such as
        "encoder.*"; None = all.
        Errors: as `observe`; `AttlasError` for a layer whose axes are not the tokens of a text, and
        for a path or pattern of no module.
        """
        texts = self.completed(texts)
        modules = [path for path, _ in self.model.named_modules()]
        if unmatched := Selection.of(layers, None).unmatched(modules):
            raise AttlasError(
                f"layers of {type(self.model).__name__} that look",
                f"{unmatched}, of which it has none",
                f"choose from: {listed(self._looking(texts))}",
            )
        with observe(self.model, layers=layers) as trace:
            self._run(texts)
        for layer in trace.layers:
            sides = self._between(layer, trace)
            relation: Literal["self", "cross"] = "self" if sides[0] == sides[1] else "cross"
            lengths = [[_length(text, side) for text in texts] for side in sides]
            for call, reading in enumerate(trace.calls(layer)):
                wanted = len(texts), max(lengths[0]), max(lengths[1])
                batch, _, queries, slots = reading.shape
                if (batch, queries, slots) != wanted:
                    raise _unfit(layer, wanted, (batch, queries, slots))
                for row, text in enumerate(texts):
                    own = lengths[0][row], lengths[1][row]
                    beside = relation == "cross" and sides[0] != "text"  # which stands nowhere
                    alone = cut(reading, row, *own, across=beside)
                    ids, special = _ids(text, sides[0]), self._special(text, sides[1])
                    yield Look(text, layer, call, relation, alone, ids, special)

    def _special(self, text: Text, side: Side) -> tuple[int, ...]:
        read = enumerate(_read(text, side))
        return tuple(place for place, id_ in read if id_ in self.special)


def _read(text: Text, side: Side) -> tuple[int, ...]:
    """The ids that have been read on a side."""
    return text.source if side == "source" else text.asked or ()


def _length(text: Text, side: Side) -> int:
    return 1 if side == "text" else len(_read(text, side))


def _ids(text: Text, side: Side) -> tuple[int, ...] | None:
    """The ids that name the queries: in a decoder those that it is about to write."""
    return {"source": text.source, "target": text.wanted, "text": None}[side]


def _unfit(layer: str, wanted: tuple[int, int, int], came: tuple[int, int, int]) -> AttlasError:
    told = [" × ".join(map(str, shape)) for shape in (wanted, came)]
    return AttlasError(
        f"layers that look from token to token, {told[0]} texts, queries and slots",
        f"{told[1]} in layer {layer!r}",
        "choose other layers by their paths or by patterns (--layer)",
    )
