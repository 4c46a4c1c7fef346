"""The whole Transformer: ids in, logits out."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

from attlas.reference._arrays import takes_arrays
from attlas.reference.decoder_layer import (
    DecoderLayerParameters,
    decoder_layer,
    pre_norm_decoder_layer,
)
from attlas.reference.encoder_layer import (
    EncoderLayerParameters,
    encoder_layer,
    pre_norm_encoder_layer,
)
from attlas.reference.layer_norm import NormParameters, layer_norm
from attlas.reference.patterns import Rule, causal, everywhere, mask
from attlas.reference.sinusoidal import sinusoidal

Maps = dict[str, Float64[np.ndarray, "_ _ _"]]  # heads, queries, keys: each layer's own
"""The weights of each attention, by the name of its layer in `attlas.models.Transformer`."""


class TransformerParameters(NamedTuple):
    """What a Transformer has learned.

    Args:
        E_source, E_target: One vector for each word.
        W: The same for each word that may be written; the paper shares all three (section 3.4).
        encoder_norm, decoder_norm: Behind the last layer; None = no norm, as in the paper. Pre-norm
            has them.
    """

    E_source: Float64[np.ndarray, "source_words embed_dim"]
    E_target: Float64[np.ndarray, "target_words embed_dim"]
    encoder: Sequence[EncoderLayerParameters]
    decoder: Sequence[DecoderLayerParameters]
    W: Float64[np.ndarray, "target_words embed_dim"]
    b: Float64[np.ndarray, " target_words"]
    encoder_norm: NormParameters | None = None
    decoder_norm: NormParameters | None = None


@takes_arrays
def transformer(
    source: Int[np.ndarray, " keys"],
    target: Int[np.ndarray, " queries"],
    p: TransformerParameters,
    *,
    norm: Literal["post", "pre"] = "post",
    token_mask: Bool[np.ndarray, " keys"] | None = None,
    encoder_rule: Rule = everywhere,
    decoder_rule: Rule = causal,
) -> tuple[Float64[np.ndarray, "queries target_words"], Maps]:
    """P(yₜ₊₁ | y₁ … yₜ, x) = softmax(logits)ₜ    Vaswani et al., 2017, figure 1.

    Returns the logits, and the weights of every attention.

    Args:
        source, target: The ids x and y; y begins with the begin token.
        norm: "post" as in the paper, or "pre".
        token_mask: False where the source is padding.
        encoder_rule, decoder_rule: Where the two self-attentions may look.
    """
    memory, encoder_maps = transformer_encoder(
        source, p, norm=norm, token_mask=token_mask, rule=encoder_rule
    )
    logits, decoder_maps = transformer_decoder(
        target, memory, p, norm=norm, token_mask=token_mask, rule=decoder_rule
    )
    return logits, encoder_maps | decoder_maps


@takes_arrays
def embed(
    ids: Int[np.ndarray, " positions"], E: Float64[np.ndarray, "words embed_dim"]
) -> Float64[np.ndarray, "positions embed_dim"]:
    """√d E[id] + PE    sections 3.4 and 3.5."""
    return np.sqrt(E.shape[-1]) * E[ids] + sinusoidal(len(ids), E.shape[-1])


@takes_arrays
def transformer_encoder(
    source: Int[np.ndarray, " keys"],
    p: TransformerParameters,
    *,
    norm: Literal["post", "pre"] = "post",
    token_mask: Bool[np.ndarray, " keys"] | None = None,
    rule: Rule = everywhere,
) -> tuple[Float64[np.ndarray, "keys embed_dim"], Maps]:
    """figure 1, left: the memory at which the decoder looks."""
    layer = {"post": encoder_layer, "pre": pre_norm_encoder_layer}[norm]
    allowed = mask(rule, len(source), len(source))
    if token_mask is not None:
        allowed = allowed & token_mask  # padding is not looked at
    x, maps = embed(source, p.E_source), {}
    for n, parameters in enumerate(p.encoder):
        x, maps[f"encoder.layers.{n}.self_attention"] = layer(x, parameters, allowed)
    return (x if p.encoder_norm is None else layer_norm(x, *p.encoder_norm)), maps


@takes_arrays
def transformer_decoder(
    target: Int[np.ndarray, " queries"],
    memory: Float64[np.ndarray, "keys embed_dim"],
    p: TransformerParameters,
    *,
    norm: Literal["post", "pre"] = "post",
    token_mask: Bool[np.ndarray, " keys"] | None = None,
    rule: Rule = causal,
) -> tuple[Float64[np.ndarray, "queries target_words"], Maps]:
    """figure 1, right, up to the softmax: one logit for each word that may come next."""
    layer = {"post": decoder_layer, "pre": pre_norm_decoder_layer}[norm]
    allowed = mask(rule, len(target), len(target))
    tokens = None if token_mask is None else np.tile(token_mask, (len(target), 1))
    x, maps = embed(target, p.E_target), {}
    for n, parameters in enumerate(p.decoder):
        x, self_weights, cross_weights = layer(x, memory, parameters, allowed, tokens)
        maps[f"decoder.layers.{n}.self_attention"] = self_weights
        maps[f"decoder.layers.{n}.cross_attention"] = cross_weights
    features = x if p.decoder_norm is None else layer_norm(x, *p.decoder_norm)
    return features @ p.W.T + p.b, maps
