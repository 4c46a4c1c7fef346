"""The decoders against their papers' equations, written out for one sentence at a time."""

import pytest
import torch
from torch import Tensor, nn

from attlas import observe
from attlas.models import RecurrentConfig, RecurrentModel, build
from attlas.models.rnn.bahdanau import BahdanauDecoder
from attlas.models.rnn.luong import LuongDecoder

SOURCE = torch.tensor([[4, 9, 7, 5, 3]])
TARGET = torch.tensor([[2, 7, 12, 5]])


def model_of(**settings: object) -> RecurrentModel:
    torch.manual_seed(1)
    widths = {"embed_dim": 5, "hidden_dim": 6, "encoder_hidden_dim": 3, "dropout": 0.0}
    return build(RecurrentConfig(**(widths | settings)), 11, 13).double()


def gru(rnn: nn.GRU, x: Tensor, h: Tensor) -> Tensor:
    """Cho et al., 2014, with the reset gate behind the matrix."""
    of_x = (rnn.weight_ih_l0 @ x + rnn.bias_ih_l0).chunk(3)
    of_h = (rnn.weight_hh_l0 @ h + rnn.bias_hh_l0).chunk(3)
    r, z = torch.sigmoid(of_x[0] + of_h[0]), torch.sigmoid(of_x[1] + of_h[1])
    n = torch.tanh(of_x[2] + r * of_h[2])
    return (1 - z) * n + z * h


def encoded(model: RecurrentModel) -> tuple[Tensor, Tensor]:
    """The annotations h_j and s_0."""
    assert model.source_embedding is not None
    annotations = model.encoder.rnn(model.source_embedding(SOURCE))[0][0]
    (bridge,) = model.decoder.bridge.matrices
    return annotations, torch.tanh(bridge(annotations[0, 3:]))


@pytest.mark.parametrize("coverage", [False, True])
def test_bahdanaus_decoder(coverage: bool) -> None:
    model = model_of(coverage=coverage, attention_hidden_dim=4, readout_dim=2)
    decoder = model.decoder
    assert isinstance(decoder, BahdanauDecoder)
    h, s = encoded(model)
    a, rnn = decoder.attention, decoder.recurrence.rnn
    covered = torch.zeros(5, dtype=torch.float64)
    expected = []
    for y in model.target_embedding(TARGET)[0]:
        inside = [a.q_proj(s) + a.k_proj(h_j) for h_j in h]
        if decoder.coverage is not None:
            w_c = decoder.coverage.coverage_proj.weight[:, 0]
            inside = [x + w_c * c_j for x, c_j in zip(inside, covered, strict=True)]
        alpha = torch.softmax(torch.stack([a.score_proj(torch.tanh(x))[0] for x in inside]), dim=0)
        covered = covered + alpha
        c = sum(alpha_j * h_j for alpha_j, h_j in zip(alpha, h, strict=True))
        s = gru(rnn, torch.cat([y, c]), s)
        t = decoder.readout.proj(torch.cat([s, y, c]))
        t = torch.stack([torch.maximum(t[0], t[2]), torch.maximum(t[1], t[3])])
        expected.append(model.output.weight @ t + model.output.bias)
    torch.testing.assert_close(model(SOURCE, TARGET)[0], torch.stack(expected))


@pytest.mark.parametrize("feeding", [False, True])
def test_luongs_decoder(feeding: bool) -> None:
    model = model_of(attention="dot", decoder="luong", input_feeding=feeding)
    decoder = model.decoder
    assert isinstance(decoder, LuongDecoder)
    source, h = encoded(model)
    attended = torch.zeros(6, dtype=torch.float64)
    expected = []
    for y in model.target_embedding(TARGET)[0]:
        h = gru(decoder.recurrence.rnn, torch.cat([y, attended]) if feeding else y, h)
        a = torch.softmax(torch.stack([h @ h_s for h_s in source]), dim=0)
        c = sum(a_s * h_s for a_s, h_s in zip(a, source, strict=True))
        attended = torch.tanh(decoder.concat_proj.weight @ torch.cat([c, h]))
        expected.append(model.output.weight @ attended + model.output.bias)
    torch.testing.assert_close(model(SOURCE, TARGET)[0], torch.stack(expected))


