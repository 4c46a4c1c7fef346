"""Runs of small models with random weights, for the tests beside this file."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attlas.config import write_toml
from attlas.data import (
    END,
    LabelledVocabularies,
    Labels,
    Vocabularies,
    Vocabulary,
    Words,
    train_subwords,
)
from attlas.decoding import DecodingConfig
from attlas.models import (
    ClassifierConfig,
    RecurrentConfig,
    SequenceToSequence,
    TransformerConfig,
    build,
    build_classifier,
)
from attlas.runs import Checkpoint, CheckpointStore, Run

WORDS = Vocabularies(Words([f"a{n}" for n in range(17)]), Words([f"b{n}" for n in range(20)]))
JOINT = Vocabularies(WORDS.target, WORDS.target)


def small(**settings: Any) -> TransformerConfig:
    """Two heads of eight; nothing random."""
    sizes = {
        "embed_dim": 16,
        "num_heads": 2,
        "ffn_dim": 24,
        "encoder_layers": 2,
        "decoder_layers": 3,
    }
    return TransformerConfig(**(sizes | {"dropout": 0.0} | settings))


RECURRENT = RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=8, dropout=0.0)

# What every format can hold, and what Marian cannot.
MARIAN = {
    "post": small(norm="post"),
    "own output": small(norm="post", tie_output=False),
    "gelu": small(norm="post", activation="gelu", ffn_dim=16),
    "shared keys, no bias": small(norm="post", num_heads=4, num_kv_heads=2, bias=False),
    "some biases": small(norm="post", num_kv_heads=1, bias=("q", "out", "ffn")),
    "one embedding": small(norm="post", tie_source=True),
    "one embedding, own output": small(norm="post", tie_source=True, tie_output=False),
}
OTHERS = {
    "pre": small(),
    "rms, swiglu, rotary": small(
        norm_type="rms", activation="swiglu", positions="rotary", bias=False
    ),
    "rotary, one key head": small(positions="rotary", num_kv_heads=1, tie_output=False),
    "gelu, learned": small(activation="gelu", positions="learned", max_positions=60),
    "no order": small(positions="none", norm="post", norm_type="rms", tie_source=True),
}
NORMED = {  # the same of norms of queries and keys
    "qk_norm": small(qk_norm=True, norm="post"),
    "qk_norm, rotary, shared keys": small(
        qk_norm=True, positions="rotary", num_heads=4, num_kv_heads=2, norm_type="rms"
    ),
}
PATTERNED = {  # none of the formats but ONNX and safetensors has a place for patterns
    "window": small(encoder_patterns=("window(3)",), decoder_patterns=("window(2)",)),
    "a pattern for each layer": small(
        encoder_patterns=("either(window(2), landmarks(0, 5))", "strided(3)"),
        decoder_patterns=("everywhere", "strided(2)", "either(window(1), landmarks(0))"),
        encoder_layers=2,
        decoder_layers=3,
        positions="rotary",
    ),
    "nothing to see": small(encoder_patterns=("both(strided(40), window(2))",)),
}


def run_of(
    folder: Path,
    config: TransformerConfig | RecurrentConfig,
    vocabularies: Vocabularies | None = None,
    **decoding: Any,
) -> Run:
    """A run whose weights, biases and scales too, are all far from what a model begins with."""
    if vocabularies is None:
        vocabularies = JOINT if config.tie_source else WORDS
    torch.manual_seed(3)
    model = build(config, len(vocabularies.source), len(vocabularies.target))
    folder.mkdir()
    vocabularies.save(folder)
    tables = {"model": config.model_dump(), "decoding": DecodingConfig(**decoding).model_dump()}
    return _written(folder, tables, model)


def small_classifier(**settings: Any) -> ClassifierConfig:
    """Two heads of eight and a window; nothing random."""
    sizes = {
        "embed_dim": 16,
        "num_heads": 2,
        "ffn_dim": 24,
        "layers": 2,
        "patterns": ("window(3)",),
    }
    return ClassifierConfig(**(sizes | {"dropout": 0.0} | settings))


def classifier_run(
    folder: Path,
    config: ClassifierConfig,
    vocabulary: Vocabulary = WORDS.source,
    labels: tuple[str, ...] = ("dull", "fine", "grand ✓"),
) -> Run:
    """The same of a classifier."""
    torch.manual_seed(3)
    model = build_classifier(config, len(vocabulary), len(labels))
    folder.mkdir()
    LabelledVocabularies(vocabulary, Labels(labels)).save(folder)
    return _written(folder, {"model": config.model_dump()}, model)


def _written(folder: Path, tables: dict[str, Any], model: nn.Module) -> Run:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3))
    (folder / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    (folder / "provenance.json").write_text(json.dumps({"seed": 3}), encoding="utf-8")
    store = CheckpointStore(folder)
    store.write("00000007", Checkpoint(model.state_dict()))
    store.point("best", "00000007")
    return Run(folder)


def subwords() -> Vocabularies:
    """Two small sentencepiece vocabularies."""
    texts = [f"The {n}th house  is {n % 7} miles away — naïve, “quoted” & 日本." for n in range(90)]
    others = [text.replace("house", "Haus").replace("is", "ist") for text in texts]
    return Vocabularies(train_subwords(texts, "bpe", 340), train_subwords(others, "unigram", 350))


def sentences(vocabulary: int, lengths: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Random sources, each ended by END, and which of their keys are real."""
    torch.manual_seed(5)
    token_mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    source = torch.randint(4, vocabulary, token_mask.shape) * token_mask
    source[torch.arange(len(lengths)), token_mask.sum(1) - 1] = END
    return source, token_mask


@torch.no_grad()
def logits_of(
    model: SequenceToSequence[Any], source: Tensor, token_mask: Tensor, target: Tensor
) -> Tensor:
    """What our own model says."""
    return model(source, target, token_mask=token_mask)


def leaning(run: Run, token: int, by: float) -> Run:
    """The run, whose model writes this token of the target more often."""
    model: Any = run.model()
    with torch.no_grad():
        model.output.bias[token] += by
    store = CheckpointStore(run.path)
    store.write("00000008", Checkpoint(model.state_dict()))
    store.point("best", "00000008")
    return Run(run.path)
