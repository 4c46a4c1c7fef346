"""Where a model looked for a translation: the finished hypothesis, read again."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END
from attlas.decoding.alignment import Link, links_of
from attlas.errors import AttlasError
from attlas.models.evaluating import check_evaluating
from attlas.models.sequence_to_sequence import S, SequenceToSequence
from attlas.recording import Reading, Trace, observe
from attlas.recording.tap import taps, unheard

_AT_ONCE = 2**22  # weights of one layer: 16 MiB


@dataclass(frozen=True, slots=True)
class Rereading:
    """The trace of one translation and the links of its tokens.

    trace: readings shaped (1, heads, queries, slots); None where there is nothing to see, and then
    `blank` says why. alignment: (source token, target token), see `links_of`.
    """

    trace: Trace | None
    alignment: tuple[Link, ...]
    blank: str = ""


def reread(
    model: SequenceToSequence[S],
    source: Sequence[int],
    target: Sequence[int],
    finished: bool,
    source_tokens: Sequence[str],
    tokens: Sequence[str],
) -> Rereading:
    """Read a hypothesis once more, all positions at once, and record where the model looks.

    source, target: ids without BEGIN and END; END is added to the source, and to the target where
    it is finished. The queries are the target's tokens: query t is the one that predicts token t.
    Errors: `AttlasError` where the model is in training mode.
    """
    if not taps(model):
        return Rereading(None, (), "the model has no attention")
    check_evaluating(model)
    wanted = [*target, END] if finished else [*target]
    if not wanted:
        return Rereading(None, (), "the translation has no token")
    trace = _observed(model, source, wanted)
    trace.label([source_tokens], [tokens])
    read = ["<s>", *tokens[:-1]]  # the query that predicts token t has read those before it
    for layer in trace.layers:
        match model.between(layer):
            case "source":
                trace.label_layer(layer, [source_tokens], [source_tokens])
            case "target":
                trace.label_layer(layer, [read], [tokens])
    weights = attention_to_source(trace)
    return Rereading(trace, links_of(weights, len(target), len(source)))


def check_looks_across(model: SequenceToSequence[S]) -> None:
    """That the model looks from the target to the source.

    Errors: `AttlasError` where it does not.
    """
    if all(model.between(layer) != "across" for layer in taps(model).values()):
        raise AttlasError(
            'a model that looks at its source for decoding.unknown = "replace"',
            "one that does not",
            'set decoding.unknown = "keep" or "forbid", or train with model.attention',
        )


def attention_of(
    model: SequenceToSequence[S], source: Sequence[int], target: Sequence[int]
) -> Float[Tensor, "queries slots"]:
    """`attention_to_source` of a hypothesis of at least one token, which is read again: a row for
    each token. Whoever observes the model does not hear it.
    """
    with unheard():
        trace = _observed(model, source, target)
    return _mean([trace[layer] for layer in trace.layers if model.between(layer) == "across"])


def _observed(model: SequenceToSequence[S], source: Sequence[int], wanted: Sequence[int]) -> Trace:
    """One pass over all positions; query t is the one that predicts token t of `wanted`."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    ids = torch.tensor([[*source, END]], device=device)
    asked = torch.tensor([[BEGIN, *wanted[:-1]]], device=device)
    with torch.no_grad(), observe(model) as trace:
        model.features(asked, model.encode(ids, torch.ones_like(ids, dtype=torch.bool)))
    return trace


def attention_to_source(trace: Trace) -> Float[Tensor, "queries slots"]:
    """The mean over heads, and over the layers that look from the target to the source.

    Of one block of queries after another, so that no map of all heads is held.
    Errors: `AttlasError` where no layer of the trace does.
    """
    readings = [trace[layer] for layer in trace.layers if trace.looks_across(layer)]
    if not readings:
        raise AttlasError(
            "a layer that looks from the target to the source",
            f"{', '.join(trace.layers)}",
            "align with a model whose decoder looks at its source",
        )
    return _mean(readings)


def _mean(readings: Sequence[Reading]) -> Float[Tensor, "queries slots"]:
    _, heads, queries, slots = readings[0].shape
    step = max(1, _AT_ONCE // (heads * slots))
    return torch.cat(
        [
            torch.stack(
                [
                    reading.rows(first, min(first + step, queries))[0].mean(dim=0)
                    for reading in readings
                ]
            ).mean(dim=0)
            for first in range(0, queries, step)
        ]
    )
