"""A layer of the Transformer's encoder."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from attlas.reference._arrays import takes_arrays
from attlas.reference.feed_forward import FeedForwardParameters, feed_forward
from attlas.reference.layer_norm import NormParameters, layer_norm
from attlas.reference.multihead import MultiHeadParameters, multi_head
from attlas.reference.residual import add_and_norm, residual


class EncoderLayerParameters(NamedTuple):
    """What a layer of the encoder has learned."""

    self_attention: MultiHeadParameters
    self_attention_norm: NormParameters
    feed_forward: FeedForwardParameters
    feed_forward_norm: NormParameters


@takes_arrays
def encoder_layer(
    x: Float64[np.ndarray, "positions embed_dim"],
    p: EncoderLayerParameters,
    mask: Bool[np.ndarray, "positions positions"] | None = None,
) -> tuple[
    Float64[np.ndarray, "positions embed_dim"], Float64[np.ndarray, "heads positions positions"]
]:
    """x ← LayerNorm(x + MultiHead(x, x, x)),  x ← LayerNorm(x + FFN(x)).

    Vaswani et al., 2017, section 3.1 and figure 1, left. Returns x and the weights of the heads.
    """
    attended, weights = multi_head(x, x, x, **p.self_attention._asdict(), mask=mask)
    x = add_and_norm(x, attended, *p.self_attention_norm)
    x = add_and_norm(x, feed_forward(x, *p.feed_forward), *p.feed_forward_norm)
    return x, weights


@takes_arrays
def pre_norm_encoder_layer(
    x: Float64[np.ndarray, "positions embed_dim"],
    p: EncoderLayerParameters,
    mask: Bool[np.ndarray, "positions positions"] | None = None,
) -> tuple[
    Float64[np.ndarray, "positions embed_dim"], Float64[np.ndarray, "heads positions positions"]
]:
    """y = LayerNorm(x),  x ← x + MultiHead(y, y, y),  x ← x + FFN(LayerNorm(x)).

    Xiong et al., 2020, table 1, right. The same parameters as of `encoder_layer`.
    """
    y = layer_norm(x, *p.self_attention_norm)
    attended, weights = multi_head(y, y, y, **p.self_attention._asdict(), mask=mask)
    x = residual(x, attended)
    y = layer_norm(x, *p.feed_forward_norm)
    return residual(x, feed_forward(y, *p.feed_forward)), weights
