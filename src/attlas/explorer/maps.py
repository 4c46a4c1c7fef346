"""The maps that the page asks for, piece by piece."""

import asyncio
import math
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any, Literal, Self

import torch
from jaxtyping import Float
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from attlas.analysis.alignment import Reference
from attlas.errors import AttlasError
from attlas.explorer.answers import Answer, AnswerFolder
from attlas.explorer.cancellation import Found, run_while_connected
from attlas.explorer.messages import (
    MissingError,
    TranslationRequest,
    json_no_store,
    no_store,
    path_number,
)
from attlas.explorer.readings import (
    Pyramid,
    Pyramids,
    Readings,
    Report,
    cut_out,
    largest_of_groups,
    largest_of_known_rows,
)
from attlas.explorer.tiles import CURVES, MEDIA_TYPE, pack, pyramid_level, read_tile
from attlas.inference.forward_pass import ForwardPass
from attlas.recording import AttentionMap, DenseAttentionMap, Trace
from attlas.recording.trace import Axes, axes_of

# The maps of one text, layer by layer.


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's map of one text: an attention map of a single batch row, and what its axes are.

    Args:
        kind: What it relates; None = unknown.
        path: Of its module.
        before: How many queries other maps have that the same module computed earlier.
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

    def image(self) -> bytes:
        """The image whose patches the keys are, as PNG.

        Raises:
            MissingError: If there is none.
        """
        if self.axes.patches is None:
            raise MissingError(
                "a layer whose keys are patches of an image",
                f"layer {self.name}, without one",
                "label the trace: trace.label_image(images, grid)",
            )
        # By its name, because it imports Pillow, which few traces need.
        content: bytes = import_module("attlas.recording.images").png(self.axes.patches.images[0])
        return content


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What is said of a text beside its maps.

    Args:
        title: By which it is chosen among others.
        written: What the model wrote; None = nothing.
        prompt: How many tokens of one text a decoder was given; it wrote the rest.
    """

    title: str = ""
    written: str | None = None
    remarks: tuple[str, ...] = ()
    prompt: int = 0


@dataclass(frozen=True, slots=True)
class TextMaps:
    """Every map of one text.

    Args:
        forward_pass: What made them; None = it cannot be run again.
        requested: The text and the prefix of a search; None = nothing was searched for.
        gold: The links of annotators; None = there are none.
    """

    layers: tuple[Layer, ...]
    forward_pass: ForwardPass | None = None
    requested: TranslationRequest | None = None
    gold: Reference | None = None
    facts: TextFacts = TextFacts()

    @classmethod
    def of(cls, trace: Trace, row: int = 0, batch: int | None = None) -> "TextMaps":
        """The maps of this batch row; those of target × source come first.

        Args:
            batch: Only those of layers with as many batch rows; None = all that have this row.
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
            yield Layer(
                name=f"{name or 'model'}{of}",
                attention_map=call,
                axes=axes,
                kind=trace.kind(name),
                path=name,
                before=before,
            )


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

    Ids are drawn at random, so that a page which did not ask for a translation cannot guess it.

    Args:
        most_bytes: What their tensors may take together; None = any amount. The latest is kept
            anyway.
    """

    def __init__(self, most: int = 32, *, most_bytes: int | None = None) -> None:
        if most < 1:
            raise AttlasError("room for at least one map", str(most), "keep one or more")
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, TextMaps] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, text_maps: TextMaps, name: str | None = None) -> str:
        """Keep the maps of a text and say under which id: this one, or None = a new one."""
        name = name or secrets.token_hex(8)
        with self._lock:
            self._kept[name] = text_maps
            self._kept.move_to_end(name)
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


# Which part of a map is asked for, and how coarsely: the heads, rows and keys of one tile.


MOST_WEIGHTS = 1 << 24  # of one tile: 16 million levels are 32 MB before they are deflated

_NAMES = ("heads", "rows", "keys", "shape", "bits", "curve")
# Of zlib, for an answer that a reader waits for. Levels of 16 bits deflate to next to the same size
# with 1 as with 6, in a fifth of the time; those of 8 bits are a twentieth larger with 1.
_EFFORT = {8: 4, 16: 1}


@dataclass(frozen=True, slots=True)
class MapWindow:
    """A window of the maps of a layer, which is sent as height × width numbers a head.

    Heads, rows and keys are half-open ranges. Where height × width is smaller than the window, each
    number is the **largest** weight of its group: a peak never vanishes because one looks from
    afar. The groups divide the rows (and the keys) as evenly as whole numbers can: group i of n
    begins at ⌊i · size / n⌋.
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
        return cls(
            heads=heads,
            rows=rows,
            key_range=key_range,
            height=height,
            width=width,
            bits=int(bits),
            curve=curve,
        )

    def of(
        self,
        layer: Layer,
        stop: threading.Event | None = None,
        *,
        hidden: float = 0.0,
        report: Report = lambda _: None,
        log_sums: Float[Tensor, " queries"] | None = None,
    ) -> Float[Tensor, "heads height width"]:
        """The weights in this window: exact ones, or the largest of each group.

        Args:
            stop: Set by another thread when no request waits for them any more.
            hidden: The number for a cell in which no query may look at any key.
            report: Called with the share that was read.
            log_sums: Of one head, for each query of the map log Σ e^score, by which fewer keys have
                to be read; None = not known.

        Raises:
            PassCancelledError: Soon after `stop` is set.
        """
        attention_map, shape = self._chosen(layer), (self.height, self.width)
        part = None if log_sums is None else cut_out(attention_map, self.rows, self.key_range)
        if part is not None and log_sums is not None:
            sums = log_sums[slice(*self.rows)]
            return largest_of_known_rows(part, sums, shape, hidden=hidden, stop=stop, report=report)
        return largest_of_groups(
            attention_map,
            self.rows,
            self.key_range,
            shape,
            hidden=hidden,
            stop=stop,
            report=report,
        )

    def pyramid(self, layer: Layer, stop: threading.Event, report: Report) -> Pyramid:
        """The reading of the whole map of the head of this window."""
        shape = self.height, self.width
        return Pyramid.read(self._chosen(layer), shape, stop=stop, report=report)

    def _chosen(self, layer: Layer) -> AttentionMap:
        if self.heads == (0, layer.heads):
            return layer.attention_map
        return layer.attention_map.select_heads(torch.arange(*self.heads))

    def tile(self, layer: Layer, stop: threading.Event | None = None) -> bytes:
        """The same as the bytes of a tile, which says where no query may look."""
        return self.packed(self.of(layer, stop, hidden=-math.inf))

    def packed(self, weights: Float[Tensor, "heads height width"]) -> bytes:
        """The weights of this window as a tile."""
        size = self.rows[1] - self.rows[0], self.key_range[1] - self.key_range[0]
        return pack(
            weights,
            self.bits,
            curve=self.curve,
            pyramid_level=pyramid_level(size, (weights.shape[1], weights.shape[2])),
            effort=_EFFORT[self.bits],
        )

    def is_long(self, layer: Layer) -> bool:
        """Return True if this is the whole map of one head, and to read it takes long."""
        whole = (0, layer.queries), (0, layer.num_keys)
        return self.is_of_one(layer) and whole == (self.rows, self.key_range)

    def is_of_one(self, layer: Layer) -> bool:
        """Return True if this is of one head of a map that takes long to be read."""
        large = layer.queries * layer.num_keys > _LONG
        return large and self.heads[1] - self.heads[0] == 1


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


