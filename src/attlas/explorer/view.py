"""Which part of a map is asked for, and how coarsely: the heads, rows and slots of one tile."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.explorer.atlas import Layer
from attlas.recording.streaming.asking import pooled

MOST_WEIGHTS = 1 << 24  # of one tile: 16 million levels are 32 MB before they are deflated

_NAMES = ("heads", "rows", "slots", "shape", "bits")


@dataclass(frozen=True, slots=True)
class View:
    """heads, rows, slots: half-open ranges; this window is sent as height × width numbers a head.

    Where height × width is smaller than the window, each number is the **largest** weight of its
    group: a peak never vanishes because one looks from afar. The groups divide the rows (and the
    slots) as evenly as whole numbers can: group i of n begins at ⌊i · size / n⌋.
    """

    heads: tuple[int, int]
    rows: tuple[int, int]
    slots: tuple[int, int]
    height: int
    width: int
    bits: int

    @classmethod
    def read(cls, query: Mapping[str, str], layer: Layer) -> Self:
        """From a query string: ?heads=a:b&rows=a:b&slots=a:b&shape=height,width&bits=8.

        What is left out means all of it, at full size, with 16 bits.
        """
        for name in query:
            if name not in _NAMES:
                raise AttlasError(
                    f"one of {', '.join(_NAMES)}", f"?{name}=…", "leave this parameter out"
                )
        heads = _range(query, "heads", layer.heads)
        rows = _range(query, "rows", layer.queries)
        slots = _range(query, "slots", layer.slots)
        height, width = _shape(query, rows[1] - rows[0], slots[1] - slots[0])
        bits = query.get("bits", "16")
        if bits not in ("8", "16"):
            raise AttlasError("bits of 8 or 16", f"?bits={bits}", "ask for one of these")
        if (heads[1] - heads[0]) * height * width > MOST_WEIGHTS:
            raise AttlasError(
                f"a tile of at most {MOST_WEIGHTS:,} weights",
                f"{heads[1] - heads[0]} × {height} × {width}",
                "ask for fewer heads, rows or slots, or for a smaller shape",
            )
        return cls(heads, rows, slots, height, width, int(bits))

    def of(
        self, layer: Layer, stop: threading.Event | None = None
    ) -> Float[Tensor, "heads height width"]:
        """The weights in this window: exact ones, or the largest of each group.

        stop: set by another thread when nobody waits for them any more.
        Errors: `AbandonedError` soon after it is set.
        """
        reading = layer.reading
        if self.heads != (0, layer.heads):
            reading = reading.of_heads(torch.arange(*self.heads))
        shape = self.height, self.width
        return pooled(reading, self.rows, self.slots, shape, "max", stop)[0]


def _range(query: Mapping[str, str], name: str, size: int) -> tuple[int, int]:
    text = query.get(name)
    if text is None:
        return 0, size
    match = re.fullmatch(r"(\d{1,12}):(\d{1,12})", text, re.ASCII)
    if match is None or not int(match[1]) < int(match[2]) <= size:
        raise AttlasError(
            f"{name} as start:stop within 0:{size}",
            f"?{name}={text}",
            "count from 0; stop is the first one left out",
        )
    return int(match[1]), int(match[2])


def _shape(query: Mapping[str, str], rows: int, slots: int) -> tuple[int, int]:
    text = query.get("shape")
    if text is None:
        return rows, slots
    match = re.fullmatch(r"(\d{1,12}),(\d{1,12})", text, re.ASCII)
    if match is None or not (0 < int(match[1]) <= rows and 0 < int(match[2]) <= slots):
        raise AttlasError(
            f"a shape as height,width, at most {rows},{slots} and at least 1,1",
            f"?shape={text}",
            "a window can be sent as it is or smaller, never larger",
        )
    return int(match[1]), int(match[2])
