"""Schedules of the learning rate: from the number of an update to a factor."""

import math
from abc import ABC, abstractmethod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attlas._text import count_noun
from attlas.config import Config
from attlas.errors import ConfigError

_KEEPS = "A run that has begun keeps its schedule; a new one begins in another folder"
_NOTHING = 1e-3  # a final factor up to which the rate is as good as 0


class Schedule(Config, ABC):
    """The rate of update u (the first is 1) is `training.learning_rate` · factor(u).

    During the first `warmup` updates the factor rises in a straight line to 1: u / warmup.
    """

    warmup: int = Field(default=0, ge=0)
    """The updates in which the learning rate rises from 0."""

    def factor(self, update: int) -> float:
        """What the rate of this update is multiplied with."""
        if update <= self.warmup:
            return update / self.warmup
        return self.after(update)

    def misfit(self, planned_updates: int | None) -> str | None:
        """A remark if the schedule does not fit the planned updates (None: no limit).

        Here: where it goes far beyond them. A quarter more is let pass: such numbers are round.
        """
        name, length = self.length
        if planned_updates is None or length <= max(1.25 * planned_updates, planned_updates + 1):
            return None
        return (
            f"WARNING: training.schedule.{name} = {length}, but the training ends after about "
            f"{count_noun(planned_updates, 'update')}. Set it lower. {_KEEPS}"
        )

    @property
    def length(self) -> tuple[str, int]:
        """The setting that says until when the rate changes as planned, and its value."""
        return "warmup", self.warmup

    @abstractmethod
    def after(self, update: int) -> float:
        """The factor once warm."""


class ConstantSchedule(Schedule):
    """1."""

    kind: Literal["constant"] = "constant"

    def after(self, update: int) -> float:
        return 1.0


class InverseSquareRootSchedule(Schedule):
    """√(warmup / u)    after Vaswani et al., 2017, section 5.3, but 1 at u = warmup."""

    kind: Literal["inverse-square-root"] = "inverse-square-root"
    warmup: int = Field(default=4000, ge=1)
    """The updates in which the learning rate rises from 0."""

    def after(self, update: int) -> float:
        return math.sqrt(self.warmup / update)


class _Falling(Schedule, ABC):
    """From 1 at u = warmup to `final` at u = `total_steps`, and `final` from then on.

    `total_steps` is a number of its own and not the limit of the training: a run whose limit is
    raised goes on as if it had been so from the start.
    """

    total_steps: int = Field(ge=1)
    """The update at which the learning rate has fallen to final."""
    final: float = Field(default=0.0, ge=0.0, le=1.0)
    """The part of the learning rate that is left then."""

    @model_validator(mode="after")
    def _falls_after_the_warmup(self) -> Self:
        if self.total_steps <= self.warmup:
            raise ConfigError(
                f"training.schedule.total_steps above training.schedule.warmup = {self.warmup}",
                str(self.total_steps),
                "set it to about the number of updates of the whole training",
            )
        return self

    @property
    def length(self) -> tuple[str, int]:
        return "total_steps", self.total_steps

    def misfit(self, planned_updates: int | None) -> str | None:
        """As of every schedule, and where it comes to nothing before the training ends.

        A twentieth is let pass: not all epochs have as many updates.
        """
        idle = (
            0
            if planned_updates is None or self.final > _NOTHING
            else planned_updates - self.total_steps
        )
        if planned_updates is None or idle <= 0.05 * planned_updates:
            return super().misfit(planned_updates)
        return (
            f"WARNING: the learning rate falls to about 0 at update {self.total_steps:,}, but the "
            f"training ends after about {planned_updates:,}: {idle:,} updates would teach nothing. "
            "Set training.schedule.total_steps to the end, or training.schedule.final above 0. "
            f"{_KEEPS}"
        )

    def passed(self, update: int) -> float:
        """How much of the fall is over, 0 … 1."""
        return min(1.0, (update - self.warmup) / (self.total_steps - self.warmup))


class LinearSchedule(_Falling):
    """1 − (1 − final) t, where t is the part of the fall that is over."""

    kind: Literal["linear"] = "linear"

    def after(self, update: int) -> float:
        return 1.0 - (1.0 - self.final) * self.passed(update)


class CosineSchedule(_Falling):
    """final + (1 − final) (1 + cos π t) / 2    Loshchilov & Hutter, 2017, eq. 5, one period."""

    kind: Literal["cosine"] = "cosine"

    def after(self, update: int) -> float:
        return self.final + (1.0 - self.final) * (1.0 + math.cos(math.pi * self.passed(update))) / 2


ScheduleConfig = Annotated[
    ConstantSchedule | InverseSquareRootSchedule | LinearSchedule | CosineSchedule,
    Field(discriminator="kind"),
]
