"""The forward pass over one text, to be run again: with other weights, or without a word."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.data.vocabulary import BEGIN, END, Vocabulary
from attlas.errors import AttlasError
from attlas.models.classifier import Classifier
from attlas.models.encoder_decoder import S, SequenceToSequence
from attlas.recording.hooks import attention_hooks

Side = Literal["source", "target", "across", "text"]
"""What the rows and the keys of a layer's map are: tokens of the source; of the target; of the
target, which look at the source; or of one text, which was read and written."""

_MOST_LOGITS = 1 << 25  # of one run: 128 MiB


@dataclass(frozen=True, slots=True)
class Prediction:
    """One prediction of a forward pass.

    Args:
        name: What was predicted, as a token or a label, or the token at its position.
        position: Of its logits; None = they are of the whole text.
        label: The id of what was predicted; None = the most probable one.
    """

    name: str
    position: int | None
    label: int | None


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """A model, and what it read and wrote of one text.

    Args:
        source: The tokens that can be taken out of the text.
        outputs: What was predicted; none of a model that gives vectors alone. `first` of them is of
            the most interest.
        side: What a layer relates, by its path.
        most_copies: With how many copies of the text it runs at a time at the most.
        _logits: (position, copies, places without) → (copies, labels); of a slice of positions
            (copies, positions, labels).
        _names: The names of ids of labels.
    """

    model: nn.Module
    source: tuple[str, ...]
    outputs: tuple[Prediction, ...]
    first: int
    side: Callable[[str], Side]
    most_copies: int
    _logits: Callable[[int | slice | None, int, range], Float[Tensor, "copies *positions labels"]]
    _names: Callable[[Sequence[int]], Sequence[str]]

    def logits(
        self, output: int, copies: int = 1, *, without: range = range(0)
    ) -> Float[Tensor, "copies labels"]:
        """The logits of an output, in float64, of so many copies of the text.

        Args:
            without: Tokens of the source that are taken out, so that others follow each other.

        Raises:
            AttlasError: If no token is left, or the output is predicted at one that is taken out.
        """
        inside = 0 <= without.start <= without.stop <= len(self.source)
        if not inside or len(without) == len(self.source):
            raise AttlasError(
                f"some of the {len(self.source)} tokens of the source, not all of them",
                f"tokens {without.start} to {without.stop - 1}",
                "erase fewer",
            )
        return self._logits(self.outputs[output].position, copies, without).double()

    def read(self) -> None:
        """Read the text once, for those who observe the model."""
        self._logits(self.outputs[0].position if self.outputs else None, 1, range(0))

    def all_logits(self) -> Float[Tensor, "outputs labels"]:
        """The logits of every output, in float64, of one run of the model; of a text that is
        labelled, the same for each output."""
        positions = [output.position for output in self.outputs]
        places = [position for position in positions if position is not None]
        if len(places) < len(positions):
            return self._logits(None, 1, range(0)).double().expand(len(positions), -1)
        return self._logits(slice(0, max(places) + 1), 1, range(0))[0, places].double()

    def names(self, labels: Sequence[int]) -> list[str]:
        """The names of these labels, or the tokens of these ids."""
        return list(self._names(labels))


def without_places(
    ids: Int[Tensor, "batch keys"], places: range, copies: int = 1
) -> Int[Tensor, "copies left"]:
    """So many copies of a row of ids, without these places."""
    return torch.cat([ids[:, : places.start], ids[:, places.stop :]], 1).expand(copies, -1)


def copies_at_once(logits: int) -> int:
    """How many copies of a text are run at a time, if one has so many logits."""
    return max(1, _MOST_LOGITS // max(logits, 1))


def translation_pass(
    model: SequenceToSequence[S],
    source: Sequence[int],
    target: Sequence[int],
    finished: bool,
    vocabulary: Vocabulary,
    source_tokens: Sequence[str],
    tokens: Sequence[str],
) -> ForwardPass | None:
    """The teacher-forced pass over a translation: output t is token t, after those before it.

    None where there is no attention, or nothing was written; arguments as of
    `trace_teacher_forced`.

    Args:
        vocabulary: Of the target.
    """
    target_ids = [*target, END] if finished else [*target]
    if not target_ids or not attention_hooks(model):
        return None
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    read = torch.tensor([[*source, END]], device=device)
    decoder_input = torch.tensor([[BEGIN, *target_ids[:-1]]], device=device)

    def logits(position: int | slice | None, copies: int, without: range) -> Tensor:
        assert position is not None
        ids = without_places(read, without, copies)
        state = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        features = model.decode(decoder_input.expand(copies, -1), state)
        return model.logits(features[:, position])

    outputs = zip(tokens, target_ids, strict=True)
    return ForwardPass(
        model=model,
        source=tuple(source_tokens),
        outputs=tuple(Prediction(name, place, id_) for place, (name, id_) in enumerate(outputs)),
        first=0,
        side=model.attention_kind,
        most_copies=copies_at_once(len(vocabulary)),
        _logits=logits,
        _names=vocabulary.pieces,
    )


def classification_pass(
    model: Classifier, ids: Sequence[int], tokens: Sequence[str], labels: Sequence[str], first: int
) -> ForwardPass:
    """The pass of a classifier over a text (ids without END): an output for each label.

    Args:
        first: The label that is decided for.
    """
    read = torch.tensor([[*ids, END]], device=next(model.parameters()).device)

    def logits(position: int | slice | None, copies: int, without: range) -> Tensor:
        found: Tensor = model(without_places(read, without, copies))
        return found

    return ForwardPass(
        model=model,
        source=tuple(tokens),
        outputs=tuple(Prediction(name, None, label) for label, name in enumerate(labels)),
        first=first,
        side=lambda layer: "source",
        most_copies=copies_at_once(len(labels)),
        _logits=logits,
        _names=lambda ids: [labels[id_] for id_ in ids],
    )
