"""Small recurrent models of every kind, for the tests beside this file."""

from itertools import product
from typing import Any

import torch

from attlas.models import LocalConfig, RecurrentConfig, RecurrentModel, build

SOURCES, TARGETS = 11, 13  # the sizes of the vocabularies
LOOKS: dict[str, dict[str, Any]] = {
    "additive": {"attention": "additive", "attention_hidden_dim": 4},
    "additive covered": {"attention": "additive", "coverage": True},
    "dot": {"attention": "dot", "hidden_dim": 6},
    "general": {"attention": "general"},
    "concat": {"attention": "concat", "attention_hidden_dim": 4},
    "concat covered": {"attention": "concat", "coverage": True},
    "local-m": {
        "attention": "local",
        "hidden_dim": 6,
        "local": LocalConfig(centre="monotonic", radius=1, score="dot"),
    },
    "local-p": {"attention": "local", "local": LocalConfig(radius=2)},
    "local-p covered": {
        "attention": "local",
        "coverage": True,
        "local": LocalConfig(radius=2, score="concat"),
    },
}
READOUTS: dict[str, dict[str, Any]] = {
    "gru linear": {"readout": "linear"},
    "lstm linear output": {"cell": "lstm", "readout": "linear_output", "tie_output": True},
}
WIRINGS: dict[str, dict[str, Any]] = {
    "bahdanau": {"decoder": "bahdanau"},
    "luong": {"decoder": "luong"},
    "scheduled_sampling": {"decoder": "luong", "input_feeding": True},
}
CELLS: dict[str, dict[str, Any]] = {
    "gru": {"cell": "gru"},
    "lstm of two layers": {"cell": "lstm", "layers": 2},
}


def small(**settings: Any) -> RecurrentConfig:
    """No two widths alike, so that none can stand in for another."""
    widths = {"embed_dim": 5, "hidden_dim": 7, "encoder_hidden_dim": 3, "dropout": 0.0}
    return RecurrentConfig(**(widths | settings))


EVERY = {
    " ".join(names): small(**CELLS[names[0]], **WIRINGS[names[1]], **LOOKS[names[2]])
    for names in product(CELLS, WIRINGS, LOOKS)
}
PLAIN = {f"{cell} plain": small(**CELLS[cell], attention="none") for cell in CELLS}
# Every wiring with every way to look once, the cells in turn.
LOOKING = {
    name: EVERY[name]
    for n, (wiring, look) in enumerate(product(WIRINGS, LOOKS))
    for name in [f"{list(CELLS)[n % 2]} {wiring} {look}"]
} | {name: small(**settings) for name, settings in READOUTS.items()}


def made(config: RecurrentConfig) -> RecurrentModel:
    """A model of double precision whose parameters, biases too, are all far from zero."""
    torch.manual_seed(3)
    model = build(config, SOURCES, TARGETS).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3))
    return model
