"""Settings of the Transformer."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attlas.config import Config
from attlas.errors import AttlasError
from attlas.models.idle import refuse_idle
from attlas.patterns import parse

Width = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Patterns = tuple[str, ...]
"""Where attention may look, such as "either(window(64), landmarks(0))": one pattern for all layers,
or one for each.
"""


class BlockConfig(Config):
    """What every layer of a Transformer is like; a setting that would have no effect is an error
    that says so.

    width: of embeddings and of what every layer passes on. heads: of every attention; key_heads:
    how many of them have keys and values of their own (None = all; see `MultiHead`). feedforward:
    the width inside the position-wise feed-forward.

    positions: how the order of tokens is known; longest: how many learned positions there are.
    norm, placement: LayerNorm or RMSNorm, behind the sum ("post", Vaswani et al., 2017) or before
    the sublayer ("pre", Xiong et al., 2020). activation: of the feed-forward; see `FeedForward`.
    bias: whether the linear maps have one.

    dropout: of embeddings and of what each sublayer adds; attention_dropout: of the weights;
    feedforward_dropout: inside the feed-forward.
    """

    width: Width = 256
    heads: Width = 4
    key_heads: Width | None = None
    feedforward: Width = 1024
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    longest: Width = 1024
    norm: Literal["layer", "rms"] = "layer"
    placement: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    bias: bool = True
    dropout: Share = 0.1
    attention_dropout: Share = 0.0
    feedforward_dropout: Share = 0.0

    @model_validator(mode="after")
    def _shared_evenly(self) -> Self:
        if self.width % self.heads:
            raise AttlasError(
                "a width that the heads share evenly",
                f"width = {self.width} for heads = {self.heads}",
                "choose heads that divide the width",
            )
        if self.key_heads is not None and self.heads % self.key_heads:
            raise AttlasError(
                "heads that share key_heads evenly",
                f"heads = {self.heads} for key_heads = {self.key_heads}",
                "choose key_heads that divide the heads",
            )
        return self

    @model_validator(mode="after")
    def _positions_fit(self) -> Self:
        turned = {"sinusoidal": self.width, "rotary": self.width // self.heads}
        if turned.get(self.positions, 0) % 2:
            of = "width" if self.positions == "sinusoidal" else "width / heads"
            raise AttlasError(
                f"an even {of} for positions = {self.positions!r}",
                f"width = {self.width} for heads = {self.heads}",
                f"make {of} even: these positions fill pairs of numbers",
            )
        if self.positions != "learned":
            beside = f"positions = {self.positions!r}"
            refuse_idle(self, beside, {"longest": "set positions = 'learned'"})
        return self


class TransformerConfig(BlockConfig):
    """A Transformer, encoder and decoder; see `BlockConfig` for what their layers are like.

    encoder_layers, decoder_layers: how many. encoder_patterns: where the encoder's layers may look;
    decoder_patterns: the same for the decoder's self-attention, which besides sees no later token.
    tied_output: the output layer's matrix is the target embedding. tied_source: both languages
    share one embedding; needs a joint vocabulary.
    """

    kind: Literal["transformer"] = "transformer"
    encoder_layers: Width = 3
    decoder_layers: Width = 3
    encoder_patterns: Patterns = ("everywhere",)
    decoder_patterns: Patterns = ("everywhere",)
    tied_output: bool = True
    tied_source: bool = False

    @model_validator(mode="after")
    def _patterns_fit(self) -> Self:
        check_patterns("encoder_", self.encoder_patterns, self.encoder_layers)
        check_patterns("decoder_", self.decoder_patterns, self.decoder_layers)
        return self


def check_patterns(prefix: str, patterns: Patterns, layers: int) -> None:
    """That each pattern is one, and that there are as many as layers, or one for all."""
    for pattern in patterns:
        parse(pattern)
    if len(patterns) not in (1, layers):
        raise AttlasError(
            f"{prefix}patterns with one pattern for all layers, or one for each of "
            f"{prefix}layers = {layers}",
            f"{len(patterns)} patterns",
            f"give 1 or {layers}",
        )
