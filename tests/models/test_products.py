"""A model is the same whichever library multiplies."""

import pytest
import torch
from torch import Tensor

from attlas.models import RecurrentConfig, TransformerConfig
from support.products import by_onednn
from support.recurrent_kinds import EVERY, PLAIN
from support.recurrent_kinds import made as made_recurrent
from support.transformer_kinds import KINDS
from support.transformer_kinds import made as made_transformer

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no oneDNN"
)
CONFIGS = {**EVERY, **PLAIN, **KINDS}


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_outputs_and_gradients_are_the_same_in_training_and_evaluation(
    config: RecurrentConfig | TransformerConfig,
    training: bool,
    source: Tensor,
    token_mask: Tensor,
    target: Tensor,
) -> None:
    made = made_transformer if isinstance(config, TransformerConfig) else made_recurrent
    model = made(config).float().train(training)  # type: ignore[arg-type]
    parameters = list(model.parameters())
    with torch.no_grad():  # away from where a ReLU bends: one of these models is at 7e-8
        for parameter in parameters:
            parameter.add_(0.01)

    def passed() -> tuple[Tensor, list[Tensor]]:
        torch.manual_seed(8)  # of dropout
        logits = model(source, target, token_mask=token_mask)
        found = torch.autograd.grad(logits.logsumexp(-1).sum(), parameters, allow_unused=True)
        return logits, [part for part in found if part is not None]

    with by_onednn() as products:
        ours, of_ours = passed()
    assert products
    with by_onednn(chosen=False):
        theirs, of_theirs = passed()
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    # Without norms gradients grow large, and a small one is the sum of large ones.
    largest = max(1.0, *(float(other.abs().max()) for other in of_theirs))
    for one, other in zip(of_ours, of_theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * largest)
