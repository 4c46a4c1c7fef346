"""The models of the benchmarks, as attlas is told of them."""

from typing import Any

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
}  # fmt: skip
