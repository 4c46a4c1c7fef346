"""The maps that the page asks for, piece by piece."""

import asyncio
import math
import re
import secrets
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from jaxtyping import Bool, Float
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from attlas.errors import AttlasError
from attlas.explorer.cancellation import Found, run_while_connected
from attlas.explorer.messages import TranslationRequest, json_no_store, no_store, path_number
from attlas.inference.forward_pass import ForwardPass
from attlas.recording import AttentionMap, DenseAttentionMap, Trace
from attlas.recording.maps.statistics import pool_map
from attlas.recording.trace import Axes, axes_of

# The maps of one text, layer by layer.


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's map of one text: an attention map of a single batch row, and what its axes are.

    kind: what it relates, None = unknown. path: of its module. before: how many queries other
    maps have that the same module computed earlier.
    """

    name: str
    attention_map: AttentionMap
    axes: Axes
    kind: Literal["self", "cross"] | None = None
    path: str = ""
    before: int = 0

    @property
    def heads(self) -> int:
        """How many heads look."""
        return self.attention_map.shape[1]

    @property
    def queries(self) -> int:
        """How many positions ask."""
        return self.attention_map.shape[2]

    @property
    def num_keys(self) -> int:
        """How many positions can be looked at."""
        return self.attention_map.shape[3]


@dataclass(frozen=True, slots=True)
class TextMaps:
    """Every map of one text.

    forward_pass: what made them, None = it cannot be run again. asked: the text and the prefix of a
    search, None = nothing was searched for.
    """

    layers: tuple[Layer, ...]
    forward_pass: ForwardPass | None = None
    asked: TranslationRequest | None = None

    @classmethod
    def of(cls, trace: Trace, row: int = 0, batch: int | None = None) -> "TextMaps":
        """The maps of this batch row; those of target × source come first.

        batch: only those of layers with as many batch rows; None = all that have this row.
        """
        layers = [layer for name in trace for layer in _layers(trace, name, row, batch)]
        return cls(tuple(sorted(layers, key=lambda layer: layer.axes.within)))

    @property
    def size(self) -> int:
        """Bytes of the tensors of its attention maps."""
        held = [one for layer in self.layers for one in _tensors(layer.attention_map)]
        storages = [one.untyped_storage() for one in held]
        return sum({one.data_ptr(): one.nbytes() for one in storages}.values())

    def layer(self, index: int) -> Layer:
        """One layer, counted from 0."""
        if not 0 <= index < len(self.layers):
            raise AttlasError(
                f"a layer from 0 to {len(self.layers) - 1}", str(index), "count layers from 0"
            )
        return self.layers[index]


def _tensors(attention_map: AttentionMap) -> list[torch.Tensor]:
    """What an attention map holds, of whichever kind it is."""
    named: tuple[Field[object], ...] = fields(attention_map) if is_dataclass(attention_map) else ()
    parts: list[object] = [getattr(attention_map, one.name) for one in named]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _layers(trace: Trace, name: str, row: int, batch: int | None) -> Iterator[Layer]:
    """A layer for each of its calls; calls of one query each are the rows of one map, where what
    they look at stays or grows by one key a time. Calls are counted from 0, as in the trace."""
    every = list(enumerate(trace.calls(name)))
    queries_of = [call.shape[2] for _, call in every]
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
        _, _, queries, num_keys = call.shape
        if queries and num_keys:
            numbers = f"call {first}" if first == last else f"calls {first}–{last}"
            of = f", {numbers}" if len(runs) > 1 else ""
            axes = axes_of(trace, name, row, sizes[first], queries, num_keys)
            before = sum(queries_of[:first])
            yield Layer(f"{name or 'model'}{of}", call, axes, trace.kind(name), name, before)


def _runs(calls: list[tuple[int, AttentionMap]]) -> Iterator[list[tuple[int, AttentionMap]]]:
    """Calls in turn of as many heads, of which each looks at as many keys as the one before, or at
    one more."""
    run: list[tuple[int, AttentionMap]] = []
    for number, call in calls:
        if run:
            (_, heads, _, num_keys), (_, others, _, more) = run[-1][1].shape, call.shape
            if others != heads or more - num_keys not in (0, 1):
                yield run
                run = []
        run.append((number, call))
    if run:
        yield run


def _together(calls: list[AttentionMap]) -> AttentionMap:
    """One attention map; what a memory that grew did not hold yet could not be looked at."""
    most = max(call.shape[3] for call in calls)
    rows = [call.rows(0, 1) for call in calls]
    padded = [torch.nn.functional.pad(row, (0, most - row.shape[-1])) for row in rows]
    allowed = [call.allowed_rows(0, 1) for call in calls]
    heads = max(one.shape[1] for one in allowed)
    may_look = [
        torch.nn.functional.pad(one.expand(-1, heads, -1, -1), (0, most - one.shape[-1]))
        for one in allowed
    ]
    first = calls[0].position
    in_turn = first is not None and all(
        call.position == first + step for step, call in enumerate(calls)
    )
    return DenseAttentionMap(
        torch.cat(padded, dim=2),
        torch.cat(may_look, dim=2),
        query_offset=first if in_turn else None,
    )


# The latest maps are kept, so that the page can ask for their parts.


class MapCache:
    """The maps of the latest texts by id: at most `most` of them; the least recently used one goes
    first.

    most_bytes: what their tensors may take together, None = any amount; the latest is kept anyway.
    Ids are drawn at random, so that a page which did not ask for a translation cannot guess it.
    """

    def __init__(self, most: int = 32, *, most_bytes: int | None = None) -> None:
        if most < 1:
            raise AttlasError("room for at least one map", str(most), "keep one or more")
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, TextMaps] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, text_maps: TextMaps) -> str:
        """Keep the maps of a text and say under which id."""
        name = secrets.token_hex(8)
        with self._lock:
            self._kept[name] = text_maps
            while len(self._kept) > 1 and self._full:
                self._kept.popitem(last=False)
        return name

    @property
    def _full(self) -> bool:
        if len(self._kept) > self._most:
            return True
        most = self._most_bytes
        return most is not None and sum(text_maps.size for text_maps in self._kept.values()) > most

    def get(self, name: str) -> TextMaps | None:
        """The maps of this id, or None where it is no longer (or never was) kept."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name]


