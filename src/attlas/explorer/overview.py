"""All heads of a text at once: a small picture of each, and what can be said of it in numbers."""

import asyncio
import math
import re
import struct
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Integer
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from attlas.analysis.roles.scores import SlopeReduction
from attlas.errors import AttlasError
from attlas.explorer.maps import Layer, MapRoutes, TextMaps, check_parameters
from attlas.explorer.messages import json_no_store, no_store
from attlas.explorer.tiles import pack, pyramid_level
from attlas.recording import AttentionMap
from attlas.recording.maps.blocks import Block
from attlas.recording.maps.reductions import (
    CancelCheck,
    MassReduction,
    PoolReduction,
    ReceivedReduction,
    Reduction,
    RowReduction,
    RowStatistic,
    WeightAtOffset,
    distance,
    entropy,
    first_weight,
    last_weight,
    max_weight,
    normalized_entropy,
    num_visible,
    reduce_map,
)
from attlas.recording.maps.row_kernels import RowKernels

# What one pass over a layer finds out about its heads.


_OF_QUERIES: Mapping[str, RowStatistic] = {
    "normalized_entropy": normalized_entropy,
    "max_weight": max_weight,
    "first_weight": first_weight,
    "last_weight": last_weight,
}
_OF_PLACES: Mapping[str, RowStatistic] = {
    "distance": distance,
    "self_weight": WeightAtOffset(0),
    "previous_weight": WeightAtOffset(-1),
    "next_weight": WeightAtOffset(1),
}
STATISTICS = (*_OF_QUERIES, *_OF_PLACES, "special_weight", "information", "diagonal")
"""Of each head, the mean over its queries; of the last two, see `LayerOverview`."""

_SPECIAL = re.compile(
    r"\[(?:CLS|SEP|PAD|MASK|UNK)\]|</?s>|<(?:pad|unk|bos|eos|mask|cls|sep|begin|end)>|<\|.*\|>"
)


@dataclass(frozen=True, slots=True)
class LayerOverview:
    """What can be said of the heads of a layer at once.

        information = H(w̄) − (1 / n) Σ_i H(w_i), in nats, with w̄ = Σ_i w_i / Σ_ij w_ij

    is 0 where all queries look alike, and large where each looks at a key of its own.

        diagonal = (Σ_ij w_ij i j − n ī j̄) / (n σ_i σ_j), of rows whose weights sum to 1

    is the correlation of i and j under the weights, as in `attlas.analysis.roles`: 1 for a
    monotonic alignment of even pace, below 0 where the order is reversed. It is not known of
    self-attention, where a causal mask alone makes it large, nor of patches of an image. Queries
    that see nothing, and of self-attention those of padding, count nowhere; for `diagonal` a query
    has to see two keys.

    Args:
        pictures: The largest weight of each cell, −inf where no query may look at any key.
        statistics: By name, a number for each head; None = not known.
        sampled: Whether only one query of each row of cells was read.
        rows: Of each head the row that is shown first, see `rows_worth_seeing`; None = not known.
    """

    pictures: Float[Tensor, "heads rows keys"]
    statistics: Mapping[str, tuple[float, ...] | None]
    sampled: bool
    pyramid_level: int
    rows: tuple[float, ...] | None = None

    def tile(self) -> bytes:
        """Its pictures, as the page reads them: with every level where they are the weights, with
        every other one where a cell is the largest of several."""
        return pack(
            self.pictures,
            8,
            curve="root",
            step=1 if self.pyramid_level == 0 else 2,
            pyramid_level=self.pyramid_level,
            sampled=self.sampled,
        )


class _Received(ReceivedReduction):
    """Σ_i w_ij over the queries that are tokens; and which those are."""

    def __init__(self, attention_map: AttentionMap, within: bool) -> None:
        super().__init__(attention_map)
        self._within = within and attention_map.position is not None
        self.tokens = torch.zeros(attention_map.shape[2], dtype=torch.bool)

    def for_thread(self, number: int) -> "ReceivedReduction":
        if number not in self._apart:
            other = _Received(self._map, self._within)  # type: ignore[arg-type]
            other.tokens = self.tokens
            self._apart[number] = other
        return self._apart[number]

    def take(self, kernels: RowKernels) -> bool:
        return False  # `update` says which queries are tokens

    def update(self, block: Block) -> None:
        device = block.weights.device
        rows = torch.ones(block.stop - block.start, dtype=torch.bool, device=device)
        if self._within:
            first, last = block.ends()
            places = block.position + torch.arange(block.stop - block.start, device=device)
            rows = (places >= first) & (places <= last)
        self.tokens[block.start : block.stop] = rows.cpu()
        super().update(replace(block, weights=block.weights * rows.unsqueeze(-1)))


