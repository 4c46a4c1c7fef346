"""The Transformer: its twins (step by step, at once), its padding, its order, its traces."""

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attlas.config import read_toml, write_toml
from attlas.errors import AttlasError
from attlas.layers import scaled_dot_product as fused
from attlas.models import Transformer, TransformerConfig, build
from attlas.patterns import both, causal, window
from attlas.recording import intervene, observe, uniform
from support.transformer_kinds import KINDS, SOURCES, TARGETS, made, small


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def transformer(request: pytest.FixtureRequest) -> Transformer:
    """Every norm, placement, activation, position and pattern."""
    return made(request.param)


def stepped(
    model: Transformer, source: Tensor, token_mask: Tensor | None, target: Tensor
) -> Tensor:
    state = model.encode(source, token_mask)
    logits = []
    for tokens in target.unbind(1):
        scores, state = model.step(tokens, state)
        logits.append(scores)
    return torch.stack(logits, dim=1)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_step_by_step_is_at_once(transformer, source, token_mask, target, training: bool) -> None:
    transformer.train(training)
    by_steps, at_once = (
        (
            logits,
            torch.autograd.grad(logits.sin().sum(), [*transformer.parameters()], allow_unused=True),
        )
        for logits in (
            stepped(transformer, source, token_mask, target),
            transformer(source, target, token_mask=token_mask),
        )
    )
    torch.testing.assert_close(by_steps, at_once)


def test_a_target_in_two_halves_is_one_at_once(transformer, source, token_mask, target) -> None:
    state = transformer.encode(source, token_mask)
    for tokens in target[:, :3].unbind(1):
        _, state = transformer.step(tokens, state)
    whole = transformer.decode(target, transformer.encode(source, token_mask))
    torch.testing.assert_close(transformer.decode(target[:, 3:], state), whole[:, 3:])


def test_padding_changes_nothing(transformer, source, token_mask, target) -> None:
    junk = torch.where(token_mask, source, 999)
    torch.testing.assert_close(
        transformer(junk, target, token_mask=token_mask),
        transformer(source, target, token_mask=token_mask),
        rtol=0,
        atol=0,
    )


def test_a_row_alone_is_that_row_in_a_batch(transformer, source, token_mask, target) -> None:
    together = transformer(source, target, token_mask=token_mask)
    for row, size in enumerate(token_mask.sum(1).tolist()):
        alone = transformer(source[row : row + 1, :size], target[row : row + 1])
        torch.testing.assert_close(alone[0], together[row])


def test_what_comes_later_changes_nothing_before_it(
    transformer, source, token_mask, target
) -> None:
    before = transformer(source, target, token_mask=token_mask)
    changed = target.clone()
    changed[:, 4:] = 1
    after = transformer(source, changed, token_mask=token_mask)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.equal(before[:, 4:], after[:, 4:])


def test_selected_rows_go_on_as_they_would_have(transformer, source, token_mask, target) -> None:
    rows = torch.tensor([2, 0, 0, 1, 1])
    state = transformer.encode(source, token_mask)
    for tokens in target[:, :2].unbind(1):
        _, state = transformer.step(tokens, state)
    expected, _ = transformer.step(target[:, 2], state)
    found, _ = transformer.step(target[rows, 2], state.select(rows))
    torch.testing.assert_close(found, expected[rows])


def test_hypotheses_of_one_source_share_what_is_remembered_of_it(
    source, token_mask, target
) -> None:
    model = made(KINDS["pre"])
    state = model.encode(source, token_mask)
    _, state = model.step(target[:, 0], state)
    beams = state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
    assert beams.source.rows_per_cache == 2
    assert beams.rows == 6
    shared = beams.source.layers[0]
    assert shared is state.source.layers[0]
    # Reordered within their sentences they still share; when a sentence leaves, its memory does.
    assert beams.select(torch.tensor([1, 1, 2, 3, 5, 4])).source.layers[0] is shared
    left = beams.select(torch.tensor([1, 0, 5, 4]))
    assert (left.source.rows_per_cache, len(left.source.layers[0].keys)) == (2, 2)
    expected, _ = model.step(target[[0, 0, 2, 2], 1], state.select(torch.tensor([0, 0, 2, 2])))
    found, _ = model.step(target[[0, 0, 2, 2], 1], left)
    torch.testing.assert_close(found, expected)
    uneven = beams.select(torch.tensor([0, 1, 2, 4, 5]))
    assert uneven.source.rows_per_cache == 1
    found, _ = model.step(target[[0, 0, 1, 2, 2], 1], uneven)
    torch.testing.assert_close(found[[0, 1, 3, 4]], expected)


