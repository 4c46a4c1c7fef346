"""Precision: float32, or bfloat16 and float16 if the device supports them."""

from contextlib import AbstractContextManager
from typing import Literal, get_args

import torch

from attlas.errors import AttlasError, UnsupportedError
from attlas.ops.linear import (
    NUMBERS,
    Autocast,
    autocast,
    check_autocast,
    gpu_has_bf16,
    has_bf16_instructions,
)
from attlas.training.distributed import ProcessGroup


class Precision:
    """`autocast` of the forward pass, and so of the way back; float16 gets a gradient scaler.

    Raises:
        UnsupportedError: If the device does not have these numbers.
    """

    def __init__(self, name: Autocast, device: torch.device) -> None:
        check_autocast(name, device, "training.autocast")
        self.name, self.device = name, device
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    @classmethod
    def settled(
        cls, name: Autocast | Literal["auto"], device: torch.device, process_group: ProcessGroup
    ) -> "Precision":
        """For a training that begins: "auto" is "bf16" where the first process's device is known
        to have instructions for it, and "none" elsewhere, in all processes alike.
        """
        if name == "auto":
            name = "bf16" if process_group.broadcast(_quicker(device)) else "none"
        return cls(name, device)

    def of(self, numbers: str) -> "Precision":
        """For a training that began in these `numbers`, perhaps on another machine.

        Raises:
            UnsupportedError: If this device does not have them.
        """
        if numbers == self.numbers:
            return self
        autocast = next(name for name in get_args(Autocast) if _describe_autocast(name) == numbers)
        try:
            return Precision(autocast, self.device)
        except AttlasError:
            raise UnsupportedError(
                f"a device with {numbers}, in which this training began",
                f"device {str(self.device)!r}",
                "continue on such a device, or start in another folder",
            ) from None

    @property
    def numbers(self) -> str:
        """In which most is computed: "float32", "bfloat16" or "float16"."""
        return _describe_autocast(self.name)

    @property
    def slower(self) -> str | None:
        """A remark if bfloat16 gains nothing."""
        if self.name != "bf16" or self.device.type != "cpu" or has_bf16_instructions() is not False:
            return None
        return (
            "WARNING: this processor has no instructions for bfloat16, in which this training "
            "began, and is slower with it: with training.autocast = 'auto' another one, in "
            "another folder, would begin here without"
        )

    def autocast(self, *, cached: bool = True) -> AbstractContextManager[object]:
        """The autocast block of the forward pass; `cached` as of `attlas.ops.linear.autocast`."""
        return autocast(self.name, self.device, cached=cached)


def _describe_autocast(name: Autocast) -> str:
    return str(NUMBERS[name]).removeprefix("torch.")


def _quicker(device: torch.device) -> bool:
    if device.type == "cuda":
        return gpu_has_bf16(device)
    return device.type == "cpu" and has_bf16_instructions() is True
