"""The self-attention classifier: pooling, padding, patterns, what can be observed."""

import inspect
import re
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import scaled_dot_product as fused
from attlas.models import Classifier, ClassifierConfig, build_classifier
from attlas.models.classifier import AttentivePooling, FirstPooling, MaxPooling, MeanPooling
from attlas.patterns import parse
from attlas.recording import observe

POOLINGS = ["mean", "max", "first", "attentive"]


def made(**settings: Any) -> Classifier:
    torch.manual_seed(5)
    sizes = {"embed_dim": 8, "num_heads": 2, "ffn_dim": 12, "layers": 2, "dropout": 0.0}
    return build_classifier(ClassifierConfig(**(sizes | settings)), 11, 3).double()


@pytest.fixture(params=POOLINGS)
def classifier(request: pytest.FixtureRequest) -> Classifier:
    """Every way to pool."""
    return made(pooling=request.param)


def test_padding_changes_nothing(
    classifier: Classifier, source: Tensor, token_mask: Tensor
) -> None:
    together = classifier(source, token_mask)
    assert together.shape == (3, 3)
    junk = torch.where(token_mask, source, -7)
    assert torch.equal(classifier(junk, token_mask), together)
    for row, size in enumerate(token_mask.sum(1).tolist()):
        torch.testing.assert_close(classifier(source[row : row + 1, :size])[0], together[row])


def test_every_parameter_gets_a_finite_gradient(
    classifier: Classifier, source: Tensor, token_mask: Tensor
) -> None:
    classifier(source, token_mask).square().sum().backward()
    for name, parameter in classifier.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_the_poolings_are_their_formulas_over_the_tokens() -> None:
    vectors = torch.randn(3, 4, 5)
    token_mask = torch.tensor([[True, True, False, False], [False, True, True, True], [False] * 4])
    expected = {
        MeanPooling(): [vectors[0, :2].mean(0), vectors[1, 1:].mean(0)],
        MaxPooling(): [vectors[0, :2].amax(0), vectors[1, 1:].amax(0)],
        FirstPooling(): [vectors[0, 0], vectors[1, 1]],
    }
    for pooling, rows in expected.items():
        torch.testing.assert_close(
            pooling(vectors, token_mask), torch.stack([*rows, torch.zeros(5)]), msg=str(pooling)
        )


@given(
    lengths=st.lists(st.integers(0, 7), min_size=1, max_size=4),
    width=st.integers(1, 6),
    seed=st.integers(0, 999),
)
def test_the_attentive_pooling_is_its_formula_over_the_tokens(
    lengths: list[int], width: int, seed: int
) -> None:
    torch.manual_seed(seed)
    pooling = AttentivePooling(width).double()
    keys = max(1, *lengths)
    vectors = torch.randn(len(lengths), keys, width, dtype=torch.float64)
    token_mask = torch.stack([torch.randperm(keys) < length for length in lengths])
    u, w, v, energy = (
        parameter.detach().numpy()
        for parameter in (
            pooling.query,
            pooling.attention.q_proj.weight,
            pooling.attention.k_proj.weight,
            pooling.attention.score_proj.weight[0],
        )
    )
    found = pooling(vectors, token_mask)
    for row in range(len(lengths)):
        x = vectors[row][token_mask[row]].numpy()
        powers = np.exp(np.tanh(w @ u + x @ v.T) @ energy)
        expected = (powers / powers.sum()) @ x if len(x) else np.zeros(width)
        torch.testing.assert_close(found[row], torch.from_numpy(expected))


def test_what_it_looks_at_can_be_observed(source: Tensor, token_mask: Tensor) -> None:
    model = made(pooling="attentive")
    with observe(model) as trace:
        model(source, token_mask)
    assert tuple(trace) == (
        "encoder.layers.0.self_attention",
        "encoder.layers.1.self_attention",
        "pooling.attention",
    )
    weights = trace["pooling.attention"].weights()
    assert weights.shape == (3, 1, 1, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, 1, dtype=torch.float64))


