"""The weights of attlas in models that are wired and named as JoeyNMT's are."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attlas.models.factory import build
from attlas.models.rnn.config import RecurrentConfig
from attlas.models.transformer.model_config import TransformerConfig

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "contenders")]

from attlas_models import MODELS  # noqa: E402
from joeynmt_weights import put_into  # noqa: E402

TOKENS, WIDTH, INNER = 11, 8, 12
SWAPPED = [1, 0, *range(2, TOKENS)]  # padding, unknown, … ↔ unknown, padding, …


def model(**parts: nn.Module) -> nn.ModuleDict:
    """JoeyNMT 2.3's, of an encoder and a decoder."""
    embeddings = {
        side: nn.ModuleDict({"lut": nn.Embedding(TOKENS, WIDTH)})
        for side in ("src_embed", "trg_embed")
    }
    return nn.ModuleDict({**embeddings, **parts})


def transformer_of_theirs() -> nn.ModuleDict:
    def attention() -> nn.Module:
        names = ("k_layer", "v_layer", "q_layer", "output_layer")
        return nn.ModuleDict({name: nn.Linear(WIDTH, WIDTH) for name in names})

    def layer(attentions: list[str], norms: list[str]) -> nn.Module:
        inner, outer = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        forward = {
            "layer_norm": nn.LayerNorm(WIDTH),
            "pwff_layer": nn.Sequential(inner, nn.ReLU(), nn.Dropout(), outer, nn.Dropout()),
        }
        return nn.ModuleDict(
            {name: attention() for name in attentions}
            | {name: nn.LayerNorm(WIDTH) for name in norms}
            | {"feed_forward": nn.ModuleDict(forward)}
        )

    def positions() -> nn.Module:
        found = nn.Module()
        found.register_buffer("pe", torch.full((1, 9, WIDTH), 3.0))
        return found

    attentions, norms = ["trg_trg_att", "src_trg_att"], ["x_layer_norm", "dec_layer_norm"]
    encoders = nn.ModuleList([layer(["src_src_att"], ["layer_norm"]) for _ in range(2)])
    decoders = nn.ModuleList([layer(attentions, norms) for _ in range(2)])
    output = nn.Linear(WIDTH, TOKENS, bias=False)
    return model(
        encoder=nn.ModuleDict({"layers": encoders, "pe": positions()}),
        decoder=nn.ModuleDict({"layers": decoders, "pe": positions(), "output_layer": output}),
    )


def recurrent_of_theirs(attention: str) -> nn.ModuleDict:
    def linear(outputs: int, inputs: int = WIDTH) -> nn.Module:
        return nn.Linear(inputs, outputs, bias=False)

    scores = {"key_layer": linear(WIDTH)}
    if attention == "additive":
        scores |= {"query_layer": linear(WIDTH), "energy_layer": linear(1)}
    decoder = {
        "rnn": nn.GRU(2 * WIDTH, WIDTH, batch_first=True),
        "att_vector_layer": nn.Linear(2 * WIDTH, WIDTH),
        "output_layer": linear(TOKENS),
        "attention": nn.ModuleDict(scores),
        "bridge_layer": nn.Linear(WIDTH, WIDTH),
    }
    rnn = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
    return model(encoder=nn.ModuleDict({"rnn": rnn}), decoder=nn.ModuleDict(decoder))