def look_at_layer(
    layer: Layer, side: int, *, sampled: bool = False, stop: threading.Event | None = None
) -> LayerOverview:
    """All heads of a layer, as pictures of at most side × side cells, from one pass over its map.

    Args:
        sampled: Read of each row of cells the query in its middle alone.

    Raises:
        PassCancelledError: Soon after `stop` is set.
    """
    attention_map = layer.attention_map
    _, _, queries, num_keys = attention_map.shape
    shape = min(side, queries), min(side, num_keys)
    # Of an image the first place is the one that sums it up.
    patches = layer.axes.patches is not None
    special = _special_keys(layer)  # once, however many passes there are
    # One for all passes, which are of different rows.
    slope = (
        None
        if layer.axes.within or patches
        else SlopeReduction(attention_map, torch.ones((1, queries), dtype=torch.bool))
    )
    passes = (
        [_pass(layer, (0, queries), shape, special, slope, stop)]
        if not sampled
        else [
            _pass(layer, (row, row + 1), (1, shape[1]), special, slope, stop)
            for row in _middles(queries, shape[0])
        ]
    )
    found = {
        name: torch.stack([one[name] for one in passes]).sum(0)
        if name == "received"
        else torch.cat([one[name] for one in passes], 1)
        for name in passes[0]
    }
    return LayerOverview(
        found["picture"],
        {
            **_statistics(found),
            "diagonal": None
            if slope is None or not bool((slope.result[2] > 0).any())
            else _as_numbers(slope.result[0][0]),
        },
        sampled,
        pyramid_level((queries, num_keys), shape),
        rows_worth_seeing(layer, found) if queries > 0 and not sampled and not patches else None,
    )


