"""Values that agree with the weights of a call, and with what its heads read."""

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.norms.source import Source
from attlas.analysis.norms.value_map import ValueMap
from attlas.errors import AttlasError
from attlas.recording import FactoredReading, Reading

_ASKED = 16  # queries
_NEAR = 1e-3


def values_of_call(
    reading: Reading, values: ValueMap, source: Source
) -> Float[Tensor, "batch value_heads slots value_width"]:
    """x_j V_h + c_h of one call of a layer, whose source has texts first or places first.

    Errors: `AttlasError` where these are not of one call, and where the heads read something else
    than the weights take of them.
    """
    batch, heads, _, slots = reading.shape
    wanted = (batch, slots - values.added) if heads == len(values.output) else None
    far: float | None = None
    for turned in (False, True):
        first, second = source.slots.shape[:2]
        if ((second, first) if turned else (first, second)) != wanted:
            continue
        way = source.turned() if turned else source
        made = values.values(_without_junk(reading, way.slots))
        off = _distance(reading, values, made, way.read)
        if off is None:
            return made
        far = off if far is None else far
    if far is not None:
        raise AttlasError(
            "heads that read what the weights and the values say",
            f"heads that read something else, by up to {far:.2g} of the greatest number",
            "of a layer that does more with them than project, or whose weights were changed, ask "
            "for weights, not for norms; take reading and source of one call, and of a generation "
            "in which no hypotheses change places, as those of a beam do",
        )
    raise AttlasError(
        f"values of {batch} × {slots:,} slots for {heads} heads",
        f"those of {len(source.slots)} × {source.slots.shape[1] + values.added:,} slots for "
        f"{len(values.output)}",
        "take the source of the same call and the map of the same layer",
    )


def _without_junk(
    reading: Reading, slots: Float[Tensor, "batch slots source_width"]
) -> Float[Tensor, "batch slots source_width"]:
    """What is in padding has no weight, but 0 · NaN is NaN."""
    real = reading.real if isinstance(reading, FactoredReading) else None
    whole = None if real is None else real[:, : slots.shape[1]]
    if whole is None or whole.shape != slots.shape[:2]:
        return slots
    return slots.masked_fill(~whole.unsqueeze(-1).to(slots.device), 0.0)


def _distance(
    reading: Reading,
    values: ValueMap,
    made: Float[Tensor, "batch value_heads slots value_width"],
    read: Float[Tensor, "batch queries all_heads"] | None,
) -> float | None:
    """How far what heads read is from Σ_j α_hij v_hj, in some queries, beside the greatest number;
    None where it is near, or where nothing can be said."""
    batch, heads, queries, _ = reading.shape
    if read is None or read.shape[:2] != (batch, queries) or not queries:
        return None
    shared = heads // made.shape[1]
    beside = made.repeat_interleave(shared, 1) if shared > 1 else made
    off, greatest = 0.0, 0.0
    for query in sorted({query * (queries - 1) // max(1, _ASKED - 1) for query in range(_ASKED)}):
        weights = reading.rows(query, query + 1)
        sees = (weights.sum((1, 2, 3)) > 0).nonzero().flatten()  # nothing is said of the others
        said = (weights.to(beside) @ beside)[:, :, 0].flatten(1)
        heard = read[:, query].to(said)
        if said.shape != heard.shape:
            return None
        if len(sees):
            off = max(off, float((said - heard)[sees].abs().max()))
            greatest = max(greatest, float(heard[sees].abs().max()))
    near = max(_NEAR, 4 * torch.finfo(read.dtype).eps) * greatest
    return off / greatest if off > near else None
