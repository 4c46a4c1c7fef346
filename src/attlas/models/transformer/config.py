"""Settings of the layers of a Transformer and of a classifier."""

import json
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from attlas.config import Config
from attlas.errors import ConfigError, quoted
from attlas.models.config import Count, Share, refuse_idle
from attlas.patterns import Pattern, parse

MapName = Literal["q", "k", "v", "out", "ffn"]


class BlockConfig(Config):
    """Settings of the layers of a Transformer. A setting that would have no effect is an error."""

    embed_dim: Count = 256
    """The width of embeddings and of what every layer passes on."""
    num_heads: Count = 4
    """The heads of every attention."""
    num_kv_heads: Count | None = None
    """How many heads have keys and values of their own. Left out: all."""
    ffn_dim: Annotated[int, Field(ge=0)] = 1024
    """The width inside the feed-forward network; 0 = there is none."""
    qk_norm: bool = False
    """Whether the queries and keys of each head are normed before their product, by an RMSNorm with
    learned gains, as in Qwen3 and Gemma 3 (Henry et al., 2020).
    """
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    """How the order of tokens is known."""
    max_positions: Annotated[int, Field(ge=2)] = 1024  # the least: of a token and the end
    """How many learned positions there are."""
    norm_type: Literal["layer", "rms", "none"] = "layer"
    """LayerNorm, RMSNorm or none."""
    norm: Literal["pre", "post"] = "pre"
    """The norm is before the sublayer ("pre", Xiong et al., 2020) or behind the sum ("post",
    Vaswani et al., 2017).
    """
    residual: bool = True
    """Whether the input of a sublayer is added to its output."""
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    """Of the feed-forward network."""
    bias: bool | tuple[MapName, ...] = True
    """Whether linear maps of attentions and feed-forward networks have one, or which: those of
    queries, keys, values and outputs of attentions, and those of the feed-forward network.
    LayerNorm and the output layer always do.
    """
    dropout: Share = 0.1
    """Of embeddings and of what each sublayer adds."""
    attention_dropout: Share = 0.0
    """Of the attention weights."""
    ffn_dropout: Share = 0.0
    """Inside the feed-forward network."""
    word_dropout: Share = 0.0
    """The probability that a token is left out whole in training, so that no single
    word decides.
    """

    @field_validator("bias", mode="before")
    @classmethod
    def _names_maps(cls, bias: Any) -> bool | tuple[MapName, ...]:
        if isinstance(bias, bool):
            return bias
        names = (bias,) if isinstance(bias, str) else bias
        known = get_args(MapName)
        is_collection = isinstance(names, tuple | list | set | frozenset)
        if not is_collection or any(name not in known for name in names):
            raise ConfigError(
                'bias as true, false or a list of some of "q", "k", "v", "out" and "ffn"',
                quoted(bias),
                "name the maps that have a bias",
            )
        return tuple(name for name in known if name in names)  # in one order

    @model_validator(mode="after")
    def _shared_evenly(self) -> Self:
        if self.embed_dim % self.num_heads:
            raise ConfigError(
                "an embed_dim that num_heads divides",
                f"embed_dim = {self.embed_dim} for num_heads = {self.num_heads}",
                "choose num_heads that divides embed_dim",
            )
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise ConfigError(
                "a num_heads that num_kv_heads divides",
                f"num_heads = {self.num_heads} for num_kv_heads = {self.num_kv_heads}",
                "choose num_kv_heads that divides num_heads",
            )
        return self

    @model_validator(mode="after")
    def _positions_fit(self) -> Self:
        rotated_dims = {"sinusoidal": self.embed_dim, "rotary": self.embed_dim // self.num_heads}
        if rotated_dims.get(self.positions, 0) % 2:
            size_name = "embed_dim" if self.positions == "sinusoidal" else "embed_dim / num_heads"
            raise ConfigError(
                f"an even {size_name} for positions = {self.positions!r}",
                f"embed_dim = {self.embed_dim} for num_heads = {self.num_heads}",
                f"make {size_name} even: these positions fill pairs of numbers",
            )
        if self.positions != "learned":
            combination = f"positions = {self.positions!r}"
            refuse_idle(self, combination, {"max_positions": "set positions = 'learned'"})
        return self

    @model_validator(mode="after")
    def _parts_are_there(self) -> Self:
        if not self.ffn_dim:
            cure = "set ffn_dim above 0"
            refuse_idle(self, "ffn_dim = 0", {"activation": cure, "ffn_dropout": cure})
            if not isinstance(self.bias, bool) and "ffn" in self.bias:
                raise ConfigError(
                    'no "ffn" in bias with ffn_dim = 0, where it has no effect',
                    f"bias = {json.dumps(self.bias)}",
                    f'leave "ffn" out, or {cure}',
                )
        if self.norm_type == "none":
            refuse_idle(self, "norm_type = 'none'", {"norm": "set norm_type = 'layer' or 'rms'"})
        return self


# Attention patterns of the layers.


Patterns = tuple[str, ...]
"""Where attention may look, such as "either(window(64), landmarks(0))": one pattern for all layers,
or one for each.
"""


def check_patterns(prefix: str, patterns: Patterns, layers: int) -> None:
    """Check that each pattern is valid, and that there is one for all layers, or one for each."""
    for pattern in patterns:
        parse(pattern)
    if len(patterns) not in (1, layers):
        raise ConfigError(
            f"{prefix}patterns with one pattern for all layers, or one for each of "
            f"{prefix}layers = {layers}",
            f"{len(patterns)} patterns",
            f"give 1 or {layers}",
        )


def parse_patterns(patterns: Patterns, layers: int) -> list[Pattern]:
    """One pattern per layer."""
    parsed = [parse(pattern) for pattern in patterns]
    return parsed * layers if len(parsed) == 1 else parsed
