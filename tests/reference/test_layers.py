"""The layers of a Transformer in NumPy, held against PyTorch's and against attlas' own."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attlas import observe, patterns, reference
from attlas.layers import MultiheadAttention
from attlas.models import TransformerConfig, build
from attlas.models.transformer.block import FeedForward

Array = np.ndarray


def values(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy()


def close(one: Array | Tensor, other: Array) -> None:
    given = values(one) if isinstance(one, Tensor) else one
    np.testing.assert_allclose(given, other, rtol=1e-9, atol=1e-9)


def redrawn(module: nn.Module, seed: int) -> nn.Module:
    """In float64 and evaluation mode, every parameter drawn anew: norms and biases, too."""
    noise = torch.Generator().manual_seed(seed)
    for parameter in module.double().eval().parameters():
        nn.init.normal_(parameter, std=0.5, generator=noise)
    return module


# From modules to the parameters of the papers.


def norm(module: nn.Module) -> reference.NormParameters:
    bias = getattr(module, "bias", None)
    g = values(module.weight)
    return reference.NormParameters(g, np.zeros_like(g) if bias is None else values(bias))


def feed_forward(inner: nn.Linear, outer: nn.Linear) -> reference.FeedForwardParameters:
    def of(linear: nn.Linear) -> tuple[Array, Array]:
        out = linear.out_features
        return values(linear.weight).T, np.zeros(out) if linear.bias is None else values(
            linear.bias
        )

    return reference.FeedForwardParameters(*of(inner), *of(outer))


def heads_of(weight: Tensor, heads: int) -> Array:
    """(heads, in, of one head): rows of a linear map belong to heads in turn."""
    rows = values(weight)
    return rows.reshape(heads, -1, rows.shape[1]).transpose(0, 2, 1)


def biases_of(bias: Tensor | None, heads: int) -> Array | None:
    return None if bias is None else values(bias).reshape(heads, -1)


def torch_attention(module: nn.MultiheadAttention) -> reference.MultiHeadParameters:
    heads = module.num_heads
    W = [heads_of(part, heads) for part in module.in_proj_weight.chunk(3)]
    bias = module.in_proj_bias
    b = [None] * 3 if bias is None else [biases_of(part, heads) for part in bias.chunk(3)]
    out = module.out_proj
    return reference.MultiHeadParameters(
        *W, values(out.weight).T, *b, None if out.bias is None else values(out.bias)
    )


def own_attention(module: MultiheadAttention) -> reference.MultiHeadParameters:
    kv = module.num_kv_heads
    parts = [(module.q_proj, module.num_heads), (module.k_proj, kv), (module.v_proj, kv)]
    out = module.out_proj
    return reference.MultiHeadParameters(
        *(heads_of(linear.weight, heads) for linear, heads in parts),
        values(out.weight).T,
        *(biases_of(linear.bias, heads) for linear, heads in parts),
        None if out.bias is None else values(out.bias),
        *(None if one is None else values(one.weight) for one in (module.q_norm, module.k_norm)),
    )


def torch_encoder_layer(layer: nn.TransformerEncoderLayer) -> reference.EncoderLayerParameters:
    return reference.EncoderLayerParameters(
        torch_attention(layer.self_attn),
        norm(layer.norm1),
        feed_forward(layer.linear1, layer.linear2),
        norm(layer.norm2),
    )


def torch_decoder_layer(layer: nn.TransformerDecoderLayer) -> reference.DecoderLayerParameters:
    return reference.DecoderLayerParameters(
        torch_attention(layer.self_attn),
        norm(layer.norm1),
        torch_attention(layer.multihead_attn),
        norm(layer.norm2),
        feed_forward(layer.linear1, layer.linear2),
        norm(layer.norm3),
    )


def own_feed_forward(module: FeedForward) -> reference.FeedForwardParameters:
    return feed_forward(module.inner, module.outer)


def own_transformer(model: nn.Module) -> reference.TransformerParameters:
    own = model.source_embedding
    E_target = values(model.target_embedding.weight)
    encoder, decoder = model.encoder, model.decoder
    return reference.TransformerParameters(
        E_target if own is None else values(own.weight),
        E_target,
        [
            reference.EncoderLayerParameters(
                own_attention(layer.self_attention),
                norm(layer.around_self_attention.norm),
                own_feed_forward(layer.feed_forward),
                norm(layer.around_feed_forward.norm),
            )
            for layer in encoder.layers
        ],
        [
            reference.DecoderLayerParameters(
                own_attention(layer.self_attention),
                norm(layer.around_self_attention.norm),
                own_attention(layer.cross_attention),
                norm(layer.around_cross_attention.norm),
                own_feed_forward(layer.feed_forward),
                norm(layer.around_feed_forward.norm),
            )
            for layer in decoder.layers
        ],
        E_target if model.output.weight is None else values(model.output.weight),
        values(model.output.bias),
        None if encoder.norm is None else norm(encoder.norm),
        None if decoder.norm is None else norm(decoder.norm),
    )


# Its parts.


def test_a_feed_forward_network_written_out():
    # max(0, [1, −2] · [[1, 1], [1, 0]] + [0, 0.5]) = [0, 1.5]
    W_1, b_1 = np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([0.0, 0.5])
    W_2, b_2 = np.array([[7.0, 5.0], [2.0, 4.0]]), np.array([-1.0, 0.0])
    x = np.array([[1.0, -2.0]])
    close(reference.feed_forward(x, W_1, b_1, W_2, b_2), np.array([[2.0, 6.0]]))


@given(seed=st.integers(0, 999), bias=st.booleans(), positions=st.integers(1, 6))
def test_the_feed_forward_network_is_that_of_the_models(seed, bias, positions):
    module = redrawn(FeedForward(5, 7, bias=bias), seed)
    x = torch.randn(positions, 5, dtype=torch.float64)
    close(module(x), reference.feed_forward(values(x), *own_feed_forward(module)))


def test_add_and_norm_is_the_layer_norm_of_torch_of_the_sum():
    x, y = torch.randn(2, 4, 6, dtype=torch.float64)
    module = redrawn(nn.LayerNorm(6), 0)
    close(module(x + y), reference.add_and_norm(values(x), values(y), *norm(module)))
    close(x + y, reference.residual(values(x), values(y)))


def test_rms_norm_is_that_of_torch():
    x = torch.randn(4, 6, dtype=torch.float64)
    module = redrawn(nn.RMSNorm(6, eps=1e-6), 0)
    close(module(x), reference.rms_norm(values(x), values(module.weight)))
    assert not reference.rms_norm(np.zeros((1, 6)), np.ones(6)).any()  # and no NaN


@given(seed=st.integers(0, 999), bias=st.booleans(), queries=st.integers(1, 5))
def test_biases_of_the_heads_are_those_of_torch(seed, bias, queries):
    module = redrawn(nn.MultiheadAttention(6, 3, bias=bias, batch_first=True), seed)
    query = torch.randn(1, queries, 6, dtype=torch.float64)
    key, value = torch.randn(2, 1, 4, 6, dtype=torch.float64)
    read, weights = module(query, key, value, average_attn_weights=False)
    found = reference.multi_head(
        *(values(part[0]) for part in (query, key, value)), **torch_attention(module)._asdict()
    )
    close(read[0], found[0])
    close(weights[0], found[1])


# Layers.


@dataclass(frozen=True)
class Case:
    """A layer of torch's, and what goes in."""

    heads: int
    head_dim: int
    norm_first: bool
    bias: bool
    queries: int
    keys: int
    seed: int

    @property
    def settings(self) -> dict[str, object]:
        return {
            "d_model": self.heads * self.head_dim,
            "nhead": self.heads,
            "dim_feedforward": 7,
            "batch_first": True,
            "norm_first": self.norm_first,
            "bias": self.bias,
            "dropout": 0.3,  # which evaluation mode leaves out
        }

    def noise(self, positions: int, more: int = 0) -> Tensor:
        drawn = np.random.default_rng(self.seed + more).normal(
            size=(1, positions, self.heads * self.head_dim)
        )
        return torch.from_numpy(drawn)

    def mask(self, keys: int) -> Array:
        """Where each query may look: somewhere at least."""
        seen = np.random.default_rng(self.seed).random((self.queries, keys)) < 0.6
        seen[:, 0] = True
        return seen


