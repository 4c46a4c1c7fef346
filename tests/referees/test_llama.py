"""Rotary positions, RMSNorm, SwiGLU, shared keys and normed queries and keys together, against the
layers of Llama and of Qwen3, which is Llama with qk_norm.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaModel, Qwen3Config, Qwen3Model

from attlas.models.transformer.block import EncoderLayer, TransformerEncoder
from attlas.models.transformer.config import BlockConfig
from attlas.models.transformer.factory import build_encoder
from attlas.patterns import causal

WIDTH, HEADS, LAYERS = 24, 3, 2


def in_halves(of_pairs: Tensor) -> Tensor:
    """Rows (heads · width), or the gains of a head (width), in Llama's order: it turns numbers that
    are half a head apart, where we turn neighbours, as the paper does.
    """
    width = WIDTH // HEADS
    apart = of_pairs.reshape(-1, width // 2, 2, *of_pairs.shape[1:])
    return apart.transpose(1, 2).reshape(of_pairs.shape)


def pairs(
    ours: TransformerEncoder, theirs: LlamaModel | Qwen3Model
) -> Iterator[tuple[nn.Parameter, nn.Parameter, bool]]:
    """Each parameter beside its twin, and whether its rows are ordered otherwise."""
    assert ours.norm is not None
    yield ours.norm.weight, theirs.norm.weight, False
    for own, layer in zip(ours.layers, theirs.layers, strict=True):
        assert isinstance(own, EncoderLayer)
        looking, thinking = own.self_attention, own.feed_forward
        assert thinking.gate is not None
        yield looking.q_proj.weight, layer.self_attn.q_proj.weight, True
        yield looking.k_proj.weight, layer.self_attn.k_proj.weight, True
        if looking.q_norm is not None and looking.k_norm is not None:
            yield looking.q_norm.weight, layer.self_attn.q_norm.weight, True
            yield looking.k_norm.weight, layer.self_attn.k_norm.weight, True
        yield looking.v_proj.weight, layer.self_attn.v_proj.weight, False
        yield looking.out_proj.weight, layer.self_attn.o_proj.weight, False
        yield thinking.inner.weight, layer.mlp.gate_proj.weight, False
        yield thinking.gate.weight, layer.mlp.up_proj.weight, False
        yield thinking.outer.weight, layer.mlp.down_proj.weight, False
        yield own.around_self_attention.norm.weight, layer.input_layernorm.weight, False
        yield own.around_feed_forward.norm.weight, layer.post_attention_layernorm.weight, False


@pytest.mark.parametrize("qk_norm", [False, True])
@pytest.mark.parametrize("num_kv_heads", [3, 1])
@pytest.mark.parametrize("lengths", [(7, 5, 1), (9, 9)])
def test_what_comes_out_and_every_gradient_are_those_of_llama_and_qwen3(
    num_kv_heads: int, lengths: tuple[int, ...], qk_norm: bool
) -> None:
    torch.manual_seed(2)
    config = BlockConfig(
        embed_dim=WIDTH, num_heads=HEADS, num_kv_heads=num_kv_heads, ffn_dim=40, positions="rotary",
        norm_type="rms", activation="swiglu", bias=False, dropout=0.0, qk_norm=qk_norm,
    )  # fmt: skip
    ours = build_encoder(config, [causal] * LAYERS)
    sizes = {
        "vocab_size": 5,
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "head_dim": WIDTH // HEADS,
        "intermediate_size": 40,
        "num_key_value_heads": num_kv_heads,
        "num_hidden_layers": LAYERS,
        "rms_norm_eps": 1e-6,
        "attn_implementation": "eager",
    }
    theirs = Qwen3Model(Qwen3Config(**sizes)) if qk_norm else LlamaModel(LlamaConfig(**sizes))
    both = list(pairs(ours, theirs))
    assert len(both) == len(list(ours.parameters()))
    with torch.no_grad():
        for own, other, reordered in both:
            own.add_(torch.empty_like(own).uniform_(-0.3, 0.3))
            other.copy_(in_halves(own) if reordered else own)
    x = torch.randn(len(lengths), max(lengths), WIDTH)
    token_mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    found = ours(x, None if bool(token_mask.all()) else token_mask)[token_mask]
    known = theirs(inputs_embeds=x, attention_mask=token_mask.long(), use_cache=False)
    expected = known.last_hidden_state[token_mask]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    mine = torch.autograd.grad(found.sin().sum(), [own for own, _, _ in both])
    others = torch.autograd.grad(expected.sin().sum(), [other for _, other, _ in both])
    for (_, _, reordered), own, other in zip(both, mine, others, strict=True):
        torch.testing.assert_close(
            in_halves(own) if reordered else own, other, rtol=1e-3, atol=1e-4
        )
