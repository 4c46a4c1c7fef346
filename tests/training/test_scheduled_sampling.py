"""Scheduled sampling between its two ends: teacher forcing and free running."""

from typing import Any, Literal

import pytest
import torch

from attlas.data import Batch, padded
from attlas.data.vocabulary import BEGIN, END
from attlas.models import RecurrentConfig, SequenceToSequence, TransformerConfig, build
from attlas.training.scheduled_sampling import scheduled_sampling_logits, teacher_forced

CONFIGS = {
    "bahdanau": RecurrentConfig(embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, dropout=0.0),
    "luong": RecurrentConfig(
        embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, dropout=0.0, decoder="luong",
        attention="general",
        input_feeding=True,
    ),
    "plain": RecurrentConfig(
        embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, dropout=0.0, attention="none"
    ),
    "transformer": TransformerConfig(
        embed_dim=8, num_heads=2, ffn_dim=12, encoder_layers=1, decoder_layers=2, dropout=0.0
    ),
}  # fmt: skip
TOKENS: list[Literal["argmax", "sample"]] = ["argmax", "sample"]


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> SequenceToSequence[Any]:
    torch.manual_seed(1)
    return build(CONFIGS[request.param], 12, 12).double()


@pytest.fixture
def batch() -> Batch:
    source = padded([[5, 6, 7, END], [8, END], [4, 4, END]])
    target = padded([[BEGIN, 5, 9, END], [BEGIN, 4, 5, 6, 7, END], [BEGIN, END]])
    return Batch(*source, *target, (0, 1, 2))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("token", TOKENS)
def test_with_probability_one_it_is_teacher_forcing(
    model: SequenceToSequence[Any],
    batch: Batch,
    token: Literal["argmax", "sample"],
    training: bool,
) -> None:
    model.train(training)
    found, expected = (
        (logits, torch.autograd.grad(logits.sin().sum(), [*model.parameters()]))
        for logits in (
            scheduled_sampling_logits(model, batch, 1.0, token, generator()),
            model.logits(teacher_forced(model, batch)),
        )
    )
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_with_probability_zero_and_argmax_it_is_greedy_free_running(
    model: SequenceToSequence[Any], batch: Batch
) -> None:
    found = scheduled_sampling_logits(model, batch, 0.0, "argmax", generator())
    state = model.encode(batch.source, batch.source_mask)
    token = batch.target[:, 0]
    for position in range(batch.decoder_input.shape[1]):
        logits, state = model.step(token, state)
        assert torch.allclose(found[:, position], logits, atol=1e-12)
        token = logits.argmax(-1)


def test_the_choice_is_made_for_each_token_and_by_the_generator_alone(
    model: SequenceToSequence[Any], batch: Batch
) -> None:
    fed: list[torch.Tensor] = []
    step = model.step

    def watched(tokens: torch.Tensor, state: object) -> object:
        fed.append(tokens)
        return step(tokens, state)  # type: ignore[arg-type]

    model.step = watched  # type: ignore[method-assign, assignment]
    found = [
        scheduled_sampling_logits(model, batch, 0.5, "sample", generator(seed))
        for seed in (3, 3, 4)
    ]
    steps = batch.decoder_input.shape[1]
    first, again, other = (
        torch.stack(fed[i * steps : (i + 1) * steps], 1) for i in range(len(found))
    )
    assert torch.equal(first, again)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(first, other)
    assert (first[:, 0] == BEGIN).all()
    rows = (first == batch.decoder_input)[:, 1:].float().mean(1)
    assert ((rows > 0) & (rows < 1)).any()  # within one sentence some are right and some are own


def test_gradients_reach_every_parameter(model: SequenceToSequence[Any], batch: Batch) -> None:
    logits = scheduled_sampling_logits(model, batch, 0.5, "sample", generator())
    torch.autograd.backward(logits[batch.expected_mask].logsumexp(-1).sum())
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
