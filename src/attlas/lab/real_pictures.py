"""The drawn pictures of the teaching texts, with the weights of trained models in their place.

The weights are those of the maps that the lab's own experiments have kept.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from attlas.analysis.roles import roles
from attlas.analysis.syntax import syntax
from attlas.data.conllu import Sentence, Word
from attlas.errors import DataError
from attlas.figures import HeadMap, heatmaps, plot_statistics
from attlas.lab.examples import KeptExample, examples_of
from attlas.lab.experiment import AttentionExample
from attlas.lab.results import SHIPPED
from attlas.recording import Trace


def kept_example(experiment: str, name: str) -> AttentionExample:
    """A map that comes with attlas.

    Raises:
        DataError: If it is not there.
    """
    found: list[KeptExample] = examples_of(experiment, "full", [SHIPPED])
    paths = {example.name: example for example in found if example.path.is_file()}
    if name not in paths:
        raise DataError(
            f"the map {name!r} of the experiment {experiment}, which comes with attlas",
            f"nothing in {SHIPPED / experiment}",
            "install attlas again",
        )
    return paths[name].open()


def _drawn(example: AttentionExample) -> HeadMap:
    """The map of its layer and head, on its first text."""
    trace, layer = example.trace, example.layer
    return _labelled(trace, layer, trace[layer].weights()[0, example.head])


def _labelled(trace: Trace, layer: str, weights: Float[Tensor, "queries keys"]) -> HeadMap:
    keys, queries = (side[0] if side else None for side in trace.tokens(layer))
    return HeadMap.of(weights, keys, queries or keys)


def word_maps(seed: int = 0) -> Figure:
    """Additive attention from English to French and to Japanese, on sentences held back.

    Nothing in it is random.
    """
    maps = {
        "English to French": _drawn(kept_example("alignment", "multi30k")),
        "English to Japanese": _drawn(kept_example("word-order", "japanese")),
    }
    return heatmaps(maps, title="Where two trained translators look", columns=2)


# The sentence of the kept map of MiniLM: word, number of its syntactic head, relation.
_TREE = (
    ("the", 2, "det"),
    ("cat", 5, "nsubj"),
    ("did", 5, "aux"),
    ("not", 5, "advmod"),
    ("cross", 0, "root"),
    ("the", 7, "det"),
    ("street", 5, "obj"),
    ("because", 11, "mark"),
    ("it", 11, "nsubj"),
    ("was", 11, "cop"),
    ("tired", 5, "advcl"),
    (".", 5, "punct"),
)


@dataclass(frozen=True)
class PatternHead:
    """A head that shows a pattern.

    Args:
        score: How much of it does: of its weight, or of its words.
    """

    pattern: str
    layer: str
    head: int
    score: float


def pattern_heads(trace: Trace) -> Iterator[PatternHead]:
    """The head that shows each of the four patterns most in the kept map of MiniLM, each once."""
    table = roles(trace)
    words = range(1, len(_TREE))  # without the full stop; 0 is [CLS]
    tree = Sentence(tuple(Word(form, form, "X", head, name) for form, head, name in _TREE))
    numbers = torch.tensor([[-1, *range(len(_TREE)), -1]])
    links = syntax(trace, [tree], numbers)

    def role(name: str) -> Callable[[str, int], float]:
        return lambda layer, head: table.role(layer, head, name).score

    def one_word(layer: str, head: int) -> float:
        return trace[layer].weights()[0, head].mean(0)[words].max().item()

    def syntactic(layer: str, head: int) -> float:
        return links.accuracy("all", layer)[0, head].item()  # from the dependent to its head

    patterns: dict[str, Callable[[str, int], float]] = {
        "positional": role("positional"),
        "syntactic": syntactic,
        "global": one_word,
        "local": role("local"),
    }
    heads = [(layer, head) for layer in trace for head in range(table.heads(layer))]
    for pattern, score in patterns.items():
        best = max(heads, key=lambda one, s=score: s(*one))  # type: ignore[misc]
        heads.remove(best)
        yield PatternHead(pattern, *best, score(*best))


def head_patterns(seed: int = 0) -> Figure:
    """Local, global, syntactic and positional heads of MiniLM on one sentence.

    They are chosen by this sentence, so the numbers are those of the best heads on it. The
    experiment `patterns` chooses by other sentences than it measures. Nothing in it is random.
    """
    trace = kept_example("patterns", "minilm").trace
    layers = list(trace)
    maps = {
        f"{one.pattern} (layer {layers.index(one.layer)}, head {one.head})": _labelled(
            trace, one.layer, trace[one.layer].weights()[0, one.head]
        )
        for one in pattern_heads(trace)
    }
    return heatmaps(maps, title="The four patterns in heads of MiniLM", columns=2)


def long_statistics(seed: int = 0) -> Figure:
    """Entropy, largest weight and weights above 0.1 of a head of stories260K, on 64 tokens.

    Nothing in it is random.
    """
    example = kept_example("sinks", "own-text")
    return plot_statistics(_drawn(example), title="A head of stories260K on a story of its own")


REAL_FIGURES: dict[str, Callable[[int], Figure]] = {
    "word-maps": word_maps,
    "head-patterns": head_patterns,
    "long-statistics": long_statistics,
}