def test_a_listener_hears_every_row_of_a_beam(source, token_mask, target) -> None:
    model = made(KINDS["pre"])
    beams = model.encode(source, token_mask).select(torch.tensor([0, 0, 1, 1, 2, 2]))
    plain, _ = model.step(torch.full((6,), 2), beams)
    with observe(model) as trace:
        heard, _ = model.step(torch.full((6,), 2), beams)
    assert trace["decoder.layers.0.cross_attention"].shape == (6, 2, 1, 5)
    torch.testing.assert_close(heard, plain)


def test_the_coverage_is_what_the_last_layer_saw_of_the_source(
    transformer, source, token_mask, target
) -> None:
    assert transformer.encode(source, token_mask).coverage is None
    state = transformer.encode(source, token_mask).with_coverage()
    for tokens in target.unbind(1):
        _, state = transformer.step(tokens, state)
    with observe(transformer) as trace:
        transformer(source, target, token_mask=token_mask)
    last = trace[f"decoder.layers.{len(transformer.decoder.layers) - 1}.cross_attention"]
    assert state.coverage is not None
    torch.testing.assert_close(state.coverage.double(), last.weights().mean(1).sum(1))


def test_the_coverage_counts_the_weights_that_an_intervention_leaves(
    source, token_mask, target
) -> None:
    model = made(KINDS["pre"])
    with intervene(model, uniform):
        state = model.encode(source, token_mask).with_coverage()
        for tokens in target.unbind(1):
            _, state = model.step(tokens, state)
    share = token_mask.double() / token_mask.sum(1, keepdim=True)
    torch.testing.assert_close(state.coverage, target.shape[1] * share)


def test_an_intervention_is_asked_once_a_step_whether_its_weights_are_counted_or_not(
    source, token_mask, target
) -> None:
    """One that draws would otherwise give the coverage other weights than those of the attention
    map."""
    model = made(KINDS["pre"]).eval()

    def stepped_by_chance(counted: bool) -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor]:
        chance, drawn = torch.Generator().manual_seed(3), []

        def by_chance(weights, seen, layer):
            drawn.append(
                torch.rand(weights.shape, generator=chance, dtype=weights.dtype).masked_fill(
                    ~seen, 0.0
                )
            )
            return drawn[-1] / drawn[-1].sum(-1, keepdim=True)

        last = model.decoder.layers[-1].cross_attention
        with intervene(last, by_chance), torch.no_grad():
            state = model.encode(source, token_mask)
            state = state.with_coverage() if counted else state
            for tokens in target.unbind(1):
                logits, state = model.step(tokens, state)
        return logits, drawn, state.coverage

    plain, drawn, _ = stepped_by_chance(counted=False)
    counting, again, coverage = stepped_by_chance(counted=True)
    assert len(again) == len(drawn) == target.shape[1]
    torch.testing.assert_close(counting, plain)
    used = [weights / weights.sum(-1, keepdim=True) for weights in again]
    total = torch.stack([weights.mean(1).sum(1) for weights in used]).sum(0)
    torch.testing.assert_close(coverage.to(total.dtype), total)


