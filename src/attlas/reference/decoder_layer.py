"""A layer of the Transformer's decoder."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.feed_forward import FeedForwardParameters, feed_forward
from attlas.reference.layer_norm import NormParameters, layer_norm
from attlas.reference.multihead import MultiHeadParameters, multi_head
from attlas.reference.residual import add_and_norm, residual


class DecoderLayerParameters(NamedTuple):
    """What a layer of the decoder has learned."""

    self_attention: MultiHeadParameters
    self_attention_norm: NormParameters
    cross_attention: MultiHeadParameters
    cross_attention_norm: NormParameters
    feed_forward: FeedForwardParameters
    feed_forward_norm: NormParameters


@takes_arrays
def decoder_layer(
    x: Float64[np.ndarray, "queries embed_dim"],
    memory: Float64[np.ndarray, "keys embed_dim"],
    p: DecoderLayerParameters,
    self_mask: Bool[np.ndarray, "queries queries"] | None = None,
    cross_mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[
    Float64[np.ndarray, "queries embed_dim"],
    Float64[np.ndarray, "heads queries queries"],
    Float64[np.ndarray, "heads queries keys"],
]:
    """x ← LayerNorm(x + MultiHead(x, x, x)),  x ← LayerNorm(x + MultiHead(x, m, m)),
    x ← LayerNorm(x + FFN(x)).

    Vaswani et al., 2017, section 3.1 and figure 1, right. m is the encoder's output, `memory`.
    self_mask is causal there. Returns x and the weights of both attentions.
    """
    attended, self_weights = multi_head(x, x, x, **p.self_attention._asdict(), mask=self_mask)
    x = add_and_norm(x, attended, *p.self_attention_norm)
    attended, cross_weights = multi_head(
        x, memory, memory, **p.cross_attention._asdict(), mask=cross_mask
    )
    x = add_and_norm(x, attended, *p.cross_attention_norm)
    x = add_and_norm(x, feed_forward(x, *p.feed_forward), *p.feed_forward_norm)
    return x, self_weights, cross_weights


@takes_arrays
def pre_norm_decoder_layer(
    x: Float64[np.ndarray, "queries embed_dim"],
    memory: Float64[np.ndarray, "keys embed_dim"],
    p: DecoderLayerParameters,
    self_mask: Bool[np.ndarray, "queries queries"] | None = None,
    cross_mask: Bool[np.ndarray, "queries keys"] | None = None,
) -> tuple[
    Float64[np.ndarray, "queries embed_dim"],
    Float64[np.ndarray, "heads queries queries"],
    Float64[np.ndarray, "heads queries keys"],
]:
    """x ← x + Sublayer(LayerNorm(x)), for the same three sublayers    Xiong et al., 2020.

    The memory is not normalised here: the encoder's last LayerNorm has done so.
    """
    y = layer_norm(x, *p.self_attention_norm)
    attended, self_weights = multi_head(y, y, y, **p.self_attention._asdict(), mask=self_mask)
    x = residual(x, attended)
    y = layer_norm(x, *p.cross_attention_norm)
    attended, cross_weights = multi_head(
        y, memory, memory, **p.cross_attention._asdict(), mask=cross_mask
    )
    x = residual(x, attended)
    y = layer_norm(x, *p.feed_forward_norm)
    return residual(x, feed_forward(y, *p.feed_forward)), self_weights, cross_weights
