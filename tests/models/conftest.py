"""Small recurrent models of every kind."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from attlas.models import LocalConfig, RecurrentConfig, RecurrentModel, build

SOURCES, TARGETS = 11, 13  # the sizes of the vocabularies
LOOKS: dict[str, dict[str, Any]] = {
    "additive": {"attention": "additive", "attention_hidden": 4},
    "additive covered": {"attention": "additive", "coverage": True},
    "dot": {"attention": "dot", "hidden": 6},
    "general": {"attention": "general"},
    "concat": {"attention": "concat", "attention_hidden": 4},
    "concat covered": {"attention": "concat", "coverage": True},
    "local-m": {
        "attention": "local",
        "hidden": 6,
        "local": LocalConfig(centre="monotonic", radius=1, score="dot"),
    },
    "local-p": {"attention": "local", "local": LocalConfig(radius=2)},
    "local-p covered": {
        "attention": "local",
        "coverage": True,
        "local": LocalConfig(radius=2, score="concat"),
    },
}
WIRINGS: dict[str, dict[str, Any]] = {
    "bahdanau": {"wiring": "bahdanau"},
    "luong": {"wiring": "luong"},
    "feeding": {"wiring": "luong", "input_feeding": True},
}
CELLS: dict[str, dict[str, Any]] = {
    "gru": {"cell": "gru"},
    "lstm of two layers": {"cell": "lstm", "layers": 2},
}


def small(**settings: Any) -> RecurrentConfig:
    """No two widths alike, so that none can stand in for another."""
    widths = {"embedding": 5, "hidden": 7, "encoder_hidden": 3, "dropout": 0.0}
    return RecurrentConfig(**(widths | settings))


LOOKING = {
    " ".join(names): small(**CELLS[names[0]], **WIRINGS[names[1]], **LOOKS[names[2]])
    for names in product(CELLS, WIRINGS, LOOKS)
}
PLAIN = {f"{cell} plain": small(**CELLS[cell], attention="none") for cell in CELLS}


def made(config: RecurrentConfig) -> RecurrentModel:
    """A model of double precision whose parameters, biases too, are all far from zero."""
    torch.manual_seed(3)
    model = build(config, SOURCES, TARGETS).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3))
    return model


@pytest.fixture(params=[*LOOKING.values(), *PLAIN.values()], ids=[*LOOKING, *PLAIN])
def model(request: pytest.FixtureRequest) -> RecurrentModel:
    """A model of every kind."""
    return made(request.param)


@pytest.fixture(params=LOOKING.values(), ids=LOOKING)
def looking(request: pytest.FixtureRequest) -> RecurrentModel:
    """A model of every kind that looks."""
    return made(request.param)


@pytest.fixture
def source() -> Tensor:
    return torch.tensor([[4, 9, 7, 5, 3], [8, 6, 3, 0, 0], [3, 0, 0, 0, 0]])


@pytest.fixture
def real() -> Tensor:
    return torch.arange(5) < torch.tensor([5, 3, 1]).unsqueeze(1)


@pytest.fixture
def target() -> Tensor:
    return torch.tensor([[2, 7, 12, 5, 9, 4], [2, 11, 3, 0, 0, 0], [2, 6, 6, 6, 3, 0]])
