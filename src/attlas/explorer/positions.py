"""Queries and keys without their positions, as the model itself computes them."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.explorer.maps import Layer, TextMaps
from attlas.inference.forward_pass import ForwardPass
from attlas.layers import NoPositions, Positions, ScoredAttention
from attlas.layers.multihead import MultiheadAttention
from attlas.recording import FactoredAttentionMap, observe

# How a layer knows positions, and how it is run without them.


@dataclass(frozen=True, slots=True)
class PositionSwitch:
    """What is left out, in words, and a block in which the model runs without it."""

    name: str
    off: Callable[[], AbstractContextManager[None]]


ROTATED = "without positions: q and k before their rotation"
ADDED = "without positions: q and k of the model, run without positions in its input"
NO_MODEL = "queries and keys were recorded with them, and no model can be run again here"
BIASED = "without positions: the same q and k, without the bias of their distance"
_IN_ORDER = "it reads word after word, so the order is in what it has read"
_ACROSS = "this layer adds no bias of distances; positions are in what it reads"
_UNKNOWN = "nothing here knows how this model tells positions"

# As modules of Hugging Face are called whose vectors are added to those of the tokens.
_TABLES = {"position_embeddings", "position_embedding", "embed_positions", "wpe"}


def switch_of(model: nn.Module, path: str) -> PositionSwitch | str:
    """How a layer is run without positions; a text says why it cannot be.

    A rotation is left out in this layer alone, so that its input stays. So is a bias that depends
    on the distance of two tokens, as in T5 and ALiBi. Positions that are added to the input are
    left out of the input of the model, so that the layers before are without them, too.
    """
    attention = model.get_submodule(path)
    if isinstance(attention, ScoredAttention):
        return _IN_ORDER
    if isinstance(attention, MultiheadAttention) and attention.positions is not None:
        return PositionSwitch(ROTATED, partial(_without_child, attention, "positions"))
    parameters = inspect.signature(attention.forward).parameters
    if path.rpartition(".")[2] == "EncDecAttention":  # T5's
        return _ACROSS
    if "position_bias" in parameters:
        return PositionSwitch(BIASED, partial(_unbiased, attention, "position_bias"))
    # Falcon has angles or this bias, and an argument for both.
    rotates = "position_embeddings" in parameters
    settings = getattr(attention, "config", None)
    if "alibi" in parameters and getattr(settings, "alibi", not rotates):
        return PositionSwitch(BIASED, partial(_unbiased, attention, "alibi"))
    if rotates:
        return PositionSwitch(ROTATED, partial(_unrotated, attention))
    if "sinusoidal_pos" in parameters:  # RoFormer's, whose table is of angles, and not added
        return _UNKNOWN
    added = [one for one in model.modules() if _adds(one)]
    tables = [one for name, one in model.named_modules() if name.rpartition(".")[2] in _TABLES]
    if not added and not tables:
        return _UNKNOWN
    return PositionSwitch(ADDED, partial(_unadded, added, tables))


def _adds(module: nn.Module) -> bool:
    return isinstance(module, Positions) and not isinstance(module, NoPositions)


@contextmanager
def _without_child(module: nn.Module, name: str) -> Iterator[None]:
    child = getattr(module, name)
    setattr(module, name, None)
    try:
        yield
    finally:
        setattr(module, name, child)


@contextmanager
def _unrotated(attention: nn.Module) -> Iterator[None]:
    """Every angle is 0 in this layer. What lengthens a rotated vector, as in YaRN, stays."""
    turned = 0

    def turn(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        nonlocal turned
        angles = kwargs.get("position_embeddings")
        if isinstance(angles, tuple) and len(angles) == 2:
            cosine, sine = angles
            turned += 1
            length = torch.hypot(cosine, sine)
            kwargs = {**kwargs, "position_embeddings": (length, torch.zeros_like(sine))}
        return args, kwargs

    handle = attention.register_forward_pre_hook(turn, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()
    if not turned:
        raise AttlasError("the angles of the layer as an argument", "none", _UNKNOWN)


@contextmanager
def _unbiased(attention: nn.Module, name: str) -> Iterator[None]:
    """The bias is 0 in this layer, whether it is given to it or made there from a table."""
    signature, left_out = inspect.signature(attention.forward), 0

    def without(_: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        nonlocal left_out
        given = signature.bind(*args, **kwargs)
        bias = given.arguments.get(name)
        if isinstance(bias, Tensor):
            if bool((bias < _HIDES).any()):  # the mask is in it, and must stay
                raise AttlasError(
                    "a bias of distances apart from the mask", "both in one", _UNKNOWN
                )
            left_out += 1
            given.arguments[name] = torch.zeros_like(bias)
        return given.args, given.kwargs

    def zeros(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        nonlocal left_out
        left_out += 1
        return torch.zeros_like(output)

    with ExitStack() as stack:
        hook = attention.register_forward_pre_hook(without, with_kwargs=True)
        stack.callback(hook.remove)
        table = getattr(attention, "relative_attention_bias", None)
        if isinstance(table, nn.Module):
            stack.callback(table.register_forward_hook(zeros).remove)
        yield
    if not left_out:
        raise AttlasError("a bias of distances in the layer", "none", _UNKNOWN)


_HIDES = -9e3  # a number below it is meant to hide a key


@contextmanager
def _unadded(added: list[nn.Module], tables: list[nn.Module]) -> Iterator[None]:
    with ExitStack() as stack:
        left_out = 0

        def unchanged(_: nn.Module, args: Any, __: Any) -> Any:
            nonlocal left_out
            left_out += 1
            return args[0]

        def zeros(_: nn.Module, __: Any, output: Any) -> Any:
            nonlocal left_out
            if not isinstance(output, Tensor):
                return output
            left_out += 1
            return torch.zeros_like(output)

        for one in added:
            stack.callback(one.register_forward_hook(unchanged).remove)
        for one in tables:
            stack.callback(one.register_forward_hook(zeros).remove)
        yield
    if not left_out:  # the model reads its table without calling it
        raise AttlasError("a module that adds positions", "none was called", _UNKNOWN)


# The map of a layer, run so.


def layer_without_positions(run: ForwardPass, layer: Layer, switch: PositionSwitch) -> Layer:
    """The same layer of the same text, with the queries and keys that it has without positions.

    Raises:
        AttlasError: If the model, run again, has no such map of this size.
    """
    with torch.no_grad(), switch.off(), observe(run.model) as trace:
        run.read()
    for one in TextMaps.of(trace).layers:
        if (one.path, one.before) == (layer.path, layer.before):
            same = one.attention_map.shape == layer.attention_map.shape
            if same and isinstance(one.attention_map, FactoredAttentionMap):
                return replace(layer, attention_map=one.attention_map)
    raise AttlasError(
        f"a map of {layer.path} with its queries and keys, of the same size",
        "another one, when the model ran again",
        "choose another layer",
    )
