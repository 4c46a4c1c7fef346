"""The maps that the page asks for, piece by piece."""

import asyncio
import re
import secrets
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from attlas.errors import AttlasError
from attlas.explorer.cancellation import while_listened_to
from attlas.explorer.messages import fresh, fresh_json, place
from attlas.recording import DenseReading, Reading, Trace
from attlas.recording.maps.statistics import pooled
from attlas.recording.trace import Axes, axes_of

# The maps of one text, layer by layer.


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


# The cabinet in which the latest maps are kept, so that the page can ask for their parts.


class Cabinet:
    """The latest atlases by id: at most `most` of them; the least recently used one goes first.

    most_bytes: what their tensors may take together, None = any amount; the latest is kept anyway.
    Ids are drawn at random, so that a page which did not ask for a translation cannot guess it.
    """

    def __init__(self, most: int = 32, *, most_bytes: int | None = None) -> None:
        if most < 1:
            raise AttlasError("room for at least one map", str(most), "keep one or more")
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Atlas] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, atlas: Atlas) -> str:
        """Keep an atlas and say under which id."""
        name = secrets.token_hex(8)
        with self._lock:
            self._kept[name] = atlas
            while len(self._kept) > 1 and self._full:
                self._kept.popitem(last=False)
        return name

    @property
    def _full(self) -> bool:
        if len(self._kept) > self._most:
            return True
        most = self._most_bytes
        return most is not None and sum(atlas.size for atlas in self._kept.values()) > most

    def get(self, name: str) -> Atlas | None:
        """The atlas of this id, or None where it is no longer (or never was) kept."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name]


# A piece of an attention map on its way to the page: binary, quantised, deflated.


_MAGIC = b"ATLT"
_VERSION = 1
_HEADER = struct.Struct("<4sHHIIIfI")  # 28 bytes
_LEVELS = {8: "<u1", 16: "<u2"}  # numpy's names: little-endian, unsigned

MEDIA_TYPE = "application/vnd.attlas.tile"


def pack(weights: Float[Tensor, "heads rows slots"], bits: int = 16) -> bytes:
    """The bytes of a tile: level = round(weight / scale), scale = largest weight / (2^bits − 1).

    Little-endian, a header of 28 bytes and then one zlib stream:

        offset  type     what
             0  char[4]  "ATLT"
             4  uint16   version of the format, 1
             6  uint16   bits of a level, 8 or 16
             8  uint32   heads
            12  uint32   rows      (queries, or pooled groups of them)
            16  uint32   slots     (or pooled groups of them)
            20  float32  scale     weight = level · scale
            24  uint32   bytes of the levels once inflated = heads · rows · slots · bits / 8
            28  zlib     the levels, unsigned, in the order [head][row][slot]

    |weight − level · scale| ≤ scale / 2, up to the rounding of float32: with 16 bits a weight of at
    most 1 is off by less than 0.000008. Zero stays exactly zero; `unpack` is the way back.

    Errors: `AttlasError` for weights that are negative or not finite, and for other bits.
    """
    if bits not in _LEVELS:
        raise AttlasError("8 or 16 bits", str(bits), "ask for one of these")
    exact = weights.detach().to("cpu", torch.float64).numpy()
    if not (np.isfinite(exact).all() and (exact >= 0).all()):
        raise AttlasError(
            "attention weights that are finite and not negative",
            "weights that are not",
            "look for NaN in the model's weights; it may have diverged in training",
        )
    most = 2**bits - 1
    # What the page multiplies with is the float32 of the header, so that is what is divided by;
    # where even that is zero, so is every weight.
    scale = float(np.float32(exact.max(initial=0.0) / most))
    levels = np.rint(exact / (scale or 1.0)).clip(0, most)
    raw = levels.astype(_LEVELS[bits]).tobytes()
    heads, rows, slots = weights.shape
    header = _HEADER.pack(_MAGIC, _VERSION, bits, heads, rows, slots, scale, len(raw))
    return header + zlib.compress(raw, 6)


def unpack(tile: bytes) -> Float[Tensor, "heads rows slots"]:
    """The weights of a tile, each within scale / 2 of what was packed."""
    try:
        magic, version, bits, heads, rows, slots, scale, size = _HEADER.unpack_from(tile)
        if magic != _MAGIC or version != _VERSION:
            raise ValueError(f"it begins with {magic!r}, version {version}")
        raw = zlib.decompress(tile[_HEADER.size :])
        if bits not in _LEVELS or not len(raw) == size == heads * rows * slots * bits // 8:
            raise ValueError("its sizes contradict each other")
    except (struct.error, zlib.error, ValueError) as error:
        raise AttlasError(
            "a whole tile of version 1", f"something else ({error})", "ask for the tile again"
        ) from None
    levels = np.frombuffer(raw, _LEVELS[bits]).astype(np.float32)
    return torch.from_numpy(levels * np.float32(scale)).reshape(heads, rows, slots)


# Which part of a map is asked for, and how coarsely: the heads, rows and slots of one tile.


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


_GLANCE = 0.2  # seconds between looks whether the page still waits
_AT_ONCE = 4  # tiles: the largest takes half a gigabyte of memory on its way


class Maps:
    """Keeps the latest atlases, tells what is in them, and answers for their weights and tokens."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self._cabinet = Cabinet(most_bytes=most_bytes)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for weights and for tokens."""
        return [
            Route("/maps/{id}/{layer}", self._tile),
            Route("/maps/{id}/{layer}/tokens", self._tokens),
        ]

    def told(self, atlas: Atlas | None) -> dict[str, Any]:
        """Keep an atlas; under which name the page can ask for it, and what is in it."""
        return {
            "map": self._cabinet.put(atlas) if atlas and atlas.layers else None,
            "layers": [_described(layer) for layer in (atlas.layers if atlas else ())],
        }

    def _asked(self, request: Request) -> tuple[Layer, View]:
        atlas = self._cabinet.get(request.path_params["id"])
        if atlas is None:
            raise HTTPException(404, "a map that is still kept")
        layer = atlas.layer(place(request, "layer"))
        names = [name for name, _ in request.query_params.multi_items()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise AttlasError(
                "each parameter once", f"?{twice[0]}=… twice", "leave one of them out"
            )
        return layer, View.read(request.query_params, layer)

    async def _tile(self, request: Request) -> Response:
        layer, view = self._asked(request)
        async with self._turns:
            if await request.is_disconnected():  # while it waited for its turn
                raise ClientDisconnect
            packed = await while_listened_to(
                request, lambda stop: pack(view.of(layer, stop), view.bits), _GLANCE
            )
        return fresh(Response(packed, media_type=MEDIA_TYPE))

    async def _tokens(self, request: Request) -> Response:
        layer, view = self._asked(request)
        queries, slots = layer.axes.queries, layer.axes.slots
        named = {"rows": queries[slice(*view.rows)], "slots": slots[slice(*view.slots)]}
        return fresh_json(named)


def _described(layer: Layer) -> dict[str, Any]:
    shape = {"heads": layer.heads, "queries": layer.queries, "slots": layer.slots}
    return {"name": layer.name, "within": layer.axes.within, **shape}
