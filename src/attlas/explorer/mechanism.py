"""One query through its formula: the numbers from which the weights of a row come."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from attlas.analysis.value_norms import values_of_call
from attlas.analysis.value_norms.inputs import record_value_inputs
from attlas.analysis.value_norms.projections import value_map
from attlas.errors import AttlasError
from attlas.explorer.cancellation import SearchTurns
from attlas.explorer.maps import Layer, MapRoutes, check_parameters, read_number
from attlas.explorer.messages import json_no_store, path_number
from attlas.explorer.positions import NO_MODEL as NO_POSITIONS
from attlas.explorer.positions import PositionSwitch, layer_without_positions, switch_of
from attlas.inference.forward_pass import ForwardPass
from attlas.layers import (
    AdditiveAttention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    LocalAttention,
    ScoredAttention,
)
from attlas.ops.cache import KeyValueCache
from attlas.ops.linear import linear
from attlas.recording import FactoredAttentionMap

# A row of one head, from its query and its keys to its weights and its context.


Form = Literal["scaled", "dot", "general", "additive", "concat"]


@dataclass(frozen=True, slots=True)
class Row:
    """weights = softmax(scores) over the keys that are seen; context = Σ_j weight_j value_j.

    scores = cap(scale · products) + bias. products = q · k_j, or v · tanh(q + k_j) where there is
    an energy v (additive attention, with q and k after their projections).

    Args:
        hidden: Why a key is hidden, "" where it is seen.
        bias: Of a hidden key NaN where it is not known without what hides it; None = none is added.
        no_values: Why there are no values.
    """

    form: Form
    query: Float[Tensor, " width"]
    keys: Float[Tensor, "keys width"]
    energy: Float[Tensor, " width"] | None
    products: Float[Tensor, " keys"]
    scale: float
    softcap: float | None
    bias: Float[Tensor, " keys"] | None
    scores: Float[Tensor, " keys"]
    hidden: tuple[str, ...]
    weights: Float[Tensor, " keys"]
    values: Float[Tensor, "keys value_dim"] | None = None
    no_values: str = ""


Values = Float[Tensor, "1 value_heads keys value_dim"]

_LOW = -9e3  # a number below it is meant to hide a key


def row_of_factored(
    layer: Layer, head: int, row: int, values: Values | None, no_values: str
) -> Row:
    """A row of a map that has its queries and keys."""
    whole = layer.attention_map
    assert isinstance(whole, FactoredAttentionMap)
    one = whole.select_heads(torch.tensor([head]))
    num_keys = one.shape[3]
    dtype = torch.promote_types(one.query.dtype, torch.float32)
    query, keys = one.query[0, 0, row].to(dtype), one.keys[0, 0].to(dtype)
    seen = one.allowed_rows(row, row + 1).expand(1, 1, 1, num_keys)[0, 0, 0]
    bias = _bias_of(one, row, seen)
    scores = one.scores(row, row + 1)[0, 0, 0]
    products = keys @ query
    if bias is not None:
        # What hides a key is apart from its score.
        capped = _capped(products * one.scale, one.softcap)
        scores = torch.where(seen, scores, capped + bias.nan_to_num(0.0))
        bias = None if not bool((bias.nan_to_num(1.0) != 0).any()) else bias
    own = None if values is None else values[0, head // (whole.shape[1] // values.shape[1])]
    return Row(
        form="scaled",
        query=query,
        keys=keys,
        energy=None,
        products=products,
        scale=one.scale,
        softcap=one.softcap,
        bias=bias,
        scores=scores,
        hidden=tuple(_hidden_in(one, row, seen)),
        weights=one.rows(row, row + 1)[0, 0, 0],
        values=own,
        no_values=no_values,
    )


def _capped(scores: Float[Tensor, " keys"], softcap: float | None) -> Float[Tensor, " keys"]:
    return scores if softcap is None else torch.tanh(scores / softcap) * softcap


def _bias_of(
    one: FactoredAttentionMap, row: int, seen: Bool[Tensor, " keys"]
) -> Float[Tensor, " keys"] | None:
    """What is added to the scores of a row; NaN where it hides the key."""
    if one.bias is None or one.bias.dtype == torch.bool:
        return None
    bias = one.bias[0, 0, row if one.bias.shape[2] > 1 else 0].expand(one.shape[3])
    bias = bias.to(torch.promote_types(bias.dtype, torch.float32))
    return bias.masked_fill(~seen & (bias < _LOW), math.nan)


def _hidden_in(one: FactoredAttentionMap, row: int, seen: Bool[Tensor, " keys"]) -> Iterator[str]:
    num_keys = one.shape[3]
    in_pattern = one.pattern.mask(1, num_keys, one.pattern_offset + row, one.device)[0].tolist()
    mask = one.token_mask
    tokens = [True] * num_keys if mask is None else mask[0].tolist()
    for own, inside, token in zip(seen.tolist(), in_pattern, tokens, strict=True):
        if own:
            yield ""
        elif not token:
            yield "padding"
        else:
            yield "mask" if inside else str(one.pattern)


# A mechanism of attlas whose map holds weights alone: its inputs are taken while it runs again.


@dataclass(frozen=True, slots=True)
class ScoreCall:
    """The inputs of one call of a mechanism's scores."""

    query: Float[Tensor, "batch queries query_dim"]
    cache: KeyValueCache
    query_offset: int | None


