"""Scheduled sampling: the decoder reads the right tokens, or its own."""

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from attlas.config import Config
from attlas.data import Batch
from attlas.models import SequenceToSequence, sampled_logits


class ScheduledSampling(Config, ABC):
    """The probability with which each token fed at update i is the right one.

    Scheduled sampling, Bengio et al., 2015, section 2.4; i counts from 0 (the first update). With
    the rest of the probability it is the model's own: its most probable token ("argmax"), or one
    drawn from its distribution ("sample").
    """

    token: Literal["argmax", "sample"] = "sample"
    """Which token of the model is fed: its most probable one ("argmax"), or one drawn from its
    distribution ("sample").
    """

    @abstractmethod
    def probability(self, i: int) -> float:
        """Of the right token at update i."""


class ConstantSampling(ScheduledSampling):
    """p; 1 is teacher forcing, 0 free running."""

    kind: Literal["constant"] = "constant"
    p: float = Field(default=1.0, ge=0.0, le=1.0)
    """The probability of the right token: 1 is teacher forcing, 0 free running."""

    def probability(self, i: int) -> float:
        return self.p


class LinearSampling(ScheduledSampling):
    """max(floor, start − slope · i)."""

    kind: Literal["linear"] = "linear"
    start: float = Field(default=1.0, ge=0.0, le=1.0)
    """The probability of the right token at the first update."""
    slope: float = Field(gt=0.0)
    """How much it falls with each update."""
    floor: float = Field(default=0.0, ge=0.0, le=1.0)
    """The least probability."""

    def probability(self, i: int) -> float:
        return max(self.floor, self.start - self.slope * i)


class ExponentialSampling(ScheduledSampling):
    """kⁱ, k < 1."""

    kind: Literal["exponential"] = "exponential"
    k: float = Field(gt=0.0, lt=1.0)
    """The probability of the right token falls by this factor with each update."""

    def probability(self, i: int) -> float:
        return float(self.k**i)


class InverseSigmoidSampling(ScheduledSampling):
    """k / (k + exp(i / k)), k ≥ 1: about ½ at i = k ln k."""

    kind: Literal["inverse-sigmoid"] = "inverse-sigmoid"
    k: float = Field(ge=1.0)
    """How late the probability of the right token falls: about ½ at update k ln k."""

    def probability(self, i: int) -> float:
        # 1 / (1 + exp(z)), written so that exp cannot overflow.
        z = i / self.k - math.log(self.k)
        return math.exp(-z) / (1.0 + math.exp(-z)) if z > 0 else 1.0 / (1.0 + math.exp(z))


ScheduledSamplingConfig = Annotated[
    ConstantSampling | LinearSampling | ExponentialSampling | InverseSigmoidSampling,
    Field(discriminator="kind"),
]


def teacher_forced(
    model: SequenceToSequence[Any], batch: Batch
) -> Float[Tensor, "batch queries dim"]:
    """The features of each position when every token before it is the right one."""
    return model.decode(batch.decoder_input, model.encode(batch.source, batch.source_mask))


def scheduled_sampling_logits(
    model: SequenceToSequence[Any],
    batch: Batch,
    probability: float,
    token: Literal["argmax", "sample"],
    generator: torch.Generator,
) -> Float[Tensor, "batch queries vocabulary"]:
    """The logits of each position when each token fed is the right one with this probability.

    The choice is made token by token; see `sampled_logits`.
    """
    decoder_input = batch.decoder_input
    is_forced = (
        torch.rand(decoder_input.shape, generator=generator, device=decoder_input.device)
        < probability
    )
    return sampled_logits(
        model, batch.source, decoder_input, batch.source_mask, is_forced, token, generator
    )
