"""One graph that onnxruntime runs: a classifier."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

from attlas._text import count_noun
from attlas.errors import missing_extra
from attlas.export.base import OF_LABELS, of_longest, of_vocabulary
from attlas.export.onnx.builder import Graph
from attlas.export.onnx.layers import GraphLayers, encoded, pool_graph
from attlas.models import Classifier, ClassifierConfig
from attlas.models.classifier import required_lengths
from attlas.models.transformer.config import parse_patterns
from attlas.patterns import Pattern, everywhere
from attlas.patterns.shapes import Both, Either, Landmarks, Strided, Window
from attlas.runs.loaded import LoadedClassifier

# How long a text may be that a classifier sees as a whole.


_BEYOND = 4096  # tokens beyond what patterns name: what is all seen until there is seen for good
_MOST = 65_536  # tokens of the longest text that is asked about


def seen_whole(model: Classifier, config: ClassifierConfig) -> int | None:
    """So many tokens of a text, and fewer, all play a part in its label; None = any number does
    that the model can read.

    Only where the first token alone is pooled can it be otherwise. Beyond `_MOST` tokens nobody has
    looked: where the patterns name such numbers, no more than these are known to be seen.
    """
    patterns = parse_patterns(config.patterns, config.layers)
    if config.pooling != "first" or all(pattern == everywhere for pattern in patterns):
        return None
    max_length = min(_MOST, _BEYOND + config.layers * max(map(_largest_distance, patterns)))
    if model.max_positions is not None:
        max_length = min(max_length, model.max_positions - 1)  # and END
    tokens = 1
    while tokens < max_length:
        tokens = min(2 * tokens, max_length)
        # By n: how long a text has to be, its END included, for its first n tokens to be seen.
        fully_seen = required_lengths(patterns, tokens + 1)[:-1].cummax(0).values
        unseen = torch.nonzero(fully_seen > torch.arange(2, tokens + 2))
        if len(unseen):
            return int(unseen[0])
    return max_length if max_length == _MOST else None


def _largest_distance(pattern: Pattern) -> int:
    """The greatest place or distance that it names: far beyond, it does what it does before."""
    match pattern:
        case Both(left, right) | Either(left, right):
            return max(_largest_distance(left), _largest_distance(right))
        case Window(number) | Strided(number):
            return number
        case Landmarks(indices):
            return max(indices, default=0)
        case _:
            return 0


CLASSIFIER, EXAMPLE = "classifier.onnx", "classify.py"


def write_onnx_classifier(loaded: LoadedClassifier, folder: Path) -> list[str]:
    """`classifier.onnx`, the vocabulary, the labels, and `classify.py`, which uses them without
    attlas; the same logits up to rounding.

    source (batch, keys) int64, token_mask (batch, keys) bool → logits and probabilities (batch,
    labels).

    Returns:
        What a reader of the folder has to know.

    Raises:
        AttlasError: If onnx is missing.
    """
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise missing_extra("the export to ONNX", "onnx") from None
    graph = classifier_graph(loaded.model, loaded.config)
    longest, fully_seen = loaded.model.max_positions, seen_whole(loaded.model, loaded.config)
    facts = {"longest": longest, "seen": fully_seen}
    graph.save(folder / CLASSIFIER, {name: n for name, n in facts.items() if n is not None})
    loaded.vocabularies.save(folder)
    example = files("attlas.export.onnx").joinpath("templates", "classify.py")
    (folder / EXAMPLE).write_bytes(example.read_bytes())
    return [
        f"{CLASSIFIER}: {graph.signature}. In token_mask true = a token; padding may be anywhere.",
        *OF_LABELS,
        of_vocabulary(loaded.vocabularies.text),
        *([] if longest is None else [of_longest(longest, "reads")]),
        *([] if fully_seen is None else [_of_seen(fully_seen)]),
        f"python {EXAMPLE} < texts > labels writes the label of each line and its probability, by "
        "numpy, onnxruntime and sentencepiece alone. Remarks about a text go to the standard "
        "error.",
    ]


def _of_seen(fully_seen: int) -> str:
    return (
        "The label comes from what the first token sees, which of a text of more than "
        f"{count_noun(fully_seen, 'token')} may not be all: {EXAMPLE} says so, and "
        "Classification.unread of attlas counts what is not."
    )


def classifier_graph(model: Classifier, config: ClassifierConfig) -> Graph:
    """Source (batch, keys) and token_mask (batch, keys) → logits and probabilities (batch,
    labels).
    """
    graph = Graph("classifier")
    source = graph.input("source", np.int64, ("batch", "keys"))
    token_mask = graph.input("token_mask", np.bool_, ("batch", "keys"))
    layers = GraphLayers(graph, config)
    x = encoded(layers, source, token_mask, model.embedding, model.positions, model.encoder)
    pooling = pool_graph(graph, x, token_mask, model.pooling)
    logits = graph.mapped(pooling, model.output.weight, model.output.bias)
    shape = ("batch", model.output.out_features)
    graph.output(logits, "logits", np.float32, shape)
    graph.output(graph.node("Softmax", logits, axis=-1), "probabilities", np.float32, shape)
    return graph
