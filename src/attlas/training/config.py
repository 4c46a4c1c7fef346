"""How to train."""

from collections.abc import Mapping
from math import inf
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from attlas.config import Config
from attlas.decoding import DecodingConfig
from attlas.errors import ConfigError
from attlas.metrics import BleuTokenizer, check_tokenizer
from attlas.training.averaging import AveragingConfig, LastAveraging, NoAveraging
from attlas.training.optimizers import AdamConfig, OptimizerConfig
from attlas.training.scheduled_sampling import ConstantSampling, ScheduledSamplingConfig
from attlas.training.schedules import ConstantSchedule, ScheduleConfig

Distribution = Literal["ddp", "fsdp"]
"""How the processes of a process group share a model, see `Spread`."""


def _greedy_by_default(decoding: Any) -> Any:
    return {"method": "greedy", **decoding} if isinstance(decoding, Mapping) else decoding


def _positive(weights: Any) -> Any:
    if not isinstance(weights, Mapping):
        return weights
    wrong = [
        name
        for name, weight in weights.items()
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < inf
    ]
    if wrong:
        raise ConfigError(
            "training.class_weights: a number above 0 for each label",
            ", ".join(f"{name} = {weights[name]!r}" for name in wrong),
            "correct that value; to leave texts out, take them from the data",
        )
    return {name: float(weight) for name, weight in weights.items()}


ClassWeights = Annotated[Literal["none", "balanced"] | dict[str, float], BeforeValidator(_positive)]


class ValidationConfig(Config):
    """When and how to measure on the validation set.

    `every` counts updates; left out, it is the end of each epoch. `criterion` decides which
    checkpoint is the best: "bleu" is of translations, "macro_f1", the mean F1 of all labels, of
    classifiers. `patience`: stop after so many validations in a row without a better
    one. translate: whether to translate at all. BLEU and sequence accuracy need it: of the first
    `sentences` (left out: of all), searched for as `decoding` says, which is greedy unless its
    method is set. bleu_tokenizer: see `BleuTokenizer`; not the default for a target language
    without spaces between its words.
    """

    every: int | None = Field(default=None, ge=1)
    criterion: Literal["loss", "bleu", "accuracy", "macro_f1"] = "loss"
    patience: int | None = Field(default=None, ge=1)
    translate: bool = True
    sentences: int | None = Field(default=None, ge=1)
    bleu_tokenizer: BleuTokenizer = "13a"
    decoding: Annotated[DecodingConfig, BeforeValidator(_greedy_by_default)] = DecodingConfig(
        method="greedy"
    )

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


class TrainingConfig(Config):
    """The training ends with the first of `max_epochs`, `max_steps` and `max_minutes` (of training,
    over all sessions) to be reached; at least one is set. None of them changes the way there.

    init_from: a run whose weights it begins with (its best checkpoint, or the file of one), and
    whose vocabulary it takes over; architecture and vocabulary have to be those of that run.

    learning_rate: of the optimizer, before the schedule. max_grad_norm: the greatest norm of the
    gradient (0 = any). label_smoothing: ε of the labels. class_weights: how much a text of each
    label counts for a classifier, as `weight` of `nn.CrossEntropyLoss` does: "none" = all alike;
    "balanced" = texts / (labels · texts of that label), so that a rare label counts as much as a
    common one; or a table of weights, 1 for a label that it does not name. rdrop_alpha: α of R-Drop
    (Liang et al., 2021), by which each batch is read twice, under different dropout, and both
    readings are to predict the same; 0 = it is read once. Both are rows of one pass, so a batch of
    batching.max_tokens keys then takes the memory and the time of twice as many. rdrop_after: the
    first so many updates read each batch once, which is quicker and takes half of that memory;
    R-Drop begins after them, and wants many more. gradient_accumulation_steps: so many batches make
    one update, with the gradient that all of them in one batch would give. keep_last: how many
    checkpoints stay beside the best. save_every counts updates; every validation saves as well, and
    both count for `keep_last` and for the average of the last. Left out, every hundredth update is
    saved too, against a kill: that checkpoint counts for nothing and the next one takes its place.
    log_every: updates between two lines of metrics.jsonl. autocast: half precision for the forward
    pass: bf16 anywhere (on a CPU in the linear maps alone, with AVX-512 BF16 1.3 to 1.6 times as
    fast), fp16 on CUDA, auto = bf16 where the training begins on a device that is known to have
    instructions for it; with models as narrow as `tiny` a GPU is faster in float32. device: auto,
    cpu, cuda, …; threads: of the CPU; left out, torch decides. Up to four of them share every
    update, each with a part of it; more go to the kernels of these. distribution: how the processes
    that torchrun starts share a model, see `Spread`. tensorboard: curves in the run's folder, too
    (the extra tensorboard).
    """

    max_epochs: int | None = Field(default=None, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    max_minutes: float | None = Field(default=None, gt=0.0)
    init_from: str = ""
    learning_rate: float = Field(default=1e-3, gt=0.0, allow_inf_nan=False)
    max_grad_norm: float = Field(default=1.0, ge=0.0)
    label_smoothing: float = Field(default=0.0, ge=0.0, lt=1.0)
    class_weights: ClassWeights = "none"
    rdrop_alpha: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    rdrop_after: int = Field(default=0, ge=0)
    gradient_accumulation_steps: int = Field(default=1, ge=1)
    keep_last: int = Field(default=3, ge=1)
    save_every: int | None = Field(default=None, ge=1)
    log_every: int = Field(default=10, ge=1)
    autocast: Literal["none", "auto", "bf16", "fp16"] = "none"
    device: str = "auto"
    threads: int | None = Field(default=None, ge=1)
    distribution: Distribution = "ddp"
    tensorboard: bool = False
    optimizer: OptimizerConfig = AdamConfig()
    schedule: ScheduleConfig = ConstantSchedule()
    scheduled_sampling: ScheduledSamplingConfig = ConstantSampling()
    averaging: AveragingConfig = NoAveraging()
    validation: ValidationConfig = ValidationConfig()

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

    def too_late(self, planned: int | None) -> str | None:
        """What to say where the updates planned (None: no limit) end before R-Drop begins."""
        if not self.rdrop_alpha or planned is None or self.rdrop_after < planned:
            return None
        return (
            f"WARNING: training.rdrop_alpha begins after update {self.rdrop_after:,} of "
            f"about {planned:,}, so it has no effect: lower training.rdrop_after, or leave "
            "both out, in another folder"
        )

    def rdrop_alpha_at(self, number: int) -> float:
        """The α of R-Drop in this update; the first is 1."""
        return self.rdrop_alpha if number > self.rdrop_after else 0.0
