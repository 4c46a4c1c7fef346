"""Settings of the training and of validations."""

from collections.abc import Mapping
from math import inf
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from attlas.config import Config
from attlas.decoding import DecodingConfig
from attlas.errors import ConfigError, join_names
from attlas.metrics import BleuTokenizer, check_tokenizer
from attlas.monitoring import Thresholds
from attlas.training.averaging import AveragingConfig, LastAveraging, NoAveraging
from attlas.training.optimizers import AdamConfig, OptimizerConfig
from attlas.training.scheduled_sampling import ConstantSampling, ScheduledSamplingConfig
from attlas.training.schedules import ConstantSchedule, ScheduleConfig

Distribution = Literal["ddp", "fsdp"]
"""How the processes of a process group share a model, see `DistributedModel`."""


def _greedy_by_default(decoding: Any) -> Any:
    return {"method": "greedy", **decoding} if isinstance(decoding, Mapping) else decoding


def _positive(weights: Any) -> Any:
    if not isinstance(weights, Mapping):
        return weights
    invalid = [
        name
        for name, weight in weights.items()
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < inf
    ]
    if invalid:
        raise ConfigError(
            "training.class_weights: a number above 0 for each label",
            ", ".join(f"{name} = {weights[name]!r}" for name in invalid),
            "correct that value; to leave texts out, take them from the data",
        )
    return {name: float(weight) for name, weight in weights.items()}


ClassWeights = Annotated[Literal["none", "balanced"] | dict[str, float], BeforeValidator(_positive)]


class ValidationConfig(Config):
    """When and how to measure on the validation set.

    BLEU and sequence accuracy need translations: of the first `sentences`, searched for as
    `decoding` says.
    """

    every: int | None = Field(default=None, ge=1)
    """Updates between two validations. Left out: the end of each epoch."""
    criterion: Literal["loss", "bleu", "accuracy", "macro_f1"] = "loss"
    """Which checkpoint is the best: by loss, "bleu" of translations, "accuracy", or "macro_f1", the
    mean F1 of all labels.
    """
    patience: int | None = Field(default=None, ge=1)
    """Stop after so many validations in a row without a better one. Left out: never."""
    translate: bool = True
    """Whether to translate at all."""
    sentences: int | None = Field(default=None, ge=1)
    """How many sentences to translate. Left out: all."""
    bleu_tokenizer: BleuTokenizer = "13a"
    """How BLEU divides a text, as in sacrebleu; "char" for a language without spaces between
    words.
    """
    decoding: Annotated[DecodingConfig, BeforeValidator(_greedy_by_default)] = DecodingConfig(
        method="greedy"
    )
    """How to search; greedy unless its method is set."""

    @model_validator(mode="after")
    def _measured(self) -> Self:
        if self.criterion != "loss" and not self.translate:
            raise ConfigError(
                f"translations to choose by {self.criterion}",
                "training.validation.translate = false",
                "set training.validation.translate = true, or training.validation.criterion = "
                "'loss'",
            )
        check_tokenizer(self.bleu_tokenizer)  # now rather than at the first validation
        return self

    def better(self, new: tuple[float, float], old: tuple[float, float] | None) -> bool:
        """Return True if one (value of the criterion, loss) beats another; None = nothing yet.

        Among equal values, which accuracy has for a long time, the lower loss wins.
        """
        sign = -1.0 if self.criterion == "loss" else 1.0
        return old is None or (sign * new[0], -new[1]) > (sign * old[0], -old[1])


class WatchConfig(Thresholds):
    """The monitor of attention, see `attlas.watch`: statistics of every head in watch.jsonl, alarms
    on the screen. It changes nothing of what is learnt.
    """

    every: int | None = Field(default=None, ge=1)
    """Updates between two readings; the first update is read, too. Left out: nothing is read."""

    @model_validator(mode="after")
    def _is_on(self) -> "WatchConfig":
        fields = type(self).model_fields
        changed = [n for n, field in fields.items() if getattr(self, n) != field.default]
        if self.every is None and changed:
            raise ConfigError(
                "training.watch.every beside the other settings of training.watch",
                f"{join_names(changed)} alone, so nothing would be read",
                "set for example training.watch.every=50",
            )
        return self


