"""Weights: a softmax over slots, what is done to it, and the product with values that reads it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attlas.recording.foreign.explicit import explicit_reading, is_weights, rewritten
from attlas.recording.foreign.hearing import Handler, Hearing
from attlas.recording.foreign.lineage import Scored, Weighed
from attlas.recording.foreign.scores import product_of

T = torch.Tensor
CASTS = {T.to, T.type, T.float, T.half, T.double, T.bfloat16, T.type_as, T.contiguous}


def softmax(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A softmax over the last axis, which may be weights; at a place that is about attention."""
    result = func(*args, **kwargs)
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if is_weights(result, dim):
        scores = hearing.lineage.of(args[0] if args else kwargs.get("input"))
        hearing.lineage.learn(result, Weighed(scores if isinstance(scores, Scored) else None))
        for who, place in hearing.places():
            if who.journal:
                who.journal.expect(place)
    return result


def product(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A matrix product: of weights with values, or of what may be queries and keys."""
    if len(args) != 2 or kwargs:
        return func(*args, **kwargs)
    left, right = args
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
    """Einstein's sum of weights and values; one of queries and keys is left alone."""
    given = list(args)
    if len(given) == 3:
        for mine, other in ((1, 2), (2, 1)):
            known = hearing.lineage.of(given[mine])
            if isinstance(known, Weighed):
                given[mine] = _read(hearing, known, given[mine], given[other])
    return func(*given, **kwargs)


def _read(hearing: Hearing, known: Weighed, weights: Tensor, values: Tensor) -> Tensor:
    """Weights are about to be multiplied with values: tell, and change them where somebody does."""
    concerned = hearing.concerned()
    if not concerned or not isinstance(values, Tensor):
        return weights
    module = concerned[0][1].module
    reading = explicit_reading(known, weights, values, module, hearing.sights)
    hearing.tell(concerned, reading)
    change = hearing.change(concerned)
    return weights if change is None else rewritten(known, weights, module, reading, change)


def part(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Weights without their last slots, which were no slots: logits of a sink."""
    result = func(*args, **kwargs)
    if isinstance(hearing.lineage.of(args[0]), Weighed) and isinstance(result, Tensor):
        apart = args[1] if isinstance(args[1], tuple) else (args[1],)
        if apart[0] is Ellipsis and len(apart) == 2 and isinstance(apart[1], slice):
            hearing.lineage.learn(result, Weighed(None))
    return result


def step(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What may be done to weights before they meet values: dropout, another type, another shape."""
    result = func(*args, **kwargs)
    if not args:
        return result
    known = hearing.lineage.of(args[0])
    if isinstance(known, Weighed) and isinstance(result, Tensor) and result is not args[0]:
        fact = known.after(args[0], (func, args[1:], kwargs))
        hearing.lineage.learn(result, fact)
    elif isinstance(known, Scored) and isinstance(result, Tensor) and func in CASTS:
        hearing.lineage.learn(result, known)
    return result


def step_or(handler: Handler) -> Handler:
    """What is a step where it is done to weights, and something else where it is not."""

    def either(
        hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        weights = args and isinstance(hearing.lineage.of(args[0]), Weighed)
        return (step if weights else handler)(hearing, func, args, kwargs)

    return either
