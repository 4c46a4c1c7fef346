"""Small Transformers of every kind, for the tests beside this file."""

from typing import Any

import torch

from attlas.models import Transformer, TransformerConfig, build

SOURCES, TARGETS = 11, 13  # the sizes of the vocabularies


def small(**settings: Any) -> TransformerConfig:
    """Two heads of four; nothing random."""
    sizes = {
        "embed_dim": 8,
        "num_heads": 2,
        "ffn_dim": 12,
        "encoder_layers": 2,
        "decoder_layers": 2,
    }
    return TransformerConfig(**(sizes | {"dropout": 0.0} | settings))


KINDS = {
    "pre": small(),
    "post": small(norm="post", tie_output=False),
    "rms swiglu rotary": small(
        norm_type="rms", activation="swiglu", positions="rotary", bias=False
    ),
    "attention alone": small(ffn_dim=0, norm_type="none", residual=False),
    "no norm": small(norm_type="none", activation="gelu"),
    "qk_norm": small(qk_norm=True),
    "qk_norm, grouped keys, rotary": small(
        num_heads=4, num_kv_heads=2, qk_norm=True, positions="rotary", embed_dim=16
    ),
    "gelu learned": small(activation="gelu", positions="learned", max_positions=9),
    "grouped keys": small(num_heads=4, num_kv_heads=2, encoder_layers=1),
    "one key head, no order": small(num_kv_heads=1, positions="none", decoder_layers=3),
    "longformer": small(
        encoder_patterns=("either(window(1), landmarks(0))",),
        decoder_patterns=("everywhere", "window(2)"),
    ),
    "sparse": small(
        positions="rotary", decoder_patterns=("either(window(1), landmarks(0))", "strided(2)")
    ),
}


def made(config: TransformerConfig) -> Transformer:
    """A model of double precision whose parameters, biases too, are all far from zero."""
    torch.manual_seed(3)
    model = build(config, SOURCES, TARGETS).double()
    assert isinstance(model, Transformer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).uniform_(-0.3, 0.3))
    return model
