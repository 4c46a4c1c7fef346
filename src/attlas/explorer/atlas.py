"""The maps of one text, layer by layer."""

from collections.abc import Iterator
from dataclasses import dataclass

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
    def of(cls, trace: Trace, row: int = 0) -> "Atlas":
        """The maps of this batch row; those of target × source come first."""
        layers = [layer for name in trace.layers for layer in _layers(trace, name, row)]
        return cls(tuple(sorted(layers, key=lambda layer: layer.axes.within)))

    def layer(self, index: int) -> Layer:
        """One layer, counted from 0."""
        if not 0 <= index < len(self.layers):
            raise AttlasError(
                f"a layer from 0 to {len(self.layers) - 1}", str(index), "count layers from 0"
            )
        return self.layers[index]


def _layers(trace: Trace, name: str, row: int) -> Iterator[Layer]:
    """A layer for each of its calls; calls of one query each are the rows of one map, where what
    they look at stays or grows by one slot a time."""
    calls = [call.at(row) for call in trace.calls(name) if row < call.shape[0]]
    if all(call.shape[2] == 1 for call in calls):
        calls = [_together(run) if len(run) > 1 else run[0] for run in _runs(calls)]
    for number, call in enumerate(calls):
        _, _, queries, slots = call.shape
        if queries and slots:
            of = f", call {number + 1} of {len(calls)}" if len(calls) > 1 else ""
            axes = axes_of(trace, name, row, queries, slots)
            yield Layer(f"{name or 'model'}{of}", call, axes)


def _runs(calls: list[Reading]) -> Iterator[list[Reading]]:
    """Calls in turn of as many heads, of which each looks at as many slots as the one before, or at
    one more."""
    run: list[Reading] = []
    for call in calls:
        if run:
            (_, heads, _, slots), (_, others, _, more) = run[-1].shape, call.shape
            if others != heads or more - slots not in (0, 1):
                yield run
                run = []
        run.append(call)
    if run:
        yield run


def _together(calls: list[Reading]) -> Reading:
    """One reading; what a memory that grew did not hold yet could not be looked at."""
    most = max(call.shape[3] for call in calls)
    rows = [call.rows(0, 1) for call in calls]
    padded = [torch.nn.functional.pad(row, (0, most - row.shape[-1])) for row in rows]
    return DenseReading(torch.cat(padded, dim=2))