# A piece of an attention map on its way to the page: binary, quantised, deflated.


_MAGIC = b"ATLT"
_VERSION = 2
_HEADER = struct.Struct("<4sHBBIIIHHI")  # 28 bytes
_LEVELS = {8: "<u1", 16: "<u2"}  # numpy's names: little-endian, unsigned
_SAMPLED = 1
CURVES = {"linear": 1, "root": 2}

MEDIA_TYPE = "application/vnd.attlas.tile"


def pack(
    weights: Float[Tensor, "heads rows keys"],
    bits: int = 16,
    *,
    curve: str = "linear",
    pyramid_level: int = 0,
    sampled: bool = False,
    step: int = 1,
    effort: int = 6,
) -> bytes:
    """The bytes of a tile, whose heads have a scale each: weight = scale · (level / most)^power.

    scale: the largest weight of the head; most = 2^bits − 2; power: 1 for the curve "linear", 2 for
    "root". The level 2^bits − 1 is a cell in which no query may look at any key; −inf in `weights`.
    pyramid_level n: a cell stands for up to 2ⁿ × 2ⁿ weights. sampled: not all of them were read.
    step: levels are rounded to its multiples, so that they deflate better; the largest stays.
    effort: of zlib, from 1 (fast) to 9 (small).
    Little-endian, a header of 28 bytes and then one zlib stream:

        offset  type     what
             0  char[4]  "ATLT"
             4  uint16   version of the format, 2
             6  uint8    bits of a level, 8 or 16
             7  uint8    power of the curve, 1 or 2
             8  uint32   heads
            12  uint32   rows      (queries, or pooled groups of them)
            16  uint32   keys      (or pooled groups of them)
            20  uint16   pyramid level
            22  uint16   1 where the weights were sampled, 0 where all of them were read
            24  uint32   bytes of the rest once inflated = heads · (4 + rows · keys · bits / 8)
            28  zlib     a float32 for each head, its scale; the levels, unsigned, in the order
                         [head][row][key]

    With 16 bits and the curve "linear" a weight of at most 1 is off by less than 0.000008. Zero
    stays exactly zero; `unpack` is the way back.

    Raises:
        AttlasError: For weights that are negative or not finite, and for other bits or curves.
    """
    if bits not in _LEVELS:
        raise AttlasError("8 or 16 bits", str(bits), "ask for one of these")
    if curve not in CURVES:
        raise AttlasError(f"a curve of {', '.join(CURVES)}", repr(curve), "ask for one of these")
    exact = weights.detach().to("cpu", torch.float64).numpy()
    hidden = exact == -np.inf
    exact = np.where(hidden, 0.0, exact)
    if not (np.isfinite(exact).all() and (exact >= 0).all()):
        raise AttlasError(
            "attention weights that are finite and not negative",
            "weights that are not",
            "look for NaN in the model's weights; it may have diverged in training",
        )
    most = 2**bits - 2
    # What the page multiplies with is the float32 of the header, so that is what is divided by;
    # where even that is zero, so is every weight.
    scales = exact.max(axis=(1, 2), initial=0.0).astype("<f4")
    shares = exact / np.where(scales == 0, 1.0, scales.astype(np.float64))[:, None, None]
    if curve == "root":
        shares = np.sqrt(shares)
    levels = np.rint(shares * (most / step)) * step
    levels = np.where(shares == 1, most, levels.clip(0, most))
    levels = np.where(hidden, most + 1, levels)
    raw = scales.tobytes() + levels.astype(_LEVELS[bits]).tobytes()
    shape, flags = weights.shape, _SAMPLED if sampled else 0
    header = _HEADER.pack(
        _MAGIC, _VERSION, bits, CURVES[curve], *shape, pyramid_level, flags, len(raw)
    )
    return header + zlib.compress(raw, effort)


