"""The settings of the benchmarks, as JoeyNMT is told of them."""

from pathlib import Path
from typing import Any

NEVER = 10**6


def config(model: str, corpus: Path, folder: Path, tokens: int) -> dict[str, Any]:
    """What would stand in its configuration file; tokens: of a batch in training."""
    return {
        "name": "benchmark",
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": str(corpus / "train"),
            "dev": str(corpus / "valid"),
            "dataset_type": "plain",
            "src": _side(corpus, "source"),
            "trg": _side(corpus, "target"),
        },
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": _layers(model, encoder=True),
            "decoder": _layers(model, encoder=False),
        },
        "training": {
            "batch_size": tokens,
            "batch_type": "token",
            "normalization": "tokens",
            "label_smoothing": 0.1,
            "optimizer": "adam",
            "learning_rate": 1e-4,
            "learning_rate_min": 0.0,
            "scheduling": "exponential",  # it wants one: by a factor of 1, once an epoch
            "decrease_factor": 1.0,
            "clip_grad_norm": 1.0,
            "epochs": NEVER,
            "logging_freq": 100,
            "validation_freq": NEVER,
        },
        "testing": {},
    }


def _side(corpus: Path, lang: str) -> dict[str, Any]:
    """The data of one language."""
    vocabulary = str(corpus / "vocabulary.txt")
    return {"lang": lang, "level": "word", "lowercase": False, "voc_file": vocabulary}


def _layers(kind: str, encoder: bool) -> dict[str, Any]:
    """The encoder or the decoder."""
    embeddings = {"embedding_dim": 256, "scale": kind == "transformer", "dropout": 0.1}
    if kind == "transformer":
        return {
            "type": "transformer", "num_layers": 3, "num_heads": 4, "embeddings": embeddings,
            "hidden_size": 256, "ff_size": 1024, "dropout": 0.1, "layer_norm": "post",
        }  # fmt: skip
    cell = "lstm" if kind == "luong" else "gru"
    either = {"type": "recurrent", "rnn_type": cell, "embeddings": embeddings, "num_layers": 1}
    if encoder:
        return {**either, "hidden_size": 128, "bidirectional": True, "dropout": 0.1}
    attention = "bahdanau" if kind == "additive" else "luong"
    return {
        **either, "hidden_size": 256, "dropout": 0.1, "hidden_dropout": 0.1,
        "attention": attention, "input_feeding": True, "init_hidden": "bridge",
    }  # fmt: skip
