"""Adam and AdamW are torch's, under their own names; the names decide."""

from typing import Any

import pytest
import torch
from torch import nn

from attlas.errors import AttlasError
from attlas.training.config import TrainingConfig
from attlas.training.optimizers import AdamConfig, AdamWConfig, MuonConfig

REFERENCES = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SETTINGS: dict[str, Any] = {"betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.3}


def trained(build: Any) -> torch.Tensor:
    """The weights after some updates on the same numbers."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    optimizer = build(model)
    for inputs in torch.randn(5, 6, 4).double():
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()
    return model.weight.detach()


def read(**optimizer: Any) -> Any:
    return TrainingConfig.read({"max_epochs": 1, "optimizer": optimizer}, "the recipe").optimizer


@pytest.mark.parametrize("kind", REFERENCES)
def test_every_setting_reaches_the_optimiser_of_that_name(kind: str) -> None:
    found = trained(lambda model: read(kind=kind, **SETTINGS).build(model, 0.01))
    expected = {
        name: trained(lambda model, of=of: of(model.parameters(), lr=0.01, **SETTINGS))
        for name, of in REFERENCES.items()
    }
    torch.testing.assert_close(found, expected[kind])
    (other,) = REFERENCES.keys() - {kind}
    assert (found - expected[other]).abs().max() > 1e-3


def test_it_is_adam_unless_another_name_is_said() -> None:
    assert TrainingConfig(max_epochs=1).optimizer == AdamConfig()
    assert read(eps=1e-9) == AdamConfig(eps=1e-9)
    assert read(kind="adamw") == AdamWConfig()
    assert read(kind="muon", iterations=3) == MuonConfig(iterations=3)


def test_a_setting_of_another_optimiser_is_reported() -> None:
    with pytest.raises(AttlasError, match=r"optimizer\.momentum"):
        read(momentum=0.9)
    with pytest.raises(AttlasError, match="'adam', 'adamw', 'muon'"):
        read(kind="sgd")