@contextmanager
def recorded_scores(attention: ScoredAttention) -> Iterator[list[ScoreCall]]:
    """The inputs of every call of the scores in the block. Recurrent decoders call no `forward`, so
    that no hook of torch would see them."""
    calls: list[ScoreCall] = []
    scored = attention.masked_scores

    def masked_scores(
        query: Tensor, cache: KeyValueCache, query_offset: int | None = None
    ) -> tuple[Tensor, Tensor]:
        calls.append(ScoreCall(query.detach(), cache, query_offset))
        return scored(query, cache, query_offset)

    own = vars(attention)
    own["masked_scores"] = masked_scores
    try:
        yield calls
    finally:
        del own["masked_scores"]


def row_of_scored(
    attention: ScoredAttention, calls: list[ScoreCall], layer: Layer, row: int
) -> Row:
    """A row of additive attention, of one of Luong's scores, or of local attention.

    Raises:
        AttlasError: If the model, run again, has other weights than the map.
    """
    query, cache, offset = _call_of(attention, calls, layer, row)
    # That of the class: another thread may record the calls of this object meanwhile.
    masked_scores = type(attention).masked_scores(attention, query, cache, offset)
    scores, allowed = (part[0, 0, 0] for part in masked_scores)
    products = attention.score(query, cache.keys)[0, 0]
    seen = allowed.expand_as(scores)
    core = attention.inner if isinstance(attention, LocalAttention) else attention
    form, projected, energy = _parts_of(core, query)
    bias = scores - products
    weights = layer.attention_map.rows(row, row + 1)[0, 0, 0]
    again = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1)
    if bool(seen.any()) and not torch.allclose(again, weights.to(again), atol=1e-3):
        raise AttlasError(
            "the weights of the map from the model, run again",
            "others",
            "translate the text again",
        )
    return Row(
        form=form,
        query=projected[0, 0],
        keys=cache.keys[0],
        energy=energy,
        products=products,
        scale=1.0,
        softcap=None,
        bias=bias if bool((bias != 0).any()) else None,
        scores=scores,
        hidden=tuple(_hidden_from(attention, cache, seen)),
        weights=weights,
        values=cache.values[0],
    )


def _call_of(
    attention: ScoredAttention, calls: list[ScoreCall], layer: Layer, row: int
) -> tuple[Tensor, KeyValueCache, int]:
    place = layer.before + row
    for call in calls:
        queries = call.query.shape[1]
        if place < queries:
            offset = attention.resolve_offset(queries, call.cache, call.query_offset)
            return call.query[:, place : place + 1], call.cache, offset + place
        place -= queries
    raise AttlasError(f"a query {layer.before + row}", "fewer", "translate the text again")


def _parts_of(core: ScoredAttention, query: Tensor) -> tuple[Form, Tensor, Tensor | None]:
    """The name of a score, its query as the products take it, and v of v · tanh(q + k)."""
    match core:
        case AdditiveAttention():
            return "additive", core.q_proj(query), core.score_proj.weight[0]
        case ConcatAttention():
            projected = linear(query, core.pair_proj.weight[:, : core.query_dim])
            return "concat", projected, core.score_proj.weight[0]
        case GeneralAttention():
            return "general", query, None
        case DotAttention():
            return "dot", query, None
    raise AttlasError(
        "a score of attlas: additive, dot, general or concat",
        type(core).__name__,
        "its map holds weights alone, and nothing here knows its formula",
    )


def _hidden_from(
    attention: ScoredAttention, cache: KeyValueCache, seen: Bool[Tensor, " keys"]
) -> Iterator[str]:
    mask = cache.token_mask
    tokens = [True] * cache.num_keys if mask is None else mask[0].tolist()
    local = isinstance(attention, LocalAttention)
    for own, token in zip(seen.tolist(), tokens, strict=True):
        if own:
            yield ""
        elif not token:
            yield "padding"
        else:
            yield "outside of the local window" if local else str(attention.pattern)


# Values, which no map holds.


_NO_MODEL = "the map holds queries and keys, no values"


