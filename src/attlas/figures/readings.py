"""From a trace to the maps in it."""

from attlas.errors import AttlasError
from attlas.figures.map import Map
from attlas.recording import Reading, Trace


def maps_of(trace: Trace, row: int = 0) -> dict[str, Map]:
    """Every head of every call of every layer as a map of its own, for this batch row, by name.

    A name is the layer's path, with the call and the head where there are several, all counted
    from 0: "decoder.attention", "decoder.layers.1, head 3". Axes as long as the trace's target or
    source carry its tokens, others their positions.

    Errors: `AttlasError` for a row that the trace does not have.
    """
    maps: dict[str, Map] = {}
    for layer in trace.layers:
        calls = trace.calls(layer)
        for call, reading in enumerate(calls):
            batch, heads, _, _ = reading.shape
            if not 0 <= row < batch:
                raise AttlasError(
                    f"a batch row from 0 to {batch - 1}", str(row), "choose a row of the trace"
                )
            for head, map_ in enumerate(_heads(reading, trace, layer, row)):
                numbers = [f"call {call}"] * (len(calls) > 1) + [f"head {head}"] * (heads > 1)
                maps[", ".join([layer or "model", *numbers])] = map_
    return maps


def _heads(reading: Reading, trace: Trace, layer: str, row: int) -> list[Map]:
    _, heads, queries, slots = reading.shape
    source, target = (rows[row] if row < len(rows) else () for rows in trace.tokens(layer))
    if queries == len(target) and slots == len(source):
        names, slot_names = target, source
    else:  # one side looking at itself
        own = next((own for own in (source, target) if queries == slots == len(own)), ())
        names, slot_names = own or _positions(queries), own or _positions(slots)
    return [Map.of(reading, slot_names, names, row=row, head=head) for head in range(heads)]


def _positions(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))
