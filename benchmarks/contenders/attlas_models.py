"""The models of the benchmarks, as attlas is told of them."""

from pathlib import Path
from typing import Any

from attlas.training import Recipe

NEVER = 10**6
RECURRENT = {
    "kind": "recurrent", "embed_dim": 256, "hidden_dim": 256, "encoder_hidden_dim": 128,
    "dropout": 0.1,
    "tie_source": True, "tie_output": True,
}  # fmt: skip
LUONG = {**RECURRENT, "cell": "lstm", "decoder": "luong", "attention": "general"}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "kind": "transformer", "embed_dim": 256, "num_heads": 4, "ffn_dim": 1024,
        "encoder_layers": 3,
        "decoder_layers": 3, "norm": "post", "dropout": 0.1, "attention_dropout": 0.1,
        "ffn_dropout": 0.1, "tie_source": True,
    },
    "additive": {**RECURRENT, "decoder": "luong", "attention": "additive", "input_feeding": True},
    "bahdanau": {**RECURRENT, "decoder": "bahdanau", "attention": "additive"},
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
            "vocabulary": {"kind": "bpe", "size": 8000, "shared": True},
            "batching": {"max_tokens": tokens},
            "model": MODELS[model],
            "training": {"label_smoothing": 0.1, **training},
        },
        "the benchmark",
    )


def endlessly(
    model: str, corpus: Path, tokens: int, threads: int, autocast: str = "none"
) -> Recipe:
    """No end, and nothing but updates."""
    training = {
        "max_steps": NEVER, "learning_rate": 1e-4, "save_every": NEVER, "threads": threads,
        "autocast": autocast, "validation": {"every": NEVER},
    }  # fmt: skip
    return recipe(model, corpus, tokens, training)


def briefly(model: str, corpus: Path, threads: int, updates: int) -> Recipe:
    """A thousand updates are just enough that it writes sentences."""
    training = {
        "max_steps": updates, "learning_rate": 1e-3, "threads": threads,
        "schedule": {"kind": "cosine", "warmup": 3 * updates // 10, "total_steps": updates},
        "validation": {"every": updates, "translate": False},
    }  # fmt: skip
    return recipe(model, corpus, 2048, training)
