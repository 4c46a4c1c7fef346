"""What the two axes of a layer's map are: whose tokens ask, and whose are looked at."""

from dataclasses import dataclass

from attlas.recording.trace import Trace


@dataclass(frozen=True, slots=True)
class Axes:
    """The tokens of both axes, () where nobody named them.

    within: whether queries and slots are of one side, as in self-attention, or nobody knows; else
    the target looks at the source.
    """

    queries: tuple[str, ...]
    slots: tuple[str, ...]
    within: bool


def axes_of(trace: Trace, layer: str, row: int, batch: int, queries: int, slots: int) -> Axes:
    """The axes of a map of this many queries and slots that this layer has of this batch row.

    batch: how many rows it has; the tokens of as many name them. In a beam search a decoder has
    several rows of each text, and row n of an encoder is another text than its row n.
    """
    source, target = (rows[row] if len(rows) == batch else () for rows in trace.tokens(layer))
    relation, named_itself = trace.relation(layer), not trace.looks_across(layer)
    fit = queries == len(target) and slots == len(source) and source != target
    if named_itself or relation == "cross" or (relation is None and fit):
        within = named_itself and relation != "cross"
        return Axes(_fitting(target, queries), _fitting(source, slots), within)
    # One side looks at itself, or what has no names.
    sides = (source, target)
    if len(source) == len(target) and trace.causal(layer):
        sides = (target, source)  # it is the decoder that does not look ahead
    own = next((own for own in sides if queries == slots == len(own)), ())
    # A side whose row is padded to this very length may be the one that looks: name nothing then.
    padded = [
        0 < len(side) < queries == max(map(len, rows))
        for side, rows in zip((source, target), trace.tokens(layer), strict=True)
        if len(rows) == batch
    ]
    if any(padded) and not (own == target and trace.causal(layer)):
        own = ()
    return Axes(_fitting(own, queries), _fitting(own, slots), within=True)


def _fitting(tokens: tuple[str, ...], count: int) -> tuple[str, ...]:
    return tokens if len(tokens) == count else ()