def ours(name: str) -> nn.Module:
    """The model of the benchmark, only smaller, with weights that differ everywhere."""
    if name == "transformer":
        small: dict[str, Any] = {
            "embed_dim": WIDTH, "num_heads": 2, "ffn_dim": INNER, "encoder_layers": 2,
            "decoder_layers": 2,
        }  # fmt: skip
        config: Any = TransformerConfig.model_validate(MODELS[name] | small)
    else:
        small = {"embed_dim": WIDTH, "hidden_dim": WIDTH, "encoder_hidden_dim": WIDTH // 2}
        config = RecurrentConfig.model_validate(MODELS[name] | small)
    made = build(config, TOKENS, TOKENS)
    torch.manual_seed(1)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def both(name: str) -> tuple[nn.Module, nn.ModuleDict]:
    """Ours, and theirs with what it was given."""
    its = transformer_of_theirs() if name == "transformer" else recurrent_of_theirs(name)
    model = ours(name)
    put_into(its, model.state_dict())
    return model, its


def same(one: nn.Module, other: nn.Module, *given: Tensor) -> None:
    torch.testing.assert_close(one(*given), other(*given))


@pytest.mark.parametrize("name", ["transformer", "additive", "luong-gru"])
def test_words_have_the_vectors_and_the_scores_that_they_have_with_us(name: str) -> None:
    model, its = both(name)
    words, state = torch.arange(TOKENS), torch.randn(3, WIDTH)
    vectors = model.get_submodule("target_embedding").weight
    output = its.get_submodule("decoder.output_layer")
    for side in ("src_embed", "trg_embed"):
        assert torch.equal(its.get_submodule(f"{side}.lut")(words), vectors[SWAPPED])
    scores = state @ vectors.T + model.get_submodule("output").bias
    torch.testing.assert_close(output(state), scores[:, SWAPPED])


@pytest.mark.parametrize("layer", [0, 1])
def test_every_part_of_a_transformer_computes_what_ours_does(layer: int) -> None:
    model, its = both("transformer")
    states = torch.randn(3, WIDTH)
    parts = {
        "self_attention.q_proj": ("src_src_att.q_layer", "trg_trg_att.q_layer"),
        "self_attention.out_proj": ("src_src_att.output_layer", "trg_trg_att.output_layer"),
        "cross_attention.k_proj": (None, "src_trg_att.k_layer"),
        "cross_attention.v_proj": (None, "src_trg_att.v_layer"),
        "around_self_attention.norm": ("layer_norm", "x_layer_norm"),
        "around_cross_attention.norm": (None, "dec_layer_norm"),
        "around_feed_forward.norm": ("feed_forward.layer_norm",) * 2,
        "feed_forward.inner": ("feed_forward.pwff_layer.0",) * 2,
    }
    for our_name, names in parts.items():
        for side, their_name in zip(("encoder", "decoder"), names, strict=True):
            if their_name is not None:
                one, other = f"layers.{layer}.{our_name}", f"layers.{layer}.{their_name}"
                same(
                    model.get_submodule(f"{side}.{one}"),
                    its.get_submodule(f"{side}.{other}"),
                    states,
                )


def test_a_transformer_keeps_its_own_positions() -> None:
    _, its = both("transformer")
    for side in ("encoder", "decoder"):
        assert torch.equal(its.get_submodule(f"{side}.pe").pe, torch.full((1, 9, WIDTH), 3.0))


@pytest.mark.parametrize("name", ["additive", "luong-gru"])
def test_every_part_of_a_recurrent_model_computes_what_ours_does(name: str) -> None:
    model, its = both(name)
    ours, theirs = model.get_submodule, its.get_submodule
    words, fed = torch.randn(2, 5, WIDTH), torch.randn(2, 5, 2 * WIDTH)
    for one, other, given in (
        ("encoder.rnn", "encoder.rnn", words),
        ("decoder.recurrence.rnn", "decoder.rnn", fed),
    ):
        for found, expected in zip(theirs(other)(given), ours(one)(given), strict=True):
            torch.testing.assert_close(found, expected)
    same(ours("decoder.attention.k_proj"), theirs("decoder.attention.key_layer"), words)
    if name == "additive":
        same(ours("decoder.attention.q_proj"), theirs("decoder.attention.query_layer"), words)
        same(ours("decoder.attention.score_proj"), theirs("decoder.attention.energy_layer"), words)

    context, state = torch.randn(2, 3, WIDTH)
    found = theirs("decoder.att_vector_layer")(torch.cat([state, context], dim=1))
    torch.testing.assert_close(
        found, ours("decoder.concat_proj")(torch.cat([context, state], dim=1))
    )
    forward, backward = torch.randn(2, 3, WIDTH // 2)
    found = theirs("decoder.bridge_layer")(torch.cat([forward, backward], dim=1))
    torch.testing.assert_close(found, ours("decoder.bridge.matrices.0")(backward))


def test_a_model_that_is_wired_in_another_way_is_refused() -> None:
    with pytest.raises(RuntimeError, match="key_layer"):
        put_into(recurrent_of_theirs("additive"), ours("transformer").state_dict())