@dataclass(frozen=True, slots=True)
class Tile:
    """What `pack` packed. hidden: where no query may look at any key; the weight there is 0."""

    weights: Float[Tensor, "heads rows keys"]
    hidden: Bool[Tensor, "heads rows keys"]
    pyramid_level: int
    sampled: bool


def read_tile(tile: bytes) -> Tile:
    """A tile that was packed; each weight within half a level of what it was."""
    try:
        header = _HEADER.unpack_from(tile)
        magic, version, bits, power, heads, rows, num_keys, pyramid_level, flags, size = header
        if magic != _MAGIC or version != _VERSION:
            raise ValueError(f"it begins with {magic!r}, version {version}")
        raw = zlib.decompress(tile[_HEADER.size :])
        cells = heads * rows * num_keys
        whole = len(raw) == size == 4 * heads + cells * bits // 8
        if bits not in _LEVELS or power not in CURVES.values() or not whole:
            raise ValueError("its sizes contradict each other")
    except (struct.error, zlib.error, ValueError) as error:
        raise AttlasError(
            f"a whole tile of version {_VERSION}",
            f"something else ({error})",
            "ask for the tile again",
        ) from None
    scales = np.frombuffer(raw, "<f4", count=heads).astype(np.float64)[:, None, None]
    levels = np.frombuffer(raw, _LEVELS[bits], offset=4 * heads).reshape(heads, rows, num_keys)
    most = 2**bits - 2
    hidden = levels == most + 1
    weights = np.where(hidden, 0.0, scales * (levels / most) ** power)
    return Tile(
        torch.from_numpy(weights.astype(np.float32)),
        torch.from_numpy(hidden),
        pyramid_level,
        bool(flags & _SAMPLED),
    )


def unpack(tile: bytes) -> Float[Tensor, "heads rows keys"]:
    """The weights of a tile; 0 where no query may look."""
    return read_tile(tile).weights


