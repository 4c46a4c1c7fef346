"""From a text to its label."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, overload

import torch

from attlas._text import as_one_line, count_noun, whole_text
from attlas.data import LabelledVocabularies, Vocabulary, batches_by_length, padded
from attlas.data.vocabulary import END, UNKNOWN
from attlas.errors import AttlasError
from attlas.inference.forward_pass import ForwardPass, classification_pass
from attlas.models import Classifier
from attlas.models.encoder_decoder import check_evaluating
from attlas.recording import Trace, observe
from attlas.runs import FromRun, Run

# What a text classifier answers.


@dataclass(frozen=True)
class Classification:
    """One classified text; its trace is computed on first access.

    Args:
        label: The most probable one; among equals the first.
        probability: The probability of the label.
        probabilities: Of every label, by name; they sum to 1.
        text: As it was read, in one line.
        unread: How many of its tokens have no influence: the model has no positions for them, or it
            pools only the first token, which cannot see them; 0 = read whole.
        known: Whether any of its words is, at least in part, in the vocabulary; otherwise the label
            says nothing about this text.
    """

    text: str
    label: str
    probability: float
    probabilities: Mapping[str, float]
    unread: int
    known: bool
    _tokens: Callable[[], tuple[str, ...]] = field(repr=False, compare=False)
    _look: Callable[[Sequence[str]], Trace] = field(repr=False, compare=False)
    _forward_pass: Callable[[Sequence[str]], ForwardPass] = field(repr=False, compare=False)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """One label per token that was read, for the axes of a map; END included."""
        return self._tokens()

    @cached_property
    def trace(self) -> Trace:
        """The attention of every layer, labelled: one pass of the model over this text, made once.

        It uses the model's weights at the first access, so access it before training further.
        """
        return self._look(self.tokens)

    @property
    def forward_pass(self) -> ForwardPass:
        """The pass of the trace, to be run again."""
        return self._forward_pass(self.tokens)


# What a reader has to know of a classification beside its label.


EMPTY, NOTHING_KNOWN, UNREAD = (
    "there is no word in them",
    "none of their words is in the vocabulary, so their labels say nothing about them",
    "longer than the model can read: the rest of them had no part in their labels",
)
"""What there is to say, of many texts at once."""


def classification_remarks(classification: Classification) -> dict[str, str]:
    """Remarks, by the sentence for many texts; none if the text was read whole and has known
    words.
    """
    notes = {}
    if not classification.text:
        notes[EMPTY] = "there is no word in it"
    elif not classification.known:
        notes[NOTHING_KNOWN] = (
            "none of its words is in the vocabulary, so its label says nothing about it"
        )
    if classification.unread:
        tokens = count_noun(classification.unread, "token")
        notes[UNREAD] = f"longer than the model can read: {tokens} of it had no part in its label"
    return notes


_POOLED = ("text",)  # the query of a pooling stands for the whole text


class TextClassifier(FromRun):
    """classifier("text") → `Classification`: label texts with a run.

    A text is read as the training data was: white space and `<br />` become single spaces. It is
    read whole, except for what `Classification.unread` counts. Several threads may call it at once.
    The probabilities of a text do not depend on the other texts, except for rounding.

    Args:
        run: A `Run`, or the path of one.
        checkpoint, device: As for `Translator`.

    Example:
        >>> from attlas.data.vocabularies import LabelledVocabularies, Labels
        >>> from attlas.data.vocabulary import Words
        >>> from attlas.models import ClassifierConfig, build_classifier
        >>> words = Words.built(["good bad"], 100)
        >>> model = build_classifier(ClassifierConfig(), len(words), 2)
        >>> vocabularies = LabelledVocabularies(words, Labels(("neg", "pos")))
        >>> classifier = TextClassifier.of(model, vocabularies)  # or TextClassifier("runs/imdb")
        >>> sorted(classifier("good").probabilities)
        ['neg', 'pos']
    """

    def __init__(
        self, run: Run | Path | str, *, checkpoint: str = "best", device: str = "cpu"
    ) -> None:
        opened_run = run if isinstance(run, Run) else Run(run)
        model = opened_run.classifier(checkpoint, device)
        self._set_up(
            model,
            opened_run.labelled_vocabularies(),
            {"run": str(opened_run.path), "checkpoint": checkpoint},
        )

    @classmethod
    def from_pretrained(
        cls, name: Path | str, *, checkpoint: str = "best", device: str = "cpu", **options: Any
    ) -> "TextClassifier":
        """The classifier of a run in a folder, or of the Hugging Face Hub by its name.

        See `Run.from_pretrained`.
        """
        return cls(Run.from_pretrained(name, **options), checkpoint=checkpoint, device=device)

    @classmethod
    def of(cls, model: Classifier, vocabularies: LabelledVocabularies) -> "TextClassifier":
        """Make a classifier from a model, which is put into evaluation mode."""
        classifier = cls.__new__(cls)
        classifier._set_up(model.eval(), vocabularies, {})
        return classifier

    def _set_up(
        self, model: Classifier, vocabularies: LabelledVocabularies, origin: Mapping[str, str]
    ) -> None:
        self.model, self.vocabularies = model, vocabularies
        self.device = next(model.parameters()).device
        self._origin = dict(origin)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels."""
        return self.vocabularies.labels.names

    @property
    def facts(self) -> Mapping[str, str | int]:
        """Facts about the model, for a report."""
        return {
            **self._origin,
            "model": type(self.model).__name__,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "vocabulary": len(self.vocabularies.text),
            "labels": ", ".join(self.labels),
        }

    @overload
    def __call__(self, text: str) -> Classification: ...

    @overload
    def __call__(self, text: list[str] | tuple[str, ...]) -> list[Classification]: ...

    def __call__(
        self, text: str | list[str] | tuple[str, ...]
    ) -> Classification | list[Classification]:
        """Classify one text, or a list of texts as `stream` does.

        Raises:
            AttlasError: For anything but text in Unicode.
        """
        if isinstance(text, list | tuple):
            return list(self.stream(text))
        _check(text, "for several texts call classifier(list(texts)) or classifier.stream")
        (classification,) = self._answered([self._read(text)])
        return classification

    def stream(
        self, texts: Iterable[str], *, window: int = 1024, tokens: int = 8192
    ) -> Iterator[Classification]:
        """One classification per text, in the order of the texts, while they come in.

        For speed, `window` texts at a time are sorted by length and read in batches of at most
        `tokens` padded tokens (a longer text is a batch of its own). Nothing comes out before a
        window is full or the texts end.
        """
        if isinstance(texts, str):
            raise AttlasError("several texts", "one text", "pass a list, or call classifier(text)")
        if not isinstance(texts, Iterable):
            raise AttlasError("several texts", type(texts).__name__, "pass a list of str")
        if window < 1 or tokens < 1:
            raise AttlasError(
                "a window and a batch of at least 1", f"{window} and {tokens}", "raise them"
            )
        return self._windows(iter(texts), window, tokens)

    def _windows(self, texts: Iterator[str], window: int, tokens: int) -> Iterator[Classification]:
        while lines := [self._read(text) for text in islice(texts, window)]:
            results: dict[int, Classification] = {}
            for indices in batches_by_length([line.ids for line in lines], tokens):
                classifications = self._answered([lines[index] for index in indices])
                results.update(zip(indices, classifications, strict=True))
            yield from (results[index] for index in range(len(lines)))

    def _read(self, text: str) -> "_Line":
        _check(text, "pass each text as a str")
        text = as_one_line(text)
        ids = self.vocabularies.text.encode(text)
        longest = self.model.max_positions
        ids_read = ids if longest is None else ids[: longest - 1]
        return _Line(text, tuple(ids_read), len(ids) - len(ids_read))

    @torch.no_grad()
    def _answered(self, lines: Sequence["_Line"]) -> list[Classification]:
        check_evaluating(self.model)
        source, token_mask = padded([[*line.ids, END] for line in lines])
        logits = self.model(source.to(self.device), token_mask.to(self.device))
        rows = logits.double().softmax(-1).tolist()
        overlooked = self.model.num_unreachable([len(line.ids) for line in lines])
        return [
            self._classification(line, row, line.cut + unseen)
            for line, row, unseen in zip(lines, rows, overlooked, strict=True)
        ]

    def _classification(
        self, line: "_Line", row: Sequence[float], num_unread: int
    ) -> Classification:
        vocabulary = self.vocabularies.text
        best = max(range(len(row)), key=row.__getitem__)
        return Classification(
            text=line.text,
            label=self.labels[best],
            probability=row[best],
            probabilities=dict(zip(self.labels, row, strict=True)),
            unread=num_unread,
            known=vocabulary.knows(line.text, line.ids),
            _tokens=partial(_as_tokens, vocabulary, line),
            _look=partial(_traced, self.model, line.ids),
            _forward_pass=partial(
                classification_pass, self.model, line.ids, labels=self.labels, first=best
            ),
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """A text and the ids that are read of it; `cut` counts the ids beyond them."""

    text: str
    ids: tuple[int, ...]
    cut: int


def _as_tokens(vocabulary: Vocabulary, line: _Line) -> tuple[str, ...]:
    # Only an unknown token has to be looked up in the text, which is segmented anew for it.
    unknown = UNKNOWN in line.ids
    pieces = vocabulary.pieces_of(line.text) if unknown else vocabulary.pieces(line.ids)
    return (*pieces[: len(line.ids)], *vocabulary.pieces([END]))


@torch.no_grad()
def _traced(model: Classifier, ids: Sequence[int], tokens: Sequence[str]) -> Trace:
    device = next(model.parameters()).device
    with observe(model) as trace:
        model(torch.tensor([[*ids, END]], device=device))
    trace.label([tokens])
    for layer in trace:
        pooled = layer.startswith("pooling")
        trace.label_layer(layer, [tokens], [_POOLED if pooled else tokens])
    return trace


def _check(text: object, advice: str) -> None:
    if not isinstance(text, str):
        raise AttlasError("one text, a str", type(text).__name__, advice)
    whole_text(text)