def test_long_texts_through_windows_are_what_their_masks_make_of_them(monkeypatch) -> None:
    model = made(
        small(
            encoder_patterns=("either(window(4), landmarks(0))",), decoder_patterns=("window(5)",)
        )
    )
    source, target = torch.randint(4, SOURCES, (2, 210)), torch.randint(4, TARGETS, (2, 190))
    token_mask = torch.arange(210) < torch.tensor([[210], [131]])
    used, banded = [], fused.banded_attention

    def counted(*given: object) -> Tensor:
        used.append(given)
        return banded(*given)

    def outcome() -> tuple[Tensor, ...]:
        logits = model(source, target, token_mask=token_mask)
        return logits, *torch.autograd.grad(logits.sin().sum(), [*model.parameters()])

    monkeypatch.setattr(fused, "banded_attention", counted)
    in_bands = outcome()
    assert len(used) == len(model.encoder.layers) + len(model.decoder.layers)
    monkeypatch.setattr(fused, "band_is_faster", lambda *_: False)
    torch.testing.assert_close(in_bands, outcome())
    assert len(used) == len(model.encoder.layers) + len(model.decoder.layers)


def test_a_decoder_reported_to_look_back_is_the_default_spelt_out() -> None:
    for pattern, wanted in (
        ("everywhere", causal),
        ("causal", causal),
        ("window(2)", both(causal, window(2))),
    ):
        model = made(small(decoder_patterns=(pattern,)))
        assert [layer.self_attention.pattern for layer in model.decoder.layers] == [wanted, wanted]


def test_without_bias_the_norms_and_the_last_layer_alone_have_one() -> None:
    names = [name for name, _ in made(small(bias=False)).named_parameters() if "bias" in name]
    assert names
    assert all(name.endswith("norm.bias") or name == "output.bias" for name in names)


@pytest.mark.parametrize("bias", [["q"], ["k", "v", "ffn"], ["out"], ["ffn"], "v"])
def test_the_settings_name_the_maps_that_have_a_bias_as_the_layer_does(bias) -> None:
    model = made(small(bias=bias))
    for layer in model.decoder.layers:
        for attention in (layer.self_attention, layer.cross_attention):
            maps = {"q": attention.q_proj, "k": attention.k_proj, "v": attention.v_proj}
            maps["out"] = attention.out_proj
            assert {name for name, one in maps.items() if one.bias is not None} == {
                name for name in bias if name != "ffn"
            }
        feed_forward = layer.feed_forward
        for linear in (feed_forward.inner, feed_forward.outer):
            assert (linear.bias is not None) == ("ffn" in bias)


def test_the_biases_of_settings_are_written_and_read_as_toml(tmp_path: Path) -> None:
    config = small(bias=["ffn", "k", "q", "q"])
    assert config.bias == ("q", "k", "ffn")
    (tmp_path / "config.toml").write_text(write_toml(config.model_dump()))
    assert TransformerConfig.read(read_toml(tmp_path / "config.toml"), "here") == config


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"bias": ["q", "w"]},
            'bias as true, false or a list of some of "q", "k", "v", "out" and "ffn" '
            "(TransformerConfig); got ('q', 'w'); name the maps that have a bias",
        ),
        ({"bias": 1}, "got 1; name the maps"),
        ({"bias": [["q"]]}, "name the maps"),
        (
            {"bias": ["q", "ffn"], "ffn_dim": 0},
            'no "ffn" in bias with ffn_dim = 0, where it has no effect (TransformerConfig); got '
            'bias = ["q", "ffn"]; leave "ffn" out, or set ffn_dim above 0',
        ),
    ],
)
def test_biases_of_no_map_get_a_sentence(settings, text) -> None:
    with pytest.raises(AttlasError, match=re.escape(text)):
        small(**settings)


def test_a_trace_holds_every_layer(transformer, source, token_mask, target) -> None:
    with observe(transformer) as trace:
        observed = transformer(source, target, token_mask=token_mask)
    torch.testing.assert_close(
        observed, transformer(source, target, token_mask=token_mask), rtol=0, atol=0
    )
    encoder, decoder = len(transformer.encoder.layers), len(transformer.decoder.layers)
    assert len(trace) == encoder + 2 * decoder
    for layer in trace:
        weights = trace[layer].weights()
        queries = 5 if layer.startswith("encoder") else 6
        slots = 6 if layer.endswith("self_attention") and queries == 6 else 5
        assert weights.shape[2:] == (queries, slots)
        sums = (
            weights.sum(-1)[token_mask[:, None].expand(-1, weights.shape[1], -1)]
            if queries == 5
            else weights.sum(-1)
        )
        torch.testing.assert_close(sums, torch.ones_like(sums))