def values_of(run: ForwardPass, layer: Layer) -> Values:
    """The values of each key of a layer, while the model reads the text again.

    Raises:
        AttlasError: For a layer that does more than project its values.
    """
    heads = layer.attention_map.shape[1]
    projected = value_map(run.model, layer.path, heads)
    with torch.no_grad(), record_value_inputs(run.model) as sources:
        run.read()
    # A layer that is called several times, as in ALBERT, has as many queries each time.
    call = layer.before // layer.queries
    inputs = sources.get(layer.path, [])
    if call >= len(inputs):
        raise AttlasError("a call of the layer", "none", "translate the text again")
    return values_of_call(layer.attention_map, projected, inputs[call])


# As the page gets it.


_MOST_KEYS = 1024  # of which the scores are sent
_SHOWN, _SHOWN_HIDDEN = 24, 8  # of which the vectors are sent too
_MOST_NUMBERS = 256  # of a vector


def row_message(found: Row, key: int | None, placed: Row | None = None) -> dict[str, Any]:
    """A row as JSON: scores of all keys, or of those that matter most; vectors of some.

    `keys` has columns, in the order of the text. What is left out of them is `left`: how many keys
    that are seen, the logarithm of the sum of their e^score, and how many that are hidden.

    Args:
        placed: The same row with positions, where `found` is without them; then `placed` has its
            own `keys` and `left`, of the same keys.
    """
    seen = torch.tensor([not why for why in found.hidden])
    weights = found.weights if placed is None else found.weights.maximum(placed.weights)
    rank = torch.where(seen, weights.double() + 1.0, torch.sigmoid(found.scores.double()))
    order = rank.nan_to_num(0.0).argsort(descending=True, stable=True).tolist()
    first = [place for place in order if seen[place]][:_SHOWN]
    first += [place for place in order if not seen[place]][:_SHOWN_HIDDEN]
    shown = sorted({*first, *([] if key is None else [key])})
    sent = sorted({*order[:_MOST_KEYS], *shown})
    kept = torch.zeros_like(seen)
    kept[sent] = True
    values = found.values
    context = None if values is None else found.weights.to(values) @ values
    return {
        "missing": "",
        "form": found.form,
        "scale": found.scale,
        "softcap": found.softcap,
        "width": len(found.query),
        "query": _vector(found.query),
        "energy": None if found.energy is None else _vector(found.energy),
        **_scores_message(found, sent, seen, kept),
        "placed": None if placed is None else _scores_message(placed, sent, seen, kept),
        "shown": shown,
        "vectors": [_vector(vector) for vector in found.keys[shown]],
        "value_width": None if values is None else values.shape[1],
        "values": None if values is None else [_vector(vector) for vector in values[shown]],
        "context": None if context is None else _vector(context),
        "no_values": found.no_values,
        "notes": _notes(found),
    }


def _notes(found: Row) -> list[str]:
    """What has to be known of the scale, and of the vectors."""
    scale = "A larger scale makes the weights sharper."
    if found.scale != 1 and abs(found.scale * math.sqrt(len(found.query)) - 1) < 1e-4:
        scale += (
            " Products of d random numbers grow with √d; "
            "1/√d keeps them from leaving all weight to one key."
        )
    vectors = (
        "Each strip has a scale of its own: blue is below 0, orange above. "
        "Point at a cell for its number."
    )
    if found.bias is not None:
        vectors += " A bias is added to the score, whatever q and k are."
    return [scale, vectors]


def _scores_message(
    found: Row, sent: list[int], seen: Bool[Tensor, " keys"], kept: Bool[Tensor, " keys"]
) -> dict[str, Any]:
    """The columns of the keys that are sent, and what is left out of them."""
    rest = found.scores[seen & ~kept].double()
    return {
        "keys": {
            "index": sent,
            "product": _exact(found.products[sent]),
            "bias": None if found.bias is None else _exact(found.bias[sent]),
            "score": _exact(found.scores[sent]),
            "hidden": [found.hidden[place] for place in sent],
            "weight": _exact(found.weights[sent]),
        },
        "left": {
            "seen": len(rest),
            "log_sum": float(rest.logsumexp(0)) if len(rest) else None,
            "hidden": int((~seen & ~kept).sum()),
        },
    }


def _exact(numbers: Float[Tensor, " keys"]) -> list[float | None]:
    return [
        float(f"{number:.9g}") if math.isfinite(number) else None for number in numbers.tolist()
    ]


def _vector(numbers: Float[Tensor, " width"]) -> list[float | None]:
    """Its first numbers, with as many digits as anything that is seen of them needs."""
    some = numbers[:_MOST_NUMBERS].tolist()
    return [float(f"{number:.6g}") if math.isfinite(number) else None for number in some]