cases = st.builds(
    Case,
    heads=st.integers(1, 4),
    head_dim=st.integers(1, 4),
    norm_first=st.booleans(),
    bias=st.booleans(),
    queries=st.integers(1, 6),
    keys=st.integers(1, 6),
    seed=st.integers(0, 999),
)


@given(case=cases)
def test_an_encoder_layer_is_that_of_torch(case):
    module = redrawn(nn.TransformerEncoderLayer(**case.settings), case.seed)
    x, mask = case.noise(case.queries), case.mask(case.queries)
    layer = reference.pre_norm_encoder_layer if case.norm_first else reference.encoder_layer
    found, weights = layer(values(x[0]), torch_encoder_layer(module), mask)
    with torch.no_grad():
        close(module(x, src_mask=torch.from_numpy(~mask))[0], found)
    assert weights.shape == (case.heads, case.queries, case.queries)
    close(weights.sum(-1), np.ones((case.heads, case.queries)))
    assert not weights[:, ~mask].any()


@given(case=cases)
def test_a_decoder_layer_is_that_of_torch(case):
    module = redrawn(nn.TransformerDecoderLayer(**case.settings), case.seed)
    x, memory, mask = case.noise(case.queries), case.noise(case.keys, 1), case.mask(case.keys)
    causal = np.tri(case.queries, dtype=bool)
    layer = reference.pre_norm_decoder_layer if case.norm_first else reference.decoder_layer
    found, over_target, over_source = layer(
        values(x[0]), values(memory[0]), torch_decoder_layer(module), causal, mask
    )
    with torch.no_grad():
        expected = module(
            x, memory, tgt_mask=torch.from_numpy(~causal), memory_mask=torch.from_numpy(~mask)
        )
    close(expected[0], found)
    assert over_target.shape == (case.heads, case.queries, case.queries)
    assert over_source.shape == (case.heads, case.queries, case.keys)


