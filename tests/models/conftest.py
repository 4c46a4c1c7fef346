"""Small recurrent models of every kind, and a batch for them."""

import pytest
import torch
from torch import Tensor

from attlas.models import RecurrentModel
from support.recurrent_kinds import EVERY, LOOKING, PLAIN, made


@pytest.fixture(params=[*EVERY.values(), *PLAIN.values()], ids=[*EVERY, *PLAIN])
def every_model(request: pytest.FixtureRequest) -> RecurrentModel:
    """Every cell, wiring and way to look."""
    return made(request.param)


@pytest.fixture(params=[*LOOKING.values(), *PLAIN.values()], ids=[*LOOKING, *PLAIN])
def model(request: pytest.FixtureRequest) -> RecurrentModel:
    """Every wiring and way to look, with or without."""
    return made(request.param)


@pytest.fixture(params=LOOKING.values(), ids=LOOKING)
def looking(request: pytest.FixtureRequest) -> RecurrentModel:
    """Every wiring and way to look."""
    return made(request.param)


@pytest.fixture
def source() -> Tensor:
    return torch.tensor([[4, 9, 7, 5, 3], [8, 6, 3, 0, 0], [3, 0, 0, 0, 0]])


@pytest.fixture
def token_mask() -> Tensor:
    return torch.arange(5) < torch.tensor([5, 3, 1]).unsqueeze(1)


@pytest.fixture
def target() -> Tensor:
    return torch.tensor([[2, 7, 12, 5, 9, 4], [2, 11, 3, 0, 0, 0], [2, 6, 6, 6, 3, 0]])