def requested_row(query: Mapping[str, str], layer: Layer) -> tuple[int, int, int | None]:
    """The head, the row and the key of a query string: ?head=h&row=r&key=k.

    Raises:
        AttlasError: Without a row, and without a head where there are several.
    """
    head = read_number(query, "head", layer.heads)
    row = read_number(query, "row", layer.queries)
    if row is None or (head is None and layer.heads > 1):
        raise AttlasError("a head and a row", "a question without them", "add ?head=0&row=0")
    return head or 0, row, read_number(query, "key", layer.num_keys)


def mechanism_without_model(layer: Layer, query: Mapping[str, str]) -> dict[str, Any]:
    """What can be said of a row of a trace."""
    head, row, key = requested_row(query, layer)
    if isinstance(layer.attention_map, FactoredAttentionMap):
        found = row_message(row_of_factored(layer, head, row, None, _NO_MODEL), key)
        return {**found, **_switched(NO_POSITIONS)}
    return _missing("this map holds weights alone, without the queries and keys they came from")


def _missing(why: str) -> dict[str, Any]:
    return {"missing": why}


def _switched(switch: PositionSwitch | str) -> dict[str, Any]:
    """What can be left out of queries and keys; "" and why, where nothing can."""
    why = switch if isinstance(switch, str) else ""
    return {"positions": "" if isinstance(switch, str) else switch.name, "no_positions": why}


class MechanismRoutes:
    """Answers how the weights of a row came about.

    What the model gave when it read a text again is kept for the latest layer: another row of it
    needs no other pass.
    """

    def __init__(self, maps: MapRoutes, turns: SearchTurns) -> None:
        self._maps, self._turns = maps, turns
        self._latest: tuple[tuple[str, int], Any] | None = None
        self._without: tuple[tuple[str, int], Any] | None = None

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for the formula of a row."""
        return [Route("/maps/{id}/{layer}/mechanism", self._mechanism)]

    async def _mechanism(self, request: Request) -> Response:
        text_maps = self._maps.text_maps(request)
        number = path_number(request, "layer")
        layer = text_maps.layer(number)
        check_parameters(request, ("head", "row", "key", "positions"))
        query = request.query_params
        # A link may ask for a layer without positions that is asked with them alone.
        placed = read_number(query, "positions", 2) != 0
        head, row, key = requested_row(query, layer)
        run = text_maps.forward_pass
        name = request.path_params["id"], number

        def work(stop: threading.Event) -> dict[str, Any]:
            if run is None:
                return mechanism_without_model(layer, query)
            attention = run.model.get_submodule(layer.path)
            if isinstance(layer.attention_map, FactoredAttentionMap):
                switch = switch_of(run.model, layer.path)
                shown, no_values = layer, ""
                if not placed and isinstance(switch, PositionSwitch):
                    try:
                        shown = self._unplaced(name, stop, run, layer, switch)
                        no_values = "they are those of the model with its positions"
                    except AttlasError as error:
                        switch = f"expected {error.expected}; got {error.got}"
                values, why = None, no_values
                if not no_values:
                    values, why = self._kept(name, stop, partial(_values_or_why, run, layer))
                with_positions = None
                if shown is not layer:
                    with_positions = row_of_factored(layer, head, row, None, no_values)
                found = row_of_factored(shown, head, row, values, why)
                message = row_message(found, key, with_positions)
                return {**message, **_switched(switch)}
            if not isinstance(attention, ScoredAttention):
                return _missing(
                    f"the map of {type(attention).__name__} holds weights alone, and nothing here "
                    "knows the formula of its scores"
                )
            with torch.no_grad():
                calls = self._kept(name, stop, partial(_calls_of, run, attention))
                message = row_message(row_of_scored(attention, calls, layer, row), key)
            return {**message, **_switched(switch_of(run.model, layer.path))}

        return json_no_store(await self._maps.answer(request, work))

    def _unplaced(
        self,
        name: tuple[str, int],
        stop: threading.Event,
        run: ForwardPass,
        layer: Layer,
        switch: PositionSwitch,
    ) -> Layer:
        latest = self._without
        if latest is None or latest[0] != name:
            with self._turns.taken(stop):
                latest = name, layer_without_positions(run, layer, switch)
            self._without = latest
        found: Layer = latest[1]
        return found

    def _kept(self, name: tuple[str, int], stop: threading.Event, made: Callable[[], Any]) -> Any:
        latest = self._latest
        if latest is None or latest[0] != name:
            with self._turns.taken(stop):
                latest = name, made()
            self._latest = latest
        return latest[1]


def _values_or_why(run: ForwardPass, layer: Layer) -> tuple[Values | None, str]:
    try:
        return values_of(run, layer), ""
    except AttlasError as error:
        return None, f"expected {error.expected}; got {error.got}"


def _calls_of(run: ForwardPass, attention: ScoredAttention) -> list[ScoreCall]:
    with recorded_scores(attention) as calls:
        run.read()
    return calls
