"""An LSTM over padded rows is the same as over packed ones."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attlas.models.rnn.encoder import RecurrentEncoder
from attlas.ops.lstm import padded_lstm, padded_lstm_is_faster

LENGTHS = torch.tensor([3, 6, 1, 4, 6, 2])

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)


def _packed(rnn: nn.LSTM, embedded: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    packed = pack_padded_sequence(embedded, LENGTHS, batch_first=True, enforce_sorted=False)
    outputs, final = rnn(packed)
    return pad_packed_sequence(outputs, batch_first=True)[0], final


def _read(rnn: nn.LSTM, embedded: Tensor, padded: bool) -> list[Tensor]:
    """Outputs, final states, and the gradients of all that goes in."""
    embedded = embedded.clone().requires_grad_()
    read = padded_lstm(rnn, embedded, LENGTHS) if padded else _packed(rnn, embedded)
    outputs, final = read
    weights = torch.linspace(-1.0, 1.0, outputs.numel(), dtype=outputs.dtype).view_as(outputs)
    loss = (outputs * weights).sum() + sum(part.square().sum() for part in final)
    gradients = torch.autograd.grad(loss, [embedded, *rnn.parameters()])
    return [outputs, *final, *gradients]


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_outputs_states_and_gradients_are_those_of_packed_rows(
    train: bool, layers: int, bidirectional: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    rnn = nn.LSTM(5, 4, layers, batch_first=True, bidirectional=bidirectional).to(dtype)
    rnn.train(train)
    embedded = torch.randn(6, 6, 5, dtype=dtype)
    for mine, theirs in zip(_read(rnn, embedded, True), _read(rnn, embedded, False), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_what_stands_in_padding_changes_nothing_and_learns_nothing() -> None:
    torch.manual_seed(0)
    rnn = nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True)
    embedded = torch.randn(6, 6, 5)
    padding = torch.arange(6) >= LENGTHS.unsqueeze(1)
    other = embedded.masked_fill(padding.unsqueeze(-1), 50.0)
    one, two = _read(rnn, embedded, True), _read(rnn, other, True)
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=0.0, atol=0.0)
    assert not one[0][padding].any()
    assert not one[3][padding].any()  # the gradient of what was read


def test_dropout_lies_between_layers_and_in_training_alone() -> None:
    torch.manual_seed(0)
    rnn = nn.LSTM(5, 400, 2, batch_first=True, dropout=0.5)
    embedded = torch.randn(6, 6, 5)
    below = padded_lstm(rnn, embedded, LENGTHS)[1][0][0]
    again = padded_lstm(rnn, embedded, LENGTHS)[1][0]
    assert torch.equal(below, again[0])
    assert not torch.equal(padded_lstm(rnn, embedded, LENGTHS)[1][0][1], again[1])
    rnn.eval()
    torch.testing.assert_close(padded_lstm(rnn, embedded, LENGTHS)[0], _packed(rnn, embedded)[0])


@needs_onednn
def test_it_is_taken_where_torch_gives_an_lstm_to_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    rnn, embedded = nn.LSTM(5, 4, batch_first=True), torch.randn(6, 6, 5)
    full, ragged = LENGTHS.clamp(min=4), torch.tensor([6, 1, 1, 1, 1, 1])
    assert padded_lstm_is_faster(rnn, embedded, full)
    assert not padded_lstm_is_faster(rnn, embedded, ragged)  # packing spares more than it costs
    assert not padded_lstm_is_faster(rnn.double(), embedded.double(), full)
    rnn.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not padded_lstm_is_faster(rnn, embedded, full)
    try:
        torch._C._set_mkldnn_enabled(False)
        assert not padded_lstm_is_faster(rnn, embedded, full)
    finally:
        torch._C._set_mkldnn_enabled(True)
    taken: list[int] = []

    def listed(*given: object) -> object:
        taken.append(1)
        return padded_lstm(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("attlas.models.rnn.encoder.padded_lstm", listed)
    token_mask = torch.arange(6) < full.unsqueeze(1)
    encoder = RecurrentEncoder("lstm", 5, 4, 1, bidirectional=True, dropout=0.0)
    encoder(embedded, token_mask)
    assert taken
    junk = embedded.masked_fill(~token_mask.unsqueeze(-1), torch.nan)
    assert torch.equal(encoder(junk, token_mask).outputs, encoder(embedded, token_mask).outputs)
    taken.clear()
    encoder(
        embedded, torch.ones_like(token_mask)
    )  # all of one length: torch's own call is the same
    RecurrentEncoder("gru", 5, 4, 1, bidirectional=True, dropout=0.0)(embedded, token_mask)
    assert not taken


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_hooks_of_any_kind_are_heard(kind: str) -> None:
    rnn, embedded, full = nn.LSTM(5, 4, batch_first=True), torch.randn(6, 6, 5), LENGTHS.clamp(4)
    assert padded_lstm_is_faster(rnn, embedded, full)
    of_all = f"register_module_{kind}_hook"
    for register in (getattr(rnn, f"register_{kind}_hook"), getattr(module, of_all, None)):
        if register is not None:
            hook = register(lambda *_: None)
            assert not padded_lstm_is_faster(rnn, embedded, full)
            hook.remove()
            assert padded_lstm_is_faster(rnn, embedded, full)
