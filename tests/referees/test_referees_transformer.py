"""The Transformer against torch's, with the weights copied in."""

import pytest
import torch
from torch import Tensor, nn

from attlas.layers import MultiHead
from attlas.models import Transformer, TransformerConfig, build


def into(theirs: nn.MultiheadAttention, ours: MultiHead) -> None:
    parts = (ours.of_query, ours.of_key, ours.of_value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.of_heads.state_dict())


@torch.no_grad()
def copied(ours: Transformer, config: TransformerConfig, *, dropout: float = 0.0) -> nn.Transformer:
    """torch's Transformer with our weights."""
    theirs = nn.Transformer(
        config.width,
        config.heads,
        config.encoder_layers,
        config.decoder_layers,
        config.feedforward,
        dropout,
        config.activation,
        batch_first=True,
        norm_first=config.placement == "pre",
        dtype=torch.float64,
    )
    for mine, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        other.norm = mine.norm
        for own, layer in zip(mine.layers, other.layers, strict=True):
            into(layer.self_attn, own.self_attention)
            layer.linear1.load_state_dict(own.feedforward.inner.state_dict())
            layer.linear2.load_state_dict(own.feedforward.outer.state_dict())
            norms = [own.around_self_attention.norm, own.around_feedforward.norm]
            if mine is ours.decoder:
                into(layer.multihead_attn, own.cross_attention)
                norms.insert(1, own.around_cross_attention.norm)
            for number, norm in enumerate(norms, start=1):
                getattr(layer, f"norm{number}").load_state_dict(norm.state_dict())
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("lengths", [(7, 5, 1), (4, 4)])
def test_features_and_gradients_are_those_of_torch(placement, activation, lengths) -> None:
    config = TransformerConfig(
        width=24, heads=3, feedforward=40, encoder_layers=2, decoder_layers=3,
        placement=placement, activation=activation, dropout=0.0,
    )  # fmt: skip
    torch.manual_seed(1)
    ours = build(config, 17, 19).double()
    assert isinstance(ours, Transformer)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.3)
    theirs = copied(ours, config)
    longest = max(lengths)
    source = torch.randint(4, 17, (len(lengths), longest))
    target = torch.randint(4, 19, (len(lengths), 6))
    real = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)

    def embedded(ids: Tensor, own: nn.Embedding, positions: nn.Module) -> Tensor:
        return positions(own(ids) * 24**0.5)

    assert ours.source_embedding is not None
    hidden = theirs(
        embedded(source, ours.source_embedding, ours.source_positions),
        embedded(target, ours.target_embedding, ours.target_positions),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(6, dtype=torch.float64),
        src_key_padding_mask=(~real).double().masked_fill(~real, -torch.inf),
        memory_key_padding_mask=(~real).double().masked_fill(~real, -torch.inf),
        tgt_is_causal=True,
    )
    wanted = hidden @ ours.target_embedding.weight.T + ours.output.bias
    found = ours(source, real, target)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
    embeddings = [ours.source_embedding.weight, ours.target_embedding.weight]
    torch.testing.assert_close(
        torch.autograd.grad(found.square().sum(), embeddings),
        torch.autograd.grad(wanted.square().sum(), embeddings),
        rtol=1e-8, atol=1e-8,
    )  # fmt: skip
