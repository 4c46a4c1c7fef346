"""Where to compute."""

import torch

from attlas.errors import AttlasError, quoted


def device_named(name: str) -> torch.device:
    """ "cpu", "cuda", "cuda:1", …; "auto" = a GPU where torch sees one, else the CPU.

    Errors: `AttlasError` for a device that does not exist here.
    """
    return usable(device_called(name))


def device_called(name: str) -> torch.device:
    """The same, untried: a GPU that is tried keeps some hundreds of MiB for this process.

    Errors: `AttlasError` for what is no name of a device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise _useless(name, error) from None


def usable(device: torch.device) -> torch.device:
    """This device, if it can be computed with. Errors: `AttlasError` otherwise."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise _useless(str(device), error) from None
    return device


def _useless(name: str, error: Exception) -> AttlasError:
    return AttlasError(
        "a device that torch can use here (auto, cpu, cuda)",
        f"{quoted(name)} ({str(error).splitlines()[0]})",
        "choose 'auto', which takes what there is",
    )