class TrainingConfig(Config):
    """How a model is trained.

    The training ends with the first of `max_epochs`, `max_steps` and `max_minutes` to be reached;
    at least one is set. None of them changes the way there.

    With `rdrop_alpha` (R-Drop; Liang et al., 2021) each batch is read twice, under different
    dropout, and both readings are to predict the same. Both are rows of one pass, so a batch of
    batching.max_tokens takes the memory and time of twice as many.

    Every validation saves a checkpoint, and `save_every` more; both count for `keep_last` and for
    the average of the last. Where `save_every` is left out, every hundredth update is saved too,
    against a kill: that checkpoint counts for nothing, and the next one takes its place.

    Up to four threads of a CPU share every update, each with a part of it; more go to the kernels
    of these. bf16 on a CPU is used in the linear maps alone; with AVX-512 BF16 it is 1.3 to 1.6
    times as fast. With models as narrow as `tiny` a GPU is faster in float32.
    """

    max_epochs: int | None = Field(default=None, ge=1)
    """The most epochs. Left out: any number."""
    max_steps: int | None = Field(default=None, ge=1)
    """The most updates. Left out: any number."""
    max_minutes: float | None = Field(default=None, gt=0.0)
    """The most minutes of training, over all sessions. Left out: any number."""
    init_from: str = ""
    """A run whose best weights and vocabulary the training begins with, or the file of a
    checkpoint; it has the same architecture.
    """
    learning_rate: float = Field(default=1e-3, gt=0.0, allow_inf_nan=False)
    """Of the optimizer, before the schedule."""
    max_grad_norm: float = Field(default=1.0, ge=0.0)
    """The largest norm of the gradient; 0 = any."""
    label_smoothing: float = Field(default=0.0, ge=0.0, lt=1.0)
    """The ε of label smoothing; 0 = off."""
    class_weights: ClassWeights = "none"
    """How much a text of each label counts: "none" = all alike; "balanced" = a rare label as much
    as a common one; or a table of weights, 1 for a label that it does not name.
    """
    rdrop_alpha: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    """The weight α of R-Drop; 0 = off."""
    rdrop_after: int = Field(default=0, ge=0)
    """R-Drop begins after so many updates; those before it are quicker."""
    gradient_accumulation_steps: int = Field(default=1, ge=1)
    """How many batches make one update, with the gradient that all of them in one
    batch would give.
    """
    keep_last: int = Field(default=3, ge=1)
    """How many checkpoints stay beside the best."""
    save_every: int | None = Field(default=None, ge=1)
    """Updates between two checkpoints. Left out: each validation."""
    log_every: int = Field(default=10, ge=1)
    """Updates between two lines of metrics.jsonl."""
    autocast: Literal["none", "auto", "bf16", "fp16"] = "none"
    """Half precision of the forward pass: bf16 anywhere, fp16 on CUDA, auto = bf16 where the device
    has instructions for it.
    """
    device: str = "auto"
    """Where to train: auto, cpu, cuda, cuda:1, …"""
    cuda_graphs: bool | None = None
    """Whether the updates of a Transformer run as CUDA graphs. Left out: no, because they have not
    been tried on a GPU yet.
    """
    tf32: bool = True
    """Whether a GPU multiplies float32 in TF32, with 10 bits of each factor, where it has it; also
    in cuDNN's layers, and in the validations of the training. `false` multiplies all bits.
    """
    threads: int | None = Field(default=None, ge=1)
    """Of the CPU. Left out: as many as torch uses."""
    distribution: Distribution = "ddp"
    """How the processes that torchrun starts share a model, see `DistributedModel`."""
    tensorboard: bool = False
    """Whether curves are written into the folder of the run, too (the extra tensorboard)."""
    optimizer: OptimizerConfig = AdamConfig()
    """How weights are stepped."""
    schedule: ScheduleConfig = ConstantSchedule()
    """How the learning rate changes."""
    scheduled_sampling: ScheduledSamplingConfig = ConstantSampling()
    """What the decoder is fed in training."""
    averaging: AveragingConfig = NoAveraging()
    """Whether weights are averaged."""
    validation: ValidationConfig = ValidationConfig()
    """When and how to measure."""
    watch: WatchConfig = WatchConfig()
    """The monitor of attention."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.max_epochs is None and self.max_steps is None and self.max_minutes is None:
            raise ConfigError(
                "an end of the training: max_epochs, max_steps or max_minutes",
                "none of them",
                "set for example training.max_epochs = 10",
            )
        if isinstance(self.averaging, LastAveraging) and self.averaging.count > self.keep_last:
            raise ConfigError(
                f"training.keep_last of at least {self.averaging.count}, the checkpoints to "
                "average",
                str(self.keep_last),
                "raise training.keep_last",
            )
        if self.rdrop_after and not self.rdrop_alpha:
            raise ConfigError(
                "a training.rdrop_alpha above 0 beside training.rdrop_after",
                "0, with which it has no effect",
                "set training.rdrop_alpha, or leave both out",
            )
        teacher = (
            isinstance(self.scheduled_sampling, ConstantSampling)
            and self.scheduled_sampling.p == 1.0
        )
        if self.rdrop_alpha and not teacher:
            raise ConfigError(
                "the right tokens fed (training.scheduled_sampling of p = 1) beside "
                "training.rdrop_alpha",
                f"another scheduled_sampling and an rdrop_alpha of {self.rdrop_alpha:g}",
                "leave one of the two out",
            )
        return self

    def too_late(self, planned_updates: int | None) -> str | None:
        """What to say where the updates planned (None: no limit) end before R-Drop begins."""
        if not self.rdrop_alpha or planned_updates is None or self.rdrop_after < planned_updates:
            return None
        return (
            f"WARNING: training.rdrop_alpha begins after update {self.rdrop_after:,} of "
            f"about {planned_updates:,}, so it has no effect: lower training.rdrop_after, or leave "
            "both out, in another folder"
        )

    def rdrop_alpha_at(self, number: int) -> float:
        """The α of R-Drop in this update; the first is 1."""
        return self.rdrop_alpha if number > self.rdrop_after else 0.0
