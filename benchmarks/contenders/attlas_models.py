"""The models of the benchmarks, as attlas is told of them."""

from pathlib import Path
from typing import Any

from attlas.training import Recipe

NEVER = 10**6
RECURRENT = {
    "kind": "recurrent", "embedding": 256, "hidden": 256, "encoder_hidden": 128, "dropout": 0.1,
    "tied_source": True, "tied_output": True,
}  # fmt: skip
LUONG = {**RECURRENT, "cell": "lstm", "wiring": "luong", "attention": "general"}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "kind": "transformer", "width": 256, "heads": 4, "feedforward": 1024, "encoder_layers": 3,
        "decoder_layers": 3, "placement": "post", "dropout": 0.1, "attention_dropout": 0.1,
        "feedforward_dropout": 0.1, "tied_source": True,
    },
    "additive": {**RECURRENT, "wiring": "luong", "attention": "additive", "input_feeding": True},
    "bahdanau": {**RECURRENT, "wiring": "bahdanau", "attention": "additive"},
    "luong": {**LUONG, "input_feeding": True},
    "luong-free": LUONG,
    "luong-gru": {**LUONG, "cell": "gru", "input_feeding": True},
}  # fmt: skip


def recipe(model: str, corpus: Path, tokens: int, training: dict[str, Any]) -> Recipe:
    """The training of one of them on the corpus, with batches of so many tokens."""
    files = [str(corpus / f"{side}.txt") for side in ("source", "target")]
    valid = [str(corpus / f"valid.{side}") for side in ("source", "target")]
    return Recipe.read(
        {
            "data": {"kind": "files", "train": files, "valid": valid},
            "vocabulary": {"kind": "bpe", "size": 8000, "joint": True},
            "batching": {"tokens": tokens},
            "model": MODELS[model],
            "training": {"smoothing": 0.1, **training},
        },
        "the benchmark",
    )


def endlessly(
    model: str, corpus: Path, tokens: int, threads: int, autocast: str = "none"
) -> Recipe:
    """No end, and nothing but updates."""
    training = {
        "updates": NEVER, "rate": 1e-4, "save_every": NEVER, "threads": threads,
        "autocast": autocast, "validation": {"every": NEVER},
    }  # fmt: skip
    return recipe(model, corpus, tokens, training)


def briefly(model: str, corpus: Path, threads: int, updates: int) -> Recipe:
    """A thousand updates are just enough that it writes sentences."""
    training = {
        "updates": updates, "rate": 1e-3, "threads": threads,
        "schedule": {"kind": "cosine", "warmup": 3 * updates // 10, "updates": updates},
        "validation": {"every": updates, "translate": False},
    }  # fmt: skip
    return recipe(model, corpus, 2048, training)
