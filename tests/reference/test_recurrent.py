"""The GRU and the LSTM in NumPy, held against PyTorch's and against attlas' recurrent layers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attlas import reference
from attlas.models.rnn.cells import Recurrence
from attlas.models.rnn.encoder import RecurrentEncoder

sizes = st.integers(1, 5)


def values(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def close(one: Tensor | np.ndarray, other: np.ndarray) -> None:
    given = values(one) if isinstance(one, Tensor) else one
    np.testing.assert_allclose(given, other, rtol=1e-10, atol=1e-12)


def redrawn(module: nn.Module, seed: int) -> nn.Module:
    noise = torch.Generator().manual_seed(seed)
    for parameter in module.double().eval().parameters():
        nn.init.normal_(parameter, generator=noise)
    return module


def of_gru(W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> reference.GRUParameters:
    """torch's gates are r, z, n; its two biases add up, but for the one inside the reset."""
    (b_r, b_z, b_n), (c_r, c_z, c_n) = map(values, b.chunk(3)), map(values, c.chunk(3))
    return reference.GRUParameters(
        *map(values, W.chunk(3)), *map(values, U.chunk(3)), b_r + c_r, b_z + c_z, b_n, c_n
    )


def of_lstm(W: Tensor, U: Tensor, b: Tensor, c: Tensor) -> reference.LSTMParameters:
    """torch's gates are i, f, g, o; its two biases add up."""
    parts = (W, U, b + c)
    return reference.LSTMParameters(*(values(gate) for part in parts for gate in part.chunk(4)))


def run(
    cell: str, x: np.ndarray, start: list[np.ndarray], weights: list[Tensor]
) -> tuple[np.ndarray, ...]:
    """The states of one layer in one direction."""
    if cell == "gru":
        return (reference.gru(x, start[0], of_gru(*weights)),)
    return reference.lstm(x, start[0], start[1], of_lstm(*weights))


@given(seed=st.integers(0, 999), input_dim=sizes, hidden_dim=sizes, batch=st.integers(1, 3))
def test_one_step_is_the_cell_of_torch(seed, input_dim, hidden_dim, batch):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, input_dim, dtype=torch.float64, generator=draw)
    h, c = torch.randn(2, batch, hidden_dim, dtype=torch.float64, generator=draw)
    gru = redrawn(nn.GRUCell(input_dim, hidden_dim), seed)
    lstm = redrawn(nn.LSTMCell(input_dim, hidden_dim), seed)
    of = (list(module.parameters()) for module in (gru, lstm))
    p, q = of_gru(*next(of)), of_lstm(*next(of))
    h_gru, (h_lstm, c_lstm) = gru(x, h), lstm(x, (h, c))
    for row in range(batch):
        close(h_gru[row], reference.gru_cell(values(x[row]), values(h[row]), p))
        found = reference.lstm_cell(values(x[row]), values(h[row]), values(c[row]), q)
        close(h_lstm[row], found[0])
        close(c_lstm[row], found[1])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@given(
    seed=st.integers(0, 999),
    input_dim=sizes,
    hidden_dim=sizes,
    layers=st.integers(1, 3),
    positions=st.integers(1, 7),
)
def test_a_sequence_is_that_of_torch_and_of_the_decoders_layers(
    cell, seed, input_dim, hidden_dim, layers, positions
):
    recurrence = redrawn(Recurrence(cell, input_dim, hidden_dim, layers, 0.3), seed)
    rnn = recurrence.rnn
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(1, positions, input_dim, dtype=torch.float64, generator=draw)
    hidden = tuple(
        torch.randn(1, layers, hidden_dim, dtype=torch.float64, generator=draw)
        for _ in range(1 if cell == "gru" else 2)
    )
    y, ends = values(x[0]), []
    for layer, weights in enumerate(rnn.all_weights):
        states = run(cell, y, [values(part[0, layer]) for part in hidden], weights)
        y = states[0]
        ends.append([part[-1] for part in states])
    start = tuple(part.transpose(0, 1).contiguous() for part in hidden)
    outputs, last = rnn(x, start if cell == "lstm" else start[0])
    close(outputs[0], y)
    for part, end in zip(last if cell == "lstm" else (last,), zip(*ends, strict=True), strict=True):
        close(part[:, 0], np.stack(end))
    close(recurrence(x, hidden)[0], y)
    for t in range(positions):  # and step by step
        top, hidden = recurrence.step(x[:, t], hidden)
        close(top[0], y[t])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@given(
    seed=st.integers(0, 999),
    layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_an_encoder_of_padded_texts_reads_each_text_alone(
    cell, seed, layers, bidirectional, lengths
):
    encoder = redrawn(RecurrentEncoder(cell, 3, 4, layers, bidirectional, 0.3), seed)
    draw = torch.Generator().manual_seed(seed)
    embedded = torch.randn(len(lengths), max(lengths), 3, dtype=torch.float64, generator=draw)
    token_mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    encoded = encoder(embedded, token_mask)
    directions = 2 if bidirectional else 1
    zeros = [np.zeros(4), np.zeros(4)]
    for row, length in enumerate(lengths):
        y, ends = values(embedded[row, :length]), []
        for layer in range(layers):
            forward, *backward = encoder.rnn.all_weights[layer * directions :][:directions]
            there = run(cell, y, zeros, forward)
            back = [run(cell, y[::-1], zeros, weights) for weights in backward]
            ends.append([[part[-1] for part in states] for states in (there, *back)])
            y = np.concatenate([there[0], *(states[0][::-1] for states in back)], axis=1)
        close(encoded.outputs[row, :length], y)
        assert not encoded.outputs[row, length:].any()
        for number, final in enumerate(encoded.final):
            expected = [[end[number] for end in of_layer] for of_layer in ends]
            close(final[row], np.array(expected))


def test_a_gru_whose_update_gate_is_open_keeps_its_state():
    zero, p = np.zeros((2, 2)), np.zeros(2)
    open_gate = reference.GRUParameters(zero, zero, zero, zero, zero, zero, p, p + 1e3, p, p)
    states = reference.gru(np.ones((4, 2)), np.array([0.3, -0.7]), open_gate)
    close(states, np.tile([0.3, -0.7], (4, 1)))


def test_an_lstm_that_forgets_nothing_adds_up():
    zero, p = np.zeros((1, 1)), np.zeros(1)
    W = np.ones((1, 1))
    # f = i = o = 1, g = tanh(x): c_t = Σ tanh(x)
    wide_open = reference.LSTMParameters(
        zero, zero, W, zero, *[zero] * 4, p + 1e3, p + 1e3, p, p + 1e3
    )
    x = np.array([[0.1], [0.2], [-0.5]])
    states, cells = reference.lstm(x, np.zeros(1), np.zeros(1), wide_open)
    close(cells, np.cumsum(np.tanh(x), axis=0))
    close(states, np.tanh(np.cumsum(np.tanh(x), axis=0)))


def test_the_sigmoid_of_numbers_that_would_overflow():
    close(reference.sigmoid(np.array([-1e4, 0.0, 1e4])), np.array([0.0, 0.5, 1.0]))
    a = torch.linspace(-30, 30, 101, dtype=torch.float64)
    np.testing.assert_allclose(reference.sigmoid(values(a)), values(a.sigmoid()), atol=1e-15)
