"""One text out of a batch: its own queries and slots, without the padding of its neighbours."""

from dataclasses import replace

from jaxtyping import Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import DenseReading, FactoredReading, Reading
from attlas.recording.beside import beside


def cut(reading: Reading, row: int, queries: int, slots: int, *, across: bool = False) -> Reading:
    """The first `queries` × `slots` of one batch row: what is read of that text alone.

    Padding is on the right, so that positions stay. Without it nothing depends on who else was in
    the batch: sums over queries, the last slot, and positions that are counted from the end.
    across: whether it looks at another source; its first query then stands at the first slot,
    unless a pattern counts on another place.
    Errors: `AttlasError` for a reading of another kind.
    """
    one = reading.at(row)
    if across:
        one = beside(one)
    if isinstance(one, DenseReading):
        allowed = None if one.allowed is None else _part(one.allowed, queries, slots)
        return DenseReading(one.values[:, :, :queries, :slots], allowed, one.position)
    if not isinstance(one, FactoredReading):
        raise AttlasError("a reading of attlas", type(one).__name__, "observe with attlas.observe")
    real = None if one.real is None else one.real[:, :slots]
    return replace(
        one,
        query=one.query[:, :, :queries],
        keys=one.keys[:, :, :slots],
        real=None if real is None or bool(real.all()) else real,
        bias=None if one.bias is None else _part(one.bias, queries, slots),
    )


def _part(
    mask: Shaped[Tensor, "#batch #heads #queries #slots"], queries: int, slots: int
) -> Shaped[Tensor, "#batch #heads #own_queries #own_slots"]:
    mask = mask[:, :, :queries] if mask.shape[2] > 1 else mask
    return mask[..., :slots] if mask.shape[3] > 1 else mask
