"""The Transformer against torch's, with the weights copied in."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from attlas.models import Transformer, TransformerConfig, build

Pair = tuple[Tensor, Tensor, int | None]
"""Ours, theirs, and which third of theirs is ours; None = all of it."""


def pairs(ours: Transformer, theirs: nn.Transformer) -> Iterator[Pair]:
    """Each parameter of the layers beside its twin."""

    def alike(mine: nn.Module, other: nn.Module) -> Iterator[Pair]:
        for own, its in zip(mine.parameters(), other.parameters(), strict=True):
            yield own, its, None

    for mine, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        if mine.norm is not None:
            yield from alike(mine.norm, other.norm)
        for own, layer in zip(mine.layers, other.layers, strict=True):
            attentions = [(own.self_attention, layer.self_attn)]
            norms = [own.around_self_attention.norm, own.around_feed_forward.norm]
            if mine is ours.decoder:
                attentions.append((own.cross_attention, layer.multihead_attn))
                norms.insert(1, own.around_cross_attention.norm)
            for looking, theirs_ in attentions:
                for third, part in enumerate((looking.q_proj, looking.k_proj, looking.v_proj)):
                    yield part.weight, theirs_.in_proj_weight, third
                    yield part.bias, theirs_.in_proj_bias, third
                yield from alike(looking.out_proj, theirs_.out_proj)
            yield from alike(own.feed_forward.inner, layer.linear1)
            yield from alike(own.feed_forward.outer, layer.linear2)
            for number, norm in enumerate(norms, start=1):
                yield from alike(norm, getattr(layer, f"norm{number}"))


def part_of(theirs: Tensor, third: int | None) -> Tensor:
    return theirs if third is None else theirs.chunk(3)[third]


@torch.no_grad()
def copied(ours: Transformer, config: TransformerConfig) -> nn.Transformer:
    """torch's Transformer with our weights."""
    theirs = nn.Transformer(
        config.embed_dim,
        config.num_heads,
        config.encoder_layers,
        config.decoder_layers,
        config.ffn_dim,
        0.0,
        config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
        dtype=torch.float64,
    )
    if config.norm == "post":
        theirs.encoder.norm = theirs.decoder.norm = None
    for own, its, third in pairs(ours, theirs):
        part_of(its, third).copy_(own)
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("lengths", [(7, 5, 1), (4, 4)])
def test_features_and_gradients_are_those_of_torch(placement, activation, lengths) -> None:
    config = TransformerConfig(
        embed_dim=24, num_heads=3, ffn_dim=40, encoder_layers=2, decoder_layers=3,
        norm=placement, activation=activation, dropout=0.0,
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
    token_mask = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)

    def embedded(ids: Tensor, own: nn.Embedding, positions: nn.Module) -> Tensor:
        return positions(own(ids) * 24**0.5)

    assert ours.source_embedding is not None
    hidden = theirs(
        embedded(source, ours.source_embedding, ours.source_positions),
        embedded(target, ours.target_embedding, ours.target_positions),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(6, dtype=torch.float64),
        src_key_padding_mask=(~token_mask).double().masked_fill(~token_mask, -torch.inf),
        memory_key_padding_mask=(~token_mask).double().masked_fill(~token_mask, -torch.inf),
        tgt_is_causal=True,
    )
    expected = hidden @ ours.target_embedding.weight.T + ours.output.bias
    found = ours(source, target, token_mask=token_mask)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)

    both = list(pairs(ours, theirs))
    shared = [ours.source_embedding.weight, ours.target_embedding.weight, ours.output.bias]
    assert len(both) + len(shared) == len(list(ours.parameters()))
    mine = torch.autograd.grad(found.square().sum(), [own for own, _, _ in both] + shared)
    # A packed parameter comes thrice among theirs, once for each third.
    others = torch.autograd.grad(expected.square().sum(), [its for _, its, _ in both] + shared)
    thirds = [third for _, _, third in both] + [None] * len(shared)
    for own, its, third in zip(mine, others, thirds, strict=True):
        torch.testing.assert_close(own, part_of(its, third), rtol=1e-8, atol=1e-8)