def pyramid_level(size: tuple[int, int], cells: tuple[int, int]) -> int:
    """The n for which a cell of a window of this size stands for at most 2ⁿ × 2ⁿ weights."""
    largest = max(-(-whole // part) for whole, part in zip(size, cells, strict=True))
    return (largest - 1).bit_length()


# Which part of a map is asked for, and how coarsely: the heads, rows and keys of one tile.


MOST_WEIGHTS = 1 << 24  # of one tile: 16 million levels are 32 MB before they are deflated

_NAMES = ("heads", "rows", "keys", "shape", "bits", "curve")
# Of zlib, for an answer that a reader waits for. Levels of 16 bits deflate to next to the same size
# with 1 as with 6, in a fifth of the time; those of 8 bits are a twentieth larger with 1.
_EFFORT = {8: 4, 16: 1}


@dataclass(frozen=True, slots=True)
class MapWindow:
    """heads, rows, keys: half-open ranges; this window is sent as height × width numbers a head.

    Where height × width is smaller than the window, each number is the **largest** weight of its
    group: a peak never vanishes because one looks from afar. The groups divide the rows (and the
    keys) as evenly as whole numbers can: group i of n begins at ⌊i · size / n⌋.
    """

    heads: tuple[int, int]
    rows: tuple[int, int]
    key_range: tuple[int, int]
    height: int
    width: int
    bits: int
    curve: str = "linear"

    @classmethod
    def read(cls, query: Mapping[str, str], layer: Layer) -> Self:
        """From a query string: ?heads=a:b&rows=a:b&keys=a:b&shape=height,width&bits=8&curve=root.

        What is left out means all of it, at full size, with 16 bits, and the curve "linear".
        """
        check_names(query, _NAMES)
        heads = read_range(query, "heads", layer.heads)
        rows = read_range(query, "rows", layer.queries)
        key_range = read_range(query, "keys", layer.num_keys)
        height, width = _shape(query, rows[1] - rows[0], key_range[1] - key_range[0])
        bits = query.get("bits", "16")
        if bits not in ("8", "16"):
            raise AttlasError("bits of 8 or 16", f"?bits={bits}", "ask for one of these")
        curve = query.get("curve", "linear")
        if curve not in CURVES:
            raise AttlasError(
                f"a curve of {' or '.join(CURVES)}", f"?curve={curve}", "ask for one of these"
            )
        if (heads[1] - heads[0]) * height * width > MOST_WEIGHTS:
            raise AttlasError(
                f"a tile of at most {MOST_WEIGHTS:,} weights",
                f"{heads[1] - heads[0]} × {height} × {width}",
                "ask for fewer heads, rows or keys, or for a smaller shape",
            )
        return cls(heads, rows, key_range, height, width, int(bits), curve)

    def of(
        self, layer: Layer, stop: threading.Event | None = None, *, hidden: float = 0.0
    ) -> Float[Tensor, "heads height width"]:
        """The weights in this window: exact ones, or the largest of each group.

        Args:
            stop: Set by another thread when no request waits for them any more.
            hidden: The number for a cell in which no query may look at any key.

        Raises:
            PassCancelledError: Soon after `stop` is set.
        """
        attention_map = layer.attention_map
        if self.heads != (0, layer.heads):
            attention_map = attention_map.select_heads(torch.arange(*self.heads))
        shape = self.height, self.width
        pooled = pool_map(
            attention_map, self.rows, self.key_range, shape, "max", stop, hidden=hidden
        )
        return pooled[0]

    def tile(self, layer: Layer, stop: threading.Event | None = None) -> bytes:
        """The same as the bytes of a tile, which says where no query may look."""
        size = self.rows[1] - self.rows[0], self.key_range[1] - self.key_range[0]
        return pack(
            self.of(layer, stop, hidden=-math.inf),
            self.bits,
            curve=self.curve,
            pyramid_level=pyramid_level(size, (self.height, self.width)),
            effort=_EFFORT[self.bits],
        )


def read_range(query: Mapping[str, str], name: str, size: int) -> tuple[int, int]:
    """The half-open range that a parameter spells, as 2:5; all of it where it is left out."""
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


def read_number(query: Mapping[str, str], name: str, size: int) -> int | None:
    """The number below `size` that a parameter spells; None where it is left out."""
    text = query.get(name)
    if text is None:
        return None
    if re.fullmatch(r"\d{1,12}", text, re.ASCII) is None or int(text) >= size:
        raise AttlasError(
            f"{name} as a number from 0 to {size - 1}", f"?{name}={text}", "count from 0"
        )
    return int(text)


def _shape(query: Mapping[str, str], rows: int, num_keys: int) -> tuple[int, int]:
    text = query.get("shape")
    if text is None:
        return rows, num_keys
    match = re.fullmatch(r"(\d{1,12}),(\d{1,12})", text, re.ASCII)
    if match is None or not (0 < int(match[1]) <= rows and 0 < int(match[2]) <= num_keys):
        raise AttlasError(
            f"a shape as height,width, at most {rows},{num_keys} and at least 1,1",
            f"?shape={text}",
            "a window can be sent as it is or smaller, never larger",
        )
    return int(match[1]), int(match[2])


def check_names(given: Iterable[str], names: Collection[str]) -> None:
    """Refuse a parameter of another name than these."""
    for name in given:
        if name not in names:
            known = f"one of {', '.join(names)}" if names else "no parameter"
            raise AttlasError(known, f"?{name}=…", "leave this parameter out")


def check_parameters(request: Request, names: Collection[str]) -> None:
    """Refuse a query string with other parameters than these, or with one of them twice."""
    given = [name for name, _ in request.query_params.multi_items()]
    check_names(given, names)
    if twice := sorted({name for name in given if given.count(name) > 1}):
        raise AttlasError("each parameter once", f"?{twice[0]}=… twice", "leave one of them out")


_GLANCE = 0.2  # seconds between looks whether the page still waits
_AT_ONCE = 4  # tiles: the largest takes half a gigabyte of memory on its way


class MapRoutes:
    """Keeps the maps of the latest texts, lists what is in them, and answers for their weights and
    tokens."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self.cache = MapCache(most_bytes=most_bytes)
        self.turns = asyncio.Semaphore(_AT_ONCE)

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for weights and for tokens."""
        return [
            Route("/maps/{id}/{layer}", self._tile),
            Route("/maps/{id}/{layer}/tokens", self._tokens),
        ]

    def map_message(self, text_maps: TextMaps | None) -> dict[str, Any]:
        """Keep the maps of a text; under which name the page can ask for it, and what is in it."""
        return {
            "map": self.cache.put(text_maps) if text_maps and text_maps.layers else None,
            "layers": described(text_maps.layers if text_maps else ()),
        }

    def text_maps(self, request: Request) -> TextMaps:
        """The maps of the text whose id is in the path of a request; not found (404) where they are
        no longer kept."""
        text_maps = self.cache.get(request.path_params["id"])
        if text_maps is None:
            raise HTTPException(404, "a map that is still kept")
        return text_maps

    async def answer(self, request: Request, work: Callable[[threading.Event], Found]) -> Found:
        """What `work` gives, when it is this request's turn; it is given up when the page has
        gone."""
        async with self.turns:
            if await request.is_disconnected():  # while it waited for its turn
                raise ClientDisconnect
            return await run_while_connected(request, work, _GLANCE)

    def _requested(self, request: Request) -> tuple[Layer, MapWindow]:
        text_maps = self.text_maps(request)
        layer = text_maps.layer(path_number(request, "layer"))
        check_parameters(request, _NAMES)
        return layer, MapWindow.read(request.query_params, layer)

    async def _tile(self, request: Request) -> Response:
        layer, view = self._requested(request)
        packed = await self.answer(request, lambda stop: view.tile(layer, stop))
        return no_store(Response(packed, media_type=MEDIA_TYPE))

    async def _tokens(self, request: Request) -> Response:
        layer, view = self._requested(request)
        queries, num_keys = layer.axes.queries, layer.axes.keys
        named = {"rows": queries[slice(*view.rows)], "keys": num_keys[slice(*view.key_range)]}
        return json_no_store(named)


def described(layers: Sequence[Layer]) -> list[dict[str, Any]]:
    """What the page gets of these layers; a title names one of them only."""
    titles = [layer_title(layer.name, layer.kind, layer.axes.within) for layer in layers]
    return [
        {
            "name": layer.name,
            "title": title if titles.count(title) == 1 else layer.name,
            "sheet": _sheet(layer),
            "within": layer.axes.within,
            "heads": layer.heads,
            "queries": layer.queries,
            "keys": layer.num_keys,
        }
        for layer, title in zip(layers, titles, strict=True)
    ]


_STACKS = ("encoder", "decoder")


def layer_title(name: str, kind: str | None, within: bool) -> str:
    """ "encoder 3 · self" of the path "bert.encoder.layer.3.attention.self": what a person reads.

    A path without a number, or of a part of a model that has no such name, stands as it is.
    """
    path, _, calls = name.partition(", ")
    parts = path.split(".")
    stack = next((part for part in parts if part in _STACKS), "")
    after = parts[parts.index(stack) + 1 :] if stack else parts
    number = next((part for part in after if part.isdecimal()), "")
    kind = kind or (None if within else "cross")
    if not stack and not number:
        return name
    title = " ".join(part for part in (stack or "layer", number) if part)
    return title + (f" · {kind}" if kind else "") + (f", {calls}" if calls else "")


def _sheet(layer: Layer) -> str:
    """The heading under which the page puts a layer: its stack, and what it relates."""
    stack = next((part for part in layer.name.split(".") if part in _STACKS), "")
    kind = layer.kind or (None if layer.axes.within else "cross")
    return " · ".join(part for part in (stack, kind) if part)
