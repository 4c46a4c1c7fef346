"""Which queries of a reading count: those of real tokens."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import DenseReading, FactoredReading, Reading

_AT_ONCE = 1 << 22  # pairs that are looked at together


def device_of(reading: Reading) -> torch.device:
    """Where its weights are computed."""
    return reading.rows(0, 0).device


def real_of(reading: Reading) -> Bool[Tensor, "batch slots"]:
    """Which slots are tokens: as the reading says, or else those that some query may see.

    A model that hides its padding by a bias alone, and lets padding look at padding, cannot be told
    from one that has none: then whoever knows better says so.
    """
    batch, _, queries, slots = reading.shape
    if isinstance(reading, FactoredReading) and reading.real is not None:
        return reading.real
    silent = isinstance(reading, DenseReading) and reading.allowed is None
    if silent or (isinstance(reading, FactoredReading) and reading.bias is None) or not queries:
        return torch.ones((batch, slots), dtype=torch.bool, device=device_of(reading))
    # Rows of padding that a bias hides whole look everywhere, at padding too.
    see = reading.shown if isinstance(reading, FactoredReading) else reading.seen
    step = max(1, _AT_ONCE // max(1, slots))
    some = [
        see(start, min(start + step, queries)).flatten(1, 2).any(1)
        for start in range(0, queries, step)
    ]
    return torch.stack(some).any(0).expand(batch, slots)


def counted(
    reading: Reading, real: Bool[Tensor, "batch slots"], *, across: bool | None
) -> Bool[Tensor, "batch queries"]:
    """The queries that stand at a real slot; all of them where they stand at none, or nobody knows
    at which.

    across: whether the reading looks at something else than what asks; None = unknown, and then a
    map with as many queries as slots is taken as one that does not.
    """
    batch, _, queries, slots = reading.shape
    first = reading.position
    if first is None or across or (across is None and queries != slots) or not slots:
        return torch.ones((batch, queries), dtype=torch.bool, device=real.device)
    place = first + torch.arange(queries, device=real.device)
    return real[:, place.clamp(0, slots - 1)] & (place >= 0) & (place < slots)


def fitted(
    name: str, values: object, shape: tuple[int, int], device: torch.device
) -> Int[Tensor, "batch length"] | Bool[Tensor, "batch length"] | Tensor:
    """These values as a tensor, where there is one for each place of each text.

    Errors: `AttlasError` for another shape.
    """
    tensor = torch.as_tensor(values, device=device)
    if tuple(tensor.shape) != shape:
        raise AttlasError(
            f"{name} of shape {shape}, a value for each place of each text",
            f"shape {tuple(tensor.shape)}",
            "choose with layers=… those whose axis it describes, and add the tables of the others",
        )
    return tensor
