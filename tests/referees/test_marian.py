"""The Transformer against Hugging Face's Marian, with the weights copied in."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from attlas.decoding import DecodingConfig, decode
from attlas.models import Transformer, TransformerConfig, build

SIZE, PAD, END = 23, 0, 3


def theirs() -> MarianMTModel:
    torch.manual_seed(4)
    config = MarianConfig(
        vocab_size=SIZE, d_model=24, encoder_layers=2, decoder_layers=3,
        encoder_attention_heads=3, decoder_attention_heads=3, encoder_ffn_dim=40,
        decoder_ffn_dim=40, dropout=0.0, activation_function="relu", scale_embedding=True,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=2, bos_token_id=2,
        forced_eos_token_id=None, max_position_embeddings=64, init_std=0.3,
    )  # fmt: skip
    model = MarianMTModel(config).double().eval()
    with torch.no_grad():
        model.final_logits_bias.normal_()
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter.normal_(std=0.3)
    return model


class Halves(nn.Module):
    """Marian's positions: all sines, then all cosines; ours alternate."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding

    def forward(self, embedded: Tensor, offset: int = 0) -> Tensor:
        return embedded + self.embedding.weight[offset : offset + embedded.shape[1]]


@torch.no_grad()
def ours(marian: MarianMTModel) -> Transformer:
    """Our Transformer with Marian's weights."""
    config = TransformerConfig(
        embed_dim=24, num_heads=3, ffn_dim=40, encoder_layers=2, decoder_layers=3,
        norm="post", dropout=0.0, tie_source=True,
    )  # fmt: skip
    model = build(config, SIZE, SIZE).double().eval()
    assert isinstance(model, Transformer)
    model.target_embedding.weight.copy_(marian.model.shared.weight)
    model.output.bias.copy_(marian.final_logits_bias[0])
    for mine, other in (
        (model.encoder, marian.model.encoder),
        (model.decoder, marian.model.decoder),
    ):
        for own, layer in zip(mine.layers, other.layers, strict=True):
            attend(own.self_attention, layer.self_attn)
            copy(own.around_self_attention.norm, layer.self_attn_layer_norm)
            copy(own.feed_forward.inner, layer.fc1)
            copy(own.feed_forward.outer, layer.fc2)
            copy(own.around_feed_forward.norm, layer.final_layer_norm)
            if mine is model.decoder:
                attend(own.cross_attention, layer.encoder_attn)
                copy(own.around_cross_attention.norm, layer.encoder_attn_layer_norm)
    model.source_positions = Halves(marian.model.encoder.embed_positions)
    model.target_positions = Halves(marian.model.decoder.embed_positions)
    return model


def copy(mine: nn.Module, other: nn.Module) -> None:
    mine.load_state_dict(other.state_dict())


def attend(mine: Any, other: Any) -> None:
    copy(mine.q_proj, other.q_proj)
    copy(mine.k_proj, other.k_proj)
    copy(mine.v_proj, other.v_proj)
    copy(mine.out_proj, other.out_proj)


@pytest.fixture(scope="module")
def pair() -> tuple[Transformer, MarianMTModel]:
    marian = theirs()
    return ours(marian), marian


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    token_mask = torch.arange(7) < torch.tensor([7, 4, 2, 1]).unsqueeze(1)
    source = torch.randint(4, SIZE, token_mask.shape) * token_mask
    source[torch.arange(4), token_mask.sum(1) - 1] = END
    return source, token_mask


def test_the_logits_are_marians(pair, batch) -> None:
    mine, marian = pair
    source, token_mask = batch
    target = torch.cat([torch.full((4, 1), 2), torch.randint(4, SIZE, (4, 5))], dim=1)
    expected = marian(source, attention_mask=token_mask.long(), decoder_input_ids=target).logits
    torch.testing.assert_close(
        mine(source, target, token_mask=token_mask), expected, rtol=1e-9, atol=1e-9
    )


def test_greedy_search_finds_what_marian_generates(pair, batch) -> None:
    mine, marian = pair
    source, token_mask = batch
    config = DecodingConfig(method="greedy", max_len_a=0.0, max_len_b=12)
    found = [tuple(best.tokens) for (best,) in decode(mine, source, token_mask, config)]
    generated = marian.generate(
        source, attention_mask=token_mask.long(), max_new_tokens=12, do_sample=False, num_beams=1,
        bad_words_ids=[[PAD], [2]],
    )  # fmt: skip
    rows = generated[:, 1:].tolist()
    assert found == [tuple(row[: row.index(END)] if END in row else row) for row in rows]