def test_an_intervention_rules_steps_and_whole_targets_alike(source, token_mask, target) -> None:
    model = made(KINDS["pre"])
    untouched = model(source, target, token_mask=token_mask)
    with intervene(model, uniform):
        whole = model(source, target, token_mask=token_mask)
        torch.testing.assert_close(stepped(model, source, token_mask, target), whole)
    assert not torch.allclose(whole, untouched)


def test_every_parameter_gets_a_gradient(transformer, source, token_mask, target) -> None:
    loss = transformer(source, target, token_mask=token_mask).square().sum()
    for name, gradient in zip(
        dict(transformer.named_parameters()),
        torch.autograd.grad(loss, [*transformer.parameters()], allow_unused=True),
        strict=True,
    ):
        assert gradient is not None, name
        assert gradient.isfinite().all(), name


def test_dropout_falls_in_training_alone(source, token_mask, target) -> None:
    model = made(small(dropout=0.5, attention_dropout=0.5, ffn_dropout=0.5))
    first, second = (
        model(source, target, token_mask=token_mask),
        model(source, target, token_mask=token_mask),
    )
    assert not torch.equal(first, second)
    model.eval()
    assert torch.equal(
        model(source, target, token_mask=token_mask), model(source, target, token_mask=token_mask)
    )


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"embed_dim": 10, "num_heads": 4}, "an embed_dim that num_heads divides"),
        ({"num_kv_heads": 3}, "a num_heads that num_kv_heads divides"),
        ({"embed_dim": 9, "num_heads": 3}, "an even embed_dim for positions = 'sinusoidal'"),
        ({"embed_dim": 6, "num_heads": 2, "positions": "rotary"}, "an even embed_dim / num_heads"),
        ({"max_positions": 5}, "no max_positions with positions = 'sinusoidal'"),
        ({"encoder_patterns": ("causal", "causal")}, "one for each of encoder_layers = 3"),
        ({"decoder_patterns": ("sideways",)}, "a pattern such as both"),
        ({"encoder_patterns": ()}, "0 patterns"),
    ],
    ids=str,
)
def test_what_does_not_fit_together_says_what_to_change(settings, text) -> None:
    with pytest.raises(AttlasError, match=text):
        TransformerConfig.read(settings, "here")


def test_the_parameters_are_as_many_as_counted_by_hand() -> None:
    config = TransformerConfig(embed_dim=256, num_heads=4, ffn_dim=1024, tie_source=True)
    attention = 4 * (256 * 256 + 256)
    feedforward = 2 * 256 * 1024 + 1024 + 256
    norm = 2 * 256
    encoder = 3 * (attention + feedforward + 2 * norm) + norm
    decoder = 3 * (2 * attention + feedforward + 3 * norm) + norm
    vocabulary = 8000 * 256 + 8000
    count = sum(p.numel() for p in build(config, 8000, 8000).parameters())
    assert count == encoder + decoder + vocabulary


def test_shared_keys_are_fewer_parameters() -> None:
    few, many = (
        sum(p.numel() for p in made(small(num_heads=4, num_kv_heads=num_kv_heads)).parameters())
        for num_kv_heads in (1, 4)
    )
    # Keys and values of 2 + 2 · 2 attentions, each three quarters narrower.
    assert many - few == (2 + 4) * 2 * (8 * 6 + 6)


def test_ids_outside_the_vocabulary_are_named(source) -> None:
    model = made(KINDS["pre"])
    with pytest.raises(AttlasError, match=f"source ids from 0 to {SOURCES - 1}; got 11"):
        model.encode(torch.tensor([[SOURCES]]))
    with pytest.raises(AttlasError, match=f"target ids from 0 to {TARGETS - 1}; got 13"):
        model.step(torch.tensor([TARGETS]), model.encode(source[:1]))