def test_a_window_as_wide_as_the_text_is_everywhere(source: Tensor, token_mask: Tensor) -> None:
    wide, all_ = made(patterns=("window(5)",)), made()
    torch.testing.assert_close(wide(source, token_mask), all_(source, token_mask))
    narrow = made(patterns=("window(1)", "everywhere"))
    assert not torch.allclose(narrow(source, token_mask)[0], all_(source, token_mask)[0])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_long_text_through_a_window_is_what_its_mask_makes_of_it(
    pooling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(pooling=pooling, patterns=("either(window(8), landmarks(0))",))
    source = torch.randint(4, 11, (2, 700))
    token_mask = torch.arange(700) < torch.tensor([700, 431]).unsqueeze(1)

    def outcome() -> tuple[Tensor, ...]:
        logits = model(source, token_mask)
        return logits, *torch.autograd.grad(logits.square().sum(), [*model.parameters()])

    assert fused.band_is_faster(700, 700, parse("either(window(8), landmarks(0))"), 0)
    in_a_band = outcome()
    torch.testing.assert_close(in_a_band[0][1:], model(source[1:, :431]))
    monkeypatch.setattr(fused, "band_is_faster", lambda *_: False)  # so that the mask is built
    torch.testing.assert_close(in_a_band, outcome())


def test_the_position_of_a_token_is_that_of_its_slot_padding_before_it_counted() -> None:
    text = torch.tensor([[4, 9, 7]])
    behind = torch.tensor([[0, 0, 4, 9, 7]])
    for positions, moved in (("none", False), ("rotary", False), ("sinusoidal", True)):
        model = made(positions=positions)
        alike = torch.allclose(model(behind, behind > 0), model(text))
        assert alike is not moved, positions


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"patterns": ("causal",) * 3, "layers": 2}, "one for each of layers = 2"),
        ({"pooling": "last"}, "pooling"),
        ({"embed_dim": 9, "num_heads": 2}, "an embed_dim that num_heads divides"),
    ],
    ids=str,
)
def test_what_does_not_fit_together_says_what_to_change(
    settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(AttlasError, match=text):
        ClassifierConfig.read(settings, "here")


def test_one_label_is_no_choice() -> None:
    with pytest.raises(AttlasError, match="at least two different labels; got 1"):
        build_classifier(ClassifierConfig(), 11, 1)
    with pytest.raises(AttlasError, match="a source vocabulary of at least one token; got 0"):
        build_classifier(ClassifierConfig(), 0, 2)


def test_a_batch_without_slots_is_the_callers_error() -> None:
    with pytest.raises(AttlasError, match="a source of at least one row and one position"):
        made()(torch.zeros(2, 0, dtype=torch.long))


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_classifier_can_be_embedding_attention_pooling_and_a_linear_layer_alone(
    pooling: Literal["mean", "max"],
) -> None:
    torch.manual_seed(0)
    config = ClassifierConfig(
        embed_dim=8, num_heads=2, ffn_dim=0, norm_type="none", residual=False, positions="none",
        pooling=pooling, dropout=0.0,
    )  # fmt: skip
    model = build_classifier(config, 11, 3)
    parts = {name.split(".")[0] for name, _ in model.named_parameters()}
    assert parts == {"embedding", "encoder", "output"}
    attention = model.encoder.layers[0].self_attention
    assert {id(p) for p in model.encoder.parameters()} == {id(p) for p in attention.parameters()}
    source = torch.tensor([[4, 9, 7, 3], [8, 3, 0, 0]])
    referee = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    q, k, v = (getattr(attention, f"{name}_proj") for name in "qkv")
    referee.load_state_dict(
        {
            "in_proj_weight": torch.cat([q.weight, k.weight, v.weight]),
            "in_proj_bias": torch.cat([q.bias, k.bias, v.bias]),
            "out_proj.weight": attention.out_proj.weight,
            "out_proj.bias": attention.out_proj.bias,
        }
    )
    x = model.embedding(source) * 8**0.5
    read = referee(x, x, x, key_padding_mask=source == 0)[0]
    pooled = [
        row[:n].mean(0) if pooling == "mean" else row[:n].amax(0)
        for row, n in zip(read, (4, 2), strict=True)
    ]
    torch.testing.assert_close(model(source), model.output(torch.stack(pooled)))


def test_settings_of_parts_that_are_left_out_are_refused() -> None:
    with pytest.raises(ValueError, match="no activation with ffn_dim = 0"):
        ClassifierConfig(ffn_dim=0, activation="gelu")
    with pytest.raises(ValueError, match="no norm with norm_type = 'none'"):
        ClassifierConfig(norm_type="none", norm="post")


IDS = torch.tensor([[4, 5, 3], [6, 3, 0]])
WRONG = {
    "a list": ([[1, 2]], "got a list; pass a tensor: model(source)"),
    "one text": (IDS[0], "got shape (3,); of one text that is ids.unsqueeze(0)"),
    "floats": (IDS.float(), "got float32 of shape (2, 3); number the tokens"),
    "bools": (IDS.bool(), "pass the mask by its name: model(source, token_mask=mask)"),
    "bytes": (IDS.to(torch.int8), "got int8; turn them into int64"),
    "another vocabulary": (IDS + 20, "expected source ids from 0 to 10; got 24"),
    "below 0": (IDS - 5, "expected source ids from 0 to 10; got -1"),
    "no text": (IDS[:0], "got 0 row(s) and 3 position(s)"),
    "padding first": (IDS.flip(1), "got 0, which is padding, at the beginning of row 1"),
    "another device": (IDS.to("meta"), "expected source ids on cpu, where the model is"),
}


@pytest.mark.parametrize(("source", "text"), WRONG.values(), ids=WRONG)
def test_what_are_no_ids_gets_a_sentence(source: Any, text: str) -> None:
    forward = inspect.unwrap(Classifier.forward)  # without the tests' checker of types
    with pytest.raises(AttlasError, match=re.escape(text)):
        forward(made(), source)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_logits_come_with_the_weights_that_are_observed(
    pooling: str, source: Tensor, token_mask: Tensor
) -> None:
    model = made(pooling=pooling)
    logits, weights = model.forward_with_weights(source, token_mask)
    torch.testing.assert_close(logits, model(source, token_mask))
    with observe(model) as trace:
        model(source, token_mask)
    layer = "pooling.attention" if pooling == "attentive" else "encoder.layers.1.self_attention"
    torch.testing.assert_close(weights.detach(), trace[layer].weights().mean(1), check_dtype=False)
    queries = 1 if pooling == "attentive" else source.shape[1]
    assert weights.shape == (3, queries, source.shape[1])
    weights[..., 0].sum().backward()
    assert model.embedding.weight.grad.abs().sum() > 0


def test_the_weights_are_those_before_dropout() -> None:
    model = made(pooling="mean", attention_dropout=0.5, layers=1)
    _, weights = model.train().forward_with_weights(IDS)
    _, same = model.eval().forward_with_weights(IDS)
    torch.testing.assert_close(weights, same)
