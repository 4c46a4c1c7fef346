"""The maps of one text, layer by layer."""

from collections.abc import Iterator
from dataclasses import Field, dataclass, fields, is_dataclass

import torch

from attlas.errors import AttlasError
from attlas.recording import DenseReading, Reading, Trace
from attlas.recording.axes import Axes, axes_of


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's map of one text: a reading of a single batch row, and what its axes are."""

    name: str
    reading: Reading
    axes: Axes

    @property
    def heads(self) -> int:
        """How many heads look."""
        return self.reading.shape[1]

    @property
    def queries(self) -> int:
        """How many positions ask."""
        return self.reading.shape[2]

    @property
    def slots(self) -> int:
        """How many positions can be looked at."""
        return self.reading.shape[3]


@dataclass(frozen=True, slots=True)
class Atlas:
    """Every map of one text."""

    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, trace: Trace, row: int = 0, batch: int | None = None) -> "Atlas":
        """The maps of this batch row; those of target × source come first.

        batch: only those of layers with as many batch rows; None = all that have this row.
        """
        layers = [layer for name in trace.layers for layer in _layers(trace, name, row, batch)]
        return cls(tuple(sorted(layers, key=lambda layer: layer.axes.within)))

    @property
    def size(self) -> int:
        """Bytes of the tensors of its readings."""
        held = [one for layer in self.layers for one in _tensors(layer.reading)]
        storages = [one.untyped_storage() for one in held]
        return sum({one.data_ptr(): one.nbytes() for one in storages}.values())

    def layer(self, index: int) -> Layer:
        """One layer, counted from 0."""
        if not 0 <= index < len(self.layers):
            raise AttlasError(
                f"a layer from 0 to {len(self.layers) - 1}", str(index), "count layers from 0"
            )
        return self.layers[index]


def _tensors(reading: Reading) -> list[torch.Tensor]:
    """What a reading holds, of whichever kind it is."""
    named: tuple[Field[object], ...] = fields(reading) if is_dataclass(reading) else ()
    parts: list[object] = [getattr(reading, one.name) for one in named]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _layers(trace: Trace, name: str, row: int, batch: int | None) -> Iterator[Layer]:
    """A layer for each of its calls; calls of one query each are the rows of one map, where what
    they look at stays or grows by one slot a time. Calls are counted from 0, as in the trace."""
    every = enumerate(trace.calls(name))
    chosen = [
        (number, call)
        for number, call in every
        if row < call.shape[0] and batch in (None, call.shape[0])
    ]
    calls = [(number, call.at(row)) for number, call in chosen]
    sizes = {number: call.shape[0] for number, call in chosen}
    stepwise = all(call.shape[2] == 1 for _, call in calls)
    runs = list(_runs(calls)) if stepwise else [[one] for one in calls]
    for run in runs:
        first, last = run[0][0], run[-1][0]
        call = _together([call for _, call in run]) if len(run) > 1 else run[0][1]
        _, _, queries, slots = call.shape
        if queries and slots:
            numbers = f"call {first}" if first == last else f"calls {first}–{last}"
            of = f", {numbers}" if len(runs) > 1 else ""
            axes = axes_of(trace, name, row, sizes[first], queries, slots)
            yield Layer(f"{name or 'model'}{of}", call, axes)


def _runs(calls: list[tuple[int, Reading]]) -> Iterator[list[tuple[int, Reading]]]:
    """Calls in turn of as many heads, of which each looks at as many slots as the one before, or at
    one more."""
    run: list[tuple[int, Reading]] = []
    for number, call in calls:
        if run:
            (_, heads, _, slots), (_, others, _, more) = run[-1][1].shape, call.shape
            if others != heads or more - slots not in (0, 1):
                yield run
                run = []
        run.append((number, call))
    if run:
        yield run


def _together(calls: list[Reading]) -> Reading:
    """One reading; what a memory that grew did not hold yet could not be looked at."""
    most = max(call.shape[3] for call in calls)
    rows = [call.rows(0, 1) for call in calls]
    padded = [torch.nn.functional.pad(row, (0, most - row.shape[-1])) for row in rows]
    first = calls[0].position
    in_turn = first is not None and all(
        call.position == first + step for step, call in enumerate(calls)
    )
    return DenseReading(torch.cat(padded, dim=2), first=first if in_turn else None)
