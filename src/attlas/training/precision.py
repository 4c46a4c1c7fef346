"""In which numbers to compute: float32, or bfloat16 and float16 where the device has them."""

from contextlib import AbstractContextManager

import torch

from attlas.errors import AttlasError
from attlas.layers.half_products import half_products, halves_time
from attlas.training.fleet import Fleet

_DTYPES = {"none": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """Autocast of the forward pass; the weights stay float32. float16 gets a gradient scaler.

    Micikevicius et al., Mixed Precision Training, 2018. On a CPU "bf16" is `half_products`: the
    linear maps alone, forwards and backwards.
    Errors: `AttlasError` where the device does not have these numbers.
    """

    def __init__(self, autocast: str, device: torch.device) -> None:
        self.device, self.dtype = device, _DTYPES[autocast]
        if autocast == "fp16" and device.type != "cuda":
            raise _absent("a CUDA device for autocast = 'fp16'", device, "'bf16' or 'none'")
        if autocast == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported(False):
            raise _absent("a device with bfloat16", device, "'fp16' or 'none'")
        self.scaler = torch.amp.GradScaler(device.type, enabled=autocast == "fp16")

    @classmethod
    def settled(cls, autocast: str, device: torch.device, fleet: Fleet) -> "Precision":
        """For a training that begins: "auto" is "bf16" where the first process's device is known
        to have instructions for it, and "none" elsewhere, in all processes alike.
        """
        if autocast == "auto":
            autocast = "bf16" if fleet.agreed(_quicker(device)) else "none"
        return cls(autocast, device)

    def of(self, numbers: str) -> "Precision":
        """For a training that began in these `numbers`, perhaps on another machine."""
        if numbers == self.numbers:
            return self
        began = next(name for name, dtype in _DTYPES.items() if _told(dtype) == numbers)
        return Precision(began, self.device)

    @property
    def numbers(self) -> str:
        """In which most is computed: "float32", "bfloat16" or "float16"."""
        return _told(self.dtype)

    @property
    def slower(self) -> str | None:
        """What to say where bfloat16 gains nothing."""
        if self.dtype is not torch.bfloat16 or self.device.type != "cpu":
            return None
        if halves_time() is not False:
            return None
        return (
            "WARNING: this processor has no instructions for bfloat16, in which this training "
            "began, and is slower with it: with training.autocast = 'auto' another one, in "
            "another folder, would begin here without"
        )

    def autocast(self) -> AbstractContextManager[object]:
        """Around everything that leads to a loss."""
        if self.dtype is torch.bfloat16 and self.device.type == "cpu":
            return half_products()
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not torch.float32)


def _told(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _quicker(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(False))
    return device.type == "cpu" and halves_time() is True


def _absent(wanted: str, device: torch.device, instead: str) -> AttlasError:
    return AttlasError(wanted, f"device {str(device)!r}", f"use training.autocast = {instead}")