# The whole.


@given(
    norm_type=st.sampled_from(["post", "pre"]),
    layers=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    lengths=st.tuples(st.integers(1, 6), st.integers(1, 5)),
    seed=st.integers(0, 999),
)
def test_the_transformer_is_that_of_torch_between_embeddings_and_readout(
    norm_type, layers, lengths, seed
):
    of = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "batch_first": True}
    of["norm_first"] = norm_type == "pre"
    # Made by hand: torch's own warns that it can't nest tensors where norms come first.
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**of), layers[0], nn.LayerNorm(8), enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**of), layers[1], nn.LayerNorm(8))
    model = nn.Transformer(8, 2, batch_first=True, custom_encoder=encoder, custom_decoder=decoder)
    model = redrawn(model, seed)
    draw = np.random.default_rng(seed)
    p = reference.TransformerParameters(
        draw.normal(size=(7, 8)),
        draw.normal(size=(9, 8)),
        [torch_encoder_layer(layer) for layer in model.encoder.layers],
        [torch_decoder_layer(layer) for layer in model.decoder.layers],
        draw.normal(size=(9, 8)),
        draw.normal(size=9),
        norm(model.encoder.norm),
        norm(model.decoder.norm),
    )
    source, target = draw.integers(0, 7, lengths[0]), draw.integers(0, 9, lengths[1])
    logits, _ = reference.transformer(source, target, p, norm=norm_type)

    def entering(ids: Array, E: Array) -> Tensor:
        PE = np.array(
            [
                [(np.cos if i % 2 else np.sin)(pos / 10_000 ** ((i - i % 2) / 8)) for i in range(8)]
                for pos in range(len(ids))
            ]
        )
        return torch.from_numpy(E[ids] * 8**0.5 + PE)[None]

    hidden = nn.Transformer.generate_square_subsequent_mask(lengths[1], dtype=torch.float64)
    with torch.no_grad():
        features = model(
            entering(source, p.E_source), entering(target, p.E_target), tgt_mask=hidden
        )
    close(values(features[0]) @ p.W.T + p.b, logits)


RULES = {
    "everywhere": reference.patterns.everywhere,
    "window(1)": reference.patterns.window(1),
    "either(window(1), landmarks(0))": reference.patterns.either(
        reference.patterns.window(1), reference.patterns.landmarks(0)
    ),
}


