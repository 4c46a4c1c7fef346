"""Weights: a softmax over slots, what is done to it, and the product with values that reads it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attlas.recording.foreign.contraction import Contraction
from attlas.recording.foreign.explicit import (
    explicit_reading,
    is_softmax_of_rows,
    rewritten,
)
from attlas.recording.foreign.hearing import Handler, Hearing
from attlas.recording.foreign.lineage import Scored, Weighed, in_place
from attlas.recording.foreign.scores import product_of
from attlas.recording.foreign.unreadable import unreadable

T = torch.Tensor
_MOST_AXES = 4  # windows that have an axis of their own are not read
CASTS = {T.to, T.type, T.float, T.half, T.double, T.bfloat16, T.type_as, T.contiguous}
SHAPES = {T.view, T.reshape, T.unflatten, T.flatten, T.squeeze, T.unsqueeze, torch.reshape}


def softmax(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A softmax over the last axis, which may be weights; at a place that is about attention."""
    result = func(*args, **kwargs)
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    scores = hearing.lineage.of(args[0] if args else kwargs.get("input"))
    known = scores if isinstance(scores, Scored) else None
    if not is_softmax_of_rows(result, dim, known):
        return result
    if result.ndim <= _MOST_AXES:
        hearing.lineage.learn(result, Weighed(known, news=hearing.expect()))
    else:
        hearing.expect()
    return result


def product(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A matrix product: of weights with values, or of what may be queries and keys."""
    given = [*args, *(kwargs[name] for name in ("input", "other", "mat2") if name in kwargs)]
    if len(given) != 2 or len(given) < len(args) + len(kwargs):
        return func(*args, **kwargs)  # with an `out` of its own
    left, right = given
    known = hearing.lineage.of(left)
    if isinstance(known, Weighed):
        left = _read(hearing, known, left, right)
    result = func(left, right)
    if known is None:
        hearing.lineage.learn(result, product_of(left, right, result))
    return result


def einsum(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Einstein's sum of weights and values, or of queries and keys, in whatever order of axes."""
    asked = Contraction.of(args)
    if asked is None:
        return func(*args, **kwargs)
    tensors = list(asked.tensors)
    for mine in (0, 1):
        known = hearing.lineage.of(tensors[mine])
        query = asked.query_axis(mine) if isinstance(known, Weighed) else None
        if isinstance(known, Weighed) and query is not None:
            if known.scores is not None and query != -2:
                break  # queries are known to be elsewhere: these are values of pairs of places
            weights, values = tensors[mine].movedim(query, -2), tensors[1 - mine]
            turned = known.turned(query)
            tensors[mine] = _read(hearing, turned, weights, values, query).movedim(-2, query)
            return func(asked.equation, *tensors, **kwargs)
    result = func(*args, **kwargs)
    scored = asked.product()
    if scored is not None:
        hearing.lineage.learn(result, product_of(*scored, result))
    return result


def _read(
    hearing: Hearing, known: Weighed, weights: Tensor, values: Tensor, query: int = -2
) -> Tensor:
    """Weights are about to be multiplied with values: tell, and change them where somebody does.

    query: which axis their queries were.
    """
    if not isinstance(values, Tensor) or _is_table(values, weights):
        return weights
    known.news.arrive()
    why = unreadable(weights)
    if why is not None:
        hearing.miss(why)
        return weights
    concerned = hearing.concerned()
    if not concerned:
        return weights
    module = concerned[0][1].module
    reading = explicit_reading(known, weights, values, module, hearing.sights)
    hearing.tell([pair for pair in concerned if known.news.first_for(*pair, query)], reading)
    change = hearing.change(concerned)
    return weights if change is None else rewritten(known, weights, module, reading, change)


def _is_table(values: Tensor, weights: Tensor) -> bool:
    """Whether these are no values of a text but rows that are the same for every one."""
    return isinstance(values, nn.Parameter) or (values.ndim == 2 and weights.ndim > 2)


def part(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Weights without their last slots, which were no slots: logits of a sink."""
    result = func(*args, **kwargs)
    known = hearing.lineage.of(args[0])
    if isinstance(known, Weighed) and isinstance(result, Tensor):
        apart = args[1] if isinstance(args[1], tuple) else (args[1],)
        if len(apart) == 2 and apart[0] is Ellipsis and isinstance(apart[1], slice):
            hearing.lineage.learn(result, known.altered())
    return result


def step(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What may be done to weights before they meet values: dropout, another type, another shape."""
    if not args:
        return func(*args, **kwargs)
    known, before = hearing.lineage.of(args[0]), args[0]
    if isinstance(known, Weighed) and (kwargs.get("inplace") or in_place(func)):
        before = args[0].detach().clone()
    result = func(*args, **kwargs)
    if isinstance(known, Weighed) and isinstance(result, Tensor) and result is not before:
        fact = known.after(before, (func, args[1:], kwargs))
        hearing.lineage.learn(result, fact)
    elif isinstance(known, Scored) and isinstance(result, Tensor):
        if func in CASTS:
            hearing.lineage.learn(result, known)
        elif func in SHAPES and result.dtype == args[0].dtype:
            hearing.lineage.learn(result, known.regrouped(args[0].shape, result.shape))
    return result


def step_or(handler: Handler) -> Handler:
    """What makes other weights of weights, and something else of what is none.

    A gate, a mask of heads, a threshold and a sum to 1: what comes of it is what is read, and not
    what the softmax gave.
    """

    def either(
        hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        known = hearing.lineage.of(args[0]) if args else None
        if not isinstance(known, Weighed):
            return handler(hearing, func, args, kwargs)
        result = func(*args, **kwargs)
        if isinstance(result, Tensor):
            hearing.lineage.learn(result, known.altered())
        return result

    return either
