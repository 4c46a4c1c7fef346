"""The folder that CTranslate2 loads."""

import math
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attlas.data import BEGIN, END, PAD, UNKNOWN, Vocabulary
from attlas.data.vocabulary import SPECIAL
from attlas.decoding import DecodingConfig
from attlas.errors import missing_extra
from attlas.export.base import Linear, all_heads
from attlas.layers import LearnedPositions, MultiheadAttention, Positions, SinusoidalPositions
from attlas.models import Transformer, TransformerConfig
from attlas.models.transformer.block import FeedForward
from attlas.runs.loaded import (
    LoadedTranslator,
    check_plain_scores,
    check_sees_all,
    check_whole_layers,
)

QUANTIZATIONS = ("float32", "int8")
LONGEST = 1024  # positions of sinusoids; CTranslate2 reads a table of them

_TAKER = "CTranslate2"


def write_ctranslate2(
    loaded: LoadedTranslator, folder: Path, quantization: str = "float32"
) -> list[str]:
    """`ctranslate2.Translator(folder)`; tokens in, tokens out.

    float32: the same numbers up to rounding. int8: the weights rounded to 8 bits, row by row.

    Returns:
        What a reader of the folder has to know.

    Raises:
        AttlasError: Without CTranslate2, and for a model that it cannot express.
    """
    model, config = loaded.transformer(_TAKER)
    check_sees_all(_TAKER, config)
    check_whole_layers(_TAKER, config)
    check_plain_scores(_TAKER, config)
    try:
        import ctranslate2.specs as specs
    except ImportError:
        raise missing_extra("the export to CTranslate2", "ctranslate2") from None
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.encoder_layers, config.num_heads, **_options(config)),
        specs.TransformerDecoderSpec(config.decoder_layers, config.num_heads, **_options(config)),
    )
    with torch.no_grad():
        _fill(spec, deepcopy(model), config)  # quantising writes over what it is given
    source, target = loaded.vocabularies.source, loaded.vocabularies.target
    spec.register_source_vocabulary(names(source))
    spec.register_target_vocabulary(names(target))
    spec.config.unk_token = SPECIAL[UNKNOWN]
    spec.config.bos_token = spec.config.decoder_start_token = SPECIAL[BEGIN]
    spec.config.eos_token = SPECIAL[END]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = _epsilon(model)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    loaded.vocabularies.save(folder)
    cut = (
        "On an x86 CPU without VNNI products of 8 bits are cut off, and translations go wrong: "
        "load it there with compute_type='float32', as attlas translate --engine does."
    )
    return [
        *([cut] if quantization == "int8" else []),
        f"The weights are {quantization}. Sources are lists of tokens, as in the vocabulary files "
        "of CTranslate2 here; it adds the end itself.",
        *_of_positions(config),
        "CTranslate2 ranks by log P / |Y|^α, attlas by log P / ((5 + |Y|) / 6)^α: give "
        "length_penalty=0 where attlas has decoding.length_penalty = 0, or translate by attlas "
        "translate --engine ctranslate2, which ranks as attlas does.",
        *_of_suppressed(loaded.decoding),
    ]


def _of_suppressed(decoding: DecodingConfig) -> list[str]:
    """What attlas never writes, and what it writes for <unk>."""
    suppressed = [SPECIAL[PAD], SPECIAL[BEGIN]]
    suppressed += [SPECIAL[UNKNOWN]] if decoding.unknown == "forbid" else []
    notes = [
        f"attlas never writes {' or '.join(suppressed)}: give "
        f"suppress_sequences={[[name] for name in suppressed]}. CTranslate2 then computes the "
        "other probabilities again, so its scores are a little higher than those of attlas."
    ]
    if decoding.unknown == "replace":
        notes.append(
            f"attlas writes a whole word of the source for {SPECIAL[UNKNOWN]} (decoding.unknown), "
            "CTranslate2 with replace_unknowns=True a token of it; attlas translate --engine "
            "ctranslate2 does as attlas."
        )
    return notes


def names(vocabulary: Vocabulary) -> list[str]:
    """One name per id, all different, as CTranslate2 needs them: the labels; repeated ones with
    their id, as in "␣#17".
    """
    labels = vocabulary.pieces(range(len(vocabulary)))
    often = Counter(labels)
    return [
        label if often[label] == 1 or id_ < len(SPECIAL) else f"{label}#{id_}"
        for id_, label in enumerate(labels)
    ]


