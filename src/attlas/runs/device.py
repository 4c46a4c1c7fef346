"""Where to compute."""

import torch

from attlas.errors import AttlasError


def device_named(name: str) -> torch.device:
    """ "cpu", "cuda", "cuda:1", …; "auto" = a GPU where torch sees one, else the CPU.

    Errors: `AttlasError` for a device that does not exist here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise AttlasError(
            "a device that torch can use here (auto, cpu, cuda)",
            f"{name!r} ({str(error).splitlines()[0]})",
            "choose 'auto', which takes what there is",
        ) from None
    return device
