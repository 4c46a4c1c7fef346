"""The recurrent encoder and the bridge behind it."""

import pytest
import torch
from torch import nn

from attlas.errors import AttlasError
from attlas.models.rnn.encoder import Bridge, RecurrentEncoder

LENGTHS = torch.tensor([3, 6, 1, 4])
REAL = torch.arange(6) < LENGTHS.unsqueeze(1)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_each_row_is_read_as_if_it_were_alone(cell: str, layers: int, bidirectional: bool) -> None:
    torch.manual_seed(0)
    encoder = RecurrentEncoder(cell, 4, 3, layers, bidirectional, dropout=0.0).double()
    embedded = torch.randn(4, 6, 4, dtype=torch.float64)
    encoded = encoder(embedded, REAL)
    directions = 2 if bidirectional else 1
    for row, length in enumerate(LENGTHS.tolist()):
        outputs, final = encoder.rnn(embedded[row : row + 1, :length])
        torch.testing.assert_close(encoded.outputs[row : row + 1, :length], outputs)
        assert not encoded.outputs[row, length:].any()
        parts = final if isinstance(final, tuple) else (final,)
        for whole, part in zip(encoded.final, parts, strict=True):
            for layer in range(layers):
                for direction in range(directions):
                    torch.testing.assert_close(
                        whole[row, layer, direction], part[layer * directions + direction, 0]
                    )


def test_the_final_states_lie_where_each_direction_ends() -> None:
    encoder = RecurrentEncoder("gru", 4, 3, 1, bidirectional=True, dropout=0.0)
    encoded = encoder(torch.randn(4, 6, 4), REAL)
    last = encoded.outputs[torch.arange(4), LENGTHS - 1]
    torch.testing.assert_close(encoded.final[0][:, 0, 0], last[:, :3])
    torch.testing.assert_close(encoded.final[0][:, 0, 1], encoded.outputs[:, 0, 3:])


def test_a_row_without_a_token_encodes_to_zeros() -> None:
    encoder = RecurrentEncoder("lstm", 4, 3, 2, bidirectional=True, dropout=0.0)
    token_mask = REAL.clone()
    token_mask[1] = False
    encoded = encoder(torch.randn(4, 6, 4), token_mask)
    assert not encoded.outputs[1].any()
    assert not any(part[1].any() for part in encoded.final)
    nothing = encoder(torch.randn(4, 6, 4), torch.zeros_like(token_mask))
    assert not nothing.outputs.any()


def test_padding_before_a_token_is_the_callers_error() -> None:
    encoder = RecurrentEncoder("gru", 4, 3, 1, bidirectional=True, dropout=0.0)
    with pytest.raises(AttlasError, match="padding on the right of every source; got a real token"):
        encoder(torch.randn(4, 6, 4), REAL.flip(1))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_bridge_is_bahdanaus(cell: str) -> None:
    bridge = Bridge(cell, input_dim=3, hidden_dim=5, layers=2, directions=1)
    parts = 1 if cell == "gru" else 2
    final = tuple(torch.randn(4, 2, 2, 3) for _ in range(parts))
    hidden = bridge(final)
    assert len(hidden) == parts
    for index, (part, made) in enumerate(zip(final, hidden, strict=True)):
        for layer in range(2):
            of = bridge.matrices[2 * index + layer]
            assert isinstance(of, nn.Linear)
            expected = torch.tanh(part[:, layer, 1] @ of.weight.T + of.bias)
            torch.testing.assert_close(made[:, layer], expected)


def test_a_bridge_of_two_directions_reads_forward_beside_backward() -> None:
    bridge = Bridge("gru", input_dim=3, hidden_dim=5, layers=1, directions=2)
    final = torch.randn(4, 1, 2, 3)
    of = bridge.matrices[0]
    assert isinstance(of, nn.Linear)
    read = torch.cat([final[:, 0, 0], final[:, 0, 1]], dim=1)
    torch.testing.assert_close(bridge((final,))[0][:, 0], torch.tanh(of(read)))