rules = st.sampled_from(sorted(RULES))
settings = st.fixed_dictionaries(
    {
        "ffn_dim": st.integers(1, 9),
        "norm": st.sampled_from(["post", "pre"]),
        "bias": st.booleans(),
        "encoder_layers": st.integers(1, 3),
        "decoder_layers": st.integers(1, 3),
        "encoder_patterns": st.tuples(rules),
        "decoder_patterns": st.tuples(rules),
        "tie_output": st.booleans(),
        "tie_source": st.booleans(),
        "qk_norm": st.booleans(),
    }
)


@given(
    settings=settings,
    heads=st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)]),
    head_dim=st.sampled_from([2, 4, 6]),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    queries=st.integers(1, 6),
    seed=st.integers(0, 999),
)
def test_the_transformer_is_that_of_attlas_with_masks_and_ragged_lengths(
    settings, heads, head_dim, lengths, queries, seed
):
    config = TransformerConfig(
        embed_dim=heads[0] * head_dim, num_heads=heads[0], num_kv_heads=heads[1], **settings
    )
    model = redrawn(build(config, 11, 11 if config.tie_source else 13), seed)
    draw = torch.Generator().manual_seed(seed)
    source = torch.randint(1, 11, (len(lengths), max(lengths)), generator=draw)
    target = torch.randint(1, 11, (len(lengths), queries), generator=draw)
    token_mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    with torch.no_grad(), observe(model) as trace:
        logits = model(source, target, token_mask=token_mask)
    p = own_transformer(model)
    causal = reference.patterns.causal
    rules = {
        "norm": config.norm,
        "encoder_rule": RULES[config.encoder_patterns[0]],
        "decoder_rule": reference.patterns.both(causal, RULES[config.decoder_patterns[0]]),
    }
    for row, length in enumerate(lengths):
        ids, y = source[row].numpy(), target[row].numpy()
        # Once with the padding, hidden, and once without it.
        found, maps = reference.transformer(ids, y, p, token_mask=token_mask[row].numpy(), **rules)
        close(logits[row], found)
        close(reference.transformer(ids[:length], y, p, **rules)[0], found)
        assert set(maps) == set(trace)
        for layer, weights in maps.items():
            seen = weights.shape[1] if "encoder" not in layer.split(".") else length
            own = values(trace[layer].rows(0, seen)[row])
            close(own, weights[:, :seen])


def test_a_model_that_was_built_from_the_defaults_is_the_page():
    torch.manual_seed(0)
    model = build(TransformerConfig(), 50, 60).double().eval()
    source, target = torch.randint(1, 50, (2, 9)), torch.randint(1, 60, (2, 7))
    with torch.no_grad():
        logits = model(source, target)
    p = own_transformer(model)
    for row in range(2):
        found, _ = reference.transformer(source[row].numpy(), target[row].numpy(), p, norm="pre")
        close(logits[row], found)


def test_no_logit_depends_on_a_later_word():
    model = redrawn(build(TransformerConfig(embed_dim=8, num_heads=2), 11, 13), 0)
    p, source = own_transformer(model), np.array([3, 1, 4])
    target, other = np.array([1, 5, 9, 2]), np.array([1, 5, 6, 7])
    (one, _), (two, _) = (reference.transformer(source, y, p, norm="pre") for y in (target, other))
    close(one[:2], two[:2])
    assert np.abs(one[2:] - two[2:]).min() > 1e-6


def test_what_is_embedded_is_scaled_by_the_root_of_the_width():
    E = np.array([[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 0.0, 0.0]])
    x = reference.embed(np.array([1, 0]), E)
    close(x[0], [1.0, 1.0, 0.0, 1.0])  # 2 · 0.5 + sin 0, cos 0, sin 0, cos 0
    close(x[1, :2], [2.0 + np.sin(1), 4.0 + np.cos(1)])


def test_everywhere_sees_every_pair():
    shown = reference.patterns.mask(reference.patterns.everywhere, 3, 5)
    np.testing.assert_array_equal(shown, patterns.everywhere.mask(3, 5).numpy())
