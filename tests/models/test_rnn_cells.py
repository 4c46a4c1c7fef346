"""The unrolled recurrence is PyTorch's, step by step."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attlas.models.rnn.cells import Recurrence
from attlas.models.rnn.encoder import initialise
from attlas.ops.deferred_linear import DeferredLinear
from support.recurrent_kinds import made, small


def unrolled(recurrence: Recurrence, known: Tensor, fed: Tensor, hidden: tuple[Tensor, ...]):
    cells = recurrence.unrolled(known, hidden)
    return torch.stack([cells.step(part) for part in fed.unbind(1)], dim=1)


@given(
    cell=st.sampled_from(["gru", "lstm"]),
    layers=st.integers(1, 3),
    batch=st.integers(1, 4),
    steps=st.integers(1, 5),
    known=st.integers(1, 4),
    fed=st.integers(1, 4),
    hidden=st.integers(1, 5),
    training=st.booleans(),
)
def test_unrolled_is_one_call_with_both_inputs_side_by_side(
    cell: str,
    layers: int,
    batch: int,
    steps: int,
    known: int,
    fed: int,
    hidden: int,
    training: bool,
) -> None:
    torch.manual_seed(1)
    recurrence = Recurrence(cell, known + fed, hidden, layers, dropout=0.0).double()
    recurrence.train(training)
    inputs = torch.randn(batch, steps, known + fed, dtype=torch.float64, requires_grad=True)
    before = tuple(
        torch.randn(batch, layers, hidden, dtype=torch.float64)
        for _ in range(1 if cell == "gru" else 2)
    )
    whole = recurrence(inputs, before)
    by_steps = unrolled(recurrence, inputs[..., :known], inputs[..., known:], before)
    torch.testing.assert_close(by_steps, whole)
    alone, after = [], before
    for entering in inputs.unbind(1):
        top, after = recurrence.step(entering, after)
        alone.append(top)
    torch.testing.assert_close(torch.stack(alone, dim=1), whole)
    expected = [inputs, *recurrence.parameters()]
    weight = torch.randn_like(whole)
    torch.testing.assert_close(
        torch.autograd.grad((by_steps * weight).sum(), expected),
        torch.autograd.grad((whole * weight).sum(), expected),
    )


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_graph_may_be_walked_back_twice_and_in_part(cell: str) -> None:
    recurrence = Recurrence(cell, 4, 5, 2, dropout=0.0).double()
    inputs = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    before = tuple(torch.zeros(2, 2, 5, dtype=torch.float64) for _ in range(1 + (cell == "lstm")))
    parameters = [*recurrence.parameters()]
    outputs = unrolled(recurrence, inputs[..., :1], inputs[..., 1:], before)
    whole = recurrence(inputs, before)

    torch.autograd.grad(outputs.sum(), inputs, retain_graph=True)  # of the inputs alone
    for part in (outputs[:, 0], outputs, outputs):
        found = torch.autograd.grad(part.sum(), parameters, retain_graph=True, allow_unused=True)
        upto = 1 if part.dim() == 2 else 3
        expected = torch.autograd.grad(whole[:, :upto].sum(), parameters, retain_graph=True)
        torch.testing.assert_close(list(found), list(expected))


def test_dropout_between_layers_keeps_the_mean_in_the_loop_too() -> None:
    torch.manual_seed(0)
    recurrence = Recurrence("gru", 6, 32, 2, dropout=0.5)
    before = (torch.zeros(4000, 2, 32),)
    known, fed = torch.ones(4000, 1, 3), torch.ones(4000, 1, 3)
    dropped = unrolled(recurrence, known, fed, before)
    whole = recurrence(torch.cat([known, fed], dim=-1), before)
    assert dropped.std(0).max() > 0.0  # the rows are alike but for dropout
    torch.testing.assert_close(dropped.mean(0), whole.mean(0), atol=0.01, rtol=0.05)
    recurrence.eval()
    assert unrolled(recurrence, known, fed, before).std(0).max() < 1e-6


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_training_starts_from_orthogonal_gates_and_an_open_forget_gate(cell: str) -> None:
    recurrence = Recurrence(cell, 6, 5, 2, dropout=0.0)
    initialise(recurrence)
    for of_input, of_state, bias, state_bias in recurrence.rnn.all_weights:
        for gate in of_state.split(5):
            torch.testing.assert_close(gate @ gate.T, torch.eye(5), atol=1e-5, rtol=0.0)
        assert of_input.abs().max() <= (6 / (of_input.shape[1] + 5)) ** 0.5
        both = (bias + state_bias).detach().split(5)
        opened = [float(gate.mean()) for gate in both]
        assert opened == ([0.0, 0.0, 0.0] if cell == "gru" else [0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_second_derivatives_of_a_whole_model_are_those_of_plain_linear_maps(
    cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(small(cell=cell, decoder="bahdanau")).double()
    source, target = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[2, 7], [2, 8]])
    expected = [
        parameter
        for name, parameter in model.named_parameters()
        if name.startswith(("target_embedding", "decoder.recurrence", "decoder.attention"))
    ]
    found = []
    for linear in (DeferredLinear, lambda weight, bias=None: lambda x: F.linear(x, weight, bias)):
        monkeypatch.setattr("attlas.models.rnn.cells.DeferredLinear", linear)
        loss = model(source, target).sin().sum()
        of_words = torch.autograd.grad(loss, model.target_embedding.weight, create_graph=True)[0]
        found.append(torch.autograd.grad(of_words.square().sum(), expected))
    torch.testing.assert_close(found[0], found[1])