def _options(config: TransformerConfig) -> dict[str, Any]:
    from ctranslate2.specs import Activation

    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "swiglu": Activation.SWISH}
    rotary = {"rotary_dim": config.embed_dim // config.num_heads, "rotary_interleave": True}
    return {
        "pre_norm": config.norm == "pre",
        "activation": activations[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm_type == "rms",
        **(rotary if config.positions == "rotary" else {}),
    }


def longest(config: TransformerConfig) -> int | None:
    """The maximum number of tokens of a source or a target; None = any number."""
    if config.positions == "rotary":
        return None
    return config.max_positions if config.positions == "learned" else LONGEST


def _of_positions(config: TransformerConfig) -> list[str]:
    num_positions = longest(config)
    notes = (
        []
        if num_positions is None
        else [f"It reads and writes at most {num_positions:,} tokens, ends included."]
    )
    return [
        *notes,
        "CTranslate2 cuts longer sources without a warning: max_input_length=0 forbids it.",
        "It ends a translation after 256 tokens where max_decoding_length does not say otherwise; "
        "attlas by the length of the source (decoding.max_len_a).",
    ]


def _epsilon(model: Transformer) -> float:
    norm: Any = model.encoder.layers[0].around_feed_forward.norm
    return float(norm.eps)


def _fill(spec: Any, model: Transformer, config: TransformerConfig) -> None:
    embedding = model.source_embedding
    source = model.target_embedding if embedding is None else embedding
    spec.encoder.embeddings[0].weight = source.weight
    spec.decoder.embeddings.weight = model.target_embedding.weight
    output = model.output.weight
    spec.decoder.projection.weight = model.target_embedding.weight if output is None else output
    spec.decoder.projection.bias = model.output.bias
    sides: tuple[tuple[Any, Any, Positions], ...] = (
        (spec.encoder, model.encoder, model.source_positions),
        (spec.decoder, model.decoder, model.target_positions),
    )
    for side_spec, side, positions in sides:
        side_spec.scale_embeddings = math.sqrt(config.embed_dim)
        if config.positions != "rotary":
            side_spec.position_encodings.encodings = _table(positions, config.embed_dim)
        elif hasattr(side_spec, "position_encodings"):
            del side_spec.position_encodings  # the encoder's has them even where they are rotary
        if side.norm is not None:
            _set_norm(side_spec.layer_norm, side.norm)
        for layer_spec, layer in zip(side_spec.layer, side.layers, strict=True):
            _fill_layer(layer_spec, layer)


def _fill_layer(spec: Any, layer: Any) -> None:
    query, key, value = all_heads(layer.self_attention)
    _set_joined(spec.self_attention.linear[0], query, key, value)
    _set_last(spec.self_attention, layer.self_attention, layer.around_self_attention.norm)
    if hasattr(layer, "cross_attention"):
        query, key, value = all_heads(layer.cross_attention)
        _set_joined(spec.attention.linear[0], query)
        _set_joined(spec.attention.linear[1], key, value)
        _set_last(spec.attention, layer.cross_attention, layer.around_cross_attention.norm)
    feed_forward: FeedForward = layer.feed_forward
    _set_linear(spec.ffn.linear_0, feed_forward.inner)
    if feed_forward.gate is not None:
        _set_linear(spec.ffn.linear_0_noact, feed_forward.gate)
    _set_linear(spec.ffn.linear_1, feed_forward.outer)
    _set_norm(spec.ffn.layer_norm, layer.around_feed_forward.norm)


def _set_last(spec: Any, attention: MultiheadAttention, norm: nn.Module) -> None:
    _set_linear(spec.linear[-1], attention.out_proj)
    _set_norm(spec.layer_norm, norm)


def _set_joined(spec: Any, *linears: Linear) -> None:
    """Several maps of one input as one."""
    spec.weight = torch.cat([weight for weight, _ in linears])
    if any(bias is not None for _, bias in linears):
        spec.bias = torch.cat(
            [weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in linears]
        )


def _set_linear(spec: Any, linear: nn.Linear) -> None:
    _set_joined(spec, (linear.weight, linear.bias))


def _set_norm(spec: Any, norm: Any) -> None:
    spec.gamma = norm.weight
    if isinstance(norm, nn.LayerNorm):
        spec.beta = norm.bias


def _table(positions: Positions, width: int) -> Tensor:
    """What is added to the embeddings, position by position."""
    if isinstance(positions, LearnedPositions):
        return positions.vectors.weight
    if isinstance(positions, SinusoidalPositions):
        return positions.encoding(LONGEST).float()
    return torch.zeros(LONGEST, width)  # or CTranslate2 would add sinusoids of its own