def _middles(queries: int, rows: int) -> list[int]:
    """The query in the middle of each of so many groups."""
    edges = [row * queries // rows for row in range(rows + 1)]
    return [(low + high) // 2 for low, high in pairwise(edges)]


def _special_keys(layer: Layer) -> Integer[Tensor, "1 keys"] | None:
    """Group 0 for keys that are special tokens, below 0 for all others; None where none is."""
    special = [_SPECIAL.fullmatch(token) is not None for token in layer.axes.keys]
    return torch.tensor([special]).long() - 1 if any(special) else None


def _pass(
    layer: Layer,
    rows: tuple[int, int],
    shape: tuple[int, int],
    special: Integer[Tensor, "1 keys"] | None,
    slope: SlopeReduction | None,
    stop: threading.Event | None,
) -> dict[str, Tensor]:
    """What these rows say: the picture, numbers (heads, rows) by name, and `received`."""
    attention_map = layer.attention_map
    of_queries = {**_OF_QUERIES, "entropy": entropy, "num_visible": num_visible}
    if attention_map.position is not None and layer.axes.within:
        of_queries |= _OF_PLACES
    received = _Received(attention_map, layer.axes.within)
    keys = (0, attention_map.shape[3])
    reductions: dict[str, Reduction] = {
        "picture": PoolReduction(attention_map, rows, keys, shape, "max", hidden=-math.inf),
        "received": received,
        **{name: RowReduction(attention_map, of_row) for name, of_row in of_queries.items()},
    }
    if special is not None:
        reductions["special_weight"] = MassReduction(attention_map, special, 1)
    if slope is not None:
        reductions["diagonal"] = slope
    if stop is not None:
        reductions["stop"] = CancelCheck(stop)
    results = reduce_map(attention_map, reductions, rows=rows)
    found = {"picture": results["picture"][0], "received": results["received"][0].double()}
    inside = slice(*rows)
    for name in (*of_queries, "special_weight"):
        if name in results:
            numbers = results[name][0]
            found[name] = (numbers.squeeze(-1) if numbers.ndim == 3 else numbers)[:, inside]
    seen = received.tokens[inside].expand_as(found["num_visible"])
    found["counted"] = (found["num_visible"] > 0) & seen
    return found


def rows_worth_seeing(layer: Layer, found: Mapping[str, Tensor]) -> tuple[float, ...]:
    """Of each head, the row that is shown first.

        argmax over i of (log n_i − H(w_i)) · (1 − Σ w_ij over the set-aside keys j)

    n_i is how many keys query i sees. Set aside are special tokens, and of self-attention the query
    itself and the first token, on which heads rest that look at nothing. The first row and rows of
    special tokens are shown first only where there are no others.
    """
    set_aside = torch.zeros_like(found["entropy"])
    for name in ("special_weight", "self_weight"):
        set_aside += found.get(name, torch.zeros(()))
    keys, queries = layer.axes.keys, layer.axes.queries
    if layer.axes.within and not (keys and _SPECIAL.fullmatch(keys[0])):
        set_aside += found["first_weight"]
    sharp = found["num_visible"].clamp(min=1).log() - found["entropy"]
    worth = sharp.clamp(min=0) * (1 - set_aside).clamp(min=0)
    special = torch.tensor([_SPECIAL.fullmatch(token) is not None for token in queries])
    worth = torch.where(found["counted"], worth, -1.0)
    worth[:, 0] = -1
    if len(special) == worth.shape[1]:
        worth[:, special] = -1
    return tuple(float(row) for row in worth.argmax(-1))


def _statistics(found: Mapping[str, Tensor]) -> dict[str, tuple[float, ...] | None]:
    counted = found["counted"]
    statistics: dict[str, tuple[float, ...] | None] = {
        name: _as_numbers(_mean(found[name], counted)) if name in found else None
        for name in STATISTICS
    }
    received = found["received"]
    shares = received / received.sum(-1, keepdim=True).clamp(min=1e-30)
    among_all = torch.special.entr(shares).sum(-1)
    statistics["information"] = _as_numbers(
        (among_all - _mean(found["entropy"], counted)).clamp(min=0)
    )
    return statistics


def _mean(
    numbers: Float[Tensor, "heads rows"], counted: Bool[Tensor, "heads rows"]
) -> Float[Tensor, " heads"]:
    sums = torch.where(counted, numbers, 0.0).double().sum(-1)
    return sums / counted.sum(-1).clamp(min=1)


def _as_numbers(numbers: Float[Tensor, " heads"]) -> tuple[float, ...]:
    return tuple(float(number) if math.isfinite(number) else 0.0 for number in numbers.tolist())


# All layers of a text.


def most_worth_seeing(
    layers: Sequence[Layer], overviews: Sequence[LayerOverview]
) -> tuple[int, int]:
    """The layer and the head that are shown first.

    Of the layers whose target looks at the source, where there are any, else of all: the head with
    the most information, as a share of the most that a map of its size can have.
    """
    across = [number for number, layer in enumerate(layers) if not layer.axes.within]
    best, most = (across or [0])[0], -1.0
    chosen = 0
    for number in across or range(len(layers)):
        size = min(layers[number].queries, layers[number].num_keys)
        for head, nats in enumerate(overviews[number].statistics["information"] or ()):
            share = nats / math.log(size) if size > 1 else 0.0
            if share > most + 1e-9:
                best, chosen, most = number, head, share
    return best, chosen


_ROLES = {
    "previous_weight": "the token before",
    "next_weight": "the token after",
    "self_weight": "the token itself",
    "first_weight": "the first token",
    "last_weight": "the last token",
}
_MOSTLY = 0.3  # of its attention, from which a head is said to look at a place


def _why(layers: Sequence[Layer], overviews: Sequence[LayerOverview], layer: int, head: int) -> str:
    """Why this head is shown first, in words; "" where there is no other."""
    if sum(overview.pictures.shape[0] for overview in overviews) < 2:
        return ""
    statistics = overviews[layer].statistics
    known = {name: statistics[name] for name in _ROLES}
    shares = [(numbers[head], name) for name, numbers in known.items() if numbers]
    share, name = max(shares, default=(0.0, ""))
    mostly = f", with {100 * share:.0f} % on {_ROLES[name]}" if share >= _MOSTLY else ""
    within = [one.axes.within for one in layers]
    rivals = "of the heads that look at the source, " if any(within) and not all(within) else ""
    return f"Shown first: {rivals}its rows differ most{mostly}."


def statistics_message(
    layers: Sequence[Layer], overviews: Sequence[LayerOverview]
) -> dict[str, Any]:
    """What the page gets of all heads in numbers, and which head is shown first."""
    layer, head = most_worth_seeing(layers, overviews)
    return {
        "names": list(STATISTICS),
        # The row that is shown first is no statistic, so `names` does not have it.
        "layers": [{**overview.statistics, "row": overview.rows} for overview in overviews],
        "first": {"layer": layer, "head": head, "why": _why(layers, overviews, layer, head)},
        "sampled": any(overview.sampled for overview in overviews),
    }


_MAGIC = b"ATLO"
_VERSION = 1
MEDIA_TYPE = "application/vnd.attlas.overview"

SIDE = 64
_MOST_SIDE = 512
_MOST_CELLS = 1 << 24
_MOST_READ = 1 << 29  # weights; of more, only some queries are read


def join_tiles(tiles: Sequence[bytes]) -> bytes:
    """The tiles of all layers in one answer.

    Little-endian: "ATLO"; uint16, the version, 1; uint16, how many tiles; a uint32 for each, its
    bytes; the tiles.
    """
    sizes = struct.pack(f"<{len(tiles)}I", *map(len, tiles))
    return struct.pack("<4sHH", _MAGIC, _VERSION, len(tiles)) + sizes + b"".join(tiles)


def split_tiles(answer: bytes) -> list[bytes]:
    """The tiles that `join_tiles` joined."""
    try:
        magic, version, count = struct.unpack_from("<4sHH", answer)
        sizes = struct.unpack_from(f"<{count}I", answer, 8)
        if (magic, version) != (_MAGIC, _VERSION) or len(answer) != 8 + 4 * count + sum(sizes):
            raise ValueError("its sizes contradict each other")
    except (struct.error, ValueError) as error:
        raise AttlasError(
            "a whole overview of version 1", f"something else ({error})", "ask for it again"
        ) from None
    edges = [8 + 4 * count + sum(sizes[:number]) for number in range(count + 1)]
    return [answer[low:high] for low, high in pairwise(edges)]


# Overviews: a page asks for its own twice, and for that of the text before. The largest, of
# `_MOST_CELLS`, has 64 MiB.
_KEPT = 8
_MOST_BYTES = 128 * 2**20


class OverviewRoutes:
    """Answers for all heads of a text at once; an overview is computed once."""

    def __init__(self, maps: MapRoutes) -> None:
        self._maps = maps
        self._kept: OrderedDict[tuple[str, int], list[LayerOverview]] = OrderedDict()
        self._computing = asyncio.Lock()

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for pictures of all heads, and for their statistics."""
        return [
            Route("/maps/{id}/overview", self._overview),
            Route("/maps/{id}/statistics", self._statistics),
        ]

    async def _overview(self, request: Request) -> Response:
        overviews = await self._of(request)
        tiles = [overview.tile() for overview in overviews]
        return no_store(Response(join_tiles(tiles), media_type=MEDIA_TYPE))

    async def _statistics(self, request: Request) -> Response:
        overviews = await self._of(request)
        layers = self._maps.text_maps(request).layers
        return json_no_store(statistics_message(layers, overviews))

    async def _of(self, request: Request) -> list[LayerOverview]:
        text_maps = self._maps.text_maps(request)
        check_parameters(request, ("side",))
        side = _side(request.query_params.get("side", str(SIDE)), text_maps)
        name = request.path_params["id"], side
        async with self._computing:  # the same is asked for twice at a time, by the two routes
            if name not in self._kept:
                self._kept[name] = await self._maps.answer(
                    request, lambda stop: look_at_text(text_maps, side, stop)
                )
            self._kept.move_to_end(name)
            while len(self._kept) > 1 and (len(self._kept) > _KEPT or self._bytes > _MOST_BYTES):
                self._kept.popitem(last=False)
            return self._kept[name]

    @property
    def _bytes(self) -> int:
        return sum(
            overview.pictures.numel() * overview.pictures.element_size()
            for overviews in self._kept.values()
            for overview in overviews
        )


def look_at_text(
    text_maps: TextMaps, side: int, stop: threading.Event | None = None
) -> list[LayerOverview]:
    """Every layer; of a text whose maps are too large to be read now, some queries of each."""
    layers = text_maps.layers
    sampled = sum(math.prod(layer.attention_map.shape) for layer in layers) > _MOST_READ
    return [look_at_layer(layer, side, sampled=sampled, stop=stop) for layer in layers]


def _side(text: str, text_maps: TextMaps) -> int:
    if re.fullmatch("[0-9]{1,3}", text) is None or not 1 <= int(text) <= _MOST_SIDE:
        raise AttlasError(
            f"a side from 1 to {_MOST_SIDE}", f"?side={text[:20]}", f"ask e.g. for side={SIDE}"
        )
    side = int(text)
    if sum(layer.heads for layer in text_maps.layers) * side * side > _MOST_CELLS:
        raise AttlasError(
            f"pictures of at most {_MOST_CELLS:,} cells together",
            f"?side={side}",
            f"ask for smaller ones, such as side={SIDE}",
        )
    return side
