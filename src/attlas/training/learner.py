"""A model that learns: one update after another, each a function of what came before and its
number.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.data import Batch
from attlas.errors import AttlasError
from attlas.models import SequenceToSequence
from attlas.runs import Checkpoint, load_weights
from attlas.runs.checkpoint import under
from attlas.training.averaging import MovingAveraging, move
from attlas.training.feeding import sampled, teacher_forced
from attlas.training.loss import cross_entropy, sequence_loss
from attlas.training.optimiser import moments, restore_moments
from attlas.training.precision import Precision
from attlas.training.seeds import seed_of
from attlas.training.settings import TrainingConfig

_OPTIMISER, _AVERAGE = "optimiser/", "average/"


@dataclass(frozen=True, slots=True)
class Update:
    """What one update saw: the summed loss in nats, of so many target tokens.

    norm: of the gradient before clipping; it may be infinite under float16, whose scaler then
    skips the step.
    """

    loss: float
    tokens: int
    rate: float
    norm: float
    teacher_forcing: float


class Learner:
    """Model, optimiser, and what else changes from update to update."""

    def __init__(
        self,
        model: SequenceToSequence[Any],
        settings: TrainingConfig,
        seed: int,
        device: torch.device,
    ) -> None:
        self.precision = Precision(settings.autocast, device)
        self.model = model.to(device)
        self.settings, self.seed, self.device = settings, seed, device
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = settings.optimiser.build(self.model, settings.rate)
        self.average: dict[str, Tensor] | None = None
        if isinstance(settings.averaging, MovingAveraging):
            self.average = {n: t.detach().clone() for n, t in self.model.state_dict().items()}

    def update(self, batches: Sequence[Batch], number: int) -> Update:
        """One step on all these batches together; `number` counts updates from 1.

        The gradient is that of the mean loss over the real target tokens of all batches: the one
        that a single big batch would give.
        Errors: `AttlasError` where the loss or its gradient is not finite; the weights are then as
        they were.
        """
        settings, scaler = self.settings, self.precision.scaler
        rate = settings.rate * settings.schedule.factor(number)
        probability = settings.feeding.probability(number - 1)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        torch.manual_seed(seed_of(self.seed, "update", number))
        generator = torch.Generator(self.device)
        generator.manual_seed(seed_of(self.seed, "feeding", number))
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        tokens, loss = sum(batch.tokens for batch in batches), 0.0
        # Without a scaler not even by 1 / tokens: the numbers stay those of a plain loss.
        scale = scaler.get_scale() / tokens if scaler.is_enabled() else 1.0
        for batch in batches:
            with self.precision.autocast():
                part = self._loss(batch.to(self.device), probability, scale, generator)
            loss += self._finite(part, "loss", number)
            torch.autograd.backward(scaler.scale(part / tokens))
        scaler.unscale_(self.optimiser)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, settings.clip or float("inf"))
        if not scaler.is_enabled():  # the scaler skips such a step, and tries a smaller scale
            self._finite(norm, "gradient", number)
        scaler.step(self.optimiser)
        scaler.update()
        if self.average is not None and isinstance(settings.averaging, MovingAveraging):
            move(self.average, self.model, settings.averaging.share(number))
        return Update(loss, tokens, rate, norm.item(), probability)

    def checkpoint(self, facts: Mapping[str, Any]) -> Checkpoint:
        """Everything from which `restore` goes on, beside these facts."""
        training = {f"{_OPTIMISER}{n}": t for n, t in moments(self.optimiser, self.model).items()}
        training |= {f"{_AVERAGE}{n}": t for n, t in (self.average or {}).items()}
        scaler = self.precision.scaler.state_dict()
        return Checkpoint(self.model.state_dict(), training, {**facts, "scaler": scaler})

    def restore(self, checkpoint: Checkpoint, where: Path) -> None:
        """Be as when this checkpoint was made; `where` names the run in errors."""
        load_weights(self.model, checkpoint.model, where)
        restore_moments(self.optimiser, self.model, under(_OPTIMISER, checkpoint.training))
        self.precision.scaler.load_state_dict(checkpoint.facts["scaler"])
        if self.average is not None:
            for name, tensor in under(_AVERAGE, checkpoint.training).items():
                self.average[name].copy_(tensor)

    def _loss(
        self, batch: Batch, probability: float, scale: float, generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """The summed loss of a batch, whose gradient will be multiplied by `scale`."""
        model, settings = self.model, self.settings
        wanted, real = batch.wanted, batch.wanted_real
        if probability >= 1.0:  # all positions at once
            features = teacher_forced(model, batch)
            return sequence_loss(
                model.logits, features, wanted, real, settings.smoothing, self.parameters, scale
            )
        logits = sampled(model, batch, probability, settings.feeding.token, generator)
        return cross_entropy(logits[real], wanted[real], settings.smoothing)

    def _finite(self, value: Float[Tensor, ""], name: str, number: int) -> float:
        plain = value.item()
        if not math.isfinite(plain):
            raise AttlasError(
                f"a finite {name} at update {number}",
                str(plain),
                "lower training.rate or training.clip, or use a longer warmup; the last "
                "checkpoint is from before it",
            )
        return plain
