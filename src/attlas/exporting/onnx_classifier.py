"""One graph that onnxruntime runs: a classifier."""

from importlib.resources import files
from pathlib import Path

import numpy as np

from attlas.data.amount import amount
from attlas.errors import missing_extra
from attlas.exporting.graph import Graph
from attlas.exporting.graph_encoder import encoded
from attlas.exporting.graph_layers import GraphLayers
from attlas.exporting.graph_pooling import pooled
from attlas.exporting.remarks import OF_LABELS, of_longest, of_vocabulary
from attlas.exporting.seen import seen_whole
from attlas.exporting.subject import ClassifierSubject
from attlas.models import Classifier, ClassifierConfig

CLASSIFIER, EXAMPLE = "classifier.onnx", "classify.py"


def write_onnx_classifier(subject: ClassifierSubject, folder: Path) -> list[str]:
    """`classifier.onnx`, the vocabulary, the labels, and `classify.py`, which uses them without
    attlas; the same logits up to rounding.

    source (batch, slots) int64, real (batch, slots) bool → logits and probabilities (batch,
    labels).

    Gives back what a reader of the folder has to know.
    Errors: `AttlasError` where onnx is missing.
    """
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise missing_extra("the export to ONNX", "onnx") from None
    graph = classifier_graph(subject.model, subject.config)
    longest, seen = subject.model.longest, seen_whole(subject.model, subject.config)
    facts = {"longest": longest, "seen": seen}
    graph.save(folder / CLASSIFIER, {name: n for name, n in facts.items() if n is not None})
    subject.vocabularies.save(folder)
    example = files("attlas.exporting").joinpath("onnx_classifier_example.py")
    (folder / EXAMPLE).write_bytes(example.read_bytes())
    return [
        f"{CLASSIFIER}: {graph.signature}. In real true = a token; padding may stand anywhere.",
        *OF_LABELS,
        of_vocabulary(subject.vocabularies.text),
        *([] if longest is None else [of_longest(longest, "reads")]),
        *([] if seen is None else [_of_seen(seen)]),
        f"python {EXAMPLE} < texts > labels writes the label of each line and its probability, by "
        "numpy, onnxruntime and sentencepiece alone. What a reader has to know of a text is told "
        "on the standard error.",
    ]


def _of_seen(seen: int) -> str:
    return (
        "The label comes from what the first token sees, which of a text of more than "
        f"{amount(seen, 'token')} may not be all: {EXAMPLE} says so, and Classification.unread of "
        "attlas counts what is not."
    )


def classifier_graph(model: Classifier, config: ClassifierConfig) -> Graph:
    """Source (batch, slots) and which slots are real → logits and probabilities (batch, labels)."""
    graph = Graph("classifier")
    source = graph.input("source", np.int64, ("batch", "slots"))
    real = graph.input("real", np.bool_, ("batch", "slots"))
    layers = GraphLayers(graph, config)
    x = encoded(layers, source, real, model.embedding, model.positions, model.encoder)
    pooling = pooled(graph, x, real, model.pooling)
    logits = graph.mapped(pooling, model.output.weight, model.output.bias)
    shape = ("batch", model.output.out_features)
    graph.output(logits, "logits", np.float32, shape)
    graph.output(graph.node("Softmax", logits, axis=-1), "probabilities", np.float32, shape)
    return graph
