"""Settings of the classifier."""

from typing import Literal, Self

from pydantic import model_validator

from attlas.models.block import BlockConfig, Patterns, check_patterns
from attlas.models.numbers import Count


class ClassifierConfig(BlockConfig):
    """A self-attention classifier; see `BlockConfig` for what its layers are like.

    layers: how many; patterns: where they may look (a window keeps long texts affordable: time and
    memory grow with length × window). pooling: how the vectors of all tokens become one, see
    `MeanPooling`, `MaxPooling`, `FirstPooling` and `AttentivePooling`; "first" wants patterns that
    let the first token see the others, such as either(window(16), landmarks(0)).
    """

    kind: Literal["classifier"] = "classifier"
    layers: Count = 1
    patterns: Patterns = ("everywhere",)
    pooling: Literal["mean", "max", "first", "attentive"] = "mean"

    @model_validator(mode="after")
    def _patterns_fit(self) -> Self:
        check_patterns("", self.patterns, self.layers)
        return self