_LONG = 1 << 26  # weights of a map, from which a pyramid of it is kept
_AT_ONCE = 4  # tiles: the largest takes half a gigabyte of memory on its way


LayerName = tuple[str, int]
"""The id of the maps of a text, and a layer of them."""


def _layer_name(request: Request) -> LayerName:
    return request.path_params["id"], path_number(request, "layer")


def _pyramid_name(name: LayerName, head: int) -> str:
    return f"pyramid of {name[0]}, layer {name[1]}, head {head}"


class MapRoutes:
    """Keeps the maps of the latest texts, lists what is in them, and answers for their weights and
    tokens.

    Args:
        answers: Where pyramids of long maps are kept, beside memory; None = nowhere.

    Attributes:
        when_missing: Gives the maps of an id that are not kept, None where there are none.
    """

    def __init__(self, most_bytes: int | None = None, answers: AnswerFolder | None = None) -> None:
        self._answers = answers
        self.cache = MapCache(most_bytes=most_bytes)
        self.when_missing: Callable[[str], TextMaps | None] = lambda _: None
        self.turns = asyncio.Semaphore(_AT_ONCE)
        self._readings, self._pyramids = Readings(), Pyramids()

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for weights and for tokens."""
        return [
            Route("/maps/{id}/{layer}", self._tile),
            Route("/maps/{id}/{layer}/tokens", self._tokens),
            Route("/maps/{id}/{layer}/image", self._image),
            Route("/maps/{id}/{layer}/progress", self._progress),
            Route("/maps/{id}/{layer}/glance", self._glance),
        ]

    def map_message(self, text_maps: TextMaps | None, name: str | None = None) -> dict[str, Any]:
        """Keep the maps of a text; under which name the page can ask for it, and what is in it."""
        return {
            "map": self.cache.put(text_maps, name) if text_maps and text_maps.layers else None,
            "layers": described(text_maps.layers if text_maps else ()),
        }

    def text_maps(self, request: Request) -> TextMaps:
        """The maps of the text whose id is in the path of a request; not found (404) where they are
        no longer kept."""
        name = request.path_params["id"]
        text_maps = self.cache.get(name)
        if text_maps is None:
            text_maps = self.when_missing(name)
            if text_maps is None:
                raise HTTPException(404, "a map that is still kept")
            self.cache.put(text_maps, name)
        return text_maps

    async def answer(self, request: Request, work: Callable[[threading.Event], Found]) -> Found:
        """What `work` gives, when it is this request's turn; it is given up when the page has
        gone."""
        async with self.turns:
            if await request.is_disconnected():  # while it waited for its turn
                raise ClientDisconnect
            return await run_while_connected(request, work)

    def _layer_and_window(self, request: Request) -> tuple[Layer, MapWindow]:
        text_maps = self.text_maps(request)
        layer = text_maps.layer(path_number(request, "layer"))
        check_parameters(request, _NAMES)
        return layer, MapWindow.read(request.query_params, layer)

    async def _tile(self, request: Request) -> Response:
        layer, view = self._layer_and_window(request)
        name = _layer_name(request)
        with self._readings.under_way((name, view)) as report:
            packed = await self.answer(
                request, lambda stop: self._read(name, layer, view, stop, report)
            )
        return no_store(Response(packed, media_type=MEDIA_TYPE))

    def _read(
        self, name: LayerName, layer: Layer, view: MapWindow, stop: threading.Event, report: Report
    ) -> bytes:
        """A tile; of a whole map that is long, a pyramid is kept, with which parts of it are read
        in less time."""
        head, shape = view.heads[0], (view.height, view.width)
        known = self._pyramid(name, layer, head) if view.is_of_one(layer) else None
        if view.is_long(layer):
            if known is None or not known.has_groups(shape):
                pyramid = view.pyramid(layer, stop, report)
                if known is None or pyramid.cells.numel() >= known.cells.numel():
                    self._pyramids.put((name, head), pyramid)
                    if self._answers is not None:
                        self._keep(self._answers, _pyramid_name(name, head), pyramid)
                known = pyramid
            return view.packed(known.coarser(shape))
        log_sums = None if known is None else known.log_sums
        return view.packed(view.of(layer, stop, hidden=-math.inf, report=report, log_sums=log_sums))

    def _keep(self, answers: AnswerFolder, name: str, pyramid: Pyramid) -> None:
        answers.write(name, Answer(MEDIA_TYPE, pack(pyramid.cells.unsqueeze(0), 16, effort=1)))
        if pyramid.log_sums is not None:
            answers.write(f"{name}, sums", Answer("", pyramid.log_sums.numpy().tobytes()))

    def _pyramid(self, name: LayerName, layer: Layer, head: int) -> Pyramid | None:
        """What is kept of the reading of a whole map; None where it was not read."""
        pyramid = self._pyramids.get((name, head))
        if pyramid is None and self._answers is not None:
            kept = self._answers.read(_pyramid_name(name, head))
            if kept is not None:
                tile = read_tile(kept.body)
                cells = tile.weights.masked_fill(tile.hidden, -torch.inf)[0]
                sums = self._answers.read(f"{_pyramid_name(name, head)}, sums")
                log_sums = (
                    None
                    if sums is None
                    else torch.frombuffer(bytearray(sums.body), dtype=torch.float32)
                )
                pyramid = Pyramid(cells, (layer.queries, layer.num_keys), log_sums)
                self._pyramids.put((name, head), pyramid)
        return pyramid

    async def _progress(self, request: Request) -> Response:
        _, view = self._layer_and_window(request)
        share = self._readings.share((_layer_name(request), view))
        return json_no_store({"share": share})

    async def _glance(self, request: Request) -> Response:
        layer, view = self._layer_and_window(request)
        name = _layer_name(request)

        def glance() -> bytes | None:
            pyramid = self._pyramid(name, layer, view.heads[0])
            if pyramid is None:
                return None
            shape = view.height, view.width
            return view.packed(pyramid.part(view.rows, view.key_range, shape))

        alone = view.heads[1] - view.heads[0] == 1
        packed = await run_in_threadpool(glance) if alone else None
        if packed is None:  # which is no mistake of who asks
            return no_store(Response(status_code=204))
        return no_store(Response(packed, media_type=MEDIA_TYPE))

    async def _image(self, request: Request) -> Response:
        layer = self.text_maps(request).layer(path_number(request, "layer"))
        check_parameters(request, ())
        return no_store(Response(await run_in_threadpool(layer.image), media_type="image/png"))

    async def _tokens(self, request: Request) -> Response:
        layer, view = self._layer_and_window(request)
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
            **_image_places(layer, layers),
        }
        for layer, title in zip(layers, titles, strict=True)
    ]


def _image_places(layer: Layer, layers: Sequence[Layer]) -> dict[str, Any]:
    """Which keys are the patches of an image, where some are, and the first layer that has it."""
    patches = layer.axes.patches
    if patches is None:
        return {}
    images = [None if one.axes.patches is None else one.axes.patches.images[0] for one in layers]
    own = next(index for index, image in enumerate(images) if image is patches.images[0])
    return {"image": {"grid": patches.grid, "first": patches.first, "of": own}}


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