def test_the_plain_decoder_gets_its_initial_state_alone() -> None:
    model = model_of(attention="none")
    assert model.source_embedding is not None
    annotations = model.encoder.rnn(model.source_embedding(SOURCE))[0][0]
    (bridge,) = model.decoder.bridge.matrices
    s = torch.tanh(bridge(torch.cat([annotations[-1, :3], annotations[0, 3:]])))
    expected = []
    for y in model.target_embedding(TARGET)[0]:
        s = gru(model.decoder.recurrence.rnn, y, s)
        expected.append(model.output.weight @ s + model.output.bias)
    torch.testing.assert_close(model(SOURCE, TARGET)[0], torch.stack(expected))


def test_the_tanh_readout() -> None:
    maxout, tanh = (model_of(readout=kind).decoder.readout for kind in ("maxout", "tanh"))
    s, y, c = torch.randn(2, 6), torch.randn(2, 5), torch.randn(2, 6)
    tanh.float()
    torch.testing.assert_close(tanh(s, y, c), torch.tanh(tanh.proj(torch.cat([s, y, c], dim=-1))))
    assert maxout.proj.out_features == 2 * tanh.proj.out_features


@pytest.mark.parametrize("kind", ["linear", "linear_output"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_linear_readout_is_the_vocabulary_layer_alone(kind: str, cell: str) -> None:
    model = model_of(readout=kind, cell=cell)
    read: list[Tensor] = []
    model.output.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    with observe(model) as trace:
        logits = model(SOURCE, TARGET)
    state = model.encode(SOURCE)
    tops, contexts = [], []
    (weights,) = trace.calls("decoder.attention")
    for t, alpha in enumerate(weights.weights()[0, 0]):
        _, state = model.step(TARGET[:, t], state)
        tops.append(state.hidden[0][0, -1])
        contexts.append(alpha @ state.source.layers[0].values[0])
    expected = torch.stack(tops)
    if kind == "linear":
        expected = torch.cat([expected, torch.stack(contexts)], dim=1)
    torch.testing.assert_close(read[0][0], expected)
    linear = nn.Linear(expected.shape[1], 13).double()
    linear.load_state_dict({"weight": model.output.weight, "bias": model.output.bias})
    torch.testing.assert_close(logits[0], linear(expected))
    assert not list(model.decoder.readout.parameters())


@pytest.mark.parametrize("coverage", [False, True])
def test_the_linear_readout_of_luongs_decoder_is_the_vocabulary_layer_alone(coverage: bool) -> None:
    attention = {"attention": "concat", "coverage": True} if coverage else {"attention": "dot"}
    model = model_of(decoder="luong", readout="linear", **attention)
    assert not any("concat_proj" in name for name in model.state_dict())
    with observe(model) as trace:
        logits = model(SOURCE, TARGET)
    state = model.encode(SOURCE)
    (weights,) = trace.calls("decoder.attention")
    for t, alpha in enumerate(weights.weights()[0, 0]):
        found, state = model.step(TARGET[:, t], state)
        context = alpha @ state.source.layers[0].values[0]
        features = torch.cat([state.hidden[0][0, -1], context])
        torch.testing.assert_close(logits[0, t], model.output.weight @ features + model.output.bias)
        torch.testing.assert_close(found[0], logits[0, t])


def test_without_attention_linear_output_says_what_the_model_is() -> None:
    plain, named = (
        model_of(attention="none", **more) for more in ({}, {"readout": "linear_output"})
    )
    named.load_state_dict(plain.state_dict())
    assert torch.equal(plain(SOURCE, TARGET), named(SOURCE, TARGET))


def test_a_readout_without_a_width_of_its_own_refuses_one() -> None:
    with pytest.raises(ValueError, match="no readout_dim with readout = 'linear'"):
        model_of(readout="linear", readout_dim=4)


def test_a_tied_output_reads_the_embedding_behind_its_bottleneck() -> None:
    model = model_of(tie_output=True, readout_dim=4)
    features = torch.randn(3, 4, dtype=torch.float64)
    bottleneck = model.output.bottleneck
    assert bottleneck is not None
    expected = features @ bottleneck.weight.T @ model.target_embedding.weight.T + model.output.bias
    torch.testing.assert_close(model.logits(features), expected)
