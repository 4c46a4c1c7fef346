"""The optimisers are torch's, under their own names."""

from typing import Any

import pytest
import torch
from torch import nn

from attlas.training.optimiser import OptimiserConfig

REFERENCES = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SETTINGS: dict[str, Any] = {"betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.3}


def trained(build: Any) -> torch.Tensor:
    """The weights after some updates on the same numbers."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    optimiser = build(model)
    for inputs in torch.randn(5, 6, 4).double():
        optimiser.zero_grad()
        model(inputs).square().sum().backward()
        optimiser.step()
    return model.weight.detach()


@pytest.mark.parametrize("kind", REFERENCES)
def test_every_setting_reaches_the_optimiser_of_that_name(kind: str) -> None:
    found = trained(lambda model: OptimiserConfig(kind=kind, **SETTINGS).build(model, 0.01))
    wanted = {
        name: trained(lambda model, of=of: of(model.parameters(), lr=0.01, **SETTINGS))
        for name, of in REFERENCES.items()
    }
    torch.testing.assert_close(found, wanted[kind])
    (other,) = REFERENCES.keys() - {kind}
    assert (found - wanted[other]).abs().max() > 1e-3
